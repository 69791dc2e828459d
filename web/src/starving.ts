// Who starves, in one run or against another: the rules of the Python front (advice/starvation.py), with which tests compare
// them. Their numbers are in schema/verdicts.json, which the front writes.

import rules from "../../schema/verdicts.json";
import { ends, inRows } from "./names";
import type { Fields, Scenario } from "./scenario";
import { total, written } from "./numbers";
import type { Tables } from "./tables";
import { HOST, all, cpuset, hostThreads, meet, pcpuSet, quota, type HostThread } from "./threads";

export interface Starved {
  scenario: Scenario;
  results: readonly Tables[];
}

const { waiting, of_share, half, kept, had, waits_now, completed, present } = rules.starving;

/** A vCPU, or the mean of a domain's, over all replications. */
class Vcpu {
  elapsed = 0;
  running = 0;
  runnable = 0;
  offline = 0;
  vcpus = 1;

  constructor(
    readonly domain: string,
    readonly number: number,
  ) {}

  add(elapsed: number, running: number, runnable: number, offline: number): void {
    this.elapsed += elapsed;
    this.running += running;
    this.runnable += runnable;
    this.offline += offline;
  }

  /** How many pCPUs it had. */
  get runs(): number {
    return this.running / this.elapsed;
  }

  /** How many pCPUs it would have had, had it never waited. */
  get wants(): number {
    return (this.running + this.runnable) / this.elapsed;
  }

  /** The part of the time that it was on the host. */
  get present(): number {
    return 1 - this.offline / (this.elapsed * this.vcpus);
  }

  /** The part of its time on the host that it was runnable, over all its vCPUs. */
  get waits(): number {
    const there = this.elapsed * this.vcpus - this.offline;
    return there > 0 ? this.runnable / there : 0;
  }
}

function vcpusOf({ results }: Starved): Vcpu[] {
  const found = new Map<string, Vcpu>();
  for (const tables of results) {
    const table = tables.of("vcpus");
    const [number, elapsed, running, runnable, offline] = ["vcpu", "elapsed_ns", "running_ns", "runnable_ns", "offline_ns"].map((name) => table.numbers(name));
    for (let row = 0; row < table.rows; row++) {
      const domain = table.text("domain", row);
      const key = JSON.stringify([domain, number?.[row]]);
      const vcpu = found.get(key) ?? new Vcpu(domain, number?.[row] ?? 0);
      found.set(key, vcpu);
      vcpu.add(elapsed?.[row] ?? 0, running?.[row] ?? 0, runnable?.[row] ?? 0, offline?.[row] ?? 0);
    }
  }
  return [...found.values()];
}

/** How many vCPUs of each domain want to run. */
function activeOf(vcpus: readonly Vcpu[]): Map<string, number> {
  const found = new Map<string, number>();
  for (const { domain, wants } of vcpus) if (wants) found.set(domain, (found.get(domain) ?? 0) + 1);
  return found;
}

/** Each domain, with the vCPUs that want to run: the others have nothing to wait for. */
function domainsOf(run: Starved): Map<string, Vcpu> {
  const those = new Map<string, Vcpu[]>();
  for (const vcpu of vcpusOf(run)) those.set(vcpu.domain, [...(those.get(vcpu.domain) ?? []), vcpu]);
  return new Map([...those].map(([domain, vcpus]) => {
    const wanting = vcpus.filter(({ wants }) => wants);
    const active = wanting.length > 0 ? wanting : vcpus;
    const mean = new Vcpu(domain, 0);
    for (const { running, runnable, offline } of active) mean.add(0, running, runnable, offline);
    mean.elapsed = active[0]?.elapsed ?? 0;
    mean.vcpus = active.length;
    return [domain, mean];
  }));
}

/** A column of the domains of the last replication, by domain. */
function last<Value>({ results }: Starved, value: (row: number) => Value): Map<string, Value> {
  const table = results.at(-1)?.of("domains");
  return new Map(Array.from({ length: table?.rows ?? 0 }, (_, row) => [table?.text("domain", row) ?? "", value(row)]));
}

