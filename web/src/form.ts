// The scenario as a form. It shows what the engine says that the text means, and changes the text.

import { element } from "./dom";
import type { Edit, Fields, Json, Param, Scenario, Scheduler } from "./scenario";

type Change = (edits: Edit[]) => void;

/** On a phone the answer should not be far below. */
const IS_WIDE = matchMedia("(min-width: 58rem)");
/** Domains beyond these are changed in the text. */
const DOMAINS_SHOWN = 24;
/** What few need stands behind the others. */
const FIRST = /^(weight|cap|tslice_ms|ratelimit_us|slice|period|slice_ms|budget_us|period_us|extratime|warp_value|base_slice_us|vcpu_quota_us)$/;

interface Range {
  also: number[];
  min: number;
  max: number;
}

/** The range in the engine's words. */
function rangeOf(allowed: string): Range | null {
  const found = /^((?:-?\d+ or )*)an integer from (-?\d+) to (-?\d+)/.exec(allowed);
  if (found === null) return null;
  const also = [...(found[1] ?? "").matchAll(/-?\d+/g)].map(Number);
  return { also, min: Number(found[2]), max: Number(found[3]) };
}

/** What people set is far from the end of most ranges. */
const USUAL: Record<string, number> = { weight: 2048, cap: 800, ratelimit_us: 20_000, tslice_ms: 100 };

export class Form {
  private opened = new Set<string>();
  private shape = "";
  /** Those that are built in, and those that were met. */
  private schedulers: readonly Scheduler[];

  constructor(
    private readonly node: HTMLElement,
    private readonly builtIn: readonly Scheduler[],
    private readonly change: Change,
  ) {
    this.schedulers = builtIn;
  }

  params(scenario: Scenario | null): readonly Param[] {
    const host = scenario?.table("host") ?? {};
    const scheduler = this.schedulers.find(({ name }) => name === host["scheduler"]);
    return scheduler?.generations.find(({ name }) => name === host["generation"])?.params ?? [];
  }

  /** Shows a scenario; the control that has the keyboard keeps it. */
  show(scenario: Scenario, own: readonly Scheduler[]): void {
    const met = [...own, ...this.schedulers.slice(this.builtIn.length)];
    this.schedulers = [...this.builtIn, ...met.filter(({ name }, index) => met.findIndex((other) => other.name === name) === index)];
    const shape = JSON.stringify([scenario.table("host"), scenario.domains().map(([name]) => name), scenario.clients().map(([name]) => name)]);
    const focused = document.activeElement?.id ?? "";
    const active = this.node.contains(document.activeElement) ? document.activeElement : null;
    // A slider that is being moved stays.
    if (shape === this.shape && active instanceof HTMLInputElement && active.type === "range" && this.refresh(scenario)) return;
    this.shape = shape;
    this.node.replaceChildren(this.run(scenario), this.host(scenario), ...this.domains(scenario), ...this.clients(scenario));
    if (active !== null && focused) document.getElementById(focused)?.focus();
  }

  disable(isBroken: boolean): void {
    this.node.toggleAttribute("inert", isBroken);
  }

  /** Writes the values into the controls that are there. */
  private refresh(scenario: Scenario): boolean {
    for (const input of this.node.querySelectorAll<HTMLInputElement | HTMLSelectElement>("[data-path]")) {
      if (input === document.activeElement) continue;
      const path = JSON.parse(input.dataset["path"] ?? "[]") as string[];
      const value = path.reduce<Json | undefined>((at, step) => (at as Fields | undefined)?.[step], scenario.fields);
      if (value !== undefined && input.type !== "checkbox") input.value = shownValue(value);
    }
    return true;
  }

  private section(name: string, isOpen: boolean, ...children: Node[]): HTMLElement {
    const details = element("details", { class: "part" }, element("summary", {}, name), ...children);
    details.open = this.opened.has(name) || (isOpen && !this.opened.has(`-${name}`));
    details.addEventListener("toggle", () => {
      this.opened.delete(details.open ? `-${name}` : name);
      this.opened.add(details.open ? name : `-${name}`);
    });
    return details;
  }

  private run(scenario: Scenario): HTMLElement {
    const run = scenario.table("run");
    return this.section("Run", false,
      this.slider(["run", "replications"], Number(run["replications"]), { min: 1, max: 30, also: [] }, "replications", "independent runs: intervals come from them"),
      this.text(["run", "duration"], String(run["duration"]), "duration", "measured time"),
      this.number(["seed"], Number(scenario.fields["seed"]), "seed", "the same seed gives the same results"),
    );
  }

