"""Published numbers: the rows of a study's `published.csv`, and of `blind.csv`.

Those of `blind.csv` were not known to anybody who made the model, nor to what fitted it, until after `foretold.csv` was
written, which has what it said of them.
"""

import csv
from collections.abc import Iterable, Mapping
from importlib.resources.abc import Traversable
from typing import NamedTuple


class Cell(NamedTuple):
    """One published number."""

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
    """As printed."""
    stat: str
    source: str
    note: str

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that tell it from every other cell."""
        return (*self[:9], self.stat, self.source)

    @property
    def number(self) -> float | None:
        """Its value."""
        return float(self.value) if self.value else None


COLUMNS = Cell._fields


class Foretold(NamedTuple):
    """What was said of a published number that was not known."""

    value: float
    low: float
    """Ends of its 95 % confidence interval."""
    high: float


def read_cells(file: Traversable) -> Iterable[Cell]:
    """The rows of a table of published numbers."""
    rows = csv.DictReader(file.read_text(encoding="utf-8").splitlines())
    return (Cell(**{column: row[column] for column in COLUMNS}) for row in rows)


def read_foretold(file: Traversable) -> Mapping[tuple[str, ...], Foretold]:
    """What was said of cells before they were known, by their keys."""
    rows = csv.DictReader(file.read_text(encoding="utf-8").splitlines())
    return {
        Cell(**{column: row[column] for column in COLUMNS}).key: Foretold(
            float(row["value"]), float(row["ci_lo"]), float(row["ci_hi"])
        )
        for row in rows
        if row["value"]
    }
