"""Rules that check the settings of a whole host.

Each finding has a reason and, if the rule knows one, a fix. The simulation of the fix decides whether it matters.
"""

import math
from collections.abc import Callable, Iterator
from math import ceil

from vcpulab.advice.lint.host import FEW_WAITS, WAITS, Finding, Host, of_domain, of_pool
from vcpulab.advice.lint.rule import Rules, Stands
from vcpulab.advice.reservations import Reservation, reservations
from vcpulab.hypervisors.settings import POOL_0
from vcpulab.results.statistics import number
from vcpulab.scenario.model import Costs, Domain
from vcpulab.scenario.names import in_short
from vcpulab.scenario.scenario import join
from vcpulab.scenario.units import spans

SLICE_COST_MAX = 0.05
"""The fraction of the time spent in switches above which a slice is too short. Assumed: people notice 5 %."""
SLICE_COST_WANTED = 0.02
"""The fraction of the time spent in switches with a fixed slice."""
KEPT = 0.95
"""The fraction of its reservation below which a waiting domain does not get the reservation."""

rule = Rules[Callable[[Host], Iterator[Finding]]](Stands.NEVER)


@rule("starved", stands=Stands.ALWAYS)
def starving(host: Host) -> Iterator[Finding]:
    """A domain wants to run and never does, or almost never.

    Mechanism: Other domains are served first for as long as they want to run, or the domain has no pCPU at all. A
    starved domain without requests looks idle to its owner.

    Evidence: One of its vCPUs waits for nine tenths of the time or more, and runs for less than a tenth of an equal
    share of its pCPUs, or never.

    Silent: No finding if its own cap, budget or weight promises no more than it gets.

    Fix: See the other finding that names the domain; this rule has no fix of its own.

    Schedulers: All.

    Sources: Documentation of each scheduler: the guarantees for its domains.
    """
    for domain, reason in host.starved.items():
        yield Finding(join(["domain", domain]), f"wants to run, but {reason}")


@rule("overbooked-reservations", stands=Stands.ALWAYS)
def overbooked(host: Host) -> Iterator[Finding]:
    """Reservations add up to more than the pCPUs: at least one is not kept.

    Mechanism: Earliest deadline first keeps all reservations while they add up to at most the pCPUs. Beyond that it
    misses the deadlines of the domains that come last, which in turn make others miss theirs.

    Evidence: The sum over a pool, or over the domains pinned to the same pCPUs, is too large. One of these domains gets
    less than its reservation, waits for more than {FEW_WAITS:.0%} of the time, or is late.

    Silent: No finding if all domains get their reservations because they do not use them fully.

    Fix: Reduce the reservations of batch domains if that suffices, otherwise all in the same proportion. Fewer domains,
    or more pCPUs, are better.

    Schedulers: `rtds`, `sedf`, `atropos`.

    Sources: Liu and Layland 1973, "Scheduling algorithms for multiprogramming in a hard-real-time environment", section
    7: earliest deadline first is feasible up to a sum of one for each processor.
    """
    for pool, frame in host.pools.items():
        spelt = reservations().get(frame.scheduler)
        if spelt is None:
            continue
        here = host.pcpus_of(pool)
        shares: dict[str, list[tuple[frozenset[int], float]]] = {}
        for domain in host.inside(pool):
            given = {name: host.value(domain, name) or 0 for name in (spelt.amount, spelt.period)}
            if spelt.share(given):
                shares[domain] = [(frozenset(mask), spelt.share(given)) for mask in host.affinity(domain)]
        # The whole pool first, then smaller sets of pCPUs that domains are pinned to.
        masks = {mask for vcpus in shares.values() for mask, _ in vcpus} | {frozenset(here)}
        for where in sorted(masks, key=lambda mask: (-len(mask), sorted(mask))):
            inside = {
                domain: total
                for domain, vcpus in shares.items()
                if (total := sum(share for mask, share in vcpus if mask <= where))
            }
            total = sum(inside.values())
            broken = [domain for domain in inside if _is_broken(host, domain, shares[domain])]
            if total <= len(where) * 1.0001 or not broken:
                continue
            summands = ", ".join(f"{name} {share:.2f}" for name, share in inside.items())
            available = (
                f"there are {len(here)}" if len(where) == len(here) else f"they are pinned to {spans(sorted(where))}"
            )
            first = broken[0]
            reason = (
                f"reservations add up to {total:.2f} pCPUs ({summands}); {available}: at least one is not kept. "
                f"{first} gets {host.gotten(first) / 100:.2f} of its {inside[first]:.2f}, and waits for "
                f"{100 * host.waited(first):.0f} % of the time"
            )
            fixes = [
                {
                    of_domain(domain, spelt.amount): _less(spelt, host.value(domain, spelt.amount) or 0, kept)
                    for domain in reserved
                }
                # Batch work alone if its reservations are large enough; otherwise all domains.
                for reserved in ([domain for domain in inside if not host.serves(domain)], list(inside))
                if (kept := 1 - (total - len(where)) / max(sum(inside[domain] for domain in reserved), 1e-9)) > 0
            ]
            yield Finding(of_pool(pool, "scheduler"), reason, fixes[0], otherwise=tuple(fixes[1:]))
            break


