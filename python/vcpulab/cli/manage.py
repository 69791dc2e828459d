"""`vcpulab manage`: a workload manager on top of a scheduler, and how steady its hand is."""

import json
import re
from html import escape
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from vcpulab.advice.managing import CONTROLLERS, Controller, Managed, Settings, manage
from vcpulab.advice.managing.controller import load as load_controller
from vcpulab.advice.managing.manager import STABILITY
from vcpulab.cli import files, views
from vcpulab.cli.usage import examples
from vcpulab.errors import RequestError
from vcpulab.plugins import PluginError
from vcpulab.results.figures import APP_FIGURES
from vcpulab.scenario import settings
from vcpulab.scenario.scenario import Scenario
from vcpulab.show import report

_SPAN = re.compile(r"(?P<number>[0-9]+(\.[0-9]+)?)\s*(?P<unit>ms|s|min|)")
_SECONDS = {"ms": 1e-3, "s": 1.0, "": 1.0, "min": 60.0}


def register(app: App) -> None:
    """Adds the command to a command line."""
    app.command(
        manage_,
        name="manage",
        help_epilogue=examples(
            "vcpulab manage web.toml --domain batch --interval 1s",
            "vcpulab manage web.toml --domain batch -s sedf -s credit --interval 1s",
        ),
    )


def manage_(
    file: Path,
    /,
    *,
    domain: Annotated[tuple[str, ...], Parameter(name=["--domain", "-d"], negative=())],
    controller: str = "proportional",
    interval: str = "5s",
    target: float = 80.0,
    start: float | None = None,
    scheduler: Annotated[tuple[str, ...], Parameter(name=["--scheduler", "-s"], negative=())] = (),
    replications: int | None = None,
    report: Annotated[Path | None, Parameter(name="--report")] = None,
    format: Literal["table", "json", "csv"] = "table",  # noqa: A002 - the option's name
) -> None:
    """Let a workload manager set caps or reservations every few seconds, by what domains used; say how steady it is.

    Args:
        file: Scenario file.
        domain: A domain to manage; any number of times.
        controller: proportional, integral, predictive; FILE.py:CLASS, or one that an installed package offers.
        interval: Between two decisions.
        target: Part of its allocation that a domain should use, %.
        start: Allocation in the first interval, % of a pCPU; as much as the domain can use if left out.
        scheduler: Under this scheduler instead of the scenario's, as NAME or NAME:GENERATION; several are compared.
        replications: Instead of the scenario's.
        report: Also write a page with charts to this file.
        format: How to print; as CSV every decision.
    """
    scenario = files.with_run(files.load(file), replications=replications)
    chosen = Settings(_controller(controller), domain, _seconds(interval), target / 100, start)
    variants = {name: _under(scenario, name) for name in scheduler} or {_own(scenario): scenario}
    runs: dict[str, Managed] = {}
    for index, (label, variant) in enumerate(variants.items()):
        with views.progress(f"managing under {label} ({index + 1} of {len(variants)})") as progress:
            runs[label] = manage(variant, chosen, progress=progress)
    if format == "json":
        print(json.dumps({label: _described(managed) for label, managed in runs.items()}, indent=2))
    elif format == "csv":
        print(_decisions(runs), end="")
    else:
        _show(runs)
    if report is not None:
        _write_report(report, scenario, controller, runs)
        views.say(f"written to {report}")


def _controller(name: str) -> type[Controller]:
    if name in CONTROLLERS:
        return CONTROLLERS[name]
    if ":" not in name:
        try:
            return load_controller(name)
        except PluginError as error:
            raise PluginError(f"{error}\n  hint: the built-in ones are {', '.join(CONTROLLERS)}") from None
    return load_controller(name)


def _seconds(text: str) -> float:
    match = _SPAN.fullmatch(text.strip())
    if match is None:
        raise RequestError(f"--interval: found `{text}`; allowed: a time span such as 5s or 500ms")
    return float(match["number"]) * _SECONDS[match["unit"]]


def _own(scenario: Scenario) -> str:
    host = scenario.to_dict()["host"]
    return f"{host['scheduler']}:{host['generation']}"


def _under(scenario: Scenario, name: str) -> Scenario:
    scheduler, _, generation = name.partition(":")
    words = [f"host.scheduler={scheduler}", *([f"host.generation={generation}"] if generation else [])]
    changed = settings.apply(scenario, words, f"--scheduler {name}:")
    for path in changed.left_out:
        views.warn(f"under {name}: {path} is left out: it does not have it")
    return changed.scenario


def _described(managed: Managed) -> dict[str, object]:
    return {
        "stability": managed.stability().to_dicts(),
        "figures": managed.run.summary().filter(of="app").to_dicts(),
        "decisions": managed.decisions.to_dicts(),
    }


def _decisions(runs: dict[str, Managed]) -> str:
    import polars as pl

    labelled = (managed.decisions.select(pl.lit(label).alias("scheduler"), pl.all()) for label, managed in runs.items())
    return pl.concat(labelled).write_csv()


def _grids(runs: dict[str, Managed]) -> list[tuple[str, list[str], list[list[str]]]]:
    """Caption, headings and rows of each table."""
    steadiness, served = [], []
    for label, managed in runs.items():
        headings, rows = report.grid_of(managed.stability(), "domain", STABILITY)
        steadiness += [[label, *row] for row in rows]
        app_headings, rows = report.grid_of(managed.run.summary(), "app", APP_FIGURES)
        served += [[label, *row] for row in rows]
    return [
        ("How steady the manager's hand was", ["scheduler", *headings], steadiness),
        ("What was served", ["scheduler", *app_headings], served),
    ]


def _show(runs: dict[str, Managed]) -> None:
    for caption, headings, rows in _grids(runs):
        views.print_table(caption, [heading.replace(", ", "\n", 1) for heading in headings], rows, text_columns=2)


def _write_report(path: Path, scenario: Scenario, controller: str, runs: dict[str, Managed]) -> None:
    from vcpulab.show import charts as plots

    chosen = next(iter(runs.values())).settings
    lead = (
        f"<p>The {escape(controller)} controller sets the limits of {escape(', '.join(chosen.domains))} every "
        f"{chosen.interval_s:g} s, so that each uses {100 * chosen.target:g} % of its allocation.</p>"
    )
    charts = [
        plots.allocations(managed.decisions.filter(replication=0), f"{label}, replication 0")
        for label, managed in runs.items()
    ]
    hint = (
        "<p>Use above the allocation, or below it while the domain waits, is the scheduler's allocation error. The "
        "controller takes it for a change of demand, and answers it.</p>"
    )
    body = report.section("Allocation and use", [hint, *map(report.figure, charts)])
    tables = [report.table(headings, rows, caption) for caption, headings, rows in _grids(runs)]
    body += report.section("How steady, and what was served", tables)
    body += report.details({label: managed.run for label, managed in runs.items()})
    report.write_page(path, f"A workload manager: {scenario.name}", lead, body)
