"""The causes of late services: a rule for each mechanism.

A service is late by the response times of its clients. Its bottleneck (`capacity.occupancy`) shows where the time goes,
and the settings of the waiting domain show the cause. A host without late services and starved domains has no findings.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, log2
from typing import Any

from vcpulab.advice.capacity.occupancy import NEAR_FULL, Station, bottleneck, stations, with_servers
from vcpulab.advice.isolation import isolation, pinned_to
from vcpulab.advice.lateness import Late
from vcpulab.advice.lint import overload as overload  # noqa: PLC0414 - its rules come first
from vcpulab.advice.lint import slowed
from vcpulab.advice.lint.held import HALF_FULL, LATE_IS, NEVER_BLOCKED, Held, cause  # noqa: F401 - pages of the rules
from vcpulab.advice.lint.host import (
    FEW_WAITS,
    GROUP_WEIGHT,
    IDLE,
    WAITS,
    WAITS_MOSTLY,  # noqa: F401 - page of `late-wake-ups`
    WAKES_PER_S,  # noqa: F401
    Finding,
    Host,
    of_domain,
    of_pool,
)
from vcpulab.advice.lint.kvm import same_sum
from vcpulab.advice.lint.rule import Stands
from vcpulab.advice.reservations import RESERVATIONS
from vcpulab.results.statistics import least_to_most, number
from vcpulab.scenario.alike import groups
from vcpulab.scenario.assumed import all_assumed
from vcpulab.scenario.names import in_short
from vcpulab.scenario.scenario import join, split
from vcpulab.scenario.units import spans

FULL = 0.98
"""The busy fraction of the time above which pCPUs are full. Assumed."""
_WITHOUT_END = ("hog", "spin")
"""Kinds of applications that take all the CPU time that they get: they do not measure the load of a host."""
RATE_LIMIT_TIMES = 2
"""The factor around a rate limit in which it explains waits: from the limit divided by this to the limit times this.
Assumed."""
GETS_HALF = 0.5
"""The fraction of the CPU time that it wants below which a control domain is held back. Assumed."""
SLICE_MS = 10
"""The slice from which whole slices of other domains delay a service; Credit's default is 30 ms."""
SHARE_MAX = 0.8
"""The largest share of the pCPUs that a fixed weight entitles to."""
ADVANCE_TIMES = 16
"""The factor of a further fix by BVT's advances: `xen3.0` charges a domain that keeps running too much."""
ADVANCE_MAX = 32_767
"""The largest advance in a fix: virtual time has 32 bits, and should wrap around in minutes, not within a slice."""
ABOUT = 0.9
"""The utilization, as a fraction of the bottleneck's, from which a station may be the bottleneck as well. Assumed."""
SHORTER = 4
"""The divisor by which a fix shortens the periods of reservations ..."""
LEAST_PERIOD_NS = 1_000_000
"""... and the shortest period that may result."""
MOST_OF_IT = 80.0
"""The share of a domain's waits, %, that the domains it mainly waits for make up together."""


def held_back(host: Host) -> Iterator[Finding]:
    """The causes of late services, of starved domains, and of domains without clients that are clearly held back.

    Each cause has one finding, with all services that it concerns.
    """
    serving = {domain for late in host.late for domain in with_servers(host.domains, [late.domain])}
    reasons = {domain: reason for domain, reason in host.starved.items() if domain not in serving}
    starved = (Late(name, name, f"{name} wants to run, but {reason}") for name, reason in reasons.items())
    hindered = (Late(name, name, how) for name, how in _hindered(host) if name not in serving and name not in reasons)
    return causes_of(host, [*host.late, *starved, *hindered])


def _hindered(host: Host) -> Iterator[tuple[str, str]]:
    """Domains whose own work is clearly held back, each with a description."""
    for name, table in host.domains.items():
        if not table.get("app") or host.is_held_by_its_settings(name):
            continue
        late = list(host.woken_late(name))
        if late:
            waits = 100 * host.waited(name)
            yield name, f"vCPU {spans(late)} of {name} waits for {waits:.0f} % of the time, once it wakes up"
        elif name in host.controls and host.waited(name) >= WAITS and host.of_wanted(name) < GETS_HALF:
            work = "assumed jobs want" if all_assumed(host.document, name) else "own work wants"
            yield name, f"{name} gets {100 * host.of_wanted(name):.0f} % of the CPU time that its {work}"


