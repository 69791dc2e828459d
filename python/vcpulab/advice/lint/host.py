"""A scenario as rules look at it, and what they find."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

import polars as pl

from vcpulab.advice import lateness, runstates, sharing, starving
from vcpulab.advice.bounds import Bounds, bounds
from vcpulab.advice.capacity.occupancy import NEAR_FULL
from vcpulab.advice.lateness import Late
from vcpulab.advice.reservations import RESERVATIONS
from vcpulab.errors import Interrupted
from vcpulab.hypervisors import groups, linux
from vcpulab.hypervisors.settings import hypervisor_of
from vcpulab.results.addresses import apps
from vcpulab.results.run import Run, run
from vcpulab.scenario.catalogue import generation_of
from vcpulab.scenario.cgroups import version_of, weight_most
from vcpulab.scenario.scenario import Scenario, join
from vcpulab.scenario.threads import HOST, cpuset, quota, quota_of
from vcpulab.scenario.topology import Topology
from vcpulab.scenario.units import members, pcpu_set

WAITS = 0.25
"""A vCPU that waits for more than this part of the time is held back. Assumed."""
FEW_WAITS = 0.1
"""One that waits for less than this part of the time has what it needs. Assumed."""
IDLE = 0.1
"""pCPUs that idle for more than this part of the time have room. Assumed."""
WAITS_MOSTLY = 0.5
"""A vCPU that wakes up and waits for more than this part of the time is held back, whoever it works for ..."""
WAITS_TIMES = 10
"""... if it waits this many times as long as it runs ..."""
WAKES_PER_S = 10
"""... and wakes up this often. Assumed, all three."""
GROUP_WEIGHT = 100
"""The default of `cpu.weight`."""
XEN_WEIGHT_MAX = 65_535
"""The largest weight that Xen's toolstack takes."""
LOCAL = 10
"""The distance of a node from itself: ACPI, System Locality Information Table."""


@dataclass(frozen=True)
class Finding:
    """Something that is probably not meant."""

    path: str
    """What is wrong, as a dotted path."""
    reason: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    """What mends it, as `Scenario.change` takes it; nothing: that is for the administrator to know."""
    rule: str = ""
    """The rule that found it, which puts its name here."""
    otherwise: tuple[Mapping[str, Any], ...] = ()
    """What else mends it, for where `changes` harms somebody or does not help; the first that helps is taken."""
    concerned: tuple[str, ...] = ()
    """Who is late for that reason, as in addresses; nobody: it is a setting that is odd by itself."""


