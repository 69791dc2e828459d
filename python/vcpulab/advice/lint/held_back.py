"""Services that are late, and what holds them back: a rule for each mechanism.

Whoever is late is late by what his clients see. The bottleneck of what serves him (`capacity.occupancy`) says where the
time goes; why it goes there is told by the settings of whoever waits. A host on which nobody is late, and nobody
starves, is left alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, log2

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
"""pCPUs that are busy for more than this part of the time are full. Assumed."""
_WITHOUT_END = ("hog", "spin")
"""Applications that take all that they get: what they want says nothing about how much a host has to do."""
RATE_LIMIT_TIMES = 2
"""A rate limit explains waits that reach the limit divided by this, and no more than as many times it. Assumed."""
GETS_HALF = 0.5
"""A control domain that gets less than this part of the CPU time that it wants is held back. Assumed."""
SLICE_MS = 10
"""So can a slice; Credit's own is 30 ms."""
SHARE_MAX = 0.8
"""A mended weight entitles to this part of the pCPUs at most."""
ADVANCE_TIMES = 16
"""BVT's advances may make a share as many times larger: with `xen3.0` who is kept running is charged too much."""
ADVANCE_MAX = 32_767
"""The largest advance that is set: virtual time, of 32 bits, is to wrap round in minutes, not in a slice."""
ABOUT = 0.9
"""What is at least this part as full as the bottleneck may be the bottleneck as well. Assumed."""
SHORTER = 4
"""Periods of reservations are made as many times shorter ..."""
LEAST_PERIOD_NS = 1_000_000
"""... as long as that leaves them this long."""
MOST_OF_IT = 80.0
"""Those who make for this part of the waits, %, the most first, are those whom somebody waits for."""


def held_back(host: Host) -> Iterator[Finding]:
    """What holds back those who are late or starve, and work that nobody asks for where it clearly is held back.

    There is one finding for each cause, with all whom it concerns.
    """
    ways = {domain for one in host.late for domain in with_servers(host.domains, [one.domain])}
    starving = {domain: why for domain, why in host.starved.items() if domain not in ways}
    hindered = (Late(one, one, how) for one, how in _hindered(host) if one not in ways and one not in starving)
    return causes_of(
        host,
        [*host.late, *(Late(one, one, f"{one} wants to run, but {why}") for one, why in starving.items()), *hindered],
    )


def _hindered(host: Host) -> Iterator[tuple[str, str]]:
    """Domains that no client is late for, and whose own work is clearly held back, each with how."""
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


def causes_of(host: Host, ones: Sequence[Late]) -> Iterator[Finding]:
    """The same for these, whether they are late or not."""
    alike = {one: tuple(group) for group in groups(host.scenario) for one in group}
    causes: dict[tuple[object, ...], list[tuple[Late, Finding]]] = {}
    for one in ones:
        near = _nearest_to_full(stations(host.run, [one.domain]))
        found = _cause([Held(host, one, station) for station in near])
        # Whatever holds it back, its own CPU time may be worth less.
        own = (finding for finding in slowed.slowed(host, one.domain) if found is None or finding.rule != found.rule)
        for finding in (*([found] if found is not None else []), *own):
            # A device is one cause, whoever depends on it, and alike domains are mended alike.
            is_device = finding is found and not near[0].domain and not finding.changes
            what = [near[0].name] if is_device else split(finding.path)
            causes.setdefault((finding.rule, *(alike.get(step, step) for step in what)), []).append((one, finding))
    for both in causes.values():
        who = [one for one, _ in both]
        others = "" if len(who) == 1 else f" (as {in_short([one.name for one in who[1:]])})"
        first = both[0][1]
        yield replace(
            first,
            reason=f"{who[0].how}{others}: {first.reason}",
            concerned=tuple(one.name for one in who),
            changes={path: value for _, found in both for path, value in found.changes.items()},
            otherwise=tuple(
                {path: value for one in same for path, value in one.items()}
                for same in zip(*(found.otherwise for _, found in both), strict=False)
            ),
        )


def _nearest_to_full(there: Sequence[Station]) -> list[Station]:
    """The bottleneck; and if that is a vCPU, or pCPUs, the vCPUs that are hardly less held back."""
    first = bottleneck(there)
    if first is None or not (first.domain or first.kind == "pCPUs"):
        return [] if first is None else [first]
    near = [one for one in there if one.domain and one.used >= ABOUT * first.used]
    return near if first.domain else [first, *near]


