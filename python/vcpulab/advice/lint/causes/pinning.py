"""Causes of lateness by places: pinning, and pools that are too small."""

from vcpulab.advice.isolation import isolation, pinned_to
from vcpulab.advice.lint.held import LATE_IS, Held, cause  # noqa: F401 - pages of the rules
from vcpulab.advice.lint.host import IDLE, Finding, of_domain
from vcpulab.hypervisors.settings import POOL_0
from vcpulab.scenario.names import in_short
from vcpulab.scenario.scenario import join
from vcpulab.scenario.threads import host_threads
from vcpulab.scenario.units import pcpu_set, spans


@cause("pinned-together")
def _pinned(held: Held) -> Finding | None:
    """A late service is pinned to pCPUs that other domains use, while other pCPUs idle.

    Mechanism: Pinning is absolute: a pinned vCPU waits for its pCPUs even if others are free.

    Evidence: The vCPUs of the service wait, and the pCPUs of its pool that it may not use idle for more than {IDLE:.0%}
    of the time. A service is late at a response p99 {LATE_IS}.

    Silent: No finding if no service is late, or if no other pCPU idles.

    Fix: Remove the pinning of the service. If none of the domains that it waits for is pinned, first try to keep all
    other domains off its pCPUs.

    Schedulers: All that share pCPUs.

    Sources: Xen's `xl vcpu-pin`, hard affinity.
    """
    host, domain = held.host, held.domain
    excluded = host.pinned_away_from(domain, IDLE)
    if not held.waits or not excluded:
        return None
    beside = [name for name, _ in host.behind(domain) if name != domain]
    pinned = [name for name in beside if pinned_to(host.domains[name]) is not None]
    roaming = [name for name in beside if name not in pinned]
    path = of_domain(domain, "affinity")
    own = spans(sorted(pinned_to(host.domains[domain]) or ()))
    where = f"{domain} is pinned together with {in_short(pinned)}" if pinned else f"{domain} is pinned to pCPU {own}"
    shares = f", where {in_short(roaming)} may run, too" if roaming else ""
    reason = (
        f"{where}{shares}, and waits for {100 * host.waited(domain):.0f} % of the "
        f"time, while {len(excluded)} other pCPUs idle for {100 * host.idle_of(excluded):.0f} %"
    )
    free, isolated = {path: "all"}, isolation(host.scenario.model, [domain])
    fixes = [free] if isolated is None else [free, isolated.changes] if pinned else [isolated.changes, free]
    return Finding(path, reason, fixes[0], otherwise=tuple(fixes[1:]))


@cause("host-thread-pinned")
def _thread_pinned(held: Held) -> Finding | None:
    """The emulator, vhost or I/O thread of a late VM is pinned to pCPUs that others use, while other pCPUs idle.

    Mechanism: All packets and disk requests of a VM pass these threads of the host. A thread that is pinned waits for
    its pCPUs even if others are free, and the vCPUs of its VM hardly run meanwhile.

    Evidence: The thread is what the requests wait for. The pCPUs that it may not use idle for more than {IDLE:.0%} of
    the time. A service is late at a response p99 {LATE_IS}.

    Silent: No finding if no service is late, or if no other pCPU idles.

    Fix: Remove the pinning of the thread, or else pin it to the pCPUs that idle most.

    Schedulers: `linux-cfs`, `linux-eevdf`.

    Sources: libvirt's domain XML, `cputune` (`emulatorpin`, `iothreadpin`).
    """
    host, domain = held.host, held.domain
    pinned = next(
        (
            thread
            for thread in host_threads(host.scenario.model)
            if thread.domain == domain and held.station.thread.startswith(str(thread)) and thread.affinity != "all"
        ),
        None,
    )
    if pinned is None:
        return None
    field = "iothread_affinity" if pinned.kind == "iothread" else "emulator_affinity"
    mask = pcpu_set(pinned.affinity, host.topology.pcpus)
    excluded = [pcpu for pcpu in held.pcpus if pcpu not in mask]
    if not excluded or host.idle_of(excluded) <= IDLE:
        return None
    idlest = sorted(excluded, key=lambda pcpu: -host.idle_of([pcpu]))[:2]
    path = of_domain(domain, field)
    reason = (
        f"the {held.station.thread}: it is pinned to pCPU {spans(sorted(mask))}, while {len(excluded)} other "
        f"pCPU{'s' if len(excluded) > 1 else ''} idle for {100 * host.idle_of(excluded):.0f} %"
    )
    return Finding(path, reason, {path: "all"}, otherwise=({path: spans(sorted(idlest))},))


@cause("pool-too-small")
def _crowded_pool(held: Held) -> Finding | None:
    """The pool of a late service is full while pCPUs outside it idle.

    Mechanism: A CPU pool is a whole host to its domains: they cannot use free pCPUs of other pools.

    Evidence: The pool's pCPUs idle for less than {IDLE:.0%} of the time, the other pCPUs for more than three times
    that. A service is late at a response p99 {LATE_IS}.

    Silent: No finding if no service is late, or if no other pool has room.

    Fix: Add one or two pCPUs from the host's own pool.

    Schedulers: All.

    Sources: Xen's `xl cpupool-cpu-add`.
    """
    host, here, name = held.host, held.pcpus, held.pool
    outside = [p for p in range(host.scenario.host.pcpus) if p not in here]
    if not held.waits or host.idle_of(here) > IDLE or not outside or host.idle_of(outside) < 3 * IDLE:
        return None
    path = "host.pcpus" if name == POOL_0 else join(["pool", name, "pcpus"])
    reason = (
        f"{held.waits_in_words} in pool {name}, whose "
        f"{len(here)} pCPUs are full with {in_short(host.inside(name))}, while the other {len(outside)} pCPUs idle for "
        f"{100 * host.idle_of(outside):.0f} %: the pool has too few pCPUs"
    )
    free = host.pcpus_of(POOL_0)
    if name == POOL_0 or len(free) < 2:
        return Finding(path, reason)
    larger = [{path: ",".join(map(str, sorted(here + free[-more:])))} for more in range(1, min(3, len(free)))]
    return Finding(path, reason, larger[0], otherwise=tuple(larger[1:]))
