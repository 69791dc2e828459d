"""What the threads of a core do together, by the constants of a profile: a thread is not a core.

The constants are those of `vcpulab profile show`: the speed of a kind of work beside another on the same core, in % of
its speed alone there. Of several siblings each takes what it takes where it is the only one.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from vcpulab.scenario.topology import Topology

KINDS = ("compute", "memory", "io")
"""The kinds of work, by what bounds their speed."""


def known(costs: Mapping[str, Any]) -> bool:
    """Does the profile say that two busy threads of a core slow each other down?"""
    return any(_beside(costs, one, other) < 1 for one in KINDS for other in KINDS)


def kind(document: Mapping[str, Any], domain: str) -> str:
    """The kind of work of a domain."""
    table = document["domain"][domain]
    usual = "io" if domain == "dom0" or table.get("driver_domain") else "compute"
    return str(table.get("bound_by", usual))


def kinds(document: Mapping[str, Any]) -> list[str]:
    """The kinds of work of a scenario's domains."""
    found = {kind(document, name) for name in document["domain"]}
    return [one for one in KINDS if one in found]


def core(costs: Mapping[str, Any], there: Iterable[str], threads: int) -> float:
    """The most work that so many threads of a core do together, in what one does alone.

    Examples:
        >>> half = {"smt_compute_beside_compute_percent": 65}
        >>> round(core(half, ["compute"], 2), 3), core(half, ["compute"], 1), core({}, ["compute"], 2)
        (1.3, 1.0, 2.0)
    """
    those = list(there)
    taken = min((1 / _beside(costs, one, other) - 1 for one in those for other in those), default=0.0)
    return max(busy / (1 + (busy - 1) * taken) for busy in range(1, threads + 1))


def cores(document: Mapping[str, Any], pcpus: Iterable[int], there: Iterable[str] | None = None) -> float:
    """The most work of these threads together, in what one does that has its core to itself.

    Args:
        document: a complete scenario.
        pcpus: the threads.
        there: the kinds of work; all that the scenario has, if left out.
    """
    host = document["host"]
    those = kinds(document) if there is None else list(there)
    groups = Topology.from_host(host).by_core(pcpus).values()
    most = {count: core(host["costs"], those, count) for count in {len(group) for group in groups}}
    return sum(most[len(group)] for group in groups)


def fastest(document: Mapping[str, Any]) -> float:
    """The most work in a second of a thread that is alone on its core, in seconds at the profile's clock rate.

    Examples:
        >>> turbo = {"cpu_mhz": 2000, "turbo_one_core_mhz": 3000, "memory_share_compute_percent": 50}
        >>> round(fastest({"host": {"pcpus": 1, "costs": turbo}, "domain": {"web": {}}}), 3)
        1.2
    """
    costs = document["host"]["costs"]
    nominal = float(costs["cpu_mhz"])
    times: float = max(costs.get(f"turbo_{which}_mhz", 0) / nominal for which in ("one_core", "all_cores"))
    shares: list[float] = [costs.get(f"memory_share_{one}_percent", 0) / 100 for one in kinds(document)]
    return max(1.0, *(1.0 / ((1 - share) / max(1.0, times) + share) for share in shares))


def said(document: Mapping[str, Any]) -> list[str]:
    """That a thread is not a core, and what that means on a host; nothing where each core has one thread."""
    host = document["host"]
    topology, costs = Topology.from_host(host), host["costs"]
    if topology.threads == 1:
        return []
    if not known(costs):
        return cautions(document)
    together = [core(costs, [kind], topology.threads) for kind in kinds(document)]
    least, most = min(together), max(together)
    times = f"{least:.2f}" if most - least < 0.005 else f"{least:.2f} to {most:.2f}"
    return [f"{_threads(topology)}, and {topology.threads} busy ones of a core do {times} times the work of one"]


def cautions(*documents: Mapping[str, Any]) -> list[str]:
    """That busy siblings cost nothing, on hosts with threads whose profile has no price for that; else nothing.

    Every answer from a simulation of such a host has this caution.

    Args:
        documents: complete scenarios; alike hosts are named once.
    """
    unpriced: dict[str, None] = {}
    for document in documents:
        host = document["host"]
        topology = Topology.from_host(host)
        if topology.threads > 1 and not known(host["costs"]):
            profile = f"profile {host['profile']} does not say what busy siblings cost each other"
            beyond = f"beyond {topology.sockets * topology.cores} busy pCPUs there is less to be had than it seems"
            unpriced[f"{_threads(topology)}, and {profile}: {beyond}"] = None
    return list(unpriced)


def _threads(topology: Topology) -> str:
    count = topology.sockets * topology.cores
    return f"a thread is not a core: the {topology.pcpus} pCPUs are threads of {count} core{'' if count == 1 else 's'}"


def _beside(costs: Mapping[str, Any], one: str, other: str) -> float:
    return float(costs.get(f"smt_{one}_beside_{other}_percent", 100)) / 100
