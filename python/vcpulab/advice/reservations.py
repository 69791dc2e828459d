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

    def share(self, table: Mapping[str, int]) -> float:
        """The part of a pCPU that is reserved for each vCPU, of a domain's table; 0: none."""
        amount, period = table.get(self.amount), table.get(self.period)
        return amount / period if amount and period else 0.0


RESERVATIONS = {
    "rtds": Reservation("budget_us", "period_us", "extratime", 1_000, 10),
    "sedf": Reservation("slice", "period", "extratime", 1, 5_000),
    "atropos": Reservation("nat_slice", "nat_period", "xtratime", 1, 1),
}
"""Scheduler to its reservation."""
