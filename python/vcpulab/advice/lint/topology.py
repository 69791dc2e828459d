"""Rules for vCPUs and affinities that do not fit the threads, cores and nodes of their host."""

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

import polars as pl

from vcpulab.advice.capacity.occupancy import NEAR_FULL
from vcpulab.advice.lint.host import FEW_WAITS, Finding, Host, of_domain
from vcpulab.advice.lint.pinning import MUCH_IDLE
from vcpulab.advice.lint.rule import Rules, Stands
from vcpulab.advice.placing.nodes import PREFER
from vcpulab.scenario.model import AffinityAction, MovePoolAction
from vcpulab.scenario.names import in_short
from vcpulab.scenario.topology import Topology
from vcpulab.scenario.units import spans

BUSY = 0.5
"""The running fraction of the time above which a vCPU keeps its thread busy. Assumed."""
rule = Rules[Callable[[Host], Iterator[Finding]]](Stands.NEVER)
note = Rules[Callable[[Host], Iterator[Finding]]](Stands.NOTED)


@rule("pinned-to-one-core")
def pinned_to_one_core(host: Host) -> Iterator[Finding]:
    """Busy vCPUs are pinned to the threads of one core, while other cores idle.

    Mechanism: The threads of a core share its execution units: two busy threads are slower than two cores. A scheduler
    fills idle cores first, but does not move pinned vCPUs.

    Evidence: The vCPUs that run for more than {BUSY:.0%} of the time and are pinned to some cores are more than these
    cores, and all threads of another core of the pool idle for more than {MUCH_IDLE:.0%}.

    Silent: No finding if a core has one thread, if vCPUs are scheduled by the core (`sched_gran`), or if the profile
    contains the cost of a shared core and it causes no loss here. For vCPUs that wait for each other on one thread see
    `pinning-leaves-idle` and `pinned-together`.

    Fix: Give each vCPU its own core, on the same node if it has idle cores.

    Schedulers: All but `arinc653`, which assigns pCPUs once.

    Sources: Tullsen, Eggers and Levy 1995, "Simultaneous multithreading: maximizing on-chip parallelism"; `xl info -n`
    shows the threads of each core.
    """
    if not host.by_thread:
        return
    for name, pool in host.pools.items():
        if pool.scheduler == "arinc653":
            continue
        cores = host.topology.by_core(host.pcpus_of(name))
        idle = [core for core, threads in cores.items() if all(host.idle_of([t]) > MUCH_IDLE for t in threads)]
        pinned = _busy_pinned(host, name, len(cores))
        reported: set[tuple[str, int]] = set()
        core_sets = {frozenset(allowed) for allowed in pinned.values()}
        for inside in sorted(core_sets, key=lambda core_set: (-len(core_set), sorted(core_set))):
            sharing = [vcpu for vcpu, allowed in pinned.items() if allowed <= inside and vcpu not in reported]
            near = {host.topology.node(cores[core][0]) for core in inside}
            spare = sorted(
                (core for core in idle if core not in inside),
                key=lambda core: (host.topology.node(cores[core][0]) not in near, core),
            )
            if len(sharing) <= len(inside) or not spare:
                continue
            reported.update(sharing)
            places = [cores[core][0] for core in [*sorted(inside), *spare]]
            fix = _a_core_for_each(host, sharing, places)
            if not fix:
                continue
            threads = sorted({pcpu for domain, number in sharing for pcpu in host.affinity(domain)[number]})
            idling = sorted(pcpu for core in spare for pcpu in cores[core])
            names = in_short(list(dict.fromkeys(domain for domain, _ in sharing)))
            reason = (
                f"{len(sharing)} busy vCPUs of {names} are pinned to pCPU {spans(threads)}, the threads of "
                f"{_count(len(inside), 'core')}, while pCPU {spans(idling)}, {_count(len(spare), 'core')}, idle for "
                f"{100 * host.idle_of(idling):.0f} %: threads of one core share its speed"
            )
            if host.slowed_by_siblings:
                yield Finding(next(iter(fix)), reason, fix)
            else:
                instead = " ".join(
                    f"{path}={value if isinstance(value, str) else json.dumps(value)}" for path, value in fix.items()
                )
                unknown = "the profile does not say how much, so the fix is not simulated"
                yield Finding(next(iter(fix)), f"{reason}; {unknown}: {instead}")


