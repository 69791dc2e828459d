"""Causes of lateness by limits of the service itself: caps and quotas."""

from vcpulab.advice.capacity.occupancy import NEAR_FULL
from vcpulab.advice.lint.held import LATE_IS, Held, cause  # noqa: F401 - pages of the rules
from vcpulab.advice.lint.host import IDLE, Finding, of_domain
from vcpulab.advice.lint.kvm import MOST_PERIODS, same_sum, serving
from vcpulab.results.statistics import number


@cause("cap-throttles")
def _capped(held: Held) -> Finding | None:
    """The cap of a late service, or of a domain that serves it, throttles it.

    Mechanism: Once the cap is used up, the domain stops until the next accounting, even if pCPUs idle.

    Evidence: The domain gets more than {NEAR_FULL:.0%} of its cap. A service is late at a response p99 {LATE_IS}.

    Silent: No finding if no service is late: the cap then does its job.

    Fix: Triple the cap, to at most all of its vCPUs.

    Schedulers: Those with caps: `credit`, `credit2`, `enhanced`.

    Sources: Xen's `xl sched-credit` and `xl sched-credit2`: the cap holds even if the host has idle CPU cycles.
    """
    host, domain = held.host, held.domain
    cap = host.value(domain, "cap")
    if not held.waits or not cap or host.gotten(domain) < NEAR_FULL * cap:
        return None
    path = of_domain(domain, "cap")
    idle = host.idle_of(held.pcpus)
    beside = f"while the pCPUs idle for {100 * idle:.0f} % of the time" if idle > IDLE else "on pCPUs that are full"
    reason = f"{domain} is throttled by its cap of {cap} %, {beside}"
    return Finding(path, reason, {path: min(100 * host.domains[domain].vcpus, 3 * cap)})


@cause("quota-throttles")
def _throttled(held: Held) -> Finding | None:
    """The quota of a late service, or of its vCPUs, throttles it.

    Mechanism: Once the quota of a period is used up, its vCPUs are taken off the pCPUs until the next period, even if
    pCPUs idle. For the quota of a whole VM see also `vm-quota-freezes`.

    Evidence: The domain gets more than {NEAR_FULL:.0%} of its quota, or one of its vCPUs gets as much of the quota for
    each vCPU. Its vCPUs wait, or the quota of the whole VM is used up in more than {MOST_PERIODS:.0%} of the periods. A
    service is late at a response p99 {LATE_IS}.

    Silent: No finding if no service is late: the quota then does its job.

    Fix: Replace a quota for the whole VM by the same sum for each vCPU, or by one with shorter periods. If the service
    stays late, triple the quota, to at most all of its vCPUs and the threads that serve it.

    Schedulers: `linux-cfs`, `linux-eevdf`.

    Sources: Linux's `Documentation/scheduler/sched-bwc`; libvirt's domain XML, `cputune`.
    """
    host, domain = held.host, held.domain
    table = host.domains[domain]
    of_all, of_each = (host.quota_of(domain, part) for part in ("global", "vcpu"))
    # A VM that stands still for a short time in each period waits for little of the time, and its guest for longer.
    stands_still = held.station.kind == "guest vCPU" and of_all and host.throttled(domain) > MOST_PERIODS
    if not held.waits and not stands_still:
        return None
    if of_all and host.gotten(domain) >= NEAR_FULL * of_all:
        part, size = "global", f"{number(of_all / 100)} pCPUs"
    elif of_each and host.most_gotten(domain) >= NEAR_FULL * of_each:
        part, size = "vcpu", f"{number(of_each / 100)} pCPUs{' for each vCPU' if table.vcpus > 1 else ''}"
    else:
        return None
    path = of_domain(domain, f"{part}_quota_us")
    threads = table.vcpus + len(serving(host, domain)) if part == "global" else 1
    top = (host.value(domain, f"{part}_period_us") or 1) * threads
    larger = {path: min(top, 3 * table.params[f"{part}_quota_us"])}
    fixes = [*(same_sum(host, domain) if part == "global" and table.vcpus > 1 else []), larger]
    idle = host.idle_of(held.pcpus)
    beside = f"while the pCPUs idle for {100 * idle:.0f} % of the time" if idle > IDLE else "on pCPUs that are full"
    often = f"in {100 * host.throttled(domain):.0f} % of the periods"
    reason = f"{domain} is throttled {often} by its quota of {size} ({part}_quota_us), {beside}"
    return Finding(path, reason, fixes[0], otherwise=tuple(fixes[1:]))
