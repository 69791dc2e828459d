"""What is probably wrong with a host's settings: a rule is a function from a host to findings, registered in `RULES`.

Each finding has a reason and, where there is one, the change that mends it. Whether it matters is for the simulation to
say.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from math import ceil
from typing import Any

import polars as pl

from vcpulab.advice.capacity.occupancy import NEAR_FULL
from vcpulab.advice.lint.held_back import WAITS, held_back, late, occupied, spinning, waited
from vcpulab.advice.lint.host import Finding, Host, of_domain
from vcpulab.advice.spreading import spread
from vcpulab.advice.starving import starved
from vcpulab.hypervisors.xl import spans
from vcpulab.results.addresses import apps
from vcpulab.results.statistics import number
from vcpulab.scenario.catalogue import schedulers
from vcpulab.scenario.scenario import join
from vcpulab.scenario.units import size_bytes

SLICE_COST_MAX = 0.05
"""A slice is too short if a switch takes more than this part of it. Assumed: 5 % is what people notice."""
SLICE_COST_WANTED = 0.02
"""What a mended slice spends at most."""
BUSY = 0.9
"""A vCPU that runs for more than this part of the time, or of its cap, is saturated. Assumed."""
IDLE = 0.1
"""A host that idles for more than this part of the time has room. Assumed."""


def inverted_weights(host: Host) -> Iterator[Finding]:
    """A driver domain with a smaller share than its guests delays all their I/O."""
    for driver in host.drivers:
        own = host.value(driver, "weight")
        pool = host.domains[driver].get("pool")
        guests = [d for d in host.served_by(driver) if host.domains[d].get("pool") == pool]
        weights = {guest: weight for guest in guests if (weight := host.value(guest, "weight")) is not None}
        if not own or not weights or max(weights.values()) <= own or not _feels(host, driver):
            continue
        heaviest = max(weights, key=lambda guest: weights[guest])
        reason = f"weight {own} is below the {weights[heaviest]} of {heaviest}, whose I/O it does: under load it waits"
        mended = {of_domain(driver, "weight"): min(65535, 2 * weights[heaviest])}
        yield Finding("inverted-weights", of_domain(driver, "weight"), reason, mended)


def _feels(host: Host, driver: str) -> bool:
    """Does anybody feel that a driver domain waits? It is full, or who is behind it is late or not asked."""
    served = set(host.served_by(driver))
    asked = served & {app.domain for app in apps(host.scenario) if app.client is not None}
    if waited(host, driver) < WAITS:
        return False
    return not asked or occupied(host, driver) >= NEAR_FULL or any(one.domain in served for one in late(host))


def starving_cap(host: Host) -> Iterator[Finding]:
    """A cap that throttles a driver domain; those of others are contracts, unless somebody is late (`held_back`)."""
    for name in host.drivers:
        cap = host.value(name, "cap")
        if cap:
            path, served = of_domain(name, "cap"), ", ".join(host.served_by(name))
            reason = f"a driver domain that may use {cap} % of a pCPU at most delays the I/O of {served}"
            yield Finding("starving-cap", path, reason, {path: None})


_RESERVATIONS = {
    "sedf": ("slice", "period"),
    "rtds": ("budget_us", "period_us"),
    "atropos": ("nat_slice", "nat_period"),
}


def overbooked(host: Host) -> Iterator[Finding]:
    """Reservations that add up to more than there is."""
    for pool, table in host.pools.items():
        names = _RESERVATIONS.get(table["scheduler"])
        if names is None:
            continue
        reserved = {}
        for domain, fields in host.domains.items():
            amount, period = (host.value(domain, name) for name in names)
            if fields.get("pool") == pool and amount and period:
                reserved[domain] = (amount / period, fields["vcpus"], amount)
        total = sum(share * vcpus for share, vcpus, _ in reserved.values())
        there = len(host.pcpus_of(pool))
        if total <= there:
            continue
        said = ", ".join(f"{name} {share * vcpus:.2f}" for name, (share, vcpus, _) in reserved.items())
        reason = f"reservations add up to {total:.2f} pCPUs ({said}); there are {there}: somebody's are not kept"
        where = "host.scheduler" if pool is None else join(["pool", pool, "scheduler"])
        least = {"sedf": 5000, "rtds": 10, "atropos": 1}[table["scheduler"]]
        mended = {
            of_domain(name, names[0]): max(least, int(amount * there / total))
            for name, (_, _, amount) in reserved.items()
        }
        yield Finding("overbooked-reservations", where, reason, mended)


def pinning(host: Host) -> Iterator[Finding]:
    """Pinning that leaves pCPUs to nobody, crowds some while others idle, or spreads a domain over sockets."""
    per_socket = host.document["host"]["pcpus_per_socket"]
    for name, table in host.pools.items():
        if table["scheduler"] in ("null", "arinc653"):
            continue
        here = host.pcpus_of(name)
        inside = [domain for domain, fields in host.domains.items() if fields.get("pool") == name]
        masks = {domain: host.affinity(domain) for domain in inside}
        pinned = [d for d in inside if any(set(mask) != set(here) for mask in masks[d])]
        reached = set(chain.from_iterable(chain.from_iterable(masks.values())))
        unused = [pcpu for pcpu in here if pcpu not in reached]
        if pinned and unused and inside:
            path = of_domain(pinned[-1], "affinity")
            reason = f"no vCPU may run on pCPU {spans(unused)}: it idles whatever the others have to do"
            yield Finding("pinning-leaves-idle", path, reason, {of_domain(d, "affinity"): "all" for d in pinned})
        elif pinned and host.idle_of(here) > IDLE:
            yield from _crowded(host, here, pinned)
        for domain in pinned:
            sockets = {pcpu // per_socket for mask in masks[domain] for pcpu in mask}
            whole = all(set(mask) == set(here) for mask in masks[domain])
            first = min(pcpu // per_socket for mask in masks[domain] for pcpu in mask)
            mates = [pcpu for pcpu in here if pcpu // per_socket == first]
            if len(sockets) > 1 and not whole and len(mates) >= host.domains[domain]["vcpus"]:
                reason = f"its vCPUs are pinned to sockets {spans(sorted(sockets))}: they share no cache, and move cold"
                path = of_domain(domain, "affinity")
                yield Finding("pinning-crosses-sockets", path, reason, {path: spans(mates)})


def _crowded(host: Host, here: list[int], pinned: list[str]) -> Iterator[Finding]:
    """Domains that wait where they are pinned for more than a tenth of the time, while other pCPUs idle."""
    waits = (
        host.run.df_vcpus()
        .group_by("domain")
        .agg((pl.col("runnable_ns").sum() / pl.col("elapsed_ns").sum()).alias("waited"))
    )
    for domain, share in waits.sort("domain").iter_rows():
        mask = sorted(set(chain.from_iterable(host.affinity(domain)))) if domain in pinned else here
        others = [pcpu for pcpu in here if pcpu not in mask]
        if share > IDLE and others and host.idle_of(others) > IDLE:
            path = of_domain(domain, "affinity")
            reason = (
                f"it is pinned to pCPU {spans(mask)}, and its vCPUs wait there for {100 * share:.0f} % of the time, "
                f"while pCPU {spans(others)} idle"
            )
            yield Finding("pinning-leaves-idle", path, reason, {path: "all"})


def few_driver_vcpus(host: Host) -> Iterator[Finding]:
    """A driver domain whose vCPU is saturated while the host has room."""
    used = (
        host.run.df_vcpus()
        .group_by("domain", "vcpu")
        .agg((pl.col("running_ns").sum() / pl.col("elapsed_ns").sum()).alias("busy"))
    )
    for driver in host.drivers:
        vcpus = host.domains[driver]["vcpus"]
        here = host.pcpus_of(host.domains[driver].get("pool"))
        busy = used.filter(domain=driver).sort("vcpu")["busy"].to_list()
        if max(busy, default=0.0) < BUSY or host.idle_of(here) < IDLE:
            continue
        path, behind = of_domain(driver, "vcpus"), ", ".join(host.served_by(driver))
        if vcpus > 1 and min(busy) < BUSY / 2:
            rest = ", ".join(f"{100 * share:.0f} %" for share in sorted(busy)[:-1])
            reason = (
                f"one of its {vcpus} vCPUs, saturated for {100 * max(busy):.0f} % of the time, does the I/O of "
                f"{behind}, while the "
                f"others are busy for {rest}: its netbacks are all on that vCPU"
            )
            yield Finding("saturated-driver-vcpu", path, reason, spread(host.document, driver, vcpus))
        elif vcpus < len(here):
            reason = (
                f"{'its only vCPU' if vcpus == 1 else f'one of its {vcpus} vCPUs'} is busy for {100 * max(busy):.0f} "
                "% of the time "
                f"with the I/O of {behind}, while pCPUs idle: it has too few vCPUs, one saturates"
            )
            mended = {path: vcpus + 1, **spread(host.document, driver, vcpus + 1)}
            if isinstance(host.domains[driver].get("affinity"), list):
                mended[of_domain(driver, "affinity")] = "all"
            yield Finding("few-driver-vcpus", path, reason, mended)


_SLICES = {"tslice_ms": 1e6, "slice_ms": 1e6, "slice": 1, "nat_slice": 1, "budget_us": 1e3, "ctx_allow": 1}
"""Parameters that say how long somebody runs at a time, and their unit in ns."""


def short_slices(host: Host) -> Iterator[Finding]:
    """Slices that are short beside what a switch costs: the decision, the switch, and a cold cache."""
    for name, table in host.pools.items():
        where = ["host"] if name is None else ["pool", name]
        inside = [domain for domain, fields in host.domains.items() if fields.get("pool") == name]
        cost = max((switch_cost_ns(host.document["host"]["costs"], host.domains[d]) for d in inside), default=0.0)
        places = [(where, table, "global"), *((["domain", d], host.domains[d], "domain") for d in inside)]
        for steps, fields, param in ((s, f, p) for s, f, scope in places for p in host.params(table, scope)):
            value, unit = fields.get(param), _SLICES.get(param)
            if not value or unit is None or cost <= SLICE_COST_MAX * value * unit:
                continue
            path, factor = join([*steps, param]), cost / (SLICE_COST_WANTED * value * unit)
            mended = {path: ceil(value * factor)}
            period = dict(_RESERVATIONS.values()).get(param)
            if period is not None and fields.get(period):
                # The same share of the CPU, in longer turns.
                mended[join([*steps, period])] = ceil(fields[period] * factor)
            reason = (
                f"{number(value * unit / 1e3)} µs beside a switch of up to {number(cost / 1e3)} µs "
                f"(decision, switch, cold cache): {100 * cost / (value * unit):.0f} % of each turn may be lost"
            )
            yield Finding("short-slice", path, reason, mended)


def switch_cost_ns(costs: Mapping[str, int], domain: Mapping[str, Any]) -> float:
    """What a switch to that domain takes at most, ns: the decision, the switch, and its working set from memory."""
    size = min(size_bytes(domain.get("working_set", "0B")), max(costs["l2_bytes"], costs["l3_bytes"]))
    misses = size / costs["cache_line_bytes"] / costs["misses_at_once"]
    return costs["decision_ns"] + costs["context_switch_ns"] + misses * costs["l3_miss_ps"] / 1e3


def starving(host: Host) -> Iterator[Finding]:
    """A domain that wants to run and (almost) never does. What mends it, other rules may know."""
    for domain, why in starved(host.run).items():
        yield Finding("starved", join(["domain", domain]), f"wants to run, but {why}")


RULES: tuple[Callable[[Host], Iterator[Finding]], ...] = (
    starving,
    inverted_weights,
    starving_cap,
    overbooked,
    pinning,
    few_driver_vcpus,
    short_slices,
    spinning,
    held_back,
)


def findings(host: Host) -> list[Finding]:
    """What all rules find; of each field the first word on it."""
    found: dict[str, Finding] = {}
    for finding in chain.from_iterable(rule(host) for rule in RULES):
        found.setdefault(finding.path, finding)
    return list(found.values())


def owners(param: str) -> list[str]:
    """The schedulers that have a parameter of that name in some generation."""
    return [
        policy["name"]
        for policy in schedulers()
        if any(param == p["name"] for generation in policy["generations"] for p in generation["params"])
    ]
