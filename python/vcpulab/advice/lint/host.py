"""The host that rules check, with its measurements, and the findings of rules."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, Literal

import polars as pl

from vcpulab._work.effort import Effort
from vcpulab.advice import core_sharing, lateness, runstates, starvation
from vcpulab.advice.bounds import Bounds, bounds
from vcpulab.advice.capacity.occupancy import NEAR_FULL
from vcpulab.advice.isolation import pcpus_of
from vcpulab.advice.lateness import Late
from vcpulab.advice.reservations import reservations
from vcpulab.errors import Interrupted
from vcpulab.hypervisors import groups, linux
from vcpulab.hypervisors.settings import DOM0, POOL_0
from vcpulab.results.addresses import apps
from vcpulab.results.run import Run, run
from vcpulab.scenario import model
from vcpulab.scenario.catalogue import generation_of
from vcpulab.scenario.cgroups import version_of, weight_most
from vcpulab.scenario.parameters import Param, Scope
from vcpulab.scenario.scenario import Scenario, join
from vcpulab.scenario.threads import HOST, cpuset, quota, quota_of
from vcpulab.scenario.topology import Topology
from vcpulab.scenario.units import members, pcpu_set

Frame = model.Host | model.Pool
"""A pool with its scheduler and parameters: for `Pool-0` the host."""

WAITS = 0.25
"""The waiting fraction of the time above which a vCPU is held back. Assumed."""
FEW_WAITS = 0.1
"""The waiting fraction of the time below which a vCPU has the CPU time that it needs. Assumed."""
OF_WAITS = 10.0
"""The share of a domain's waits, %, above which the domain that it waits for matters. Assumed."""
IDLE = 0.1
"""The idle fraction of the time above which pCPUs have room. Assumed."""
WAITS_MOSTLY = 0.5
"""The waiting fraction of the time above which a vCPU that wakes up is held back, even if no client is late ..."""
WAITS_TIMES = 10
"""... if it waits at least this many times as long as it runs ..."""
WAKES_PER_S = 10
"""... and wakes up at least this often per second. Assumed, all three."""
GROUP_WEIGHT = 100
"""The default of `cpu.weight`."""
XEN_WEIGHT_MAX = 65_535
"""The largest weight that Xen's toolstack takes."""
_NEVER_HALT = ("hog", "spin")
"""Kinds of applications without an end of their work."""
LOCAL = 10
"""The distance of a node from itself: ACPI, System Locality Information Table."""


@dataclass(frozen=True)
class Finding:
    """A setting or a bottleneck that is probably not intended."""

    path: str
    """The field, as a dotted path."""
    reason: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    """The fix, as `Scenario.change` takes it; empty: the rule knows no fix."""
    rule: str = ""
    """The name of the rule; the rule sets it."""
    otherwise: tuple[Mapping[str, Any], ...] = ()
    """Further fixes, to try if `changes` does harm or does not help; the first that helps is used."""
    concerned: tuple[str, ...] = ()
    """The late services, as in addresses; empty: the setting is odd by itself."""


