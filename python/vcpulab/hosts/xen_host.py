"""A Xen host as its listings describe it: its release, CPU pools, and domains with their parameters and affinities."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from vcpulab.formats.kinds import Kind, Read, XenKind
from vcpulab.formats.xenpm import Frequencies
from vcpulab.formats.xentop import Usage
from vcpulab.formats.xl import Pool as ListedPool
from vcpulab.formats.xl_info import Info
from vcpulab.formats.xl_sched import Sched
from vcpulab.hosts.left_out import left_out
from vcpulab.hosts.pcpu_map import PcpuMap
from vcpulab.hosts.xen_domains import Domain, Reader, last
from vcpulab.hosts.xen_params import accepted, scheduler_params
from vcpulab.hosts.xen_release import Rules, params_of, rules_of
from vcpulab.hypervisors.settings import POOL_0
from vcpulab.scenario.catalogue import generation_of
from vcpulab.scenario.names import free_name, plain_name
from vcpulab.scenario.parameters import Param

KINDS: tuple[Kind, ...] = get_args(XenKind)
"""The kinds of listings that are understood."""
_DEFAULT = "credit2"
"""Xen's default scheduler."""


@dataclass(frozen=True)
class Pool:
    """A CPU pool."""

    name: str
    scheduler: str
    params: Mapping[str, int] = field(default_factory=dict)
    """The parameters of the scheduler as a whole."""
    cpus: str | None = None
    """The CPUs in the host's numbers; `None`: not listed."""
    pcpus: str | None = None
    """The CPUs as a scenario numbers them; `None`: those that no other pool has."""
    key: str = POOL_0
    """The name in a scenario."""
    is_assumed: bool = False
    """`True`: no listing names a scheduler that this program has."""
    notes: tuple[str, ...] = ()
    """Notes on an assumed scheduler, on contradictions, and on parameters that are left out."""


@dataclass(frozen=True)
class XenHost:
    """A Xen host."""

    info: Info
    """The release, the CPUs and the options of the hypervisor."""
    pools: tuple[Pool, ...]
    """The pool of Dom0 first."""
    domains: Mapping[str, Domain] = field(default_factory=dict)
    """The domains by their names on the host."""
    names: Mapping[int, str] = field(default_factory=dict)
    """The domains' names on the host, by ID."""
    clocks: Sequence[Frequencies] = ()
    """The clock rates of CPUs."""
    usage: Sequence[Usage] = ()
    """The CPU use of domains, update by update."""
    notes: tuple[str, ...] = ()
    """Notes on contradictions in the listings, and on parts of them that are not used."""

    def domain(self, number: int, vcpus: int) -> Domain:
        """The domain with an ID, with the masks of its first vCPUs by their numbers, online or not."""
        domain = self.domains.get(self.names.get(number, ""), Domain())
        affinity, soft = (domain.by_number(masks, vcpus) for masks in (domain.affinity, domain.soft))
        return replace(domain, affinity=affinity, soft=soft)

    def with_scheduler(self, scheduler: str) -> "XenHost":
        """The host under another scheduler, which has none of the parameters of the present one."""
        return replace(
            self,
            pools=tuple(replace(pool, scheduler=scheduler, params={}) for pool in self.pools),
            domains={name: replace(domain, params={}) for name, domain in self.domains.items()},
        )

    def with_pools(self, placed: PcpuMap, notes: list[str]) -> "XenHost":
        """The host with the pools that a scenario can have; domains of other pools are in the first one.

        Args:
            placed: the map of the host's CPUs.
            notes: receives a note for each pool that is left out.

        Examples:
            >>> from vcpulab.hosts.pcpu_map import flat
            >>> pools = [Pool("Pool-0", "credit2"), *(Pool("two", "credit2", {}, cpus) for cpus in ("2-3", "7", None))]
            >>> notes = []
            >>> [pool.pcpus for pool in XenHost(Info({}), tuple(pools)).with_pools(flat(4), notes).pools]
            [None, '2-3']
            >>> for note in notes:
            ...     print(note)
            pool two: its CPUs `7` leave no pool: none is online, or all are in it; its domains are in Pool-0
            pool two: its CPUs are not listed (see `xl cpupool-list -c`); its domains are in Pool-0
        """
        first, *further = self.pools
        pools = [first]
        for pool in further:
            pcpus = None if pool.cpus is None else placed.of_host(pool.cpus)
            if pcpus not in (None, "all"):
                key = free_name(plain_name(pool.name), [earlier.key for earlier in pools])
                pools.append(replace(pool, pcpus=pcpus, key=key))
                continue
            if not pool.cpus:
                reason = "are not listed (see `xl cpupool-list -c`)"
            elif not placed.numbered:
                reason = f"`{pool.cpus}` cannot be translated without `xl info -n`"
            else:
                reason = f"`{pool.cpus}` leave no pool: none is online, or all are in it"
            notes.append(f"pool {pool.name}: its CPUs {reason}; its domains are in {first.name}")
        return replace(self, pools=tuple(pools))

    def rules(self, pool: Pool) -> Rules | None:
        """A pool's scheduler as the host's release has it; `None`: the release is not known, or has none."""
        return rules_of(pool.scheduler, self.info.settings) if generation_of(pool.scheduler) is not None else None

    def pool_of(self, domain: Domain) -> Pool:
        """The pool of a domain; the first one if a scenario does not have its own."""
        return next((pool for pool in self.pools if pool.name == domain.pool), self.pools[0])

    def params(self, pool: Pool) -> dict[str, Param]:
        """The parameters of a pool's scheduler by name, those of the scheduler as a whole and those of domains."""
        return {param.name: param for param in params_of(pool.scheduler, self.info.settings)}

    def fields_of(self, name: str, domain: Domain, vcpus: int, placed: PcpuMap, notes: list[str]) -> dict[str, Any]:
        """The fields of a domain of a scenario, but for what runs in it: its pool, parameters and affinities.

        Args:
            name: the domain's name in the scenario.
            domain: the domain.
            vcpus: their number.
            placed: the map of the host's CPUs.
            notes: receives a note for each value that a scenario cannot have.
        """
        pool = self.pool_of(domain)
        fields: dict[str, Any] = {"vcpus": vcpus}
        if pool is not self.pools[0]:
            fields["pool"] = pool.key
        params = {param: spec for param, spec in self.params(pool).items() if spec.scope == "domain"}
        fields |= accepted(name, domain.params, params, vcpus, notes=notes, path=domain.scheduled_by)
        for kind, masks in (("affinity", domain.affinity), ("soft_affinity", domain.soft)):
            of_mask = {mask: placed.set_of(mask, f"{kind} of {name}", notes) for mask in dict.fromkeys(masks)}
            cpu_sets = [of_mask[mask] for mask in masks]
            if set(cpu_sets) - {"all"}:
                fields[kind] = cpu_sets
        return fields


