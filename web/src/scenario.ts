// What the engine says about a text: its problems, or the scenario with every default.

import { ask } from "./engine";
import { join } from "./names";
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

/** A checked scenario. */
export class Scenario {
  constructor(
    readonly text: string,
    readonly fields: Fields,
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

  domain(name: string): Fields {
    return (this.table("domain")[name] ?? {}) as Fields;
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

  /** What the rows of the table of applications are called, as in the front's addresses: a client has its own name, an application
   * its place in its domain; the domain's name is its only client's, or its only application's. */
  appNames(apps: Table): { thing: string; domain: string; client: string | null }[] {
    const asking = new Map<string, string[]>();
    for (const [name, client] of this.clients()) {
      const server = String(client["server"]);
      asking.set(server, [...(asking.get(server) ?? []), name]);
    }
    return Array.from({ length: apps.rows }, (_, row) => {
      const domain = apps.text("domain", row);
      const position = apps.number("app", row) ?? 0;
      const running = (this.domain(domain)["app"] ?? []) as Fields[];
      const count = running.reduce((sum, app) => sum + Number(app["instance"] ?? 1), 0);
      const clients = asking.get(domain) ?? [];
      const client = clients[position - count] ?? null;
      const isOnly = client === null ? clients.length === 0 && count === 1 : clients.length === 1 && client === domain;
      if (client !== null && !(client in this.table("domain"))) return { thing: join(client), domain, client };
      return { thing: isOnly ? join(domain) : join(domain, String(position)), domain, client };
    });
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
  const { scenario, ...said } = await ask<Omit<Checked, "scenario"> & { scenario: Fields | null }>(module, ["check"], { text, policies });
  return { ...said, scenario: scenario && new Scenario(text, scenario, policies) };
}

/** The text with other settings, without what another scheduler does not have; its comments and order stay. */
export function edit(module: WebAssembly.Module, text: string, policies: Policies, edits: readonly Edit[]): Promise<string> {
  return ask<string>(module, ["edit"], { text, policies, edits });
}
