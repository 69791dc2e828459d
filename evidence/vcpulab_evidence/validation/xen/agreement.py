"""Predicted and recorded values: cells, the verdict on each metric, and the whole answer."""

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
    """The accuracy that a metric's predictions for other settings must reach."""

    name: str
    unit: str
    """The unit of errors: `points`, or `%` of the recorded value."""
    needed: Sequence[tuple[float, float]]
    """Limits of the error, each with the fraction of predictions that must be within it."""
    forgives_chance: bool = False
    """Whether a prediction counts as within if chance alone may explain its error."""

    @property
    def widest(self) -> float:
        """The widest limit."""
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
"""Fraction of the changes not explained by chance, recorded or predicted, that must have the recorded sign."""
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
    """A change from one setting to another: points, or % of the value before."""

    by: float
    half_width: float | None
    """Half the width of the effect of chance; `None`: unknown."""

    @property
    def sign(self) -> int:
        """1: it rises, -1: it falls, 0: chance may explain it."""
        if self.half_width is None or abs(self.by) <= self.half_width:
            return 0
        return 1 if self.by > 0 else -1


@dataclass(frozen=True)
class Held:
    """A prediction compared with a recording."""

    kind: str
    """`what-if`; `own setting`: both recordings have one setting, as after a recording with another seed."""
    guests: str
    demands: str
    """The recording that the twin was made of."""
    setting: str
    """The recording with the setting of the run, which the prediction is compared with."""
    scheduler_before: str
    scheduler: str
    changed: str
    """The differences between the settings, such as `weight`."""
    thing: str
    """Domain, or `host`."""
    metric: str
    recorded: float
    predicted: float
    """Median of the replications: a mean of very different replications is like none of them."""
    predicted_mean: float
    half_width: float
    """Half the width of the 95 % confidence interval of the mean."""
    off: float
    """The error, predicted minus recorded: points, or % of the recorded value."""
    off_mean: float
    """The error of the mean."""
    chance: float | None
    """The error that chance alone may cause; `None`: unknown."""
    evidence: str
    """The evidence of chance: `seeds`, `halves`, or empty."""
    off_low: float
    off_high: float
    """The interval of `off`, from replications and from chance in the recording."""
    off_rank: float | None
    """For waits: % of the recorded waits between the recorded percentile and its prediction."""
    before: float | None
    """The value in the recording that the twin was made of."""
    change_recorded: float | None
    sign_recorded: int | None
    """1, -1, or 0 where chance may explain the change."""
    change_predicted: float | None
    sign_predicted: int | None

    @property
    def bar(self) -> Bar:
        """The accuracy that the prediction must reach."""
        return BARS[self.metric]

    @property
    def by_chance(self) -> bool:
        """Whether chance alone may explain the error."""
        return self._is_by_chance(self.off)

    def row(self) -> dict[str, Any]:
        """The prediction as flat data, with the column `of` for the thing."""
        return {"of" if name == "thing" else name: value for name, value in asdict(self).items()}

    def _is_by_chance(self, off: float) -> bool:
        return self.chance is not None and abs(off) <= self.chance

    def within(self, limit: float, *, by_mean: bool = False) -> bool:
        """Whether the error is within a limit, by the median or the mean of replications."""
        off = self.off_mean if by_mean else self.off
        return abs(off) <= limit or (self.bar.forgives_chance and self._is_by_chance(off))

    @property
    def excess(self) -> float:
        """The error divided by the widest limit; at most 1: it is within."""
        limit = self.bar.widest
        return 0.0 if self.within(limit) else abs(self.off) / limit


@dataclass(frozen=True)
class Verdict:
    """The verdict on the predictions of a metric."""

    kind: str
    metric: str
    cells: int
    bar: str
    reached: Sequence[float]
    """The fraction within each of the bar's limits, %."""
    reached_by_mean: Sequence[float]
    """The fraction within each limit, %, if the mean of replications is the prediction instead of the median."""
    passed: bool
    off_median: float
    """Median of the errors without their signs."""
    off_p90: float
    off_mean: float
    """Mean of the errors without their signs."""
    bias: float
    """Median of the errors."""
    by_chance: int
    """Number of predictions whose error chance alone may explain."""
    chance_median: float | None
    """Median difference between two recordings of one setting."""
    chance_p90: float | None
    evidence: str


@dataclass(frozen=True)
class Signs:
    """Changes from one recorded setting to another, predicted and recorded."""

    metric: str
    changes: int
    """Number of all changes."""
    recorded: int
    """Number of recorded changes that chance does not explain."""
    right: int
    wrong: int
    undecided: int
    """The number of changes predicted as chance; `right` and `wrong`: with the same and the opposite sign."""

    @property
    def part_right(self) -> float | None:
        """The fraction with the right sign, of changes that neither chance in recordings nor in runs explains."""
        decided = self.right + self.wrong
        return self.right / decided if decided else None

    @property
    def passed(self) -> bool:
        """Whether enough signs are right."""
        return self.part_right is None or self.part_right >= SIGNS_NEEDED


