"""The joint throughput of the threads of a core, by the constants of a profile: a thread is not a core.

`vcpulab profile show` lists the constants: the speed of a kind of work next to another kind on the same core, in % of
its speed alone. With several siblings, each one costs as much as a single sibling would.
"""

from collections.abc import Iterable

from vcpulab.scenario.model import Costs, Model
from vcpulab.scenario.topology import Topology

KINDS = ("compute", "memory", "io")
"""The kinds of work, by what bounds their speed."""


def has_sibling_costs(costs: Costs) -> bool:
    """`True`: in this profile, busy threads of a core slow each other down."""
    return any(_beside(costs, kind, sibling) < 1 for kind in KINDS for sibling in KINDS)


def kind(scenario: Model, domain: str) -> str:
    """The kind of work of a domain."""
    return scenario.domains[domain].bound_by


def kinds(scenario: Model) -> list[str]:
    """The kinds of work of a scenario's domains."""
    present = {kind(scenario, name) for name in scenario.domains}
    return [kind for kind in KINDS if kind in present]


def core(costs: Costs, work: Iterable[str], threads: int) -> float:
    """The largest joint throughput of a number of threads of a core, relative to a single thread.

    Examples:
        >>> half = Costs({"smt_compute_beside_compute_percent": 65})
        >>> round(core(half, ["compute"], 2), 3), core(half, ["compute"], 1), core(Costs({}), ["compute"], 2)
        (1.3, 1.0, 2.0)
    """
    present = list(work)
    taken = min((1 / _beside(costs, kind, sibling) - 1 for kind in present for sibling in present), default=0.0)
    return max(busy / (1 + (busy - 1) * taken) for busy in range(1, threads + 1))


def cores(scenario: Model, pcpus: Iterable[int], work: Iterable[str] | None = None) -> float:
    """The largest joint throughput of some threads, relative to a thread alone on its core.

    Args:
        scenario: the scenario.
        pcpus: the threads.
        work: the kinds of work; all kinds in the scenario if left out.
    """
    present = kinds(scenario) if work is None else list(work)
    groups = Topology.from_host(scenario.host).by_core(pcpus).values()
    most = {count: core(scenario.host.costs, present, count) for count in {len(group) for group in groups}}
    return sum(most[len(group)] for group in groups)


def fastest(scenario: Model) -> float:
    """The largest work per second of a thread alone on its core, in seconds at the profile's clock rate.

    Examples:
        >>> turbo = {"cpu_mhz": 2000, "turbo_one_core_mhz": 3000, "memory_share_compute_percent": 50}
        >>> web = {"driver_domain": False, "bound_by": "compute"}
        >>> round(fastest(Model({"host": {"pcpus": 1, "costs": turbo}, "domain": {"web": web}})), 3)
        1.2
    """
    costs = scenario.host.costs
    times = max(costs.turbo_one_core_mhz, costs.turbo_all_cores_mhz) / costs.cpu_mhz
    shares = [costs.constant(f"memory_share_{kind}_percent") / 100 for kind in kinds(scenario)]
    return max(1.0, *(1.0 / ((1 - share) / max(1.0, times) + share) for share in shares))


def notes(scenario: Model) -> list[str]:
    """A note that a thread is not a core, with the effect on this host; none if each core has one thread."""
    topology, costs = Topology.from_host(scenario.host), scenario.host.costs
    if topology.threads == 1:
        return []
    if not has_sibling_costs(costs):
        return cautions(scenario)
    together = [core(costs, [kind], topology.threads) for kind in kinds(scenario)]
    least, most = min(together), max(together)
    times = f"{least:.2f}" if most - least < 0.005 else f"{least:.2f} to {most:.2f}"
    return [f"{_threads(topology)}, and {topology.threads} busy ones of a core do {times} times the work of one"]


def cautions(*scenarios: Model) -> list[str]:
    """Warnings that busy siblings cost nothing, for hosts with threads whose profile has no such cost.

    Every answer from a simulation of such a host has this caution.

    Args:
        scenarios: the scenarios; alike hosts are named once.
    """
    unpriced: dict[str, None] = {}
    for scenario in scenarios:
        topology = Topology.from_host(scenario.host)
        if topology.threads > 1 and not has_sibling_costs(scenario.host.costs):
            profile = f"profile {scenario.host.profile} does not say what busy siblings cost each other"
            beyond = f"beyond {topology.sockets * topology.cores} busy pCPUs there is less to be had than it seems"
            unpriced[f"{_threads(topology)}, and {profile}: {beyond}"] = None
    return list(unpriced)


def _threads(topology: Topology) -> str:
    count = topology.sockets * topology.cores
    return f"a thread is not a core: the {topology.pcpus} pCPUs are threads of {count} core{'' if count == 1 else 's'}"


def _beside(costs: Costs, kind: str, sibling: str) -> float:
    return costs.constant(f"smt_{kind}_beside_{sibling}_percent") / 100
