"""The schedulers that reserve CPU time for each vCPU of a domain, and what they call it."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil


@dataclass(frozen=True)
class Reservation:
    """The parameters of a domain that reserve CPU time."""

    amount: str
    """How much of each period."""
    period: str
    extra: str
    """The flag: may it run on in time that nobody has reserved?"""
    unit_ns: int
    """Of amount and period."""
    least: int
    """The smallest amount that the scheduler takes, in that unit."""
    step: int = 1
    """The tools of its releases take multiples of this, in that unit; a file may have others."""
    extra_by_default: bool = True
    """May it, where amount and period are given and that flag is not?"""
    at_most_period: tuple[str, ...] = ()
    """Other parameters that the scheduler refuses where they are above the period."""

    def share(self, table: Mapping[str, int]) -> float:
        """The part of a pCPU that is reserved for each vCPU, of a domain's table; 0: none."""
        amount, period = table.get(self.amount), table.get(self.period)
        return amount / period if amount and period else 0.0

    def whole(self, value: float, present: int) -> int:
        """The least amount or period from `value` on that can be typed, if the present one can.

        Examples:
            >>> sedf = RESERVATIONS["sedf"]
            >>> sedf.whole(5_327_307, 10_000_000), sedf.whole(5_327_307, 10_001)
            (6000000, 5327307)
        """
        step = self.step if present >= self.step else 1
        return max(self.least, ceil(value / step) * step)

    def scaled(self, table: Mapping[str, int], factor: float) -> dict[str, int]:
        """At least the same share of a pCPU, in turns that are `factor` times as long: each field with its value."""
        amount, period = table[self.amount], table[self.period]
        within = self.whole(period * factor, period)
        return {self.amount: self.whole(amount * within / period, amount), **self.with_period(table, within)}

    def with_period(self, table: Mapping[str, int], period: int) -> dict[str, int]:
        """A period, and what has to be lowered with it: each field with its value."""
        return {self.period: period} | {name: period for name in self.at_most_period if table.get(name, 0) > period}

    def gets_extra(self, table: Mapping[str, int]) -> bool:
        """Does a domain with a reservation get extra time, too?"""
        return bool(table.get(self.extra, self.extra_by_default))


RESERVATIONS = {
    "rtds": Reservation("budget_us", "period_us", "extratime", 1_000, 10),
    # Its parameters are set in one command, which takes what is left out as 0.
    "sedf": Reservation("slice", "period", "extratime", 1, 5_000, step=1_000_000, extra_by_default=False),
    "atropos": Reservation("nat_slice", "nat_period", "xtratime", 1, 1, at_most_period=("latency",)),
}
"""Scheduler to its reservation."""
