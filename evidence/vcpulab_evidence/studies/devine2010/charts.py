"""Devine's tables as charts: by user load for each configuration, and for experiments that were not run."""

from collections.abc import Iterable, Sequence

from vcpulab_evidence.studies.cells import Cell
from vcpulab_evidence.studies.charts import Chart, Mark, curves, marks, published
from vcpulab_evidence.studies.devine2010 import cases as c
from vcpulab_evidence.studies.devine2010.analysis import configs
from vcpulab_evidence.studies.results import Results

_LOADS = {c.WEB: c.WEB_USERS, c.MOSS: c.MOSS_USERS, c.EXCHANGE: c.EXCHANGE_USERS, c.VPS: c.WEB_USERS}
_SHOWN = {"credit": "Credit", "sedf": "SEDF"}


def charts(results: Results, cells: Sequence[Cell]) -> list[Chart]:
    """A chart for each table, and for each experiment without a table."""
    hollow = "Hollow: published. His intervals are ± 20 to 40 % of most values (Table 5.3)."
    web = _charts(
        results,
        cells,
        c.WEB,
        [
            ("throughput", "req/s", "Table 5.1: throughput of the web application", hollow + " Divided as he divided."),
            ("response_time", "ms", "Table 5.4: response time of the web application", hollow),
            ("running@apache", "% of 4 CPUs", "Table 5.7: Apache running", hollow),
            ("running@nfs", "% of 4 CPUs", "Table 5.8: NFS running", hollow),
            ("running@mysql", "% of 4 CPUs", "Table 5.9: MySQL running", hollow),
            ("running@dom0", "% of 4 CPUs", "Table 5.10: Dom0 running", hollow),
            ("blocked@dom0", "% of 4 CPUs", "Table 5.10: Dom0 blocked", hollow),
        ],
    )
    moss = _charts(
        results,
        cells,
        c.MOSS,
        [
            ("throughput", "req/s", "Table 5.11: throughput of MOSS", "Hollow: published. Divided as he divided."),
            ("response_time", "ms", "Table 5.14: response time of MOSS", "Hollow: published."),
            ("running@moss", "% of 4 CPUs", "Table 5.17: MOSS running", "Values near 0: logs of idle domains (D-I12)."),
            (
                "running@mssql",
                "% of 4 CPUs",
                "Table 5.18: MSSQL running",
                "Values near 0: logs of idle domains (D-I12).",
            ),
            ("running@dom0", "% of 4 CPUs", "Table 5.19: Dom0 running", "Hollow: published."),
        ],
    )
    planned = "He has no figures: the study was planned, or its results were discarded."
    planned_charts = [
        *_charts(results, cells, c.VPS, [("throughput", "req/s", "VPS hosting: throughput of four guests", planned)]),
        *_charts(results, cells, c.VPS, [("response_time", "ms", "VPS hosting: response time", planned)]),
        *_charts(results, cells, c.EXCHANGE, [("response_time", "ms", "Exchange: latency of a task", planned)]),
    ]
    return [*web, *moss, *planned_charts]


def _charts(
    results: Results, cells: Sequence[Cell], experiment: str, wanted: Iterable[tuple[str, str, str, str]]
) -> list[Chart]:
    figures = []
    for metric, unit, title, text in wanted:
        drawn = [mark for config in configs(experiment) for mark in _curve(results, cells, experiment, config, metric)]
        if any(not mark.published for mark in drawn):
            figures.append(Chart(title, curves(drawn, "users", unit, title), text, experiment))
    return figures


def _curve(results: Results, cells: Sequence[Cell], experiment: str, config: str, metric: str) -> Sequence[Mark]:
    panel = _SHOWN[config.split("-", 1)[0]]
    simulated = marks(
        results,
        panel,
        config,
        {str(users): c.name(experiment, config, users) for users in _LOADS[experiment]},
        metric,
    )
    printed = [
        published(panel, config, cell.load.removeprefix("users="), cell.number)
        for cell in cells
        if (cell.experiment, cell.config, cell.metric, cell.stat) == (experiment, config, metric, "mean")
        and cell.source.startswith("Table")
        and cell.number is not None
    ]
    return [*simulated, *printed] if simulated else []
