"""Published cells beside what the simulation says, and how well they agree."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from typing import NamedTuple

from vcpulab.results.statistics import Interval, kendall_tau, mape
from vcpulab.studies.cells import COLUMNS, Cell, Foretold
from vcpulab.studies.definition import Study
from vcpulab.studies.results import Missing, Results


class Prediction(NamedTuple):
    """A published cell and what the simulation says in its place."""

    cell: Cell
    estimate: Interval | None
    role: str
    """`fitted`: a constant was fitted on it; `predicted`: none was, but it was in sight; `blind`: nobody knew it."""
    reason: str
    """Why there is no estimate; empty: there is one."""
    doubt: str = ""
    """Why it does not count in scores; empty: it does."""
    half_width: float | None = None
    """Half the width of the published 95 % confidence interval, if there is one."""
    foretold: Foretold | None = None
    """What was said of a blind cell before it was known."""

    @property
    def error(self) -> float | None:
        """Of the simulated value, % of the published one."""
        published = self.cell.number
        return 100 * (self.estimate.mean / published - 1) if self.estimate and published else None


def predictions(study: Study, results: Results) -> list[Prediction]:
    """One for each cell of the study."""
    found = []
    # A table's intervals stand in another table.
    widths = {cell.key[:9]: cell.number for cell in study.cells if cell.stat == "ci95"}
    blind = {cell.key for cell in study.blind}
    for cell in study.cells:
        try:
            said = study.estimate(cell, results)
        except Missing as missing:
            said = str(missing)
        role = "blind" if cell.key in blind else "fitted" if study.calibration.fitted_on(cell) else "predicted"
        estimate, reason = (said, "") if isinstance(said, Interval) else (None, said)
        width = widths.get(cell.key[:9]) if cell.stat == "mean" else None
        foretold = study.foretold.get(cell.key)
        found.append(Prediction(cell, estimate, role, reason, study.doubtful(cell), width, foretold))
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


ROLES = ("predicted", "fitted", "blind", "blind, since")
"""Of blind cells what was said before they were known, and what this version says since."""


class Score(NamedTuple):
    """How well one metric of one table agrees."""

    table: str
    metric: str
    cells: int
    tau: float | None
    """Kendall's tau over the cells with a published value."""
    mape: float | None
    """Mean absolute error, %."""
    within: str
    """How many of those with a published interval have the simulated mean in it, of how many; empty: none has one."""
    role: str
    """Which cells these are, of `ROLES`."""


class _Pair(NamedTuple):
    published: float
    half_width: float | None
    simulated: float


def scores(predicted: Sequence[Prediction]) -> list[Score]:
    """For each metric of each table; cells of each role apart, each with ranks of their own."""
    groups: dict[tuple[str, str], dict[str, list[_Pair]]] = {}
    for row in predicted:
        number = row.cell.number
        if row.cell.stat == "mean" and number is not None and not row.doubt:
            for role, simulated in _said(row):
                roles = groups.setdefault((row.cell.source, row.cell.metric), {role: [] for role in ROLES})
                roles[role].append(_Pair(number, row.half_width, simulated))
    return [
        Score(table, metric, len(pairs), *_agreement(pairs), role)
        for (table, metric), roles in groups.items()
        for role, pairs in roles.items()
        if pairs
    ]


def _said(row: Prediction) -> Iterator[tuple[str, float]]:
    if row.foretold is not None:
        yield "blind", row.foretold.value
    if row.estimate is not None:
        yield ("blind, since" if row.role == "blind" else row.role), row.estimate.mean


def _agreement(pairs: Sequence[_Pair]) -> tuple[float | None, float | None, str]:
    published, simulated = [pair.published for pair in pairs], [pair.simulated for pair in pairs]
    known = [(pair, pair.half_width) for pair in pairs if pair.half_width is not None]
    hits = sum(abs(pair.simulated - pair.published) <= width for pair, width in known)
    return kendall_tau(published, simulated), mape(published, simulated), f"{hits} of {len(known)}" if known else ""
