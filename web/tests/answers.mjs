// What the engine answers in the browser: `node answers.mjs < TASKS`. Tasks are a JSON list of {text, replication}, with the
// `source` of policies in Python where there are some; of each the error or the hash of the bytes is printed, the least time of `times` that it took, ms, and with
// `whole` the bytes. The built page's own workers do the work.

import { readdirSync } from "node:fs";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { served } from "./browser.mjs";

const assets = readdirSync(fileURLToPath(new URL("../../out/web/assets/", import.meta.url)));
const [worker, python, engine] = ["worker", "python-worker", "engine"].map((name) => `assets/${assets.find((asset) => asset.startsWith(`${name}-`))}`);
const tasks = JSON.parse(await text(process.stdin));
const site = await served();
try {
  const page = await site.page();
  await page.goto(site.address);
  const answers = await page.evaluate(async ({ tasks, worker, python, engine }) => {
    const module = await WebAssembly.compileStreaming(fetch(engine));
    const asked = (one, message, last) => new Promise((done, failed) => {
      one.onmessage = ({ data }) => {
        if ("error" in data) failed(new Error(data.error));
        else if (last in data) done(data[last]);
      };
      one.onerror = (event) => failed(new Error(event.message));
      one.postMessage(message);
    });
    // It has Python once it was asked; each of the others is asked once.
    const interpreter = new Worker(python, { type: "module" });
    const run = async ({ source, ...task }) => {
      if (source !== undefined) {
        const policies = await asked(interpreter, { source, names: source.names }, "declared");
        return asked(interpreter, { source, task: { module, trace: true, policies, ...task } }, "answer");
      }
      const one = new Worker(worker, { type: "module" });
      const answer = await asked(one, { module, trace: true, policies: {}, ...task }, "answer");
      one.terminate();
      return answer;
    };
    const answers = [];
    for (const { times = 1, whole = false, ...task } of tasks) {
      let least = Infinity;
      let answer;
      for (let time = 0; time < times; time++) {
        const begun = performance.now();
        try {
          answer = await run(task);
        } catch (error) {
          answers.push({ error: error.message });
          break;
        }
        least = Math.min(least, performance.now() - begun);
      }
      if (answer === undefined) continue;
      const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", answer));
      const bytes = whole ? Array.from(new Uint8Array(answer), (byte) => String.fromCharCode(byte)).join("") : "";
      answers.push({ hash: Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join(""), ms: least, bytes: btoa(bytes) });
    }
    return answers;
  }, { tasks, worker, python, engine });
  console.log(JSON.stringify(answers));
} finally {
  await site.close();
}