/** The pCPUs that each vCPU of each domain may run on, by the scenario and the pool that it is in at the end. */
function reachOf(run: Starved, threads: readonly HostThread[]): Map<string, ReadonlySet<number>[]> {
  const { scenario, results } = run;
  const count = Number(scenario.table("host")["pcpus"]);
  const whole = all(count);
  const pools = new Map(Object.entries(scenario.table("pool") as { [name: string]: Fields }).map(([name, table]) => [name, pcpuSet(String(table["pcpus"]), count)]));
  const rest = new Set([...whole].filter((pcpu) => ![...pools.values()].some((pool) => pool.has(pcpu))));
  const domains = results.at(-1)?.of("domains");
  const poolOf = last(run, (row) => domains?.text("pool", row) ?? "");
  const found = new Map<string, ReadonlySet<number>[]>();
  for (const [name, table] of scenario.domains()) {
    const left = cpuset(scenario, name);
    const pool = new Set([...(pools.get(poolOf.get(name) ?? "") ?? rest)].filter((pcpu) => left.has(pcpu)));
    const given = table["affinity"];
    const sets = Array.isArray(given) ? given.map(String) : Array<string>(Number(table["vcpus"])).fill(String(given));
    const known = new Map<string, ReadonlySet<number>>();
    for (const set of sets) if (!known.has(set)) known.set(set, meet(pool, pcpuSet(set, count), pool.size > 0 ? pool : whole));
    found.set(name, sets.map((set) => known.get(set) ?? whole));
  }
  if (threads.length > 0) {
    found.set(HOST, threads.map(({ domain, affinity }) => {
      const left = cpuset(scenario, domain);
      return meet(left, pcpuSet(affinity, count), left);
    }));
  }
  return found;
}

/** How many pCPUs each vCPU of a domain may expect by weights, caps and budgets; infinite: none says. */
function entitledOf(run: Starved, active: ReadonlyMap<string, number>): Map<string, number> {
  const domains = run.results.at(-1)?.of("domains");
  const weights = last(run, (row) => domains?.number("entitlement", row) ?? null);
  const found = new Map([[HOST, Infinity]]);
  for (const [name, table] of run.scenario.domains()) {
    const those = active.get(name) || 1;
    found.set(name, Math.min((weights.get(name) || Infinity) / those, heldTo(table, those)));
  }
  return found;
}

/** The most that a vCPU of a domain may run, in pCPUs. */
function heldTo(table: Fields, active: number): number {
  const value = (name: string): number => Number(table[name] ?? 0);
  let most = value("cap") ? value("cap") / 100 / active : Infinity;
  const limit = quota(table);
  if (limit !== null) most = Math.min(most, limit / active);
  for (const [budget, period] of [["budget_us", "period_us"], ["slice", "period"]] as const) {
    if (value(budget) && value(period)) most = Math.min(most, value(budget) / value(period));
  }
  return most;
}

const percent = (part: number): string => written(100 * part);

/** The domains that starve, each with the reason. */
export function starved(run: Starved): Map<string, string> {
  const threads = hostThreads(run.scenario);
  const reach = reachOf(run, threads);
  const vcpus = vcpusOf(run).filter(({ domain }) => reach.has(domain));
  const active = activeOf(vcpus);
  const entitled = entitledOf(run, active);
  const keyOf = new Map<ReadonlySet<number>, string>();
  const key = (pcpus: ReadonlySet<number>): string => {
    const known = keyOf.get(pcpus) ?? [...pcpus].sort((a, b) => a - b).join();
    keyOf.set(pcpus, known);
    return known;
  };
  const pcpusOf = ({ domain, number }: Vcpu): ReadonlySet<number> => reach.get(domain)?.[number] ?? new Set<number>();
  const wants = new Map<string, { pcpus: ReadonlySet<number>; wanted: number[] }>();
  for (const vcpu of vcpus) {
    const pcpus = pcpusOf(vcpu);
    const known = wants.get(key(pcpus)) ?? { pcpus, wanted: [] };
    known.wanted.push(vcpu.wants);
    wants.set(key(pcpus), known);
  }
  const overlap = (theirs: ReadonlySet<number>, ours: ReadonlySet<number>): number => [...theirs].filter((pcpu) => ours.has(pcpu)).length / theirs.size;
  const wantedOf = new Map([...wants].map(([name, { pcpus }]) =>
    [name, total([...wants.values()].map((their) => total(their.wanted) * overlap(their.pcpus, pcpus)))]));
  const found = new Map<string, Vcpu[]>();
  for (const vcpu of vcpus) {
    if (vcpu.waits < waiting || vcpu.present < present) continue;
    const pcpus = pcpusOf(vcpu);
    const wanted = wantedOf.get(key(pcpus)) ?? 0;
    const share = Math.min(vcpu.wants * Math.min(1, pcpus.size / wanted), entitled.get(vcpu.domain) ?? Infinity);
    if (!vcpu.running || vcpu.runs < of_share * share) found.set(vcpu.domain, [...(found.get(vcpu.domain) ?? []), vcpu]);
  }
  const why = new Map<string, string>();
  if (threads.length > 0) {
    for (const vcpu of found.get(HOST) ?? []) {
      const thread = threads[vcpu.number];
      if (thread === undefined) continue;
      const runs = vcpu.running ? `ran for ${percent(vcpu.runs)} % of a pCPU` : "never ran";
      why.set(thread.domain, `its ${thread.kind} thread ${runs}, and waited for ${percent(vcpu.waits)} % of the time`);
    }
    found.delete(HOST);
  }
  for (const [domain, those] of found) why.set(domain, reason(those, active.get(domain) ?? 0));
  return why;
}

