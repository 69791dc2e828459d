"""The answer of `vcpulab.sweep`."""

from dataclasses import dataclass
from typing import Any

import polars as pl

from vcpulab.results.addresses import Address
from vcpulab.results.statistics import number
from vcpulab.show.answer import Answer
from vcpulab.show.document import Document, Part
from vcpulab.show.table import Table
from vcpulab.sweeps.plan import Plan
from vcpulab.sweeps.tables import Row

_CELL_CHARS = 60


@dataclass(frozen=True)
class Sweep(Answer):
    """The points of a sweep, with the values of some metrics at each point."""

    plan: Plan
    metrics: tuple[Address, ...]
    rows: tuple[Row, ...]

    def to_frame(self) -> pl.DataFrame:
        """A row for each point: its values, then the mean and half width of each metric, named by its address."""
        columns: dict[str, list[object]] = {"point": [row.point for row in self.rows]}
        for index, path in enumerate(self.plan.paths):
            columns[path] = [row.values[index] for row in self.rows]
        for index, address in enumerate(self.metrics):
            intervals = [row.intervals[index] for row in self.rows]
            columns[address.name] = [None if interval is None else interval.mean for interval in intervals]
            columns[f"{address.name} ±"] = [None if interval is None else interval.half_width for interval in intervals]
        return pl.DataFrame(columns, strict=False)

    def records(self) -> list[dict[str, Any]]:
        """A row for each metric of each point: its values, unit, mean, half width and number of replications.

        `undefined` is the reason for a missing mean.
        """
        return [
            {
                "point": row.point,
                **dict(zip(self.plan.paths, row.values, strict=True)),
                "metric": metric.name,
                "unit": metric.unit,
                "mean": interval and interval.mean,
                "half_width": interval and interval.half_width,
                "n": interval.n if interval else 0,
                "undefined": None if interval else metric.metric.undefined_is,
            }
            for row in self.rows
            for metric, interval in zip(self.metrics, row.intervals, strict=True)
        ]

    def document(self) -> Document:
        """The sweep as a document: a row for each point."""
        rows = [
            [*map(cell, row.values), *("–" if interval is None else str(interval) for interval in row.intervals)]
            for row in self.rows
        ]
        headings = [*self.plan.paths, *(metric.title for metric in self.metrics)]
        return [Part.rows(Table(self.plan.name, headings, rows, len(self.plan.paths)), "point")]


def cell(value: object) -> str:
    """A value as the short text of a table cell."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return number(value)
    text = str(value)
    short = text.partition("\n")[0][:_CELL_CHARS]
    return short if short == text else f"{short} …"
