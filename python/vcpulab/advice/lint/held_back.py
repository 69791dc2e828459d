"""Services that are late, and what holds them back: a rule for each mechanism.

Whoever is late is late by what his clients see. The bottleneck of what serves him (`capacity.occupancy`) says where the
time goes; why it goes there is told by the settings of whoever waits. A host on which nobody is late is left alone.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, log2
from typing import Any

import polars as pl

from vcpulab.advice.capacity.occupancy import NEAR_FULL, Station, bottleneck, stations
from vcpulab.advice.lint.host import Finding, Host, of_domain
from vcpulab.results.addresses import App, apps
from vcpulab.results.statistics import number
from vcpulab.scenario.scenario import join
from vcpulab.scenario.units import span_ns

LATE_MS = 20.0
"""Answers that are there within this are felt as immediate. Assumed; who knows better gives an SLO."""
LATE_TIMES = 20.0
"""And nobody is late whose slowest answers take less than this many times the service's own computation. Assumed."""
LOST = 0.05
"""Losing more than this part of the requests, or of the deadlines, is being late. Assumed."""
WAITS = 0.25
"""A vCPU that waits for more than this part of the time is held back. Assumed."""
IDLE = 0.1
"""pCPUs that idle for more than this part of the time have room. Assumed."""
NEVER_RUNS = 0.9
"""A vCPU that waits for more than this part of the time hardly runs. Assumed."""
NEVER_BLOCKED = 0.05
"""A domain that is blocked for less than this part of the time always wants to run. Assumed."""
RATE_LIMIT_US = 5_000
"""A rate limit from here on can be felt; Xen's own is 1000 µs."""
SLICE_MS = 10
"""So can a slice; Credit's own is 30 ms."""
WEIGHT_MAX = 65_535
"""The largest weight that the toolstack takes."""
SHARE_MAX = 0.8
"""A mended weight entitles to this part of the pCPUs at most."""


@dataclass(frozen=True)
class Late:
    """Somebody who is late."""

    name: str
    """The client or application, as in addresses."""
    domain: str
    """What serves him."""
    how: str
    """How late, in words."""


def late(host: Host) -> list[Late]:
    """The clients and periodic jobs of a host that are late, or that are not served at all."""
    found = []
    for app in apps(host.scenario):
        how = _answers(host, app) if app.client is not None else _jobs(host, app)
        if how:
            found.append(Late(app.name, app.domain, how))
    return found


def _answers(host: Host, client: App) -> str:
    lost, p99 = _lost(host, client), _mean(host, client, "response_p99")
    if p99 is None:
        return f"{client.name} gets no answer at all" if lost or waited(host, client.domain) > NEVER_RUNS else ""
    own_ms = max((_computes_ms(app) for app in _servers(host, client)), default=0.0)
    if p99 > max(LATE_MS, LATE_TIMES * own_ms):
        return f"answers to {client.name} take up to {number(p99)} ms (p99) for {number(own_ms)} ms of CPU time each"
    return f"{100 * lost:.0f} % of the requests of {client.name} fail" if lost > LOST else ""


def _jobs(host: Host, app: App) -> str:
    """Work that nobody asks for from outside: periodic jobs, transactions."""
    if app.kind != "periodic":
        return _transactions(host, app)
    lost = _lost(host, app)
    return f"{100 * lost:.0f} % of the jobs of {app.name} are late" if lost > LOST else ""


def _transactions(host: Host, app: App) -> str:
    """Of an application that is alone in its domain, so that all CPU time there is its own."""
    asked = any(client["server"] == app.domain for client in host.document.get("client", {}).values())
    p99, per_s = _mean(host, app, "response_p99"), _mean(host, app, "throughput")
    if asked or p99 is None or not per_s or len(host.domains[app.domain]["app"]) > 1:
        return ""
    own_ms = 10 * _gotten(host, app.domain) / per_s
    if p99 <= max(LATE_MS, LATE_TIMES * own_ms):
        return ""
    return f"{app.name} takes up to {number(p99)} ms (p99) for {number(own_ms)} ms of CPU time"


