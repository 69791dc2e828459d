// Two runs side by side, in words: the rules of the Python front (advice/compare.py), with which tests compare every line.
// Their numbers are in schema/verdicts.json, which the front writes.

import rules from "../../schema/verdicts.json";
import type { Measured } from "./metrics";
import { holm, interval, paired, spread, written, type Difference, type Interval } from "./statistics";

export type Verdict = "improves" | "regresses" | "higher" | "lower" | "same" | "unclear";

/** One metric before and after. */
export interface Comparison {
  one: Measured;
  /** None: it has no value. */
  before: Interval | null;
  after: Interval | null;
  difference: Difference | null;
  /** Of the difference, corrected for the number of metrics and of looks. */
  p: number | null;
  verdict: Verdict;
  /** Why it has no value on one side. */
  undefined: string | null;
  /** Of failures: how many units of work were begun before, a replication. */
  tried: number | null;
}

export const address = ({ thing, metric }: Measured): string => `${thing}.${metric.name}`;

/** The length of the runs, s, and the units of work that each application and client began before, a replication. */
export interface Begun {
  seconds: readonly [before: number, after: number];
  tried: ReadonlyMap<string, number>;
}

/** The metrics that both have, paired by replication; probabilities are corrected for their number (Holm), those that clients
 * see apart from the others, and those with a good direction apart from those without; and for the number of looks. */
export function compare(before: readonly Measured[], after: readonly Measured[], begun: Begun): Comparison[] {
  const now = new Map(after.map((one) => [address(one), one]));
  const clients = before.some((one) => one.isClient);
  const families = new Map<string, Comparison[]>();
  const found: Comparison[] = [];
  const [seconds, others] = begun.seconds;
  const isLong = seconds !== others;
  for (const old of before) {
    const other = now.get(address(old));
    if (other === undefined || old.of === "pcpu") continue;
    // Where the runs have different lengths, what accumulates is compared as a rate.
    const isRate = isLong && old.metric.accumulates;
    const was = isRate ? aSecond(old, seconds) : old;
    const one = isRate ? aSecond(other, others) : other;
    const oneSided = gainedOrLost(one, was);
    if (oneSided !== null) {
      found.push(oneSided);
      continue;
    }
    const pairs = one.values.flatMap((value, index) => {
      const then = was.values[index] ?? null;
      return value === null || then === null ? [] : [[value, then] as const];
    });
    const difference = paired(pairs);
    if (difference === null) continue;
    const tried = one.metric.name === "failed" ? begun.tried.get(one.thing) : undefined;
    const comparison: Comparison = {
      one,
      before: interval(pairs.map(([, value]) => value)),
      after: interval(pairs.map(([value]) => value)),
      difference,
      p: null,
      verdict: "unclear",
      undefined: null,
      tried: tried === undefined ? null : tried / (isLong ? seconds : 1),
    };
    found.push(comparison);
    const isSeen = was.of === "app" && rules.judged_by.includes(was.metric.name) && (was.isClient || !clients);
    const family = `${isSeen} ${one.metric.better !== null}`;
    families.set(family, [...(families.get(family) ?? []), comparison]);
  }
  for (const family of families.values()) {
    const tested = family.filter(({ difference }) => difference?.p != null);
    const corrected = holm(tested.map(({ difference }) => Math.min(1, rules.looks * (difference?.p ?? 1))));
    tested.forEach((comparison, index) => (comparison.p = corrected[index] ?? 1));
    family.forEach((comparison) => (comparison.verdict = verdict(comparison)));
  }
  return found;
}

const aSecond = (one: Measured, seconds: number): Measured => ({
  ...one,
  metric: { ...one.metric, unit: "1/s", accumulates: false },
  values: one.values.map((value) => (value === null ? null : value / seconds)),
});

/** What has values in one run and none in the other, in most of the replications, where having none is worse than any. */
function gainedOrLost(one: Measured, was: Measured): Comparison | null {
  if (!one.metric.undefined_is_worst) return null;
  const both = Math.min(one.values.length, was.values.length);
  const values = [was, one].map(({ values }) => values.slice(0, both));
  const [old = [], now = []] = values;
  const [before, after] = [interval(old), interval(now)];
  const only = (these: typeof old, those: typeof old): number =>
    these.filter((value, index) => value !== null && (those[index] ?? null) === null).length;
  const sides = [[only(old, now), before, "regresses"], [only(now, old), after, "improves"]] as const;
  for (const [gone, there, verdict] of sides) {
    if (there === null || 2 * gone <= there.n) continue;
    const why = one.metric.undefined_is + (gone < both ? `, in ${gone} of ${both} replications` : "");
    const is = verdict === "regresses" ? { before, after: null } : { before: null, after };
    return { one, ...is, difference: null, p: null, verdict, undefined: why, tried: null };
  }
  return null;
}

function verdict({ one, difference, p }: Comparison): Verdict {
  if (difference === null) return "unclear";
  if (difference.interval.mean === 0 && !difference.interval.half) return "same";
  if (p === null || p > 1 - rules.confidence) return "unclear";
  const isHigher = difference.interval.mean > 0;
  if (one.metric.better === null) return isHigher ? "higher" : "lower";
  return isHigher === (one.metric.better === "higher") ? "improves" : "regresses";
}

/** The verdict as it is shown. */
export function shown(comparison: Comparison): string {
  if (mayRegress(comparison)) return "may regress";
  return comparison.verdict === "unclear" ? "no significant difference" : comparison.verdict;
}

