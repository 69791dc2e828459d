"""The demo: the web server of Cherkasova, Gupta and Vahdat 2007, published and simulated.

Schedulers outside the study are at the end. Every row is loaded as in the study: with 95 % of the highest rate of
requests that its setting serves.
"""

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from vcpulab.results.run import Run, run
from vcpulab.results.statistics import Interval
from vcpulab.scenario.scenario import Scenario
from vcpulab.show.plots import PUBLISHED
from vcpulab_evidence.studies import study
from vcpulab_evidence.studies.cells import Cell
from vcpulab_evidence.studies.cherkasova2007.cases import CLIENT, nearly_saturated
from vcpulab_evidence.studies.cherkasova2007.estimates import case_of
from vcpulab_evidence.studies.window import Window

STUDY = study("cherkasova2007")
TITLE = "Web server: published and simulated"
OTHERS = (("credit", "xen3.0.3"), ("credit", "xen4.17"), ("round-robin", "v1"))
"""Schedulers that the study does not have in this experiment, and one that Xen never had."""


class Column(NamedTuple):
    """A column of the comparison: its heading, its name in the published cells, and its address in a run."""

    heading: str
    published: str
    address: str


COLUMNS = (
    Column("requests/s", "web_throughput", "httperf.throughput"),
    Column("Dom0, % of the CPU", "cpu_util@dom0", "dom0.gotten"),
    Column("Dom1, % of the CPU", "cpu_util@dom1", "dom1.gotten"),
    Column("Dom0 executions/s", "ex_per_sec@dom0", "dom0.executions"),
    Column("Dom0 I/O per execution", "io_count_per_ex@dom0", "dom0.io_per_execution"),
)
HEADINGS = ["scheduler", *(column.heading for column in COLUMNS)]


def scenarios() -> dict[str, Scenario]:
    """The experiment under each scheduler; the schedulers of the study are first.

    Examples:
        >>> list(scenarios())[::4]
        ['bvt C=50 ms', 'sedf-wc period=100 ms', 'round-robin v1']
    """
    template = _template()
    cases = {case.key: case for case in STUDY.cases()}
    changes = {_label(cell): cases[case_of(cell)].changes for cell in _cells()}
    changes |= {f"{name} {tree}": {"host.scheduler": name, "host.generation": tree} for name, tree in OTHERS}
    return {label: template.change(changed) for label, changed in changes.items()}


def _template() -> Scenario:
    text = STUDY.folder.joinpath("web.toml").read_text(encoding="utf-8")
    changes = {"run.duration": "10s", "run.warmup": "2s", "run.sample": "1s", "run.replications": 5}
    return Scenario.from_toml(text, "web.toml").change(STUDY.calibration.changes("web.toml") | changes)


def _cells() -> list[Cell]:
    """The published cells of this experiment: Tables 1 and 2."""
    return [cell for cell in STUDY.seen if cell.source in ("Table 1", "Table 2") and cell.number is not None]


def _label(cell: Cell) -> str:
    """The label of a cell's row."""
    config = cell.config.partition(";")[0].replace("C_ms=", "C=").replace("period_ms=", "period=")
    return f"{cell.scheduler} {config} ms"


def loaded(scenarios: Mapping[str, Scenario], *, jobs: int = 0) -> dict[str, Scenario]:
    """The scenarios with the load of the study, found by trials: the same load for all replications of a row."""

    def trial(scenario: Scenario) -> Window:
        short = scenario.change({"run.warmup": "0s", "run.sample": "100ms", "run.replications": 1})
        return Window(run(short, jobs=1, waits=False), CLIENT)

    with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        loaded_scenarios = pool.map(lambda scenario: nearly_saturated(scenario, trial), scenarios.values())
        return dict(zip(scenarios, loaded_scenarios, strict=True))


def comparison(runs: Mapping[str, Run]) -> list[list[str]]:
    """A row for each run, followed by the published row, if any."""
    rows = []
    published = _published()
    for label, ran in runs.items():
        rows.append([label, *(_interval_text(ran.get(column.address)) for column in COLUMNS)])
        if label in published:
            values = (published[label].get(column.published) for column in COLUMNS)
            rows.append([label + PUBLISHED, *("–" if value is None else f"{value:g}" for value in values)])
    return rows


def _interval_text(interval: Interval | None) -> str:
    return "–" if interval is None else str(interval)


def _published() -> dict[str, dict[str, float]]:
    """Published values by row and metric."""
    rows: dict[str, dict[str, float]] = {}
    for cell in _cells():
        rows.setdefault(_label(cell), {})[cell.metric] = cell.number or 0.0
    return rows


def write(path: Path, runs: Mapping[str, Run]) -> None:
    """Writes the report: the comparison as a table and as charts, and each run in detail. Needs the extra `report`."""
    from vcpulab.show import html, report
    from vcpulab.show.document import Heading, Lines
    from vcpulab.show.table import Table

    addresses = {column.published: column.address for column in COLUMNS}
    published = {
        label: {addresses[metric]: value for metric, value in row.items()} for label, row in _published().items()
    }
    caption = "Simulated: mean ± 95 % confidence interval. Published: as printed in the study."
    compared = Table(caption, HEADINGS, comparison(runs))
    html.write(path, TITLE, [Lines([_lead()]), Heading("Comparison"), compared, *report.blocks(runs, published)])


def _lead() -> str:
    scenario = _template()
    return (
        "The experiment of Cherkasova, Gupta and Vahdat 2007 (HPL-2007-25): one CPU shared by Dom0, which drives the "
        "NIC, and Dom1 with a web server that serves files of 10 KB; equal weights. Each row is offered 95 % "
        f"of the highest rate of requests that it serves. {scenario.replications} replications of "
        f"{scenario.duration_ns / 1e9:g} s each, seed {scenario.seed}. Under each row of the study stands what was "
        "published of it. The study has no such row for Credit or round-robin."
    )
