"""The schedulers that reserve CPU time for each vCPU of a domain, and the names of their parameters."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil


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
    step: int = 1
    """The tools accept only multiples of this, in units; a scenario file may have other values."""
    extra_by_default: bool = True
    """The flag's value where amount and period are given and the flag is not."""
    at_most_period: tuple[str, ...] = ()
    """Other parameters that the scheduler rejects if they are above the period."""

    def share(self, table: Mapping[str, int]) -> float:
        """The fraction of a pCPU that a domain's table reserves for each vCPU; 0: none."""
        amount, period = table.get(self.amount), table.get(self.period)
        return amount / period if amount and period else 0.0

    def whole(self, value: float, present: int) -> int:
        """The least amount or period from `value` on that the tools accept, if they accept the present one.

        Examples:
            >>> sedf = RESERVATIONS["sedf"]
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


RESERVATIONS = {
    "rtds": Reservation("budget_us", "period_us", "extratime", 1_000, 10),
    # One command sets all parameters, and sets omitted ones to 0.
    "sedf": Reservation("slice", "period", "extratime", 1, 5_000, step=1_000_000, extra_by_default=False),
    "atropos": Reservation("nat_slice", "nat_period", "xtratime", 1, 1, at_most_period=("latency",)),
}
"""Scheduler to its reservation."""
