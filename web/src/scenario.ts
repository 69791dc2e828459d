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

export interface Param {
  name: string;
  scope: "global" | "domain";
  unit: string;
  allowed: string;
  default: string | null;
  doc: string;
}

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

  clients(): [string, Fields][] {
    return Object.entries(this.table("client")) as [string, Fields][];
  }

  /** What the rows of the table of applications are called: clients have a name, the others a place in their domain. */
  appNames(apps: Table): { thing: string; domain: string; isClient: boolean }[] {
    const asking = new Map<string, string[]>();
    for (const [name, client] of this.clients()) {
      const server = String(client["server"]);
      asking.set(server, [...(asking.get(server) ?? []), name]);
    }
    return [...apps.numbers("replication").keys()].map((row) => {
      const domain = apps.text("domain", row);
      const position = apps.number("app", row) ?? 0;
      const running = ((this.table("domain")[domain] as Fields | undefined)?.["app"] ?? []) as Fields[];
      const count = running.reduce((sum, app) => sum + Number(app["instance"] ?? 1), 0);
      const client = asking.get(domain)?.[position - count];
      if (client !== undefined) return { thing: client, domain, isClient: true };
      return { thing: count === 1 && !asking.has(domain) ? domain : `${domain}.${position}`, domain, isClient: false };
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

/** The text with other values; its comments and order stay. */
export function edit(module: WebAssembly.Module, text: string, edits: readonly Edit[]): Promise<string> {
  return ask<string>(module, ["edit"], { text, edits });
}
