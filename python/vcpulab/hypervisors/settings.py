"""The settings of a scenario, or of a change of one, on a host, independent of the toolstack."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from vcpulab.scenario import model
from vcpulab.scenario.catalogue import generation_of
from vcpulab.scenario.cgroups import Version, version_of
from vcpulab.scenario.names import in_short
from vcpulab.scenario.parameters import Param, Scope, Tools
from vcpulab.scenario.scenario import Scenario
from vcpulab.scenario.topology import Topology
from vcpulab.scenario.units import members, pcpu_set, spans

POOL_0 = "Pool-0"
DOM0 = "dom0"
DEFAULT_SLICES = ("machine.slice", "system.slice")
"""The default control groups of a virtual machine, and of a daemon of the host."""
_GRANULARITY = model.Host({}).sched_gran
"""`sched_gran` of a host that was just installed."""
_HALT_POLL_US = 200
"""`halt_poll_us` of a host that was just installed."""
_NEW_GROUP = model.Cgroup({})


@dataclass(frozen=True)
class Pool:
    """A CPU pool, with its scheduler."""

    name: str
    scheduler: str
    generation: str
    pcpus: tuple[int, ...]
    tools: Tools = field(compare=False, repr=False)
    """The tools that set its parameters."""
    params: Sequence[Param] = field(compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.scheduler} ({self.generation})"

    def same_scheduler(self, old: "Pool | None") -> bool:
        """`True`: the old pool of the same name has the same scheduler."""
        return old is not None and (self.scheduler, self.generation) == (old.scheduler, old.generation)

    @property
    def is_linux(self) -> bool:
        """`True`: the pool's scheduler is one of Linux's, whose releases share the parameters of domains."""
        return self.scheduler.startswith("linux-")

    def of_scope(self, scope: Scope) -> list[Param]:
        """The `global` parameters of the pool's scheduler, or those of a `domain`."""
        return [param for param in self.params if param.scope == scope]


@dataclass(frozen=True)
class Scheduler:
    """The host has this scheduler."""

    pool: Pool
    another_release: bool = False
    """`True`: the scheduler needs another release of the hypervisor."""


@dataclass(frozen=True)
class Pcpus:
    """The host has this number of pCPUs."""

    count: int
    old_count: int | None
    """The number before the change, if it is known."""


@dataclass(frozen=True)
class Machine:
    """Fields that only another machine satisfies."""

    fields: tuple[str, ...]


@dataclass(frozen=True)
class Shape:
    """The host has these sockets, cores, threads and nodes."""

    topology: Topology


@dataclass(frozen=True)
class Smt:
    """SMT switched on or off: whether the second threads of all cores are online."""

    pool: Pool
    on: bool
    topology: Topology
    """With all threads."""
    restarts: bool
    """Whether the host restarts for this or another change; under core scheduling this change requires it."""


@dataclass(frozen=True)
class Granularity:
    """vCPUs are scheduled one by one, or by cores or sockets."""

    pool: Pool
    unit: str
    """`cpu`, `core` or `socket`."""


@dataclass(frozen=True)
class Governor:
    """The governor that chooses the clock rates of the cores."""

    pool: Pool
    name: str
    """`performance`, `powersave` or `ondemand`."""
    restarts: bool
    """Whether another change restarts the host."""


@dataclass(frozen=True)
class PoolMade:
    """The creation of a pool, possibly replacing one with another scheduler."""

    pool: Pool
    first: Pool
    moved: tuple[str, ...] | None = None
    """The domains in the pool that it replaces; `None`: it replaces no pool."""


@dataclass(frozen=True)
class PoolsByNode:
    """Each node is made a pool of its own, all with the scheduler of `Pool-0`, which keeps the first."""

    pool: Pool
    """`Pool-0`."""


@dataclass(frozen=True)
class PoolGone:
    """A pool is no longer there; its pCPUs are those of `Pool-0`."""

    pool: Pool


@dataclass(frozen=True)
class PoolPcpus:
    """A pool has other pCPUs."""

    pool: Pool
    more: tuple[int, ...]
    fewer: tuple[int, ...]