def _lost(host: Host, app: App) -> float:
    """The part of the requests, or of the jobs, that fail."""
    done, failed = (_mean(host, app, name) or 0.0 for name in ("throughput", "failed"))
    return failed / max(1.0, failed + done * host.scenario.duration_ns / 1e9)


def _mean(host: Host, app: App, metric: str) -> float | None:
    found = host.run.get(f"{app.name}.{metric}")
    return None if found is None else found.mean


def _servers(host: Host, client: App) -> list[Mapping[str, Any]]:
    table = host.document["client"][client.client]
    running: list[Mapping[str, Any]] = host.domains[client.domain].get("app", [])
    return [app for app in running if table.get("app") in (None, app["kind"])]


def _computes_ms(app: Mapping[str, Any]) -> float:
    """CPU time of a request as given, ms; 0: it depends on the request."""
    return span_ns(app.get("request_cpu", "0ns")) / 1e6


# ---- what holds them back ----


def held_back(host: Host) -> Iterator[Finding]:
    """What holds back those who are late: one finding for each cause, with all whom it concerns."""
    return causes_of(host, late(host))


def causes_of(host: Host, ones: Sequence[Late]) -> Iterator[Finding]:
    """The same for these, whether they are late or not."""
    causes: dict[tuple[str, str], list[tuple[Late, Finding]]] = {}
    for one in ones:
        station = bottleneck(stations(host.run, [one.domain]))
        cause = None if station is None else _cause(host, one, station)
        if cause is not None:
            causes.setdefault((cause.rule, cause.path), []).append((one, cause))
    for (rule, path), both in causes.items():
        who = [one for one, _ in both]
        others = "" if len(who) == 1 else f" (as {_named([one.name for one in who[1:]])})"
        yield Finding(rule, path, f"{who[0].how}{others}: {both[0][1].reason}", both[0][1].changes)


def _cause(host: Host, one: Late, station: Station) -> Finding | None:
    if not station.domain:
        full = f"{one.domain} and those who serve it use all of the {station}"
        return _exceeded(one.domain, full) if station.kind == "pCPUs" else _outside(one, station)
    waiting = station.domain
    if station.kind == "guest vCPU":
        return _full(host, waiting, station)
    # Of a driver domain that is busy itself, the rule on these says what to do.
    held = station.kind != "driver domain" and (station.used >= NEAR_FULL or waited(host, waiting) >= WAITS)
    found = (mechanism(host, waiting) for mechanism in _MECHANISMS) if held else iter(())
    return next((cause for cause in found if cause is not None), None)


def _outside(one: Late, station: Station) -> Finding | None:
    """A disk, a link, the clients' own machines: nothing that a scheduler could change."""
    if station.used < NEAR_FULL:
        return None
    kind = {"link": "link", "disk": "disk"}.get(station.kind, "client")
    reason = (
        f"the {station.name} that {one.domain} depends on is the bottleneck, {station}. It is outside the scheduler: "
        "no setting changes that"
    )
    return Finding(f"outside-{kind}", of_domain(one.domain, "nic" if kind != "disk" else "disk"), reason)


def _full(host: Host, domain: str, station: Station) -> Finding:
    """The service uses all the CPU time that its vCPUs, or the pCPUs, have."""
    table = host.domains[domain]
    here = host.pcpus_of(table.get("pool"))
    path = of_domain(domain, "vcpus")
    if table["vcpus"] < len(here) and host.idle_of(here) > IDLE:
        reason = f"{station}, while pCPUs idle: {domain} has too few vCPUs for what is asked of it"
        return Finding("too-few-vcpus", path, reason, {path: table["vcpus"] + 1})
    return _exceeded(domain, f"{domain} itself uses all that its {table['vcpus']} vCPUs can get ({station.why})")


def _exceeded(domain: str, what: str) -> Finding:
    reason = (
        f"{what}: the capacity is exceeded, and no setting of the scheduler changes that; less load or more CPU does"
    )
    return Finding("capacity-exceeded", of_domain(domain, "vcpus"), reason)


