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
`HARM_MEAN` % whose interval reaches beyond `HARM_END` % is listed as "may regress". Significant differences of less
than `SMALL` % are counted, not listed. Counts of runs of different lengths are compared as rates.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from vcpulab.results.addresses import Address, addresses, apps, judged
from vcpulab.results.run import Run
from vcpulab.results.statistics import CONFIDENCE, Interval, holm, number, paired
from vcpulab.show.table import Table

Verdict = Literal["improves", "regresses", "higher", "lower", "same", "unclear"]

HARM_MEAN = 5.0
"""An insignificant difference may regress if its mean is a larger harm than this, % of the value before ..."""
HARM_END = 20.0
"""... and the worse end of its interval is a larger harm than this, % of the value before."""
SMALL = 1.0
"""The least change of consequence, % of the value before; of failures, % of the units of work that were begun."""
SMALL_OF_WHOLE = 0.1
"""The least change of consequence of a metric that is a share of a whole, % of the whole."""
LISTED_METRICS = 6
"""The largest number of metrics listed for a domain, and of metrics listed that may regress."""
NEAREST = ("app", "domain", "io", "host", "pcpu")
"""The kinds of things in the order of their importance to the owners of domains."""


@dataclass(frozen=True)
class Comparison:
    """One metric before and after."""

    address: Address
    before: Interval | None
    """The value before; `None`: the metric has no value, for the reason in `before_undefined`."""
    after: Interval | None
    """The value after; `None`: the metric has no value, for the reason in `after_undefined`."""
    difference: Interval | None
    """After minus before, over the replications that have both values."""
    p: float | None
    """Probability of such a difference if there were none, corrected for the number of metrics of its family and of
    looks; `None`: one pair, or no value on one side."""
    verdict: Verdict
    """`same`: exactly; `unclear`: no significant difference."""
    before_undefined: str | None = None
    """The reason why most of the replications that have a value after have none before; `None`: they have."""
    after_undefined: str | None = None
    """The reason why most of the replications that have a value before have none after; `None`: they have."""
    work_begun: float | None = None
    """Units of work that were begun before, per replication, if the metric is a count of failures; else `None`."""

    @property
    def percent(self) -> float | None:
        """The difference in % of the value before; `None` if the value before is 0 or undefined."""
        return self._of_before(self.difference.mean) if self.difference is not None else None

    @property
    def ends(self) -> tuple[float, float] | None:
        """The ends of the interval of the difference, in % of the value before; `None` as for `percent`."""
        if self.difference is None:
            return None
        half = self.difference.half_width or 0.0
        low, high = (self._of_before(self.difference.mean + end) for end in (-half, half))
        return None if low is None or high is None else (low, high)

    def _of_before(self, value: float) -> float | None:
        return 100 * value / abs(self.before.mean) if self.before is not None and self.before.mean else None

    @property
    def large(self) -> bool:
        """`True`: the metric changes by more than `HARM_END` % of the value before."""
        return self.difference is not None and abs(self.difference.mean) > HARM_END / 100 * self._base()

    @property
    def may_regress(self) -> bool:
        """`True`: the difference is not significant, but may be a large harm."""
        return self._may_be_large(-1)

    @property
    def may_improve(self) -> bool:
        """`True`: the difference is not significant, but may be a large gain."""
        return self._may_be_large(1)

    def _may_be_large(self, sign: int) -> bool:
        """`True`: an insignificant difference may be a large gain (`sign` 1) or a large harm (`sign` -1)."""
        if self.verdict != "unclear" or self.address.better is None or self.difference is None:
            return False
        base = self._base()
        gain = sign * (self.difference.mean if self.address.better == "higher" else -self.difference.mean)
        end = gain + (self.difference.half_width or 0.0)
        return base > 0 and gain > HARM_MEAN / 100 * base and end > HARM_END / 100 * base and not self._small()

    @property
    def width(self) -> float | None:
        """Half the width of the interval of the difference, as a fraction of the value before; `None`: no interval."""
        base = self._base()
        half = self.difference.half_width if self.difference is not None else None
        return None if half is None or not base else half / base

    def _base(self) -> float:
        """The value that differences are compared with: the value before; if it was 0 or undefined, the value after."""
        if self.before is not None and self.before.mean:
            return abs(self.before.mean)
        return abs(self.after.mean) if self.after is not None else 0.0

    @property
    def of_consequence(self) -> bool:
        """`True`: the metric improves or regresses, and not by a negligible amount."""
        return self.verdict in ("improves", "regresses") and not self._small()

    def _small(self) -> bool:
        if self.difference is None:
            return False
        if self.work_begun is not None:
            return abs(self.difference.mean) < SMALL / 100 * self.work_begun
        whole = self.address.metric.unit.whole
        if whole is not None and abs(self.difference.mean) < SMALL_OF_WHOLE / 100 * whole:
            return True
        return self.percent is not None and abs(self.percent) < SMALL

    @property
    def size(self) -> float:
        """The size of the difference in % of the whole for shares of a whole, in % of the value before for others."""
        whole = self.address.metric.unit.whole
        if whole is not None and self.difference is not None:
            return 100 * abs(self.difference.mean) / whole
        return abs(self.percent) if self.percent is not None else float("inf")

    @property
    def rank(self) -> tuple[int, bool, float]:
        """The order in tables: by kind as in `NEAREST`, then differences of consequence first, then by size."""
        return NEAREST.index(self.address.kind), not (self.of_consequence or self.may_regress), -self.size

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
    old, new, metrics, seconds = _alike_in_time(before, after, list(metrics))
    tested = []
    comparisons: dict[str, Comparison] = {}
    for address in metrics:
        values = list(zip(new[address.name], old[address.name], strict=False))
        if (one_sided := _one_sided(address, values)) is not None:
            comparisons[address.name] = one_sided
            continue
        pairs = [(a, b) for a, b in values if a is not None and b is not None]
        difference = paired([a for a, _ in pairs], [b for _, b in pairs])
        was, became = Interval.from_values(b for _, b in pairs), Interval.from_values(a for a, _ in pairs)
        if difference is not None and was is not None and became is not None:
            tested.append((address, was, became, difference))
    corrected: dict[str, float] = {}
    families: dict[tuple[bool, bool], dict[str, float]] = {}
    for address, _, _, difference in tested:
        if difference.p is not None:
            family = (address.name in question, address.better is not None)
            families.setdefault(family, {})[address.name] = min(1.0, looks * difference.p)
    for ps in families.values():
        corrected |= dict(zip(ps, holm(list(ps.values())), strict=True))
    work_begun = {name: begun / seconds for name, begun in _work_begun(before).items()}
    comparisons |= {
        address.name: Comparison(
            address,
            was,
            became,
            difference.interval,
            p,
            _verdict(address, difference.interval, p),
            work_begun=work_begun.get(address.thing) if address.metric.name == "failed" else None,
        )
        for address, was, became, difference in tested
        for p in [corrected.get(address.name)]
    }
    return [comparisons[address.name] for address in metrics if address.name in comparisons]