@dataclass(frozen=True)
class Params:
    """Parameters of a pool's scheduler, or of a domain in the pool."""

    pool: Pool
    domain: str | None
    """The domain; `None`: the parameters are the scheduler's own."""
    values: Mapping[str, Any]
    """The parameters to set."""
    table: Mapping[str, Any] = field(compare=False)
    """The value of every parameter, including these."""
    moment: Literal["run time", "restart", "action"] = "run time"
    """`restart`: the host restarts anyway; `action`: at a time while the host runs."""

    @property
    def owner(self) -> str:
        """The owner, in words."""
        return str(self.pool) if self.domain is None else f"domain {self.domain}"


@dataclass(frozen=True)
class Vcpus:
    """A domain has this number of vCPUs."""

    pool: Pool
    domain: str
    count: int
    old_count: int | None
    """The number before the change, if it is known."""


@dataclass(frozen=True)
class Online:
    """A vCPU is taken online or offline."""

    pool: Pool
    domain: str
    vcpu: int
    on: bool
    count: int | None
    """The number of vCPUs online after the change, if these are the first ones."""


@dataclass(frozen=True)
class Affinity:
    """The vCPUs of a domain may run on these pCPUs only."""

    pool: Pool
    domain: str
    pcpus: str | tuple[str, ...]
    """The pCPUs of all its vCPUs together, or of each vCPU; `all`: every pCPU."""
    vcpu: int | None = None
    """The vCPU concerned; `None`: all."""
    soft: bool = False
    """`True`: the vCPUs only prefer these pCPUs."""
    vcpus: int = field(default=1, compare=False)
    """The number of its vCPUs."""


@dataclass(frozen=True)
class MemoryNodes:
    """The memory of a domain is on these nodes."""

    pool: Pool
    domain: str
    nodes: tuple[int, ...]


@dataclass(frozen=True)
class MemoryStays:
    """Domains run on other nodes than before, and their memory is to be there, too."""

    pool: Pool
    domains: tuple[str, ...]

    def __str__(self) -> str:
        names = in_short(self.domains)
        return (
            f"{names}: memory is on the nodes of the affinity when a domain is created; until then it stays as it was"
        )


@dataclass(frozen=True)
class Member:
    """A domain is in this pool."""

    pool: Pool
    domain: str


@dataclass(frozen=True)
class Backend:
    """A netback (of a `nic`) or blkback (of a `disk`) is on this vCPU of its driver domain."""

    pool: Pool
    domain: str
    kind: Literal["nic", "disk"]
    driver: str
    vcpu: int
    emulated: bool

    def __str__(self) -> str:
        name = "emulated device" if self.emulated else {"nic": "netback", "disk": "blkback"}[self.kind]
        return f"{name} of {self.domain}"


@dataclass(frozen=True)
class Interrupts:
    """The interrupts of a NIC or disk are taken by this vCPU of its driver domain."""

    pool: Pool
    name: str
    kind: Literal["nic", "disk"]
    driver: str
    vcpu: int


@dataclass(frozen=True)
class Life:
    """A domain is created, paused, saved and so on."""

    pool: Pool
    domain: str
    op: str
    saved: bool = False
    """`True`: only the saved state of the domain exists."""


@dataclass(frozen=True)
class HaltPolling:
    """The longest time for which a halted vCPU keeps its pCPU, unless another thread is runnable there."""

    pool: Pool
    us: int
    """The time in µs; 0: no halt polling."""


@dataclass(frozen=True)
class Isolation:
    """The CPUs that an option of the kernel's command line leaves alone."""

    pool: Pool
    option: Literal["isolcpus", "nohz_full"]
    cpus: str | None
    """The CPUs; `None`: none any more."""


@dataclass(frozen=True)
class GuestThreads:
    """The threads of each core that the guest of a VM is told of."""

    pool: Pool
    domain: str
    threads: int
    vcpus: int


