"""The schedulers that reserve CPU time for each vCPU of a domain, and the names of their parameters."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import ceil

from vcpulab.scenario.catalogue import schedulers
from vcpulab.scenario.parameters import Generation

_MS_NS = 1_000_000


@dataclass(frozen=True)
class Reservation:
    """The parameters of a domain that reserve CPU time."""

    amount: str
    """The parameter of the CPU time in each period."""
    period: str
    extra: str
    """The flag that allows a domain to run in unreserved time."""
    unit_ns: int
    """The unit of amount and period, ns."""
    least: int
    """The smallest amount that the scheduler accepts, in units."""
    step: int
    """The tools accept only multiples of this, in units; a scenario file may have other values."""
    extra_by_default: bool
    """The flag's value where amount and period are given and the flag is not."""
    at_most_period: tuple[str, ...]
    """Other parameters that the scheduler rejects if they are above the period."""

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of all fields of a reservation."""
        return (self.period, self.amount, self.extra, *self.at_most_period)

    @property
    def per_ms(self) -> int:
        """Number of units in a millisecond."""
        return _MS_NS // self.unit_ns

    def share(self, table: Mapping[str, int]) -> float:
        """The fraction of a pCPU that a domain's table reserves for each vCPU; 0: none."""
        amount, period = table.get(self.amount), table.get(self.period)
        return amount / period if amount and period else 0.0

    def whole(self, value: float, present: int) -> int:
        """The least amount or period from `value` on that the tools accept, if they accept the present one.

        Examples:
            >>> sedf = reservations()["sedf"]
            >>> sedf.whole(5_327_307, 10_000_000), sedf.whole(5_327_307, 10_001)
            (6000000, 5327307)
        """
        step = self.step if present >= self.step else 1
        return max(self.least, ceil(value / step) * step)

    def scaled(self, table: Mapping[str, int], factor: float) -> dict[str, int]:
        """Fields and values that reserve at least the same share of a pCPU in periods `factor` times as long."""
        amount, period = table[self.amount], table[self.period]
        within = self.whole(period * factor, period)
        return {self.amount: self.whole(amount * within / period, amount), **self.with_period(table, within)}

    def with_period(self, table: Mapping[str, int], period: int) -> dict[str, int]:
        """A period, and the parameters that must be lowered with it: fields and values."""
        return {self.period: period} | {name: period for name in self.at_most_period if table.get(name, 0) > period}

    def gets_extra(self, table: Mapping[str, int]) -> bool:
        """`True`: a domain with a reservation also gets unreserved time."""
        return bool(table.get(self.extra, self.extra_by_default))


@cache
def reservations() -> Mapping[str, Reservation]:
    """The reservation of each scheduler that has one.

    Examples:
        >>> reservations()["rtds"].fields
        ('period_us', 'budget_us', 'extratime')
    """
    by_name = {scheduler.name: _reservation(scheduler.default) for scheduler in schedulers()}
    return {name: reservation for name, reservation in by_name.items() if reservation is not None}


def _reservation(generation: Generation) -> Reservation | None:
    """The reservation that the roles of a generation's parameters make."""
    params = {param.role.name: param for param in generation.params if param.role is not None}
    if "reserved-time" not in params:
        return None
    amount, extra = params["reserved-time"], params["extra-time"]
    assert amount.role is not None, "the role is its key"
    assert amount.role.unit_ns is not None, "a reserved time has a unit"
    assert extra.role is not None, "the role is its key"
    return Reservation(
        amount.name,
        params["reserved-period"].name,
        extra.name,
        amount.role.unit_ns,
        amount.min,
        generation.tools.unit_of(amount.name),
        bool(extra.role.by_default),
        tuple(params[role].name for role in ("reserved-latency",) if role in params),
    )
