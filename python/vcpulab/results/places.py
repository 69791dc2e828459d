"""Where the pCPUs of a host are: the groups that charts and traces put them in."""

from vcpulab.scenario.scenario import Scenario


def groups(scenario: Scenario) -> list[list[str]]:
    """The groups that each pCPU is in, the largest first, such as `node 0` and `core 1`; empty on a flat host.

    Left out are kinds of groups that say nothing: a single one, sockets that are nodes, cores of one thread.
    """
    places = scenario.places
    nodes, sockets, cores = ({place[kind] for place in places} for kind in range(3))
    shown = [
        *([(len(sockets), 1, "socket")] if 1 < len(sockets) != len(nodes) else []),
        *([(len(nodes), 0, "node")] if len(nodes) > 1 else []),
        *([(len(cores), 2, "core")] if len(cores) < len(places) else []),
    ]
    return [[f"{kind} {place[at]}" for _, at, kind in sorted(shown)] for place in places if shown]


def labels(scenario: Scenario) -> dict[int, str]:
    """Each pCPU with its groups, such as `node 0 / core 1 / pCPU 2`, group by group; empty on a flat host."""
    paths = groups(scenario)
    ordered = sorted(range(len(paths)), key=lambda pcpu: (scenario.places[pcpu], pcpu))
    return {pcpu: " / ".join([*paths[pcpu], f"pCPU {pcpu}"]) for pcpu in ordered}