@dataclass(frozen=True)
class CgroupVersion:
    """The host has another version of control groups than before."""

    pool: Pool
    version: Version


@dataclass(frozen=True)
class Group:
    """A control group that no domain has to itself."""

    pool: Pool
    path: str
    """Below the root group, as in `machine.slice`."""
    values: Mapping[str, Any]
    """The parameters to set."""
    table: Mapping[str, Any] = field(compare=False)
    """The value of every parameter, including these."""


@dataclass(frozen=True)
class InGroup:
    """The control group of a domain is inside this one."""

    pool: Pool
    domain: str
    path: str


@dataclass(frozen=True)
class ThreadAffinity:
    """Threads of a domain other than its vCPUs may run on these pCPUs only."""

    pool: Pool
    domain: str
    threads: Literal["emulator", "iothread"]
    """vhost threads go with the emulator's."""
    pcpus: str
    """The pCPUs; `all`: every pCPU."""


@dataclass(frozen=True)
class ThreadClass:
    """The vCPUs of a domain are threads of this scheduling class."""

    pool: Pool
    domain: str
    policy: str
    """`other`, `batch`, `idle`, `fifo` or `rr`."""
    priority: int
    """The priority in `fifo` and `rr`."""
    vcpus: int = field(compare=False)
    """The number of its vCPUs."""


@dataclass(frozen=True)
class Nice:
    """The vCPUs of a domain are threads of this nice value."""

    pool: Pool
    domain: str
    nice: int


@dataclass(frozen=True)
class IoThreads:
    """A domain has this number of I/O threads."""

    pool: Pool
    domain: str
    count: int
    old_count: int


@dataclass(frozen=True)
class HostInterrupts:
    """The interrupts of a NIC or disk of a host without driver domains are taken by this pCPU."""

    pool: Pool
    name: str
    kind: Literal["nic", "disk"]
    pcpu: int


@dataclass(frozen=True)
class AnotherHypervisor:
    """The host has another hypervisor than before."""

    pool: Pool
    hypervisor: str

    def __str__(self) -> str:
        return f"host.hypervisor = {self.hypervisor}: requires another host"


@dataclass(frozen=True)
class NoHypervisor:
    """The host is bare metal."""


Setting = (
    Scheduler
    | Pcpus
    | Machine
    | Shape
    | Smt
    | Granularity
    | Governor
    | PoolMade
    | PoolsByNode
    | PoolGone
    | PoolPcpus
    | Params
    | Vcpus
    | Online
    | Affinity
    | MemoryNodes
    | MemoryStays
    | Member
    | Backend
    | Interrupts
    | Life
    | HaltPolling
    | Isolation
    | GuestThreads
    | CgroupVersion
    | Group
    | InGroup
    | ThreadAffinity
    | ThreadClass
    | Nice
    | IoThreads
    | HostInterrupts
    | AnotherHypervisor
    | NoHypervisor
)


@dataclass(frozen=True)
class Change:
    """The settings to make on a host."""

    toolstack: str
    """The host's own toolstack."""
    first: Pool
    """The host's `Pool-0`."""
    pcpus: int
    settings: tuple[Setting, ...]
    later: tuple[tuple[str, Setting], ...]
    """Settings with a time, as in the scenario's actions."""
    hypervisor: str = "xen"
    """The host's hypervisor: `xen` or `kvm`."""
    groups: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The parent control group of each domain that the scenario puts into one, by domain."""
    cgroups: Version = 2
    """The version of the host's control groups."""
    daemons: frozenset[str] = frozenset()
    """The domains that are not virtual machines: their vCPUs are threads of a service of the host."""


def set_up(scenario: Scenario) -> Change:
    """The settings of a scenario on a host that was just installed."""
    return _change(None, scenario)


def difference(before: Scenario, after: Scenario) -> Change:
    """The settings that turn a scenario that is set up into another one."""
    return _change(before, after)


