"""The answer of a validation: every prediction beside what was recorded, and the verdicts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcpulab.validation.xen.judged import Agreement

if TYPE_CHECKING:
    import polars as pl

NEEDED: Mapping[str, float] = {"share": 1.0, "switches": 1.0, "wait_median": 0.9, "wait_p90": 0.9}
"""The part of the predictions of each metric that is to be within its limit: of waits, nine threads in ten."""


@dataclass(frozen=True)
class Cell:
    """A prediction beside what was recorded."""

    of: str
    """Thread (`VM/vCPU`), domain, or `host`."""
    metric: str
    unit: str
    recorded: float
    predicted: float
    range: tuple[float, float]
    """What predictions of hosts give that differ by chance alone."""
    off: float
    off_unit: str
    """`points`, or `%` of what was recorded."""
    limit: str
    """How far off it may be."""
    holds: bool
    """Whether it is no farther off."""
    chance: bool
    """Whether what was recorded is in the range."""


@dataclass(frozen=True)
class Comparison:
    """The predictions for one recording."""

    demands: Path
    """The recording that the demands are of."""
    setting: Path
    """The recording that the setting is of, and that is predicted: the same in a free run."""
    scheduler: str
    cells: Sequence[Cell]

    @property
    def kind(self) -> str:
        """`free run` or `what-if`."""
        return "free run" if self.demands == self.setting else "what-if"

    @property
    def beyond(self) -> Sequence[Cell]:
        """The predictions that are beyond their limits."""
        return [cell for cell in self.cells if not cell.holds]


@dataclass(frozen=True)
class Verdict:
    """How many predictions of a metric are within their limits."""

    kind: str
    metric: str
    within: int
    of: int
    needed: int
    chance: int
    """Of those beyond their limits, those whose recorded value chance alone may give."""

    @property
    def passed(self) -> bool:
        """Whether enough are, or differ from what was recorded by no more than runs by chance alone."""
        return self.within + self.chance >= self.needed


@dataclass(frozen=True)
class Report:
    """What was compared, and what could not be."""

    comparisons: Sequence[Comparison]
    skipped: Mapping[Path, str]
    """Recordings that cannot be run here, and why."""
    xen: Agreement | None = None
    """What was compared of recordings of Xen; `comparisons` are those of Linux."""

    @property
    def verdicts(self) -> list[Verdict]:
        """By kind and metric."""
        return list(self._verdicts())

    def _verdicts(self) -> Iterator[Verdict]:
        for kind in dict.fromkeys(comparison.kind for comparison in self.comparisons):
            cells = [cell for comparison in self.comparisons if comparison.kind == kind for cell in comparison.cells]
            for metric in dict.fromkeys(cell.metric for cell in cells):
                mine = [cell for cell in cells if cell.metric == metric]
                within = sum(cell.holds for cell in mine)
                chance = sum(cell.chance for cell in mine if not cell.holds)
                needed = -int(-len(mine) * NEEDED.get(metric, 1.0) // 1)
                yield Verdict(kind, metric, within, len(mine), needed, chance)

    @property
    def passed(self) -> bool:
        """Whether enough predictions of every metric are within their limits."""
        return all(verdict.passed for verdict in self.verdicts) and (self.xen is None or self.xen.passed)

    def to_dict(self) -> dict[str, Any]:
        """All of it, as JSON has it."""
        return {
            "passed": self.passed,
            "verdicts": [asdict(verdict) | {"passed": verdict.passed} for verdict in self.verdicts],
            "comparisons": [
                {
                    "kind": comparison.kind,
                    "demands": str(comparison.demands),
                    "setting": str(comparison.setting),
                    "scheduler": comparison.scheduler,
                    "cells": [asdict(cell) for cell in comparison.cells],
                }
                for comparison in self.comparisons
            ],
            "xen": None if self.xen is None else self.xen.to_dict(),
            "skipped": {str(folder): reason for folder, reason in self.skipped.items()},
        }

    def to_frame(self) -> "pl.DataFrame":
        """Every prediction in a row."""
        import polars as pl

        rows = [
            {
                "kind": comparison.kind,
                "demands": str(comparison.demands),
                "setting": str(comparison.setting),
                "scheduler": comparison.scheduler,
                **{key: value for key, value in asdict(cell).items() if key != "range"},
                "low": cell.range[0],
                "high": cell.range[1],
            }
            for comparison in self.comparisons
            for cell in comparison.cells
        ]
        frames = [pl.DataFrame(rows)] if rows else []
        frames += [] if self.xen is None else [self.xen.to_frame()]
        return pl.concat(frames, how="diagonal") if frames else pl.DataFrame()
