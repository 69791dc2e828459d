// Policies in Python, in workers that have the interpreter. It is fetched when a scenario names such a policy, and kept.

import type { Policies } from "./scenario";
import type { Asked, Source } from "./python-worker";

export class Python {
  /** Workers; each has an interpreter of its own. */
  static readonly AT_ONCE = Math.min(4, Math.max(1, navigator.hardwareConcurrency || 1));

  private readonly idle: Worker[] = [];
  private known: { text: string; policies: Policies } = { text: "", policies: {} };

  /** Does a name mean a policy in a file? */
  static isFile(name: string): boolean {
    return /^[^:]+\.py:\w+$/.test(name);
  }

  get isLoaded(): boolean {
    return this.idle.length > 0;
  }

  /** What the policies of these names declare. */
  async declared(source: Source, names: readonly string[]): Promise<Policies> {
    const inFiles = names.filter(Python.isFile);
    if (this.known.text !== source.text) this.known = { text: source.text, policies: {} };
    const known = this.known.policies;
    const missing = inFiles.filter((name) => known[name] === undefined);
    if (missing.length > 0) {
      const worker = this.take();
      const said = await new Promise<{ declared: Policies } | { error: string }>((answered, failed) => {
        worker.onmessage = ({ data }) => answered(data as { declared: Policies } | { error: string });
        worker.onerror = (event) => failed(new Error(event.message));
        worker.postMessage({ source, names: missing } satisfies Asked);
      });
      if ("error" in said) {
        worker.terminate();
        throw new Error(`Python cannot be started: ${said.error}`);
      }
      this.give(worker);
      Object.assign(known, said.declared);
    }
    return Object.fromEntries(inFiles.flatMap((name) => (known[name] === undefined ? [] : [[name, known[name]]])));
  }

  take(): Worker {
    return this.idle.pop() ?? new Worker(new URL("./python-worker.ts", import.meta.url), { type: "module" });
  }

  give(worker: Worker): void {
    if (this.idle.length < Python.AT_ONCE) this.idle.push(worker);
    else worker.terminate();
  }
}