_Values = dict[str, list[float | None]]


def _alike_in_time(before: Run, after: Run, metrics: list[Address]) -> tuple[_Values, _Values, list[Address], float]:
    """The values of both runs, their addresses, and the time that is counted over, s.

    Where the runs have different lengths, metrics that accumulate become rates per second.
    """
    old, new = before.values(metrics), after.values(metrics)
    spans = [run.scenario.duration_ns / 1e9 for run in (before, after)]
    if spans[0] == spans[1]:
        return old, new, metrics, 1.0
    for address in metrics:
        if address.metric.accumulates:
            for values, span in zip((old, new), spans, strict=True):
                values[address.name] = [None if value is None else value / span for value in values[address.name]]
    rates = [a._replace(metric=a.metric.per_second()) if a.metric.accumulates else a for a in metrics]
    return old, new, rates, spans[0]


def seen_by_clients(run: Run) -> list[Address]:
    """The metrics that clients are judged by; without clients, those that applications are judged by."""
    metrics = judged(run.scenario)
    clients = {app.name for app in apps(run.scenario) if app.client is not None}
    return [address for address in metrics if address.thing in clients] or metrics


def _work_begun(run: Run) -> dict[str, float]:
    """Applications and clients to the units of work that they began, per replication."""
    begun = pl.col("completed") + pl.col("failed")
    return dict(run.df_apps().group_by("name").agg(begun.mean()).iter_rows())


def _one_sided(address: Address, pairs: Sequence[tuple[float | None, float | None]]) -> Comparison | None:
    """The comparison of a metric that most replications define in one of the runs only.

    Args:
        address: the metric.
        pairs: the values of each replication, (after, before).
    """
    if not address.metric.undefined_is_worst:
        return None
    lost = sum(1 for a, b in pairs if a is None and b is not None)
    gained = sum(1 for a, b in pairs if a is not None and b is None)
    if not lost + gained:
        return None
    was, became = Interval.from_values(b for _, b in pairs), Interval.from_values(a for a, _ in pairs)
    for missing, defined, verdict in ((lost, was, "regresses"), (gained, became, "improves")):
        if defined is None or 2 * missing <= defined.n:
            continue
        reason = address.metric.undefined_is
        if missing < len(pairs):
            reason = f"{reason}, in {missing} of {len(pairs)} replications"
        if verdict == "regresses":
            return Comparison(address, was, None, None, None, "regresses", after_undefined=reason)
        return Comparison(address, None, became, None, None, "improves", before_undefined=reason)
    return None


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
    comparisons: Sequence[Comparison],
) -> tuple[dict[str, list[Comparison]], dict[str, list[Comparison]]]:
    """Domain (`host` for the whole host) to its metrics that improve, and to those that regress."""
    sides: dict[str, dict[str, list[Comparison]]] = {"improves": {}, "regresses": {}}
    for comparison in comparisons:
        if comparison.verdict in sides:
            sides[comparison.verdict].setdefault(comparison.address.domain or "host", []).append(comparison)
    return sides["improves"], sides["regresses"]


