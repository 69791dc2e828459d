// What the engine answers in the browser: `node answers.mjs < TASKS`. Tasks are a JSON list of {text, replication}; of each
// the hash of the bytes is printed, and the least time of `times` that it took, ms. The built page's own worker does the work.

import { readdirSync } from "node:fs";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { served } from "./browser.mjs";

const assets = readdirSync(fileURLToPath(new URL("../../out/web/assets/", import.meta.url)));
const [worker, engine] = ["worker", "engine"].map((name) => `assets/${assets.find((asset) => asset.startsWith(`${name}-`))}`);
const tasks = JSON.parse(await text(process.stdin));
const site = await served();
try {
  const page = await site.page();
  await page.goto(site.address);
  const answers = await page.evaluate(async ({ tasks, worker, engine }) => {
    const module = await WebAssembly.compileStreaming(fetch(engine));
    const run = (task) => new Promise((done, failed) => {
      const one = new Worker(worker, { type: "module" });
      one.onmessage = ({ data }) => {
        if ("progress" in data) return;
        one.terminate();
        if ("error" in data) failed(new Error(data.error));
        else done(data.answer);
      };
      one.postMessage({ module, trace: true, ...task });
    });
    const answers = [];
    for (const { times = 1, ...task } of tasks) {
      let least = Infinity;
      let answer;
      for (let time = 0; time < times; time++) {
        const begun = performance.now();
        answer = await run(task);
        least = Math.min(least, performance.now() - begun);
      }
      const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", answer));
      answers.push({ hash: Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join(""), ms: least });
    }
    return answers;
  }, { tasks, worker, engine });
  console.log(JSON.stringify(answers));
} finally {
  await site.close();
}
