// One replication.

import { call } from "./engine";

export interface Task {
  module: WebAssembly.Module;
  text: string;
  replication: number;
  trace: boolean;
}

export type Report = { progress: number } | { answer: ArrayBuffer } | { error: string };

const post = (report: Report, hand: Transferable[] = []): void => self.postMessage(report, { transfer: hand });

self.onmessage = async ({ data }: MessageEvent<Task>): Promise<void> => {
  const { module, text, replication, trace } = data;
  let told = 0;
  try {
    const args = ["run", String(replication), ...(trace ? ["trace"] : [])];
    const answer = await call(module, args, text, (line) => {
      const progress = Number(line);
      if (progress >= told + 0.02) post({ progress: (told = progress) });
    });
    const buffer = answer.buffer as ArrayBuffer;
    post({ answer: buffer }, [buffer]);
  } catch (error) {
    post({ error: error instanceof Error ? error.message : String(error) });
  }
};