@dataclass(frozen=True)
class Agreement:
    """Predictions of recordings of Xen, each beside the recorded value."""

    cells: Sequence[Held]
    apart: Mapping[str, Mapping[str, Sequence[float]]]
    """Differences between recordings that differ only by chance, by metric and evidence."""
    recordings: Sequence[Path]
    skipped: Mapping[Path, str]

    def cells_of(self, kind: str, metric: str | None = None) -> list[Held]:
        """The cells of a kind."""
        return [cell for cell in self.cells if cell.kind == kind and metric in (None, cell.metric)]

    @property
    def kinds(self) -> list[str]:
        """The kinds of cells, what-ifs first."""
        return [kind for kind in (WHAT_IF, OWN) if any(cell.kind == kind for cell in self.cells)]

    @property
    def verdicts(self) -> list[Verdict]:
        """The verdicts by kind and metric."""
        groups = ((kind, metric, self.cells_of(kind, metric)) for kind in self.kinds for metric in BARS)
        return [self.judge(kind, metric, cells) for kind, metric, cells in groups if cells]

    def judge(self, kind: str, metric: str, cells: Sequence[Held]) -> Verdict:
        """The verdict on some cells of a metric."""
        bar = BARS[metric]
        reached, by_mean = (
            [sum(cell.within(limit, by_mean=by_mean) for cell in cells) / len(cells) for limit, _ in bar.needed]
            for by_mean in (False, True)
        )
        off = sorted(abs(cell.off) for cell in cells)
        apart = self.apart.get(metric, {})
        evidence = next((source for source in ("seeds", "halves") if apart.get(source)), "")
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
        """The signs of changes by metric, and of all metrics together."""
        whats = self.cells_of(WHAT_IF)
        metrics = [metric for metric in BARS if any(cell.metric == metric for cell in whats)]
        return [_signs(metric, [cell for cell in whats if cell.metric == metric]) for metric in metrics] + (
            [_signs("all", whats)] if whats else []
        )

    @property
    def by_change(self) -> Iterator[tuple[str, str, Verdict]]:
        """The verdicts on what-ifs by changed parameter and metric."""
        groups: dict[tuple[str, str], list[Held]] = {}
        for cell in self.cells_of(WHAT_IF):
            groups.setdefault((cell.changed, cell.metric), []).append(cell)
        for (changed, metric), cells in sorted(groups.items()):
            yield changed, metric, self.judge(WHAT_IF, metric, cells)

    def worst(self, number: int) -> list[Held]:
        """The what-ifs with the largest errors outside their limits."""
        beyond = [cell for cell in self.cells_of(WHAT_IF) if cell.excess > 1]
        return sorted(beyond, key=lambda cell: -cell.excess)[:number]

    @property
    def passed(self) -> bool:
        """Whether the what-ifs reach all bars, including the signs."""
        whats = [verdict for verdict in self.verdicts if verdict.kind == WHAT_IF]
        return all(verdict.passed for verdict in whats) and all(
            signs.passed for signs in self.signs if signs.metric == "all"
        )

    def to_dict(self) -> dict[str, Any]:
        """The comparison as data for JSON."""
        return {
            "passed": self.passed,
            "verdicts": [asdict(verdict) for verdict in self.verdicts],
            "signs": [asdict(signs) | {"part_right": signs.part_right, "passed": signs.passed} for signs in self.signs],
            "by_change": [
                {"changed": changed, "metric": metric} | asdict(verdict) for changed, metric, verdict in self.by_change
            ],
            "recordings": [str(folder) for folder in self.recordings],
            "cells": [cell.row() for cell in self.cells],
            "skipped": {str(folder): reason for folder, reason in self.skipped.items()},
        }

    def to_frame(self) -> "pl.DataFrame":
        """A row for each prediction."""
        import polars as pl

        return pl.DataFrame([cell.row() for cell in self.cells], infer_schema_length=None)


def _signs(metric: str, cells: Sequence[Held]) -> Signs:
    judged = [cell for cell in cells if cell.sign_recorded is not None]
    real = [cell for cell in judged if cell.sign_recorded]
    right = sum(cell.sign_predicted == cell.sign_recorded for cell in real)
    wrong = sum(cell.sign_predicted == -(cell.sign_recorded or 0) for cell in real)
    return Signs(metric, len(judged), len(real), right, wrong, len(real) - right - wrong)


def quantile(ordered: Sequence[float], part: float) -> float:
    """A quantile of sorted values: the least value that a fraction `part` of them does not exceed."""
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)]