def _busy_pinned(host: Host, pool: str, cores: int) -> dict[tuple[str, int], set[int]]:
    """Domain and number of each busy vCPU that may not run on all cores of a pool, to the cores that it may run on."""
    cores_of = {}
    for domain in host.inside(pool):
        if host.domains[domain].affinity == "all":
            continue
        for number, (mask, busy) in enumerate(zip(host.affinity(domain), host.busy(domain), strict=False)):
            allowed = set(host.topology.by_core(mask))
            if busy > BUSY and len(allowed) < cores:
                cores_of[domain, number] = allowed
    return cores_of


def _a_core_for_each(host: Host, vcpus: Sequence[tuple[str, int]], places: Sequence[int]) -> dict[str, Any]:
    """The changes that pin vCPUs to places in order, while places are left; unchanged cores keep their affinity."""
    fix: dict[str, Any] = {}
    left = list(places)
    for domain in dict.fromkeys(domain for domain, _ in vcpus):
        numbers = [number for name, number in vcpus if name == domain]
        masks = host.affinity(domain)
        # A domain without places left stays on its cores.
        given = left[: len(numbers)] if len(left) >= len(numbers) else []
        left = left[len(numbers) :]
        before = {host.topology.core(pcpu) for number in numbers for pcpu in masks[number]}
        if not given or before == {host.topology.core(pcpu) for pcpu in given}:
            continue
        present = host.domains[domain].affinity
        if not isinstance(present, str):
            new = dict(zip(numbers, given, strict=True))
            fix[of_domain(domain, "affinity")] = [
                str(new[number]) if number in new else mask for number, mask in enumerate(present)
            ]
        else:
            fix[of_domain(domain, "affinity")] = spans(sorted(given))
    return fix


@rule("packed-by-soft-affinity")
def packed_by_soft_affinity(host: Host) -> Iterator[Finding]:
    """A soft affinity packs busy vCPUs onto few cores while other cores idle.

    Mechanism: A scheduler follows a soft affinity while a preferred pCPU is free, and a thread beside a busy sibling
    counts as free. So the vCPUs share the speed of few cores, or wait there, although they may run elsewhere.

    Evidence: More vCPUs of the domain run for more than {BUSY:.0%} of the time than it has preferred cores, or its
    vCPUs wait for more than {FEW_WAITS:.0%} of the time; all threads of another core of the pool idle for more than
    {MUCH_IDLE:.0%}.

    Silent: No finding if the scheduler ignores soft affinity, or if remote memory costs more than shared cores, so that
    removing the soft affinity improves nothing.

    Fix: Remove the soft affinity.

    Schedulers: `credit`, `credit2`, `null`.

    Sources: Xen's `docs/man/xl.cfg`, `cpus_soft`; Tullsen, Eggers and Levy 1995, "Simultaneous multithreading:
    maximizing on-chip parallelism".
    """
    for domain in host.domains:
        if not host.prefers(domain) or host.pool_of(domain).scheduler not in PREFER:
            continue
        allowed = set(chain.from_iterable(host.affinity(domain)))
        preferred = allowed & set(chain.from_iterable(host.soft_affinity(domain)))
        cores = host.topology.by_core(preferred)
        idle = {
            core: threads
            for core, threads in host.topology.by_core(allowed).items()
            if core not in cores and all(host.idle_of([thread]) > MUCH_IDLE for thread in threads)
        }
        busy = sum(share > BUSY for share in host.busy(domain))
        waits = host.mean_waited(domain)
        shares = host.by_thread and host.slowed_by_siblings and busy > len(cores)
        if not preferred or not idle or not (shares or waits > FEW_WAITS):
            continue
        path = of_domain(domain, "soft_affinity")
        idling = sorted(chain.from_iterable(idle.values()))
        packed = f"{busy} busy vCPUs share {_count(len(cores), 'core')}" if shares else f"{domain} waits"
        waiting = f", wait for {100 * waits:.0f} % of the time" if waits > FEW_WAITS else ""
        reason = (
            f"it prefers pCPU {spans(sorted(preferred))}, where its {packed}{waiting}, while pCPU {spans(idling)}, "
            f"{_count(len(idle), 'core')}, idle for {100 * host.idle_of(idling):.0f} %"
        )
        yield Finding(path, reason, {path: None}, concerned=(domain,))