def _cause(held: Sequence[Held]) -> Finding | None:
    """The first cause of what holds back one of these; before all, what makes its CPU time worth less."""
    for those in held:
        if those.station.domain:
            found = next(slowed.slowed(those.host, those.domain), None)
            if found is not None:
                return found
    for one in cause.all:
        for those in held:
            found = one.check(those)
            if found is not None:
                return one.stamped(found)
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
    way = with_servers(host.domains, [held.domain])
    nobody_waits = all(host.waited(one) < FEW_WAITS for one in way)
    if station.used < (HALF_FULL if nobody_waits else NEAR_FULL):
        return None
    reason = f"the bottleneck of {held.domain} is outside the scheduler: {station}; a scheduler makes it no faster"
    of = {"disk": "disk", "connections": "app", "backlog": "app"}.get(station.kind, "nic")
    return Finding(of_domain(held.domain, of), reason)


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
    inside = {one: host.domains[one]["vcpus"] for one in host.inside(name)}
    total, there = sum(inside.values()), len(held.pcpus)
    if total <= there:
        return None
    which = f"a vCPU of {held.domain}" if host.gotten(held.domain) else held.domain
    reason = (
        f"the null scheduler gives each vCPU a pCPU of its own, and there are {total} vCPUs for {there} pCPUs: "
        f"{which} never runs. Fewer vCPUs, or a scheduler that shares"
    )
    left = dict(inside)
    while sum(left.values()) > there and (spare := [one for one, vcpus in left.items() if vcpus > 1]):
        # The domain that uses least of what it has gives a vCPU up.
        left[min(spare, key=lambda one: host.gotten(one) / left[one])] -= 1
    path = of_pool(name, "scheduler")
    fewer = {of_domain(one, "vcpus"): vcpus for one, vcpus in left.items() if vcpus != inside[one]}
    return Finding(path, reason, fewer if sum(left.values()) <= there else {path: "credit2"})


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
    reserved = _Reserved.of(held)
    # Where they add up to too much, it does not even get what it has.
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
    reserved = _Reserved.of(held)
    if reserved is None or reserved.used_up or reserved.extra or held.host.overbooked(held.pool):
        return None
    # SEDF guarantees nothing to who wakes up in the period in which he blocked.
    blocked = " or it has slept" if held.host.pool_of(held.domain)["scheduler"] == "sedf" else ""
    reason = (
        f"{reserved}, which would do on average; but the period is long: once its slice is used{blocked}, it waits for "
        "the next, as it gets no extra time"
    )
    return Finding(of_domain(held.domain, reserved.period), reason, reserved.with_extra)


