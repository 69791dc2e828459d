"""Causes of lateness by limits of the service itself: caps and quotas."""

from typing import Literal

from vcpulab.advice.capacity.occupancy import NEAR_FULL
from vcpulab.advice.lint.held import LATE_IS, Held, cause  # noqa: F401 - pages of the rules
from vcpulab.advice.lint.host import IDLE, Finding, of_domain
from vcpulab.advice.lint.kvm import MOST_PERIODS, QUOTA_LEAST_US, same_sum, serving
from vcpulab.results.statistics import number
from vcpulab.scenario.threads import PERIOD_US

EXHAUSTED = 0.05
"""The fraction of a VM's quota periods, used up, above which the quota matters. Assumed."""


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


@cause("quota-period")
def _in_bursts(held: Held) -> Finding | None:
    """A late service needs less than its quota on average, and more than the quota of a period at once.

    Mechanism: A quota is granted period by period. A job that needs more CPU time than the quota of a period stands
    still until the next period, even if the earlier periods were hardly used and pCPUs idle. The longer the period, the
    longer the VM stands still.

    Evidence: The service waits, and uses up its quota in more than {EXHAUSTED:.0%} of the periods, but gets less than
    {NEAR_FULL:.0%} of the quota on average. A service is late at a response p99 {LATE_IS}.

    Silent: No finding if no service is late, or if the service needs all of its quota: see `quota-throttles`.

    Fix: Allow a burst of unused quota, as large as the quota; or else shorten a period above {PERIOD_US} µs to
    {PERIOD_US} µs; or else double the quota, then triple it, to at most all of its vCPUs.

    Schedulers: `linux-cfs`, `linux-eevdf`.

    Sources: Linux's `Documentation/scheduler/sched-bwc`, `cpu.cfs_burst_us`.
    """
    host, domain = held.host, held.domain
    # A VM that mostly sleeps waits for a small part of the time, and for its quota while pCPUs idle.
    if not (held.waits or held.station.kind == "budget") or host.throttled(domain) < EXHAUSTED:
        return None
    table = host.domains[domain]
    part: Literal["global", "vcpu"] = "global" if host.quota_of(domain, "global") else "vcpu"
    limit = host.quota_of(domain, part)
    used = host.gotten(domain) if part == "global" else host.most_gotten(domain)
    if not limit or used >= NEAR_FULL * limit:
        return None
    paths = {name: of_domain(domain, f"{part}_{name}_us") for name in ("quota", "period", "burst")}
    quota, period = table.params[f"{part}_quota_us"], host.value(domain, f"{part}_period_us") or PERIOD_US
    fixes: list[dict[str, int]] = []
    burst = host.value(domain, f"{part}_burst_us")
    if burst is not None and burst < quota:
        fixes.append({paths["burst"]: quota})
    if period > PERIOD_US and (amount := quota * PERIOD_US // period) >= QUOTA_LEAST_US:
        fixes.append({paths["period"]: PERIOD_US, paths["quota"]: amount})
    top = period * (table.vcpus if part == "global" else 1)
    fixes += [{paths["quota"]: larger} for times in (2, 3) if (larger := min(top, times * quota)) > quota]
    reason = (
        f"{domain} gets {used:.0f} % of a pCPU on average, less than its quota of {limit:.0f} %, but it uses up the "
        f"{number(quota / 1000)} ms of a period of {number(period / 1000)} ms in {100 * host.throttled(domain):.0f} % "
        f"of the periods ({part}_quota_us), and stands still until the next period"
    )
    return Finding(paths["quota"], reason, fixes[0] if fixes else {}, otherwise=tuple(fixes[1:]))