def _never_runs(host: Host, domain: str) -> Finding | None:
    pool = host.pool_of(domain)
    if pool["scheduler"] != "null":
        return None
    name = host.domains[domain].get("pool")
    inside = {one: table["vcpus"] for one, table in host.domains.items() if table.get("pool") == name}
    there = len(host.pcpus_of(name))
    if sum(inside.values()) <= there:
        return None
    reason = (
        f"the null scheduler gives each vCPU a pCPU of its own, and there are {sum(inside.values())} vCPUs for "
        f"{there} pCPUs: {domain} never runs. Fewer vCPUs, or a scheduler that shares"
    )
    # The domain that uses least of what it has gives a vCPU up.
    spare = [one for one, vcpus in inside.items() if vcpus > 1 and one != domain]
    least = min(spare, key=lambda one: _gotten(host, one) / inside[one], default=None)
    changes = {} if least is None else {of_domain(least, "vcpus"): inside[least] - 1}
    where = "host.scheduler" if name is None else join(["pool", name, "scheduler"])
    return Finding("null-overcommitted", where, reason, changes)


def _capped(host: Host, domain: str) -> Finding | None:
    cap = host.value(domain, "cap")
    here = host.pcpus_of(host.domains[domain].get("pool"))
    if not cap or _gotten(host, domain) < NEAR_FULL * cap:
        return None
    path = of_domain(domain, "cap")
    idle = 100 * host.idle_of(here)
    reason = f"{domain} is throttled by its cap of {cap} %, while the pCPUs idle for {idle:.0f} % of the time"
    return Finding("cap-throttles", path, reason, {path: min(100 * int(host.domains[domain]["vcpus"]), 3 * cap)})


_RESERVATIONS = {
    "sedf": ("slice", "period", "extratime", 1e6),
    "rtds": ("budget_us", "period_us", "extratime", 1e3),
    "atropos": ("nat_slice", "nat_period", "xtratime", 1e6),
}
"""Amount, period, and the flag for extra time, with their units in a ms."""


def _reserved(host: Host, domain: str) -> Finding | None:
    """A reservation that is too small, or that comes in too long a period."""
    names = _RESERVATIONS.get(host.pool_of(domain)["scheduler"])
    if names is None:
        return None
    amount, period, extra = (host.value(domain, name) for name in names[:3])
    if not amount or not period:
        return None
    share, used = 100 * amount / period, _gotten(host, domain) / host.domains[domain]["vcpus"]
    length, within = (number(one / names[3]) for one in (amount, period))
    said = f"{length} ms in every {within} ms ({share:.0f} % of a pCPU for each vCPU)"
    mended = {of_domain(domain, names[2]): 1}
    if used >= NEAR_FULL * share:
        path = of_domain(domain, names[0])
        if extra:
            mended = {path: min(period, 2 * amount)}
        reason = (
            f"{domain} has a budget of {said} reserved, uses {used:.0f} %, and wants more than that: it is too small"
        )
        if not extra:
            reason += ", and it gets no extra time"
        return Finding("reservation-too-small", path, reason, mended)
    if extra:
        return None
    reason = (
        f"{domain} has {said} reserved, which would do on average; but the period is long: once its slice is used it "
        "waits for the next, as it gets no extra time"
    )
    return Finding("reservation-period-too-long", of_domain(domain, names[1]), reason, mended)


def _crowded_pool(host: Host, domain: str) -> Finding | None:
    """A pool that is busy while the pCPUs of others idle."""
    name = host.domains[domain].get("pool")
    here = host.pcpus_of(name)
    others = [p for p in range(host.document["host"]["pcpus"]) if p not in here]
    if host.idle_of(here) > IDLE or not others or host.idle_of(others) < 3 * IDLE:
        return None
    inside = [one for one, table in host.domains.items() if table.get("pool") == name]
    path = "host.pcpus" if name is None else join(["pool", name, "pcpus"])
    reason = (
        f"{domain} waits for {100 * waited(host, domain):.0f} % of the time in pool {name or 'Pool-0'}, whose "
        f"{len(here)} pCPUs are full with {_named(inside)}, while {100 * host.idle_of(others):.0f} % of the other "
        f"{len(others)} pCPUs idle: the pool has too few pCPUs"
    )
    given = max(set(host.pcpus_of(None)), default=None)
    if name is None or given is None or len(host.pcpus_of(None)) < 2:
        return Finding("pool-too-small", path, reason)
    return Finding("pool-too-small", path, reason, {path: ",".join(map(str, sorted([*here, given])))})


