// What the page says of pairs of runs: `node verdicts.mjs ENGINE < [{"before": RUN, "after": RUN}, …]`, where a RUN is the `text` of a
// scenario, and the `answers` of its replications, which are the engine's in Base64. No browser is needed: the
// page's own modules are loaded as they are, and the engine is the same program, compiled for this machine.

import { spawnSync } from "node:child_process";
import { text } from "node:stream/consumers";
import { createServer } from "vite";

const pairs = JSON.parse(await text(process.stdin));
const vite = await createServer({ configFile: false, root: new URL("..", import.meta.url).pathname, logLevel: "error", server: { middlewareMode: true, watch: null }, optimizeDeps: { noDiscovery: true } });
try {
  const [{ judge }, { Scenario }, { Tables }] = await Promise.all(["judge", "scenario", "tables"].map((name) => vite.ssrLoadModule(`/src/${name}.ts`)));
  const ask = async (args, input) => JSON.parse(spawnSync(process.argv[2], args, { input: `${JSON.stringify(input)}\n`, maxBuffer: 1 << 26 }).stdout);
  const run = async ({ text, answers }) => {
    const { scenario, apps } = await ask(["check"], { text });
    const results = answers.map((answer) => new Tables(new Uint8Array(Buffer.from(answer, "base64")).buffer));
    return { scenario: new Scenario(text, scenario, apps), results };
  };
  const judged = pairs.map(async ({ before, after }) => (await judge(ask, await run(before), await run(after))).lines);
  console.log(JSON.stringify(await Promise.all(judged)));
} finally {
  await vite.close();
}
