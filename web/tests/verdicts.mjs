// What the page says of pairs of runs: `node verdicts.mjs < [{"before": RUN, "after": RUN}, …]`, where a RUN is a complete scenario in
// JSON, `fields`, and the `answers` of its replications, which are the engine's in Base64. No browser is needed: the page's own
// modules are loaded as they are.

import { text } from "node:stream/consumers";
import { createServer } from "vite";

const pairs = JSON.parse(await text(process.stdin));
const vite = await createServer({ configFile: false, root: new URL("..", import.meta.url).pathname, logLevel: "error", server: { middlewareMode: true, watch: null }, optimizeDeps: { noDiscovery: true } });
try {
  const [{ told }, { Scenario }, { Tables }] = await Promise.all(["results", "scenario", "tables"].map((name) => vite.ssrLoadModule(`/src/${name}.ts`)));
  const run = ({ fields, answers }) => ({
    scenario: new Scenario("", fields),
    results: answers.map((answer) => new Tables(new Uint8Array(Buffer.from(answer, "base64")).buffer)),
  });
  console.log(JSON.stringify(pairs.map(({ before, after }) => told(run(before), run(after)))));
} finally {
  await vite.close();
}
