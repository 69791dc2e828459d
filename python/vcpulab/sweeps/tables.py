"""The runs of a store as tables: for SQL, for figures, and for reproducible files."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from vcpulab import _engine
from vcpulab._files import atomic
from vcpulab._work import subprocesses
from vcpulab._work.budget import Budget
from vcpulab.errors import EngineError, RequestError
from vcpulab.results.addresses import Address, addresses
from vcpulab.results.metrics import METRICS, RUN_KINDS, Quantity, ThingKind, measured
from vcpulab.results.statistics import Interval
from vcpulab.results.store import write_parquet
from vcpulab.sweeps.plan import Plan
from vcpulab.sweeps.runner import plan_frame
from vcpulab.sweeps.store import Store
from vcpulab.sweeps.work import TABLES

_MARK = "export.json"
_FORMAT = "vcpulab-sweep-export/1"
_FILES = {_MARK, *(f"{name}.parquet" for name in ("runs", *TABLES))}
"""All files of an export."""

_POINTS = pl.Schema({"sweep": pl.String, "point": pl.UInt32, "replication": pl.UInt32, "run_id": pl.String})


def scan(shards: Sequence[Path], table: str | None = None) -> pl.LazyFrame:
    """A table of the runs in some shards, read lazily: `run_id`, then its columns.

    Args:
        shards: the files, at least one.
        table: one of `TABLES`; `None`: the runs themselves.
    """
    whole = pl.scan_parquet(list(shards))
    if table is None:
        return whole.select("run_id", "seed", "replication", "scenario")
    return whole.select("run_id", table).explode(table, empty_as_null=False, keep_nulls=False).unnest(table)


def views(store: Store) -> dict[str, pl.LazyFrame]:
    """The tables of a store for SQL, by name.

    `runs` has a row for each stored run, `points` a row for each run in the plan of a sweep, `metrics` the metrics that
    `vcpulab run` prints, and the result tables the columns of `Run.df_domains` and its siblings, with `run_id` instead
    of the replication.

    Raises:
        RequestError: the store has no runs of this engine.
    """
    shards = store.shards()
    if not shards:
        raise RequestError(f"{store.folder}: there are no runs of this engine", hint="vcpulab sweep FILE")
    tables = {table: scan(shards, table) for table in TABLES}
    plans = {(sweep, version): pl.read_parquet(file) for sweep, version, file in store.plans()}
    planned = pl.concat(plans.values(), how="diagonal_relaxed") if plans else pl.DataFrame(schema=_POINTS)
    # A run of several sweeps has the values from any of their plans: they describe the same scenario.
    paths = [column for column in planned.columns if column not in _POINTS]
    values = planned.group_by("run_id").agg(pl.col(path).drop_nulls().first() for path in paths)
    newest = dict(sorted(plans))
    points = pl.concat([pl.DataFrame(schema=_POINTS), *(plans[last].select(*_POINTS) for last in newest.items())])
    return {
        "runs": scan(shards)
        .join(values.lazy(), on="run_id", how="left")
        .select("run_id", "seed", "replication", *paths, "scenario"),
        "points": points.lazy(),
        "metrics": metrics(tables),
        **tables,
    }


def metrics(tables: Mapping[str, pl.LazyFrame]) -> pl.LazyFrame:
    """Every metric of every run: `run_id`, then columns as in `Run.metrics`; undefined values are left out."""
    return pl.concat([_long(measured(tables, kind, by="run_id"), kind) for kind in RUN_KINDS])


def _long(wide: pl.LazyFrame, kind: ThingKind) -> pl.LazyFrame:
    units = {metric.name: metric.unit.text for metric in METRICS[kind]}
    long = wide.unpivot(list(units), index=["run_id", "thing"], variable_name="metric", value_name="value")
    return long.drop_nulls("value").select(
        "run_id",
        pl.format("{}.{}", "thing", "metric").alias("address"),
        pl.lit(kind).alias("of"),
        "thing",
        "metric",
        pl.col("metric").replace_strict(units, return_dtype=pl.String).alias("unit"),
        "value",
    )


@dataclass(frozen=True)
class Row:
    """The results of a point."""

    point: int
    values: tuple[Any, ...]
    intervals: tuple[Interval | None, ...]
    """The interval of each metric; `None`: the metric was never defined."""


def summary(plan: Plan, store: Store, addresses: Sequence[Address]) -> list[Row]:
    """The mean and 95 % confidence interval of some addresses at each point, over its replications."""
    runs = plan_frame(plan).select("point", "replication", "run_id")
    shards = store.shards(runs["run_id"])
    values_of_runs = metrics({table: scan(shards, table) for table in ("domains", "apps", "pcpus", "io")})
    wanted = values_of_runs.filter(pl.col("address").is_in([address.name for address in addresses]))
    table = runs.lazy().join(wanted, on="run_id").sort("point", "replication").collect()
    values: dict[tuple[int, str], list[float]] = {}
    for point, name, value in table.select("point", "address", "value").iter_rows():
        values.setdefault((point, name), []).append(value)
    return [
        Row(point, at, tuple(Interval.from_values(values.get((point, address.name), ())) for address in addresses))
        for point, at in enumerate(plan.points)
    ]


def default_metrics(plan: Plan) -> list[Address]:
    """The metrics that are shown by default: throughput of clients, or CPU time if there are no clients."""
    scenario = plan.scenario(0)
    listed = addresses(scenario)
    throughput = [address for address in listed if address.metric.quantity is Quantity.THROUGHPUT]
    asking = [address for address in throughput if address.thing in scenario.clients]
    chosen = asking or [address for address in listed if address.metric.quantity is Quantity.CPU_TIME]
    return chosen[:8]


def check_free(directory: Path) -> Path:
    """The directory, links followed, if an export may be written there: it is new, empty, or holds only an export.

    Raises:
        FileExistsError: it is something else, or other files would be lost.
    """
    return atomic.check_folder(directory, _MARK, _FILES, "an export's")


def export(plan: Plan, store: Store, directory: Path) -> None:
    """Writes all tables of a sweep (Parquet), in the order of its points: the same bytes with any executor.

    Raises:
        FileExistsError: it is something else, or other files would be lost.
        OSError: a file cannot be written.
    """
    free = check_free(directory)
    planned = plan_frame(plan).drop("sweep")
    shards = store.shards(planned["run_id"])
    where = planned.select("point", "replication", "run_id").lazy()
    with atomic.replaced(free) as new:
        runs = planned.lazy().join(scan(shards).drop("replication"), on="run_id", how="left", maintain_order="left")
        write_parquet(runs.collect().rechunk(), new / "runs.parquet")
        for table in TABLES:
            rows = scan(shards, table).with_row_index("row")
            ordered = where.join(rows, on="run_id").sort("point", "replication", "row").drop("run_id", "row")
            write_parquet(ordered.collect().rechunk(), new / f"{table}.parquet")
        mark = {
            "format": _FORMAT,
            "engine": _engine.build_info(),
            "sweep": plan.name,
            "points": len(plan.points),
            "replications": plan.replications,
            "seed": plan.seed,
        }
        (new / _MARK).write_text(json.dumps(mark, indent=2) + "\n")


_READS = ("select", "with", "from", "explain", "show", "values", "(")
_LITERAL = re.compile(r"'(?:[^']|'')*'")
_READS_FILES = re.compile(r"\b(?:read|scan)_\w+", re.IGNORECASE)
_PROGRAM = """\
import io, sys, polars
try:
    answer = polars.LazyFrame.deserialize(io.BytesIO(sys.stdin.buffer.read())).collect()
