// The engine is a program: each call starts it anew with arguments and an input, and answers what it wrote. What WASI asks of
// the system around it is little, as it opens no file and reads no clock.

const BAD_FILE = 8;

class Exit extends Error {
  constructor(readonly status: number) {
    super(`exit ${status}`);
  }
}

/** What the engine said before it failed. */
export class EngineError extends Error {}

/** The engine while it runs. */
export interface Inside {
  memory: WebAssembly.Memory;
  functions: WebAssembly.Table;
}

/** Runs the engine on a line of JSON; `heard` gets each line of its standard error, and may answer with a line of input. */
export async function call(
  module: WebAssembly.Module,
  args: readonly string[],
  input: unknown,
  heard: (line: string, inside: Inside) => string | void = () => {},
): Promise<Uint8Array> {
  const encoder = new TextEncoder();
  let unread: Uint8Array = encoder.encode(`${JSON.stringify(input)}\n`);
  const written: Uint8Array[] = [];
  const said: string[] = [];
  let line = "";
  const decoder = new TextDecoder();
  const words = ["vcpulab-wasm", ...args].map((word) => encoder.encode(`${word}\0`));

  const memory = (): WebAssembly.Memory => instance.exports["memory"] as WebAssembly.Memory;
  const view = (): DataView => new DataView(memory().buffer);
  const bytes = (at: number, length: number): Uint8Array => new Uint8Array(memory().buffer, at, length);
  const buffers = function* (at: number, count: number): Generator<Uint8Array> {
    for (let i = 0; i < count; i++) {
      yield bytes(view().getUint32(at + 8 * i, true), view().getUint32(at + 8 * i + 4, true));
    }
  };
  const hear = (text: string): void => {
    const lines = (line + text).split("\n");
    line = lines.pop() ?? "";
    for (const each of lines) {
      if (!/^[0-9.e-]+$|^\[/.test(each)) said.push(each);
      const answer = heard(each, { memory: memory(), functions: instance.exports["__indirect_function_table"] as WebAssembly.Table });
      // It is asked one thing at a time, and has read what was answered before.
      if (answer !== undefined) unread = encoder.encode(`${answer}\n`);
    }
  };

  const system = {
    args_sizes_get(count: number, size: number): number {
      view().setUint32(count, words.length, true);
      view().setUint32(size, words.reduce((sum, word) => sum + word.length, 0), true);
      return 0;
    },
    args_get(list: number, text: number): number {
      words.forEach((word, index) => {
        view().setUint32(list + 4 * index, text, true);
        bytes(text, word.length).set(word);
        text += word.length;
      });
      return 0;
    },
    environ_sizes_get(count: number, size: number): number {
      view().setUint32(count, 0, true);
      view().setUint32(size, 0, true);
      return 0;
    },
    environ_get: () => 0,
    // Only hash tables of libraries ask, whose order nothing depends on.
    random_get: () => 0,
    fd_read(_file: number, list: number, count: number, read: number): number {
      let sum = 0;
      for (const buffer of buffers(list, count)) {
        const part = unread.subarray(0, buffer.length);
        buffer.set(part);
        unread = unread.subarray(part.length);
        sum += part.length;
      }
      view().setUint32(read, sum, true);
      return 0;
    },
    fd_write(file: number, list: number, count: number, wrote: number): number {
      let sum = 0;
      for (const buffer of buffers(list, count)) {
        if (file === 1) written.push(buffer.slice());
        else hear(decoder.decode(buffer, { stream: true }));
        sum += buffer.length;
      }
      view().setUint32(wrote, sum, true);
      return 0;
    },
    fd_close: () => 0,
    fd_fdstat_get: () => BAD_FILE,
    fd_prestat_get: () => BAD_FILE,
    fd_prestat_dir_name: () => BAD_FILE,
    path_filestat_get: () => BAD_FILE,
    path_open: () => BAD_FILE,
    proc_exit(status: number): never {
      throw new Exit(status);
    },
  };

  const instance = await WebAssembly.instantiate(module, { wasi_snapshot_preview1: system });
  try {
    (instance.exports["_start"] as () => void)();
  } catch (error) {
    if (!(error instanceof Exit && error.status === 0)) {
      throw new EngineError([...said, line].join("\n").trim() || String(error));
    }
  }
  if (written.length === 1) return written[0] as Uint8Array;
  const all = new Uint8Array(written.reduce((sum, part) => sum + part.length, 0));
  written.reduce((at, part) => (all.set(part, at), at + part.length), 0);
  return all;
}

/** The same, for answers in JSON. */
export async function ask<Answer>(module: WebAssembly.Module, args: readonly string[], input: unknown = null): Promise<Answer> {
  return JSON.parse(new TextDecoder().decode(await call(module, args, input))) as Answer;
}

/** Fetches and compiles the engine. */
export async function load(): Promise<WebAssembly.Module> {
  const address = new URL("./engine.wasm", import.meta.url);
  const response = await fetch(address);
  if (!response.ok) throw new EngineError(`the engine cannot be loaded: ${response.status} ${response.statusText}`);
  // Some servers do not know the type of such files.
  if (response.headers.get("content-type") === "application/wasm") return WebAssembly.compileStreaming(response);
  return WebAssembly.compile(await response.arrayBuffer());
}
