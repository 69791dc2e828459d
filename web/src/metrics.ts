// The metrics of a run. What each is and how it is computed stands in schema/metrics.json, which the Python front writes.

import registry from "../../schema/metrics.json";
import { join } from "./names";
import type { Scenario } from "./scenario";
import type { Table, Tables } from "./tables";

type Value = number | string | null | Value[];
export type Of = keyof typeof registry;

export interface Metric {
  name: string;
  unit: string;
  doc: string;
  better: "higher" | "lower" | null;
  bounds: (number | null)[];
  whole: number | null;
  undefined_is: string;
  undefined_is_worst: boolean;
  /** Does it grow with the time that is measured? */
  accumulates: boolean;
  table: string;
  value: Value;
}

export const METRICS = registry as unknown as Record<Of, Metric[]>;

/** A metric of a thing, and its value in each replication. */
export interface Measured {
  of: Of;
  thing: string;
  /** The domain that it concerns; nothing for pCPUs and the host. */
  domain: string;
  metric: Metric;
  values: (number | null)[];
  isClient: boolean;
}

const sum = (values: (number | null)[]): number => values.reduce<number>((total, one) => total + (one ?? 0), 0);

function both(a: number | null, b: number | null, of: (a: number, b: number) => number): number | null {
  return a === null || b === null ? null : of(a, b);
}

/** The value of a metric in these rows, in each of them or in all together; as with polars, nothing with anything is nothing. */
export function evaluate(value: Value, table: Table, rows: readonly number[]): (number | null)[] {
  if (value === null || typeof value === "number") return rows.map(() => value);
  if (typeof value === "string") return rows.map((row) => table.number(value, row));
  const [operator, ...operands] = value;
  const [a = [], b = [], c = []] = operands.map((operand) => evaluate(operand, table, rows));
  const each = (of: (a: number, b: number) => number): (number | null)[] =>
    rows.map((_, i) => both(a[i] ?? null, b[i] ?? null, of));
  const same = (one: number | null): (number | null)[] => rows.map(() => one);
  const present = a.filter((one) => one !== null);
  switch (operator) {
    case "+": return each((x, y) => x + y);
    case "-": return each((x, y) => x - y);
    case "*": return each((x, y) => x * y);
    // As polars does: by a number, all rows are multiplied with its reciprocal.
    case "/": return typeof operands[1] === "number" ? each((x, y) => x * (1 / y)) : each((x, y) => x / y);
    case "^": return each((x, y) => x ** y);
    case ">": return each((x, y) => Number(x > y));
    case "=": return each((x, y) => Number(x === y));
    case "!=": return each((x, y) => Number(x !== y));
    case "or": return rows.map((_, i) => (a[i] || b[i] ? 1 : both(a[i] ?? null, b[i] ?? null, () => 0)));
    case "if": return rows.map((_, i) => (a[i] ? (b[i] ?? null) : (c[i] ?? null)));
    case "mean": return same(present.length ? sum(present) / present.length : null);
    case "sum": return same(sum(present));
    case "count": return same(present.length);
    default: throw new Error(`no operator ${String(operator)}`);
  }
}

/** All metrics of all things, each with its values over these replications. */
export function measured(results: readonly Tables[], scenario: Scenario): Measured[] {
  const first = results[0];
  if (first === undefined) return [];
  const found: Measured[] = [];
  type Thing = { thing: string; domain: string; isClient?: boolean };
  const add = (of: Of, table: string, thing: (row: number) => Thing | null): void => {
    const rows = [...first.of(table).numbers("replication").keys()];
    const values = METRICS[of].map((metric) => results.map((one) => evaluate(metric.value, one.of(table), rows)));
    for (const row of rows) {
      const known = thing(row);
      if (known === null) continue;
      METRICS[of].forEach((metric, index) => {
        const own = (values[index] ?? []).map((one) => one[row] ?? null);
        found.push({ of, metric, isClient: false, ...known, values: own });
      });
    }
  };
  const apps = scenario.appsOf(first.of("apps"));
  add("app", "apps", (row) => {
    const app = apps[row];
    return app ? { thing: app.name, domain: app.domain, isClient: app.client !== null } : null;
  });
  // The threads of a KVM host are a domain that is in no scenario.
  const domain = (table: string) => (row: number): Thing | null => {
    const name = first.of(table).text("domain", row);
    return name in scenario.table("domain") ? { thing: join(name), domain: name } : null;
  };
  add("domain", "domains", domain("domains"));
  add("io", "io", domain("io"));
  for (const metric of METRICS.host) {
    const rows = [...first.of(metric.table).numbers("replication").keys()];
    const values = results.map((one) => evaluate(metric.value, one.of(metric.table), rows)[0] ?? null);
    found.push({ of: "host", thing: "host", domain: "", metric, values, isClient: false });
  }
  add("pcpu", "pcpus", (row) => ({ thing: `pcpu.${first.of("pcpus").number("pcpu", row)}`, domain: "" }));
  return found.filter(({ metric, values }) => metric.undefined_is_worst || values.some((value) => value !== null));
}
