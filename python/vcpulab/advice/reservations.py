"""The schedulers that reserve CPU time for each vCPU of a domain, and what they call it."""

from collections.abc import Mapping
from dataclasses import dataclass


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
    extra_by_default: bool = True
    """May it, where amount and period are given and that flag is not?"""

    def share(self, table: Mapping[str, int]) -> float:
        """The part of a pCPU that is reserved for each vCPU, of a domain's table; 0: none."""
        amount, period = table.get(self.amount), table.get(self.period)
        return amount / period if amount and period else 0.0

    def gets_extra(self, table: Mapping[str, int]) -> bool:
        """Does a domain with a reservation get extra time, too?"""
        return bool(table.get(self.extra, self.extra_by_default))


RESERVATIONS = {
    "rtds": Reservation("budget_us", "period_us", "extratime", 1_000, 10),
    # Its parameters are set in one command, which takes what is left out as 0.
    "sedf": Reservation("slice", "period", "extratime", 1, 5_000, extra_by_default=False),
    "atropos": Reservation("nat_slice", "nat_period", "xtratime", 1, 1),
}
"""Scheduler to its reservation."""
