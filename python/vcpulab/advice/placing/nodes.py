"""Placement of domains on the nodes of a host, each in one node, and of vCPUs on cores of their own if possible."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from vcpulab.scenario.model import Model
from vcpulab.scenario.topology import Topology
from vcpulab.scenario.units import spans

PREFER = ("credit", "credit2", "null")
"""The schedulers that look at soft affinity: docs/concepts/topology.md."""


class Wish(NamedTuple):
    """The needs of a domain on its node."""

    vcpus: int
    pcpus: float
    """The number of pCPUs that its vCPUs keep busy."""


def by_node(topology: Topology, wishes: Mapping[str, Wish]) -> dict[str, int]:
    """The node of each domain that fits into one: the busiest first, each on the node with most of its cores left.

    A thread is not a core: domains fill nodes in proportion to the nodes' cores.

    Examples:
        >>> two = Topology(2, 2, 2, 2)
        >>> by_node(two, {"a": Wish(2, 2.0), "b": Wish(4, 1.5), "c": Wish(1, 0.4), "wide": Wish(6, 6.0)})
        {'a': 0, 'b': 1, 'c': 1}
    """
    threads = topology.by_node()
    cores = {node: len(topology.by_core(pcpus)) for node, pcpus in threads.items()}
    left = {node: float(count) for node, count in cores.items()}
    chosen: dict[str, int] = {}
    for name, wish in sorted(wishes.items(), key=lambda item: (-item[1].pcpus, -item[1].vcpus)):
        fitting = [node for node, pcpus in threads.items() if wish.vcpus <= len(pcpus)]
        if fitting:
            chosen[name] = max(fitting, key=lambda node: (left[node] / cores[node], -node))
            left[chosen[name]] -= wish.pcpus
    return {name: chosen[name] for name in wishes if name in chosen}


def soft(scenario: Model, busy: Mapping[str, float] | None = None) -> dict[str, str | list[str]]:
    """Soft affinities that keep each domain without an affinity in one node and one socket.

    Null gives each vCPU a pCPU for good and does not consider cores: under it, each vCPU gets its own core while cores
    are left. Driver domains get no affinity: the domains that they serve are on all nodes.

    Args:
        scenario: the scenario.
        busy: domain to the number of pCPUs it keeps busy; by default the number of its vCPUs.
    """
    host, topology = scenario.host, Topology.from_host(scenario.host)
    if host.scheduler not in PREFER or scenario.pools:
        return {}
    free = {
        name: Wish(domain.vcpus, (busy or {}).get(name, float(domain.vcpus)))
        for name, domain in scenario.domains.items()
        if not domain.driver_domain and domain.affinity == "all" and domain.soft_affinity in (None, "all")
    }
    null = host.scheduler == "null" and host.sched_gran == "cpu"
    # A node of several sockets: Credit fills a core's threads before it goes to another socket that is hardly emptier.
    topology = replace(topology, nodes=max(topology.nodes, topology.sockets))
    if topology.nodes == 1 and not (null and topology.threads > 1):
        return {}
    nodes = by_node(topology, free)
    threads = topology.by_node()
    if not null:
        return {name: spans(threads[node]) for name, node in nodes.items()}
    left = {node: cores_first(topology, pcpus) for node, pcpus in threads.items()}
    masks: dict[str, str | list[str]] = {}
    for name in sorted(nodes, key=lambda domain: -free[domain].pcpus / free[domain].vcpus):
        given, left[nodes[name]] = left[nodes[name]][: free[name].vcpus], left[nodes[name]][free[name].vcpus :]
        if len(given) == free[name].vcpus:
            masks[name] = [str(pcpu) for pcpu in given] if len(given) > 1 else str(given[0])
    return {name: masks[name] for name in nodes if name in masks}


def cores_first(topology: Topology, pcpus: Iterable[int]) -> list[int]:
    """The pCPUs, the first thread of each core before any second thread.

    Examples:
        >>> cores_first(Topology(1, 2, 2, 1), range(4))
        [0, 2, 1, 3]
    """
    cores: Sequence[Sequence[int]] = list(topology.by_core(pcpus).values())
    return [core[index] for index in range(topology.threads) for core in cores if index < len(core)]