def _change(before: Scenario | None, after: Scenario) -> Change:
    old, new = None if before is None else before.model, after.model
    host = new.host
    another = old is not None and old.host.hypervisor != host.hypervisor
    if another:
        # A host with another hypervisor is set up from the beginning.
        before = old = None
    pools, old_pools = _pools(new), {} if old is None else _pools(old)
    settings: list[Setting]
    later: list[tuple[str, Setting]] = []
    if host.bare_metal:
        settings = [NoHypervisor()] if old is None or old.host != host else []
    else:
        settings = [*_host(old, new, pools[POOL_0], old_pools.get(POOL_0)), *_of_pools(old, new, pools, old_pools)]
        settings += [*_halt_polling(old, new, pools[POOL_0]), *_isolation(old, new, pools[POOL_0])]
        settings += [*_groups(old, new, pools[POOL_0])]
        # Xen's own default is another one.
        named = after.stated("host").get("governor") if old is None else host.governor
        if named is not None and (old is None or old.host.governor != named):
            restarts = not pools[POOL_0].same_scheduler(old_pools.get(POOL_0))
            settings.append(Governor(pools[POOL_0], named, restarts))
        old_actions = [] if old is None else list(_Actions(old, old_pools).all())
        here: list[Setting] = []
        for at, setting in _Actions(new, pools).all():
            if (at, setting) not in old_actions:
                later.append((at, setting))
        for name, domain in new.domains.items():
            if domain.start.ns == 0:
                was = None if old is None else old.domains.get(name)
                here += _of_domain(name, *_without_isolation(domain, was, old, new), (pools, old_pools), host.pcpus)
        settings += [*here, *_memory_stays(old, new, pools[POOL_0]), *_places(before, after, pools[POOL_0])]
    if another:
        settings.insert(0, AnotherHypervisor(pools[POOL_0], host.hypervisor))
    return Change(
        host.toolstack,
        pools[POOL_0],
        host.pcpus,
        tuple(settings),
        tuple(later),
        host.hypervisor,
        {name: domain.cgroup for name, domain in new.domains.items() if domain.cgroup is not None},
        version_of(host),
        frozenset(name for name, domain in new.domains.items() if domain.daemon),
    )


def _pools(scenario: model.Model) -> dict[str, Pool]:
    """The pools by name: `Pool-0` with the pCPUs that no other pool has, and the scenario's own pools."""
    pcpus = {name: tuple(members(pool.pcpus)) for name, pool in scenario.pools.items()}
    taken = {pcpu for numbers in pcpus.values() for pcpu in numbers}
    pcpus[POOL_0] = tuple(pcpu for pcpu in range(scenario.host.pcpus) if pcpu not in taken)
    return {name: _pool(name, _frame(scenario, name), pcpus[name]) for name in (POOL_0, *scenario.pools)}


def _pool(name: str, frame: model.Host | model.Pool, pcpus: tuple[int, ...]) -> Pool:
    generation = generation_of(frame.scheduler, frame.generation)
    assert generation is not None, "a checked scenario names what there is"
    return Pool(name, frame.scheduler, frame.generation, pcpus, generation.tools, generation.params)


def _host(old: model.Model | None, new: model.Model, pool: Pool, was: Pool | None) -> Iterator[Setting]:
    host, before = new.host, None if old is None else old.host
    if not pool.same_scheduler(was):
        yield Scheduler(pool, was is not None and pool.generation != was.generation)
    smt = None if before is None else _smt(before, host, pool)
    if smt is not None:
        yield smt
    elif before is None and host.topology is not None:
        yield Shape(Topology.from_host(host))
    elif (before is None or host.pcpus != before.pcpus) and (pool.tools.tool or host.hypervisor == "kvm"):
        yield Pcpus(host.pcpus, None if before is None else before.pcpus)
    if host.sched_gran != (_GRANULARITY if before is None else before.sched_gran):
        yield Granularity(pool, host.sched_gran)
    if before is not None:
        fields = ("profile", "topology", "pcpus_per_socket", "costs")
        machine = tuple(field for field in fields if getattr(before, field) != getattr(host, field))
        if machine and before.pcpus == host.pcpus:
            yield Machine(machine)


