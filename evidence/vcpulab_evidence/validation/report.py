"""The answer of a validation: every prediction beside the recorded value, and the verdicts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcpulab_evidence.validation.xen.agreement import Agreement

if TYPE_CHECKING:
    import polars as pl

NEEDED: Mapping[str, float] = {"share": 1.0, "switches": 1.0, "wait_median": 0.9, "wait_p90": 0.9}
"""The required fraction of predictions within their limits, by metric: of waits, nine threads in ten."""
NEEDED_OF_HOSTS = 0.9
"""The same for hosts with any number of CPUs, where the limit is the noise of two recordings: of all metrics."""
FREE_RUN, WHAT_IF = "free run", "what-if"
"""Predictions of recordings of one CPU: in their own setting, and in another one."""
OWN, ANOTHER = "host, its own run", "host, another run"
"""Predictions of hosts from the demands of the predicted recording, and of another one of the same setting."""


@dataclass(frozen=True)
class Cell:
    """A prediction beside the recorded value."""

    thing: str
    """Thread (`VM/vCPU` or `VM.vCPU`), domain, or `host`."""
    metric: str
    unit: str
    recorded: float
    predicted: float
    range: tuple[float, float]
    """The range of predictions for hosts that differ only by chance."""
    off: float
    off_unit: str
    """`points`, `%` of the recorded value, or the unit of the metric."""
    limit: str
    """The limit of the error."""
    holds: bool
    """Whether the error is within the limit."""
    chance: bool
    """Whether the recorded value is in the range."""
    noise: float | None = None
    """The difference between recordings of one setting, in the unit of the error; `None`: not measured."""

    def row(self) -> dict[str, Any]:
        """The prediction as flat data, with the column `of` for the thing."""
        return {"of" if name == "thing" else name: value for name, value in asdict(self).items()}


@dataclass(frozen=True)
class Comparison:
    """The predictions for one recording."""

    demands: Path
    """The recording with the demands."""
    setting: Path
    """The recording with the setting, which is predicted; in a free run the same."""
    scheduler: str
    cells: Sequence[Cell]
    kind: str
    """`FREE_RUN` or `WHAT_IF`; of hosts with any number of CPUs `OWN` or `ANOTHER`."""

    @property
    def from_own_demands(self) -> bool:
        """`True`: a recording was predicted from its own demands."""
        return self.demands == self.setting

    @property
    def beyond(self) -> Sequence[Cell]:
        """The predictions outside their limits."""
        return [cell for cell in self.cells if not cell.holds]


@dataclass(frozen=True)
class Verdict:
    """The number of predictions of a metric within their limits, and the number needed."""

    kind: str
    metric: str
    within: int
    total: int
    needed: int
    chance: int
    """Number of predictions outside their limits whose recorded value chance alone may explain."""

    @property
    def passed(self) -> bool:
        """Whether enough predictions are within their limits, or differ from the recorded value only by chance."""
        return self.within + self.chance >= self.needed

    def row(self) -> dict[str, Any]:
        """The verdict as flat data, with the column `of` for the total."""
        return {"of" if name == "total" else name: value for name, value in asdict(self).items()} | {
            "passed": self.passed
        }


@dataclass(frozen=True)
class Report:
    """The compared recordings, and the recordings that could not be compared."""

    comparisons: Sequence[Comparison]
    skipped: Mapping[Path, str]
    """Recordings that cannot be run, each with the reason."""
    xen: Agreement | None = None
    """The comparison of recordings of Xen; `comparisons` are of recordings of Linux."""

    @property
    def verdicts(self) -> list[Verdict]:
        """The verdicts by kind and metric."""
        return list(self._verdicts())

    def _verdicts(self) -> Iterator[Verdict]:
        for kind in dict.fromkeys(comparison.kind for comparison in self.comparisons):
            cells = [cell for comparison in self.comparisons if comparison.kind == kind for cell in comparison.cells]
            for metric in dict.fromkeys(cell.metric for cell in cells):
                mine = [cell for cell in cells if cell.metric == metric]
                within = sum(cell.holds for cell in mine)
                chance = sum(cell.chance for cell in mine if not cell.holds)
                fraction = NEEDED_OF_HOSTS if kind in (OWN, ANOTHER) else NEEDED.get(metric, 1.0)
                needed = -int(-len(mine) * fraction // 1)
                yield Verdict(kind, metric, within, len(mine), needed, chance)

    @property
    def passed(self) -> bool:
        """Whether enough predictions of every metric are within their limits."""
        return all(verdict.passed for verdict in self.verdicts) and (self.xen is None or self.xen.passed)

    def to_dict(self) -> dict[str, Any]:
        """The report as data for JSON."""
        return {
            "passed": self.passed,
            "verdicts": [verdict.row() for verdict in self.verdicts],
            "comparisons": [
                {
                    "kind": comparison.kind,
                    "demands": str(comparison.demands),
                    "setting": str(comparison.setting),
                    "scheduler": comparison.scheduler,
                    "cells": [cell.row() for cell in comparison.cells],
                }
                for comparison in self.comparisons
            ],
            "xen": None if self.xen is None else self.xen.to_dict(),
            "skipped": {str(folder): reason for folder, reason in self.skipped.items()},
        }

    def to_frame(self) -> "pl.DataFrame":
        """A row for each prediction."""
        import polars as pl

        rows = [
            {
                "kind": comparison.kind,
                "demands": str(comparison.demands),
                "setting": str(comparison.setting),
                "scheduler": comparison.scheduler,
                **{key: value for key, value in cell.row().items() if key != "range"},
                "low": cell.range[0],
                "high": cell.range[1],
            }
            for comparison in self.comparisons
            for cell in comparison.cells
        ]
        frames = [pl.DataFrame(rows)] if rows else []
        frames += [] if self.xen is None else [self.xen.to_frame()]
        return pl.concat(frames, how="diagonal") if frames else pl.DataFrame()
