"""Published numbers: the rows of a study's `published.csv`, and of `blind.csv`.

Nobody who made the model, and no fit, knew the numbers in `blind.csv` before the predictions in `foretold.csv` were
written.
"""

import csv
from collections.abc import Iterable, Mapping
from importlib.resources.abc import Traversable
from typing import NamedTuple


class Cell(NamedTuple):
    """A published number."""

    study: str
    experiment: str
    scheduler: str
    generation: str
    config: str
    workload: str
    load: str
    metric: str
    unit: str
    value: str
    """The value as printed."""
    stat: str
    source: str
    note: str

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that identify the cell."""
        return (*self[:9], self.stat, self.source)

    @property
    def number(self) -> float | None:
        """The value as a number."""
        return float(self.value) if self.value else None


COLUMNS = Cell._fields


class Foretold(NamedTuple):
    """The prediction of a published number before the number was known."""

    value: float
    low: float
    """The low end of the 95 % confidence interval; `high`: the other end."""
    high: float


def read_cells(file: Traversable) -> Iterable[Cell]:
    """The rows of a table of published numbers."""
    rows = csv.DictReader(file.read_text(encoding="utf-8").splitlines())
    return (Cell(**{column: row[column] for column in COLUMNS}) for row in rows)


def read_foretold(file: Traversable) -> Mapping[tuple[str, ...], Foretold]:
    """The predictions of cells before they were known, by the keys of the cells."""
    rows = csv.DictReader(file.read_text(encoding="utf-8").splitlines())
    return {
        Cell(**{column: row[column] for column in COLUMNS}).key: Foretold(
            float(row["value"]), float(row["ci_lo"]), float(row["ci_hi"])
        )
        for row in rows
        if row["value"]
    }