def _pinned(host: Host, domain: str) -> Finding | None:
    """Pinned where others are, while other pCPUs idle."""
    here = host.pcpus_of(host.domains[domain].get("pool"))
    mask = {pcpu for one in host.affinity(domain) for pcpu in one}
    others = [pcpu for pcpu in here if pcpu not in mask]
    if not others or host.idle_of(others) < IDLE:
        return None
    with_it = [one for one, _ in _behind(host, domain) if one in host.domains and one != domain]
    path = of_domain(domain, "affinity")
    reason = (
        f"{domain} is pinned together with {_named(with_it)}, and waits for {100 * waited(host, domain):.0f} % of the "
        f"time, while {len(others)} other pCPUs idle for {100 * host.idle_of(others):.0f} %"
    )
    return Finding("pinned-together", path, reason, {path: "all"})


def _rate_limited(host: Host, domain: str) -> Finding | None:
    """Who wakes may not preempt for long."""
    limit = _setting(host, domain, "ratelimit_us")
    if not limit or limit < RATE_LIMIT_US or (_blocked(host, domain) < NEVER_BLOCKED and not host.served_by(domain)):
        return None
    path = _of_pool(host, domain, "ratelimit_us")
    reason = (
        f"{domain} wakes up and waits behind {_said_behind(host, domain)}: the rate limit of {number(limit / 1e3)} ms "
        "keeps it from preempting whoever runs"
    )
    return Finding("ratelimit-too-long", path, reason, {path: 1000})


def _long_slices(host: Host, domain: str) -> Finding | None:
    """Those that always want to run are not boosted: they wait for the slices of others like them."""
    tslice = _setting(host, domain, "tslice_ms")
    if not tslice or tslice < SLICE_MS or _blocked(host, domain) > NEVER_BLOCKED:
        return None
    behind = [one for one, share in _behind(host, domain) if one in host.domains and share > 0]
    asked = {app.domain for app in apps(host.scenario) if app.client is not None}
    peers = [one for one in behind if one in asked]
    if 2 * len(peers) < len(behind):
        return None
    path = _of_pool(host, domain, "tslice_ms")
    reason = (
        f"{domain} never blocks, so it is not boosted, and waits for the whole slices ({tslice} ms) of the others "
        f"that compute all the time: {_said_behind(host, domain)}"
    )
    return Finding("slice-too-long", path, reason, {path: 5})


def _outweighed(host: Host, domain: str) -> Finding | None:
    """It waits behind others of the same weight, or of more."""
    own = host.value(domain, "weight")
    if not own:
        return None
    # Those that make it wait most: who wakes up now and then matters little, whatever it weighs.
    behind = [one for one, share in _behind(host, domain) if one in host.domains and one != domain and share >= 10]
    theirs = [weight for one in behind if (weight := host.value(one, "weight")) and 2 * weight >= own]
    if not theirs:
        return None
    path, weights = of_domain(domain, "weight"), sorted(set(theirs))
    # Twice what is enough for all its vCPUs, beside those whom it waits for: others are there, too.
    table = host.domains[domain]
    share = min(SHARE_MAX, table["vcpus"] / len(host.pcpus_of(table.get("pool"))))
    enough = 2 * max(own, sum(theirs) * share / (1 - share))
    among = f"{weights[0]}" if len(weights) == 1 else f"{weights[0]} to {weights[-1]}"
    reason = (
        f"{domain} waits for {100 * waited(host, domain):.0f} % of the time behind {_said_behind(host, domain)}: its "
        f"weight of {own} beside theirs of {among} gives it a share that is less than it asks for, and it waits for "
        "their slices"
    )
    return Finding("waits-behind-equals", path, reason, {path: min(WEIGHT_MAX, 2 ** ceil(log2(enough)))})