class Host:
    """The scenario that rules check, with its simulation."""

    def __init__(self, scenario: Scenario, run: Run) -> None:
        self.scenario = scenario
        self.run = run
        """The simulation of the scenario, unchanged."""

    @property
    def domains(self) -> Mapping[str, model.Domain]:
        """The domains by name."""
        return self.scenario.domains

    @cached_property
    def pools(self) -> Mapping[str, Frame]:
        """The pools by name, `Pool-0` first."""
        return {POOL_0: self.scenario.host, **self.scenario.pools}

    def pool_of(self, domain: str) -> Frame:
        """The pool that a domain is in."""
        return self.pools[self.domains[domain].pool]

    def inside(self, pool: str) -> list[str]:
        """The domains in a pool."""
        return [name for name, domain in self.domains.items() if domain.pool == pool]

    def pcpus_of(self, pool: str) -> list[int]:
        """The pCPUs of a pool."""
        return pcpus_of(self.scenario.model, pool)

    def params(self, pool: Frame, scope: Scope) -> dict[str, Param]:
        """Name to parameter of a pool's scheduler."""
        generation = generation_of(pool.scheduler, pool.generation)
        return generation.of_scope(scope) if generation is not None else {}

    def value(self, domain: str, name: str) -> int | None:
        """The value of a domain's parameter; `None`: unknown to its scheduler, or without a default."""
        param = self.params(self.pool_of(domain), "domain").get(name)
        if param is None:
            return None
        given = self.domains[domain].params.get(name, param.default)
        return None if given is None else int(given)

    def served_by(self, driver: str) -> list[str]:
        """The domains whose I/O a driver domain does."""
        return self._served.get(driver, [])

    @cached_property
    def _served(self) -> Mapping[str, list[str]]:
        """Driver domain to the domains that it serves."""
        served: dict[str, list[str]] = {}
        for name, domain in self.domains.items():
            drivers = [device.driver_domain for device in (domain.nic, domain.disk) if device is not None]
            for driver in dict.fromkeys(filter(None, drivers)):
                served.setdefault(driver, []).append(name)
        return served

    @cached_property
    def drivers(self) -> list[str]:
        """The domains that do I/O for other domains."""
        return [name for name in self.domains if self.served_by(name)]

    @cached_property
    def controls(self) -> list[str]:
        """Dom0 and the driver domains; none on a KVM host."""
        if self.is_kvm:
            return []
        return [name for name, domain in self.domains.items() if name == DOM0 or domain.driver_domain]

    def is_held_by_its_settings(self, domain: str) -> bool:
        """Is waiting intended by a domain's settings: a cap, a quota, a reservation, a timetable, its class?"""
        table, scheduler = self.domains[domain], self.pool_of(domain).scheduler
        around = (table.cgroup or "").split("/")
        outer = ["/".join(around[:n]) for n in range(1, len(around) + 1)]
        idle = any(self.scenario.model.cgroups[group].idle for group in outer if group in self.scenario.model.cgroups)
        limited = (
            table.params.get("cap")
            or self.quota(domain)
            or table.params.get("idle")
            or idle
            or table.sched_policy in ("idle", "batch")
        )
        return bool(limited) or scheduler in reservations() or scheduler in ("null", "arinc653")

    def taken_out(self, domain: str, *fields: str) -> dict[str, None]:
        """The changes that remove fields of a domain from the file, for the fields that the file states."""
        stated = self.scenario.stated("domain", domain)
        return {of_domain(domain, field): None for field in fields if field in stated}

    @cached_property
    def is_kvm(self) -> bool:
        """Is it a KVM host, whose vCPUs are threads in control groups?"""
        return self.scenario.host.hypervisor == "kvm"

    @cached_property
    def weight_most(self) -> int:
        """The largest weight that a domain, or a control group, can have."""
        return weight_most(version_of(self.scenario.host)) if self.is_kvm else XEN_WEIGHT_MAX

    @cached_property
    def machines(self) -> list[str]:
        """The virtual machines of a KVM host: domains that are no daemons; none on another host."""
        return [name for name, domain in self.domains.items() if self.is_kvm and not domain.daemon]

    @cached_property
    def daemons(self) -> list[str]:
        """The daemons of a KVM host."""
        return [name for name, domain in self.domains.items() if domain.daemon]

    def top_group(self, domain: str) -> str:
        """The outermost control group around a domain; empty: only the root group."""
        return (self.domains[domain].cgroup or "").split("/", 1)[0]

    def is_beside(self, domain: str, neighbor: str) -> bool:
        """Do the weights of two domains compare: on a KVM host, are both in the same control group?"""
        return self.domains[domain].cgroup == self.domains[neighbor].cgroup

    def group_weight(self, group: str) -> int:
        """The weight of a control group that several domains share."""
        groups = self.scenario.model.cgroups
        return groups[group].weight if group in groups else GROUP_WEIGHT

    def quota(self, domain: str) -> float:
        """The limit of a VM of a KVM host, for all its vCPUs together, % of one pCPU; 0: no limit."""
        return 100 * (quota(self.scenario.domains[domain]) or 0.0)

    def quota_of(self, domain: str, part: Literal["global", "vcpu"]) -> float:
        """The limit of a VM of a KVM host (`global`), or of each of its vCPUs (`vcpu`), % of a pCPU; 0: no limit."""
        return 100 * (quota_of(self.scenario.domains[domain], part) or 0.0)

    def throttled(self, domain: str) -> float:
        """The fraction of quota periods, over all groups of a VM, at whose end the quota was used up."""
        ended, exhausted = self._periods.get(domain, (0, 0))
        return exhausted / max(1, ended)

    @cached_property
    def _periods(self) -> Mapping[str, tuple[int, int]]:
        """VM of a KVM host to the number of its quota periods, and of those in which the quota was used up."""
        sums = self.run.df_vms().group_by("domain").agg(pl.col("periods", "throttled_periods").sum())
        return {domain: (ended, exhausted) for domain, ended, exhausted in sums.iter_rows()}

    def thread_affinity(self, domain: str, kind: Literal["emulator", "iothread"]) -> set[int]:
        """The pCPUs where the `emulator` or `iothread` threads of a domain may run; empty without such threads."""
        table = self.domains[domain]
        if kind == "emulator":
            has_threads, affinity = table.nic is not None or table.disk is not None, table.emulator_affinity
        else:
            has_threads, affinity = table.iothreads > 0, table.iothread_affinity
        return set(pcpu_set(affinity, self.topology.pcpus)) if has_threads else set()

    def wakeups_per_s(self, domain: str) -> float:
        """The wake-ups of all vCPUs of a domain per second."""
        rows = self.run.df_domains().filter(domain=domain)
        return 1e9 * float(rows["wakeups"].sum()) / max(1.0, float(rows["elapsed_ns"].sum()))

    def halts_per_s(self, domain: str) -> float:
        """An estimate of the halts of all vCPUs of a domain per second, including those that end while they are polled.

        A vCPU that polls does not block, so it has no wake-up; but each finished job or request may end in a halt.
        """
        ends = [
            app.name
            for app in apps(self.scenario)
            if app.domain == domain and app.client is None and app.kind not in _NEVER_HALT
        ]
        finished = (self.run.get(f"{name}.throughput") for name in ends)
        return max(self.wakeups_per_s(domain), sum(rate.mean for rate in finished if rate is not None))

    def behind_host(self, domain: str) -> float:
        """The share of a domain's waits that are for the KVM host's own threads, %."""
        rows = self.run.df_wait_shares().filter(domain=domain, by=HOST)
        return float(rows.get_column("of_wait").sum() or 0)

    def affinity(self, domain: str) -> list[list[int]]:
        """The pCPUs that each vCPU may run on."""
        left = cpuset(self.scenario.model, domain)
        here = [pcpu for pcpu in self.pcpus_of(self.domains[domain].pool) if pcpu in left]
        masks = self._masks(domain, self.domains[domain].affinity)
        return [here if mask == "all" else [pcpu for pcpu in members(mask) if pcpu in left] or here for mask in masks]

    def soft_affinity(self, domain: str) -> list[list[int]]:
        """The pCPUs that each vCPU prefers, even if the preference has no effect."""
        masks = self._masks(domain, self.domains[domain].soft_affinity or "all")
        return [sorted(pcpu_set(mask, self.topology.pcpus)) for mask in masks]

    def prefers(self, domain: str) -> bool:
        """`True`: the scenario states a soft affinity of the domain."""
        return self.domains[domain].soft_affinity not in (None, "all")

    def memory_nodes(self, domain: str) -> list[int]:
        """The nodes that hold a domain's memory, if the scenario states them."""
        return list(self.domains[domain].memory_nodes)

    def _masks(self, domain: str, affinity: str | tuple[str, ...]) -> Sequence[str]:
        """The affinity of each vCPU."""
        return [affinity] * self.domains[domain].vcpus if isinstance(affinity, str) else affinity

    @cached_property
    def topology(self) -> Topology:
        """The assignment of pCPUs to cores, sockets and nodes."""
        return Topology.from_host(self.scenario.host)

    @property
    def by_thread(self) -> bool:
        """Does a core have several threads that are scheduled one by one?"""
        return self.topology.threads > 1 and self.scenario.host.sched_gran == "cpu"

    @cached_property
    def slowed_by_siblings(self) -> bool:
        """Does the profile contain a slowdown for two busy threads of a core?"""
        return core_sharing.has_sibling_costs(self.scenario.host.costs)

    @cached_property
    def slowed_by_distance(self) -> bool:
        """Does the profile contain slower access to the memory of another node?"""
        costs = self.scenario.host.costs
        shares = (costs.constant(f"memory_share_{kind}_percent") for kind in core_sharing.KINDS)
        return costs.numa_distance > LOCAL and any(shares)

    def idle_of(self, pcpus: list[int]) -> float:
        """The idle fraction of the time of some pCPUs."""
        idle, elapsed = (sum(self._pcpus[pcpu][column] for pcpu in pcpus) for column in (0, 1))
        return float(idle) / max(1, float(elapsed))

    @cached_property
    def _pcpus(self) -> Mapping[int, tuple[int, int]]:
        """Number of a pCPU to its idle time and the elapsed time, ns over all replications."""
        sums = self.run.df_pcpus().group_by("pcpu").agg(pl.col("idle_ns", "elapsed_ns").sum())
        return {pcpu: (idle, elapsed) for pcpu, idle, elapsed in sums.iter_rows()}

    def overbooked(self, pool: str) -> bool:
        """Do the reservations in a pool add up to more than its pCPUs?"""
        spelt = reservations().get(self.pools[pool].scheduler)
        if spelt is None:
            return False
        given = ({n: self.value(domain, n) or 0 for n in (spelt.amount, spelt.period)} for domain in self.inside(pool))
        total = 0.0
        for share, domain in zip(map(spelt.share, given), self.inside(pool), strict=True):
            total += share * self.domains[domain].vcpus
        return total > len(self.pcpus_of(pool))

    def setting(self, domain: str, name: str) -> int | None:
        """The value of a parameter of the scheduler of a domain's pool; `None`: the scheduler does not have it."""
        pool = self.pool_of(domain)
        param = self.params(pool, "global").get(name)
        if param is None:
            return None
        given = pool.params.get(name, param.default)
        if given is not None and int(given) == groups.NONE:
            return linux.by_cpus(name, self.scenario.host.pcpus, pool.generation)
        return None if given is None else int(given)

    def weighs_each_vcpu(self, domain: str) -> bool:
        """Whether a domain's weight counts for each of its busy vCPUs instead of being divided among them."""
        pool = self.pool_of(domain)
        mode = self.params(pool, "global").get("cgroup_mode")
        return mode is not None and pool.params.get("cgroup_mode", mode.default) != "smp"

    # ---- what was measured ----

    @cached_property
    def late(self) -> list[Late]:
        """The late services."""
        return lateness.late(self.run)

    @cached_property
    def starved(self) -> Mapping[str, str]:
        """The domains that starve, each with the reason."""
        return starvation.starved(self.run)

    @cached_property
    def with_clients(self) -> frozenset[str]:
        """The domains that have clients."""
        return frozenset(app.domain for app in apps(self.scenario) if app.client is not None)

    def serves(self, domain: str) -> bool:
        """Does a domain have clients, serve other domains, or have periodic jobs?"""
        periodic = any(app.kind == "periodic" for app in self.domains[domain].apps)
        return periodic or domain in self.with_clients or bool(self.served_by(domain))

    def pinned_away_from(self, domain: str, idle: float) -> list[int]:
        """The pCPUs of a domain's pool that its pinning excludes; empty unless they idle for more than a fraction."""
        mask = set(chain.from_iterable(self.affinity(domain)))
        excluded = [pcpu for pcpu in self.pcpus_of(self.domains[domain].pool) if pcpu not in mask]
        return excluded if self.idle_of(excluded) > idle else []

    def gotten(self, domain: str) -> float:
        """CPU time of a domain, % of one pCPU."""
        return runstates.gotten(self.run, domain)

    def most_gotten(self, domain: str) -> float:
        """CPU time of the vCPU of a domain that gets most, % of a pCPU."""
        return runstates.most_gotten(self.run, domain)

    def of_entitlement(self, domain: str) -> float | None:
        """CPU time of a domain as a fraction of the entitlement by its weight; `None`: no entitlement."""
        percent = self.run.get(f"{join([domain])}.of_entitlement")
        return None if percent is None else percent.mean / 100

    def uses_its_weight(self, domain: str, part: float = NEAR_FULL) -> bool:
        """Does a domain get at least a fraction of its entitlement? If not, it does not wait because of its weight."""
        fraction = self.of_entitlement(domain)
        return fraction is None or fraction >= part

    def waited(self, domain: str, *, least: bool = False) -> float:
        """The waiting fraction of the time of the vCPU that waits most (or least)."""
        shares = runstates.shares(self.run, domain, "runnable")
        return (min if least else max)(shares, default=0.0)

    def occupied(self, domain: str) -> list[float]:
        """The fraction of the time in which each vCPU has work: it runs, waits for a pCPU, or is throttled."""
        states = ("running", "runnable", *(("offline",) if self.domains[domain].params.get("cap") else ()))
        by_state = (runstates.shares(self.run, domain, state) for state in states)
        return [sum(parts) for parts in zip(*by_state, strict=True)]

    def woken_late(self, domain: str) -> Iterator[int]:
        """The vCPUs that wake up regularly, wait most of the time, and wait far longer than they run."""
        rows = self.run.df_vcpus().filter(domain=domain).group_by("vcpu", maintain_order=True)
        sums = rows.agg(pl.col("elapsed_ns", "running_ns", "runnable_ns", "wakeups").sum())
        for vcpu, elapsed, running, runnable, wakeups in sums.iter_rows():
            often = wakeups * 1e9 >= WAKES_PER_S * elapsed
            if often and runnable >= WAITS_MOSTLY * elapsed and runnable >= WAITS_TIMES * running:
                yield vcpu

    def of_wanted(self, domain: str) -> float:
        """The fraction that a domain gets of the CPU time that its vCPUs want; 1 if they want none."""
        wanted = self.wanted(domain)
        return sum(self.busy(domain)) / wanted if wanted else 1.0

    def woken_waits_ns(self, domain: str) -> tuple[float, float]:
        """The waits of a domain after wake-ups, ns: the largest 99th percentile of any cause, and the longest wait."""
        rows = self.run.df_wakeup_means().filter(domain=domain)
        p99, longest = (max(rows.get_column(name).to_list(), default=0.0) for name in ("p99_us", "max_us"))
        return 1e3 * p99, 1e3 * longest

    @cached_property
    def bounds(self) -> Bounds:
        """The bounds of the host under any scheduler."""
        return bounds(self.scenario)

    def wanted(self, domain: str) -> float:
        """The number of pCPUs that the vCPUs of a domain would use if they never waited."""
        return sum(chain(*(runstates.shares(self.run, domain, state) for state in ("running", "runnable"))))

    def mean_waited(self, domain: str) -> float:
        """The waiting fraction of the time, mean over the vCPUs of a domain."""
        shares = runstates.shares(self.run, domain, "runnable")
        return sum(shares) / max(1, len(shares))

    def blocked(self, domain: str) -> float:
        """The blocked fraction of the time of the vCPU that is blocked least."""
        return min(runstates.shares(self.run, domain, "blocked"), default=0.0)

    def busy(self, domain: str) -> list[float]:
        """The running fraction of the time of each vCPU."""
        return runstates.shares(self.run, domain, "running")

    def moved(self, domain: str) -> bool:
        """Was a vCPU of the domain ever moved to another pCPU?"""
        return int(self.run.df_vcpus().filter(domain=domain)["migrations"].sum()) > 0

    def behind(self, domain: str) -> list[tuple[str, float]]:
        """The domains that a domain waited for, with their share of its waits, %; the largest first."""
        return self._behind.get(domain, [])

    @cached_property
    def _behind(self) -> Mapping[str, list[tuple[str, float]]]:
        rows = self.run.df_wait_shares().sort("of_elapsed", "by", descending=[True, False])
        shares: dict[str, list[tuple[str, float]]] = {}
        for domain, by, of_wait in rows.select("domain", "by", "of_wait").iter_rows():
            if by in self.domains:
                shares.setdefault(domain, []).append((by, of_wait or 0.0))
        return shares


def of_pool(pool: str, name: str) -> str:
    """The path of a pool's field."""
    return f"host.{name}" if pool == POOL_0 else join(["pool", pool, name])


def of_domain(domain: str, name: str) -> str:
    """The path of a domain's field."""
    return join(["domain", domain, name])


REPLICATIONS = 10
"""The fewest replications of each simulation, if their number is not stated."""


def with_effort(scenario: Scenario, effort: Effort) -> Scenario:
    """The scenario with the seed and at least the replications of an effort."""
    least = REPLICATIONS if effort.replications is None else effort.replications
    return scenario.with_run(seed=effort.seed, replications=max(least, scenario.replications))


def measured(scenario: Scenario, jobs: int) -> tuple[Host, Interrupted | None]:
    """A host with its finished replications, and the interruption if some are missing.

    Raises:
        KeyboardInterrupt: the run was cancelled before its first replication was finished.
    """
    try:
        return Host(scenario, run(scenario, jobs=jobs, keep_finished=True)), None
    except Interrupted as interrupted:
        return Host(interrupted.partial.scenario, interrupted.partial), interrupted
