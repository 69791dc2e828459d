// What a run says: metrics with intervals, who made whom wait, response times; beside those of another run, if one is kept.

import { scaleLog } from "d3-scale";
import { address, compare, inWords, percent, shown, type Begun, type Comparison } from "./compare";
import { element } from "./dom";
import { METRICS, measured, type Measured, type Of } from "./metrics";
import type { Scenario } from "./scenario";
import { starvingLines } from "./starving";
import { interval, spread, written } from "./statistics";
import type { Tables } from "./tables";

export interface Run {
  scenario: Scenario;
  results: readonly Tables[];
}

/** Shown at first; the others stand behind. */
const SHOWN: Partial<Record<Of, string[]>> = {
  app: ["throughput", "failed", "response_p50", "response_p95", "response_p99"],
  domain: ["gotten", "entitlement", "waited", "wait_p50", "wait_p99", "executions", "migrations"],
  host: ["run", "idle", "overhead", "switches", "fairness"],
};
const TITLES: Partial<Record<Of, string>> = { app: "Applications and clients", domain: "Domains", host: "Host", io: "Devices", pcpu: "pCPUs" };
const ROWS_SHOWN = 40;

export function resultsOf(run: Run, kept: Run | null): Node[] {
  const now = measured(run.results, run.scenario);
  const before = kept === null ? null : measured(kept.results, kept.scenario);
  const differences = before === null || kept === null ? [] : compare(before, now, begun(kept, run));
  const parts: Node[] = [];
  if (kept !== null) parts.push(words(kept, run, differences));
  parts.push(responses(now, before));
  for (const of of ["app", "domain"] as const) parts.push(matrix(of, now, before, differences, true));
  parts.push(waits(run, kept), matrix("host", now, before, differences, true));
  const all = element("details", {}, element("summary", {}, "every metric"));
  all.addEventListener("toggle", () => {
    if (all.open && all.childElementCount === 1) {
      for (const of of ["app", "domain", "host", "pcpu", "io"] as const) all.append(matrix(of, now, before, differences, false));
    }
  });
  parts.push(all);
  return parts;
}

function begun(before: Run, after: Run): Begun {
  const tried = new Map<string, number>();
  for (const tables of before.results) {
    const apps = tables.of("apps");
    before.scenario.appNames(apps).forEach(({ thing }, row) => {
      const units = (apps.number("completed", row) ?? 0) + (apps.number("failed", row) ?? 0);
      tried.set(thing, (tried.get(thing) ?? 0) + units / before.results.length);
    });
  }
  return { seconds: [before.scenario.seconds, after.scenario.seconds], tried };
}

/** What becomes of whom, as `vcpulab compare` says it. */
export function told(before: Run, after: Run): string[] {
  const [old, now] = [before, after].map((run) => measured(run.results, run.scenario));
  return [...starvingLines(before, after), ...inWords(compare(old ?? [], now ?? [], begun(before, after)))];
}

function words(kept: Run, run: Run, differences: readonly Comparison[]): HTMLElement {
  const isOne = Math.min(kept.results.length, run.results.length) < 2;
  const changes = isOne ? ["one replication says nothing about chance: differences come with the second"] : inWords(differences);
  const lines = [...starvingLines(kept, run), ...changes].map((line) => element("li", {}, line));
  return element("section", { class: "words" }, element("h3", {}, "What B changes"), element("ul", {}, ...lines));
}

