"""Two runs side by side: paired differences with intervals, who gains and who pays.

Both run with the same seed, so that replication i of one meets the same arrivals and sizes as replication i of the
other (common random numbers); differences are taken replication by replication, with Student's interval of their mean
(Law 2015, "Simulation modeling and analysis", sections 10.2 and 11.2). Of the metrics that have a good direction,
those are called better or worse whose difference stays significant at 5 % when corrected for their number (Holm).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from vcpulab.results.figures import CONFIDENCE, Interval
from vcpulab.results.outcomes import Metric, metrics, values
from vcpulab.results.run import Run
from vcpulab.results.statistics import holm, paired

Verdict = Literal["better", "worse", "higher", "lower", "same", "unclear"]


@dataclass(frozen=True)
class Comparison:
    """One metric before and after."""

    metric: Metric
    before: Interval
    after: Interval
    difference: Interval
    """After minus before."""
    p: float | None
    """Probability of such a difference if there were none, corrected for the number of metrics; `None`: one pair."""
    verdict: Verdict
    """`same`: exactly; `unclear`: not told apart."""

    @property
    def percent(self) -> float | None:
        """The difference in % of the value before; `None` if that is 0."""
        return 100 * self.difference.mean / abs(self.before.mean) if self.before.mean else None

    def row(self) -> dict[str, object]:
        """As flat data."""
        return {
            "metric": self.metric.name,
            "unit": self.metric.unit,
            "better_if": self.metric.better,
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


def compare(before: Run, after: Run, asked: Iterable[Metric] | None = None) -> list[Comparison]:
    """The metrics that two runs have in common, or those asked for; without those that neither has values for.

    Examples:
        >>> import vcpulab
        >>> now = vcpulab.Scenario.starter().change({"run.duration": "200ms", "run.replications": 3})
        >>> then = now.change({"domain.batch.cap": 50})
        >>> found = compare(*vcpulab.run_many([now, then]))
        >>> [c.verdict for c in found if c.metric.name == "batch.gotten"]
        ['lower']
    """
    if asked is None:
        there = {metric.name for metric in metrics(after.scenario)}
        asked = [metric for metric in metrics(before.scenario) if metric.name in there]
    asked = list(asked)
    old, new = values(before, asked), values(after, asked)
    found = []
    for metric in asked:
        pairs = [
            (a, b) for a, b in zip(new[metric.name], old[metric.name], strict=False) if a is not None and b is not None
        ]
        difference = paired([a for a, _ in pairs], [b for _, b in pairs])
        was, became = Interval.of(b for _, b in pairs), Interval.of(a for a, _ in pairs)
        if difference is not None and was is not None and became is not None:
            found.append((metric, was, became, difference))
    judged = [
        index for index, (metric, *_, difference) in enumerate(found) if metric.better and difference.p is not None
    ]
    corrected = dict(zip(judged, holm([found[index][3].p or 0.0 for index in judged]), strict=True))
    return [
        Comparison(metric, was, became, difference.interval, p, _verdict(metric, difference.interval, p))
        for index, (metric, was, became, difference) in enumerate(found)
        for p in [corrected.get(index, difference.p)]
    ]


def _verdict(metric: Metric, difference: Interval, p: float | None) -> Verdict:
    if difference.mean == 0 and not difference.half_width:
        return "same"
    if p is None or p > 1 - CONFIDENCE:
        return "unclear"
    higher = difference.mean > 0
    if metric.better is None:
        return "higher" if higher else "lower"
    return "better" if higher == (metric.better == "higher") else "worse"


def gainers_and_payers(found: Sequence[Comparison]) -> tuple[dict[str, list[Comparison]], dict[str, list[Comparison]]]:
    """Domain (`host` for the whole host) to what got better for it, and to what got worse."""
    sides: dict[str, dict[str, list[Comparison]]] = {"better": {}, "worse": {}}
    for comparison in found:
        if comparison.verdict in sides:
            sides[comparison.verdict].setdefault(comparison.metric.domain or "host", []).append(comparison)
    return sides["better"], sides["worse"]