/** The difference in % of the value before; none if that was 0. */
export function percent({ before, difference }: Comparison): number | null {
  return before?.mean && difference ? (100 * difference.interval.mean) / Math.abs(before.mean) : null;
}

/** What a difference is a part of: of a value that was 0, everything is a large part of what it is now. */
function base({ before, after }: Comparison): number {
  return Math.abs(before?.mean || after?.mean || 0);
}

/** Is it no significant difference, but perhaps a large harm? */
function mayRegress(comparison: Comparison): boolean {
  const { one, difference, verdict } = comparison;
  if (verdict !== "unclear" || one.metric.better === null || difference === null) return false;
  const { mean, half } = difference.interval;
  const worse = one.metric.better === "higher" ? -mean : mean;
  const of = base(comparison);
  return of > 0 && worse > (rules.harm_mean / 100) * of && worse + (half ?? 0) > (rules.harm_end / 100) * of && !isSmall(comparison);
}

function isSmall(comparison: Comparison): boolean {
  const { one, difference, tried } = comparison;
  if (difference === null) return false;
  const mean = Math.abs(difference.interval.mean);
  if (tried !== null) return mean < (rules.small / 100) * tried;
  const { whole } = one.metric;
  if (whole !== null && mean < (rules.small_of_whole / 100) * whole) return true;
  const part = percent(comparison);
  return part !== null && Math.abs(part) < rules.small;
}

const isCertain = ({ verdict }: Comparison): boolean => verdict === "improves" || verdict === "regresses";
const ofConsequence = (comparison: Comparison): boolean => isCertain(comparison) && !isSmall(comparison);

/** How large the difference is, in %: of the value before; of the whole, of what has an end. */
function size(comparison: Comparison): number {
  const { one, difference } = comparison;
  if (one.metric.whole !== null && difference !== null) return (100 * Math.abs(difference.interval.mean)) / one.metric.whole;
  return Math.abs(percent(comparison) ?? Infinity);
}

const nearness = ({ one }: Comparison): number => rules.nearest.indexOf(one.of);

/** Clients and applications first, then what means less to owners; of these what counts, by size. */
function byRank(a: Comparison, b: Comparison): number {
  const counts = (one: Comparison): boolean => ofConsequence(one) || mayRegress(one);
  const sizes = [size(a), size(b)] as const;
  return nearness(a) - nearness(b) || Number(counts(b)) - Number(counts(a)) || (sizes[0] === sizes[1] ? 0 : sizes[1] - sizes[0]);
}

/** Who improves and who regresses, a line for each domain; what may regress; what is not sure. */
export function inWords(found: readonly Comparison[]): string[] {
  const ranked = [...found].sort(byRank);
  const sides: { near: number; isGain: boolean; line: string }[] = [];
  for (const verb of ["regresses", "improves"] as const) {
    const those = ranked.filter((one) => one.verdict === verb && ofConsequence(one));
    for (const domain of new Set(those.map(({ one }) => one.domain || "host"))) {
      const what = those.filter(({ one }) => (one.domain || "host") === domain);
      const more = what.length > rules.told ? `, and ${count(what.length - rules.told)} more` : "";
      const line = `${domain} ${verb}: ${what.slice(0, rules.told).map(change).join(", ")}${more}`;
      sides.push({ near: what[0] ? nearness(what[0]) : 0, isGain: verb === "improves", line });
    }
  }
  // Of what is equally near to owners, what regresses comes first.
  const lines = sides.sort((a, b) => a.near - b.near || Number(a.isGain) - Number(b.isGain)).map(({ line }) => line);
  const small = found.filter((one) => isCertain(one) && !ofConsequence(one)).length;
  const uncertain = ranked.filter(mayRegress);
  const unclear = found.filter(({ one, verdict }) => one.metric.better !== null && verdict === "unclear").length - uncertain.length;
  if (!lines.length && !small) lines.push("nothing improves or regresses significantly");
  lines.push(...uncertain.slice(0, rules.told).map((one) => `may regress: ${inDoubt(one)}`));
  if (uncertain.length > rules.told) lines.push(`may regress, too: ${count(uncertain.length - rules.told)} (more replications tell)`);
  if (small) lines.push(`of no consequence: ${count(small)} (less than ${rules.small} %)`);
  if (unclear) lines.push(`no significant difference: ${count(unclear)} (more replications may show one)`);
  const reasons = new Set(ranked.flatMap((one) => (one.undefined === null ? [] : [one.undefined])));
  return [...lines, ...[...reasons].map((why) => `undefined: ${why}`)];
}

const count = (metrics: number): string => `${metrics} metric${metrics === 1 ? "" : "s"}`;
const value = (found: Interval | null): string => (found === null ? "undefined" : written(found.mean));

/** The unit of a metric; of failures also how many units of work were begun in a replication before. */
const unit = ({ one, tried }: Comparison): string => one.metric.unit + (tried ? ` of ${written(tried)}` : "");

/** What may have become of a metric. */
function inDoubt(comparison: Comparison): string {
  const { one, before, after } = comparison;
  return `${address(one)} ${value(before)} → ${after === null ? "undefined" : spread(after)} ${unit(comparison)}`;
}

/** The change of a metric. */
function change(comparison: Comparison): string {
  const { one, before, after } = comparison;
  const part = percent(comparison);
  if (before === null || after === null || part === null || Math.abs(part) > 1000) {
    return `${address(one)} ${value(before)} → ${value(after)} ${unit(comparison)}`;
  }
  const text = written(part);
  return `${address(one)} ${text.startsWith("-") || text === "0" ? "" : "+"}${text} %`;
}