def _less(spelt: Reservation, amount: int, kept: float) -> int:
    """An amount reduced to at most a fraction `kept`, but at least the smallest amount that the scheduler takes."""
    step = spelt.whole(1, amount)
    return max(step, int(amount * kept) // step * step)


def _is_broken(host: Host, domain: str, vcpus: list[tuple[frozenset[int], float]]) -> bool:
    """Does a domain that wants to run not get its reservation?"""
    if host.waited(domain) < FEW_WAITS:
        return any(late.domain == domain for late in host.late)
    return host.gotten(domain) < KEPT * 100 * sum(share for _, share in vcpus)


@rule("lock-holder-preemption")
def spinning(host: Host) -> Iterator[Finding]:
    """A guest spins for locks on more vCPUs than the pCPUs it gets.

    Mechanism: The hypervisor takes a pCPU from the vCPU whose thread holds a lock. Until it runs again, the guest's
    other vCPUs spin for the lock and waste the guest's share.

    Evidence: The guest has several vCPUs and threads that spin, and each of its vCPUs waits for more than {WAITS:.0%}
    of the time.

    Silent: No finding if the guest gets a pCPU for each vCPU, or if fewer vCPUs improve nothing.

    Fix: Set the number of vCPUs to the number of pCPUs that the guest gets.

    Schedulers: All that share pCPUs.

    Sources: Uhlig, LeVasseur, Skoglund and Dannowski 2004, "Towards scalable multiprocessor virtual machines".
    """
    for name, domain in host.domains.items():
        if domain.vcpus < 2 or not any(app.kind == "spin" for app in domain.apps):
            continue
        gets = host.gotten(name) / 100
        if host.waited(name, least=True) < WAITS:
            continue
        path = of_domain(name, "vcpus")
        reason = (
            f"{name} has {domain.vcpus} vCPUs and gets {number(gets)} pCPUs: its lock holders are preempted while "
            "its other vCPUs spin for the lock"
        )
        yield Finding(path, reason, {path: max(1, round(gets))})


_SLICES = {"tslice_ms": 1e6, "slice_ms": 1e6, "ctx_allow": 1}
"""Parameters that bound the time of one run, with their unit in ns."""


@rule("short-slice")
def short_slices(host: Host) -> Iterator[Finding]:
    """Slices are so short that switches and cold caches take much of the time.

    Mechanism: Each switch costs a decision, the switch itself, and the reload of the working set from memory. With
    shorter slices this is a larger fraction of the time.

    Evidence: A switch takes more than {SLICE_COST_MAX:.0%} of a slice. Switches and reloads took that fraction of a
    domain's running time, and most switches preempted a vCPU that could have continued.

    Silent: No finding if domains give up the pCPU themselves, or if longer slices improve nothing.

    Fix: Lengthen the slices of all domains concerned at once, until a switch takes {SLICE_COST_WANTED:.0%} of a slice;
    lengthen the periods of reservations in proportion.

    Schedulers: Those with slices, budgets or a switch allowance.

    Sources: The profile's costs: `vcpulab profile show`.
    """
    costs = host.scenario.host.costs
    for name, frame in host.pools.items():
        where = ["host"] if name == POOL_0 else ["pool", name]
        inside = [domain for domain in host.inside(name) if _switches_cost(host, domain, costs) > SLICE_COST_MAX]
        cost = max((switch_cost_ns(costs, host.domains[d]) for d in inside), default=0.0)
        places = [
            (where, frame.params, host.params(frame, "global")),
            *((["domain", d], host.domains[d].params, host.params(frame, "domain")) for d in inside),
        ]
        reservation = reservations().get(frame.scheduler)
        units = _SLICES if reservation is None else {**_SLICES, reservation.amount: reservation.unit_ns}
        fix: dict[str, int] = {}
        shortest = math.inf
        for steps, fields, param in ((s, f, p) for s, f, params in places for p in params):
            value, unit = fields.get(param), units.get(param)
            if not value or unit is None or cost <= SLICE_COST_MAX * value * unit:
                continue
            shortest, factor = min(shortest, value * unit), cost / (SLICE_COST_WANTED * value * unit)
            longer = {param: ceil(value * factor)}
            if reservation is not None and param == reservation.amount and fields.get(reservation.period):
                longer = reservation.scaled(fields, factor)
            fix |= {join([*steps, field]): longer[field] for field in longer}
        if fix:
            reason = (
                f"{number(shortest / 1e3)} µs beside a switch of up to {number(cost / 1e3)} µs (decision, switch, "
                f"cold cache): switches take {100 * max(_switches_cost(host, d, costs) for d in inside):.0f} % of the "
                f"time of {in_short(inside)}"
            )
            # Longer slices for a single domain would take time from the others.
            yield Finding(next(iter(fix)), reason, fix)


def _switches_cost(host: Host, domain: str, costs: Costs) -> float:
    """The cost of switches to a domain as a fraction of its running time; 0: the domain mostly stopped by itself."""
    sums = host.run.df_vcpus().filter(domain=domain)
    executions, preemptions = (int(sums[column].sum()) for column in ("executions", "preemptions"))
    if 2 * preemptions < executions:
        return 0.0
    spent = executions * (costs.decision_ns + costs.context_switch_ns) + int(sums["refill_ns"].sum())
    return float(spent / max(1, int(sums["running_ns"].sum())))


def switch_cost_ns(costs: Costs, domain: Domain) -> float:
    """The largest cost of a switch to a domain, ns: the decision, the switch, and its working set from memory."""
    size = min(domain.working_set.bytes, max(costs.l2_bytes, costs.l3_bytes))
    misses = size / costs.cache_line_bytes / costs.misses_at_once
    return costs.decision_ns + costs.context_switch_ns + misses * costs.l3_miss_ps / 1e3