def causes_of(host: Host, services: Sequence[Late]) -> Iterator[Finding]:
    """The causes of waiting of some services, late or not: one finding for each cause."""
    alike = {name: tuple(group) for group in groups(host.scenario) for name in group}
    causes: dict[tuple[object, ...], list[tuple[Late, Finding]]] = {}
    for service in services:
        near = _nearest_to_full(stations(host.run, [service.domain]))
        first = _cause([Held(host, service, station) for station in near])
        # In addition to any cause of waits, a domain may do less work with its CPU time.
        slow = (finding for finding in slowed.slowed(host, service.domain) if not first or finding.rule != first.rule)
        for finding in (*([first] if first is not None else []), *slow):
            # A device is one cause for all domains that use it, and alike domains have one fix.
            is_device = finding is first and not near[0].domain and not finding.changes
            steps = [near[0].name] if is_device else split(finding.path)
            key = (finding.rule, *(alike.get(step, step) for step in steps))
            causes.setdefault(key, []).append((service, finding))
    for pairs in causes.values():
        concerned, findings = [service for service, _ in pairs], [finding for _, finding in pairs]
        further = "" if len(concerned) == 1 else f" (as {in_short([service.name for service in concerned[1:]])})"
        yield replace(
            findings[0],
            reason=f"{concerned[0].how}{further}: {findings[0].reason}",
            concerned=tuple(service.name for service in concerned),
            changes=_joined(finding.changes for finding in findings),
            otherwise=tuple(map(_joined, zip(*(finding.otherwise for finding in findings), strict=False))),
        )


