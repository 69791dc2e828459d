// Two runs side by side, judged by the engine (crates/judge), as `vcpulab compare` judges them: what it is asked, and its answer.

import rules from "../../schema/verdicts.json";
import { measured, type Measured } from "./metrics";
import type { Scenario } from "./scenario";
import type { Tables } from "./tables";

export interface Run {
  scenario: Scenario;
  results: readonly Tables[];
}

/** A mean over replications: with its interval as text, and without. */
export interface Mean {
  mean: number;
  text: string;
  number: string;
}

export interface Judged {
  before: Mean | null;
  after: Mean | null;
  /** None: the runs have no pair of values. */
  comparison: {
    verdict: "improves" | "regresses" | "higher" | "lower" | "same" | "unclear";
    /** The verdict in words. */
    text: string;
    /** The difference in % of the value before, with its sign. */
    percent: string | null;
  } | null;
}

export interface Judgement {
  /** The metrics of the run, by address. */
  now: ReadonlyMap<string, Measured>;
  /** The metrics of the run before; none: there is no such run. */
  before: ReadonlyMap<string, Measured> | null;
  metrics: ReadonlyMap<string, Judged>;
  /** What differs, in words. */
  lines: string[];
}

/** The choice of the number of replications that p values are corrected for: that of `vcpulab compare` without options. */
const STOPPING = "decided";

/** Asks the engine: a command and its input, answered in JSON. */
export type Ask = <Answer>(args: readonly string[], input: unknown) => Promise<Answer>;

export const address = ({ thing, metric }: Measured): string => `${thing}.${metric.name}`;

export async function judge(ask: Ask, before: Run | null, run: Run): Promise<Judgement> {
  const byAddress = ({ results, scenario }: Run): Map<string, Measured> =>
    new Map(measured(results, scenario).map((one) => [address(one), one]));
  const now = byAddress(run);
  const old = before === null ? null : byAddress(before);
  const clients = [...(old ?? now).values()].some((one) => one.isClient);
  const begun = unitsBegun(before ?? run);
  // Lines tell first what is first here.
  const all = new Map([...(old ?? []), ...[...now].filter(([name]) => !old?.has(name))]);
  const questions = [...all].map(([name, one]) => {
    const { metric, of, domain, thing, isClient } = one;
    return {
      ...metric,
      name,
      kind: of,
      domain,
      in_question: of === "app" && rules.judged_by.includes(metric.name) && (isClient || !clients),
      begun: metric.name === "failed" ? (begun.get(thing) ?? null) : null,
      before: old?.get(name)?.values ?? null,
      after: now.get(name)?.values ?? null,
    };
  });
  const lengths = [(before ?? run).scenario.seconds, run.scenario.seconds];
  const runs = before === null ? null : [observed(before), observed(run)];
  const answer = await ask<{ metrics: Judged[]; starving: string[]; lines: string[] }>(["judge"], { metrics: questions, lengths, stopping: STOPPING, runs });
  const metrics = new Map(answer.metrics.map((one, index) => [questions[index]?.name ?? "", one]));
  return { now, before: old, metrics, lines: before === null ? [] : [...answer.starving, ...differences(before, run, answer.lines)] };
}

function differences(before: Run, run: Run, lines: readonly string[]): readonly string[] {
  const isOne = Math.min(before.results.length, run.results.length) < 2;
  return isOne ? ["one replication says nothing about chance: differences come with the second"] : lines;
}

/** A run as the engine needs it to tell who starves: the columns of all replications. */
function observed({ scenario: { text, policies }, results }: Run): unknown {
  const texts = (table: string, column: string): string[] => results.flatMap((tables) => {
    const rows = tables.of(table);
    return Array.from({ length: rows.rows }, (_, row) => rows.text(column, row));
  });
  const columns = (table: string, ...names: string[]): { [name: string]: number[] } =>
    Object.fromEntries(names.map((name) => [name, results.flatMap((tables) => [...tables.of(table).numbers(name)])]));
  return {
    text,
    policies,
    columns: {
      vcpus: { domain: texts("vcpus", "domain"), ...columns("vcpus", "vcpu", "elapsed_ns", "running_ns", "runnable_ns", "offline_ns") },
      domains: { domain: texts("domains", "domain"), pool: texts("domains", "pool") },
      apps: { domain: texts("apps", "domain"), ...columns("apps", "app", "throughput_per_s", "completed") },
    },
  };
}

/** Applications and clients, with the units of work that they began, per replication. */
function unitsBegun({ results, scenario }: Run): Map<string, number> {
  const begun = new Map<string, number>();
  for (const tables of results) {
    const apps = tables.of("apps");
    scenario.appsOf(apps).forEach((app, row) => {
      const units = (apps.number("completed", row) ?? 0) + (apps.number("failed", row) ?? 0);
      if (app !== undefined) begun.set(app.name, (begun.get(app.name) ?? 0) + units / results.length);
    });
  }
  return begun;
}
