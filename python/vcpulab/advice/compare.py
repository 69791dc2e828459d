"""The comparison of two runs: paired differences with intervals, and the domains that improve and regress.

Both runs have the same seed, so that replication i of both meets the same arrivals and sizes (common random numbers).
Differences are taken replication by replication, with Student's interval of their mean (Law 2015, "Simulation modeling
and analysis", sections 10.2 and 11.2). Every p value is corrected for the number of metrics of its family (Holm). There
are four families: metrics with a good direction, which improve or regress, and metrics without, which are higher or
lower; each divided into the metrics of the question (by default the metrics that clients see) and the rest. So a table
of a thousand metrics does not weaken the answer to the question. Where replications may be added, p is also corrected
for the number of looks (Bonferroni). A difference is significant at 5 % after these corrections.

A metric with values in one run only, because in the other run nothing ever ran or was completed, needs no test: no
value is worse than any value. A difference that is not significant may still be a harm: a mean harm of more than
5 % whose interval reaches beyond 20 % is listed as "may regress". Significant differences of less than 1 % are counted,
not listed. Counts of runs of different lengths are compared as rates. The engine (`crates/judge`) judges all of it, for
the playground too.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Literal

import polars as pl

from vcpulab import _engine
from vcpulab._engine import Comparison as JudgedComparison
from vcpulab._engine import Metric as JudgedMetric
from vcpulab._engine import p_text
from vcpulab.results.addresses import Address, addresses, apps, judged
from vcpulab.results.metrics import Quantity
from vcpulab.results.run import Run
from vcpulab.results.statistics import Interval
from vcpulab.show.table import Table

Verdict = Literal["improves", "regresses", "higher", "lower", "same", "unclear"]


@dataclass(frozen=True)
class Comparison:
    """One metric before and after."""

    address: Address
    judged: JudgedComparison
    """The numbers, judged by the engine."""

    @cached_property
    def before(self) -> Interval | None:
        """The mean before; `None`: it is undefined for the reason `before_undefined`."""
        return _interval(self.judged.before)

    @cached_property
    def after(self) -> Interval | None:
        """The mean after; `None`: it is undefined for the reason `after_undefined`."""
        return _interval(self.judged.after)

    @cached_property
    def difference(self) -> Interval | None:
        """After minus before, over the replications that have both."""
        return _interval(self.judged.difference)

    @property
    def p(self) -> float | None:
        """The probability of such a difference if there were none; `None`: one pair, or no value on one side.

        It is corrected for the number of metrics of its family and of looks.
        """
        return self.judged.p

    @property
    def verdict(self) -> Verdict:
        """The verdict; `same`: exactly; `unclear`: no significant difference."""
        return self.judged.verdict

    @property
    def before_undefined(self) -> str | None:
        """The reason for no value before, in most of the replications that have one after; `None`: it has one."""
        return self.judged.before_undefined

    @property
    def after_undefined(self) -> str | None:
        """The reason for no value after, in most of the replications that have one before; `None`: it has one."""
        return self.judged.after_undefined

    @property
    def percent(self) -> float | None:
        """The difference in % of the value before; `None` if that is 0, or undefined."""
        return self.judged.percent

    @property
    def ends(self) -> tuple[float, float] | None:
        """The ends of the interval of the difference, in % of the value before; `None` as for `percent`."""
        return self.judged.ends

    @property
    def large(self) -> bool:
        """Whether the change is large in comparison with the value before."""
        return self.judged.is_large

    @property
    def may_regress(self) -> bool:
        """Whether the difference is not significant, but perhaps a large harm."""
        return self.judged.may_regress

    @property
    def may_improve(self) -> bool:
        """Whether the difference is not significant, but perhaps a large gain."""
        return self.judged.may_improve

    @property
    def width(self) -> float | None:
        """Half the width of the interval of the difference, as a fraction of the value before; `None`: no interval."""
        return self.judged.width

    @property
    def of_consequence(self) -> bool:
        """Whether the metric improves or regresses by more than a negligible amount."""
        return self.judged.matters

    @property
    def size(self) -> float:
        """The size of the difference, in % of the metric's whole if it has one, else of the value before."""
        return self.judged.size

    @property
    def rank(self) -> tuple[int, bool, float]:
        """The place among others: clients and applications first; of the same kind what matters first, by size."""
        return self.judged.rank

    @property
    def percent_undefined(self) -> str | None:
        """The reason why `percent` is `None`; `None`: it is a number."""
        if self.percent is not None:
            return None
        return self.before_undefined or self.after_undefined or "it was 0 before"

    def row(self) -> dict[str, object]:
        """The comparison as flat data."""
        low, high = self.ends or (None, None)
        return {
            "metric": self.address.name,
            "unit": self.address.unit,
            "better_if": self.address.better,
            **_columns("before", self.before),
            **_columns("after", self.after),
            **_columns("difference", self.difference),
            "difference_percent": self.percent,
            "percent_undefined": self.percent_undefined,
            "p": self.p,
            "verdict": self.verdict,
            "low_percent": low,
            "high_percent": high,
            "may_regress": self.may_regress,
            "of_consequence": self.of_consequence,
            "before_undefined": self.before_undefined,
            "after_undefined": self.after_undefined,
        }


