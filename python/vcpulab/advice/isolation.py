"""Domains alone on some pCPUs: the settings that keep other domains away."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from vcpulab.hypervisors.settings import DOM0, POOL_0
from vcpulab.hypervisors.xen import HAS_POOLS
from vcpulab.scenario.catalogue import generation_of
from vcpulab.scenario.model import Domain, Model
from vcpulab.scenario.scenario import join
from vcpulab.scenario.topology import Topology
from vcpulab.scenario.units import members, spans

_ASSIGNED = ("null", "arinc653")
"""Schedulers that assign pCPUs to vCPUs themselves."""
_NAME_LONG = 20
"""The largest number of characters of a domain's name in the name of a new pool."""


@dataclass(frozen=True)
class Isolation:
    """Some domains alone on some pCPUs."""

    pcpus: str
    """The pCPUs, such as `4-5`."""
    changes: Mapping[str, Any]
    """The settings, affinities of other domains or a pool: full path to value."""
    pool: str | None = None
    """The new CPU pool of the domains; `None`: affinities keep other domains away."""

    def __str__(self) -> str:
        """The isolation in words.

        Examples:
            >>> print(Isolation("4-5", {}), Isolation("3", {}, pool="only-rt"), sep="; ")
            alone on pCPU 4-5; alone on pCPU 3, in a pool
        """
        return f"alone on pCPU {self.pcpus}{'' if self.pool is None else ', in a pool'}"


def isolations(scenario: Model, names: Sequence[str]) -> list[Isolation]:
    """The ways to have domains of one pool alone on some pCPUs, the mildest first.

    The pCPUs are those that the domains are pinned to. If no domain is pinned, there are two choices, one pCPU or one
    for each vCPU, of whole cores to which no domain is pinned, at most half of all pCPUs. Other domains (on a KVM host
    also their threads) are kept away by their affinities, and the isolated domains are pinned; or the isolated domains
    get a CPU pool, if the toolstack has pools.

    Args:
        scenario: the scenario.
        names: the domains, all of one pool.

    Examples:
        >>> from vcpulab.scenario.scenario import Scenario
        >>> domains = {name: {"vcpus": vcpus, "app": [{"kind": "hog"}]} for name, vcpus in (("web", 1), ("batch", 4))}
        >>> host = {"profile": "exact", "pcpus": 4, "scheduler": "credit"}
        >>> scenario = Scenario.from_dict({"name": "two", "host": host, "domain": domains})
        >>> for isolation in isolations(scenario.model, ["web"]):
        ...     print(isolation, list(isolation.changes))
        alone on pCPU 3 ['domain.web.affinity', 'domain.batch.affinity']
        alone on pCPU 3, in a pool ['pool.only-web.scheduler', ..., 'pool.only-web.pcpus', 'domain.web.pool']
    """
    here = pcpus_of(scenario, scenario.domains[names[0]].pool)
    pinned = _pinned(scenario, names)
    places = [own] if (own := sorted(pinned & set(here))) else [*_free(scenario, names, here)] if not pinned else []
    usable = [place for place in places if len(place) < len(here)]
    apart = [
        alone if pinned else _pinned_there(scenario, names, own, alone)
        for own in usable
        if (alone := _kept_alone(scenario, names, own)) is not None
    ]
    return [*apart, *([_pooled(scenario, names, usable[-1])] if apart and _can_have_pool(scenario, names) else [])]


def isolation(scenario: Model, names: Sequence[str]) -> Isolation | None:
    """Domains of one pool alone on the pCPUs that they are pinned to, by the affinities of all others.

    Args:
        scenario: the scenario.
        names: the domains, all of one pool.

    Returns:
        `None`: no domain is pinned, or they are alone already, or no pCPU would be left for other domains.

    Examples:
        >>> from vcpulab.scenario.scenario import Scenario
        >>> hog = [{"kind": "hog"}]
        >>> domains = {"rt": {"affinity": "2", "app": hog}, "batch": {"vcpus": 4, "app": hog}}
        >>> host = {"profile": "exact", "pcpus": 4, "scheduler": "credit"}
        >>> isolation(Scenario.from_dict({"name": "two", "host": host, "domain": domains}).model, ["rt"])
        Isolation(pcpus='2', changes={'domain.batch.affinity': '0-1,3'}, pool=None)
    """
    here = pcpus_of(scenario, scenario.domains[names[0]].pool)
    own = sorted(_pinned(scenario, names) & set(here))
    return _kept_alone(scenario, names, own) if own and len(own) < len(here) else None


def _pinned(scenario: Model, names: Sequence[str]) -> set[int]:
    """The pCPUs to which some of these domains are pinned."""
    return {pcpu for name in names for pcpu in pinned_to(scenario.domains[name]) or ()}


def _free(scenario: Model, names: Sequence[str], here: Sequence[int]) -> Iterator[list[int]]:
    """Whole cores to which no domain is pinned: with one pCPU, and with one for each vCPU of these domains."""
    domains, topology = scenario.domains, Topology.from_host(scenario.host)
    taken = {pcpu for domain in domains.values() for pcpu in pinned_to(domain) or ()}
    near = {node for name in names for node in domains[name].memory_nodes}
    cores = [core for core in topology.by_core(here).values() if not taken & set(core)]
    # The first pCPUs take the interrupts; remote memory costs more than a busy neighbor.
    cores.sort(key=lambda core: (bool(near) and topology.node(core[0]) not in near, -core[0]))
    most = len(here) // 2
    choices: list[list[int]] = []
    for wanted in (1, min(most, sum(domains[name].vcpus for name in names))):
        own: list[int] = []
        for core in cores:
            own += core if len(own) < wanted else []
        if wanted <= len(own) <= max(most, 1) and sorted(own) not in choices:
            choices.append(sorted(own))
    yield from choices


