// Runs of scenarios: a worker for each replication, as many at a time as there are processors.

import { Python } from "./python";
import type { Asked, Source } from "./python-worker";
import type { Report, Task } from "./replicate";
import type { Scenario } from "./scenario";
import { Tables } from "./tables";

const AT_ONCE = Math.max(1, navigator.hardwareConcurrency || 1);

export interface Listener {
  /** Something was run: all replications there are so far, from the first on without a gap, and how much is done (0 to 1). */
  went(results: readonly Tables[], done: number): void;
  failed(message: string): void;
}

/** A run that goes on until it is done or stopped. */
export class Running {
  private readonly results: (Tables | undefined)[];
  private readonly progress: number[];
  private readonly workers = new Set<Worker>();
  private next = 0;

  constructor(
    private readonly module: WebAssembly.Module,
    private readonly scenario: Scenario,
    /** Where its policies are, if some are not built in. */
    private readonly python: { of: Python; source: Source } | null,
    private readonly listener: Listener,
  ) {
    const { replications } = scenario;
    this.results = new Array<Tables | undefined>(replications).fill(undefined);
    this.progress = new Array<number>(replications).fill(0);
    for (let i = 0; i < Math.min(python ? Python.AT_ONCE : AT_ONCE, replications); i++) this.begin();
  }

  stop(): void {
    this.workers.forEach((worker) => worker.terminate());
    this.workers.clear();
    this.next = this.scenario.replications;
  }

  private begin(): void {
    if (this.next >= this.scenario.replications) return;
    const replication = this.next++;
    const worker = this.python?.of.take() ?? new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
    this.workers.add(worker);
    worker.onmessage = ({ data }: MessageEvent<Report>) => {
      if (!this.workers.has(worker)) return;
      if ("progress" in data) {
        this.progress[replication] = data.progress;
        this.tell();
        return;
      }
      if (this.python) this.python.of.give(worker);
      else worker.terminate();
      this.workers.delete(worker);
      if ("error" in data) {
        this.stop();
        this.listener.failed(data.error);
        return;
      }
      this.results[replication] = new Tables(data.answer);
      this.progress[replication] = 1;
      this.begin();
      this.tell();
    };
    worker.onerror = (event) => {
      this.stop();
      this.listener.failed(event.message);
    };
    // The timeline is of the first one.
    const { text, policies } = this.scenario;
    const task: Task = { module: this.module, text, policies, replication, trace: replication === 0 };
    worker.postMessage(this.python ? ({ source: this.python.source, task } satisfies Asked) : task);
  }

  private tell(): void {
    const gap = this.results.indexOf(undefined);
    const there = this.results.slice(0, gap < 0 ? undefined : gap) as Tables[];
    this.listener.went(there, this.progress.reduce((sum, one) => sum + one, 0) / this.scenario.replications);
  }
}
