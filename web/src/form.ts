// The scenario as a form. It shows what the engine says that the text means, and changes the text.

import { element } from "./dom";
import type { Edit, Fields, Json, Param, Range, Scenario, Scheduler } from "./scenario";

type Change = (edits: Edit[]) => void;

/** On a phone the answer should not be far below. */
const IS_WIDE = matchMedia("(min-width: 58rem)");
/** More than these are looked for by name, in a box of their own. */
const DOMAINS_MANY = 24;
/** The pool that has all pCPUs that are in no other. */
const POOL_0 = "Pool-0";
/** The schedulers of KVM hosts are Linux's. */
const isOfKvm = (scheduler: string): boolean => scheduler.startsWith("linux-");
/** What few need stands behind the others. */
const FIRST = /^(weight|cap|tslice_ms|ratelimit_us|slice|period|slice_ms|budget_us|period_us|extratime|warp_value|base_slice_us|vcpu_quota_us)$/;

/** What people set is far from the end of most ranges. */
const USUAL: Record<string, number> = { weight: 2048, cap: 800, ratelimit_us: 20_000, tslice_ms: 100 };

export class Form {
  private opened = new Set<string>();
  private shape = "";
  private looked = "";
  /** Those that are built in, and those that were met. */
  private schedulers: readonly Scheduler[];

  constructor(
    private readonly node: HTMLElement,
    private readonly builtIn: readonly Scheduler[],
    private readonly change: Change,
  ) {
    this.schedulers = builtIn;
  }

  /** The parameters of the host's scheduler, or of a pool's. */
  params(scenario: Scenario | null, pool: Json = POOL_0): readonly Param[] {
    const table = (scenario?.table("pool")[String(pool)] ?? scenario?.table("host") ?? {}) as Fields;
    const scheduler = this.schedulers.find(({ name }) => name === table["scheduler"]);
    return scheduler?.generations.find(({ name }) => name === table["generation"])?.params ?? [];
  }

