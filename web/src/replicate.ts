// One replication, in a worker.

import { call, type Inside } from "./engine";
import type { Policies } from "./scenario";

export interface Task {
  module: WebAssembly.Module;
  text: string;
  policies: Policies;
  replication: number;
  trace: boolean;
}

export type Report = { progress: number } | { answer: ArrayBuffer } | { error: string };

const post = (report: Report, hand: Transferable[] = []): void => self.postMessage(report, { transfer: hand });

/** Runs it and reports; `hook` answers what the engine asks of policies that are not built in. */
export async function replicate(task: Task, hook?: (line: string, inside: Inside) => string): Promise<void> {
  const { module, text, policies, replication, trace } = task;
  let told = 0;
  try {
    const args = ["run", String(replication), ...(trace ? ["trace"] : [])];
    const answer = await call(module, args, { text, policies }, (line, inside) => {
      if (line.startsWith("[")) return hook?.(line, inside);
      const progress = Number(line);
      if (progress >= told + 0.02) post({ progress: (told = progress) });
    });
    const buffer = answer.buffer as ArrayBuffer;
    post({ answer: buffer }, [buffer]);
  } catch (error) {
    post({ error: error instanceof Error ? error.message : String(error) });
  }
}