@rule("wider-than-a-node")
def wider_than_a_node(host: Host) -> Iterator[Finding]:
    """A domain has more busy vCPUs than its node has threads.

    Mechanism: The vCPUs that do not fit on the node of the soft affinity or the memory run on another node, farther
    from the memory, or wait.

    Evidence: The domain has more vCPUs than threads on the nodes that it prefers, or on the nodes that hold its memory
    (`memory_nodes`). Its vCPUs want at least {NEAR_FULL:.0%} of the time of these threads.

    Silent: No finding on hosts with one node, if neither soft affinity nor memory names a node, or if most vCPUs idle.

    Fix: Allow as many nodes as needed, or reduce the vCPUs to the threads of the node.

    Schedulers: `credit`, `credit2`, `null`.

    Sources: Xen's `docs/man/xl.cfg`, `cpus_soft` and `vnuma`; `docs/concepts/topology.md`.
    """
    topology = host.topology
    if topology.nodes == 1:
        return
    for domain, table in host.domains.items():
        says = host.prefers(domain) or host.memory_nodes(domain)
        if not says or host.pool_of(domain).scheduler not in PREFER:
            continue
        allowed = set(chain.from_iterable(host.affinity(domain)))
        for field, preferred in (
            ("soft_affinity", set(chain.from_iterable(host.soft_affinity(domain)))),
            ("memory_nodes", set(_on(topology, range(topology.pcpus), host.memory_nodes(domain)))),
        ):
            usable = allowed & preferred
            nodes = set(topology.by_node(usable))
            if not usable or usable == allowed or len(nodes) == topology.nodes or table.vcpus <= len(usable):
                continue
            wanted = host.wanted(domain)
            if wanted < NEAR_FULL * len(usable):
                continue
            path, holds = of_domain(domain, field), "prefers" if field == "soft_affinity" else "has its memory beside"
            reason = (
                f"{domain} has {table.vcpus} vCPUs that want {wanted:.1f} pCPUs, and {holds} {len(usable)} threads "
                f"({_nodes(sorted(nodes))}): the others run on another node, or wait"
            )
            order = [*sorted(nodes), *(node for node in topology.by_node(allowed) if node not in nodes)]
            wider = next(
                (w for n in range(1, len(order) + 1) if len(w := _on(topology, allowed, order[:n])) >= table.vcpus),
                [],
            )
            value: Any = spans(wider) if field == "soft_affinity" else list(topology.by_node(wider))
            fewer = {of_domain(domain, "vcpus"): len(usable)}
            if not wider or not host.slowed_by_distance:
                or_more = f"{field} = {json.dumps(value)}, or " if wider else ""
                yield Finding(path, f"{reason}; {or_more}{len(usable)} vCPUs fit")
            else:
                yield Finding(path, reason, {path: value}, otherwise=(fewer,))
            break


def _on(topology: Topology, pcpus: Any, nodes: Any) -> list[int]:
    """The pCPUs that are on some nodes."""
    by_node = topology.by_node(pcpus)
    return sorted(pcpu for node in nodes for pcpu in by_node.get(node, []))


def _nodes(nodes: Sequence[int]) -> str:
    return f"node{'' if len(nodes) == 1 else 's'} {spans(nodes)}"


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


@rule("soft-affinity-without-effect", stands=Stands.ALWAYS)
def soft_affinity_without_effect(host: Host) -> Iterator[Finding]:
    """A soft affinity has no effect.

    Mechanism: A soft affinity has an effect if it includes some, but not all, of the pCPUs that the domain may run on.
    Otherwise the domain runs as if it had none.

    Evidence: By the settings, the soft affinity covers all of the hard affinity, or has no pCPU in common with it, or
    the scheduler ignores it.

    Silent: No finding if it has an effect for one of the domain's vCPUs, or if an action changes the domain's pinning
    or pool while the host runs.

    Fix: Remove it, or name fewer pCPUs, or pCPUs that the domain may run on.

    Schedulers: All.

    Sources: Xen's `docs/man/xl.cfg`, `cpus_soft`; `docs/concepts/topology.md`.
    """
    moved = {
        action.domain
        for action in host.scenario.actions
        if isinstance(action, MovePoolAction) or (isinstance(action, AffinityAction) and action.affinity is not None)
    }
    for domain in host.domains:
        scheduler = host.pool_of(domain).scheduler
        if not host.prefers(domain) or domain in moved:
            continue
        masks = list(zip(map(set, host.affinity(domain)), map(set, host.soft_affinity(domain)), strict=True))
        if scheduler not in PREFER:
            placed = host.topology.nodes > 1 and not host.memory_nodes(domain)
            cause = f"{scheduler} pays no attention to it{', though memory is allocated there' if placed else ''}"
        elif not any(hard & soft for hard, soft in masks):
            allowed = spans(sorted(set.union(*(hard for hard, _ in masks))))
            cause = f"{domain} may not run there, but only on pCPU {allowed}"
        elif all(hard <= soft for hard, soft in masks):
            cause = f"that is everywhere where {domain} may run"
        elif all(hard <= soft or not hard & soft for hard, soft in masks):
            cause = f"each vCPU of {domain} may run everywhere there, or nowhere"
        else:
            continue
        preferred = sorted(set.union(*(soft for _, soft in masks)))
        reason = f"it prefers pCPU {spans(preferred)}, which does nothing: {cause}. Leave it out"
        yield Finding(of_domain(domain, "soft_affinity"), reason)


