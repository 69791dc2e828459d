"""Predicted beside recorded: cells, the verdict on each metric, and the whole answer."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Bar:
    """What a metric's predictions for settings that were never recorded must reach."""

    name: str
    unit: str
    """Of errors: `points`, or `%` of what was recorded."""
    needed: Sequence[tuple[float, float]]
    """How far off predictions may be, and which part of them must be no farther."""
    forgives_chance: bool = False
    """Whether a prediction that is no farther off than chance alone may be counts as within."""

    @property
    def widest(self) -> float:
        """The limit that most predictions must keep to."""
        return max(limit for limit, _ in self.needed)

    def __str__(self) -> str:
        parts = (f"{limit:g} {self.unit} in {100 * part:g} %" for limit, part in self.needed)
        return ", ".join(parts) + (" beyond chance" if self.forgives_chance else "")


BARS: Mapping[str, Bar] = {
    "share": Bar("shares", "points", [(1.0, 0.9)]),
    "switches": Bar("switches", "%", [(5.0, 0.5), (10.0, 0.9)]),
    "wait_median": Bar("median waits", "%", [(20.0, 0.9)], forgives_chance=True),
    "wait_p90": Bar("90th percentiles of waits", "%", [(25.0, 0.9)], forgives_chance=True),
    "loops": Bar("throughput of request loops", "%", [(5.0, 0.9)]),
    "throughput": Bar("throughput of other guests", "%", [(5.0, 0.9)]),
}
THROUGHPUTS = ("loops", "throughput")
SIGNS_NEEDED = 0.95
"""The part of the changes that chance does not explain, recorded or predicted, that must have the recorded sign."""
UNITS = {
    "share": "% of a pCPU",
    "switches": "1/s",
    "wait_median": "µs",
    "wait_p90": "µs",
    "loops": "1/s",
    "throughput": "1/s",
}
OWN, WHAT_IF = "own setting", "what-if"


@dataclass(frozen=True)
class Change:
    """A change from one setting to another: points, or % of what was before."""

    by: float
    half_width: float | None
    """`None`: nothing tells what chance gives."""

    @property
    def sign(self) -> int:
        """1: it rises, -1: it falls, 0: chance may explain it."""
        if self.half_width is None or abs(self.by) <= self.half_width:
            return 0
        return 1 if self.by > 0 else -1


@dataclass(frozen=True)
class Held:
    """A prediction held against a recording."""

    kind: str
    """`what-if`; `own setting`: both recordings have one setting, as after a recording with another seed."""
    guests: str
    demands: str
    """The recording that the twin was made of."""
    setting: str
    """The recording whose setting it was run in, and that it is held against."""
    scheduler_before: str
    scheduler: str
    changed: str
    """What differs between the settings, such as `weight`."""
    of: str
    """Domain, or `host`."""
    metric: str
    recorded: float
    predicted: float
    """Median of the replications: in some all may be otherwise, and a mean is like none."""
    predicted_mean: float
    half_width: float
    """Of the 95 % confidence interval of their mean."""
    off: float
    """Predicted less recorded: points, or % of what was recorded."""
    off_mean: float
    """The same of the mean."""
    chance: float | None
    """How far off chance alone may be; `None`: nothing tells."""
    evidence: str
    """What tells: `seeds`, `halves`, or nothing."""
    off_low: float
    off_high: float
    """The interval of `off`: of replications, and of chance in the recording."""
    off_rank: float | None
    """Of a wait: how many of 100 recorded ones lie between the recorded percentile and what was predicted for it."""
    before: float | None
    """The same in the recording that the twin was made of."""
    change_recorded: float | None
    sign_recorded: int | None
    """1, -1, or 0 where chance may explain the change."""
    change_predicted: float | None
    sign_predicted: int | None

    @property
    def bar(self) -> Bar:
        """What it is judged by."""
        return BARS[self.metric]

    @property
    def by_chance(self) -> bool:
        """Whether chance alone may be as far off."""
        return self._is_by_chance(self.off)

    def _is_by_chance(self, off: float) -> bool:
        return self.chance is not None and abs(off) <= self.chance

    def within(self, limit: float, *, by_mean: bool = False) -> bool:
        """Whether it is no farther off, by the median or the mean of replications."""
        off = self.off_mean if by_mean else self.off
        return abs(off) <= limit or (self.bar.forgives_chance and self._is_by_chance(off))

    @property
    def excess(self) -> float:
        """How often the widest limit is in what it is off; no more than 1: it is within."""
        limit = self.bar.widest
        return 0.0 if self.within(limit) else abs(self.off) / limit


@dataclass(frozen=True)
class Verdict:
    """How the predictions of a metric do."""

    kind: str
    metric: str
    cells: int
    bar: str
    reached: Sequence[float]
    """The part within each of the bar's limits, %."""
    reached_by_mean: Sequence[float]
    """The same if the mean of replications is taken for the prediction instead of their median."""
    passed: bool
    off_median: float
    """Median of the errors without their signs."""
    off_p90: float
    off_mean: float
    """Mean of the errors without their signs."""
    bias: float
    """Median of the errors."""
    by_chance: int
    """How many are no farther off than chance alone may be."""
    chance_median: float | None
    """How far two recordings of one setting are apart: the median."""
    chance_p90: float | None
    evidence: str


