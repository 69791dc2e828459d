"""The groups of pCPUs in charts and traces: nodes, sockets, cores."""

from vcpulab.scenario.scenario import Scenario
from vcpulab.scenario.topology import Topology


def groups(scenario: Scenario) -> list[list[str]]:
    """The groups of each pCPU, the largest first, such as `node 0` and `core 1`; empty on a flat host.

    Left out are kinds of groups without information: a single group, sockets that are nodes, cores with one thread.
    """
    host = Topology.from_host(scenario.host)
    kinds = [(host.nodes, "node", host.node)]
    if host.sockets != host.nodes:
        kinds.append((host.sockets, "socket", host.socket))
    # Fewer groups are larger groups: a node may hold several sockets, or a socket several nodes.
    shown = [(kind, group_of) for count, kind, group_of in sorted(kinds, key=lambda kind: kind[0]) if count > 1]
    if host.threads > 1:
        shown.append(("core", host.core))
    return [[f"{kind} {group_of(pcpu)}" for kind, group_of in shown] for pcpu in range(host.pcpus) if shown]


def labels(scenario: Scenario) -> dict[int, str]:
    """Each pCPU with its groups, such as `node 0 / core 1 / pCPU 2`, group by group; empty on a flat host."""
    paths = groups(scenario)
    # Groups are in the order of their first pCPUs.
    ordered = sorted(range(len(paths)), key=lambda pcpu: (paths.index(paths[pcpu]), pcpu))
    return {pcpu: " / ".join([*paths[pcpu], f"pCPU {pcpu}"]) for pcpu in ordered}
