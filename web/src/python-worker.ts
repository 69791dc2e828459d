// Policies in Python: a worker that has the interpreter, and the engine where a policy decides.

import type { PyodideAPI } from "pyodide";
import type { Inside } from "./engine";
import { replicate, type Task } from "./replicate";
import type { Policies } from "./scenario";
import init from "../../python/vcpulab/__init__.py?raw";
import errors from "../../python/vcpulab/errors.py?raw";
import plugins from "../../python/vcpulab/plugins.py?raw";
import policy from "../../python/vcpulab/policy.py?raw";
import safe_open from "../../python/vcpulab/_files/safe_open.py?raw";
import engine from "./python/_engine.py?raw";
import served from "./python/served.py?raw";

/** What of the package policies need; the engine that they see is this page's. */
const PACKAGE = { __init__: init, errors, plugins, policy, "_files/safe_open": safe_open, _engine: engine };

/** A file of policies. */
export interface Source {
  file: string;
  text: string;
}

/** What is asked: what policies declare, or a replication. */
export type Asked = { source: Source; names: string[] } | { source: Source; task: Task };

interface Served {
  declared(name: string): string;
  offer(ask: (question: number, a: number | bigint, b: number | bigint) => unknown, questions: string): void;
  called(line: string): string;
}

type Ask = (question: number, a: bigint, b: bigint) => bigint;

/** Answers that are no numbers: see crates/wasm/src/questions.rs. */
const [NOTHING, FALSE, TRUE, IN_WORDS] = [0n, 1n, 2n, 3n].map((more) => -(2n ** 63n) + more) as [bigint, bigint, bigint, bigint];

let python: Promise<{ api: PyodideAPI; served: Served }> | undefined;
let asks: ((question: number, a: number | bigint, b: number | bigint) => unknown) | undefined;

async function start(): Promise<{ api: PyodideAPI; served: Served }> {
  const folder = new URL(/* @vite-ignore */ `../${__PYODIDE__}/`, import.meta.url).href;
  const { loadPyodide } = (await import(/* @vite-ignore */ `${folder}pyodide.js`)) as typeof import("pyodide");
  const api = await loadPyodide({ indexURL: folder, env: { HOME: "/policies" } });
  api.FS.mkdirTree("/package/vcpulab/_files");
  for (const [name, text] of Object.entries(PACKAGE)) api.FS.writeFile(`/package/vcpulab/${name}.py`, text);
  api.FS.writeFile("/package/served.py", served);
  api.runPython("import sys; sys.path.insert(0, '/package')");
  return { api, served: api.pyimport("served") as Served };
}

/** What a policy asks while its hook lasts goes to the engine that called it. */
function connected({ served }: { served: Served }, line: string, { memory, functions }: Inside): void {
  const [ask, text] = (JSON.parse(line) as [unknown, unknown, unknown, unknown, unknown, [number, number], unknown])[5].map((at) => functions.get(at) as unknown) as [Ask, () => bigint];
  const questions = JSON.stringify((JSON.parse(line) as unknown[])[6]);
  const decoder = new TextDecoder();
  const isFirst = asks === undefined;
  asks = (question, a, b) => {
    const met = ask(question, BigInt(a), BigInt(b));
    if (met > IN_WORDS) return met > Number.MAX_SAFE_INTEGER || met < Number.MIN_SAFE_INTEGER ? met : Number(met);
    if (met === TRUE || met === FALSE) return met === TRUE;
    if (met === NOTHING) return undefined;
    const where = text();
    return decoder.decode(new Uint8Array(memory.buffer, Number(where & 0xffffffffn), Number(where >> 32n)));
  };
  if (isFirst) served.offer((question, a, b) => asks?.(question, a, b), questions);
}

self.onmessage = async ({ data }: MessageEvent<Asked>): Promise<void> => {
  const { source } = data;
  try {
    const there = await (python ??= start());
    there.api.FS.writeFile(source.file, source.text);
    if ("names" in data) {
      const declared: Policies = {};
      for (const name of data.names) declared[name] = JSON.parse(there.served.declared(name)) as Policies[string] & object;
      self.postMessage({ declared });
      return;
    }
    for (const name of Object.keys(data.task.policies)) there.served.declared(name);
    await replicate(data.task, (line, inside) => {
      if (line.includes('"__init__"')) connected(there, line, inside);
      return there.served.called(line);
    });
  } catch (error) {
    self.postMessage({ error: error instanceof Error ? error.message : String(error) });
  }
};
