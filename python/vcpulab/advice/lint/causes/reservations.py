"""Causes of lateness by reservations: too small, with long gaps, or late in their period."""

from dataclasses import dataclass

from vcpulab.advice.capacity.occupancy import NEAR_FULL, with_servers
from vcpulab.advice.lint.held import LATE_IS, Held, cause  # noqa: F401 - pages of the rules
from vcpulab.advice.lint.host import Finding, of_domain
from vcpulab.advice.lint.rule import Stands
from vcpulab.advice.reservations import reservations
from vcpulab.results.statistics import number

SHORTER = 4
"""The divisor by which a fix shortens the periods of reservations ..."""
LEAST_PERIOD_NS = 1_000_000
"""... and the shortest period that may result."""


@cause("reservation-too-small")
def _reserved_too_little(held: Held) -> Finding | None:
    """A late service uses up its reserved budget or slice and wants more.

    Mechanism: Without extra time, the service waits for its next period once the budget is used. With extra time, it
    shares the unreserved time with all other domains that take some.

    Evidence: One of its vCPUs gets more than {NEAR_FULL:.0%} of its reservation. A service is late at a response p99
    {LATE_IS}.

    Silent: No finding if no service is late, or if reservations add up to more than the pCPUs: see
    `overbooked-reservations`.

    Fix: Give it extra time. If it has extra time, or if that does harm, double or quadruple the reservation, or make
    the periods a quarter as long with the same budget.

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
    """A late service has a reservation that suffices on average but leaves long gaps.

    Mechanism: Once the budget of a period is used, a domain without extra time waits for the next period, and so do
    requests that arrive in the gap. Under SEDF, a vCPU that wakes up in the period in which it blocked also waits for
    the next period.

    Evidence: No vCPU of the domain gets {NEAR_FULL:.0%} of its reservation, and the domain has no extra time and waits.
    A service is late at a response p99 {LATE_IS}.

    Silent: No finding if no service is late, or if reservations add up to more than the pCPUs: see
    `overbooked-reservations`.

    Fix: Give it extra time.

    Schedulers: `rtds`, `sedf`, `atropos`.

    Sources: Xen's `xl sched-rtds`; the SEDF scheduler mini-HOWTO of Xen 4.2.
    """
    reserved = _Reserved.from_held(held)
    if reserved is None or reserved.used_up or reserved.extra or held.host.overbooked(held.pool):
        return None
    # SEDF guarantees nothing to a vCPU that wakes up in the period in which it blocked.
    blocked = " or it has slept" if held.host.pool_of(held.domain).scheduler == "sedf" else ""
    reason = (
        f"{reserved}, which would do on average; but the period is long: once its slice is used{blocked}, it waits for "
        "the next, as it gets no extra time"
    )
    return Finding(of_domain(held.domain, reserved.period), reason, reserved.with_extra)


@cause("late-in-its-period", stands=Stands.NEVER)
def _waits_for_its_period(held: Held) -> Finding | None:
    """A late service has a sufficient reservation, but waits for its period to begin or to end.

    Mechanism: The earliest deadline goes first, and the deadline is the end of the period. A domain with a long period
    therefore waits behind every domain with a shorter one. Under SEDF, a vCPU that wakes up in the period in which it
    blocked waits for the next period.

    Evidence: The service, or the driver domain that serves it, gets less than {NEAR_FULL:.0%} of its reservation, has
    extra time, and waits. A service is late at a response p99 {LATE_IS}.

    Silent: No finding if no service is late, or if shorter periods improve nothing.

    Fix: Make the periods of the service and of all domains that serve it a quarter as long, with the same shares.

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
        f"the time behind {held.behind_in_words()}: a domain with a long period waits for its turn"
    )
    return Finding(of_domain(held.domain, reserved.period), reason, reserved.shorter)


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
        spelt = reservations().get(host.pool_of(domain).scheduler)
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

        serving = (
            name for name in with_servers(host.scenario.domains, [held.late.domain]) if name in host.inside(held.pool)
        )
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
            spelt.gets_extra(host.domains[domain].params),
            {of_domain(domain, spelt.extra): 1},
            tuple(larger),
            {path: value for name in serving for path, value in cut(name).items()},
        )