except (polars.exceptions.PolarsError, polars.exceptions.PanicException) as error:
    sys.exit(" ".join(str(error).split()) or type(error).__name__)
answer.write_ipc(sys.stdout.buffer)
"""


def query(store: Store, sql: str, *, seconds: float = float("inf")) -> pl.DataFrame:
    """The answer to a query in SQL, in Polars' dialect.

    A separate process answers the query, because Polars ends its process when memory is short.

    Args:
        store: the store; the query cannot read other files.
        sql: the query.
        seconds: the time limit.

    Raises:
        RequestError: the query does not only read, or fails.
        StoppedError: the query exceeds the time limit, or half of the machine's memory.
        EngineError: Polars ended its process, most often because memory was short.
    """
    if not sql.strip().lower().startswith(_READS):
        allowed = "a query that only reads, such as SELECT … FROM runs"
        raise RequestError(found=sql.strip()[:60], allowed=allowed)
    reader = _READS_FILES.search(_LITERAL.sub("", sql))
    if reader is not None:
        raise RequestError(found=reader[0], allowed="the tables of the store", hint="vcpulab query STORE --tables")
    try:
        request = pl.SQLContext(views(store), eager=False).execute(sql).serialize()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        hint = next((f"\n  hint: {line[0].lower()}{line[1:]}" for line in lines if line.startswith("Did you mean")), "")
        raise RequestError(f"{lines[0] if lines else type(error).__name__}{hint}") from None
    try:
        return pl.read_ipc(subprocesses.answered(_PROGRAM, request, Budget(seconds)))
    except subprocesses.EndedError as error:
        if not error.killed:
            raise RequestError(str(error)) from None
        raise EngineError(f"the query was not answered: {error}\n  hint: is there enough memory?") from None


def columns(store: Store) -> list[tuple[str, str, str]]:
    """The table, name and type of every column that queries can use."""
    return [
        (table, column, str(kind))
        for table, frame in views(store).items()
        for column, kind in frame.collect_schema().items()
    ]
