"""`vcpulab manage`: a workload manager on top of a scheduler, and the steadiness of its allocations."""

from functools import partial
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from vcpulab.advice.managing import CONTROLLERS, Controller, Managed, Settings
from vcpulab.advice.managing import manage as manage_scenario
from vcpulab.advice.managing.controller import load as load_controller
from vcpulab.cli import files, page, terminal
from vcpulab.cli.interrupting import each, run_or_partial, stop
from vcpulab.cli.options import All, AnyFormat, Replications, Report, command, duration, number
from vcpulab.cli.outputs import written
from vcpulab.plugins import PluginError
from vcpulab.results import store
from vcpulab.results.metrics import APP, CONTROLLER
from vcpulab.scenario import settings
from vcpulab.scenario.scenario import Scenario
from vcpulab.show import html, report
from vcpulab.show.as_json import as_json
from vcpulab.show.csv import csv
from vcpulab.show.document import Chart, Heading, Lines, Part
from vcpulab.show.folded import View, folded_table
from vcpulab.show.table import Table


@command(
    "manage",
    "vcpulab manage web.toml --domain batch --interval 1s",
    "vcpulab manage web.toml --domain batch -s sedf -s credit --interval 1s",
)
def manage(
    file: Path,
    /,
    *,
    domain: Annotated[tuple[str, ...], Parameter(name=["--domain", "-d"], negative=())],
    controller: str = "proportional",
    interval: Annotated[float, duration("Time between two decisions.")] = 5.0,
    target: Annotated[float, number("Part of its allocation that a domain should use, %.", above=0, most=100)] = 80.0,
    start: float | None = None,
    scheduler: Annotated[tuple[str, ...], Parameter(name=["--scheduler", "-s"], negative=())] = (),
    replications: Replications = None,
    all: All = False,
    report: Report = None,
    format: AnyFormat = "table",
) -> None:
    """Let a workload manager set caps or reservations; measure how steady it is.

    It decides in every interval, by the CPU time that domains used. CSV has every decision.

    Args:
        file: Scenario file.
        domain: A domain to manage; may be given again.
        controller: proportional, integral, predictive; FILE.py:CLASS, or one that an installed package offers.
        start: Allocation in the first interval, % of a pCPU; as much as the domain can use if left out.
        scheduler: NAME or NAME:GENERATION instead of the scenario's; several are compared.
    """
    scenario = files.with_run(files.load(file), replications=replications)
    chosen = Settings(_controller(controller), domain, interval, target / 100, start)
    variants = {name: _under(scenario, name) for name in scheduler} or {_own(scenario): scenario}

    def managed(label: str, variant: Scenario) -> Managed:
        place = f"{[*variants].index(label) + 1} of {len(variants)}"
        with terminal.progress(f"managing under {label} ({place})") as progress:
            return manage_scenario(variant, chosen, progress=progress)

    runs, interrupted = run_or_partial(each, managed, variants)
    if format == "json":
        schedulers = {label: _described(managed) for label, managed in runs.items()}
        print(as_json({"interrupted": interrupted, "schedulers": schedulers}))
    elif format == "csv":
        print(_decisions(runs), end="")
    else:
        _show(runs, all=all)
    if report is not None:
        with written(report):
            _write_report(report, scenario, controller, runs)
    stop(interrupted=interrupted)


def _controller(name: str) -> type[Controller]:
    if name in CONTROLLERS:
        return CONTROLLERS[name]
    if ":" not in name:
        try:
            return load_controller(name)
        except PluginError as error:
            raise PluginError(error.reason, hint=f"the built-in ones are {', '.join(CONTROLLERS)}") from None
    return load_controller(name)


def _own(scenario: Scenario) -> str:
    return f"{scenario.host.scheduler}:{scenario.host.generation}"


def _under(scenario: Scenario, name: str) -> Scenario:
    # A policy in a file has a colon in its name.
    own = name.partition(":")[0].endswith(".py")
    parts = name.split(":")
    scheduler, generation = ":".join(parts[: 1 + own]), ":".join(parts[1 + own :])
    words = [f"host.scheduler={scheduler}", *([f"host.generation={generation}"] if generation else [])]
    changed = settings.apply(scenario, words, "scheduler")
    terminal.warn_left_out(changed.left_out, name)
    return changed.scenario


def _described(managed: Managed) -> dict[str, object]:
    return {
        "stability": managed.stability().to_dicts(),
        "metrics": store.rows(managed.run.summary().filter(of="app")),
        "decisions": managed.decisions.to_dicts(),
    }


def _decisions(runs: dict[str, Managed]) -> str:
    import polars as pl

    labelled = (managed.decisions.select(pl.lit(label).alias("scheduler"), pl.all()) for label, managed in runs.items())
    return csv(pl.concat(labelled))


def _tables(runs: dict[str, Managed], view: View) -> list[Table]:
    """The steadiness of allocations and the service of clients, a row for each scheduler and domain or client."""
    steadiness = [
        (label, folded_table(managed.run.scenario, managed.stability(), "", CONTROLLER, view))
        for label, managed in runs.items()
    ]
    served = [
        (label, folded_table(managed.run.scenario, managed.run.summary().filter(of="app"), "", APP, view, kind="app"))
        for label, managed in runs.items()
    ]
    return [
        Table(
            title,
            ["scheduler", *tables[0][1].headings],
            [[label, *row] for label, table in tables for row in table.rows],
            2,
        )
        for title, tables in (("Steadiness of the allocation", steadiness), ("Service", served))
    ]


def _show(runs: dict[str, Managed], *, all: bool) -> None:
    steadiness, service = (table.stacked() for table in _tables(runs, View(all=all)))
    parts = [Part.rows(steadiness, "managed domain", rounds=(0, _ROWS_SOON)), Part.rows(service, "row of service")]
    page.show(parts, all=all)


_ROWS_SOON = 8
"""The number of managed domains that are shown before clients are."""


def _write_report(path: Path, scenario: Scenario, controller: str, runs: dict[str, Managed]) -> None:
    from vcpulab.show import charts as plots

    chosen = next(iter(runs.values())).settings
    lead = (
        f"The {controller} controller sets the limits of {', '.join(chosen.domains)} every {chosen.interval_s:g} s, so "
        f"that each uses {100 * chosen.target:g} % of its allocation."
    )
    charts = [
        Chart(partial(plots.allocations, managed.decisions.filter(replication=0), f"{label}, replication 0"))
        for label, managed in runs.items()
    ]
    hint = (
        "Use above the allocation, or below it while the domain waits, is the scheduler's allocation error. The "
        "controller takes it for a change of demand, and answers it."
    )
    blocks = [
        Lines([lead]),
        Heading("Allocation and use"),
        Lines([hint]),
        *charts,
        Heading("Steadiness and service"),
        *_tables(runs, View(all=True)),
        *report.details({label: managed.run for label, managed in runs.items()}),
    ]
    html.write(path, f"A workload manager: {scenario.name}", blocks)
