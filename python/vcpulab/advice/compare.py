"""Two runs side by side: paired differences with intervals, and the domains that improve and regress.

Both run with the same seed, so that replication i of one meets the same arrivals and sizes as replication i of the
other (common random numbers); differences are taken replication by replication, with Student's interval of their mean
(Law 2015, "Simulation modeling and analysis", sections 10.2 and 11.2). Every p value is corrected for the number of
metrics (Holm) of its family: what was asked for, or what clients see if nothing was; other metrics with a good
direction, which improve or regress; and those without, which are higher or lower. So a table of a thousand metrics
takes nothing from the answer to the question. Where replications may be added, p is corrected for the number of looks,
too (Bonferroni). A difference counts that stays significant at 5 %.

A metric that has a value on one side only, because on the other nothing ever ran or was completed, needs no test:
having none is worse than any value. What is not significant is not harmless either: a mean harm of more than
`HARM_MEAN` % whose interval reaches beyond `HARM_END` % may regress, and is said to. What is significant and less than
`SMALL` % is counted, not told. Counts of runs of different lengths are compared as rates.
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
"""What is not significant may regress if its mean is worse by more than this, % of the value before ..."""
HARM_END = 20.0
"""... and the worse end of its interval by more than this."""
SMALL = 1.0
"""A smaller change, % of the value before, is of no consequence ..."""
SMALL_OF_WHOLE = 0.1
"""... nor is a smaller one of what has an end, % of the whole; of failures, less than `SMALL` % of what was begun."""
TOLD = 6
"""As many metrics of a domain are told, and as many that may regress."""
NEAREST = ("app", "domain", "io", "host", "pcpu")
"""What means most to the owners of domains comes first."""


@dataclass(frozen=True)
class Comparison:
    """One metric before and after."""

    address: Address
    before: Interval | None
    """`None`: it has no value; why is in `before_undefined`."""
    after: Interval | None
    difference: Interval | None
    """After minus before, over the replications that have both."""
    p: float | None
    """Probability of such a difference if there were none, corrected for the number of metrics of its family and of
    looks; `None`: one pair, or no value on one side."""
    verdict: Verdict
    """`same`: exactly; `unclear`: no significant difference."""
    before_undefined: str | None = None
    """Why it has no value before, in most of the replications that have one after; `None`: it has."""
    after_undefined: str | None = None
    """The same the other way round."""
    tried: float | None = None
    """Of failures: how many units of work were begun before, a replication; else `None`."""

    @property
    def percent(self) -> float | None:
        """The difference in % of the value before; `None` if that is 0, or there is none."""
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
        """Does it change by more than `HARM_END` % of the value before?"""
        return self.difference is not None and abs(self.difference.mean) > HARM_END / 100 * self._base()

    @property
    def may_regress(self) -> bool:
        """Is it no significant difference, but perhaps a large harm?"""
        return self._perhaps(-1)

    @property
    def may_improve(self) -> bool:
        """Is it no significant difference, but perhaps a large gain?"""
        return self._perhaps(1)

    def _perhaps(self, sign: int) -> bool:
        """Is it perhaps a large gain (1), or a large harm (-1)?"""
        if self.verdict != "unclear" or self.address.better is None or self.difference is None:
            return False
        base = self._base()
        by = sign * (self.difference.mean if self.address.better == "higher" else -self.difference.mean)
        end = by + (self.difference.half_width or 0.0)
        return base > 0 and by > HARM_MEAN / 100 * base and end > HARM_END / 100 * base and not self._small()

    @property
    def width(self) -> float | None:
        """Half the width of the interval of the difference, as a part of the value before; `None`: there is none."""
        base = self._base()
        half = self.difference.half_width if self.difference is not None else None
        return None if half is None or not base else half / base

    def _base(self) -> float:
        """What a difference is a part of: of a value that was 0, everything is a large part of what it is now."""
        if self.before is not None and self.before.mean:
            return abs(self.before.mean)
        return abs(self.after.mean) if self.after is not None else 0.0

    @property
    def of_consequence(self) -> bool:
        """Does it improve or regress by more than what nobody notices?"""
        return self.verdict in ("improves", "regresses") and not self._small()

    def _small(self) -> bool:
        if self.difference is None:
            return False
        if self.tried is not None:
            return abs(self.difference.mean) < SMALL / 100 * self.tried
        of_all = self.address.metric.unit.whole
        if of_all is not None and abs(self.difference.mean) < SMALL_OF_WHOLE / 100 * of_all:
            return True
        return self.percent is not None and abs(self.percent) < SMALL

    @property
    def size(self) -> float:
        """How large the difference is, in %: of the value before; of the whole, of what has an end."""
        of_all = self.address.metric.unit.whole
        if of_all is not None and self.difference is not None:
            return 100 * abs(self.difference.mean) / of_all
        return abs(self.percent) if self.percent is not None else float("inf")

    @property
    def rank(self) -> tuple[int, bool, float]:
        """What comes first: clients and applications, then what means less to owners; of these what counts, by size."""
        return NEAREST.index(self.address.kind), not (self.of_consequence or self.may_regress), -self.size

    @property
    def percent_undefined(self) -> str | None:
        """Why there is no percentage; `None`: there is one."""
        if self.percent is not None:
            return None
        return self.before_undefined or self.after_undefined or "it was 0 before"

    def row(self) -> dict[str, object]:
        """As flat data."""
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
    asked: Iterable[Address] | None = None,
    *,
    first: Iterable[Address] | None = None,
    looks: int = 1,
) -> list[Comparison]:
    """The metrics that two runs have in common, or those asked for; without those that neither has values for.

    A metric of which having no value is the worst is compared, too, where one run has values and the other has none.

    Args:
        before: a run.
        after: another one.
        asked: what is compared; all if left out.
        first: of this, what the question is about; if left out, all that was asked for, or what clients see.
        looks: how often the runs may be looked at, with more replications each time.

    Examples:
        >>> import vcpulab
        >>> now = vcpulab.Scenario.starter().change({"run.duration": "200ms", "run.replications": 6})
        >>> then = now.change({"domain.batch.cap": 30})
        >>> found = compare(*vcpulab.run_many([now, then]))
        >>> [c.verdict for c in found if c.address.name == "batch.gotten"]
        ['lower']
    """
    if first is None:
        first = asked = list(asked) if asked is not None else None
    if asked is None:
        # The host stands for its pCPUs.
        measured_after = {address.name for address in addresses(after.scenario) if address.kind != "pcpu"}
        asked = [address for address in addresses(before.scenario) if address.name in measured_after]
    question = {address.name for address in (seen_by_clients(before) if first is None else first)}
    old, new, asked, seconds = _alike_in_time(before, after, list(asked))
    found = []
    lost: dict[str, Comparison] = {}
    for address in asked:
        both = list(zip(new[address.name], old[address.name], strict=False))
        if (one_sided := _one_sided(address, both)) is not None:
            lost[address.name] = one_sided
            continue
        pairs = [(a, b) for a, b in both if a is not None and b is not None]
        difference = paired([a for a, _ in pairs], [b for _, b in pairs])
        was, became = Interval.from_values(b for _, b in pairs), Interval.from_values(a for a, _ in pairs)
        if difference is not None and was is not None and became is not None:
            found.append((address, was, became, difference))
    corrected: dict[str, float] = {}
    families: dict[tuple[bool, bool], dict[str, float]] = {}
    for address, _, _, difference in found:
        if difference.p is not None:
            which = (address.name in question, address.better is not None)
            families.setdefault(which, {})[address.name] = min(1.0, looks * difference.p)
    for family in families.values():
        corrected |= dict(zip(family, holm(list(family.values())), strict=True))
    tried = {name: begun / seconds for name, begun in _tried(before).items()}
    told = lost | {
        address.name: Comparison(
            address,
            was,
            became,
            difference.interval,
            p,
            _verdict(address, difference.interval, p),
            tried=tried.get(address.thing) if address.metric.name == "failed" else None,
        )
        for address, was, became, difference in found
        for p in [corrected.get(address.name)]
    }
    return [told[address.name] for address in asked if address.name in told]


_Values = dict[str, list[float | None]]


def _alike_in_time(before: Run, after: Run, asked: list[Address]) -> tuple[_Values, _Values, list[Address], float]:
    """The values of both runs, what they are of, and the time that is counted over, s.

    Where the runs have different lengths, what accumulates is told of a second.
    """
    old, new = before.values(asked), after.values(asked)
    spans = [run.scenario.duration_ns / 1e9 for run in (before, after)]
    if spans[0] == spans[1]:
        return old, new, asked, 1.0
    for address in asked:
        if address.metric.accumulates:
            for values, span in zip((old, new), spans, strict=True):
                values[address.name] = [None if one is None else one / span for one in values[address.name]]
    told = [one._replace(metric=one.metric.per_second()) if one.metric.accumulates else one for one in asked]
    return old, new, told, spans[0]


def seen_by_clients(run: Run) -> list[Address]:
    """What the question is where nobody asks one: what clients are judged by; where there are none, applications."""
    those = judged(run.scenario)
    clients = {app.name for app in apps(run.scenario) if app.client is not None}
    return [one for one in those if one.thing in clients] or those


def _tried(run: Run) -> dict[str, float]:
    """Applications and clients to the units of work that they began, a replication."""
    begun = pl.col("completed") + pl.col("failed")
    return dict(run.df_apps().group_by("name").agg(begun.mean()).iter_rows())


def _one_sided(address: Address, both: Sequence[tuple[float | None, float | None]]) -> Comparison | None:
    """What has values in one run and none in the other, in most of the replications; pairs are (after, before)."""
    if not address.metric.undefined_is_worst:
        return None
    lost = sum(1 for a, b in both if a is None and b is not None)
    gained = sum(1 for a, b in both if a is not None and b is None)
    if not lost + gained:
        return None
    was, became = Interval.from_values(b for _, b in both), Interval.from_values(a for a, _ in both)
    for gone, there, verdict in ((lost, was, "regresses"), (gained, became, "improves")):
        if there is None or 2 * gone <= there.n:
            continue
        why = address.metric.undefined_is
        if gone < len(both):
            why = f"{why}, in {gone} of {len(both)} replications"
        if verdict == "regresses":
            return Comparison(address, was, None, None, None, "regresses", after_undefined=why)
        return Comparison(address, None, became, None, None, "improves", before_undefined=why)
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


def in_words(found: Sequence[Comparison], starving: Sequence[str] = ()) -> list[str]:
    """Who starves; the domains that improve and that regress, a line for each, with their metrics; what may regress.

    Args:
        found: what was compared.
        starving: lines on who starves; they come before all else.
    """
    by_rank = sorted(found, key=lambda one: one.rank)
    improved, regressed = improved_and_regressed([one for one in by_rank if one.of_consequence])
    sides = [
        (what[0].rank[0], verb, f"{domain} {verb}: {_changes(what)}")
        for verb, side in (("regresses", regressed), ("improves", improved))
        for domain, what in side.items()
    ]
    # Of what is equally near to owners, what regresses comes first.
    lines = [line for _, _, line in sorted(sides, key=lambda side: (side[0], side[1] == "improves"))]
    small = sum(1 for one in found if one.verdict in ("improves", "regresses") and not one.of_consequence)
    uncertain = [one for one in by_rank if one.may_regress]
    unclear = sum(1 for one in found if one.address.better and one.verdict == "unclear") - len(uncertain)
    if not lines and not small:
        lines = ["nothing improves or regresses significantly"]
    lines += [f"may regress: {in_doubt(one)}" for one in uncertain[:TOLD]]
    if len(uncertain) > TOLD:
        lines.append(f"may regress, too: {_count(len(uncertain) - TOLD)} (more replications tell)")
    if small:
        lines.append(f"of no consequence: {_count(small)} (less than {SMALL:g} %)")
    if unclear:
        lines.append(f"no significant difference: {_count(unclear)} (more replications may show one)")
    reasons = dict.fromkeys(one.before_undefined or one.after_undefined for one in by_rank)
    lines += [f"{UNDEFINED}: {why}" for why in reasons if why is not None]
    return [*starving, *lines]


def _changes(what: Sequence[Comparison]) -> str:
    more = f", and {_count(len(what) - TOLD)} more" if len(what) > TOLD else ""
    return ", ".join(map(change, what[:TOLD])) + more


def _count(metrics: int) -> str:
    return f"{metrics} metric{'' if metrics == 1 else 's'}"


def in_doubt(comparison: Comparison) -> str:
    """What may have become of a metric, in words."""
    address = comparison.address
    return f"{address} {_value(comparison.before)} → {comparison.after or UNDEFINED} {unit_of(comparison)}"


def unit_of(comparison: Comparison) -> str:
    """The unit of a metric; of failures also how many units of work were begun in a replication before."""
    unit = str(comparison.address.unit)
    return unit if not comparison.tried else f"{unit} of {number(comparison.tried)}"


def p_in_words(p: float) -> str:
    """A p value with three decimals."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