def _joined(changes: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {path: value for change in changes for path, value in change.items()}


def _nearest_to_full(passed: Sequence[Station]) -> list[Station]:
    """The bottleneck; and if it is a vCPU or pCPUs, the vCPUs that are about as full."""
    first = bottleneck(passed)
    if first is None or not (first.domain or first.kind == "pCPUs"):
        return [] if first is None else [first]
    near = [station for station in passed if station.domain and station.used >= ABOUT * first.used]
    return near if first.domain else [first, *near]


def _cause(candidates: Sequence[Held]) -> Finding | None:
    """The first cause of one of the bottlenecks of a service; slow pCPUs come before all other causes."""
    for held in candidates:
        if held.station.domain:
            finding = next(slowed.slowed(held.host, held.domain), None)
            if finding is not None:
                return finding
    for rule in cause.all:
        for held in candidates:
            finding = rule.check(held)
            if finding is not None:
                return rule.stamped(finding)
    return None


# ---- outside the scheduler ----


@cause("outside-disk")
def _outside_disk(held: Held) -> Finding | None:
    """A disk is the bottleneck of a service that is late.

    Mechanism: Requests wait for the disk's head or its flash channels; no vCPU waits for a pCPU.

    Evidence: Of everything that the requests pass the disk is nearest to full, and fuller than {NEAR_FULL:.0%}, or than
    {HALF_FULL:.0%} where no vCPU waits for a pCPU. Late is: {LATE_IS}.

    Silent: Where nobody is late.

    Mend: None that a scheduler has: a faster disk, a larger page cache, less load.

    Schedulers: All.

    Sources: Denning and Buzen 1978, "The operational analysis of queueing network models": the utilisation law.
    """
    return _outside(held) if held.station.kind == "disk" else None


@cause("outside-link")
def _outside_link(held: Held) -> Finding | None:
    """The host's link is the bottleneck of a service that is late.

    Mechanism: Packets wait for the link; no vCPU waits for a pCPU.

    Evidence: Of everything that the requests pass the link is nearest to full, and fuller than {NEAR_FULL:.0%}, or than
    {HALF_FULL:.0%} where no vCPU waits for a pCPU. Late is: {LATE_IS}.

    Silent: Where nobody is late.

    Mend: None that a scheduler has: a faster link, another NIC, smaller answers.

    Schedulers: All.

    Sources: Denning and Buzen 1978, "The operational analysis of queueing network models": the utilisation law.
    """
    return _outside(held) if held.station.kind == "link" else None


@cause("outside-client")
def _outside_client(held: Held) -> Finding | None:
    """The clients' own machines or links, or their own limits, are the bottleneck of what they see.

    Mechanism: Requests and answers wait outside the host.

    Evidence: Of everything that the requests pass the clients' processors, ports or link, or the connections that they
    or the application allow, are nearest to full, and fuller than {NEAR_FULL:.0%}, or than {HALF_FULL:.0%} where no
    vCPU waits for a pCPU. Late is: {LATE_IS}.

    Silent: Where nobody is late.

    Mend: None that a scheduler has: a faster line, smaller answers, more connections.

    Schedulers: All.

    Sources: Denning and Buzen 1978, "The operational analysis of queueing network models": the utilisation law.
    """
    return _outside(held) if held.station.kind in ("client machine", "connections", "backlog") else None


def _outside(held: Held) -> Finding | None:
    station, host = held.station, held.host
    serving = with_servers(host.domains, [held.domain])
    no_waits = all(host.waited(name) < FEW_WAITS for name in serving)
    if station.used < (HALF_FULL if no_waits else NEAR_FULL):
        return None
    reason = f"the bottleneck of {held.domain} is outside the scheduler: {station}; a scheduler makes it no faster"
    field = {"disk": "disk", "connections": "app", "backlog": "app"}.get(station.kind, "nic")
    return Finding(of_domain(held.domain, field), reason)


# ---- held back by others, or by its own limits ----


@cause("null-overcommitted")
def _never_runs(held: Held) -> Finding | None:
    """There are more vCPUs than pCPUs under the null scheduler: the last ones never run.

    Mechanism: The null scheduler gives each vCPU a pCPU of its own, for good. Whoever finds none waits until another
    one is gone.

    Evidence: The pool has more vCPUs than pCPUs, and a domain in it is late or starves.

    Silent: Where each has a pCPU, or where those without never want to run.

    Mend: Fewer vCPUs for the domains that use least of theirs; if each has one only, a scheduler that shares.

    Schedulers: `null`.

    Sources: Xen's `docs/misc/xen-command-line`, `sched=null`, and the boot message of the scheduler itself.
    """
    host, name = held.host, held.pool
    if not (held.waits or held.starves) or host.pool_of(held.domain)["scheduler"] != "null":
        return None
    inside = {domain: host.domains[domain]["vcpus"] for domain in host.inside(name)}
    total, pcpus = sum(inside.values()), len(held.pcpus)
    if total <= pcpus:
        return None
    waiting = f"a vCPU of {held.domain}" if host.gotten(held.domain) else held.domain
    reason = (
        f"the null scheduler gives each vCPU a pCPU of its own, and there are {total} vCPUs for {pcpus} pCPUs: "
        f"{waiting} never runs. Fewer vCPUs, or a scheduler that shares"
    )
    left = dict(inside)
    while sum(left.values()) > pcpus and (spare := [domain for domain, vcpus in left.items() if vcpus > 1]):
        # The domain that uses the smallest fraction of its vCPUs gives up one.
        left[min(spare, key=lambda domain: host.gotten(domain) / left[domain])] -= 1
    path = of_pool(name, "scheduler")
    fewer = {of_domain(domain, "vcpus"): vcpus for domain, vcpus in left.items() if vcpus != inside[domain]}
    return Finding(path, reason, fewer if sum(left.values()) <= pcpus else {path: "credit2"})


@cause("cap-throttles")
def _capped(held: Held) -> Finding | None:
    """The cap of a service, or of who serves it, throttles it.

    Mechanism: Once the cap is used up, the domain is withheld until the next accounting, though pCPUs may idle.

    Evidence: It gets more than {NEAR_FULL:.0%} of its cap. Late is: {LATE_IS}.

    Silent: Where nobody is late: then a cap is a contract.

    Mend: Three times the cap, at most all of its vCPUs.

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
    return Finding(path, reason, {path: min(100 * int(host.domains[domain]["vcpus"]), 3 * cap)})


@cause("quota-throttles")
def _throttled(held: Held) -> Finding | None:
    """The quota of a service, or of its vCPUs, throttles it.

    Mechanism: Once the quota of a period is used up, the vCPUs that it is for are taken off the pCPUs until the next
    period, though pCPUs may idle. Of a quota for a whole VM `vm-quota-freezes` tells more.

    Evidence: It gets more than {NEAR_FULL:.0%} of its quota, or one of its vCPUs does of a quota for each. Late is:
    {LATE_IS}.

    Silent: Where nobody is late: then a quota is a contract.

    Mend: Of a quota for the whole VM the same sum for each vCPU, or in shorter periods; if that leaves it late three
    times the quota, at most all of its vCPUs.

    Schedulers: `linux-cfs`, `linux-eevdf`.

    Sources: Linux's `Documentation/scheduler/sched-bwc`; libvirt's domain XML, `cputune`.
    """
    host, domain = held.host, held.domain
    if not held.waits:
        return None
    table = host.domains[domain]
    of_all, of_each = (host.quota_of(domain, part) for part in ("global", "vcpu"))
    if of_all and host.gotten(domain) >= NEAR_FULL * of_all:
        part, size = "global", f"{number(of_all / 100)} pCPUs"
    elif of_each and host.most_gotten(domain) >= NEAR_FULL * of_each:
        part, size = "vcpu", f"{number(of_each / 100)} pCPUs{' for each vCPU' if table['vcpus'] > 1 else ''}"
    else:
        return None
    path = of_domain(domain, f"{part}_quota_us")
    top = (host.value(domain, f"{part}_period_us") or 1) * (table["vcpus"] if part == "global" else 1)
    larger = {path: min(top, 3 * table[f"{part}_quota_us"])}
    mends = [*(same_sum(host, domain) if part == "global" and table["vcpus"] > 1 else []), larger]
    idle = host.idle_of(held.pcpus)
    beside = f"while the pCPUs idle for {100 * idle:.0f} % of the time" if idle > IDLE else "on pCPUs that are full"
    often = f"in {100 * host.throttled(domain):.0f} % of the periods"
    reason = f"{domain} is throttled {often} by its quota of {size} ({part}_quota_us), {beside}"
    return Finding(path, reason, mends[0], otherwise=tuple(mends[1:]))


@cause("reservation-too-small")
def _reserved_too_little(held: Held) -> Finding | None:
    """A service uses up the budget or slice that is reserved for it, and wants more.

    Mechanism: Without extra time it waits for its next period once the budget is used; with extra time it shares what
    is left over with all others who take some.

    Evidence: One of its vCPUs gets more than {NEAR_FULL:.0%} of its reservation. Late is: {LATE_IS}.

    Silent: Where nobody is late; where reservations add up to more than there is: see `overbooked-reservations`.

    Mend: Extra time; if it has that, or if that harms somebody, twice the reservation, or four times, or the same one
    in periods a quarter as long.

    Schedulers: `rtds`, `sedf`, `atropos`.

    Sources: Xen's `xl sched-rtds`; the SEDF scheduler mini-HOWTO of Xen 4.2.
    """
    reserved = _Reserved.from_held(held)
    # If reservations add up to too much, the domain does not even get its reservation.
    if reserved is None or not reserved.used_up or held.host.overbooked(held.pool):
        return None
    path = of_domain(held.domain, reserved.amount)
    reason = f"{reserved}, uses {reserved.uses:.0f} %, and wants more than that: it is too small"
    if reserved.extra:
        return Finding(path, reason, reserved.larger[0], otherwise=reserved.larger[1:])
    return Finding(path, f"{reason}, and it gets no extra time", reserved.with_extra, otherwise=reserved.larger)


@cause("reservation-period-too-long")
def _reserved_for_too_long(held: Held) -> Finding | None:
    """A reservation is enough on average, and comes in long gaps.

    Mechanism: Once the budget of a period is used, whoever has no extra time waits for the next period: what comes in
    that gap waits as long. Under SEDF so does who wakes up in the period in which it blocked.

    Evidence: None of its vCPUs gets {NEAR_FULL:.0%} of its reservation, and it has no extra time, and waits. Late is:
    {LATE_IS}.

    Silent: Where nobody is late; where reservations add up to more than there is: see `overbooked-reservations`.

    Mend: Extra time.

    Schedulers: `rtds`, `sedf`, `atropos`.

    Sources: Xen's `xl sched-rtds`; the SEDF scheduler mini-HOWTO of Xen 4.2.
    """
    reserved = _Reserved.from_held(held)
    if reserved is None or reserved.used_up or reserved.extra or held.host.overbooked(held.pool):
        return None
    # SEDF guarantees nothing to a vCPU that wakes up in the period in which it blocked.
    blocked = " or it has slept" if held.host.pool_of(held.domain)["scheduler"] == "sedf" else ""
    reason = (
        f"{reserved}, which would do on average; but the period is long: once its slice is used{blocked}, it waits for "
        "the next, as it gets no extra time"
    )
    return Finding(of_domain(held.domain, reserved.period), reason, reserved.with_extra)


@dataclass(frozen=True)
class _Reserved:
    """The reservation of a domain that is held back, its use, and fixes."""

    domain: str
    amount: str
    period: str
    budget: str
    """The reserved time and the period, in words."""
    share: float
    """The reserved share of a pCPU for each vCPU, %."""
    uses: float
    """The share of a pCPU used by the vCPU that gets most, %."""
    extra: bool
    with_extra: dict[str, int]
    larger: tuple[dict[str, int], ...]
    shorter: dict[str, int]
    """Periods divided by `SHORTER`, with the same shares, for the service and all domains that serve it."""

    def __str__(self) -> str:
        return f"{self.domain} has {self.budget} ({self.share:.0f} % of a pCPU for each vCPU) reserved"

    @property
    def used_up(self) -> bool:
        return self.uses >= NEAR_FULL * self.share

    @classmethod
    def from_held(cls, held: Held) -> "_Reserved | None":
        host, domain = held.host, held.domain
        spelt = RESERVATIONS.get(host.pool_of(domain)["scheduler"])
        if spelt is None or not held.waits:
            return None
        amount, period = (host.value(domain, name) for name in (spelt.amount, spelt.period))
        if not amount or not period:
            return None
        length, within = (number(value * spelt.unit_ns / 1e6) for value in (amount, period))

        def fields(name: str) -> dict[str, int]:
            names = (spelt.amount, spelt.period, *spelt.at_most_period)
            return {field: host.value(name, field) or 0 for field in names}

        def cut(name: str) -> dict[str, int]:
            """A domain's period divided by `SHORTER`, with the same share; empty if it is short already."""
            present = fields(name)
            shorter = spelt.scaled(present, 1 / SHORTER) if present[spelt.amount] else present
            if (
                shorter[spelt.period] * spelt.unit_ns < LEAST_PERIOD_NS
                or shorter[spelt.period] >= present[spelt.period]
            ):
                return {}
            return {of_domain(name, field): value for field, value in shorter.items()}

        serving = (name for name in with_servers(host.domains, [held.late.domain]) if name in host.inside(held.pool))
        larger = [{of_domain(domain, spelt.amount): min(period, times * amount)} for times in (2, 4)]
        if amount <= period // SHORTER and cut(domain):
            shorter = spelt.with_period(fields(domain), spelt.whole(period / SHORTER, period))
            larger.append({of_domain(domain, name): value for name, value in shorter.items()})
        return cls(
            domain,
            spelt.amount,
            spelt.period,
            f"a budget of {length} ms in every {within} ms",
            100 * amount / period,
            host.most_gotten(domain),
            spelt.gets_extra(host.domains[domain]),
            {of_domain(domain, spelt.extra): 1},
            tuple(larger),
            {path: value for name in serving for path, value in cut(name).items()},
        )


@cause("pinned-together")
def _pinned(held: Held) -> Finding | None:
    """A service is pinned where others are, while other pCPUs idle.

    Mechanism: Pinning is absolute: whoever is pinned waits for these pCPUs, whatever others have to spare.

    Evidence: Its vCPUs wait, behind whom, and how long the pCPUs of its pool idle that it may not use: more than
    {IDLE:.0%}. Late is: {LATE_IS}.

    Silent: Where nobody is late, or no other pCPU idles.

    Mend: No pinning of the service; or, before that where nobody whom it waits for is pinned, no other domain on its
    pCPUs.

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
    free, isolated = {path: "all"}, isolation(host.document, [domain])
    mends = [free] if isolated is None else [free, isolated.changes] if pinned else [isolated.changes, free]
    return Finding(path, reason, mends[0], otherwise=tuple(mends[1:]))


@cause("pool-too-small")
def _crowded_pool(held: Held) -> Finding | None:
    """The pool of a service is full while pCPUs outside it idle.

    Mechanism: A CPU pool is a whole host to its domains: what other pools have to spare is out of reach.

    Evidence: The pool's pCPUs idle for less than {IDLE:.0%} of the time, the others for more than three times that.
    Late is: {LATE_IS}.

    Silent: Where nobody is late, or no other pool has room.

    Mend: One pCPU more from the host's own pool, or two.

    Schedulers: All.

    Sources: Xen's `xl cpupool-cpu-add`.
    """
    host, here, name = held.host, held.pcpus, held.pool
    outside = [p for p in range(host.document["host"]["pcpus"]) if p not in here]
    if not held.waits or host.idle_of(here) > IDLE or not outside or host.idle_of(outside) < 3 * IDLE:
        return None
    path = "host.pcpus" if name is None else join(["pool", name, "pcpus"])
    reason = (
        f"{held.waits_in_words} in pool {name or 'Pool-0'}, whose "
        f"{len(here)} pCPUs are full with {in_short(host.inside(name))}, while the other {len(outside)} pCPUs idle for "
        f"{100 * host.idle_of(outside):.0f} %: the pool has too few pCPUs"
    )
    free = host.pcpus_of(None)
    if name is None or len(free) < 2:
        return Finding(path, reason)
    larger = [{path: ",".join(map(str, sorted(here + free[-more:])))} for more in range(1, min(3, len(free)))]
    return Finding(path, reason, larger[0], otherwise=tuple(larger[1:]))


_LIMITS = {"ratelimit_us": (1_000, 1_000), "ctx_allow": (1, 5_000_000)}
"""Parameter that delays preemption by a woken vCPU, to its unit in ns and its default in that unit."""


@cause("ratelimit-too-long")
def _rate_limited(held: Held) -> Finding | None:
    """The rate limit, or the switch allowance, keeps a service that wakes up from preempting.

    Mechanism: Whoever runs may go on until the rate limit is over, whoever wakes up meanwhile: boosts come too late.
    Under BVT the context switch allowance does the same.

    Evidence: The service, or the driver domain that serves it, blocks, wakes up and waits. The longest such wait on
    the way of a request takes at least the limit divided by {RATE_LIMIT_TIMES}, and 99 of a hundred of its own take no
    longer than {RATE_LIMIT_TIMES} times the limit: that is how a limit shows. Late is: {LATE_IS}.

    Silent: Where nobody is late, or who waits never blocks; where the limit is the default.

    Mend: The default: 1000 µs, and for the allowance 5 ms; if that leaves it late, 100 µs, and 1 ms. Where it is the
    default that is too long see `late-wake-ups`.

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
        longest_ns = max(host.woken_waits_ns(name)[1] for name in with_servers(host.domains, [domain]))
        if longest_ns < limit * unit_ns / RATE_LIMIT_TIMES or p99_ns > RATE_LIMIT_TIMES * limit * unit_ns:
            continue
        path = of_pool(held.pool, name)
        called = "rate limit" if name == "ratelimit_us" else "context switch allowance"
        reason = (
            f"{domain} wakes up and waits behind {held.behind_in_words()}: the {called} of "
            f"{number(limit * unit_ns / 1e6)} ms keeps it from preempting whoever runs; "
            f"the longest wait after a wake-up on the way of a request is {number(longest_ns / 1e6)} ms"
        )
        return Finding(path, reason, {path: default}, otherwise=({path: _WAKES_SOONER[name]},))
    return None


@cause("slice-too-long")
def _long_slices(held: Held) -> Finding | None:
    """A service that never blocks waits for the whole slices of others like it.

    Mechanism: Credit boosts whoever wakes up. A domain that computes all the time beside its service never wakes up, so
    it waits until all others before it have used their slices.

    Evidence: Its vCPU is blocked for less than {NEVER_BLOCKED:.0%} of the time, the slice is {SLICE_MS} ms or longer,
    and at least half of those behind whom it waits are services like it. Late is: {LATE_IS}.

    Silent: Where nobody is late; where it waits behind batch work, of which a weight says more.

    Mend: Slices of 5 ms; if that leaves it late, of 2 ms.

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


@cause("host-full")
def _host_full(held: Held) -> Finding | None:
    """The pCPUs are full with the work of those who have a definite amount to do.

    Mechanism: All together want more than there is. Weights and pinning decide who waits, and not how much is done.

    Evidence: The pCPUs of the pool are busy for more than {FULL:.0%} of the time, and domains whose work has an end
    (clients' requests, periodic jobs, phases, others' I/O) use more than {NEAR_FULL:.0%} of them. The service waits for
    a pCPU, and gets {NEAR_FULL:.0%} of what its weight entitles it to, or more. Late is: {LATE_IS}.

    Silent: Where nobody is late; where programs without an end (hogs) fill the pCPUs: they take what is left, and a
    weight moves it; where the service asks for less than its weight entitles it to: see `late-wake-ups`.

    Mend: None that a scheduler has: less load, fewer domains, or more pCPUs. Who is to wait is for the owner to say.

    Schedulers: All that share pCPUs.

    Sources: Denning and Buzen 1978, "The operational analysis of queueing network models": the utilisation law.
    """
    host, here = held.host, held.pcpus
    busy = 1 - host.idle_of(here)
    if not held.waits or busy < FULL or not host.uses_its_weight(held.domain):
        return None
    definite = [name for name in host.inside(held.pool) if _has_an_end(host, name)]
    used = sum(sum(host.busy(name)) for name in definite)
    if used < NEAR_FULL * len(here) or len(definite) < 2:
        return None
    reason = (
        f"{held.waits_in_words} on {len(here)} pCPUs that are {100 * busy:.0f} % busy: the {len(definite)} domains "
        f"whose work has an end use {used:.1f} of them, and wait for more. Weights decide who waits; less load, fewer "
        "domains or more pCPUs help all"
    )
    path = "host.pcpus" if held.pool is None else of_pool(held.pool, "pcpus")
    return Finding(path, reason)


def _has_an_end(host: Host, domain: str) -> bool:
    """Does a domain have a definite amount of work, rather than take all the CPU time that it gets?"""
    kinds = {app["kind"] for app in host.domains[domain].get("app", [])}
    return host.serves(domain) or bool(kinds - set(_WITHOUT_END))


@cause("waits-behind-equals")
def _outweighed(held: Held) -> Finding | None:
    """A service waits behind others of the same weight, or of more, on pCPUs that are full.

    Mechanism: Equal weights give equal shares. A service that asks for more than its share uses it up, and then waits
    for the slices of all others.

    Evidence: How long it waits and behind whom, and their weights: of those that make for {MOST_OF_IT:.0f} % of its
    waits some weigh at least half as much. Late is: {LATE_IS}. So is a control or driver domain that gets less than
    {GETS_HALF:.0%} of the CPU time that its own work wants.

    Silent: Where nobody is late; where those who serve somebody fill the pCPUs: see `host-full`.

    Mend: The least weight that helps, of steps of two from twice its own up to that which entitles it to twice what all
    its vCPUs can use beside these, at most {SHARE_MAX:.0%} of the pool. Where it has the greatest
    weight already, smaller ones for the others. Under BVT a smaller advance; if that leaves it
    late, larger ones for those behind whom it waits, too, as only ratios count; and {ADVANCE_TIMES} times as large.

    Schedulers: Those with weights: `credit`, `credit2`, `enhanced`, `linux-cfs`, `linux-eevdf`; `bvt`, whose `mcu_adv`
    is the inverse of a weight.

    Sources: Xen's `docs/features/sched_credit.pandoc`: weights and entitlements; Duda and Cheriton 1999,
    "Borrowed-virtual-time (BVT) scheduling", section 2.
    """
    host, domain = held.host, held.domain
    name = next((param for param in ("weight", "mcu_adv") if host.value(domain, param)), None)
    if not held.waits or name is None or not host.uses_its_weight(domain):
        return None
    own = host.value(domain, name) or 1
    values = {
        neighbor: value
        for neighbor in _most_of_its_waits(held)
        if host.is_beside(neighbor, domain) and (value := host.value(neighbor, name))
    }
    # The ratio of each share to its own: a smaller advance is a larger share.
    ratios = [value / own if name == "weight" else own / value for value in values.values()]
    if not any(2 * ratio >= 1 for ratio in ratios):
        return None
    # Twice the ratio that suffices for all its vCPUs beside the domains that it waits for: other domains run, too.
    share = min(SHARE_MAX, host.domains[domain]["vcpus"] / len(held.pcpus))
    enough = 2 * max(1, sum(ratio for ratio in ratios if 2 * ratio >= 1) * share / (1 - share))
    path = of_domain(domain, name)
    if name == "weight":
        mends = _weights(host, domain, own, enough) or _lighter(host, values, enough)
    else:
        mends = [_advances(domain, own, values, times * enough) for times in (1, ADVANCE_TIMES)]
        mends = [*([{path: mends[0][path]}] if len(mends[0]) > 1 else []), *mends]
    among = least_to_most(values.values(), str)
    reason = (
        f"{held.waits_in_words} behind {held.behind_in_words()}, on pCPUs that are "
        f"{100 - 100 * host.idle_of(held.pcpus):.0f} % busy: its {name} of {own} beside theirs of "
        f"{among} gives it a share that is less than it asks for, and it waits for their slices"
    )
    return Finding(path, reason, mends[0] if mends else {}, otherwise=tuple(mends[1:]))


def _weights(host: Host, domain: str, own: int, enough: float) -> list[dict[str, int]]:
    """Fixes by larger weights of a domain, in steps from the least that may suffice to `enough` times its own."""
    steps = {_round_weight(host, own * 2.0**step) for step in range(1, ceil(log2(enough)))}
    return [
        {of_domain(domain, "weight"): weight}
        for weight in sorted({*steps, _round_weight(host, own * enough)})
        if weight > own
    ]


def _lighter(host: Host, weights: Mapping[str, int], times: float) -> list[dict[str, int]]:
    """The fix by smaller weights of some domains; none if they have the least weight."""
    lighter = {name: max(1, _round_weight(host, value / times)) for name, value in weights.items()}
    changes = {of_domain(name, "weight"): value for name, value in lighter.items() if value < weights[name]}
    return [changes] if changes else []


def _round_weight(host: Host, weight: float) -> int:
    """A weight rounded up to a power of 2 (Xen) or the default times a power of 2 (Linux), at most the greatest."""
    unit = GROUP_WEIGHT if host.is_kvm else 1
    return int(min(host.weight_most, unit * 2.0 ** ceil(log2(weight / unit))))


def _advances(domain: str, own: int, neighbors: Mapping[str, int], times: float) -> dict[str, int]:
    """The fix by BVT's advances that multiplies the share of a domain beside its neighbors."""
    least = max(1, int(own / times))
    # An advance is an integer: if its own cannot be small enough, those of the neighbors have to be larger.
    factor = ceil(times * least / own)
    larger = {of_domain(name, "mcu_adv"): min(ADVANCE_MAX, value * factor) for name, value in neighbors.items()}
    return {of_domain(domain, "mcu_adv"): least, **(larger if factor > 1 else {})}


@cause("late-in-its-period", stands=Stands.NEVER)
def _waits_for_its_period(held: Held) -> Finding | None:
    """A service has enough reserved, and yet waits for its period to begin or to end.

    Mechanism: The earliest deadline goes first, and a deadline is the end of a period: who has a long one waits behind
    whoever has a shorter one. Under SEDF who wakes up in the period in which it blocked waits for the next one.

    Evidence: The service, or the driver domain that serves it, gets less than {NEAR_FULL:.0%} of its reservation, has
    extra time, and waits. Late is: {LATE_IS}.

    Silent: Where nobody is late, or where shorter periods improve nothing.

    Mend: Periods a quarter as long, and the same shares, for all on the way of a request: the service and those who
    serve it.

    Schedulers: `rtds`, `sedf`, `atropos`.

    Sources: Liu and Layland 1973, "Scheduling algorithms for multiprogramming in a hard-real-time environment"; the
    SEDF scheduler mini-HOWTO of Xen 4.2.
    """
    reserved = _Reserved.from_held(held)
    if reserved is None or reserved.used_up or not reserved.extra or not reserved.shorter:
        return None
    if held.host.overbooked(held.pool):
        return None
    reason = (
        f"{reserved} and uses {reserved.uses:.0f} %, and yet waits for {100 * held.host.waited(held.domain):.0f} % of "
        f"the time behind {held.behind_in_words()}: who has a long period waits for its turn in it"
    )
    return Finding(of_domain(held.domain, reserved.period), reason, reserved.shorter)


WAKES_TIMES = (4, 16)
"""The factors of Linux weights in fixes: four times the weight makes a slice due in a quarter of the virtual time."""
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


@cause("late-wake-ups")
def _wakes_late(held: Held) -> Finding | None:
    """A service gets less than its weight entitles it to, and waits each time that it wakes up.

    Mechanism: Who wakes up is to preempt. But whoever runs may go on for the rate limit; and under Credit a domain that
    sleeps most of the time earns little credit: once that is used up it gets no boost before the next accounting, which
    comes once in a slice. Under Linux whoever runs goes on to the end of its slice (EEVDF), or while who wakes up is
    not owed more than a granularity (CFS). Each packet waits so at the driver domain, or at the host's own threads, and
    each request at the service.

    Evidence: The service, or the driver domain that serves it, gets less than {NEAR_FULL:.0%} of what its weight
    entitles it to, or waits behind its own vCPUs; it blocks, and yet waits for more than {WAITS:.0%} of the time, or
    for longer than it runs. Late is: {LATE_IS}. So is a domain that nobody asks, of which a vCPU wakes up
    {WAKES_PER_S} times a second or more and then waits for more than {WAITS_MOSTLY:.0%} of the time.

    Silent: Where nobody is late; where a greater weight is what is needed: see `waits-behind-equals`.

    Mend: A rate limit of 100 µs, the least that Xen takes; if that leaves it late, slices of 5 ms, both, or twice the
    weight of the heaviest before it, so that it earns more credit. Under BVT a context switch allowance of 1 ms. Under
    Linux the slice and the granularities that it has on one CPU; or {WAKES_TIMES[0]} or {WAKES_TIMES[1]} times the
    weight, by which its turns are due sooner.

    Schedulers: `credit`, `credit2`, `enhanced`, `bvt`, `linux-cfs`, `linux-eevdf`.

    Sources: Xen's `docs/misc/xen-command-line`, `sched_ratelimit_us`; Ongaro, Cox and Rixner 2008, "Scheduling I/O in
    virtual machine monitors".
    """
    host, domain = held.host, held.domain
    if not held.waits or held.never_wakes or (host.uses_its_weight(domain) and not held.waits_for_itself):
        return None
    given = {name: value for name in _WAKES_SOONER if (value := host.setting(domain, name))}
    mends = [{of_pool(held.pool, name): _WAKES_SOONER[name]} for name in given if given[name] > _WAKES_SOONER[name]]
    if not mends and not host.is_kvm:
        return None
    if len(mends) > 1:
        mends.append({path: value for mend in mends for path, value in mend.items()})
    heaviest = max((host.value(name, "weight") or 0 for name in _most_of_its_waits(held)), default=0)
    if heaviest > (host.value(domain, "weight") or heaviest):
        mends.append({of_domain(domain, "weight"): min(host.weight_most, 2 * heaviest)})
    if host.is_kvm and (own := host.value(domain, "weight")):
        weights = dict.fromkeys(_round_weight(host, own * times) for times in WAKES_TIMES)
        mends += [{of_domain(domain, "weight"): weight} for weight in weights if weight > own]
    if not mends:
        return None
    limits = " and ".join(f"{name} of {value}" for name, value in given.items())
    gets = "which its weight does not explain" if held.waits_for_itself else "less than its weight entitles it to"
    reason = (
        f"{domain} gets {host.gotten(domain):.0f} % of a pCPU, {gets}, and yet "
        f"{held.waits_in_words} behind {held.behind_in_words()}: it wakes up late, by {limits}"
    )
    return Finding(next(iter(mends[0])), reason, mends[0], otherwise=tuple(mends[1:]))


def _most_of_its_waits(held: Held) -> Iterator[str]:
    """The domains that a domain mainly waits for: domains that run now and then matter little."""
    waited_for = [(name, share) for name, share in held.host.behind(held.domain) if name != held.domain]
    left = MOST_OF_IT / 100 * sum(share for _, share in waited_for)
    for name, share in waited_for:
        if left <= 0:
            return
        yield name
        left -= share