/** Why a domain starves, of which these vCPUs do. */
function reason(those: readonly Vcpu[], active: number): string {
  const which = those.length === active ? "" : `vCPU ${those.map(({ number }) => number).join(", ")} `;
  if (!those.some(({ running }) => running)) return `${which}never ran`;
  const [runs, waits] = [total(those.map(({ runs }) => runs)), total(those.map(({ waits }) => waits)) / those.length];
  return `${which}ran for ${percent(runs)} % of a pCPU, and waited for ${percent(waits)} % of the time`;
}

/** The domains that starve in the second run and did not in the first, each with the reason. */
function newlyStarved(before: Starved, after: Starved, already: ReadonlyMap<string, string>, now: ReadonlyMap<string, string>): Map<string, string> {
  const found = new Map([...now].filter(([domain]) => !already.has(domain)));
  const [old, other] = [domainsOf(before), domainsOf(after)];
  if (hostThreads(before.scenario).length > 0) old.delete(HOST);
  for (const [domain, was] of old) {
    const is = other.get(domain);
    if (is === undefined || found.has(domain) || already.has(domain) || is.present < present) continue;
    const comesToWait = was.waits < waiting && waiting <= is.waits && is.runs <= half * was.runs;
    const loses = was.runs > had && is.runs <= kept * was.runs && is.waits > waits_now;
    if (was.runs && (comesToWait || loses)) {
      found.set(domain, `ran for ${percent(was.runs)} % of a pCPU before, now ${percent(is.runs)} %, and waits for ${percent(is.waits)} % of the time`);
    }
  }
  for (const [domain, why] of lost(before, after)) if (!already.has(domain) && !found.has(domain)) found.set(domain, why);
  return found;
}

/** Domains of which an application, or a client that asks it, does almost nothing of what it did. */
function lost(before: Starved, after: Starved): [string, string][] {
  const [old, now] = [done(before), done(after)];
  return [...old].flatMap(([name, app]): [string, string][] => {
    const other = now.get(name);
    if (other?.identity !== app.identity || work(before.scenario, app.domain) !== work(after.scenario, app.domain)) return [];
    if (app.completed < completed || other.throughput > kept * app.throughput) return [];
    return [[app.domain, `${name}.throughput ${written(app.throughput)} → ${written(other.throughput)} 1/s`]];
  });
}

interface Done {
  domain: string;
  /** What tells it from an application of the same name that is another one. */
  identity: string;
  throughput: number;
  completed: number;
}

/** Applications and clients, with the units of work that they complete, a second and in all. */
function done({ scenario, results }: Starved): Map<string, Done> {
  const found = new Map<string, Done>();
  for (const tables of results) {
    const table = tables.of("apps");
    scenario.appNames(table).forEach(({ thing, domain, client }, row) => {
      const identity = JSON.stringify([domain, table.number("app", row), table.text("kind", row), client]);
      const known = found.get(thing) ?? { domain, identity, throughput: 0, completed: 0 };
      known.throughput += (table.number("throughput_per_s", row) ?? 0) / results.length;
      known.completed += table.number("completed", row) ?? 0;
      found.set(thing, known);
    });
  }
  return found;
}

/** What a domain has to do: a throughput that falls with the load is none lost. */
function work(scenario: Scenario, domain: string): string {
  const asking = scenario.clients().filter(([, client]) => client["server"] === domain);
  return JSON.stringify([scenario.domain(domain)["app"] ?? [], asking]);
}

/** Who starves in two runs, in words, what is worst first. */
export function starvingLines(before: Starved, after: Starved): string[] {
  const [old, now] = [starved(before), starved(after)];
  const sides: [string, Map<string, string>][] = [
    ["newly starved", newlyStarved(before, after, old, now)],
    ["starved as before", new Map([...now].filter(([domain]) => old.has(domain)))],
    ["no longer starved", new Map([...old].filter(([domain]) => !now.has(domain)))],
  ];
  return sides.filter(([, found]) => found.size > 0).map(([label, found]) => `${label}: ${inALine(found)}`);
}

/** Of numbered ones the first one's reason stands for all. */
function inALine(found: ReadonlyMap<string, string>): string {
  return inRows(found.keys()).map((row) => {
    const isSame = new Set(row.map((name) => found.get(name))).size === 1;
    return `${shortOf(row)} (${found.get(row[0] ?? "") ?? ""}${isSame ? "" : ", others alike"})`;
  }).join(", ");
}

/** `in_short` of a row, whose names differ in their number alone. */
const shortOf = (row: readonly string[]): string => inRows(row).map(ends).join(", ");
