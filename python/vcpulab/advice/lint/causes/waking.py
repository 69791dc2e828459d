"""Causes of lateness after wake-ups: rate limits, slices, and credit."""

from vcpulab.advice.capacity.occupancy import NEAR_FULL, with_servers  # noqa: F401 - pages of the rules
from vcpulab.advice.lint.causes.weights import most_of_its_waits, round_weight
from vcpulab.advice.lint.held import LATE_IS, NEVER_BLOCKED, Held, cause  # noqa: F401
from vcpulab.advice.lint.host import WAITS, WAITS_MOSTLY, WAKES_PER_S, Finding, of_domain, of_pool  # noqa: F401
from vcpulab.results.statistics import number

RATE_LIMIT_TIMES = 2
"""The factor around a rate limit in which it explains waits: from the limit divided by this to the limit times this.
Assumed."""
SLICE_MS = 10
"""The slice from which whole slices of other domains delay a service; Credit's default is 30 ms."""
WAKES_TIMES = (4, 16)
"""The factors of Linux weights in fixes: four times the weight makes a slice due in a quarter of the virtual time."""
_LIMITS = {"ratelimit_us": (1_000, 1_000), "ctx_allow": (1, 5_000_000)}
"""Parameter that delays preemption by a woken vCPU, to its unit in ns and its default in that unit."""
_WAKES_SOONER = {
    "ratelimit_us": 100,
    "tslice_ms": 5,
    "ctx_allow": 1_000_000,
    "base_slice_us": 700,
    "min_granularity_us": 750,
    "wakeup_granularity_us": 1000,
}
"""Parameter that delays woken vCPUs, to a small value: the least rate limit that Xen takes, slices of a few ms, and the
values that Linux has on one CPU."""


@cause("ratelimit-too-long")
def _rate_limited(held: Held) -> Finding | None:
    """The rate limit, or the context switch allowance, keeps a late service from preempting after a wake-up.

    Mechanism: A running vCPU keeps its pCPU until the rate limit is over, even if another one wakes up with a boost.
    Under BVT the context switch allowance has the same effect.

    Evidence: The service, or the driver domain that serves it, blocks, wakes up and waits. The longest such wait on the
    way of a request is at least the limit divided by {RATE_LIMIT_TIMES}, and 99 % of the service's own waits are at
    most {RATE_LIMIT_TIMES} times the limit: waits near the limit are its mark. A service is late at a response p99
    {LATE_IS}.

    Silent: No finding if no service is late, if the waiting domain never blocks, or if the limit is the default. For a
    default that is too long see `late-wake-ups`.

    Fix: Set the default: 1000 µs, and 5 ms for the allowance. If the service stays late, set 100 µs, and 1 ms.

    Schedulers: `credit` and `credit2` since Xen 4.2, `enhanced`; `bvt`.

    Sources: Xen's `docs/misc/xen-command-line`, `sched_ratelimit_us`; Duda and Cheriton 1999, "Borrowed-virtual-time
    (BVT) scheduling", section 2.1.
    """
    host, domain = held.host, held.domain
    if not held.waits or held.never_wakes:
        return None
    for name, (unit_ns, default) in _LIMITS.items():
        limit = host.setting(domain, name)
        if not limit or limit <= default:
            continue
        p99_ns, _ = host.woken_waits_ns(domain)
        # The domains that a request passes before it reaches the service wait for the limit, too.
        longest_ns = max(host.woken_waits_ns(name)[1] for name in with_servers(host.scenario.domains, [domain]))
        if longest_ns < limit * unit_ns / RATE_LIMIT_TIMES or p99_ns > RATE_LIMIT_TIMES * limit * unit_ns:
            continue
        path = of_pool(held.pool, name)
        called = "rate limit" if name == "ratelimit_us" else "context switch allowance"
        reason = (
            f"{domain} wakes up and waits behind {held.behind_in_words()}: the {called} of "
            f"{number(limit * unit_ns / 1e6)} ms keeps it from preempting the running vCPU; "
            f"the longest wait after a wake-up on the way of a request is {number(longest_ns / 1e6)} ms"
        )
        return Finding(path, reason, {path: default}, otherwise=({path: _WAKES_SOONER[name]},))
    return None