_MECHANISMS: Sequence[Callable[[Host, str], Finding | None]] = (
    _never_runs,
    _capped,
    _reserved,
    _pinned,
    _crowded_pool,
    _rate_limited,
    _long_slices,
    _outweighed,
)
"""Why a vCPU waits, in the order in which they are looked for: what only throttles comes before what shares."""


def spinning(host: Host) -> Iterator[Finding]:
    """An SMP guest that spins for locks whose holders do not run, since it has more vCPUs than the pCPUs it gets."""
    for name, table in host.domains.items():
        if table["vcpus"] < 2 or not any(app["kind"] == "spin" for app in table.get("app", [])):
            continue
        gets = _gotten(host, name) / 100
        if waited(host, name, least=True) < WAITS:
            continue
        path = of_domain(name, "vcpus")
        reason = (
            f"{name} has {table['vcpus']} vCPUs and gets {number(gets)} pCPUs: its lock holders are preempted while "
            "its other "
            "vCPUs spin for the lock"
        )
        yield Finding("lock-holder-preemption", path, reason, {path: max(1, round(gets))})


# ---- what was measured ----


def _gotten(host: Host, domain: str) -> float:
    """CPU time of a domain, % of one pCPU."""
    found = host.run.get(f"{join([domain])}.gotten")
    return 0.0 if found is None else found.mean


def _blocked(host: Host, domain: str) -> float:
    """The part of the time in which the vCPU that is blocked least is blocked."""
    return _least(host, domain, "blocked_ns")


def waited(host: Host, domain: str, *, least: bool = False) -> float:
    """The part of the time for which the vCPU that waits most (or least) waits."""
    if least:
        return _least(host, domain, "runnable_ns")
    shares = _shares(host, domain, "runnable_ns")
    return max(shares, default=0.0)


def occupied(host: Host, domain: str) -> float:
    """The part of the time for which the vCPU of a domain that is blocked least runs or waits."""
    return 1 - _blocked(host, domain)


def _least(host: Host, domain: str, column: str) -> float:
    return min(_shares(host, domain, column), default=0.0)


def _shares(host: Host, domain: str, column: str) -> list[float]:
    rows = host.run.df_vcpus().filter(domain=domain).group_by("vcpu", maintain_order=True)
    return rows.agg((pl.col(column).sum() / pl.col("elapsed_ns").sum()).alias("share"))["share"].to_list()


def _behind(host: Host, domain: str) -> list[tuple[str, float]]:
    """Who made a domain wait, with the share of its waits, %; the most first."""
    rows = host.run.df_wait_shares().filter(domain=domain).sort("of_elapsed", "by", descending=[True, False])
    return [(by, of_wait or 0.0) for by, of_wait in rows.select("by", "of_wait").iter_rows()]


def _said_behind(host: Host, domain: str) -> str:
    behind = [(one, share) for one, share in _behind(host, domain) if one in host.domains and share >= 1]
    if not behind:
        return "others"
    total = sum(share for _, share in behind)
    return f"{_named([one for one, _ in behind])} ({total:.0f} % of its waits)"


def _named(names: Sequence[str]) -> str:
    """A few names, and how many more."""
    shown = ", ".join(names[:4])
    return shown if len(names) <= 4 else f"{shown} and {len(names) - 4} more"


def _setting(host: Host, domain: str, name: str) -> int | None:
    """A parameter of the scheduler of a domain's pool."""
    pool = host.pool_of(domain)
    param = host.params(pool, "global").get(name)
    if param is None:
        return None
    given = pool.get(name, param["default"])
    return None if given is None else int(given)


def _of_pool(host: Host, domain: str, name: str) -> str:
    pool = host.domains[domain].get("pool")
    return f"host.{name}" if pool is None else join(["pool", pool, name])