  private host(scenario: Scenario): HTMLElement {
    const host = scenario.table("host");
    const scheduler = this.schedulers.find(({ name }) => name === host["scheduler"]);
    const params = this.params(scenario).filter(({ scope }) => scope === "global");
    const isKvm = (name: string): boolean => name.startsWith("linux-");
    const names = this.schedulers.map(({ name }) => name).filter((name) => isKvm(name) === isKvm(String(host["scheduler"])));
    const parts: Node[] = [
      this.chooser(["host", "scheduler"], String(host["scheduler"]), names, "scheduler", scheduler?.doc ?? "", (value) => this.become(scenario, value)),
      this.chooser(["host", "generation"], String(host["generation"]), (scheduler?.generations ?? []).map(({ name }) => name), "generation", "the release whose behaviour it has"),
    ];
    if (scenario.table("host")["topology"] === undefined) {
      parts.push(this.slider(["host", "pcpus"], Number(host["pcpus"]), { min: 1, max: 64, also: [] }, "pcpus", "physical CPUs"));
    }
    return this.section("Host", true, ...parts, ...this.parameters(["host"], host, params));
  }

  /** Another scheduler does not know the parameters of this one. */
  private become(scenario: Scenario, scheduler: string): void {
    const edits: Edit[] = [];
    const known = this.schedulers.find(({ name }) => name === scheduler)?.generations.find((one) => one.default)?.params ?? [];
    const has = (scope: string, name: string): boolean => known.some((one) => one.scope === scope && one.name === name);
    for (const { name, scope } of this.params(scenario)) {
      if (has(scope, name)) continue;
      if (scope === "global" && scenario.table("host")[name] !== undefined) edits.push([["host", name], null]);
      if (scope === "domain") {
        scenario.domains().filter(([, domain]) => domain[name] !== undefined).forEach(([domain]) => edits.push([["domain", domain, name], null]));
      }
    }
    if (/^\s*generation\s*=/m.test(scenario.text)) edits.push([["host", "generation"], null]);
    this.change([...edits, [["host", "scheduler"], scheduler]]);
  }

  private domains(scenario: Scenario): HTMLElement[] {
    const all = scenario.domains();
    const params = this.params(scenario).filter(({ scope }) => scope === "domain");
    const shown = all.slice(0, DOMAINS_SHOWN).map(([name, domain]) => {
      const apps = ((domain["app"] ?? []) as Fields[]).map((app) => String(app["kind"])).join(", ");
      const path = ["domain", name];
      return this.section(`${name}${apps ? ` · ${apps}` : ""}`, all.length <= 4 && IS_WIDE.matches,
        ...this.parameters(path, domain, params.filter((one) => FIRST.test(one.name))),
        this.slider([...path, "vcpus"], Number(domain["vcpus"]), { min: 1, max: 32, also: [] }, "vcpus", "virtual CPUs"),
        this.pinning([...path, "affinity"], domain["affinity"] ?? "all"),
        ...this.parameters(path, domain, params.filter((one) => !FIRST.test(one.name))),
      );
    });
    if (all.length > shown.length) shown.push(element("p", { class: "muted" }, `${all.length - shown.length} more domains: in the text`));
    return shown;
  }

  private clients(scenario: Scenario): HTMLElement[] {
    return scenario.clients().slice(0, DOMAINS_SHOWN).map(([name, client]) => {
      const path = ["client", name];
      const parts: Node[] = [];
      if (client["rate"] !== undefined) parts.push(this.slider([...path, "rate"], Number(client["rate"]), { min: 1, max: 2000, also: [] }, "rate", "requests a second"));
      if (client["users"] !== undefined) parts.push(this.slider([...path, "users"], Number(client["users"]), { min: 1, max: 500, also: [] }, "users", "people who wait for each answer"));
      return this.section(`client ${name} → ${String(client["server"])}`, parts.length > 0 && IS_WIDE.matches, ...parts);
    });
  }

  private parameters(path: string[], table: Fields, params: readonly Param[]): Node[] {
    const one = (param: Param): HTMLElement => {
      const value = table[param.name] ?? (param.default === null ? null : (JSON.parse(param.default) as Json));
      const at = [...path, param.name];
      const words = /^one of (.*)$/.exec(param.allowed)?.[1]?.split(", ");
      const label = param.unit ? `${param.name}, ${param.unit}` : param.name;
      if (words !== undefined) return this.chooser(at, String(value), words, label, param.doc);
      if (param.allowed === "0 or 1") return this.flag(at, Number(value) === 1, label, param.doc);
      const range = rangeOf(param.allowed);
      if (range === null || value === null) return this.text(at, value === null ? "" : shownValue(value), label, `${param.doc} Allowed: ${param.allowed}.`);
      return this.slider(at, Number(value), range, label, `${param.doc} Allowed: ${param.allowed}.`);
    };
    const first = params.filter(({ name }) => FIRST.test(name)).map(one);
    const others = params.filter(({ name }) => !FIRST.test(name)).map(one);
    if (others.length === 0) return first;
    return [...first, this.section(`${path.at(-1) ?? ""}: other parameters`, false, ...others)];
  }

