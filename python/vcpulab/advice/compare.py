"""Two runs side by side: paired differences with intervals, who gains and who pays.

Both run with the same seed, so that replication i of one meets the same arrivals and sizes as replication i of the
other (common random numbers); differences are taken replication by replication, with Student's interval of their mean
(Law 2015, "Simulation modeling and analysis", sections 10.2 and 11.2). Every p value is corrected for the number of
metrics that are compared (Holm), in two families: those that have a good direction, of which better or worse is said,
and those that have none, of which higher or lower is said. A difference counts that stays significant at 5 %.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from vcpulab.results.addresses import Address, addresses
from vcpulab.results.run import Run
from vcpulab.results.statistics import CONFIDENCE, Interval, holm, paired

REPLICATIONS = 10
"""Enough for intervals that are not wider than they need be: t(0.975, 9) is 2.26, t(0.975, 4) 2.78."""

Verdict = Literal["better", "worse", "higher", "lower", "same", "unclear"]


@dataclass(frozen=True)
class Comparison:
    """One metric before and after."""

    address: Address
    before: Interval
    after: Interval
    difference: Interval
    """After minus before."""
    p: float | None
    """Probability of such a difference if there were none, corrected for the number of metrics compared that have a
    good direction, or of those that have none; `None`: one pair."""
    verdict: Verdict
    """`same`: exactly; `unclear`: not told apart."""

    @property
    def percent(self) -> float | None:
        """The difference in % of the value before; `None` if that is 0."""
        return 100 * self.difference.mean / abs(self.before.mean) if self.before.mean else None

    def row(self) -> dict[str, object]:
        """As flat data."""
        return {
            "metric": self.address.name,
            "unit": self.address.unit,
            "better_if": self.address.better,
            "before": self.before.mean,
            "before_half_width": self.before.half_width,
            "after": self.after.mean,
            "after_half_width": self.after.half_width,
            "difference": self.difference.mean,
            "difference_half_width": self.difference.half_width,
            "difference_percent": self.percent,
            "p": self.p,
            "verdict": self.verdict,
        }


def compare(before: Run, after: Run, asked: Iterable[Address] | None = None) -> list[Comparison]:
    """The metrics that two runs have in common, or those asked for; without those that neither has values for.

    Examples:
        >>> import vcpulab
        >>> now = vcpulab.Scenario.starter().change({"run.duration": "200ms", "run.replications": 6})
        >>> then = now.change({"domain.batch.cap": 50})
        >>> found = compare(*vcpulab.run_many([now, then]))
        >>> [c.verdict for c in found if c.address.name == "batch.gotten"]
        ['lower']
    """
    if asked is None:
        # The host stands for its pCPUs.
        there = {address.name for address in addresses(after.scenario) if address.of != "pcpu"}
        asked = [address for address in addresses(before.scenario) if address.name in there]
    asked = list(asked)
    old, new = before.values(asked), after.values(asked)
    found = []
    for address in asked:
        pairs = [
            (a, b)
            for a, b in zip(new[address.name], old[address.name], strict=False)
            if a is not None and b is not None
        ]
        difference = paired([a for a, _ in pairs], [b for _, b in pairs])
        was, became = Interval.of(b for _, b in pairs), Interval.of(a for a, _ in pairs)
        if difference is not None and was is not None and became is not None:
            found.append((address, was, became, difference))
    corrected: dict[str, float] = {}
    for directed in (True, False):
        family = {
            address.name: difference.p
            for address, _, _, difference in found
            if (address.better is not None) == directed and difference.p is not None
        }
        corrected |= dict(zip(family, holm(list(family.values())), strict=True))
    return [
        Comparison(address, was, became, difference.interval, p, _verdict(address, difference.interval, p))
        for address, was, became, difference in found
        for p in [corrected.get(address.name)]
    ]


def _verdict(address: Address, difference: Interval, p: float | None) -> Verdict:
    if difference.mean == 0 and not difference.half_width:
        return "same"
    if p is None or p > 1 - CONFIDENCE:
        return "unclear"
    higher = difference.mean > 0
    if address.better is None:
        return "higher" if higher else "lower"
    return "better" if higher == (address.better == "higher") else "worse"


def gainers_and_payers(found: Sequence[Comparison]) -> tuple[dict[str, list[Comparison]], dict[str, list[Comparison]]]:
    """Domain (`host` for the whole host) to what got better for it, and to what got worse."""
    sides: dict[str, dict[str, list[Comparison]]] = {"better": {}, "worse": {}}
    for comparison in found:
        if comparison.verdict in sides:
            sides[comparison.verdict].setdefault(comparison.address.domain or "host", []).append(comparison)
    return sides["better"], sides["worse"]