def _interval(judged: tuple[float, float | None, int, float | None] | None) -> Interval | None:
    return None if judged is None else Interval(*judged)


def _columns(name: str, interval: Interval | None) -> dict[str, float | None]:
    mean, half_width = interval[:2] if interval is not None else (None, None)
    return {name: mean, f"{name}_half_width": half_width}


def compare(
    before: Run,
    after: Run,
    metrics: Iterable[Address] | None = None,
    *,
    first: Iterable[Address] | None = None,
    looks: int = 1,
) -> list[Comparison]:
    """Comparisons of metrics that both runs have; metrics without values in both runs are left out.

    A metric of which an undefined value is the worst is also compared where only one of the runs has values.

    Args:
        before: a run.
        after: another run.
        metrics: the metrics to compare; all if left out.
        first: the metrics of the question; if left out, `metrics`, or the metrics that clients see.
        looks: how often the runs may be looked at, with more replications each time.

    Examples:
        >>> import vcpulab
        >>> now = vcpulab.Scenario.starter().change({"run.duration": "200ms", "run.replications": 6})
        >>> then = now.change({"domain.batch.cap": 30})
        >>> comparisons = compare(*vcpulab.run_many([now, then]))
        >>> [c.verdict for c in comparisons if c.address.name == "batch.gotten"]
        ['lower']
    """
    if first is None:
        first = metrics = list(metrics) if metrics is not None else None
    if metrics is None:
        # The host's metrics are compared in place of its pCPUs'.
        measured_after = {address.name for address in addresses(after.scenario) if address.kind != "pcpu"}
        metrics = [address for address in addresses(before.scenario) if address.name in measured_after]
    question = {address.name for address in (seen_by_clients(before) if first is None else first)}
    metrics = list(metrics)
    old, new = before.values(metrics), after.values(metrics)
    work_begun = _work_begun(before)
    measured = {
        address.name: (judged_metric(address, question, work_begun), old[address.name], new[address.name])
        for address in metrics
    }
    seconds = (before.scenario.duration_ns / 1e9, after.scenario.duration_ns / 1e9)
    comparisons = dict(zip(measured, _engine.compare(list(measured.values()), seconds, looks), strict=True))
    return [
        Comparison(address if seconds[0] == seconds[1] else _per_second(address), comparison)
        for address in metrics
        if (comparison := comparisons[address.name]) is not None
    ]


def judged_metric(
    address: Address, question: Collection[str] = (), work_begun: Mapping[str, float] = MappingProxyType({})
) -> JudgedMetric:
    """The description of a metric for the engine.

    Args:
        address: the metric.
        question: the names of the metrics of the question.
        work_begun: applications and clients to the units of work that they began, per replication.
    """
    metric = address.metric
    return JudgedMetric(
        address.name,
        address.kind,
        address.domain,
        address.unit,
        better=address.better,
        whole=metric.unit.whole,
        undefined_is=metric.undefined_is,
        undefined_is_worst=metric.undefined_is_worst,
        accumulates=metric.accumulates,
        in_question=address.name in question,
        begun=work_begun.get(address.thing) if metric.quantity is Quantity.FAILURES else None,
    )


def _per_second(address: Address) -> Address:
    """The metric as it is compared in runs of different lengths."""
    metric = address.metric
    return address._replace(metric=metric.per_second()) if metric.accumulates else address


def seen_by_clients(run: Run) -> list[Address]:
    """The metrics that clients are judged by; without clients, those that applications are judged by."""
    metrics = judged(run.scenario)
    clients = {app.name for app in apps(run.scenario) if app.client is not None}
    return [address for address in metrics if address.thing in clients] or metrics


