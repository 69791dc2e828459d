// Who had which pCPU when, made so that any part of it is drawn quickly: below the width of a pixel by shares.
//
// The time of a pCPU is cut into 2^k equal parts, about one for every four slices, with the share of each colour in each part,
// and so are halves, quarters and so on of that number. What is wider than a part is drawn slice by slice.

import type { Scenario } from "./scenario";
import type { Tables } from "./tables";

/** Colours: 0 is idle, the last is all domains without one of their own. */
export const COLOURS = 12;
export const OTHERS = COLOURS - 1;

export interface Thing {
  domain: string;
  vcpu: string;
  isIdle: boolean;
  colour: number;
}

export interface Row {
  pcpu: number;
  count: number;
  /** When each slice begins, ns, and after the last when it ends. */
  begin: Float64Array;
  /** Whose it is. */
  thing: Uint32Array;
  /** Coarsest first: for each part the time of each colour but idle, ns. */
  levels: Float32Array[];
}

export class Timeline {
  readonly rows: Row[];
  readonly things: Thing[] = [];
  /** Domains by colour. */
  readonly legend: string[] = ["idle"];
  readonly slices: number;

  constructor(
    readonly begin: number,
    readonly end: number,
    rows: { pcpu: number; begin: number[]; thing: number[] }[],
    things: Omit<Thing, "colour">[],
  ) {
    const total = new Map<string, number>();
    rows.forEach((row) => {
      row.begin.forEach((from, i) => {
        const { domain, isIdle } = things[row.thing[i] as number] as Thing;
        if (!isIdle) total.set(domain, (total.get(domain) ?? 0) + (row.begin[i + 1] ?? end) - from);
      });
    });
    const largest = [...total].sort((a, b) => b[1] - a[1]).map(([domain]) => domain);
    const own = new Set(largest.length < COLOURS ? largest : largest.slice(0, OTHERS - 1));
    // In the order of the file, so that a domain keeps its colour from one run to the next.
    const inOrder = [...new Set(things.filter(({ isIdle }) => !isIdle).map(({ domain }) => domain))];
    const colours = new Map(inOrder.filter((domain) => own.has(domain)).map((domain, index) => [domain, index + 1]));
    this.legend.push(...colours.keys());
    if (own.size < largest.length) this.legend[OTHERS] = `${largest.length - own.size} others`;
    this.things = things.map((one) => ({ ...one, colour: one.isIdle ? 0 : (colours.get(one.domain) ?? OTHERS) }));
    this.slices = rows.reduce((sum, row) => sum + row.begin.length, 0);
    this.rows = rows.map((row) => {
      const count = row.begin.length;
      const made = { pcpu: row.pcpu, count, begin: Float64Array.from([...row.begin, end]), thing: Uint32Array.from(row.thing) };
      return { ...made, levels: this.levels(made) };
    });
  }

  /** Of the replication that was traced. */
  static of(tables: Tables, scenario: Scenario): Timeline | null {
    const trace = tables.of("trace");
    const pcpus = tables.of("pcpus");
    const elapsed = pcpus.number("elapsed_ns", 0);
    if (elapsed === null) return null;
    const warmup = spanNs(String(scenario.table("run")["warmup"] ?? "0s"));
    const names = new Map<number, string>();
    const domains = tables.of("domains");
    for (let row = 0; row < domains.rows; row++) names.set(domains.number("number", row) ?? -1, domains.text("domain", row));
    const keys = new Map<number, number>();
    const things: Omit<Thing, "colour">[] = [];
    const thing = (domain: number, vcpu: number): number => {
      const key = domain < 0 ? -1 : domain * 65536 + vcpu;
      let found = keys.get(key);
      if (found === undefined) {
        const name = names.get(domain) ?? `domain ${domain}`;
        things.push(domain < 0 ? { domain: "idle", vcpu: "idle", isIdle: true } : { domain: name, vcpu: `${name}.${vcpu}`, isIdle: false });
        keys.set(key, (found = things.length - 1));
      }
      return found;
    };
    // In the order of the file.
    thing(-1, 0);
    for (let row = 0; row < domains.rows; row++) {
      for (let vcpu = 0; vcpu < (domains.number("vcpus", row) ?? 0); vcpu++) thing(domains.number("number", row) ?? 0, vcpu);
    }
    const rows = Array.from({ length: pcpus.rows }, (_, pcpu) => ({ pcpu, begin: [] as number[], thing: [] as number[] }));
    const column = (name: string): Float64Array => trace.numbers(name);
    const [time, at, from, fromVcpu] = [column("time_ns"), column("pcpu"), column("from_domain"), column("from_vcpu")];
    const [to, toVcpu] = [column("to_domain"), column("to_vcpu")];
    for (let i = 0; i < trace.rows; i++) {
      const row = rows[at[i] as number];
      if (row === undefined) continue;
      if (row.begin.length === 0) {
        row.begin.push(warmup);
        row.thing.push(thing(from[i] as number, fromVcpu[i] as number));
      }
      row.begin.push(time[i] as number);
      row.thing.push(thing(to[i] as number, toVcpu[i] as number));
    }
    // On a pCPU without decisions one vCPU ran, or none.
    const vcpus = tables.of("vcpus");
    const always = [...vcpus.numbers("running_ns").keys()].filter((row) => vcpus.number("running_ns", row) === elapsed);
    for (const row of rows.filter(({ begin }) => begin.length === 0)) {
      const one = pcpus.number("idle_ns", row.pcpu) === elapsed ? undefined : always.shift();
      row.begin.push(warmup);
      row.thing.push(one === undefined ? 0 : thing(vcpus.number("number", one) ?? 0, vcpus.number("vcpu", one) ?? 0));
    }
    // What found no room in the trace is not drawn.
    const last = tables.untraced > 0 ? (time[trace.rows - 1] as number) : warmup + elapsed;
    return new Timeline(warmup, last, rows, things);
  }

