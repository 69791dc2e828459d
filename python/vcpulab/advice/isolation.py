"""Domains alone on some pCPUs of their pool: what must be set so that no other domain runs there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vcpulab.scenario.scenario import join
from vcpulab.scenario.units import members, spans

_ASSIGNED = ("null", "arinc653")
"""Schedulers that give each vCPU its place themselves."""


@dataclass(frozen=True)
class Isolation:
    """Some domains alone on some pCPUs."""

    pcpus: str
    """Such as `4-5`."""
    changes: Mapping[str, Any]
    """The affinities that make it so: full path to value."""


def isolation(document: Mapping[str, Any], names: Sequence[str]) -> Isolation | None:
    """Domains of one pool alone on the pCPUs that they are pinned to.

    A domain that is not pinned is not isolated: that would take pCPUs from everybody else.

    Args:
        document: the scenario as tables.
        names: the domains, all of one pool.

    Returns:
        `None`: none is pinned, or they are alone there, or nothing would be left for the others.

    Examples:
        >>> rt, batch = {"vcpus": 1, "affinity": "2"}, {"vcpus": 4}
        >>> host = {"pcpus": 4, "scheduler": "credit"}
        >>> isolation({"host": host, "domain": {"rt": rt, "batch": batch}}, ["rt"])
        Isolation(pcpus='2', changes={'domain.batch.affinity': '0-1,3'})
    """
    domains = document["domain"]
    pool = domains[names[0]].get("pool")
    frame = document["host"] if pool is None else document["pool"][pool]
    here = pcpus_of(document, pool)
    pinned = {name: mask for name in names if (mask := pinned_to(domains[name])) is not None}
    own = [pcpu for pcpu in here if any(pcpu in mask for mask in pinned.values())]
    if frame["scheduler"] in _ASSIGNED or not own or len(own) == len(here):
        return None
    changes: dict[str, Any] = {}
    for name, table in domains.items():
        if name not in pinned and table.get("pool") == pool:
            kept = _kept_off(table.get("affinity", "all"), here, own)
            changes |= {} if kept is None else {join(["domain", name, "affinity"]): kept}
    return Isolation(spans(own), changes) if changes else None


def pcpus_of(document: Mapping[str, Any], pool: str | None) -> list[int]:
    """The pCPUs of a pool; `None`: of the host's own."""
    if pool is not None:
        return members(document["pool"][pool]["pcpus"])
    taken = {pcpu for table in document.get("pool", {}).values() for pcpu in members(table["pcpus"])}
    return [pcpu for pcpu in range(int(document["host"]["pcpus"])) if pcpu not in taken]


def pinned_to(table: Mapping[str, Any]) -> set[int] | None:
    """The pCPUs that a domain is pinned to; `None`: it is not pinned."""
    given = table.get("affinity", "all")
    masks = given if isinstance(given, list) else [given]
    return None if "all" in masks else {pcpu for one in masks for pcpu in members(one)}


def _kept_off(affinity: str | Sequence[str], here: Sequence[int], own: Sequence[int]) -> str | list[str] | None:
    """The affinity of a domain without some pCPUs of its pool; `None`: it may not run there anyway."""
    masks = [affinity] if isinstance(affinity, str) else affinity
    allowed = [set(here) if one == "all" else set(members(one)) for one in masks]
    if not any(mask & set(own) for mask in allowed):
        return None
    left = [spans(sorted(mask - set(own) or set(here) - set(own))) for mask in allowed]
    return left[0] if isinstance(affinity, str) else left
