// Which pCPUs the vCPUs of a scenario may run on, and how much: the rules of the Python front (scenario/threads.py,
// scenario/units.py), with which tests compare them.

import type { Fields, Scenario } from "./scenario";

/** The domain that the threads of a KVM host are, in results. */
export const HOST = "host";
/** The default of all periods of quotas. */
const PERIOD_US = 100_000;

export interface HostThread {
  /** The VM that it serves. */
  domain: string;
  kind: "vhost" | "emulator" | "iothread";
  affinity: string;
}

/** The pCPUs that a set names, such as `0-2,5` or `all,^0`. */
export function pcpuSet(text: string, pcpus: number): Set<number> {
  const found = new Set<number>();
  for (const part of text.replaceAll(" ", "").split(",")) {
    const word = part.replace(/^\^/, "");
    const [first, last] = word.split("-");
    const [low, high] = word === "all" ? [0, pcpus - 1] : [Number(first), Number(last || first)];
    for (let pcpu = low; pcpu <= high && pcpu < pcpus; pcpu++) {
      if (part.startsWith("^")) found.delete(pcpu);
      else found.add(pcpu);
    }
  }
  return found;
}

export const all = (pcpus: number): Set<number> => new Set(Array(pcpus).keys());

/** What is in both; `other`, if that is nothing. */
export function meet(a: ReadonlySet<number>, b: ReadonlySet<number>, other: ReadonlySet<number>): ReadonlySet<number> {
  const both = new Set([...a].filter((one) => b.has(one)));
  return both.size > 0 ? both : other;
}

/** The threads of a KVM host that serve VMs, in the order of their vCPUs' numbers; of another host none. */
export function hostThreads(scenario: Scenario): HostThread[] {
  if (scenario.table("host")["hypervisor"] !== "kvm") return [];
  return scenario.domains().flatMap(([domain, table]) => kinds(table).map((kind): HostThread => {
    const affinity = table[`${kind === "iothread" ? "iothread" : "emulator"}_affinity`] ?? "all";
    return { domain, kind, affinity: String(affinity) };
  }));
}

function kinds(table: Fields): HostThread["kind"][] {
  const found = new Set<HostThread["kind"]>();
  const isEmulated = (device: string): boolean => Boolean((table[device] as Fields)["emulated"]);
  if ("nic" in table) found.add(isEmulated("nic") ? "emulator" : "vhost");
  if ("disk" in table) found.add(isEmulated("disk") || !table["iothreads"] ? "emulator" : "iothread");
  return (["vhost", "emulator", "iothread"] as const).filter((kind) => found.has(kind));
}

/** The pCPUs that the control groups around a domain of a KVM host leave to its threads; of another host all. */
export function cpuset(scenario: Scenario, domain: string): ReadonlySet<number> {
  const pcpus = Number(scenario.table("host")["pcpus"]);
  const groups = scenario.table("cgroup") as { [path: string]: Fields };
  let found: ReadonlySet<number> = all(pcpus);
  let path = "";
  const steps = String(scenario.domain(domain)["cgroup"] ?? "").split("/").filter((step) => step !== "");
  for (const step of steps) {
    path = path === "" ? step : `${path}/${step}`;
    found = meet(found, pcpuSet(String(groups[path]?.["cpus"] ?? "all"), pcpus), found);
  }
  return found;
}

/** The most that the quotas of a VM let its vCPUs have together, in pCPUs; none: it has no quota. */
export function quota(table: Fields): number | null {
  const limits = ([["global", 1], ["vcpu", Number(table["vcpus"])]] as const).flatMap(([part, times]) => {
    const us = Number(table[`${part}_quota_us`] ?? -1);
    return us > 0 ? [(times * us) / Number(table[`${part}_period_us`] ?? PERIOD_US)] : [];
  });
  return limits.length > 0 ? Math.min(...limits) : null;
}
