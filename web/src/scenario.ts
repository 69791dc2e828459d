// What the engine says about a text: its problems, or the scenario with every default.

import { ask } from "./engine";
import type { Table } from "./tables";

export interface Problem {
  line: number | null;
  column: number | null;
  field: string | null;
  found: string | null;
  allowed: string | null;
  hint: string | null;
  message: string;
}

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type Fields = { [name: string]: Json };

/** A value to set: where, and what; null removes it. */
export type Edit = [path: string[], value: Json];

/** An integer from `min` to `max`, or one of `also`. */
export interface Range {
  min: number;
  max: number;
  also: number[];
}

/** A parameter of a scheduler. `allowed` describes the values that it takes, for people. */
export type Param = {
  name: string;
  scope: "global" | "domain";
  unit: string;
  allowed: string;
  default: number | string | null;
  doc: string;
} & (({ kind: "int" } & Range) | { kind: "flag" | "timetable" } | { kind: "choice"; choices: string[] });

export interface Scheduler {
  name: string;
  doc: string;
  generations: { name: string; default: boolean; params: Param[] }[];
}

export interface Facts {
  version: string;
  schedulers: Scheduler[];
  schema: Fields;
  starter: string;
}

/** An application or a client, by the engine: its name in addresses, and its place in the table of applications. */
export interface App {
  name: string;
  domain: string;
  position: number;
  client: string | null;
}

/** A checked scenario. */
export class Scenario {
  constructor(
    readonly text: string,
    readonly fields: Fields,
    readonly apps: readonly App[],
    readonly policies: Policies = {},
  ) {}

  get name(): string {
    return String(this.fields["name"] ?? "");
  }

  get replications(): number {
    return Number(this.table("run")["replications"] ?? 1);
  }

  table(name: string): Fields {
    return (this.fields[name] ?? {}) as Fields;
  }

  domains(): [string, Fields][] {
    return Object.entries(this.table("domain")) as [string, Fields][];
  }

  clients(): [string, Fields][] {
    return Object.entries(this.table("client")) as [string, Fields][];
  }

  /** Measured time, s. */
  get seconds(): number {
    const [, number, unit] = /^\s*([\d.]+)\s*([a-z]+)\s*$/.exec(String(this.table("run")["duration"])) ?? [];
    if (unit === "min") return Number(number) * 60;
    return Number(number) / ({ s: 1, ms: 1e3, us: 1e6, ns: 1e9 }[unit ?? ""] ?? NaN);
  }

  /** The applications and clients of the rows of the table of applications. */
  appsOf(table: Table): (App | undefined)[] {
    const known = new Map(this.apps.map((app) => [JSON.stringify([app.domain, app.position]), app]));
    return Array.from({ length: table.rows }, (_, row) => known.get(JSON.stringify([table.text("domain", row), table.number("app", row)])));
  }
}

/** What the policies declare that a scenario names and that are not built in, by their names; the engine reads it. */
export type Policies = { [name: string]: Json };

export interface Checked {
  problems: Problem[];
  warnings: Problem[];
  scenario: Scenario | null;
  /** The names of schedulers that are not built in. */
  asked: string[];
  /** Those that are known, as in the engine's facts. */
  schedulers: Scheduler[];
}

export async function check(module: WebAssembly.Module, text: string, policies: Policies): Promise<Checked> {
  const { scenario, apps, ...said } = await ask<Omit<Checked, "scenario"> & { scenario: Fields | null; apps: App[] }>(module, ["check"], { text, policies });
  return { ...said, scenario: scenario && new Scenario(text, scenario, apps, policies) };
}

/** The text with other settings, without what another scheduler does not have; its comments and order stay. */
export function edit(module: WebAssembly.Module, text: string, policies: Policies, edits: readonly Edit[]): Promise<string> {
  return ask<string>(module, ["edit"], { text, policies, edits });
}
