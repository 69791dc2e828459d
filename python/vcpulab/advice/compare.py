"""Two runs side by side: paired differences with intervals, and the domains that improve and regress.

Both run with the same seed, so that replication i of one meets the same arrivals and sizes as replication i of the
other (common random numbers); differences are taken replication by replication, with Student's interval of their mean
(Law 2015, "Simulation modeling and analysis", sections 10.2 and 11.2). Every p value is corrected for the number of
metrics that are compared (Holm), in two families: those with a good direction, which improve or regress, and
those without, which are higher or lower. A difference counts that stays significant at 5 %.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from vcpulab.results.addresses import Address, addresses
from vcpulab.results.run import Run
from vcpulab.results.statistics import CONFIDENCE, Interval, holm, number, paired
from vcpulab.show.table import Table

Verdict = Literal["improves", "regresses", "higher", "lower", "same", "unclear"]


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
    """`same`: exactly; `unclear`: no significant difference."""

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
    return "improves" if higher == (address.better == "higher") else "regresses"


def improved_and_regressed(
    found: Sequence[Comparison],
) -> tuple[dict[str, list[Comparison]], dict[str, list[Comparison]]]:
    """Domain (`host` for the whole host) to its metrics that improve, and to those that regress."""
    sides: dict[str, dict[str, list[Comparison]]] = {"improves": {}, "regresses": {}}
    for comparison in found:
        if comparison.verdict in sides:
            sides[comparison.verdict].setdefault(comparison.address.domain or "host", []).append(comparison)
    return sides["improves"], sides["regresses"]


# ---- in words ----


def shown(verdict: Verdict) -> str:
    """The verdict as it is shown."""
    return "no significant difference" if verdict == "unclear" else verdict


def in_words(found: Sequence[Comparison]) -> list[str]:
    """The domains that improve and that regress, a line for each, with their metrics."""
    improved, regressed = improved_and_regressed(found)
    lines = [
        f"{domain} {verb}: {', '.join(change(comparison) for comparison in what)}"
        for verb, side in (("improves", improved), ("regresses", regressed))
        for domain, what in side.items()
    ]
    unclear = sum(1 for comparison in found if comparison.address.better and comparison.verdict == "unclear")
    if not lines:
        lines = ["nothing improves or regresses significantly"]
    if unclear:
        metrics = f"{unclear} metric{'' if unclear == 1 else 's'}"
        lines.append(f"no significant difference: {metrics} (more replications may show one)")
    return lines


def change(comparison: Comparison) -> str:
    """The change of a metric, in words."""
    percent = comparison.percent
    if percent is None or abs(percent) > 1000:
        address, before, after = comparison.address, comparison.before.mean, comparison.after.mean
        return f"{address} {number(before)} → {number(after)} {address.unit}"
    return f"{comparison.address.name} {_signed(number(percent))} %"


def table_of_differences(found: Sequence[Comparison], labels: tuple[str, str] = ("before", "after")) -> Table:
    """A row for each metric: its values under both labels, the difference, p and the verdict."""
    headings = ["metric", "unit", *labels, "difference", "%", "p", "verdict"]
    title = "Differences, second less first, paired, with 95 % confidence intervals"
    return Table(title, headings, [_cells(comparison) for comparison in found], 2)


def _cells(comparison: Comparison) -> list[str]:
    percent, p = comparison.percent, comparison.p
    return [
        comparison.address.name,
        comparison.address.unit,
        str(comparison.before),
        str(comparison.after),
        _signed(str(comparison.difference)),
        "–" if percent is None else _signed(number(percent)),
        "–" if p is None else ("< 0.001" if p < 0.001 else f"{p:.3f}"),
        shown(comparison.verdict),
    ]


def _signed(text: str) -> str:
    return text if text.startswith("-") or text in ("0", "0 ± 0") else f"+{text}"


def frame_of_changes(found: Sequence[Comparison]) -> pl.DataFrame:
    """Columns `metric`, `percent`, `low`, `high` and `verdict`, a row for each metric that changes in %."""
    rows = [
        {
            "metric": one.address.name,
            "percent": one.percent,
            "low": one.percent - half_width,
            "high": one.percent + half_width,
            "verdict": shown(one.verdict),
        }
        for one in found
        if one.percent is not None and one.verdict != "same"
        for half_width in [100 * (one.difference.half_width or 0) / abs(one.before.mean)]
    ]
    return pl.DataFrame(rows, infer_schema_length=None)