  private levels({ begin, thing, count }: Omit<Row, "levels">): Float32Array[] {
    const parts = 2 ** Math.max(0, Math.ceil(Math.log2(count / 4)));
    const width = (this.end - this.begin) / parts;
    let finest = new Float32Array(parts * COLOURS);
    for (let i = 0, part = 0; i < count && width > 0; i++) {
      const { colour } = this.things[thing[i] as number] as Thing;
      let from = begin[i] as number;
      const to = begin[i + 1] as number;
      while (from < to) {
        while (part + 1 < parts && this.begin + (part + 1) * width <= from) part++;
        const end = part + 1 < parts ? Math.min(to, this.begin + (part + 1) * width) : to;
        if (colour > 0) (finest[part * COLOURS + colour] as number) += end - from;
        from = end;
      }
    }
    const levels = [finest];
    for (let n = parts / 2; n >= 1; n /= 2) {
      const coarser = new Float32Array(n * COLOURS);
      for (let i = 0; i < coarser.length; i++) {
        const left = 2 * Math.floor(i / COLOURS) * COLOURS + (i % COLOURS);
        coarser[i] = (finest[left] as number) + (finest[left + COLOURS] as number);
      }
      levels.unshift((finest = coarser));
    }
    return levels;
  }

  /** The time of each colour in each pixel's width from a time on, and in place of idle's the time that was looked at. */
  shares(row: Row, from: number, perPixel: number, into: Float32Array): void {
    into.fill(0);
    const pixels = into.length / COLOURS;
    const level = row.levels.findIndex((one) => (this.end - this.begin) / (one.length / COLOURS) <= perPixel);
    const parts = row.levels[level];
    if (parts === undefined) {
      this.exactly(row, from, perPixel, into);
      return;
    }
    const width = (this.end - this.begin) / (parts.length / COLOURS);
    const first = Math.max(0, Math.floor((from - this.begin) / width));
    const last = Math.min(parts.length / COLOURS, Math.ceil((from + pixels * perPixel - this.begin) / width));
    for (let part = first; part < last; part++) {
      const pixel = Math.min(pixels - 1, Math.max(0, Math.floor((this.begin + (part + 0.5) * width - from) / perPixel)));
      (into[pixel * COLOURS] as number) += width;
      for (let colour = 1; colour < COLOURS; colour++) {
        (into[pixel * COLOURS + colour] as number) += parts[part * COLOURS + colour] as number;
      }
    }
  }

  private exactly(row: Row, from: number, perPixel: number, into: Float32Array): void {
    const pixels = into.length / COLOURS;
    const until = from + pixels * perPixel;
    for (let pixel = 0; pixel < pixels; pixel++) into[pixel * COLOURS] = perPixel;
    for (let i = this.at(row, from); i < row.count && (row.begin[i] as number) < until; i++) {
      const { colour } = this.things[row.thing[i] as number] as Thing;
      if (colour === 0) continue;
      const begin = Math.max(from, row.begin[i] as number);
      const end = Math.min(until, row.begin[i + 1] as number);
      for (let pixel = Math.floor((begin - from) / perPixel); pixel < pixels; pixel++) {
        const left = from + pixel * perPixel;
        if (left >= end) break;
        (into[pixel * COLOURS + colour] as number) += Math.min(end, left + perPixel) - Math.max(begin, left);
      }
    }
  }

  /** The slice at a time. */
  at({ begin, count }: Row, time: number): number {
    let [low, high] = [0, count - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((begin[middle] as number) <= time) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

/** A time span as scenarios have it. */
export function spanNs(text: string): number {
  const units: Record<string, number> = { ns: 1, us: 1e3, ms: 1e6, s: 1e9, min: 6e10 };
  const [, number = "0", unit = "ns"] = /^([\d.]+)\s*([a-z]+)$/.exec(text) ?? [];
  return Math.round(Number(number) * (units[unit] ?? 1));
}
