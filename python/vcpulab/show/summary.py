"""The summary of a run as tables."""

from collections.abc import Iterator, Sequence

import polars as pl

from vcpulab.results.addresses import apps
from vcpulab.results.metrics import APP, DOMAIN, PCPU, Metric
from vcpulab.results.run import Run
from vcpulab.results.statistics import Interval
from vcpulab.show.table import Table

_KINDS = (
    ("domain", "Domains", DOMAIN),
    ("app", "Applications", APP),
    ("pcpu", "pCPUs", PCPU),
)


def summary(run: Run) -> Iterator[Table]:
    """A table for each kind of thing in the summary of a run; names are as in addresses."""
    kinds = {app.name: app.kind for app in apps(run.scenario)}
    for kind, title, metrics in _KINDS:
        table = table_of(run.summary().filter(of=kind), title, kind, metrics)
        if kind == "app":
            named = [[f"{name} ({kinds[name]})", *cells] for name, *cells in table.rows]
            table = Table(table.title, table.headings, named)
        yield table


def table_of(summary: pl.DataFrame, title: str, heading: str, metrics: Sequence[Metric]) -> Table:
    """The summary of things of one kind as a table, with a row for each thing."""
    rows = []
    for (name,), values in summary.group_by(["thing"], maintain_order=True):
        # A domain without a device has no metrics of devices.
        cells = {
            row["metric"]: str(Interval(row["mean"], row["half_width"], row["n"]))
            for row in values.iter_rows(named=True)
            if row["mean"] is not None
        }
        rows.append([str(name), *(cells.get(metric.name, "–") for metric in metrics)])
    return Table(title, [heading, *(f"{metric.name.replace('_', ' ')}, {metric.unit}" for metric in metrics)], rows)
