"""The web-server experiment of Cherkasova, Gupta and Vahdat 2007, run and set beside what they published."""

import time
from collections.abc import Mapping
from html import escape
from os import PathLike
from pathlib import Path
from typing import Annotated, NamedTuple

from cyclopts import Parameter

from vcpulab.cli import terminal, views
from vcpulab.cli.options import Jobs, command
from vcpulab.results.run import Run
from vcpulab.results.run import run as run_scenario
from vcpulab.results.statistics import Interval
from vcpulab.scenario.scenario import Scenario
from vcpulab.studies import study

STUDY = study("cherkasova2007")
TITLE = "Web server under three schedulers"
SCHEDULERS = (("credit", "xen3.0.3"), ("credit", "xen4.17"), ("round-robin", "v1"))


class Metric(NamedTuple):
    """A column of the comparison: what it is here and what it is called in the published cells."""

    heading: str
    published: str
    address: str


METRICS = (
    Metric("requests/s", "web_throughput", "httperf.throughput"),
    Metric("Dom0, % of the CPU", "cpu_util@dom0", "dom0.gotten"),
    Metric("Dom1, % of the CPU", "cpu_util@dom1", "dom1.gotten"),
    Metric("Dom0 executions/s", "ex_per_sec@dom0", "dom0.executions"),
    Metric("Dom0 I/O per execution", "io_count_per_ex@dom0", "dom0.io_per_execution"),
)


def scenarios() -> dict[str, Scenario]:
    """The experiment under each scheduler.

    Examples:
        >>> list(scenarios())
        ['credit xen3.0.3', 'credit xen4.17', 'round-robin v1']
    """
    template = _template()
    return {
        f"{name} {generation}": template.change({"host.scheduler": name, "host.generation": generation})
        for name, generation in SCHEDULERS
    }


def _template() -> Scenario:
    text = STUDY.folder.joinpath("web.toml").read_text(encoding="utf-8")
    changes = {"run.duration": "10s", "run.warmup": "2s", "run.sample": "1s", "run.replications": 5}
    return Scenario.from_toml(text, "web.toml").change(STUDY.calibration.changes("web.toml") | changes)


def run(out: str | PathLike[str], *, jobs: int = 0) -> Path:
    """Runs the experiment, prints the comparison, and writes the report to `out`.

    Returns:
        The report's path.
    """
    from vcpulab.show import report

    runs: dict[str, Run] = {}
    for label, scenario in scenarios().items():
        with terminal.progress(f"running under {label}") as progress:
            runs[label] = run_scenario(scenario, jobs=jobs, decisions=True, progress=progress)
    rows = comparison(runs)
    headings = ["scheduler", *(metric.heading for metric in METRICS)]
    views.print_table(f"{TITLE} (5 replications; published rows are of other schedulers)", headings, rows)
    caption = "Measured here: mean ± 95 % confidence interval. Published: other schedulers, as printed in the study."
    path = Path(out) / "report.html"
    report.write(
        path,
        TITLE,
        runs,
        lead=_lead(),
        first=report.section("Comparison", [report.table(headings, rows, caption)]),
        published=_published_bars(),
    )
    return path


@command("demo", "vcpulab demo --out out/demo")
def demo(
    *,
    out: Annotated[Path, Parameter(name=["--out", "-o"], help="Directory for report.html.")] = Path("out/demo"),
    jobs: Jobs = 0,
) -> None:
    """Repeat the web-server experiment of Cherkasova, Gupta and Vahdat 2007 and compare."""
    print(f"report: {run(out, jobs=jobs)}")


def wall_time() -> dict[str, float]:
    """Seconds by the clock on the wall for each simulated second of the experiment, on one processor."""
    figures = {}
    for label, scenario in scenarios().items():
        one = scenario.with_run(replications=1)
        start = time.perf_counter()
        run_scenario(one, jobs=1)
        simulated = (one.warmup_ns + one.duration_ns) / 1e9
        figures[f"demo_wall_s_per_simulated_s_{label.replace(' ', '_')}"] = (time.perf_counter() - start) / simulated
    return figures


def comparison(runs: Mapping[str, Run]) -> list[list[str]]:
    """A row for each run, then one for each published configuration."""
    rows = [[label, *(_cell(run.get(metric.address)) for metric in METRICS)] for label, run in runs.items()]
    for label, cells in _published().items():
        values = (cells.get(metric.published) for metric in METRICS)
        rows.append([label, *("–" if value is None else f"{value:g}" for value in values)])
    return rows


def _cell(interval: Interval | None) -> str:
    return "–" if interval is None else str(interval)


def _published() -> dict[str, dict[str, float]]:
    """Configuration, marked as published, to metric to value."""
    cells: dict[str, dict[str, float]] = {}
    for cell in STUDY.cells:
        if cell.source in ("Table 1", "Table 2") and cell.number is not None:
            config = cell.config.partition(";")[0].replace("C_ms=", "C=").replace("period_ms=", "period=")
            cells.setdefault(f"{cell.scheduler} {config} ms (published)", {})[cell.metric] = cell.number
    return cells


def _published_bars() -> dict[str, dict[str, float]]:
    """The published cells, for the charts."""
    addresses = {metric.published: metric.address for metric in METRICS}
    return {
        label: {addresses[metric]: value for metric, value in cells.items()} for label, cells in _published().items()
    }


def _lead() -> str:
    scenario = _template()
    text = (
        "The experiment of Cherkasova, Gupta and Vahdat 2007 (HPL-2007-25): one CPU shared by Dom0, which drives the "
        "network card, and Dom1 with a web server that serves files of 10 KB as fast as it can; equal weights. "
        f"{scenario.replications} replications of {scenario.duration_ns / 1e9:g} s each, seed {scenario.seed}. "
        "The study has no such figures for Credit or round-robin: its rows, for other schedulers on the machine that "
        "is modelled here, stand beside ours for orientation."
    )
    return f"<p>{escape(text)}</p>"
