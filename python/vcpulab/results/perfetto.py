"""Traces for https://ui.perfetto.dev."""

import tempfile
from os import PathLike
from pathlib import Path

import polars as pl

from vcpulab import _engine
from vcpulab._files import atomic
from vcpulab.errors import RequestError
from vcpulab.results.addresses import find
from vcpulab.results.pcpu_groups import groups
from vcpulab.results.request_path import is_followed, paths
from vcpulab.results.run import Run
from vcpulab.results.timeline import slices as slices_of
from vcpulab.results.trace import Trace, domain_names, mark_of
from vcpulab.scenario.scenario import Scenario


def export_perfetto(
    source: str | PathLike[str], out: str | PathLike[str], replication: int = 0, *, request: str | None = None
) -> None:
    """Writes a trace, or the decisions of a saved run, as a trace that https://ui.perfetto.dev opens.

    Args:
        source: the directory of the trace or run.
        out: the file to write.
        replication: from 0.
        request: a percentile of a client's response times, such as `http.response_p99`: the request at it, and the
            median request, are followed on tracks of their own.

    Raises:
        FileNotFoundError: the directory holds no trace and no run.
        ValueError: the run has no decisions, or the replication does not exist.
        RequestError: the percentile has no request to follow.
        EngineError: a file cannot be read or written.
    """
    path = Path(source)
    if mark_of(path) is not None:
        trace = Trace.load(path)
        file = path / "scenario.toml"
        slices = [] if request is None else _slices(Scenario.load(file), request, replication)
        trace.export_perfetto(out, replication, slices=slices)
        return
    run = Run.load(path)
    if not run.has_decisions:
        raise ValueError(f"the run in `{path}` kept no decisions\n  hint: vcpulab.run(scenario, decisions=True)")
    if not 0 <= replication < run.scenario.replications:
        raise ValueError(f"no replication {replication}; allowed: 0 to {run.scenario.replications - 1}")
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch, "events.arrow")
        _events_of(run, replication).write_ipc(file, compression="lz4", compat_level=pl.CompatLevel.oldest())
        names = {int(number): name for number, name in domain_names(run).items()}
        slices = [] if request is None else _slices(run.scenario, request, replication)
        with atomic.scratch(out) as new:
            _engine.export_perfetto(file, names, new, places=groups(run.scenario), slices=slices)


def _slices(scenario: Scenario, request: str, replication: int) -> list[tuple[str, int, int, str]]:
    """The legs of the followed requests, on a track for each request."""
    address = find(scenario, request, "request")
    if not is_followed(scenario, address):
        raise RequestError(field="request", found=request, allowed="a percentile of a client's response times")
    return [
        (path.title, begin, end, words)
        for path in paths(scenario, address, replication)
        for begin, end, words in path.legs.select("begin_ns", "end_ns", "said").iter_rows()
    ]


def _events_of(run: Run, replication: int) -> pl.DataFrame:
    """The decisions of a saved run as events: the vCPU on each pCPU over time, and when each vCPU ran."""
    end = run.scenario.warmup_ns + run.scenario.duration_ns
    slices = slices_of(run, replication, run.scenario.warmup_ns, end).with_columns(
        pl.col("vcpu").cast(pl.Int64), pl.col("domain").cast(pl.Int64), pl.col("pcpu").cast(pl.UInt32)
    )
    ran = slices.filter(pl.col("domain") >= 0)
    empty = pl.lit(None, pl.Int64)

    def events(rows: pl.DataFrame, time: str, kind: str, detail: str | None) -> pl.DataFrame:
        return rows.select(
            pl.col(time).alias("time_ns"),
            pl.lit(kind).alias("kind"),
            "pcpu",
            "domain",
            "vcpu",
            empty.alias("by_domain"),
            empty.alias("by_vcpu"),
            pl.lit(detail, pl.String).alias("what"),
            empty.alias("value"),
            pl.lit(None, pl.UInt64).alias("id"),
        )

    return pl.concat(
        [
            events(slices, "start_ns", "switch", None),
            events(ran, "end_ns", "runstate", "off"),
            events(ran, "start_ns", "runstate", "running"),
            events(slices.head(1).with_columns(pl.lit(end, pl.Int64).alias("end_ns")), "end_ns", "end", None),
        ]
    ).sort("time_ns", maintain_order=True)
