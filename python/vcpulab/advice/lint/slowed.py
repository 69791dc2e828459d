"""Causes of lateness that XenMon does not show: CPU time in which a vCPU does less work.

CPU time is not work: a vCPU that runs beside a busy sibling, far from its memory, or at a low clock rate has its pCPU,
and does less with it. Each rule checks the domain whose vCPU is the bottleneck of a late service.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from math import ceil
from typing import Any

import polars as pl

from vcpulab.advice.lint.host import Finding, Host, of_domain, of_pool
from vcpulab.advice.lint.pinning import MUCH_IDLE
from vcpulab.advice.lint.rule import Rules, Stands
from vcpulab.advice.placing.nodes import PREFER, cores_first, soft
from vcpulab.advice.runstates import lost
from vcpulab.scenario.units import spans

SLOWED = 0.1
"""The lost fraction of its CPU time above which a domain is slowed. Assumed."""
FEW = 20
"""The largest number of domains to pin away from another: the commands for more are too long to type."""

cause = Rules[Callable[[Host, str], Finding | None]](Stands.ALONE)


def slowed(host: Host, domain: str) -> Iterator[Finding]:
    """The findings about a domain that loses more CPU time to slow pCPUs than to waits, the largest loss first."""
    losses = {rule.name: lost(host.run, domain, to) for rule, to in zip(cause.all, _LOST_TO, strict=True)}
    if sum(losses.values()) * max(host.busy(domain), default=0.0) < host.waited(domain):
        return
    for rule in sorted(cause.all, key=lambda rule: -losses[rule.name]):
        finding = rule.check(host, domain) if losses[rule.name] > SLOWED else None
        if finding is not None:
            yield rule.stamped(finding)


_LOST_TO = ("threads", "memory", "frequency")
"""The kinds of loss, in the order of the rules below."""


@cause("threads-shared")
def _threads_shared(host: Host, domain: str) -> Finding | None:
    """A late service loses CPU time to busy threads of the same cores.

    Mechanism: The threads of a core share its execution units. XenMon counts the time that a vCPU has its thread,
    including the speed that a busy sibling takes from it.

    Evidence: The domain that serves the late client, or whose vCPU is the bottleneck, loses more than {SLOWED:.0%} of
    its running time to this cause, and to all such causes together more than it waits.

    Silent: No finding if no service is late, or if the profile contains no slowdown by siblings.

    Fix: Remove the pinning if other cores idle; prefer idle cores to second threads if the scheduler is set to do
    otherwise or does not; use core scheduling; or give the domain its own cores, and pin the others away from them.

    Schedulers: All.

    Sources: Tullsen, Eggers and Levy 1995, "Simultaneous multithreading: maximizing on-chip parallelism"; the profile's
    constants: `vcpulab profile show`.
    """
    table, pool = host.domains[domain], host.domains[domain].pool
    here = host.pcpus_of(pool)
    idle = [core for core in host.topology.by_core(here).values() if all(host.idle_of([p]) > MUCH_IDLE for p in core)]
    reach = set(chain.from_iterable(host.affinity(domain)))
    fixes: list[Mapping[str, Any]] = []
    if idle and reach < set(here):
        fixes.append({of_domain(domain, "affinity"): "all"})
    if idle and host.setting(domain, "smt_power_savings"):
        fixes.append({of_pool(pool, "smt_power_savings"): 0})
    if idle and host.pool_of(domain).scheduler not in PREFER:
        fixes.append({of_domain(domain, "affinity"): _cores(host, idle, table.vcpus)})
    fixes += [{"host.sched_gran": "core"}] if host.by_thread else []
    fixes += _own_cores(host, domain, here)
    idling = f", while {len(idle)} cores idle" if len(idle) > 1 else ", while a core idles" if idle else ""
    reason = (
        f"{domain} loses {100 * lost(host.run, domain, 'threads'):.0f} % of its CPU time to busy threads of the same "
        f"cores{idling}: it {_gets(host, domain)}"
    )
    first, *further = fixes or [{}]
    return Finding(of_domain(domain, "affinity"), reason, first, otherwise=tuple(further))


def _cores(host: Host, idle: list[list[int]], vcpus: int) -> str:
    """The first threads of idle cores, one for each vCPU."""
    return spans(sorted(cores_first(host.topology, chain.from_iterable(idle))[:vcpus]))


def _own_cores(host: Host, domain: str, here: list[int]) -> Iterator[Mapping[str, Any]]:
    """The fix that gives each vCPU its own core; none if the other domains are many, pinned, or left too little."""
    pool = host.domains[domain].pool
    neighbors = [name for name in host.inside(pool) if name != domain]
    cores = list(host.topology.by_core(here).values())
    needed = min(host.domains[domain].vcpus, ceil(host.wanted(domain)))
    pinned = any(host.domains[name].affinity != "all" for name in [domain, *neighbors])
    if not 0 < needed <= len(cores) // 2 or len(neighbors) > FEW or pinned:
        return
    own = sorted(chain.from_iterable(cores[-needed:]))
    rest = [pcpu for pcpu in here if pcpu not in own]
    yield {of_domain(domain, "affinity"): spans(sorted(core[0] for core in cores[-needed:]))} | {
        of_domain(name, "affinity"): spans(rest) for name in neighbors
    }


def _gets(host: Host, domain: str) -> str:
    """The CPU time and the work of a domain, in words."""
    sums = host.run.df_domains().filter(domain=domain).select(pl.col("work_ns", "elapsed_ns").sum())
    work, elapsed = sums.row(0)
    return f"gets {host.gotten(domain):.0f} % of a pCPU, and does the work of {100 * work / max(1, elapsed):.0f} %"


@cause("memory-remote")
def _memory_remote(host: Host, domain: str) -> Finding | None:
    """A late service loses CPU time to memory on another node, or to a node whose memory is crowded.

    Mechanism: Memory of another node takes longer, and all vCPUs share the memory bandwidth of each node. The vCPU
    keeps its pCPU while it waits for memory.

    Evidence: The domain that serves the late client, or whose vCPU is the bottleneck, loses more than {SLOWED:.0%} of
    its running time to this cause, and to all such causes together more than it waits.

    Silent: No finding if no service is late, or if the profile contains no distance between nodes.

    Fix: Set soft affinity to the node that holds its memory. If its memory is spread over nodes, use one node for
    memory and vCPUs, for this domain or for each of all domains. If it already runs beside its memory, use another node
    for both. Memory is placed when a domain is created.

    Schedulers: `credit`, `credit2`, `null`: those with soft affinity. Under others the domain is pinned to the node.

    Sources: Dashti et al. 2013, "Traffic management: a holistic approach to memory placement on NUMA systems"; Xen's
    `docs/man/xl.cfg`, `cpus` and `cpus_soft`; the profile's constants: `vcpulab profile show`.
    """
    topology, table = host.topology, host.domains[domain]
    field = "soft_affinity" if host.pool_of(domain).scheduler in PREFER else "affinity"
    path, by_node = of_domain(domain, field), topology.by_node(host.pcpus_of(table.pool))
    prefers = {
        topology.node(p) for masks in (host.affinity(domain), host.soft_affinity(domain)) for m in masks for p in m
    }
    holds = host.memory_nodes(domain)
    present = (table.soft_affinity or "all") if field == "soft_affinity" else table.affinity
    fitting = [node for node, pcpus in by_node.items() if table.vcpus <= len(pcpus)]
    emptiest = sorted(fitting, key=lambda node: -host.idle_of(by_node[node]))
    fixes: list[Mapping[str, Any]] = []
    near = sorted(pcpu for node in holds for pcpu in by_node.get(node, []))
    if near and len(near) < topology.pcpus and (not prefers <= set(holds) or present == "all"):
        fixes.append({path: spans(near)})
    memory_follows = {of_domain(domain, "memory_nodes"): None} if holds else {}
    fixes += [{path: spans(by_node[node]), **memory_follows} for node in emptiest if spans(by_node[node]) != present]
    masks = soft(host.scenario.model, {name: host.gotten(name) / 100 for name in host.domains})
    if domain in masks:
        fixes.append({of_domain(name, "soft_affinity"): mask for name, mask in masks.items()})
    where = f"its memory is on node {spans(holds)}" if holds else "its memory is on the nodes that it may run on"
    reason = (
        f"{domain} loses {100 * lost(host.run, domain, 'memory'):.0f} % of its CPU time to memory that is far or "
        f"crowded: {where}; it {_gets(host, domain)}"
    )
    first, *further = fixes or [{}]
    return Finding(path, reason, first, otherwise=tuple(further))


@cause("low-clock-rate")
def _low_clock_rate(host: Host, domain: str) -> Finding | None:
    """A late service loses CPU time to a clock rate below the nominal one.

    Mechanism: A governor that saves power gives a core the rate that its load seems to need; caps and short bursts keep
    the load low. The vCPU has its pCPU, which does less.

    Evidence: The domain that serves the late client, or whose vCPU is the bottleneck, loses more than {SLOWED:.0%} of
    its running time to this cause, and to all such causes together more than it waits.

    Silent: No finding if no service is late, or if the profile has one clock rate.

    Fix: Use the governor `performance`.

    Schedulers: All.

    Sources: Pallipadi and Starikovskiy 2006, "The ondemand governor"; Xen's `docs/misc/xen-command-line`, `cpufreq`.
    """
    governor = host.scenario.host.governor
    reason = (
        f"{domain} loses {100 * lost(host.run, domain, 'frequency'):.0f} % of its CPU time to low clock rates "
        f"(governor {governor}): it {_gets(host, domain)}"
    )
    fix = {} if governor == "performance" else {"host.governor": "performance"}
    return Finding("host.governor", reason, fix)
