// What a run says: metrics with intervals, who made whom wait, response times; beside those of another run, if one is kept.

import { scaleLog } from "d3-scale";
import { element } from "./dom";
import type { Judged, Judgement, Mean, Run } from "./judge";
import { METRICS, type Metric, type Of } from "./metrics";

/** Shown at first; the others stand behind. */
const SHOWN: Partial<Record<Of, string[]>> = {
  app: ["throughput", "failed", "response_p50", "response_p95", "response_p99"],
  domain: ["gotten", "entitlement", "waited", "wait_p50", "wait_p99", "executions", "migrations"],
  host: ["run", "idle", "overhead", "switches", "fairness"],
};
const TITLES: Partial<Record<Of, string>> = { app: "Applications and clients", domain: "Domains", host: "Host", io: "Devices", pcpu: "pCPUs" };
const ROWS_SHOWN = 40;

export function resultsOf(run: Run, kept: Run | null, judgement: Judgement): Node[] {
  const parts: Node[] = [];
  if (kept !== null) parts.push(words(judgement));
  parts.push(responses(judgement));
  for (const of of ["app", "domain"] as const) parts.push(matrix(of, judgement, true));
  parts.push(waits(run, kept), matrix("host", judgement, true));
  const all = element("details", {}, element("summary", {}, "every metric"));
  all.addEventListener("toggle", () => {
    if (all.open && all.childElementCount === 1) {
      for (const of of ["app", "domain", "host", "pcpu", "io"] as const) all.append(matrix(of, judgement, false));
    }
  });
  parts.push(all);
  return parts;
}

function words({ lines }: Judgement): HTMLElement {
  const items = lines.map((line) => element("li", {}, line));
  return element("section", { class: "words" }, element("h3", {}, "What B changes"), element("ul", {}, ...items));
}

function matrix(of: Of, { now, before, metrics: judged }: Judgement, isShort: boolean): HTMLElement {
  const metrics = METRICS[of].filter(({ name }) => !isShort || (SHOWN[of] ?? []).includes(name));
  const things = [...new Set([...now.values()].filter((one) => one.of === of).map(({ thing }) => thing))];
  const columns = metrics.filter(({ name }) => things.some((thing) =>
    [now, before].some((known) => known?.get(`${thing}.${name}`)?.values.some((value) => value !== null))));
  const head = element("tr", {}, element("th", { scope: "col" }, before === null ? "" : "A → B"),
    ...columns.map(({ name, unit, doc }) => element("th", { scope: "col", title: doc }, name, element("small", {}, unit))));
  const row = (thing: string): HTMLElement => element("tr", {}, element("th", { scope: "row" }, thing), ...columns.map((metric) => {
    const at = `${thing}.${metric.name}`;
    return cell(metric, now.has(at), before !== null, judged.get(at));
  }));
  const body = element("tbody", {}, ...things.slice(0, ROWS_SHOWN).map(row));
  const section = element("section", {}, element("h3", {}, TITLES[of] ?? of), element("div", { class: "wide", tabindex: "0" }, element("table", {}, element("thead", {}, head), body)));
  if (things.length > ROWS_SHOWN) {
    const more = element("button", { type: "button" }, `all ${things.length}`);
    more.addEventListener("click", () => {
      body.append(...things.slice(ROWS_SHOWN).map(row));
      more.remove();
    });
    section.append(more);
  }
  section.hidden = things.length === 0;
  return section;
}

function cell(metric: Metric, isMeasured: boolean, isBeside: boolean, judged: Judged | undefined): HTMLElement {
  const made = element("td", {}, judged?.after?.text ?? "–");
  if (isMeasured && !judged?.after) made.title = metric.undefined_is;
  if (!isBeside) return made;
  made.replaceChildren(element("span", { class: "before" }, judged?.before?.text ?? "–"), judged?.after?.text ?? "–");
  if (!judged?.comparison || judged.comparison.verdict === "same") return made;
  const { verdict, text, percent } = judged.comparison;
  made.classList.add(text.replaceAll(" ", "-"));
  const sign = text === "may regress" ? "?" : { improves: "✓", regresses: "✗", higher: "↑", lower: "↓", unclear: "≈" }[verdict];
  made.append(element("span", { class: "verdict", title: text, "aria-label": text }, percent === null || verdict === "unclear" ? sign : `${sign} ${percent.replace("-", "−")} %`));
  return made;
}