def _kept_alone(scenario: Model, names: Sequence[str], own: Sequence[int]) -> Isolation | None:
    """Affinities that keep other domains off these pCPUs; `None`: none may run there, or affinities are ignored."""
    domains = scenario.domains
    pool = domains[names[0]].pool
    if scenario.pools.get(pool, scenario.host).scheduler in _ASSIGNED:
        return None
    here, inside = pcpus_of(scenario, pool), [name for name in names if pinned_to(domains[name]) is not None] or names
    changes: dict[str, Any] = {}
    for name, domain in domains.items():
        if name not in inside and domain.pool == pool:
            affinities = {"affinity": domain.affinity} | _of_threads(scenario, domain)
            for field, affinity in affinities.items():
                kept = _kept_off(affinity, here, own)
                changes |= {} if kept is None else {join(["domain", name, field]): kept}
    return Isolation(spans(own), changes) if changes else None


def _pinned_there(scenario: Model, names: Sequence[str], own: Sequence[int], alone: Isolation) -> Isolation:
    """The isolation with its domains pinned, if each vCPU has a pCPU: elsewhere they would wait for others."""
    if sum(scenario.domains[name].vcpus for name in names) > len(own):
        return alone
    pins = {join(["domain", name, "affinity"]): alone.pcpus for name in names}
    return replace(alone, changes={**pins, **alone.changes})


def _of_threads(scenario: Model, domain: Domain) -> dict[str, str]:
    """The affinities of the threads that serve a VM of a KVM host, by field."""
    affinities = {}
    if scenario.host.hypervisor == "kvm":
        by_iothread = domain.iothreads > 0 and domain.disk is not None
        if domain.nic is not None or (domain.disk is not None and not by_iothread):
            affinities["emulator_affinity"] = domain.emulator_affinity
        if by_iothread:
            affinities["iothread_affinity"] = domain.iothread_affinity
    return affinities


def _can_have_pool(scenario: Model, names: Sequence[str]) -> bool:
    """`True`: these domains may get their own CPU pool. Dom0 and driver domains stay in their pool."""
    host, domains = scenario.host, [scenario.domains[name] for name in names]
    generation = generation_of(host.scheduler, host.generation)
    return (
        host.hypervisor == "xen"
        and generation is not None
        and generation.tools.tool == HAS_POOLS
        and DOM0 not in names
        and not any(domain.driver_domain or domain.pool != POOL_0 for domain in domains)
    )


def _pooled(scenario: Model, names: Sequence[str], own: Sequence[int]) -> Isolation:
    """The isolation by a pool of these pCPUs with the scheduler and parameters of the host."""
    host = scenario.host
    generation = generation_of(host.scheduler, host.generation)
    params = generation.of_scope("global") if generation else {}
    pool = f"only-{names[0][:_NAME_LONG]}"
    while pool in scenario.pools:
        pool += "x"
    table = {"scheduler": host.scheduler, "generation": host.generation}
    table |= {name: host.params[name] for name in params if name in host.params}
    table["pcpus"] = spans(own)
    changes: dict[str, Any] = {join(["pool", pool, field]): value for field, value in table.items()}
    here = pcpus_of(scenario, POOL_0)
    for name, domain in scenario.domains.items():
        path, affinity = join(["domain", name, "affinity"]), domain.affinity
        if name in names:
            changes[join(["domain", name, "pool"])] = pool
        elif affinity != "all" and domain.pool == POOL_0 and (kept := _kept_off(affinity, here, own)) is not None:
            changes[path] = kept
    return Isolation(spans(own), changes, pool)


def pcpus_of(scenario: Model, pool: str) -> list[int]:
    """The pCPUs of a pool."""
    if pool != POOL_0:
        return members(scenario.pools[pool].pcpus)
    taken = {pcpu for frame in scenario.pools.values() for pcpu in members(frame.pcpus)}
    return [pcpu for pcpu in range(scenario.host.pcpus) if pcpu not in taken]


def pinned_to(domain: Domain) -> set[int] | None:
    """The pCPUs that a domain is pinned to; `None`: it is not pinned."""
    masks = (domain.affinity,) if isinstance(domain.affinity, str) else domain.affinity
    return None if "all" in masks else {pcpu for mask in masks for pcpu in members(mask)}


def _kept_off(affinity: str | Sequence[str], here: Sequence[int], own: Sequence[int]) -> str | list[str] | None:
    """The affinity of a domain without some pCPUs of its pool; `None`: the domain may not run there anyway."""
    masks = [affinity] if isinstance(affinity, str) else affinity
    allowed = [set(here) if mask == "all" else set(members(mask)) for mask in masks]
    if not any(mask & set(own) for mask in allowed):
        return None
    left = [spans(sorted(mask - set(own) or set(here) - set(own))) for mask in allowed]
    return left[0] if isinstance(affinity, str) else left
