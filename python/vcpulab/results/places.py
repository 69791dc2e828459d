"""Where the pCPUs of a host are: the groups that charts and traces put them in."""

from vcpulab.scenario.scenario import Scenario
from vcpulab.scenario.topology import Topology


def groups(scenario: Scenario) -> list[list[str]]:
    """The groups that each pCPU is in, the largest first, such as `node 0` and `core 1`; empty on a flat host.

    Left out are kinds of groups that say nothing: a single one, sockets that are nodes, cores of one thread.
    """
    host = Topology.of(scenario.to_dict()["host"])
    kinds = [(host.nodes, "node", host.node)]
    if host.sockets != host.nodes:
        kinds.append((host.sockets, "socket", host.socket))
    # A node of several sockets is around them, and a socket of several nodes around these.
    shown = [(kind, of) for count, kind, of in sorted(kinds, key=lambda kind: kind[0]) if count > 1]
    if host.threads > 1:
        shown.append(("core", host.core))
    return [[f"{kind} {of(pcpu)}" for kind, of in shown] for pcpu in range(host.pcpus) if shown]


def labels(scenario: Scenario) -> dict[int, str]:
    """Each pCPU with its groups, such as `node 0 / core 1 / pCPU 2`, group by group; empty on a flat host."""
    paths = groups(scenario)
    # Groups stand in the order of their first pCPUs.
    ordered = sorted(range(len(paths)), key=lambda pcpu: (paths.index(paths[pcpu]), pcpu))
    return {pcpu: " / ".join([*paths[pcpu], f"pCPU {pcpu}"]) for pcpu in ordered}
