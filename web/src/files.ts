// What leaves the page, and only when asked to: tables as CSV, and the timeline to Perfetto.

import type { Table, Tables } from "./tables";
import type { Timeline } from "./slices";

export function csv(results: readonly Tables[], name: string): string {
  const first = results[0]?.of(name);
  if (first === undefined) return "";
  const columns = [...first.columns.keys()];
  const quoted = (cell: string): string => (/[",\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
  const lines = (table: Table): string[] =>
    Array.from({ length: table.rows }, (_, row) => columns.map((column) => quoted(table.cell(column, row))).join(","));
  return [columns.join(","), ...results.flatMap((one) => lines(one.of(name))), ""].join("\n");
}

export function download(text: string, name: string, type: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** The timeline in the JSON that Perfetto reads: a process for each domain's name, a thread for each pCPU. */
export function perfettoJson(timeline: Timeline): string {
  const events: object[] = timeline.rows.map((row) => ({
    ph: "M", name: "thread_name", pid: 1, tid: row.pcpu + 1, args: { name: `pCPU ${row.pcpu}` },
  }));
  events.push({ ph: "M", name: "process_name", pid: 1, args: { name: "host" } });
  for (const row of timeline.rows) {
    for (let i = 0; i < row.count; i++) {
      const what = timeline.things[row.thing[i] as number];
      if (what === undefined || what.isIdle) continue;
      const [begin, end] = [row.begin[i] as number, row.begin[i + 1] as number];
      events.push({ ph: "X", name: what.vcpu, cat: what.domain, pid: 1, tid: row.pcpu + 1, ts: begin / 1e3, dur: (end - begin) / 1e3 });
    }
  }
  return JSON.stringify({ traceEvents: events, displayTimeUnit: "ns" });
}

const PERFETTO = "https://ui.perfetto.dev";

/** Opens Perfetto and hands it the trace, once it answers. */
export function openInPerfetto(trace: string, title: string): void {
  const opened = window.open(PERFETTO);
  if (opened === null) throw new Error("the browser did not let the page open Perfetto");
  const ask = setInterval(() => (opened.closed ? clearInterval(ask) : opened.postMessage("PING", PERFETTO)), 100);
  const answered = ({ origin, data }: MessageEvent): void => {
    if (origin !== PERFETTO || data !== "PONG") return;
    clearInterval(ask);
    removeEventListener("message", answered);
    const buffer = new TextEncoder().encode(trace).buffer;
    opened.postMessage({ perfetto: { buffer, title } }, PERFETTO);
  };
  addEventListener("message", answered);
}
