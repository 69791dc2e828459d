"""What chance alone gives: how far recordings of one setting are apart that differ in nothing but a seed.

Where there are no two such recordings, the halves of each stand in for them: half as long, they differ by twice the
standard deviation of a whole one's. Deviations are pooled over the settings of the same guests under one scheduler.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from vcpulab.results.statistics import CONFIDENCE, t_quantile
from vcpulab.validation.xen.recorded import Recorded

OF_POINTS = frozenset({"share"})
"""Metrics that differ by points; others by % of what was recorded."""


@dataclass(frozen=True)
class Chance:
    """How far off chance alone may be: points, or %."""

    deviation: float
    """Standard deviation of one recording."""
    degrees: int
    evidence: str
    """`seeds`, or `halves` of recordings."""

    @property
    def half_width(self) -> float:
        """Of the interval in which 95 % of recordings are around their mean."""
        return t_quantile(self.degrees, 0.5 + CONFIDENCE / 2) * self.deviation


@dataclass(frozen=True)
class Spread:
    """Chance by metric, and what single pairs of recordings differ by."""

    by_cell: Mapping[tuple[str, str, str, str], Chance]
    """By guests, scheduler, domain and metric."""
    apart: Mapping[str, Mapping[str, Sequence[float]]]
    """By metric and evidence: how far recordings that differ by chance alone are apart."""

    def of(self, recorded: Recorded, of: str, metric: str) -> Chance | None:
        """What chance gives for one value; `None`: there is nothing to tell."""
        return self.by_cell.get((recorded.guests, recorded.setting.scheduler, of, metric))


def spread(recordings: Iterable[Recorded]) -> Spread:
    """What the recordings themselves say of chance."""
    groups: dict[tuple[str, str], dict[str, list[Recorded]]] = {}
    for one in recordings:
        settings = groups.setdefault((one.guests, one.setting.scheduler), {})
        settings.setdefault(one.setting.key, []).append(one)
    by_cell: dict[tuple[str, str, str, str], Chance] = {}
    apart: dict[str, dict[str, list[float]]] = {}
    for (guests, scheduler), settings in groups.items():
        same = [group for group in settings.values() if len(group) > 1]
        evidence = "seeds" if same else "halves"
        squares: dict[tuple[str, str], list[tuple[float, int]]] = {}
        for group in same or [[one] for ones in settings.values() for one in ones]:
            samples = [one.values for one in group] if same else list(group[0].halves)
            for of, metric in set.intersection(*(set(sample) for sample in samples)):
                values = [sample[of, metric] for sample in samples]
                squares.setdefault((of, metric), []).append(_squares(values, metric, halves=not same))
                apart.setdefault(metric, {}).setdefault(evidence, []).extend(_apart(values, metric, halves=not same))
        for (of, metric), found in squares.items():
            degrees = sum(degrees for _, degrees in found)
            deviation = math.sqrt(sum(square for square, _ in found) / degrees)
            by_cell[guests, scheduler, of, metric] = Chance(deviation, degrees, evidence)
    return Spread(by_cell, apart)


def _squares(values: Sequence[float], metric: str, *, halves: bool) -> tuple[float, int]:
    """The sum of squared deviations of whole recordings, and its degrees of freedom."""
    mean = fmean(values)
    scale = 1.0 if metric in OF_POINTS else 100 / mean if mean else 0.0
    square = sum((scale * (value - mean)) ** 2 for value in values)
    return (square / 2 if halves else square), len(values) - 1


def _apart(values: Sequence[float], metric: str, *, halves: bool) -> list[float]:
    """How far whole recordings are apart."""
    found = []
    for at, one in enumerate(values):
        for other in values[at + 1 :]:
            scale = 1.0 if metric in OF_POINTS else 100 / other if other else 0.0
            found.append(abs(scale * (one - other)) / (math.sqrt(2) if halves else 1))
    return found