def _work_begun(run: Run) -> dict[str, float]:
    """Applications and clients to the units of work that they began, per replication."""
    begun = pl.col("completed") + pl.col("failed")
    return dict(run.df_apps().group_by("name").agg(begun.mean()).iter_rows())


# ---- in words ----


def in_words(comparisons: Sequence[Comparison], starving: Sequence[str] = ()) -> list[str]:
    """Lines on starving domains, on domains that improve or regress, and on metrics that may regress.

    Args:
        comparisons: all comparisons of two runs.
        starving: lines on starving domains; they come first.
    """
    return [*starving, *_engine.comparison_lines([comparison.judged for comparison in comparisons])]


UNDEFINED = "undefined"
"""The text shown for a metric without a value."""


def table_of_differences(
    comparisons: Sequence[Comparison], labels: tuple[str, str] = ("before", "after"), first: str | None = None
) -> Table:
    """A row for each metric: its values under both labels, the difference, p and the verdict; see `Comparison.rank`.

    Args:
        comparisons: the comparisons of two runs.
        labels: names of the runs.
        first: the name of the metric that comes first, the largest difference before smaller ones.
    """
    title = "Differences, second less first, paired, with 95 % confidence intervals"

    def rank(comparison: Comparison) -> tuple[object, ...]:
        return (False, -comparison.size) if comparison.address.metric.name == first else (True, comparison.rank)

    return beside(title, labels, [_cells(comparison) for comparison in sorted(comparisons, key=rank)])


def beside(title: str, labels: tuple[str, str], rows: Sequence[Sequence[str]]) -> Table:
    """Rows of metric, unit, both values, difference, %, p, verdict.

    The table of a narrow terminal has neither p nor difference; the narrowest has all values below the metric's name.
    """
    headings = ["metric", "unit", *labels, "difference", "%", "p", "verdict"]
    ends = tuple(label.rpartition("/")[2] for label in labels)
    names = labels if ends[0] == ends[1] else ends
    short = [[f"{metric}\n  {unit}: {verdict}", *values, pc] for metric, unit, *values, _, pc, _, verdict in rows]
    below = [
        [f"{metric}\n  {before} → {after} {unit}, {pc} %\n  {verdict}"]
        for metric, unit, before, after, _, pc, _, verdict in rows
    ]
    narrowest = Table(title, [f"metric: {' → '.join(names)}"], below, together=True)
    narrow = Table(title, ["metric", *names, "%"], short, together=True, narrower=narrowest)
    without_p = [[*row[:6], row[7]] for row in rows]
    narrower = Table(title, [*headings[:6], headings[7]], without_p, 2, together=True, narrower=narrow)
    return Table(title, headings, rows, 2, together=True, narrower=narrower)


def _cells(comparison: Comparison) -> list[str]:
    return [
        comparison.address.name,
        comparison.address.unit,
        UNDEFINED if comparison.before_undefined else str(comparison.before),
        UNDEFINED if comparison.after_undefined else str(comparison.after),
        comparison.judged.difference_text,
        comparison.judged.percent_text,
        "–" if comparison.p is None else p_text(comparison.p),
        comparison.judged.verdict_text,
    ]


def frame_of_changes(comparisons: Sequence[Comparison], goals: Collection[str] = ()) -> pl.DataFrame:
    """Changes in %, a row for each metric.

    Args:
        comparisons: the comparisons of two runs.
        goals: names of metrics that are shown whether their differences are significant or not.

    Columns:
        metric: the address of the metric.
        percent: the difference, % of the value before.
        low: the lower end of the interval of `percent`.
        high: the upper end.
        verdict: the verdict in words.
        size: the size of the difference, see `Comparison.size`.
        told: `True`: the difference is significant, or the metric is a goal.
    """
    rows = [
        {
            "metric": comparison.address.name,
            "percent": comparison.percent,
            "low": comparison.ends[0],
            "high": comparison.ends[1],
            "verdict": _engine.verdict_text(comparison.verdict),
            "size": comparison.size,
            "told": comparison.verdict != "unclear" or comparison.address.name in goals,
        }
        for comparison in comparisons
        if comparison.ends is not None and comparison.verdict != "same"
    ]
    return pl.DataFrame(rows, infer_schema_length=None)