def read_host(listings: Iterable[Read]) -> XenHost:
    """The Xen host that listings describe.

    Args:
        listings: of two of a kind the later one counts, but for parameters of schedulers and domains' files, of which
            there may be many.
    """
    reads, notes = list(listings), list[str]()
    info = _info(reads, notes)
    reader = Reader(reads, notes)
    domains = reader.read(with_dom0=bool(info.settings))
    return XenHost(
        info,
        tuple(_pools(reads, info)),
        domains,
        reader.by_number,
        last(reads, "xenpm"),
        last(reads, "xentop"),
        tuple(notes),
    )


def _info(reads: Iterable[Read], notes: list[str]) -> Info:
    """`xl info`, and what the log of booting says where it does not."""
    info, booted = Info({}), {}
    for read in reads:
        if read.kind == "xl-info":
            info = read.holds
        elif read.kind == "xl-dmesg":
            booted.update({name: (value, read.path) for name, value in read.holds.settings.items()})
    fields = dict(info.settings)
    has_version = {"xen_version", "xen_major"} & fields.keys()
    for name, (value, path) in booted.items():
        if name not in fields and not (name == "xen_version" and has_version):
            fields[name] = value
        elif fields.get(name, value) not in (value, f"placeholder {value}"):
            notes.append(left_out("the log of booting", name, value, f"`xl info` has `{fields[name]}`", path))
    return replace(info, settings=fields)


def _pools(reads: Sequence[Read], info: Info) -> Iterable[Pool]:
    """The pools, that of Dom0 first."""
    listed = _listed_pools(reads)
    all_scheds: list[Sched] = [sched for read in reads if read.kind == "xl-sched" for sched in read.holds]
    scheds = {sched.pool: sched for sched in reversed(all_scheds) if sched.pool}
    unnamed = next((sched for sched in all_scheds if not sched.pool), None)
    of_dom0 = [row.pool for row in last(reads, "xl-list") if row.number == 0 and row.pool]
    of_dom0 += [sched.pool for sched in scheds.values() if any(row.get("id") == 0 for row in sched.domains)]
    names = dict.fromkeys([*of_dom0[:1], *listed, *reversed(scheds)]) or {POOL_0: None}
    for name in names:
        yield _pool(name, listed.get(name), scheds.get(name) or (unnamed if len(names) == 1 else None), info)


def _pool(name: str, listed: ListedPool | None, sched: Sched | None, info: Info) -> Pool:
    # Without a heading of its own, a table of weights may be of Credit or of Credit2.
    rows = [row.scheduler for row in (sched, listed) if row is not None]
    named = list(filter(None, dict.fromkeys([*rows, info.settings.get("xen_scheduler")])))
    scheduler = next((candidate for candidate in named if generation_of(candidate) is not None), None)
    notes: list[str] = []
    if scheduler is None:
        shown = ", ".join(f"`{candidate}`" for candidate in named)
        reason = f"{shown} is not supported" if shown else "no listing says which; it is Xen's default"
        notes.append(f"scheduler = {_DEFAULT}: {reason}")
    used = scheduler or _DEFAULT
    # Other pools may have another scheduler than the one that `xl info` names.
    of_pool = list(filter(None, dict.fromkeys(rows if name != POOL_0 else named)))
    if scheduler is not None and len(of_pool) > 1:
        shown = ", ".join(f"`{candidate}`" for candidate in of_pool)
        notes.append(
            f"pool {name}: listings name different schedulers ({shown}): listings of different times or hosts? "
            f"scheduler = {used} is assumed"
        )
    params = {} if sched is None else scheduler_params(sched, used, params_of(used, info.settings), notes)
    cpus = None if listed is None else listed.cpus
    return Pool(name, used, params, cpus, is_assumed=scheduler is None, notes=tuple(notes))


def _listed_pools(reads: Iterable[Read]) -> dict[str, ListedPool]:
    """The pools of all `xl cpupool-list`, some of which have CPUs, and others schedulers."""
    pools: dict[str, ListedPool] = {}
    for read in reads:
        for pool in read.holds if read.kind == "xl-cpupool-list" else ():
            was = pools.get(pool.name, pool)
            pools[pool.name] = replace(was, cpus=was.cpus or pool.cpus, scheduler=was.scheduler or pool.scheduler)
    return pools