@cause("slice-too-long")
def _long_slices(held: Held) -> Finding | None:
    """A late service that never blocks waits for the whole slices of other services.

    Mechanism: Credit boosts vCPUs that wake up. A domain that computes all the time never wakes up, so it waits until
    all domains before it have used their slices.

    Evidence: Its vCPU is blocked for less than {NEVER_BLOCKED:.0%} of the time, the slice is {SLICE_MS} ms or longer,
    and at least half of the domains that it waits for have clients, too. A service is late at a response p99 {LATE_IS}.

    Silent: No finding if no service is late, or if the service waits behind batch work: a weight is the better fix
    then.

    Fix: Set slices of 5 ms; if the service stays late, of 2 ms.

    Schedulers: `credit`, `enhanced`.

    Sources: Xen's `xl sched-credit -t`, the time slice; its default of 30 ms is from 2006.
    """
    host, domain = held.host, held.domain
    tslice = host.setting(domain, "tslice_ms")
    if not held.waits or not tslice or tslice < SLICE_MS or host.blocked(domain) > NEVER_BLOCKED:
        return None
    behind = [name for name, share in host.behind(domain) if share > 0]
    if 2 * sum(1 for name in behind if name in host.with_clients) < len(behind):
        return None
    path = of_pool(held.pool, "tslice_ms")
    reason = (
        f"{domain} never blocks, so it is not boosted, and waits for the whole slices ({tslice} ms) of the others "
        f"that compute all the time: {held.behind_in_words()}"
    )
    return Finding(path, reason, {path: 5}, otherwise=({path: 2},))


@cause("late-wake-ups")
def _wakes_late(held: Held) -> Finding | None:
    """A late service gets less than its weight entitles it to, and waits after each wake-up.

    Mechanism: A vCPU that wakes up should preempt. But a running vCPU keeps its pCPU for the rate limit. Under Credit,
    a domain that mostly sleeps earns few credits; once they are used up, it gets no boost before the next accounting,
    once per slice. Under Linux, the running vCPU continues to the end of its slice (EEVDF), or until the woken vCPU is
    owed more than a granularity (CFS). Each packet waits like this at the driver domain or at the host's own threads,
    and each request at the service.

    Evidence: The service, or the driver domain that serves it, gets less than {NEAR_FULL:.0%} of the CPU time that its
    weight entitles it to, or waits behind its own vCPUs. It blocks, but waits for more than {WAITS:.0%} of the time, or
    for longer than it runs. A service is late at a response p99 {LATE_IS}. A domain without clients counts as late,
    too, if a vCPU wakes up {WAKES_PER_S} times per second or more and waits for more than {WAITS_MOSTLY:.0%} of the
    time.

    Silent: No finding if no service is late, or if a larger weight is needed: see `waits-behind-equals`.

    Fix: Set a rate limit of 100 µs, the least that Xen accepts. If the service stays late, set slices of 5 ms, then
    both, then twice the weight of the heaviest domain before it, so that it earns more credits. Under BVT, set a
    context switch allowance of 1 ms. Under Linux, set the slice and the granularities that it has on one CPU; or
    {WAKES_TIMES[0]} or {WAKES_TIMES[1]} times the weight, which makes its turns due sooner.

    Schedulers: `credit`, `credit2`, `enhanced`, `bvt`, `linux-cfs`, `linux-eevdf`.

    Sources: Xen's `docs/misc/xen-command-line`, `sched_ratelimit_us`; Ongaro, Cox and Rixner 2008, "Scheduling I/O in
    virtual machine monitors".
    """
    host, domain = held.host, held.domain
    if not held.waits or held.never_wakes or (host.uses_its_weight(domain) and not held.waits_for_itself):
        return None
    given = {name: value for name in _WAKES_SOONER if (value := host.setting(domain, name))}
    fixes = [{of_pool(held.pool, name): _WAKES_SOONER[name]} for name in given if given[name] > _WAKES_SOONER[name]]
    if not fixes and not host.is_kvm:
        return None
    if len(fixes) > 1:
        fixes.append({path: value for fix in fixes for path, value in fix.items()})
    heaviest = max((host.value(name, "weight") or 0 for name in most_of_its_waits(held)), default=0)
    if heaviest > (host.value(domain, "weight") or heaviest):
        fixes.append({of_domain(domain, "weight"): min(host.weight_most, 2 * heaviest)})
    if host.is_kvm and (own := host.value(domain, "weight")):
        weights = dict.fromkeys(round_weight(host, own * times) for times in WAKES_TIMES)
        fixes += [{of_domain(domain, "weight"): weight} for weight in weights if weight > own]
    if not fixes:
        return None
    limits = " and ".join(f"{name} of {value}" for name, value in given.items())
    gets = "which its weight does not explain" if held.waits_for_itself else "less than its weight entitles it to"
    reason = (
        f"{domain} gets {host.gotten(domain):.0f} % of a pCPU, {gets}, and yet "
        f"{held.waits_in_words} behind {held.behind_in_words()}: it wakes up late, by {limits}"
    )
    return Finding(next(iter(fixes[0])), reason, fixes[0], otherwise=tuple(fixes[1:]))
