"""`vcpulab whatif` and `vcpulab compare`: what a change does, to whom, and how sure that is."""

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Annotated, Literal

import polars as pl
from cyclopts import App, Parameter

from vcpulab.advice import comparison_report
from vcpulab.advice.compare import Comparison, compare
from vcpulab.advice.lint.lint import as_data, other_warnings
from vcpulab.advice.lint.lint import lint as lint_scenario
from vcpulab.cli import files, views
from vcpulab.cli.usage import examples
from vcpulab.errors import RequestError
from vcpulab.hypervisors.xl import new_steps
from vcpulab.results.outcomes import metrics
from vcpulab.results.run import Run, run_many
from vcpulab.scenario import settings
from vcpulab.scenario.scenario import Scenario

REPLICATIONS = 10
"""Enough for intervals that are not wider than they need be: t(0.975, 9) is 2.26, t(0.975, 4) 2.78."""

Format = Literal["table", "json", "csv"]
Jobs = Annotated[int, Parameter(name=["--jobs", "-j"])]
Flag = Annotated[bool, Parameter(negative=())]


def register(app: App) -> None:
    """Adds these commands to a command line."""
    app.command(lint, help_epilogue=examples("vcpulab lint web.toml", "vcpulab lint web.toml --format json"))
    app.command(
        whatif,
        help_epilogue=examples(
            "vcpulab whatif web.toml --set domain.web.weight=1024",
            "vcpulab whatif web.toml --set batch.cap=50 --report out/whatif.html",
        ),
    )
    app.command(
        compare_,
        name="compare",
        help_epilogue=examples(
            "vcpulab whatif web.toml --set batch.cap=50 --write capped.toml",
            "vcpulab compare web.toml capped.toml",
        ),
    )


def lint(
    file: Annotated[tuple[Path, ...], Parameter(negative=())],
    /,
    *,
    replications: int = REPLICATIONS,
    format: Literal["table", "json"] = "table",  # noqa: A002
    jobs: Jobs = 0,
) -> int:
    """Say what is probably not meant in scenario files, what it costs, and what mends it; succeed if there is nothing.

    Args:
        file: Scenario files.
        replications: Of each simulation, as it is and mended.
        format: How to print.
        jobs: Replications at a time; 0: one for each processor.
    """
    if not 2 <= replications <= 10_000:
        raise RequestError(f"--replications: found `{replications}`; allowed: 2 to 10000")
    found = {}
    for path in file:
        with views.progress(f"trying what mends {path}") as progress:
            try:
                scenario, advice = lint_scenario(
                    path,
                    replications=replications,
                    jobs=files.at_least_zero("--jobs", jobs),
                    progress=progress,
                )
            except OSError as error:
                raise RequestError(f"{path}: {files.reason(error)}") from None
        found[str(path)] = as_data(advice)
        warnings = other_warnings(scenario, advice)
        found[str(path)] += [{"rule": "warning", **warning} for warning in warnings]
        if format == "table":
            for warning in warnings:
                print(f"{files.line_of(warning)}\n")
            views.show_advice(str(path), advice)
            print(f"{path}: {len(advice) + len(warnings) or 'nothing'} found")
    if format == "json":
        print(json.dumps(found, indent=2))
    return 1 if any(found.values()) else 0


def whatif(
    file: Path,
    /,
    *,
    set: Annotated[tuple[str, ...], Parameter(name="--set", negative=())] = (),  # noqa: A002 - the option's name
    replications: int | None = None,
    seed: int | None = None,
    all: Flag = False,  # noqa: A002
    report: Path | None = None,
    write: Path | None = None,
    format: Format = "table",  # noqa: A002
    jobs: Jobs = 0,
) -> None:
    """Say what other settings would do: who gains, who pays, by how much, and how to set them on a real host.

    Args:
        file: Scenario file.
        set: PATH=VALUE, any number of times; no value: back to the default. `web.weight` may stand for
            `domain.web.weight`.
        replications: Of each side; if left out the scenario's, and at least 10.
        seed: Instead of the scenario's.
        all: Show every metric, not only those with a good direction.
        report: Also write a page with charts and timelines to this file.
        write: Also write the changed scenario to this file.
        format: How to print; JSON and CSV always hold every metric.
        jobs: Replications at a time; 0: one for each processor.
    """
    if not set:
        raise RequestError("--set: nothing is set; allowed: PATH=VALUE, such as --set domain.web.weight=512")
    before = _with_run(files.load(file), seed, replications)
    changed = settings.apply(before, set)
    for path in changed.left_out:
        views.warn(f"{path} is left out: the new scheduler does not have it")
    for warning in changed.scenario.warnings:
        if warning["message"] not in {known["message"] for known in before.warnings}:
            views.warn(f"as changed: {warning['field'] or ''}: {warning['message']}")
    runs = _run(before, changed.scenario, jobs)
    found = compare(*runs)
    _show(found, runs, ("now", "changed"), format=format, all=all)
    if format == "table":
        _show_steps(before, changed.scenario)
    if report is not None:
        said = ", ".join(f"{path} = {json.dumps(value)}" for path, value in changed.changes.items())
        title = f"What if: {before.name}"
        comparison_report.write(report, title, ("now", "changed"), runs, found, lead=f"<p>{escape(said)}</p>")
        views.say(f"written to {report}")
    if write is not None:
        files.write(write, changed.scenario.to_toml())
        views.say(f"written to {write}")


