"""Published cells beside what the simulation says, and how well they agree."""

import csv
from collections.abc import Iterable, Sequence
from io import StringIO
from typing import NamedTuple

from vcpulab.figures import Interval
from vcpulab.statistics import kendall_tau, mape
from vcpulab.studies.results import Missing, Results
from vcpulab.studies.study import COLUMNS, Cell, Study


class Prediction(NamedTuple):
    """A published cell and what the simulation says in its place."""

    cell: Cell
    estimate: Interval | None
    role: str
    """`fitted`: a constant was fitted on it; `predicted`."""
    reason: str
    """Why there is no estimate; empty: there is one."""

    @property
    def error(self) -> float | None:
        """Of the simulated value, % of the published one."""
        published = self.cell.number
        return 100 * (self.estimate.mean / published - 1) if self.estimate and published else None


def predictions(study: Study, results: Results) -> list[Prediction]:
    """One for each cell of the study, public or not."""
    found = []
    for cell in study.cells:
        try:
            said = study.estimate(cell, results)
        except Missing as missing:
            said = str(missing)
        role = "fitted" if cell.value and study.calibration.fitted_on(cell) else "predicted"
        estimate, reason = (said, "") if isinstance(said, Interval) else (None, said)
        found.append(Prediction(cell, estimate, role, reason))
    return found


def to_csv(predicted: Iterable[Prediction]) -> str:
    """In the layout of the published cells, with `ci_lo`, `ci_hi` and `role` after them."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*COLUMNS, "ci_lo", "ci_hi", "role"])
    for row in predicted:
        value = low = high = ""
        if row.estimate is not None:
            half = row.estimate.half_width or 0.0
            value, low, high = (
                f"{x:.6g}" for x in (row.estimate.mean, row.estimate.mean - half, row.estimate.mean + half)
            )
        writer.writerow([*row.cell._replace(value=value, note=row.reason), low, high, row.role])
    return out.getvalue()


class Score(NamedTuple):
    """How well one metric of one table agrees."""

    table: str
    metric: str
    cells: int
    tau: float | None
    """Kendall's tau over the cells with a published value."""
    mape: float | None
    """Mean absolute error, %."""
    role: str
    """`fitted` or `predicted`: which cells these are."""


def scores(predicted: Sequence[Prediction]) -> list[Score]:
    """For each metric of each table; fitted and predicted cells apart, each with ranks of its own."""
    groups: dict[tuple[str, str], list[Prediction]] = {}
    for row in predicted:
        if row.cell.stat == "mean" and row.cell.number is not None and row.estimate is not None:
            groups.setdefault((row.cell.source, row.cell.metric), []).append(row)
    found = []
    for (table, metric), rows in groups.items():
        for role in ("predicted", "fitted"):
            pairs = [(r.cell.number or 0.0, r.estimate.mean) for r in rows if r.role == role and r.estimate]
            if pairs:
                published, simulated = zip(*pairs, strict=True)
                score = Score(
                    table, metric, len(pairs), kendall_tau(published, simulated), mape(published, simulated), role
                )
                found.append(score)
    return found
