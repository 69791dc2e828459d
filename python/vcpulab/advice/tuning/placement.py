"""Parameters of the vCPUs' place, on hosts with cores, threads and nodes."""

from collections.abc import Iterable, Iterator

from vcpulab.advice.placing.nodes import PREFER, soft
from vcpulab.advice.tuning.spaces import Option, Parameter
from vcpulab.errors import RequestError
from vcpulab.scenario import settings
from vcpulab.scenario.model import Host
from vcpulab.scenario.scenario import Scenario, join
from vcpulab.scenario.topology import Topology
from vcpulab.scenario.units import spans

GRANULARITY = "host.sched_gran"


def placement_parameters(scenario: Scenario) -> Iterator[Parameter]:
    """Core scheduling on hosts with threads, and soft affinity of all domains by node on hosts with nodes."""
    if scenario.host.hypervisor == "kvm":
        # Linux has neither core scheduling of VMs nor soft affinity.
        return
    topology, now = Topology.from_host(scenario.host), scenario.host.sched_gran
    if topology.threads > 1:
        names = ["cpu", *(granularity for granularity in ("core", now) if granularity != "cpu")]
        options = [Option(name, name) for name in dict.fromkeys(names) if name == now or _can_be(scenario, name)]
        yield Parameter(GRANULARITY, tuple(options), [option.label for option in options].index(now), ordered=False)
    if topology.nodes > 1:
        masks = {join(["domain", name, "soft_affinity"]): mask for name, mask in soft(scenario.model).items()}
        if len(masks) > 1:
            options = [Option("as it is", None), Option("by node", masks)]
            yield Parameter("host.soft_affinity", tuple(options), 0, ordered=False)


def soft_affinities(scenario: Scenario, names: Iterable[str], *, by_default: bool) -> Iterator[Parameter]:
    """The soft affinity of some domains: none, or one of the nodes."""
    topology = Topology.from_host(scenario.host)
    nodes = {f"node {node}": spans(pcpus) for node, pcpus in topology.by_node().items()}
    if scenario.host.scheduler not in PREFER:
        return
    for name in names:
        domain = scenario.domains[name]
        now = domain.soft_affinity or "all"
        options = [Option("none" if now == "all" else "as it is", now if now == "all" else None)]
        options += [Option("none", "all")] if now != "all" else []
        fits = domain.affinity == "all" and domain.vcpus <= topology.pcpus // topology.nodes
        if fits and topology.nodes > 1 and not scenario.pools:
            options += [Option(label, mask) for label, mask in nodes.items() if mask != now]
        path = join(["domain", name, "soft_affinity"])
        if len(options) > 1:
            yield Parameter(path, tuple(options), 0, ordered=False, by_default=by_default)


def run_queues(host: Host, names: Iterable[str], now: str) -> list[str]:
    """The arrangements of Credit2's run queues that differ on a host; of equal ones, the present one.

    Examples:
        >>> topology = {"sockets": 2, "cores": 4, "threads": 2, "nodes": 2, "numbering": "adjacent"}
        >>> flat, big = Host({"pcpus": 8}), Host({"topology": topology})
        >>> every = ["cpu", "core", "socket", "node", "all"]
        >>> run_queues(flat, every, "socket"), run_queues(big, every, "socket")
        (['cpu', 'socket'], ['cpu', 'core', 'socket', 'all'])
    """
    topology = Topology.from_host(host)
    sizes = {
        "cpu": 1,
        "core": topology.threads,
        "socket": topology.pcpus // topology.sockets,
        "node": topology.pcpus // topology.nodes,
        "all": topology.pcpus,
    }
    listed = sorted(names, key=lambda name: name != now)
    kept = {sizes[name]: name for name in reversed(listed)}
    return [name for name in names if name in kept.values()]


def _can_be(scenario: Scenario, granularity: str) -> bool:
    try:
        settings.change(scenario, {GRANULARITY: granularity})
    except RequestError:
        return False
    return True