function matrix(of: Of, now: readonly Measured[], before: readonly Measured[] | null, differences: readonly Comparison[], isShort: boolean): HTMLElement {
  const metrics = METRICS[of].filter(({ name }) => !isShort || (SHOWN[of] ?? []).includes(name));
  const mine = now.filter((one) => one.of === of);
  const things = [...new Set(mine.map(({ thing }) => thing))];
  const cells = new Map(mine.map((one) => [address(one), one]));
  const old = new Map((before ?? []).filter((one) => one.of === of).map((one) => [address(one), one]));
  const judged = new Map(differences.map((one) => [address(one.one), one]));
  const columns = metrics.filter(({ name }) => things.some((thing) =>
    [cells, old].some((known) => known.get(`${thing}.${name}`)?.values.some((value) => value !== null))));
  const head = element("tr", {}, element("th", { scope: "col" }, before === null ? "" : "A → B"),
    ...columns.map(({ name, unit, doc }) => element("th", { scope: "col", title: doc }, name, element("small", {}, unit))));
  const row = (thing: string): HTMLElement => element("tr", {}, element("th", { scope: "row" }, thing), ...columns.map(({ name }) => {
    const at = `${thing}.${name}`;
    return cell(cells.get(at), before === null ? undefined : (old.get(at) ?? null), judged.get(at));
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

function cell(one: Measured | undefined, before: Measured | null | undefined, comparison: Comparison | undefined): HTMLElement {
  const said = (measured: Measured | null | undefined): string => {
    const found = measured && interval(measured.values);
    return found ? spread(found) : "–";
  };
  const made = element("td", {}, said(one));
  if (one && interval(one.values) === null) made.title = one.metric.undefined_is;
  if (before === undefined) return made;
  made.replaceChildren(element("span", { class: "before" }, said(before)), said(one));
  if (comparison === undefined || comparison.verdict === "same") return made;
  const verdict = shown(comparison);
  made.classList.add(verdict.replaceAll(" ", "-"));
  const part = percent(comparison);
  const sign = verdict === "may regress" ? "?" : { improves: "✓", regresses: "✗", higher: "↑", lower: "↓", unclear: "≈" }[comparison.verdict];
  made.append(element("span", { class: "verdict", title: verdict, "aria-label": verdict }, part === null || comparison.verdict === "unclear" ? sign : `${sign} ${part > 0 ? "+" : "−"}${written(Math.abs(part))} %`));
  return made;
}

/** Medians and high percentiles on one logarithmic axis. */
function responses(now: readonly Measured[], before: readonly Measured[] | null): HTMLElement {
  const names = ["response_p50", "response_p95", "response_p99"];
  const lines: { label: string; values: number[]; isBefore: boolean }[] = [];
  for (const thing of new Set(now.filter(({ metric }) => names.includes(metric.name)).map(({ thing }) => thing))) {
    for (const [measured, isBefore] of [[before, true], [now, false]] as const) {
      const found = names.map((name) => measured?.find((one) => one.thing === thing && one.metric.name === name));
      const values = found.map((one) => (one ? interval(one.values)?.mean : undefined));
      if (values.every((value) => value !== undefined && value > 0)) {
        lines.push({ label: before === null ? thing : `${thing} ${isBefore ? "A" : "B"}`, values: values as number[], isBefore });
      }
    }
  }
  const section = element("section", {}, element("h3", {}, "Response times"));
  section.hidden = lines.length === 0;
  if (lines.length === 0) return section;
  const shown = lines.slice(0, ROWS_SHOWN);
  const all = shown.flatMap(({ values }) => values);
  const [width, left, line] = [Math.min(640, innerWidth - 32), 110, 26];
  const scale = scaleLog([Math.min(...all) / 1.3, Math.max(...all) * 1.3], [left, width - 20]).nice();
  const svg = (name: string, attributes: Record<string, string | number>, ...children: (Node | string)[]): SVGElement => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, String(value)));
    made.append(...children);
    return made;
  };
  const label = shown.map(({ label, values }) => `${label}: median ${written(values[0] ?? 0)}, 95th ${written(values[1] ?? 0)}, 99th percentile ${written(values[2] ?? 0)} ms`).join("; ");
  const chart = svg("svg", { viewBox: `0 0 ${width} ${shown.length * line + 30}`, class: "responses", role: "img", "aria-label": label });
  const isRound = width < 500 ? /^10*$/ : /^[125]0*$/;
  for (const tick of scale.ticks().filter((tick) => isRound.test(String(tick).replace(/^0?\.0*/, "")))) {
    chart.append(svg("line", { x1: scale(tick), x2: scale(tick), y1: 0, y2: shown.length * line, class: "grid" }), svg("text", { x: scale(tick), y: shown.length * line + 16, "text-anchor": "middle" }, `${tick}`));
  }
  chart.append(svg("text", { x: width, y: shown.length * line + 28, "text-anchor": "end" }, "ms; median, 95th and 99th percentile"));
  shown.forEach(({ label, values, isBefore }, index) => {
    const y = (index + 0.5) * line;
    const [p50 = 1, p95 = 1, p99 = 1] = values.map((value) => scale(value));
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