@rule("more-vcpus-than-threads")
def more_vcpus_than_threads(host: Host) -> Iterator[Finding]:
    """A domain has more vCPUs than the threads that it may run on, and they wait for each other.

    Mechanism: At most one vCPU for each thread runs at a time; the others wait behind their siblings. The guest expects
    processors that do not exist, and waits for locks, or for all of its threads, take longer.

    Evidence: The domain's vCPUs want to run on more pCPUs than it may use, and wait for more than {FEW_WAITS:.0%} of
    the time on average.

    Silent: No finding if most of its vCPUs idle, or if fewer vCPUs improve nothing.

    Fix: Reduce the vCPUs to the number of threads.

    Schedulers: All but `arinc653`, whose timetable names the vCPUs.

    Sources: Uhlig, LeVasseur, Skoglund and Dannowski 2004, "Towards scalable multiprocessor virtual machines".
    """
    for domain, table in host.domains.items():
        if table.vcpus == 1:
            continue
        allowed = set(chain.from_iterable(host.affinity(domain)))
        if table.vcpus <= len(allowed) or host.pool_of(domain).scheduler == "arinc653":
            continue
        wanted, waits = host.wanted(domain), host.mean_waited(domain)
        if wanted <= len(allowed) or waits <= FEW_WAITS:
            continue
        path = of_domain(domain, "vcpus")
        reason = (
            f"{domain} has {table.vcpus} vCPUs and may run on {_count(len(allowed), 'thread')}: its vCPUs wait for "
            f"{100 * waits:.0f} % of the time, for each other too"
        )
        yield Finding(path, reason, {path: len(allowed)})


@note("cores-shared")
def cores_shared(host: Host) -> Iterator[Finding]:
    """Domains may run beside each other on the threads of one core. This is a note, not a problem.

    Mechanism: The threads of a core share its caches, buffers and predictors, through which one domain can observe the
    work of another. With `sched_gran = "core"` a core runs one domain at a time; if that domain has work for one thread
    only, the other thread idles.

    Evidence: By the settings, several domains may use cores with several threads that are scheduled one by one.

    Silent: No note if a core has one thread, if domains have cores of their own, or if the scheduler has no core
    scheduling.

    Fix: No fix is needed if all domains trust each other; the cost of core scheduling is simulated.

    Schedulers: Those of Xen 4.13 and later.

    Sources: Xen's `docs/misc/xen-command-line`, `sched-gran`; Xen Security Advisory 297 (microarchitectural data
    sampling).
    """
    if not host.by_thread:
        return
    active = set(host.run.df_vcpus().filter(pl.col("running_ns") > 0)["domain"])
    on: dict[int, set[str]] = {}
    for domain in host.domains:
        if domain in active:
            for core in host.topology.by_core(chain.from_iterable(host.affinity(domain))):
                on.setdefault(core, set()).add(domain)
    shared = [core for core, domains in on.items() if len(domains) > 1]
    if not shared:
        return
    sharing = set().union(*(on[core] for core in shared))
    names = in_short([domain for domain in host.domains if domain in sharing])
    reason = f"{names} may run beside each other on the threads of {_count(len(shared), 'core')}"
    yield Finding("host.sched_gran", reason, {"host.sched_gran": "core"})
