"""`vcpulab sweep` and `vcpulab query`: many scenarios, and queries of their results."""

import json
import sys
from pathlib import Path
from typing import Annotated, Literal

import polars as pl
from cyclopts import Parameter

from vcpulab import _api
from vcpulab._files import atomic
from vcpulab.cli import files, page, terminal
from vcpulab.cli.interrupting import run_or_partial, stop
from vcpulab.cli.options import All, AnyFormat, Flag, Jobs, Out, OutFolder, command, duration
from vcpulab.cli.outputs import Writes, written
from vcpulab.cli.streams import write_bytes
from vcpulab.errors import RequestError
from vcpulab.show.as_json import as_json
from vcpulab.show.csv import csv
from vcpulab.show.document import Part
from vcpulab.show.table import Table
from vcpulab.sweeps import tables
from vcpulab.sweeps.answer import Sweep, cell
from vcpulab.sweeps.plan import Plan
from vcpulab.sweeps.store import Store

_DEFAULT_STORE = Path("out/sweep")


@command("sweep", "vcpulab sweep weights.toml --dry-run", "vcpulab sweep weights.toml --show web.throughput")
def sweep(
    file: Path | None = None,
    /,
    *,
    store: Path = _DEFAULT_STORE,
    executor: str = "local",
    jobs: Jobs = 0,
    metrics: Annotated[str | None, Parameter(name="--show")] = None,
    all: All = False,
    format: AnyFormat = "table",
    out: OutFolder = None,
    plot: Annotated[Path | None, Writes.FILE] = None,
    dry_run: Flag = False,
    verify: Flag = False,
) -> int:
    """Run a scenario at many points; runs that the store has are not repeated.

    An interrupted sweep goes on where it stopped.

    Args:
        file: Sweep file: the scenario, the parameters that vary, the replications.
        store: Directory of the results; several sweeps may share it.
        executor: Place of the runs: `local` (threads), `dask://HOST:PORT` (a cluster's scheduler) or
            `dask://local?workers=N` (processes of this machine). It never changes the results.
        metrics: Metrics to show, such as web.throughput,dom0.gotten or 'web*.gotten'; by default throughput of every
            client.
        out: Also write all tables (Parquet), in the order of the points, to this directory; an export that is there is
            replaced.
        plot: Also draw the first metric over the first parameter, a line for each value of the second, to this file
            (*.html, *.svg, *.png). Parameters that move together count once.
        dry_run: Only check the file and count the runs that are missing.
        verify: First read the whole store, and set damaged files aside.
    """
    if file is None:
        if not verify:
            raise RequestError("FILE is missing", hint="vcpulab sweep FILE, or vcpulab sweep --verify --store DIR")
        return _verified(store)
    plan = _plan(file)
    if out is not None:
        tables.check_free(out)
    if plot is not None:
        from vcpulab.sweeps import chart

        chart.check(plan, plot)
    units = {unit.key for unit in plan.units()}
    if dry_run and not store.exists():
        _announce(plan, store, len(units), 0)
        return 0
    with Store.open(store, create=not dry_run) as opened:
        if verify:
            opened.verify()
        _tell(opened)
        _announce(plan, store, len(units), len(opened.done(units)))
        if dry_run:
            return 0
        shown = None if metrics is None else [name.strip() for name in metrics.split(",")]
        try:
            with terminal.progress(f"sweep {plan.name}") as progress:
                answer, interrupted = run_or_partial(
                    _api.sweep, plan, opened, metrics=shown, executor=executor, jobs=jobs, progress=progress
                )
        except KeyboardInterrupt:
            _go_on()
            raise
        finally:
            _tell(opened)
        _print(answer, format, all=all, interrupted=interrupted)
        if interrupted:
            _go_on()
        stop(interrupted=interrupted)
        if out is not None:
            with written(out):
                tables.export(plan, opened, out)
        if plot is not None:
            with written(plot):
                chart.write(plan, answer.rows, answer.metrics[0], plot)
    return 0


def _go_on() -> None:
    terminal.say("what is done is kept; the same command goes on from there")