@dataclass(frozen=True)
class Signs:
    """Changes from one recorded setting to another, predicted and recorded."""

    metric: str
    changes: int
    """All there are."""
    recorded: int
    """Those that chance does not explain."""
    right: int
    wrong: int
    undecided: int
    """Of those recorded: predicted with the same sign, with the other, or no larger than runs by chance differ."""

    @property
    def part_right(self) -> float | None:
        """Of those that neither chance in recordings nor in runs explains."""
        decided = self.right + self.wrong
        return self.right / decided if decided else None

    @property
    def passed(self) -> bool:
        """Whether enough are right."""
        return self.part_right is None or self.part_right >= SIGNS_NEEDED


@dataclass(frozen=True)
class Agreement:
    """Predictions of recordings of Xen, each beside what was recorded."""

    cells: Sequence[Held]
    apart: Mapping[str, Mapping[str, Sequence[float]]]
    """By metric and evidence: how far recordings are apart that differ by chance alone."""
    recordings: Sequence[Path]
    skipped: Mapping[Path, str]

    def of(self, kind: str, metric: str | None = None) -> list[Held]:
        """The cells of a kind."""
        return [cell for cell in self.cells if cell.kind == kind and metric in (None, cell.metric)]

    @property
    def kinds(self) -> list[str]:
        """The kinds there are, what-ifs first."""
        return [kind for kind in (WHAT_IF, OWN) if any(cell.kind == kind for cell in self.cells)]

    @property
    def verdicts(self) -> list[Verdict]:
        """By kind and metric."""
        found = ((kind, metric, self.of(kind, metric)) for kind in self.kinds for metric in BARS)
        return [self.judge(kind, metric, cells) for kind, metric, cells in found if cells]

    def judge(self, kind: str, metric: str, cells: Sequence[Held]) -> Verdict:
        """The verdict on some cells of a metric."""
        bar = BARS[metric]
        reached, by_mean = (
            [sum(cell.within(limit, by_mean=by_mean) for cell in cells) / len(cells) for limit, _ in bar.needed]
            for by_mean in (False, True)
        )
        off = sorted(abs(cell.off) for cell in cells)
        apart = self.apart.get(metric, {})
        evidence = next((one for one in ("seeds", "halves") if apart.get(one)), "")
        chance = sorted(apart.get(evidence, ()))
        return Verdict(
            kind,
            metric,
            len(cells),
            str(bar),
            [100 * part for part in reached],
            [100 * part for part in by_mean],
            all(part >= needed for part, (_, needed) in zip(reached, bar.needed, strict=True)),
            median(off),
            quantile(off, 0.9),
            fmean(off),
            median(cell.off for cell in cells),
            sum(cell.by_chance for cell in cells),
            median(chance) if chance else None,
            quantile(chance, 0.9) if chance else None,
            evidence,
        )

    @property
    def signs(self) -> list[Signs]:
        """By metric, and of all together."""
        whats = self.of(WHAT_IF)
        metrics = [metric for metric in BARS if any(cell.metric == metric for cell in whats)]
        return [_signs(metric, [cell for cell in whats if cell.metric == metric]) for metric in metrics] + (
            [_signs("all", whats)] if whats else []
        )

    @property
    def by_change(self) -> Iterator[tuple[str, str, Verdict]]:
        """By what was changed, and metric: the verdict on those what-ifs."""
        groups: dict[tuple[str, str], list[Held]] = {}
        for cell in self.of(WHAT_IF):
            groups.setdefault((cell.changed, cell.metric), []).append(cell)
        for (changed, metric), cells in sorted(groups.items()):
            yield changed, metric, self.judge(WHAT_IF, metric, cells)

    def worst(self, number: int) -> list[Held]:
        """The what-ifs that are farthest beyond their limits."""
        beyond = [cell for cell in self.of(WHAT_IF) if cell.excess > 1]
        return sorted(beyond, key=lambda cell: -cell.excess)[:number]

    @property
    def passed(self) -> bool:
        """Whether all bars are reached by the what-ifs, signs among them."""
        whats = [verdict for verdict in self.verdicts if verdict.kind == WHAT_IF]
        return all(verdict.passed for verdict in whats) and all(one.passed for one in self.signs if one.metric == "all")

    def to_dict(self) -> dict[str, Any]:
        """All of it, as JSON has it."""
        return {
            "passed": self.passed,
            "verdicts": [asdict(verdict) for verdict in self.verdicts],
            "signs": [asdict(one) | {"part_right": one.part_right, "passed": one.passed} for one in self.signs],
            "by_change": [
                {"changed": changed, "metric": metric} | asdict(verdict) for changed, metric, verdict in self.by_change
            ],
            "recordings": [str(folder) for folder in self.recordings],
            "cells": [asdict(cell) for cell in self.cells],
            "skipped": {str(folder): why for folder, why in self.skipped.items()},
        }

    def to_frame(self) -> "pl.DataFrame":
        """Every prediction in a row."""
        import polars as pl

        return pl.DataFrame([asdict(cell) for cell in self.cells], infer_schema_length=None)


def _signs(metric: str, cells: Sequence[Held]) -> Signs:
    known = [cell for cell in cells if cell.sign_recorded is not None]
    real = [cell for cell in known if cell.sign_recorded]
    right = sum(cell.sign_predicted == cell.sign_recorded for cell in real)
    wrong = sum(cell.sign_predicted == -(cell.sign_recorded or 0) for cell in real)
    return Signs(metric, len(known), len(real), right, wrong, len(real) - right - wrong)


def quantile(ordered: Sequence[float], part: float) -> float:
    """A quantile of values in order: the least that so many of them do not exceed."""
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)]