def _smt(before: model.Host, host: model.Host, pool: Pool) -> Smt | None:
    """The change of SMT, if the hosts differ only in the threads of the same cores."""
    old, new = Topology.from_host(before), Topology.from_host(host)
    same = (old.sockets, old.cores, old.nodes) == (new.sockets, new.cores, new.nodes)
    if not same or 1 not in (old.threads, new.threads) or old.threads == new.threads or before.topology is None:
        return None
    scheduler = (before.scheduler, before.generation) != (host.scheduler, host.generation)
    cores = {before.sched_gran, host.sched_gran} != {_GRANULARITY}
    return Smt(pool, new.threads > 1, max(old, new, key=lambda topology: topology.threads), scheduler or cores)


def _of_pools(
    old: model.Model | None, new: model.Model, pools: Mapping[str, Pool], old_pools: Mapping[str, Pool]
) -> Iterator[Setting]:
    """The settings of pools: first pools that give pCPUs, then pools that take them, then schedulers' parameters."""
    for name, pool in old_pools.items():
        if name not in pools:
            yield PoolGone(pool)
    by_node = not old_pools.keys() - {POOL_0} and _by_node(new, pools)
    if by_node:
        yield PoolsByNode(pools[POOL_0])
    for name, pool in pools.items():
        was = old_pools.get(name)
        if name == POOL_0 or by_node:
            continue
        if was is None:
            yield PoolMade(pool, pools[POOL_0])
        elif not pool.same_scheduler(was):
            domains = {} if old is None else old.domains
            yield PoolMade(pool, pools[POOL_0], tuple(d for d, domain in domains.items() if domain.pool == name))
        elif pool.pcpus != was.pcpus:
            more, fewer = (
                tuple(pcpu for pcpu in larger.pcpus if pcpu not in smaller.pcpus)
                for larger, smaller in ((pool, was), (was, pool))
            )
            yield PoolPcpus(pool, more, fewer)
    for name, pool in pools.items():
        params = _frame(new, name).params
        keeps = old is not None and pool.same_scheduler(old_pools.get(name))
        values = _changed(pool.of_scope("global"), params, _frame(old, name).params if old and keeps else None)
        if values:
            yield Params(pool, None, values, params, "run time" if keeps or name != POOL_0 else "restart")


def _by_node(scenario: model.Model, pools: Mapping[str, Pool]) -> bool:
    """`True`: the tool makes these pools from nodes, with a pCPU of `Pool-0` for each vCPU of Dom0."""
    topology, first = Topology.from_host(scenario.host), pools[POOL_0]
    by_node = {f"Pool-node{node}" if node else POOL_0: tuple(pcpus) for node, pcpus in topology.by_node().items()}
    alike = all(pool.scheduler == first.scheduler for pool in pools.values())
    dom0 = scenario.domains.get(DOM0)
    listed = {name: pool.pcpus for name, pool in pools.items()}
    fits = dom0 is None or dom0.vcpus <= len(first.pcpus)
    return len(by_node) > 1 and by_node == listed and alike and fits


def _frame(scenario: model.Model, pool: str) -> model.Host | model.Pool:
    """The table that names the scheduler of a pool."""
    return scenario.host if pool == POOL_0 else scenario.pools[pool]