# ---- in words ----


def shown(verdict: Verdict) -> str:
    """The verdict as it is shown."""
    return "no significant difference" if verdict == "unclear" else verdict


def in_words(comparisons: Sequence[Comparison], starving: Sequence[str] = ()) -> list[str]:
    """Lines on starving domains, on domains that improve or regress, and on metrics that may regress.

    Args:
        comparisons: all comparisons of two runs.
        starving: lines on starving domains; they come first.
    """
    by_rank = sorted(comparisons, key=lambda comparison: comparison.rank)
    improved, regressed = improved_and_regressed([comparison for comparison in by_rank if comparison.of_consequence])
    sides = [
        (metrics[0].rank[0], verb, f"{domain} {verb}: {_changes(metrics)}")
        for verb, side in (("regresses", regressed), ("improves", improved))
        for domain, metrics in side.items()
    ]
    # Among kinds of equal rank, regressions come first.
    lines = [line for _, _, line in sorted(sides, key=lambda side: (side[0], side[1] == "improves"))]
    small = sum(1 for c in comparisons if c.verdict in ("improves", "regresses") and not c.of_consequence)
    uncertain = [comparison for comparison in by_rank if comparison.may_regress]
    unclear = sum(1 for c in comparisons if c.address.better and c.verdict == "unclear") - len(uncertain)
    if not lines and not small:
        lines = ["nothing improves or regresses significantly"]
    lines += [f"may regress: {in_doubt(comparison)}" for comparison in uncertain[:LISTED_METRICS]]
    if len(uncertain) > LISTED_METRICS:
        lines.append(f"may regress, too: {_count(len(uncertain) - LISTED_METRICS)} (more replications tell)")
    if small:
        lines.append(f"of no consequence: {_count(small)} (less than {SMALL:g} %)")
    if unclear:
        lines.append(f"no significant difference: {_count(unclear)} (more replications may show one)")
    reasons = dict.fromkeys(comparison.before_undefined or comparison.after_undefined for comparison in by_rank)
    lines += [f"{UNDEFINED}: {reason}" for reason in reasons if reason is not None]
    return [*starving, *lines]


def _changes(comparisons: Sequence[Comparison]) -> str:
    more = f", and {_count(len(comparisons) - LISTED_METRICS)} more" if len(comparisons) > LISTED_METRICS else ""
    return ", ".join(map(change, comparisons[:LISTED_METRICS])) + more


def _count(metrics: int) -> str:
    return f"{metrics} metric{'' if metrics == 1 else 's'}"


def in_doubt(comparison: Comparison) -> str:
    """The possible change of a metric whose difference is not significant, in words."""
    address = comparison.address
    return f"{address} {_value(comparison.before)} → {comparison.after or UNDEFINED} {unit_of(comparison)}"


def unit_of(comparison: Comparison) -> str:
    """The unit of a metric; of failures also the units of work that were begun before, per replication."""
    unit = str(comparison.address.unit)
    return unit if not comparison.work_begun else f"{unit} of {number(comparison.work_begun)}"


def p_in_words(p: float) -> str:
    """A p value with three decimals."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


UNDEFINED = "undefined"
"""The text shown for a metric without a value."""


def _value(interval: Interval | None) -> str:
    return UNDEFINED if interval is None else number(interval.mean)


def change(comparison: Comparison) -> str:
    """The change of a metric, in words."""
    percent, address = comparison.percent, comparison.address
    if comparison.before is None or comparison.after is None or percent is None or abs(percent) > 1000:
        return f"{address} {_value(comparison.before)} → {_value(comparison.after)} {unit_of(comparison)}"
    return f"{address.name} {_signed(number(percent))} %"


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
    percent, p = comparison.percent, comparison.p
    return [
        comparison.address.name,
        comparison.address.unit,
        UNDEFINED if comparison.before_undefined else str(comparison.before),
        UNDEFINED if comparison.after_undefined else str(comparison.after),
        "–" if comparison.difference is None else _signed(str(comparison.difference)),
        "–" if percent is None else _signed(number(percent)),
        "–" if p is None else p_in_words(p),
        "may regress" if comparison.may_regress else shown(comparison.verdict),
    ]


def _signed(text: str) -> str:
    return text if text.startswith("-") or text in ("0", "0 ± 0") else f"+{text}"


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
            "verdict": shown(comparison.verdict),
            "size": comparison.size,
            "told": comparison.verdict != "unclear" or comparison.address.name in goals,
        }
        for comparison in comparisons
        if comparison.ends is not None and comparison.verdict != "same"
    ]
    return pl.DataFrame(rows, infer_schema_length=None)