  /** Shows a scenario; the control that has the keyboard keeps it. */
  show(scenario: Scenario, own: readonly Scheduler[]): void {
    const met = [...own, ...this.schedulers.slice(this.builtIn.length)];
    this.schedulers = [...this.builtIn, ...met.filter(({ name }, index) => met.findIndex((other) => other.name === name) === index)];
    const names = ["pool", "cgroup", "domain", "client"].map((table) => Object.keys(scenario.table(table)));
    const shape = JSON.stringify([scenario.table("host"), scenario.table("pool"), names]);
    const focused = document.activeElement?.id ?? "";
    const active = this.node.contains(document.activeElement) ? document.activeElement : null;
    // A slider that is being moved stays.
    if (shape === this.shape && active instanceof HTMLInputElement && active.type === "range" && this.refresh(scenario)) return;
    this.shape = shape;
    const box = this.node.querySelector(".many")?.scrollTop ?? 0;
    this.node.replaceChildren(this.run(scenario), this.host(scenario), ...this.pools(scenario), ...this.groups(scenario), ...this.domains(scenario), ...this.clients(scenario));
    this.node.querySelector(".many")?.scrollTo(0, box);
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

  /** A part that is made when it is opened. */
  private section(name: string, isOpen: boolean, ...parts: (() => Node[])[]): HTMLElement {
    const details = element("details", { class: "part" }, element("summary", {}, name));
    const fill = (): void => {
      if (details.open && details.childElementCount === 1) details.append(...parts.flatMap((part) => part()));
    };
    details.open = this.opened.has(name) || (isOpen && !this.opened.has(`-${name}`));
    fill();
    details.addEventListener("toggle", () => {
      this.opened.delete(details.open ? `-${name}` : name);
      this.opened.add(details.open ? name : `-${name}`);
      fill();
    });
    return details;
  }

  private run(scenario: Scenario): HTMLElement {
    const run = scenario.table("run");
    return this.section("Run", false, () => [
      this.slider(["run", "replications"], Number(run["replications"]), { min: 1, max: 30, also: [] }, "replications", "independent runs: intervals come from them"),
      this.text(["run", "duration"], String(run["duration"]), "duration", "measured time"),
      this.number(["seed"], Number(scenario.fields["seed"]), "seed", "the same seed gives the same results"),
    ]);
  }

  private host(scenario: Scenario): HTMLElement {
    const host = scenario.table("host");
    const isKvm = host["hypervisor"] === "kvm";
    const parts: Node[] = [
      this.chooser(["host", "hypervisor"], isKvm ? "kvm" : "xen", ["xen", "kvm"], "hypervisor", "Xen, or Linux with KVM, whose vCPUs are threads in control groups", (value) => this.move(scenario, value)),
      ...this.scheduling(["host"], host, isKvm),
    ];
    if (host["topology"] === undefined) {
      parts.push(this.slider(["host", "pcpus"], Number(host["pcpus"]), { min: 1, max: 64, also: [] }, "pcpus", "physical CPUs"));
    }
    parts.push(...this.parameters(["host"], host, this.params(scenario).filter(({ scope }) => scope === "global")));
    return this.section("Host", true, () => parts);
  }

  /** The scheduler of a host or pool, and its generation. */
  private scheduling(path: string[], table: Fields, isKvm: boolean): Node[] {
    const scheduler = this.schedulers.find(({ name }) => name === table["scheduler"]);
    const names = this.schedulers.map(({ name }) => name).filter((name) => isOfKvm(name) === isKvm);
    const generations = (scheduler?.generations ?? []).map(({ name }) => name);
    const parts: Node[] = [this.chooser([...path, "scheduler"], String(table["scheduler"]), names, "scheduler", scheduler?.doc ?? "")];
    // That of a policy in a file is a hash.
    if (this.builtIn.some((one) => one === scheduler)) {
      parts.push(this.chooser([...path, "generation"], String(table["generation"]), generations, "generation", "the release whose behaviour it has"));
    }
    return parts;
  }

  /** To Xen or to KVM. Pools and driver domains are Xen's, groups and daemons are Linux's, whose drivers are in its kernel. */
  private move(scenario: Scenario, hypervisor: string): void {
    const isKvm = hypervisor === "kvm";
    const gone: Edit[] = ["pool", "cgroup"].flatMap((table) => Object.keys(scenario.table(table)).map((name): Edit => [[table, name], null]));
    for (const [name, domain] of scenario.domains()) {
      const path = ["domain", name];
      const stays = isKvm ? domain["driver_domain"] !== true : domain["daemon"] !== true;
      if (!stays) gone.push([path, null]);
      else if (domain["pool"] !== undefined) gone.push([[...path, "pool"], null]);
      for (const device of ["nic", "disk"]) {
        if (stays && isKvm && (domain[device] as Fields | undefined)?.["driver_domain"] !== undefined) gone.push([[...path, device, "driver_domain"], null]);
      }
    }
    const drivers: Edit[] = isKvm ? [] : [[["host", "drivers"], "hypervisor"]];
    this.change([[["host", "scheduler"], isKvm ? "linux-eevdf" : "credit2"], [["host", "hypervisor"], hypervisor], ...drivers, ...gone]);
  }

  private pools(scenario: Scenario): HTMLElement[] {
    const pools = Object.entries(scenario.table("pool")) as [string, Fields][];
    const pcpus = Number(scenario.table("host")["pcpus"]);
    const made = pools.map(([name, pool]) => {
      const path = ["pool", name];
      const remove = element("button", { type: "button" }, `Remove pool ${name}`);
      remove.addEventListener("click", () => {
        const its = scenario.domains().filter(([, domain]) => domain["pool"] === name);
        this.change([...its.map(([domain]): Edit => [["domain", domain, "pool"], null]), [path, null]]);
      });
      return this.section(`pool ${name}`, pools.length <= 2, () => [
        this.text([...path, "pcpus"], String(pool["pcpus"]), "pcpus", "its pCPUs, such as 2-3,5; those of no pool are Pool-0's"),
        ...this.scheduling(path, pool, false),
        ...this.parameters(path, pool, this.params(scenario, name).filter(({ scope }) => scope === "global")),
        remove,
      ]);
    });
    if (scenario.table("host")["hypervisor"] === "kvm" || pcpus < 2) return made;
    const taken = pools.map(([name]) => name);
    const name = ["rt", "batch", ...Array.from({ length: 64 }, (_, index) => `pool${index + 1}`)].find((one) => !taken.includes(one)) ?? "pool";
    const add = element("button", { type: "button", title: "Some pCPUs with a scheduler of their own" }, "Add a CPU pool");
    add.addEventListener("click", () => {
      const used = new Set(pools.flatMap(([, pool]) => numbersOf(String(pool["pcpus"]))));
      const free = Array.from({ length: pcpus }, (_, pcpu) => pcpu).filter((pcpu) => !used.has(pcpu));
      // Pool-0 keeps one.
      const last = free.length > 1 ? free.at(-1) : undefined;
      if (last !== undefined) this.change([[["pool", name], { pcpus: String(last), scheduler: String(scenario.table("host")["scheduler"]) }]]);
    });
    return [...made, element("p", {}, add)];
  }

  /** The control groups of a KVM host that the file has. */
  private groups(scenario: Scenario): HTMLElement[] {
    return (Object.entries(scenario.table("cgroup")) as [string, Fields][]).map(([name, group]) => {
      const path = ["cgroup", name];
      return this.section(`group ${name}`, false, () => [
        this.slider([...path, "weight"], Number(group["weight"] ?? 100), { min: 1, max: 10_000, also: [] }, "weight", "its share beside other groups and threads (cpu.weight)"),
        this.text([...path, "quota_us"], shownValue(group["quota_us"] ?? -1), "quota_us", "CPU time in each period (cpu.max), in microseconds; -1: as much as it gets"),
        this.text([...path, "cpus"], shownValue(group["cpus"] ?? "all"), "cpus", "the pCPUs that its threads may run on (cpuset.cpus)"),
      ]);
    });
  }

  private domains(scenario: Scenario): HTMLElement[] {
    const all = scenario.domains();
    const pools = Object.keys(scenario.table("pool"));
    const made = all.map(([name, domain]) => {
      const apps = ((domain["app"] ?? []) as Fields[]).map((app) => String(app["kind"])).join(", ");
      return this.section(`${name}${apps ? ` · ${apps}` : ""}`, all.length <= 4 && IS_WIDE.matches, () => {
        const params = this.params(scenario, domain["pool"]).filter(({ scope }) => scope === "domain");
        const path = ["domain", name];
        return [
          ...this.parameters(path, domain, params.filter((one) => FIRST.test(one.name))),
          this.slider([...path, "vcpus"], Number(domain["vcpus"]), { min: 1, max: 32, also: [] }, "vcpus", "virtual CPUs"),
          ...(pools.length === 0 ? [] : [this.chooser([...path, "pool"], String(domain["pool"] ?? POOL_0), [POOL_0, ...pools], "pool", "the CPU pool that it is created in", (pool) => this.change([[[...path, "pool"], pool === POOL_0 ? null : pool]]))]),
          this.pinning([...path, "affinity"], domain["affinity"] ?? "all"),
          ...this.parameters(path, domain, params.filter((one) => !FIRST.test(one.name))),
        ];
      });
    });
    if (made.length <= DOMAINS_MANY) return made;
    const find = element("input", { type: "search", id: "f-find", placeholder: "find a domain", "aria-label": "find a domain", value: this.looked });
    const count = element("span", { class: "muted", role: "status" });
    const look = (): void => {
      this.looked = find.value;
      const words = find.value.toLowerCase();
      made.forEach((one, index) => (one.hidden = !(all[index]?.[0] ?? "").toLowerCase().includes(words)));
      const shown = made.filter((one) => !one.hidden).length;
      count.textContent = shown === made.length ? `${made.length} domains` : `${shown} of ${made.length} domains`;
    };
    find.addEventListener("input", look);
    look();
    return [element("div", { class: "row" }, find, count), element("div", { class: "many", role: "group", "aria-label": "domains" }, ...made)];
  }

  private clients(scenario: Scenario): HTMLElement[] {
    return scenario.clients().map(([name, client]) => {
      const path = ["client", name];
      const parts: Node[] = [];
      if (client["rate"] !== undefined) parts.push(this.slider([...path, "rate"], Number(client["rate"]), { min: 1, max: 2000, also: [] }, "rate", "requests a second"));
      if (client["users"] !== undefined) parts.push(this.slider([...path, "users"], Number(client["users"]), { min: 1, max: 500, also: [] }, "users", "people who wait for each answer"));
      return this.section(`client ${name} → ${String(client["server"])}`, parts.length > 0 && scenario.clients().length <= 4 && IS_WIDE.matches, () => parts);
    });
  }

  private parameters(path: string[], table: Fields, params: readonly Param[]): Node[] {
    const one = (param: Param): HTMLElement => {
      const value = table[param.name] ?? param.default;
      const at = [...path, param.name];
      const label = param.unit ? `${param.name}, ${param.unit}` : param.name;
      if (param.kind === "choice") return this.chooser(at, String(value), param.choices, label, param.doc);
      if (param.kind === "flag") return this.flag(at, Number(value) === 1, label, param.doc);
      const help = `${param.doc} Allowed: ${param.allowed}.`;
      if (param.kind !== "int" || value === null) return this.text(at, value === null ? "" : shownValue(value), label, help);
      return this.slider(at, Number(value), param, label, help);
    };
    const first = params.filter(({ name }) => FIRST.test(name)).map(one);
    const others = params.filter(({ name }) => !FIRST.test(name)).map(one);
    if (others.length === 0) return first;
    return [...first, this.section(`${path.at(-1) ?? ""}: other parameters`, false, () => others)];
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

/** The pCPUs of a set such as `0-3,5`. */
function numbersOf(set: string): number[] {
  return set.split(",").flatMap((part) => {
    const [first = 0, last = first] = part.split("-").map(Number);
    return Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => first + index);
  });
}