def _of_domain(
    name: str,
    domain: model.Domain,
    was: model.Domain | None,
    pools: tuple[Mapping[str, Pool], Mapping[str, Pool]],
    pcpus: int,
) -> Iterator[Setting]:
    """The settings of a domain; a new domain starts in `Pool-0` with default parameters.

    Args:
        name: the domain's name.
        domain: the domain.
        was: the domain before the change; `None`: the domain is new.
        pools: the new pools, and the old pools.
        pcpus: the number of pCPUs of the host.
    """
    now, before = pools
    pool = now[domain.pool]
    old_pool = None if was is None else before[was.pool]
    if was is not None and domain.vcpus != was.vcpus:
        yield Vcpus(pool, name, domain.vcpus, was.vcpus)
    elif was is None and name == DOM0 and domain.vcpus != pcpus:
        # By default Dom0 has a vCPU for each pCPU.
        yield Vcpus(pool, name, domain.vcpus, pcpus)
    stays = pool.name == (POOL_0 if old_pool is None else old_pool.name)
    if not stays:
        yield Member(pool, name)
    same = stays and old_pool is not None and (pool.same_scheduler(old_pool) or (pool.is_linux and old_pool.is_linux))
    values = _changed(pool.of_scope("domain"), domain.params, was.params if was and same else None)
    if values:
        yield Params(pool, name, values, _beside(domain))
    # A domain that moves to another pool may first run on all of its pCPUs.
    hard, soft = (was.affinity, was.soft_affinity or "all") if was and stays else ("all", "all")
    if domain.affinity != hard:
        yield Affinity(pool, name, domain.affinity, vcpus=domain.vcpus)
    if (domain.soft_affinity or "all") != soft:
        yield Affinity(pool, name, domain.soft_affinity or "all", soft=True, vcpus=domain.vcpus)
    yield from _of_threads(name, domain, was or model.Domain({}), pool)
    if domain.memory_nodes and domain.memory_nodes != (was.memory_nodes if was else ()):
        yield MemoryNodes(pool, name, domain.memory_nodes)


def _beside(domain: model.Domain) -> dict[str, Any]:
    """The given parameters of a domain, and what the limits of others depend on."""
    return {"vcpus": domain.vcpus, "sched_policy": domain.sched_policy or "other", **domain.params}


def _of_threads(name: str, domain: model.Domain, was: model.Domain, pool: Pool) -> Iterator[Setting]:
    """The settings of a domain whose vCPUs are threads of the host."""
    if domain.cgroup is not None and domain.cgroup != (was.cgroup or DEFAULT_SLICES[domain.daemon]):
        yield InGroup(pool, name, domain.cgroup)
    if (domain.threads_per_core or 1) != (was.threads_per_core or 1):
        yield GuestThreads(pool, name, domain.threads_per_core or 1, domain.vcpus)
    if domain.iothreads != was.iothreads:
        yield IoThreads(pool, name, domain.iothreads, was.iothreads)
    if domain.emulator_affinity != was.emulator_affinity:
        yield ThreadAffinity(pool, name, "emulator", domain.emulator_affinity)
    if domain.iothread_affinity != was.iothread_affinity:
        yield ThreadAffinity(pool, name, "iothread", domain.iothread_affinity)
    now, before = ((side.sched_policy or "other", side.sched_priority or 1) for side in (domain, was))
    if now != before:
        yield ThreadClass(pool, name, *now, domain.vcpus)
    if (domain.nice or 0) != (was.nice or 0):
        yield Nice(pool, name, domain.nice or 0)


def _halt_polling(old: model.Model | None, new: model.Model, pool: Pool) -> Iterator[Setting]:
    now = new.host.halt_poll_us
    if now is not None and now != (_HALT_POLL_US if old is None else old.host.halt_poll_us):
        yield HaltPolling(pool, now)


def _isolation(old: model.Model | None, new: model.Model, pool: Pool) -> Iterator[Setting]:
    before = model.Host({}) if old is None else old.host
    if new.host.isolated_cpus != before.isolated_cpus:
        yield Isolation(pool, "isolcpus", new.host.isolated_cpus)
    if new.host.nohz_full != before.nohz_full:
        yield Isolation(pool, "nohz_full", new.host.nohz_full)


def _without_isolation(
    domain: model.Domain, was: model.Domain | None, old: model.Model | None, new: model.Model
) -> tuple[model.Domain, model.Domain | None]:
    """A domain and the domain before the change, without affinities that follow from isolated CPUs on both sides."""
    usual, usual_before = _usual_affinity(new.host), "all" if old is None else _usual_affinity(old.host)
    if usual == usual_before:
        return domain, was
    fields = [
        field
        for field in ("affinity", "emulator_affinity", "iothread_affinity")
        if getattr(domain, field) == usual and (was is None or getattr(was, field) == usual_before)
    ]
    unpinned = dict.fromkeys(fields, "all")
    earlier = None if was is None else model.Domain({**was.fields, **unpinned})
    return model.Domain({**domain.fields, **unpinned}), earlier


