"""The effect of chance: differences between recordings of one setting that differ only in a seed.

Where no two such recordings exist, the halves of each recording are compared instead: they are half as long, and have
twice the variance of a whole recording. Deviations are pooled over the settings of the same guests under one scheduler.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from vcpulab.results.statistics import CONFIDENCE, t_quantile
from vcpulab_evidence.validation.xen.recording import Recorded

OF_POINTS = frozenset({"share"})
"""Metrics with differences in points; other metrics have differences in % of the recorded value."""


@dataclass(frozen=True)
class Chance:
    """The error that chance alone may cause: points, or %."""

    deviation: float
    """Standard deviation of one recording."""
    degrees: int
    evidence: str
    """`seeds`, or `halves` of recordings."""

    @property
    def half_width(self) -> float:
        """Half the width of the interval around the mean with 95 % of the recordings."""
        return t_quantile(self.degrees, 0.5 + CONFIDENCE / 2) * self.deviation


@dataclass(frozen=True)
class Spread:
    """Chance by metric, and the differences of single pairs of recordings."""

    by_cell: Mapping[tuple[str, str, str, str], Chance]
    """The effect of chance by guests, scheduler, domain and metric."""
    apart: Mapping[str, Mapping[str, Sequence[float]]]
    """Differences between recordings that differ only by chance, by metric and evidence."""

    def chance_of(self, recorded: Recorded, thing: str, metric: str) -> Chance | None:
        """The effect of chance on a value; `None`: no recordings show it."""
        return self.by_cell.get((recorded.guests, recorded.setting.scheduler, thing, metric))


def spread(recordings: Iterable[Recorded]) -> Spread:
    """The effect of chance, estimated from the recordings."""
    groups: dict[tuple[str, str], dict[str, list[Recorded]]] = {}
    for recording in recordings:
        settings = groups.setdefault((recording.guests, recording.setting.scheduler), {})
        settings.setdefault(recording.setting.key, []).append(recording)
    by_cell: dict[tuple[str, str, str, str], Chance] = {}
    apart: dict[str, dict[str, list[float]]] = {}
    for (guests, scheduler), settings in groups.items():
        same = [group for group in settings.values() if len(group) > 1]
        evidence = "seeds" if same else "halves"
        squares: dict[tuple[str, str], list[tuple[float, int]]] = {}
        for group in same or [[recording] for repeated in settings.values() for recording in repeated]:
            samples = [recording.values for recording in group] if same else list(group[0].halves)
            for thing, metric in set.intersection(*(set(sample) for sample in samples)):
                values = [sample[thing, metric] for sample in samples]
                squares.setdefault((thing, metric), []).append(_squares(values, metric, halves=not same))
                apart.setdefault(metric, {}).setdefault(evidence, []).extend(_apart(values, metric, halves=not same))
        for (thing, metric), deviations in squares.items():
            degrees = sum(degrees for _, degrees in deviations)
            deviation = math.sqrt(sum(square for square, _ in deviations) / degrees)
            by_cell[guests, scheduler, thing, metric] = Chance(deviation, degrees, evidence)
    return Spread(by_cell, apart)


def _squares(values: Sequence[float], metric: str, *, halves: bool) -> tuple[float, int]:
    """The sum of squared deviations of whole recordings, and its degrees of freedom."""
    mean = fmean(values)
    scale = 1.0 if metric in OF_POINTS else 100 / mean if mean else 0.0
    square = sum((scale * (value - mean)) ** 2 for value in values)
    return (square / 2 if halves else square), len(values) - 1


def _apart(values: Sequence[float], metric: str, *, halves: bool) -> list[float]:
    """The differences between pairs of whole recordings."""
    differences = []
    for at, first in enumerate(values):
        for second in values[at + 1 :]:
            scale = 1.0 if metric in OF_POINTS else 100 / second if second else 0.0
            differences.append(abs(scale * (first - second)) / (math.sqrt(2) if halves else 1))
    return differences