class Host:
    """A scenario as rules look at it."""

    def __init__(self, scenario: Scenario, run: Run) -> None:
        self.scenario = scenario
        self.run = run
        """It as it is, simulated."""

    @cached_property
    def document(self) -> Mapping[str, Any]:
        """The complete scenario."""
        return self.scenario.to_dict()

    @cached_property
    def domains(self) -> Mapping[str, Mapping[str, Any]]:
        """Name to table."""
        found: Mapping[str, Mapping[str, Any]] = self.document["domain"]
        return found

    @cached_property
    def pools(self) -> Mapping[str | None, Mapping[str, Any]]:
        """Name (`None`: the host's own) to its table."""
        return {None: self.document["host"], **self.document.get("pool", {})}

    def pool_of(self, domain: str) -> Mapping[str, Any]:
        """The pool that a domain is in."""
        return self.pools[self.domains[domain].get("pool")]

    def inside(self, pool: str | None) -> list[str]:
        """The domains in a pool."""
        return [domain for domain, table in self.domains.items() if table.get("pool") == pool]

    def pcpus_of(self, pool: str | None) -> list[int]:
        """The pCPUs of a pool."""
        taken = {p for name, table in self.pools.items() if name is not None for p in members(table["pcpus"])}
        if pool is not None:
            return members(self.pools[pool]["pcpus"])
        return [pcpu for pcpu in range(self.document["host"]["pcpus"]) if pcpu not in taken]

    def params(self, pool: Mapping[str, Any], scope: str) -> dict[str, Mapping[str, Any]]:
        """The parameters of a pool's scheduler by name."""
        generation = generation_of(pool["scheduler"], pool["generation"])
        params = generation["params"] if generation is not None else ()
        return {param["name"]: param for param in params if param["scope"] == scope}

    def value(self, domain: str, name: str) -> int | None:
        """A domain's parameter; `None`: its scheduler has no such, or it has no default."""
        param = self.params(self.pool_of(domain), "domain").get(name)
        if param is None:
            return None
        given = self.domains[domain].get(name, param["default"])
        return None if given is None else int(given)

    def served_by(self, driver: str) -> list[str]:
        """The domains whose I/O goes through that one."""
        return self._served.get(driver, [])

    @cached_property
    def _served(self) -> Mapping[str, list[str]]:
        """Domains that do others' I/O to these."""
        found: dict[str, list[str]] = {}
        for name, table in self.domains.items():
            devices = filter(None, (table.get("nic"), table.get("disk")))
            for driver in dict.fromkeys(device.get("driver_domain") for device in devices):
                found.setdefault(driver, []).append(name)
        return found

    @cached_property
    def drivers(self) -> list[str]:
        """The domains that do others' I/O."""
        return [name for name in self.domains if self.served_by(name)]

    @cached_property
    def controls(self) -> list[str]:
        """The domains that everybody depends on: Dom0 and the driver domains; of a KVM host none."""
        there = [name for name, table in self.domains.items() if name == "dom0" or table.get("driver_domain")]
        return [] if self.is_kvm else there

    def is_held_by_its_settings(self, domain: str) -> bool:
        """Does a domain wait since somebody wants it to: by a cap, a quota, a reservation, a timetable, its class?"""
        table, scheduler = self.domains[domain], self.pool_of(domain)["scheduler"]
        groups = self.document.get("cgroup", {})
        around = str(table.get("cgroup", "")).split("/")
        idle = any(groups.get("/".join(around[:n]), {}).get("idle") for n in range(1, len(around) + 1))
        policy = str(table.get("sched_policy", "other"))
        limited = table.get("cap") or self.quota(domain) or table.get("idle") or idle or policy in ("idle", "batch")
        return bool(limited) or scheduler in RESERVATIONS or scheduler in ("null", "arinc653")

    def taken_out(self, domain: str, *fields: str) -> dict[str, None]:
        """What takes these fields of a domain out of the file, as far as it states them."""
        stated = self.scenario.written()["domain"].get(domain, {})
        return {of_domain(domain, field): None for field in fields if field in stated}

    @cached_property
    def is_kvm(self) -> bool:
        """Is it a KVM host, whose vCPUs are threads in control groups?"""
        return hypervisor_of(self.document) == "kvm"

    @cached_property
    def weight_most(self) -> int:
        """The largest weight that a domain, or a control group, can have."""
        return weight_most(version_of(self.document)) if self.is_kvm else XEN_WEIGHT_MAX

    @cached_property
    def machines(self) -> list[str]:
        """Of a KVM host the virtual machines: domains that are no daemons; of another host none."""
        return [name for name, table in self.domains.items() if self.is_kvm and not table.get("daemon")]

    @cached_property
    def daemons(self) -> list[str]:
        """Of a KVM host the domains that are none."""
        return [name for name, table in self.domains.items() if table.get("daemon")]

    def top_group(self, domain: str) -> str:
        """Of the control groups around a domain the outermost; empty: there is none but the root group."""
        return str(self.domains[domain]["cgroup"]).split("/", 1)[0]

    def is_beside(self, one: str, other: str) -> bool:
        """Do the weights of two domains compare: on a KVM host, is the same control group around both?"""
        return self.domains[one].get("cgroup") == self.domains[other].get("cgroup")

    def group_weight(self, group: str) -> int:
        """The weight of a control group that no domain has to itself."""
        return int(self.document.get("cgroup", {}).get(group, {}).get("weight", GROUP_WEIGHT))

    def quota(self, domain: str) -> float:
        """The limit of a VM of a KVM host, of all its vCPUs together, % of one pCPU; 0: it has none."""
        return 100 * (quota(self.domains[domain]) or 0.0)

    def quota_of(self, domain: str, part: str) -> float:
        """The limit of a VM of a KVM host (`global`), or of each of its vCPUs (`vcpu`), % of a pCPU; 0: none."""
        return 100 * (quota_of(self.domains[domain], part) or 0.0)

    def throttled(self, domain: str) -> float:
        """The part of the periods of a VM's quotas at whose end one was used up, over all its groups."""
        ended, exhausted = self._periods.get(domain, (0, 0))
        return exhausted / max(1, ended)

    @cached_property
    def _periods(self) -> Mapping[str, tuple[int, int]]:
        """For each VM of a KVM host the periods of its quotas, and those in which one was used up."""
        sums = self.run.df_vms().group_by("domain").agg(pl.col("periods", "throttled_periods").sum())
        return {domain: (ended, exhausted) for domain, ended, exhausted in sums.iter_rows()}

    def thread_affinity(self, domain: str, kind: str) -> set[int]:
        """The pCPUs where the `emulator` or `iothread` threads of a domain may run; none, if it has no such."""
        table = self.domains[domain]
        there = {"emulator": {"nic", "disk"} & table.keys(), "iothread": table.get("iothreads", 0)}[kind]
        return set(pcpu_set(table.get(f"{kind}_affinity", "all"), self.topology.pcpus)) if there else set()

    def wakeups_per_s(self, domain: str) -> float:
        """How often its vCPUs wake up from being blocked, all together, in a second."""
        rows = self.run.df_domains().filter(domain=domain)
        return 1e9 * float(rows["wakeups"].sum()) / max(1.0, float(rows["elapsed_ns"].sum()))

    def behind_host(self, domain: str) -> float:
        """The share of a domain's waits that are for the KVM host's own threads, %."""
        rows = self.run.df_wait_shares().filter(domain=domain, by=HOST)
        return float(rows.get_column("of_wait").sum() or 0)

    def affinity(self, domain: str) -> list[list[int]]:
        """For each vCPU the pCPUs that it may run on."""
        left = cpuset(self.document, domain)
        here = [pcpu for pcpu in self.pcpus_of(self.domains[domain].get("pool")) if pcpu in left]
        masks = self._masks(domain, "affinity")
        return [here if one == "all" else [pcpu for pcpu in members(one) if pcpu in left] or here for one in masks]

    def soft_affinity(self, domain: str) -> list[list[int]]:
        """For each vCPU the pCPUs that it prefers, whether that counts or not."""
        pcpus = self.topology.pcpus
        return [sorted(pcpu_set(one, pcpus)) for one in self._masks(domain, "soft_affinity")]

    def memory_nodes(self, domain: str) -> list[int]:
        """The nodes that hold its memory, as far as the scenario says so."""
        given = self.domains[domain].get("memory_nodes", [])
        return list(given) if isinstance(given, list) else [given]

    def _masks(self, domain: str, field: str) -> list[str]:
        table = self.domains[domain]
        given = table.get(field, "all")
        return list(given) if isinstance(given, list) else [given] * table["vcpus"]

    @cached_property
    def topology(self) -> Topology:
        """Which pCPUs are threads of one core, and which are of one node."""
        return Topology.from_host(self.document["host"])

    @property
    def by_thread(self) -> bool:
        """Has a core several threads, and does the scheduler give each away by itself?"""
        return self.topology.threads > 1 and self.document["host"].get("sched_gran", "cpu") == "cpu"

    @cached_property
    def slowed_by_siblings(self) -> bool:
        """Does the profile say that two busy threads of a core slow each other down?"""
        return sharing.known(self.document["host"]["costs"])

    @cached_property
    def slowed_by_distance(self) -> bool:
        """Does the profile say that memory of another node is slower?"""
        costs = self.document["host"]["costs"]
        shares = (value for name, value in costs.items() if name.startswith("memory_share_"))
        return costs.get("numa_distance", LOCAL) > LOCAL and any(shares)

    def idle_of(self, pcpus: list[int]) -> float:
        """Which part of the time these idled."""
        idle, elapsed = (sum(self._pcpus[pcpu][column] for pcpu in pcpus) for column in (0, 1))
        return float(idle) / max(1, float(elapsed))

    @cached_property
    def _pcpus(self) -> Mapping[int, tuple[int, int]]:
        """For each pCPU how long it idled, and of how long, ns over all replications."""
        sums = self.run.df_pcpus().group_by("pcpu").agg(pl.col("idle_ns", "elapsed_ns").sum())
        return {pcpu: (idle, elapsed) for pcpu, idle, elapsed in sums.iter_rows()}

    def overbooked(self, pool: str | None) -> bool:
        """Do the reservations in a pool add up to more than its pCPUs?"""
        spelt = RESERVATIONS.get(self.pools[pool]["scheduler"])
        if spelt is None:
            return False
        given = ({n: self.value(one, n) or 0 for n in (spelt.amount, spelt.period)} for one in self.inside(pool))
        total = 0.0
        for share, one in zip(map(spelt.share, given), self.inside(pool), strict=True):
            total += share * self.domains[one]["vcpus"]
        return total > len(self.pcpus_of(pool))

    def setting(self, domain: str, name: str) -> int | None:
        """A parameter of the scheduler of a domain's pool; `None`: it has no such."""
        pool = self.pool_of(domain)
        param = self.params(pool, "global").get(name)
        if param is None:
            return None
        given = pool.get(name, param["default"])
        if given is not None and int(given) == groups.NONE:
            return linux.by_cpus(name, self.document["host"]["pcpus"])
        return None if given is None else int(given)

    # ---- what was measured ----

    @cached_property
    def late(self) -> list[Late]:
        """Those who are late."""
        return lateness.late(self.run)

    @cached_property
    def starved(self) -> Mapping[str, str]:
        """The domains that starve, each with the reason."""
        return starving.starved(self.run)

    @cached_property
    def asked(self) -> frozenset[str]:
        """The domains that clients ask."""
        return frozenset(app.domain for app in apps(self.scenario) if app.client is not None)

    def serves(self, domain: str) -> bool:
        """Does anybody wait for what a domain does: clients, other domains, or the time of its jobs?"""
        periodic = any(app["kind"] == "periodic" for app in self.domains[domain].get("app", []))
        return periodic or domain in self.asked or bool(self.served_by(domain))

    def pinned_away_from(self, domain: str, idle: float) -> list[int]:
        """The pCPUs of its pool that none of its vCPUs may use, if these idle for more than this part of the time."""
        mask = set(chain.from_iterable(self.affinity(domain)))
        others = [pcpu for pcpu in self.pcpus_of(self.domains[domain].get("pool")) if pcpu not in mask]
        return others if self.idle_of(others) > idle else []

    def gotten(self, domain: str) -> float:
        """CPU time of a domain, % of one pCPU."""
        return runstates.gotten(self.run, domain)

    def most_gotten(self, domain: str) -> float:
        """CPU time of the vCPU of a domain that gets most, % of a pCPU."""
        return runstates.most_gotten(self.run, domain)

    def of_entitlement(self, domain: str) -> float | None:
        """CPU time of a domain, as a part of what its weight entitles it to; `None`: there is no such thing."""
        found = self.run.get(f"{join([domain])}.of_entitlement")
        return None if found is None else found.mean / 100

    def uses_its_weight(self, domain: str, part: float = NEAR_FULL) -> bool:
        """Does it get that part of what its weight entitles it to, or more? If not, it does not wait for its weight."""
        found = self.of_entitlement(domain)
        return found is None or found >= part

    def waited(self, domain: str, *, least: bool = False) -> float:
        """The part of the time for which the vCPU waits that waits most (or least)."""
        shares = runstates.shares(self.run, domain, "runnable")
        return (min if least else max)(shares, default=0.0)

    def occupied(self, domain: str) -> list[float]:
        """For each vCPU the part of the time in which it has work: it runs, waits for a pCPU, or is withheld."""
        states = ("running", "runnable", *(("offline",) if self.domains[domain].get("cap") else ()))
        return [sum(parts) for parts in zip(*(runstates.shares(self.run, domain, one) for one in states), strict=True)]

    def woken_late(self, domain: str) -> Iterator[int]:
        """The vCPUs that sleep now and then, and wait most of the time once they wake up, far longer than they run."""
        rows = self.run.df_vcpus().filter(domain=domain).group_by("vcpu", maintain_order=True)
        sums = rows.agg(pl.col("elapsed_ns", "running_ns", "runnable_ns", "wakeups").sum())
        for vcpu, elapsed, running, runnable, wakeups in sums.iter_rows():
            often = wakeups * 1e9 >= WAKES_PER_S * elapsed
            if often and runnable >= WAITS_MOSTLY * elapsed and runnable >= WAITS_TIMES * running:
                yield vcpu

    def of_wanted(self, domain: str) -> float:
        """The part of the CPU time that its vCPUs want which they get; 1 where they want none."""
        wanted = self.wanted(domain)
        return sum(self.busy(domain)) / wanted if wanted else 1.0

    def woken_waits_ns(self, domain: str) -> tuple[float, float]:
        """The waits of a domain after wake-ups, ns: the largest 99th percentile of any cause, and the longest."""
        rows = self.run.df_wakeup_means().filter(domain=domain)
        p99, longest = (max(rows.get_column(name).to_list(), default=0.0) for name in ("p99_us", "max_us"))
        return 1e3 * p99, 1e3 * longest

    @cached_property
    def bounds(self) -> Bounds:
        """What the host can carry at most, whatever the scheduler does."""
        return bounds(self.scenario)

    def wanted(self, domain: str) -> float:
        """How many pCPUs its vCPUs would have had, had they never waited."""
        return sum(chain(*(runstates.shares(self.run, domain, state) for state in ("running", "runnable"))))

    def mean_waited(self, domain: str) -> float:
        """The part of the time for which the vCPUs of a domain wait, as mean over all of them."""
        shares = runstates.shares(self.run, domain, "runnable")
        return sum(shares) / max(1, len(shares))

    def blocked(self, domain: str) -> float:
        """The part of the time in which the vCPU is blocked that is blocked least."""
        return min(runstates.shares(self.run, domain, "blocked"), default=0.0)

    def busy(self, domain: str) -> list[float]:
        """For each vCPU the part of the time in which it runs."""
        return runstates.shares(self.run, domain, "running")

    def moved(self, domain: str) -> bool:
        """Was one of its vCPUs ever moved to another pCPU?"""
        return int(self.run.df_vcpus().filter(domain=domain)["migrations"].sum()) > 0

    def behind(self, domain: str) -> list[tuple[str, float]]:
        """The domains that made one wait, with the share of its waits, %; the most first."""
        return self._behind.get(domain, [])

    @cached_property
    def _behind(self) -> Mapping[str, list[tuple[str, float]]]:
        rows = self.run.df_wait_shares().sort("of_elapsed", "by", descending=[True, False])
        found: dict[str, list[tuple[str, float]]] = {}
        for domain, by, of_wait in rows.select("domain", "by", "of_wait").iter_rows():
            if by in self.domains:
                found.setdefault(domain, []).append((by, of_wait or 0.0))
        return found


def of_pool(pool: str | None, name: str) -> str:
    """The path of a pool's field."""
    return f"host.{name}" if pool is None else join(["pool", pool, name])


def of_domain(domain: str, name: str) -> str:
    """The path of a domain's field."""
    return join(["domain", domain, name])


def measured(scenario: Scenario, jobs: int) -> tuple[Host, Interrupted | None]:
    """A host, as far as it was run, and what cut that short.

    Raises:
        KeyboardInterrupt: it was cancelled before its first replication was over.
    """
    try:
        return Host(scenario, run(scenario, jobs=jobs, keep_finished=True)), None
    except Interrupted as interrupted:
        return Host(interrupted.partial.scenario, interrupted.partial), interrupted