def compare_(
    a: Path,
    b: Path,
    /,
    *,
    replications: int | None = None,
    seed: int | None = None,
    all: Flag = False,  # noqa: A002
    report: Path | None = None,
    format: Format = "table",  # noqa: A002
    jobs: Jobs = 0,
) -> None:
    """Compare two scenarios, or two runs: differences from the first to the second.

    Args:
        a: Scenario file, or a directory of `vcpulab run --out`.
        b: The same.
        replications: Of each scenario; if left out the first one's, and at least 10.
        seed: Instead of the first scenario's; both have the same.
        all: Show every metric, not only those with a good direction.
        report: Also write a page with charts and timelines to this file.
        format: How to print; JSON and CSV always hold every metric.
        jobs: Replications at a time; 0: one for each processor.
    """
    if a.is_dir() != b.is_dir():
        raise RequestError(f"{a}, {b}: allowed: two scenario files, or two directories of runs")
    if a.is_dir():
        if replications is not None or seed is not None:
            raise RequestError("--replications, --seed: these runs are over; allowed: with scenario files")
        runs = (files.run_of(a), files.run_of(b))
    else:
        first = _with_run(files.load(a), seed, replications)
        second = files.load(b).with_run(seed=first.seed, replications=first.replications)
        runs = _run(first, second, jobs)
    _warn_of_differences(*runs)
    found = compare(*runs)
    if not found:
        raise RequestError(f"{a}, {b}: they have no domain or client in common, and nothing to compare")
    labels = (str(a), str(b)) if str(a) != str(b) else ("first", "second")
    _show(found, runs, labels, format=format, all=all)
    if report is not None:
        title = f"{labels[0]} and {labels[1]}"
        comparison_report.write(report, title, labels, runs, found)
        views.say(f"written to {report}")


def _with_run(scenario: Scenario, seed: int | None, replications: int | None) -> Scenario:
    if replications is not None and replications < 2:
        raise RequestError(f"--replications: found `{replications}`; allowed: at least 2, for an interval")
    wanted = replications if replications is not None else max(REPLICATIONS, scenario.replications)
    return files.with_run(scenario, seed=seed, replications=wanted)


def _run(before: Scenario, after: Scenario, jobs: int) -> tuple[Run, Run]:
    with views.progress(f"running {before.name}") as progress:
        first, second = run_many([before, after], jobs=files.at_least_zero("--jobs", jobs), progress=progress)
    return first, second


def _warn_of_differences(a: Run, b: Run) -> None:
    if a.scenario.seed != b.scenario.seed:
        views.warn(f"seeds {a.scenario.seed} and {b.scenario.seed}: the runs are independent, differences less sure")
    if a.scenario.replications != b.scenario.replications:
        least = min(a.scenario.replications, b.scenario.replications)
        views.warn(f"{a.scenario.replications} and {b.scenario.replications} replications: the first {least} count")
    if a.scenario.duration_ns != b.scenario.duration_ns:
        views.warn(f"{a.scenario.duration_ns / 1e9:g} and {b.scenario.duration_ns / 1e9:g} s: not equally long")
    theirs = [{metric.name.rpartition(".")[0]: None for metric in metrics(run.scenario)} for run in (a, b)]
    for one, other, which in ((*theirs, "first"), (*reversed(theirs), "second")):
        if alone := [name for name in one if name not in other]:
            views.warn(f"only in the {which}, not compared: {', '.join(alone)}")


def _show(
    found: Sequence[Comparison],
    runs: tuple[Run, Run],
    labels: tuple[str, str],
    *,
    format: Format,  # noqa: A002
    all: bool,  # noqa: A002
) -> None:
    rows = [comparison.row() for comparison in found]
    if format == "json":
        print(json.dumps({"verdict": comparison_report.in_words(found), "metrics": rows}, indent=2))
    elif format == "csv":
        print(pl.DataFrame(rows, infer_schema_length=None).write_csv(), end="")
    else:
        views.show_comparison(found, runs, labels, all=all)


def _show_steps(before: Scenario, after: Scenario) -> None:
    """What must be typed that was not before."""
    new = new_steps(before, after)
    if new:
        print("\nTo set it on a real host:\n")
        views.show_commands(new)