UNDEFINED = "undefined"
"""How a metric without a value is shown."""


def _value(interval: Interval | None) -> str:
    return UNDEFINED if interval is None else number(interval.mean)


def change(comparison: Comparison) -> str:
    """The change of a metric, in words."""
    percent, address = comparison.percent, comparison.address
    if comparison.before is None or comparison.after is None or percent is None or abs(percent) > 1000:
        return f"{address} {_value(comparison.before)} → {_value(comparison.after)} {unit_of(comparison)}"
    return f"{address.name} {_signed(number(percent))} %"


def table_of_differences(
    found: Sequence[Comparison], labels: tuple[str, str] = ("before", "after"), first: str | None = None
) -> Table:
    """A row for each metric: its values under both labels, the difference, p and the verdict; see `Comparison.rank`.

    Args:
        found: what was compared.
        labels: what the runs are called.
        first: the name of the metric that comes first, the largest difference before the others.
    """
    title = "Differences, second less first, paired, with 95 % confidence intervals"

    def rank(one: Comparison) -> tuple[object, ...]:
        return (False, -one.size) if one.address.metric.name == first else (True, one.rank)

    return beside(title, labels, [_cells(one) for one in sorted(found, key=rank)])


def beside(title: str, labels: tuple[str, str], rows: Sequence[Sequence[str]]) -> Table:
    """Rows of metric, unit, both values, difference, %, p, verdict.

    A narrow terminal has neither p nor difference; the narrowest has all that is said of a metric below its name.
    """
    headings = ["metric", "unit", *labels, "difference", "%", "p", "verdict"]
    ends = tuple(label.rpartition("/")[2] for label in labels)
    names = labels if ends[0] == ends[1] else ends
    short = [[f"{metric}\n  {unit}: {verdict}", *both, pc] for metric, unit, *both, _, pc, _, verdict in rows]
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


def frame_of_changes(found: Sequence[Comparison], goals: Collection[str] = ()) -> pl.DataFrame:
    """What changes in %, a row for each metric.

    Args:
        found: what was compared.
        goals: metrics that are told whatever becomes of them.

    Columns:
        metric: its address.
        percent: the difference, % of the value before.
        low: one end of its interval ...
        high: ... and the other.
        verdict: in words.
        size: how large it is, see `Comparison.size`.
        told: whether it is significant, or a goal.
    """
    rows = [
        {
            "metric": one.address.name,
            "percent": one.percent,
            "low": one.ends[0],
            "high": one.ends[1],
            "verdict": shown(one.verdict),
            "size": one.size,
            "told": one.verdict != "unclear" or one.address.name in goals,
        }
        for one in found
        if one.ends is not None and one.verdict != "same"
    ]
    return pl.DataFrame(rows, infer_schema_length=None)