/** Medians and high percentiles on one logarithmic axis. */
function responses({ now, before, metrics }: Judgement): HTMLElement {
  const names = ["response_p50", "response_p95", "response_p99"];
  const lines: { label: string; means: Mean[]; isBefore: boolean }[] = [];
  for (const thing of new Set([...now.values()].filter(({ metric }) => names.includes(metric.name)).map(({ thing }) => thing))) {
    for (const isBefore of [true, false]) {
      const means = names.map((name) => metrics.get(`${thing}.${name}`)?.[isBefore ? "before" : "after"] ?? null);
      if (means.every((one) => one !== null && one.mean > 0)) {
        lines.push({ label: before === null ? thing : `${thing} ${isBefore ? "A" : "B"}`, means: means as Mean[], isBefore });
      }
    }
  }
  const section = element("section", {}, element("h3", {}, "Response times"));
  section.hidden = lines.length === 0;
  if (lines.length === 0) return section;
  const shown = lines.slice(0, ROWS_SHOWN);
  const all = shown.flatMap(({ means }) => means.map(({ mean }) => mean));
  const [width, left, line] = [Math.min(640, innerWidth - 32), 110, 26];
  const scale = scaleLog([Math.min(...all) / 1.3, Math.max(...all) * 1.3], [left, width - 20]).nice();
  const svg = (name: string, attributes: Record<string, string | number>, ...children: (Node | string)[]): SVGElement => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, String(value)));
    made.append(...children);
    return made;
  };
  const label = shown.map(({ label, means: [p50, p95, p99] }) => `${label}: median ${p50?.number}, 95th ${p95?.number}, 99th percentile ${p99?.number} ms`).join("; ");
  const chart = svg("svg", { viewBox: `0 0 ${width} ${shown.length * line + 30}`, class: "responses", role: "img", "aria-label": label });
  const isRound = width < 500 ? /^10*$/ : /^[125]0*$/;
  for (const tick of scale.ticks().filter((tick) => isRound.test(String(tick).replace(/^0?\.0*/, "")))) {
    chart.append(svg("line", { x1: scale(tick), x2: scale(tick), y1: 0, y2: shown.length * line, class: "grid" }), svg("text", { x: scale(tick), y: shown.length * line + 16, "text-anchor": "middle" }, `${tick}`));
  }
  chart.append(svg("text", { x: width, y: shown.length * line + 28, "text-anchor": "end" }, "ms; median, 95th and 99th percentile"));
  shown.forEach(({ label, means, isBefore }, index) => {
    const y = (index + 0.5) * line;
    const [p50 = 1, p95 = 1, p99 = 1] = means.map(({ mean }) => scale(mean));
    chart.append(svg("g", { class: isBefore ? "was" : "is" },
      svg("text", { x: left - 8, y: y + 4, "text-anchor": "end" }, label),
      svg("line", { x1: p50, x2: p99, y1: y, y2: y }), svg("circle", { cx: p50, cy: y, r: 5 }), svg("line", { x1: p95, x2: p95, y1: y - 6, y2: y + 6 }), svg("line", { x1: p99, x2: p99, y1: y - 9, y2: y + 9 })));
  });
  section.append(chart);
  return section;
}

/** Who made whom wait, % of the time measured, over all vCPUs of the one that waited. */
function waits(run: Run, kept: Run | null): HTMLElement {
  const section = element("section", {}, element("h3", {}, "Who made whom wait"));
  for (const [one, label] of [[kept, "A"], [run, "B"]] as const) {
    if (one === null) continue;
    if (kept !== null) section.append(element("h4", {}, label));
    const why = one.results[0]?.notAttributed;
    section.append(why ? element("p", { class: "muted" }, why) : waited(one));
  }
  return section;
}

function waited({ results }: Run): HTMLElement {
  const sums = new Map<string, Map<string, number>>();
  const by = new Map<string, number>();
  let elapsed = 0;
  for (const one of results) {
    elapsed += one.of("domains").number("elapsed_ns", 0) ?? 0;
    const table = one.of("waits");
    for (let row = 0; row < table.rows; row++) {
      const [domain, cause, ns] = [table.text("domain", row), table.text("by", row), table.number("wait_ns", row) ?? 0];
      const known = sums.get(domain) ?? new Map<string, number>();
      sums.set(domain, known.set(cause, (known.get(cause) ?? 0) + ns));
      by.set(cause, (by.get(cause) ?? 0) + ns);
    }
  }
  const share = (ns: number): number => (elapsed > 0 ? (100 * ns) / elapsed : 0);
  const total = (of: Map<string, number>): number => [...of.values()].reduce((a, b) => a + b, 0);
  const causes = [...by].sort((a, b) => b[1] - a[1]).slice(0, 10).map(([cause]) => cause);
  const rows = [...sums].filter(([, of]) => share(total(of)) >= 0.05).sort((a, b) => total(b[1]) - total(a[1])).slice(0, ROWS_SHOWN);
  if (rows.length === 0) return element("p", { class: "muted" }, "nobody waited");
  const most = Math.max(...rows.flatMap(([, of]) => [...of.values()].map(share)));
  const head = element("tr", {}, element("th", { scope: "col" }, "who waited"), element("th", { scope: "col" }, "in all", element("small", {}, "% of elapsed")), ...causes.map((cause) => element("th", { scope: "col" }, `for ${cause}`)));
  const body = rows.map(([domain, of]) => element("tr", {}, element("th", { scope: "row" }, domain), element("td", {}, share(total(of)).toFixed(1)), ...causes.map((cause) => {
    const value = share(of.get(cause) ?? 0);
    return element("td", { style: `--heat:${(100 * value) / most}%`, class: "heat" }, value >= 0.05 ? value.toFixed(1) : "");
  })));
  return element("div", { class: "wide", tabindex: "0" }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...body)));
}
