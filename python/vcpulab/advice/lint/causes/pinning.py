"""Causes of lateness by places: pinning, and pools that are too small."""

from vcpulab.advice.isolation import isolation, pinned_to
from vcpulab.advice.lint.held import LATE_IS, Held, cause  # noqa: F401 - pages of the rules
from vcpulab.advice.lint.host import IDLE, Finding, of_domain
from vcpulab.hypervisors.settings import POOL_0
from vcpulab.scenario.names import in_short
from vcpulab.scenario.scenario import join
from vcpulab.scenario.threads import cpuset, host_threads
from vcpulab.scenario.units import pcpu_set, spans


@cause("isolated-cpus-idle")
def _isolated_cpus(held: Held) -> Finding | None:
    """A late service waits on the CPUs that are not isolated, while the isolated CPUs idle.

    Mechanism: Threads without an affinity of their own never run on the CPUs in `isolcpus`, and the kernel balances no
    load among these CPUs. They are for threads that are pinned to them one by one.

    Evidence: The vCPUs of the service wait and are not pinned, and the isolated CPUs idle for more than {IDLE:.0%}
    of the time. A service is late at a response p99 {LATE_IS}.

    Silent: No finding if no service is late, or if the isolated CPUs are busy.

    Fix: Isolate no CPUs; or else pin each vCPU of the service to an isolated CPU of its own.

    Schedulers: `linux-cfs`, `linux-eevdf`.

    Sources: Linux's `Documentation/admin-guide/kernel-parameters`, `isolcpus`.
    """
    host, domain = held.host, held.domain
    isolated = host.scenario.host.isolated_cpus
    if isolated is None or not held.waits:
        return None
    isolated_pcpus = sorted(pcpu_set(isolated, host.topology.pcpus))
    other_pcpus = [pcpu for pcpu in held.pcpus if pcpu not in isolated_pcpus]
    if host.idle_of(isolated_pcpus) <= IDLE or any(mask != other_pcpus for mask in host.affinity(domain)):
        return None
    reason = (
        f"{held.waits_in_words} on pCPU {spans(other_pcpus)}, while pCPU {isolated}, which the kernel isolates "
        f"(isolcpus), idle for {100 * host.idle_of(isolated_pcpus):.0f} %: VMs without pinning do not run there"
    )
    idlest = sorted(isolated_pcpus, key=lambda pcpu: -host.idle_of([pcpu]))[: host.domains[domain].vcpus]
    pinned = list(map(str, sorted(idlest))) if len(idlest) == host.domains[domain].vcpus else None
    otherwise = () if pinned is None else ({of_domain(domain, "affinity"): pinned},)
    return Finding("host.isolated_cpus", reason, {"host.isolated_cpus": None}, otherwise=otherwise)


@cause("cpuset-too-small")
def _small_cpuset(held: Held) -> Finding | None:
    """The cpuset of the control group around a late service has too few pCPUs, while other pCPUs idle.

    Mechanism: The cpuset of a control group limits all threads in it, whatever their own affinity is: pinning a VM to
    other pCPUs has no effect.

    Evidence: The vCPUs of the service wait, and the pCPUs outside of the cpuset idle for more than {IDLE:.0%} of the
    time. A service is late at a response p99 {LATE_IS}.

    Silent: No finding if no service is late, or if no other pCPU idles.

    Fix: Add the pCPUs that idle most to the cpuset, one or two, then as many again as it has; or else remove the
    cpuset.

    Schedulers: `linux-cfs`, `linux-eevdf`.

    Sources: Linux's `Documentation/admin-guide/cgroup-v2`, `cpuset.cpus`; libvirt's page on control groups.
    """
    host, domain = held.host, held.domain
    groups = host.scenario.model.cgroups
    within = cpuset(host.scenario.model, domain)
    outside = [pcpu for pcpu in held.pcpus if pcpu not in within]
    if not (host.is_kvm and held.waits and outside) or host.idle_of(outside) <= IDLE:
        return None
    around = (host.domains[domain].cgroup or "").split("/")
    paths = ["/".join(around[:depth]) for depth in range(1, len(around) + 1)]
    narrow = [path for path in paths if path in groups and groups[path].cpus is not None]
    inside = [
        name
        for name, table in host.domains.items()
        if table.cgroup == narrow[-1] or (table.cgroup or "").startswith(f"{narrow[-1]}/")
    ]
    # Of pCPUs that idle alike, the nearest.
    idlest = sorted(outside, key=lambda pcpu: (-round(host.idle_of([pcpu]), 1), min(abs(pcpu - own) for own in within)))
    larger = [spans(sorted({*within, *idlest[:more]})) for more in sorted({1, 2, len(within)}) if more <= len(idlest)]
    fixes = [{join(["cgroup", path, "cpus"]): cpus for path in narrow} for cpus in dict.fromkeys([*larger, "all"])]
    reason = (
        f"{held.waits_in_words}: the cpuset of its control group {narrow[-1]} has {len(within)} "
        f"pCPU{'' if len(within) == 1 else 's'} ({spans(sorted(within))}) for {in_short(inside)}, while the other "
        f"{len(outside)} idle for {100 * host.idle_of(outside):.0f} %"
    )
    return Finding(join(["cgroup", narrow[-1], "cpus"]), reason, fixes[0], otherwise=tuple(fixes[1:]))


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

    Evidence: The requests wait for the thread. The pCPUs that it may not use idle for more than {IDLE:.0%} of
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
