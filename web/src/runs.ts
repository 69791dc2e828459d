// Runs of scenarios: a worker for each replication, as many at a time as there are processors.

import { Tables } from "./tables";
import type { Report, Task } from "./worker";

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
    private readonly text: string,
    private readonly replications: number,
    private readonly listener: Listener,
  ) {
    this.results = new Array<Tables | undefined>(replications).fill(undefined);
    this.progress = new Array<number>(replications).fill(0);
    for (let i = 0; i < Math.min(AT_ONCE, replications); i++) this.begin();
  }

  stop(): void {
    this.workers.forEach((worker) => worker.terminate());
    this.workers.clear();
    this.next = this.replications;
  }

  private begin(): void {
    if (this.next >= this.replications) return;
    const replication = this.next++;
    const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
    this.workers.add(worker);
    worker.onmessage = ({ data }: MessageEvent<Report>) => {
      if (!this.workers.has(worker)) return;
      if ("progress" in data) {
        this.progress[replication] = data.progress;
        this.tell();
        return;
      }
      worker.terminate();
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
    const task: Task = { module: this.module, text: this.text, replication, trace: replication === 0 };
    worker.postMessage(task);
  }

  private tell(): void {
    const gap = this.results.indexOf(undefined);
    const there = this.results.slice(0, gap < 0 ? undefined : gap) as Tables[];
    this.listener.went(there, this.progress.reduce((sum, one) => sum + one, 0) / this.replications);
  }
}