def _usual_affinity(host: model.Host) -> str:
    """The affinity of threads that are given none: all CPUs that are not isolated."""
    if host.isolated_cpus is None:
        return "all"
    isolated = members(host.isolated_cpus)
    return spans([pcpu for pcpu in range(host.pcpus) if pcpu not in isolated])


def _groups(old: model.Model | None, new: model.Model, pool: Pool) -> Iterator[Setting]:
    """The settings of shared control groups; a removed group goes back to its defaults."""
    if old is not None and version_of(old.host) != version_of(new.host):
        yield CgroupVersion(pool, version_of(new.host))
    before, now = {} if old is None else old.cgroups, new.cgroups
    for path in dict.fromkeys([*before, *now]):
        was, table = _group(before.get(path, _NEW_GROUP)), _group(now.get(path, _NEW_GROUP))
        values = {name: value for name, value in table.items() if value != was[name]}
        if values:
            yield Group(pool, path, values, table)


def _group(group: model.Cgroup) -> dict[str, Any]:
    """The parameters of a control group, by name."""
    names = ("weight", "quota_us", "period_us", "burst_us", "idle")
    return {name: getattr(group, name) for name in names} | {"cpus": group.cpus or "all"}


def _memory_stays(old: model.Model | None, new: model.Model, pool: Pool) -> Iterator[Setting]:
    """The domains whose memory a new affinity places on other nodes, where the distance of nodes has a cost."""
    topology = Topology.from_host(new.host)
    if old is None or topology.nodes == 1 or new.host.costs.numa_distance <= _LOCAL:
        return
    moved = tuple(
        name
        for name, domain in new.domains.items()
        if (was := old.domains.get(name)) is not None
        and not domain.memory_nodes
        and _nodes_of(topology, domain) != (set(was.memory_nodes) or _nodes_of(topology, was))
    )
    if moved:
        yield MemoryStays(pool, moved)


_LOCAL = 10
"""The distance of a node from itself: ACPI, System Locality Information Table."""


def _nodes_of(topology: Topology, domain: model.Domain) -> set[int]:
    """The nodes where the vCPUs of a domain prefer to run, or without a preference may run."""
    nodes: set[int] = set()
    for vcpu in range(domain.vcpus):
        hard, soft = (
            pcpu_set(affinity if isinstance(affinity, str) else affinity[vcpu], topology.pcpus)
            for affinity in (domain.affinity, domain.soft_affinity or "all")
        )
        nodes |= set(topology.by_node(hard & soft or hard))
    return nodes


def _changed(params: Sequence[Param], values: Mapping[str, Any], was: Mapping[str, Any] | None) -> dict[str, Any]:
    """The changed parameters; a parameter that goes back to its default is set to the default."""
    if was is None:
        return {param.name: values[param.name] for param in params if param.name in values}
    changed = {}
    for param in params:
        name, default = param.name, param.default
        value = values.get(name, default)
        if value is not None and value != was.get(name, default):
            changed[name] = value
    return changed


def _places(before: Scenario | None, after: Scenario, pool: Pool) -> Iterator[Setting]:
    """The settings of netbacks, blkbacks and interrupts with a stated CPU; Linux places all others."""
    new, old = after.model, None if before is None else before.model
    kinds: tuple[Literal["nic"], Literal["disk"]] = ("nic", "disk")
    for kind in kinds:
        for name, table in after.stated(kind).items():
            device, was = _device(new, kind, name), None if old is None else _device(old, kind, name)
            driver = None if device is None else device.driver_domain
            vcpu, pcpu = (None, None) if was is None else (was.vcpu, was.pcpu)
            if driver is not None and table.get("vcpu", vcpu) != vcpu:
                yield Interrupts(pool, name, kind, driver, table["vcpu"])
            if table.get("pcpu", pcpu) != pcpu:
                yield HostInterrupts(pool, name, kind, table["pcpu"])
    for kind in kinds:
        for name, table in after.stated("domain").items():
            front = _front_end(new, kind, name)
            old_front = None if old is None else _front_end(old, kind, name)
            driver_vcpu = None if old_front is None else old_front.driver_vcpu
            place = table.get(kind, {}).get("driver_vcpu", driver_vcpu)
            if place != driver_vcpu and front is not None and front.driver_domain is not None:
                yield Backend(pool, name, kind, front.driver_domain, place, front.emulated)


