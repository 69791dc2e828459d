"""Published cells beside their simulated values, and scores of their agreement."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from typing import NamedTuple

from vcpulab.results.statistics import Interval, kendall_tau, mape
from vcpulab_evidence.studies.cells import COLUMNS, Cell, Foretold
from vcpulab_evidence.studies.definition import Study
from vcpulab_evidence.studies.results import Missing, Results


class Prediction(NamedTuple):
    """A published cell and its simulated value."""

    cell: Cell
    estimate: Interval | None
    role: str
    """`fitted`: a constant was fitted on the cell; `predicted`: not fitted, but known; `blind`: unknown to all."""
    reason: str
    """The reason for a missing estimate; empty: the estimate exists."""
    doubt: str = ""
    """The reason why the cell does not count in scores; empty: it counts."""
    half_width: float | None = None
    """Half the width of the published 95 % confidence interval, if any."""
    foretold: Foretold | None = None
    """The prediction of a blind cell before it was known."""

    @property
    def error(self) -> float | None:
        """The error of the simulated value, % of the published value."""
        published = self.cell.number
        return 100 * (self.estimate.mean / published - 1) if self.estimate and published else None


def predictions(study: Study, results: Results) -> list[Prediction]:
    """A prediction for each cell of the study."""
    rows = []
    # Intervals of a table's values are in another table.
    widths = {cell.key[:9]: cell.number for cell in study.cells if cell.stat == "ci95"}
    blind = {cell.key for cell in study.blind}
    for cell in study.cells:
        try:
            estimated = study.estimate(cell, results)
        except Missing as missing:
            estimated = str(missing)
        role = "blind" if cell.key in blind else "fitted" if study.calibration.fitted_on(cell) else "predicted"
        estimate, reason = (estimated, "") if isinstance(estimated, Interval) else (None, estimated)
        width = widths.get(cell.key[:9]) if cell.stat == "mean" else None
        foretold = study.foretold.get(cell.key)
        rows.append(Prediction(cell, estimate, role, reason, study.doubtful(cell), width, foretold))
    return rows


def to_csv(predicted: Iterable[Prediction]) -> str:
    """CSV in the layout of the published cells, followed by `ci_lo`, `ci_hi` and `role`."""
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


ROLES = ("predicted", "fitted", "blind", "blind, since")
"""The roles of cells in scores; blind cells have two: the early prediction, and that of this version (`since`)."""


class Score(NamedTuple):
    """The agreement of a metric of a table."""

    table: str
    metric: str
    cells: int
    tau: float | None
    """Kendall's tau over the cells with a published value."""
    mape: float | None
    """Mean absolute error, %."""
    within: str
    """The number of simulated means in the published intervals, of the number of intervals; empty: none."""
    role: str
    """The role of the cells, one of `ROLES`."""


class _Pair(NamedTuple):
    published: float
    half_width: float | None
    simulated: float


def scores(predicted: Sequence[Prediction]) -> list[Score]:
    """The scores of each metric of each table, separate for each role."""
    groups: dict[tuple[str, str], dict[str, list[_Pair]]] = {}
    for row in predicted:
        number = row.cell.number
        if row.cell.stat == "mean" and number is not None and not row.doubt:
            for role, simulated in _simulated_by_role(row):
                roles = groups.setdefault((row.cell.source, row.cell.metric), {role: [] for role in ROLES})
                roles[role].append(_Pair(number, row.half_width, simulated))
    return [
        Score(table, metric, len(pairs), *_agreement(pairs), role)
        for (table, metric), roles in groups.items()
        for role, pairs in roles.items()
        if pairs
    ]


def _simulated_by_role(row: Prediction) -> Iterator[tuple[str, float]]:
    if row.foretold is not None:
        yield "blind", row.foretold.value
    if row.estimate is not None:
        yield ("blind, since" if row.role == "blind" else row.role), row.estimate.mean


def _agreement(pairs: Sequence[_Pair]) -> tuple[float | None, float | None, str]:
    published, simulated = [pair.published for pair in pairs], [pair.simulated for pair in pairs]
    bounded = [(pair, pair.half_width) for pair in pairs if pair.half_width is not None]
    hits = sum(abs(pair.simulated - pair.published) <= width for pair, width in bounded)
    return kendall_tau(published, simulated), mape(published, simulated), f"{hits} of {len(bounded)}" if bounded else ""
