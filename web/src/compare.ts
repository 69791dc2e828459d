// Two runs side by side, in words: the rules of the Python front (advice/compare.py), with which tests compare them.

import type { Measured } from "./metrics";
import { holm, interval, paired, written, type Difference, type Interval } from "./statistics";

export type Verdict = "improves" | "regresses" | "higher" | "lower" | "same" | "no significant difference";

export interface Comparison {
  one: Measured;
  before: Interval | null;
  after: Interval | null;
  difference: Difference | null;
  verdict: Verdict;
}

/** What owners judge clients and applications by. */
const JUDGED_BY = ["throughput", "failed", "response_p99"];
/** A change smaller than this, % of the value before, is of no consequence. */
const SMALL = 1;
const TOLD = 6;

export const address = ({ thing, metric }: Measured): string => `${thing}.${metric.name}`;

/** The metrics that both have, paired by replication; probabilities are corrected for their number (Holm), those that clients
 * see apart from the others, and those with a good direction apart from those without. */
export function compare(before: readonly Measured[], after: readonly Measured[]): Comparison[] {
  const old = new Map(before.map((one) => [address(one), one]));
  const clients = before.some((one) => one.isClient);
  const families = new Map<string, Comparison[]>();
  const found: Comparison[] = [];
  for (const one of after) {
    const was = old.get(address(one));
    if (was === undefined || one.of === "pcpu") continue;
    const pairs = one.values.flatMap((value, index) => {
      const then = was.values[index] ?? null;
      return value === null || then === null ? [] : [[value, then] as const];
    });
    const oneSided = gainedOrLost(one, was);
    if (oneSided !== null) {
      found.push(oneSided);
      continue;
    }
    const comparison: Comparison = {
      one,
      before: interval(pairs.map(([, value]) => value)),
      after: interval(pairs.map(([value]) => value)),
      difference: paired(pairs),
      verdict: "no significant difference",
    };
    if (comparison.difference === null) continue;
    found.push(comparison);
    const isSeen = one.of === "app" && JUDGED_BY.includes(one.metric.name) && (one.isClient || !clients);
    const family = `${isSeen} ${one.metric.better !== null}`;
    families.set(family, [...(families.get(family) ?? []), comparison]);
  }
  for (const family of families.values()) {
    const tested = family.filter(({ difference }) => difference?.p != null);
    const corrected = holm(tested.map(({ difference }) => difference?.p ?? 1));
    tested.forEach((comparison, index) => (comparison.verdict = verdict(comparison, corrected[index] ?? 1)));
    family.filter(({ difference }) => difference?.interval.mean === 0 && !difference.interval.half)
      .forEach((comparison) => (comparison.verdict = "same"));
  }
  return found;
}

/** What has values in one run and none in the other, in most of the replications, where having none is worse than any. */
function gainedOrLost(one: Measured, was: Measured): Comparison | null {
  if (!one.metric.undefined_is_worst) return null;
  const [before, after] = [interval(was.values), interval(one.values)];
  const only = (these: Measured, those: Measured): number =>
    these.values.filter((value, index) => value !== null && (those.values[index] ?? null) === null).length;
  if (before && 2 * only(was, one) > before.n) return { one, before, after: null, difference: null, verdict: "regresses" };
  if (after && 2 * only(one, was) > after.n) return { one, before: null, after, difference: null, verdict: "improves" };
  return null;
}

function verdict({ one, difference }: Comparison, p: number): Verdict {
  if (difference === null || p > 0.05) return "no significant difference";
  const isHigher = difference.interval.mean > 0;
  if (one.metric.better === null) return isHigher ? "higher" : "lower";
  return isHigher === (one.metric.better === "higher") ? "improves" : "regresses";
}

/** The difference in % of the value before; none if that was 0. */
export function percent({ before, difference }: Comparison): number | null {
  return before?.mean && difference ? (100 * difference.interval.mean) / Math.abs(before.mean) : null;
}

const isSmall = (comparison: Comparison): boolean => {
  const { whole } = comparison.one.metric;
  if (comparison.difference === null) return false;
  const mean = Math.abs(comparison.difference.interval.mean);
  return (whole !== null && mean < whole / 1000) || Math.abs(percent(comparison) ?? Infinity) < SMALL;
};

/** Who improves and who regresses, a line for each domain; then what is not sure. */
export function inWords(found: readonly Comparison[]): string[] {
  const nearest = ["app", "domain", "io", "host", "pcpu"];
  const size = (one: Comparison): number => Math.abs(percent(one) ?? Infinity);
  const judged = found.filter(({ one }) => one.metric.better !== null);
  const certain = judged.filter(({ verdict }) => verdict === "improves" || verdict === "regresses");
  const told = certain.filter((one) => !isSmall(one))
    .sort((a, b) => nearest.indexOf(a.one.of) - nearest.indexOf(b.one.of) || size(b) - size(a));
  const lines: string[] = [];
  for (const verb of ["regresses", "improves"] as const) {
    const those = told.filter(({ verdict }) => verdict === verb);
    for (const domain of new Set(those.map(({ one }) => one.domain || "host"))) {
      const what = those.filter(({ one }) => (one.domain || "host") === domain);
      const more = what.length > TOLD ? `, and ${count(what.length - TOLD)} more` : "";
      lines.push(`${domain} ${verb}: ${what.slice(0, TOLD).map(change).join(", ")}${more}`);
    }
  }
  const small = certain.length - told.length;
  if (!lines.length && !small) lines.push("nothing improves or regresses significantly");
  if (small) lines.push(`of no consequence: ${count(small)} (less than ${SMALL} %)`);
  const unclear = judged.filter(({ verdict }) => verdict === "no significant difference").length;
  if (unclear) lines.push(`no significant difference: ${count(unclear)} (more replications may show one)`);
  const reasons = new Set(told.filter(({ difference }) => difference === null).map(({ one }) => one.metric.undefined_is));
  return [...lines, ...[...reasons].map((why) => `undefined: ${why}`)];
}

const count = (metrics: number): string => `${metrics} metric${metrics === 1 ? "" : "s"}`;

function change(comparison: Comparison): string {
  const { one, before, after } = comparison;
  const part = percent(comparison);
  const value = (found: Interval | null): string => (found === null ? "undefined" : written(found.mean));
  const values = `${value(before)} → ${value(after)} ${one.metric.unit}`;
  if (part === null || Math.abs(part) > 1000) return `${address(one)} ${values}`;
  return `${address(one)} ${part > 0 ? "+" : "−"}${written(Math.abs(part))} % (${values})`;
}