@dataclass(frozen=True)
class _Reserved:
    """What is reserved for a domain that is held back, and what it uses of it."""

    domain: str
    amount: str
    period: str
    said: str
    share: float
    """% of a pCPU, for each vCPU."""
    uses: float
    """% of a pCPU, of the vCPU that gets most."""
    extra: bool
    with_extra: dict[str, int]
    larger: tuple[dict[str, int], ...]
    shorter: dict[str, int]
    """The periods of all on the way cut to a part of `SHORTER`, for the same shares."""

    def __str__(self) -> str:
        return f"{self.domain} has {self.said} ({self.share:.0f} % of a pCPU for each vCPU) reserved"

    @property
    def used_up(self) -> bool:
        return self.uses >= NEAR_FULL * self.share

    @classmethod
    def of(cls, held: Held) -> "_Reserved | None":
        host, domain = held.host, held.domain
        spelt = RESERVATIONS.get(host.pool_of(domain)["scheduler"])
        if spelt is None or not held.waits:
            return None
        amount, period = (host.value(domain, name) for name in (spelt.amount, spelt.period))
        if not amount or not period:
            return None
        length, within = (number(one * spelt.unit_ns / 1e6) for one in (amount, period))

        def fields(one: str) -> dict[str, int]:
            return {name: host.value(one, name) or 0 for name in (spelt.amount, spelt.period, *spelt.at_most_period)}

        def cut(one: str) -> dict[str, int]:
            """A domain's period made so many times shorter, for the same share; nothing, if it is short already."""
            present = fields(one)
            shorter = spelt.scaled(present, 1 / SHORTER) if present[spelt.amount] else present
            if (
                shorter[spelt.period] * spelt.unit_ns < LEAST_PERIOD_NS
                or shorter[spelt.period] >= present[spelt.period]
            ):
                return {}
            return {of_domain(one, name): value for name, value in shorter.items()}

        way = (one for one in with_servers(host.domains, [held.late.domain]) if one in host.inside(held.pool))
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
            {path: value for one in way for path, value in cut(one).items()},
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
    others = host.pinned_away_from(domain, IDLE)
    if not held.waits or not others:
        return None
    beside = [one for one, _ in host.behind(domain) if one != domain]
    pinned = [one for one in beside if pinned_to(host.domains[one]) is not None]
    roaming = [one for one in beside if one not in pinned]
    path = of_domain(domain, "affinity")
    own = spans(sorted(pinned_to(host.domains[domain]) or ()))
    where = f"{domain} is pinned together with {in_short(pinned)}" if pinned else f"{domain} is pinned to pCPU {own}"
    shares = f", where {in_short(roaming)} may run, too" if roaming else ""
    reason = (
        f"{where}{shares}, and waits for {100 * host.waited(domain):.0f} % of the "
        f"time, while {len(others)} other pCPUs idle for {100 * host.idle_of(others):.0f} %"
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
    others = [p for p in range(host.document["host"]["pcpus"]) if p not in here]
    if not held.waits or host.idle_of(here) > IDLE or not others or host.idle_of(others) < 3 * IDLE:
        return None
    path = "host.pcpus" if name is None else join(["pool", name, "pcpus"])
    reason = (
        f"{held.said_waits} in pool {name or 'Pool-0'}, whose "
        f"{len(here)} pCPUs are full with {in_short(host.inside(name))}, while the other {len(others)} pCPUs idle for "
        f"{100 * host.idle_of(others):.0f} %: the pool has too few pCPUs"
    )
    free = host.pcpus_of(None)
    if name is None or len(free) < 2:
        return Finding(path, reason)
    larger = [{path: ",".join(map(str, sorted(here + free[-more:])))} for more in range(1, min(3, len(free)))]
    return Finding(path, reason, larger[0], otherwise=tuple(larger[1:]))


_LIMITS = {"ratelimit_us": (1_000, 1_000), "ctx_allow": (1, 5_000_000)}
"""Parameters that keep a vCPU that wakes up from preempting: their unit in ns, and their default in that unit."""


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
        # What a request passes before it reaches the service waits for the limit, too.
        longest_ns = max(host.woken_waits_ns(one)[1] for one in with_servers(host.domains, [domain]))
        if longest_ns < limit * unit_ns / RATE_LIMIT_TIMES or p99_ns > RATE_LIMIT_TIMES * limit * unit_ns:
            continue
        path = of_pool(held.pool, name)
        called = "rate limit" if name == "ratelimit_us" else "context switch allowance"
        reason = (
            f"{domain} wakes up and waits behind {held.said_behind()}: the {called} of {number(limit * unit_ns / 1e6)} "
            "ms keeps it from preempting whoever runs; the longest wait after a wake-up on the way of a request is "
            f"{number(longest_ns / 1e6)} ms"
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
    behind = [one for one, share in host.behind(domain) if share > 0]
    if 2 * sum(1 for one in behind if one in host.asked) < len(behind):
        return None
    path = of_pool(held.pool, "tslice_ms")
    reason = (
        f"{domain} never blocks, so it is not boosted, and waits for the whole slices ({tslice} ms) of the others "
        f"that compute all the time: {held.said_behind()}"
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
    used = sum(sum(host.busy(one)) for one in definite)
    if used < NEAR_FULL * len(here) or len(definite) < 2:
        return None
    reason = (
        f"{held.said_waits} on {len(here)} pCPUs that are {100 * busy:.0f} % busy: the {len(definite)} domains whose "
        f"work has an end use {used:.1f} of them, and wait for more. Weights decide who waits; less load, fewer "
        "domains or more pCPUs help all"
    )
    path = "host.pcpus" if held.pool is None else of_pool(held.pool, "pcpus")
    return Finding(path, reason)


def _has_an_end(host: Host, domain: str) -> bool:
    """Does a domain have a definite amount to do, or does it take what it gets?"""
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
    name = next((one for one in ("weight", "mcu_adv") if host.value(domain, one)), None)
    if not held.waits or name is None or not host.uses_its_weight(domain):
        return None
    own = host.value(domain, name) or 1
    theirs = {
        one: value
        for one in _most_of_its_waits(held)
        if host.is_beside(one, domain) and (value := host.value(one, name))
    }
    # How many shares like its own each of them has: a smaller advance is a larger share.
    ratios = [value / own if name == "weight" else own / value for value in theirs.values()]
    if not any(2 * ratio >= 1 for ratio in ratios):
        return None
    # Twice what is enough for all its vCPUs, beside those whom it waits for: others are there, too.
    share = min(SHARE_MAX, host.domains[domain]["vcpus"] / len(held.pcpus))
    enough = 2 * max(1, sum(ratio for ratio in ratios if 2 * ratio >= 1) * share / (1 - share))
    path = of_domain(domain, name)
    if name == "weight":
        mends = _weights(host, domain, own, enough) or _lighter(host, theirs, enough)
    else:
        mends = [_advances(domain, own, theirs, times * enough) for times in (1, ADVANCE_TIMES)]
        mends = [*([{path: mends[0][path]}] if len(mends[0]) > 1 else []), *mends]
    among = least_to_most(theirs.values(), str)
    reason = (
        f"{held.said_waits} behind {held.said_behind()}, on pCPUs that are {100 - 100 * host.idle_of(held.pcpus):.0f} "
        f"% busy: its {name} of "
        f"{own} beside theirs of {among} gives it a share that is less than it asks for, and it waits for their slices"
    )
    return Finding(path, reason, mends[0] if mends else {}, otherwise=tuple(mends[1:]))


def _weights(host: Host, domain: str, own: int, enough: float) -> list[dict[str, int]]:
    """Weights of a domain in steps, from the least that may suffice to one that is some times what it has."""
    steps = {_round_weight(host, own * 2.0**step) for step in range(1, ceil(log2(enough)))}
    return [
        {of_domain(domain, "weight"): weight}
        for weight in sorted({*steps, _round_weight(host, own * enough)})
        if weight > own
    ]


def _lighter(host: Host, theirs: Mapping[str, int], times: float) -> list[dict[str, int]]:
    """Smaller weights for those whom a domain of the greatest weight waits for; none, where theirs are the least."""
    lighter = {name: max(1, _round_weight(host, value / times)) for name, value in theirs.items()}
    changes = {of_domain(name, "weight"): value for name, value in lighter.items() if value < theirs[name]}
    return [changes] if changes else []


def _round_weight(host: Host, weight: float) -> int:
    """A weight in few digits, at most the greatest: under Xen a power of 2, under Linux one of 2 times its default."""
    unit = GROUP_WEIGHT if host.is_kvm else 1
    return int(min(host.weight_most, unit * 2.0 ** ceil(log2(weight / unit))))


def _advances(domain: str, own: int, theirs: Mapping[str, int], times: float) -> dict[str, int]:
    """Advances of BVT that give a domain so many times its share beside others."""
    least = max(1, int(own / times))
    # What its own advance cannot do, as it is an integer, theirs have to.
    larger = ceil(times * least / own)
    others = {of_domain(one, "mcu_adv"): min(ADVANCE_MAX, value * larger) for one, value in theirs.items()}
    return {of_domain(domain, "mcu_adv"): least, **(others if larger > 1 else {})}


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
    reserved = _Reserved.of(held)
    if reserved is None or reserved.used_up or not reserved.extra or not reserved.shorter:
        return None
    if held.host.overbooked(held.pool):
        return None
    reason = (
        f"{reserved} and uses {reserved.uses:.0f} %, and yet waits for {100 * held.host.waited(held.domain):.0f} % of "
        f"the time behind {held.said_behind()}: who has a long period waits for its turn in it"
    )
    return Finding(of_domain(held.domain, reserved.period), reason, reserved.shorter)


WAKES_TIMES = (4, 16)
"""Weights of Linux are tried that are as many times as great: who has four times the weight has a slice due in a
quarter of the virtual time."""
_WAKES_SOONER = {
    "ratelimit_us": 100,
    "tslice_ms": 5,
    "ctx_allow": 1_000_000,
    "base_slice_us": 700,
    "min_granularity_us": 750,
    "wakeup_granularity_us": 1000,
}
"""What lets who wakes run sooner, and how small: the least rate limit that Xen takes, slices of a few ms; of Linux what
it has on one CPU."""


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
    heaviest = max((host.value(one, "weight") or 0 for one in _most_of_its_waits(held)), default=0)
    if heaviest > (host.value(domain, "weight") or heaviest):
        mends.append({of_domain(domain, "weight"): min(host.weight_most, 2 * heaviest)})
    if host.is_kvm and (own := host.value(domain, "weight")):
        weights = dict.fromkeys(_round_weight(host, own * times) for times in WAKES_TIMES)
        mends += [{of_domain(domain, "weight"): weight} for weight in weights if weight > own]
    if not mends:
        return None
    said = " and ".join(f"{name} of {value}" for name, value in given.items())
    gets = "which its weight does not explain" if held.waits_for_itself else "less than its weight entitles it to"
    reason = (
        f"{domain} gets {host.gotten(domain):.0f} % of a pCPU, {gets}, and yet "
        f"{held.said_waits} behind {held.said_behind()}: it wakes up late, by {said}"
    )
    return Finding(next(iter(mends[0])), reason, mends[0], otherwise=tuple(mends[1:]))


def _most_of_its_waits(held: Held) -> Iterator[str]:
    """Those behind whom it waits most: who wakes up now and then matters little, whatever it weighs."""
    others = [(one, share) for one, share in held.host.behind(held.domain) if one != held.domain]
    left = MOST_OF_IT / 100 * sum(share for _, share in others)
    for one, share in others:
        if left <= 0:
            return
        yield one
        left -= share
