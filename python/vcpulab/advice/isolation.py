"""Domains alone on some pCPUs: the settings that keep other domains away."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from vcpulab.hypervisors.settings import DOM0, hypervisor_of
from vcpulab.hypervisors.xen import HAS_POOLS
from vcpulab.scenario.catalogue import generation_of
from vcpulab.scenario.model import Host
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


def isolations(document: Mapping[str, Any], names: Sequence[str]) -> list[Isolation]:
    """The ways to have domains of one pool alone on some pCPUs, the mildest first.

    The pCPUs are those that the domains are pinned to. If no domain is pinned, there are two choices, one pCPU or one
    for each vCPU, of whole cores to which no domain is pinned, at most half of all pCPUs. Other domains (on a KVM host
    also their threads) are kept away by their affinities, and the isolated domains are pinned; or the isolated domains
    get a CPU pool, if the toolstack has pools.

    Args:
        document: the scenario as tables.
        names: the domains, all of one pool.

    Examples:
        >>> host = {"pcpus": 4, "scheduler": "credit", "generation": "xen4.17", "hypervisor": "xen"}
        >>> document = {"host": host, "domain": {"web": {"vcpus": 1}, "batch": {"vcpus": 4}}}
        >>> for isolation in isolations(document, ["web"]):
        ...     print(isolation, list(isolation.changes))
        alone on pCPU 3 ['domain.web.affinity', 'domain.batch.affinity']
        alone on pCPU 3, in a pool ['pool.only-web.scheduler', ..., 'pool.only-web.pcpus', 'domain.web.pool']
    """
    pool = document["domain"][names[0]].get("pool")
    here = pcpus_of(document, pool)
    pinned = _pinned(document, names)
    places = [own] if (own := sorted(pinned & set(here))) else [*_free(document, names, here)] if not pinned else []
    usable = [place for place in places if len(place) < len(here)]
    apart = [
        alone if pinned else _pinned_there(document, names, own, alone)
        for own in usable
        if (alone := _kept_alone(document, names, own)) is not None
    ]
    return [*apart, *([_pooled(document, names, usable[-1])] if apart and _can_have_pool(document, names) else [])]


def isolation(document: Mapping[str, Any], names: Sequence[str]) -> Isolation | None:
    """Domains of one pool alone on the pCPUs that they are pinned to, by the affinities of all others.

    Args:
        document: the scenario as tables.
        names: the domains, all of one pool.

    Returns:
        `None`: no domain is pinned, or they are alone already, or no pCPU would be left for other domains.

    Examples:
        >>> rt, batch = {"vcpus": 1, "affinity": "2"}, {"vcpus": 4}
        >>> host = {"pcpus": 4, "scheduler": "credit"}
        >>> isolation({"host": host, "domain": {"rt": rt, "batch": batch}}, ["rt"])
        Isolation(pcpus='2', changes={'domain.batch.affinity': '0-1,3'}, pool=None)
    """
    here = pcpus_of(document, document["domain"][names[0]].get("pool"))
    own = sorted(_pinned(document, names) & set(here))
    return _kept_alone(document, names, own) if own and len(own) < len(here) else None


def _pinned(document: Mapping[str, Any], names: Sequence[str]) -> set[int]:
    """The pCPUs to which some of these domains are pinned."""
    return {pcpu for name in names for pcpu in pinned_to(document["domain"][name]) or ()}


def _free(document: Mapping[str, Any], names: Sequence[str], here: Sequence[int]) -> Iterator[list[int]]:
    """Whole cores to which no domain is pinned: with one pCPU, and with one for each vCPU of these domains."""
    domains, topology = document["domain"], Topology.from_host(Host(document["host"]))
    taken = {pcpu for table in domains.values() for pcpu in pinned_to(table) or ()}
    near = {node for name in names for node in _memory_nodes(domains[name])}
    cores = [core for core in topology.by_core(here).values() if not taken & set(core)]
    # The first pCPUs take the interrupts; remote memory costs more than a busy neighbor.
    cores.sort(key=lambda core: (bool(near) and topology.node(core[0]) not in near, -core[0]))
    most = len(here) // 2
    choices: list[list[int]] = []
    for wanted in (1, min(most, sum(int(domains[name]["vcpus"]) for name in names))):
        own: list[int] = []
        for core in cores:
            own += core if len(own) < wanted else []
        if wanted <= len(own) <= max(most, 1) and sorted(own) not in choices:
            choices.append(sorted(own))
    yield from choices


def _memory_nodes(table: Mapping[str, Any]) -> list[int]:
    given = table.get("memory_nodes", [])
    return [int(node) for node in (given if isinstance(given, list) else [given])]


def _kept_alone(document: Mapping[str, Any], names: Sequence[str], own: Sequence[int]) -> Isolation | None:
    """Affinities that keep other domains off these pCPUs; `None`: none may run there, or affinities are ignored."""
    domains = document["domain"]
    pool = domains[names[0]].get("pool")
    frame = document["host"] if pool is None else document["pool"][pool]
    if frame["scheduler"] in _ASSIGNED:
        return None
    here, inside = pcpus_of(document, pool), [name for name in names if pinned_to(domains[name]) is not None] or names
    changes: dict[str, Any] = {}
    for name, table in domains.items():
        if name not in inside and table.get("pool") == pool:
            for field in ("affinity", *_of_threads(document, table)):
                kept = _kept_off(table.get(field, "all"), here, own)
                changes |= {} if kept is None else {join(["domain", name, field]): kept}
    return Isolation(spans(own), changes) if changes else None


def _pinned_there(document: Mapping[str, Any], names: Sequence[str], own: Sequence[int], alone: Isolation) -> Isolation:
    """The isolation with its domains pinned, if each vCPU has a pCPU: elsewhere they would wait for others."""
    domains = document["domain"]
    if sum(int(domains[name]["vcpus"]) for name in names) > len(own):
        return alone
    pins = {join(["domain", name, "affinity"]): alone.pcpus for name in names}
    return replace(alone, changes={**pins, **alone.changes})


def _of_threads(document: Mapping[str, Any], table: Mapping[str, Any]) -> Iterator[str]:
    """The affinities of the threads that serve a VM of a KVM host."""
    if hypervisor_of(document) == "kvm":
        disk_alone = bool(table.get("iothreads")) and "disk" in table
        if "nic" in table or ("disk" in table and not disk_alone):
            yield "emulator_affinity"
        if disk_alone:
            yield "iothread_affinity"


def _can_have_pool(document: Mapping[str, Any], names: Sequence[str]) -> bool:
    """`True`: these domains may get their own CPU pool. Dom0 and driver domains stay in their pool."""
    host, domains = document["host"], document["domain"]
    generation = generation_of(host["scheduler"], host["generation"])
    return (
        hypervisor_of(document) == "xen"
        and generation is not None
        and generation["toolstack"]["tool"] == HAS_POOLS
        and not any(name == DOM0 or domains[name].get("driver_domain") or domains[name].get("pool") for name in names)
    )


def _pooled(document: Mapping[str, Any], names: Sequence[str], own: Sequence[int]) -> Isolation:
    """The isolation by a pool of these pCPUs with the scheduler and parameters of the host."""
    host, domains = document["host"], document["domain"]
    generation = generation_of(host["scheduler"], host["generation"])
    params = [param["name"] for param in generation["params"] if param["scope"] == "global"] if generation else []
    pool = f"only-{names[0][:_NAME_LONG]}"
    while pool in document.get("pool", {}):
        pool += "x"
    table = {field: host[field] for field in ("scheduler", "generation", *params) if field in host}
    table["pcpus"] = spans(own)
    changes: dict[str, Any] = {join(["pool", pool, field]): value for field, value in table.items()}
    here = pcpus_of(document, None)
    for name, fields in domains.items():
        path, affinity = join(["domain", name, "affinity"]), fields.get("affinity", "all")
        if name in names:
            changes[join(["domain", name, "pool"])] = pool
        elif affinity != "all" and not fields.get("pool") and (kept := _kept_off(affinity, here, own)) is not None:
            changes[path] = kept
    return Isolation(spans(own), changes, pool)


def pcpus_of(document: Mapping[str, Any], pool: str | None) -> list[int]:
    """The pCPUs of a pool; `None`: of the host outside all pools."""
    if pool is not None:
        return members(document["pool"][pool]["pcpus"])
    taken = {pcpu for table in document.get("pool", {}).values() for pcpu in members(table["pcpus"])}
    return [pcpu for pcpu in range(int(document["host"]["pcpus"])) if pcpu not in taken]


def pinned_to(table: Mapping[str, Any]) -> set[int] | None:
    """The pCPUs that a domain is pinned to; `None`: it is not pinned."""
    given = table.get("affinity", "all")
    masks = given if isinstance(given, list) else [given]
    return None if "all" in masks else {pcpu for mask in masks for pcpu in members(mask)}


def _kept_off(affinity: str | Sequence[str], here: Sequence[int], own: Sequence[int]) -> str | list[str] | None:
    """The affinity of a domain without some pCPUs of its pool; `None`: the domain may not run there anyway."""
    masks = [affinity] if isinstance(affinity, str) else affinity
    allowed = [set(here) if mask == "all" else set(members(mask)) for mask in masks]
    if not any(mask & set(own) for mask in allowed):
        return None
    left = [spans(sorted(mask - set(own) or set(here) - set(own))) for mask in allowed]
    return left[0] if isinstance(affinity, str) else left
