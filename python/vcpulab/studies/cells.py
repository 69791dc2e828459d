"""Published numbers: the rows of a study's `published.csv`, and of `withheld.csv`, whose values are not public."""

import csv
from collections.abc import Iterable
from importlib.resources.abc import Traversable
from typing import NamedTuple


class Cell(NamedTuple):
    """One published number, or the key of one that is not public."""

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
    """As printed; empty: not public."""
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


def read_cells(file: Traversable) -> Iterable[Cell]:
    """The rows of a table of published numbers."""
    rows = csv.DictReader(file.read_text(encoding="utf-8").splitlines())
    return (Cell(**{column: row[column] for column in COLUMNS}) for row in rows)