@command(
    "query",
    "vcpulab sweep weights.toml",
    "vcpulab query out/sweep --tables",
    "vcpulab query out/sweep 'SELECT count(*) FROM runs'",
)
def query(
    store: Path,
    sql: str | None = None,
    /,
    *,
    all: All = False,
    format: Literal["table", "csv", "json", "parquet"] = "table",
    out: Out = None,
    tables_: Annotated[bool, Parameter(name="--tables", negative=())] = False,
    budget: Annotated[float, duration("Time after which to give up.")] = 600.0,
) -> None:
    """Query a store of sweeps in SQL (that of Polars); nothing is changed.

    Args:
        store: Directory of the results.
        sql: The query; tables are runs, points, metrics and the result tables, joined by the column `run_id`.
        format: How to print; Parquet goes to a file.
        out: Write the answer to this file instead of printing it.
        tables_: List the tables with their columns.
    """
    if (sql is None) != tables_:
        raise RequestError(allowed="either a query or --tables", hint="vcpulab query STORE 'SELECT * FROM runs'")
    if format == "parquet" and out is None and sys.stdout.isatty():
        raise RequestError("needs --out FILE", field="format", found="parquet")
    with Store.open(store) as opened:
        _tell(opened)
        if sql is None:
            frame = pl.DataFrame(tables.columns(opened), ["table", "column", "type"], orient="row")
        else:
            frame = tables.query(opened, sql, seconds=budget)
    if format == "table" and out is None:
        _print_frame(frame, all=all or tables_)
        return
    data = _bytes(frame, format)
    if out is None:
        write_bytes(data)
        return
    with written(out):
        atomic.write(out, data)


def _bytes(frame: pl.DataFrame, form: str) -> bytes:
    if form == "parquet":
        from io import BytesIO

        buffer = BytesIO()
        frame.write_parquet(buffer)
        return buffer.getvalue()
    if form == "json":
        return (frame.write_json() + "\n").encode()
    return csv(frame).encode()


def _plan(file: Path) -> Plan:
    with terminal.progress(f"checking {file}") as progress:
        try:
            plan = Plan.load(file, progress)
        except OSError as error:
            raise RequestError(f"{file}: {files.reason(error)}") from None
    if plan.left_out:
        terminal.say(f"left out where the scheduler does not have them: {', '.join(plan.left_out)}")
    return plan


def _verified(store: Path) -> int:
    with Store.open(store) as opened:
        damaged = opened.verify()
        _tell(opened)
        terminal.say(f"{store}: {opened.count()} runs, {damaged} files damaged")
        return 1 if damaged else 0


def _announce(plan: Plan, store: Path, runs: int, stored: int) -> None:
    terminal.say(
        f"{plan.name}: {len(plan.points)} points, {runs} runs, {stored} of them in {store}, {runs - stored} to do"
    )


def _tell(store: Store) -> None:
    for note in store.notes:
        terminal.warn(note)
    store.notes.clear()
    for made_by, runs in store.foreign().items():
        terminal.warn(f"{store.folder}: {runs} runs of another engine ({made_by}): kept, not used")


def _print(answer: Sweep, form: str, *, all: bool, interrupted: bool) -> None:
    if form == "table":
        page.show(answer.document(), all=all)
    elif form == "json":
        print(as_json({"interrupted": interrupted, "metrics": answer.records()}))
    else:
        rows = [{name: _cell(value) for name, value in row.items()} for row in answer.records()]
        print(csv(pl.DataFrame(rows, infer_schema_length=None)), end="")


def _cell(value: object) -> object:
    """A value for CSV: lists and tables as JSON."""
    return json.dumps(value) if isinstance(value, (list, dict)) else value


def _print_frame(frame: pl.DataFrame, *, all: bool) -> None:
    rows = [[cell(value) for value in row] for row in frame.iter_rows()]
    text = max((i for i, kind in enumerate(frame.dtypes, 1) if not kind.is_numeric()), default=1)
    page.show([Part.rows(Table("", frame.columns, rows, min(text, len(frame.columns))), "row")], all=all)