def _device(scenario: model.Model, kind: Literal["nic", "disk"], name: str) -> model.Nic | model.Disk | None:
    return scenario.nics.get(name) if kind == "nic" else scenario.disks.get(name)


def _front_end(
    scenario: model.Model, kind: Literal["nic", "disk"], name: str
) -> model.Netfront | model.VirtualDisk | None:
    domain = scenario.domains.get(name)
    return None if domain is None else domain.nic if kind == "nic" else domain.disk


class _Actions:
    """The timed settings of a scenario: its actions, and the domains that are created later."""

    def __init__(self, scenario: model.Model, pools: Mapping[str, Pool]) -> None:
        self._scenario = scenario
        self._pools = pools
        self._domains = scenario.domains
        self._pool = {name: pools[domain.pool] for name, domain in self._domains.items()}
        self._online = {name: set(range(domain.vcpus)) for name, domain in self._domains.items()}
        self._saved: set[str] = set()

    def all(self) -> Iterator[tuple[str, Setting]]:
        """The settings with their times, in order."""
        starts = (
            model.CreateAction({"op": "create", "at": domain.start, "domain": name})
            for name, domain in self._domains.items()
            if domain.start.ns > 0
        )
        for action in sorted([*starts, *self._scenario.actions], key=lambda action: action.at.ns):
            for setting in self._settings(action):
                yield str(action.at), setting

    def _settings(self, action: model.Action) -> Iterator[Setting]:
        if isinstance(action, model.AdjustGlobalAction):
            pool = self._pools[action.pool]
            values = _changed(pool.of_scope("global"), action.params, None)
            yield Params(pool, None, values, {**_frame(self._scenario, pool.name).params, **values}, moment="action")
            return
        name = action.domain
        pool, domain = self._pool[name], self._domains[name]
        if isinstance(action, model.AdjustAction):
            values = _changed(pool.of_scope("domain"), action.params, None)
            yield Params(pool, name, values, {**_beside(domain), **values}, moment="action")
        elif isinstance(action, model.AffinityAction):
            for pcpus, soft in ((action.affinity, False), (action.soft_affinity, True)):
                if pcpus is not None:
                    yield Affinity(pool, name, pcpus, action.vcpu, soft=soft, vcpus=domain.vcpus)
        elif isinstance(action, model.MovePoolAction):
            self._pool[name] = self._pools[action.pool]
            yield Member(self._pool[name], name)
        elif isinstance(action, model.OnlineAction | model.OfflineAction):
            self._online[name] ^= {action.vcpu}
            first = self._online[name] == set(range(len(self._online[name])))
            yield Online(pool, name, action.vcpu, action.op == "online", len(self._online[name]) if first else None)
        else:
            yield from self._live(name, action.op, pool)

    def _live(self, name: str, op: str, pool: Pool) -> Iterator[Setting]:
        yield Life(pool, name, op, name in self._saved)
        if op in ("pause", "unpause"):
            return
        (self._saved.add if op == "save" else self._saved.discard)(name)
        domain = self._domains[name]
        again = op in ("create", "reboot") or (op == "crash" and domain.on_crash == "restart")
        if again:
            self._online[name] = set(range(domain.vcpus))
        if again or op == "restore":
            self._pool[name] = self._pools[domain.pool]
            yield from _of_domain(name, domain, None, (self._pools, {}), self._scenario.host.pcpus)