  private field(path: string[], label: string, help: string, control: HTMLElement, ...more: Node[]): HTMLElement {
    control.id = `f-${path.join("-")}`;
    control.dataset["path"] = JSON.stringify(path);
    control.title = help;
    return element("div", { class: "field" }, element("label", { for: control.id, title: help }, label), control, ...more);
  }

  private slider(path: string[], value: number, { min, max, also }: Range, label: string, help: string): HTMLElement {
    const exact = element("input", { type: "number", value: String(value), min: String(Math.min(min, ...also)), max: String(max), "aria-label": `${path.at(-2) ?? ""} ${label}, exactly` });
    // Positions are even in the logarithm: small values matter as much as large ones.
    const top = Math.max(value, Math.min(max, USUAL[path.at(-1) ?? ""] ?? max), min + 1);
    const isWide = top / Math.max(1, min) > 50;
    const low = Math.min(min, ...also);
    const to = (position: number): number => {
      if (position === 0) return low;
      const number = isWide ? Math.max(min, 1) * (top / Math.max(min, 1)) ** (position / 1000) : min + ((top - min) * position) / 1000;
      const step = isWide ? 10 ** Math.max(0, Math.floor(Math.log10(number)) - 1) : 1;
      return Math.min(max, Math.max(min, Math.round(number / step) * step));
    };
    const from = (number: number): number => {
      if (number <= low) return 0;
      return Math.round(isWide ? (1000 * Math.log(number / Math.max(min, 1))) / Math.log(top / Math.max(min, 1)) : (1000 * (number - min)) / (top - min));
    };
    const range = element("input", { type: "range", min: "0", max: "1000", "aria-valuetext": String(value) });
    range.value = String(from(value));
    if (!isWide) range.step = String(Math.max(1, Math.round(1000 / (top - min))));
    const set = (number: number): void => {
      exact.value = String(number);
      range.setAttribute("aria-valuetext", exact.value);
      this.change([[path, number]]);
    };
    range.addEventListener("input", () => set(to(Number(range.value))));
    exact.addEventListener("change", () => {
      range.value = String(from(Number(exact.value)));
      set(Math.round(Number(exact.value)));
    });
    const made = this.field(path, label, help, range, exact);
    delete range.dataset["path"];
    exact.dataset["path"] = JSON.stringify(path);
    return made;
  }

  private chooser(path: string[], value: string, words: readonly string[], label: string, help: string, chosen = (word: string) => this.change([[path, word]])): HTMLElement {
    const select = element("select", {}, ...words.map((word) => element("option", word === value ? { selected: "" } : {}, word)));
    select.addEventListener("change", () => chosen(select.value));
    return this.field(path, label, help, select);
  }

  private flag(path: string[], isOn: boolean, label: string, help: string): HTMLElement {
    const box = element("input", { type: "checkbox" });
    box.checked = isOn;
    box.addEventListener("change", () => this.change([[path, Number(box.checked)]]));
    return this.field(path, label, help, box);
  }

  private text(path: string[], value: string, label: string, help: string): HTMLElement {
    const input = element("input", { type: "text", value, spellcheck: "false" });
    input.addEventListener("change", () => this.change([[path, input.value || null]]));
    return this.field(path, label, help, input);
  }

  private number(path: string[], value: number, label: string, help: string): HTMLElement {
    const input = element("input", { type: "number", value: String(value), min: "0" });
    input.addEventListener("change", () => this.change([[path, Math.round(Number(input.value))]]));
    return this.field(path, label, help, input);
  }

  private pinning(path: string[], value: Json): HTMLElement {
    const input = element("input", { type: "text", value: shownValue(value), spellcheck: "false" });
    input.addEventListener("change", () => {
      const sets = input.value.split(";").map((one) => one.trim());
      this.change([[path, sets.length === 1 ? (sets[0] || "all") : sets]]);
    });
    return this.field(path, "pinned to", "pCPUs that it may run on: all, 0-3,5; for each vCPU its own with semicolons: 0; 1", input);
  }
}

function shownValue(value: Json): string {
  return Array.isArray(value) ? value.map(String).join("; ") : String(value);
}

