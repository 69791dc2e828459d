"""Everything that happened in a run, written to disk while it happened.

A directory with the scenario as run, `trace.json`, which says what it is, and one Arrow file for each replication.
"""

import json
import tempfile
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Self

import polars as pl

from vcpulab import _engine

if TYPE_CHECKING:
    from vcpulab.results.run import Run

_MARK = "trace.json"
_FORMAT = "vcpulab-trace/1"


def prepare(directory: str | PathLike[str]) -> None:
    """Makes the directory; a trace that is there goes.

    Raises:
        FileExistsError: it is something else, or holds something else.
    """
    path = Path(directory)
    if path.exists() and not path.is_dir():
        raise FileExistsError(f"`{path}` is not a directory")
    path.mkdir(parents=True, exist_ok=True)
    if any(path.iterdir()) and _mark(path) is None:
        raise FileExistsError(f"`{path}` holds other files than a trace's; choose another directory")
    for file in (*path.glob("events-*.arrow"), path / "scenario.toml"):
        file.unlink(missing_ok=True)
    # From now on it is one, if an incomplete one.
    (path / _MARK).write_text(json.dumps({"format": _FORMAT, "complete": False}) + "\n")


def complete(directory: str | PathLike[str], run: "Run") -> None:
    """Says what the events are of."""
    path = Path(directory)
    (path / "scenario.toml").write_text(run.scenario.to_toml())
    mark = {
        "format": _FORMAT,
        "complete": True,
        "engine": _engine.build_info(),
        "scenario": run.scenario.name,
        "policy": run.policy,
        "replications": run.scenario.replications,
        "domains": _names(run),
    }
    (path / _MARK).write_text(json.dumps(mark, indent=2) + "\n")


class Trace:
    """The events of a run.

    Examples:
        >>> import tempfile, vcpulab
        >>> scenario = vcpulab.Scenario.starter().change({"run.duration": "50ms", "run.replications": 1})
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     run = vcpulab.run(scenario, events=directory)
        ...     events = vcpulab.Trace.load(directory).events()
        >>> events.filter(kind="wake").is_empty()
        False
    """

    def __init__(self, directory: Path, names: dict[int, str], replications: int) -> None:
        self._directory = directory
        self._names = names
        self.replications = replications
        """How many there are."""

    @classmethod
    def load(cls, directory: str | PathLike[str]) -> Self:
        """Opens the trace in a directory.

        Raises:
            FileNotFoundError: there is none, or not a complete one.
        """
        path = Path(directory)
        mark = _mark(path)
        if mark is None:
            raise FileNotFoundError(f"`{path}` does not hold a trace")
        if not mark["complete"]:
            raise FileNotFoundError(f"the run that wrote the trace in `{path}` did not end")
        names = mark["domains"]
        assert isinstance(names, dict)
        replications = mark["replications"]
        assert isinstance(replications, int)
        return cls(path, {int(number): str(name) for number, name in names.items()}, replications)

    def events(self, replication: int = 0) -> pl.DataFrame:
        """All events of a replication, in order of time.

        Columns:
            time_ns: when, since the host started.
            kind: `decision`, `switch`, `runstate`, `wake`, `migration`, `timer`, `io`, `state`, `lost` or `end`.
            pcpu: where; for a migration, to where.
            domain: whose: the domain's number (-1: idle); for a switch, the one that runs from now on.
            vcpu: its vCPU (for idle: the pCPU's number).
            by_domain: the domain that woke it; for a switch, the one that ran until now.
            by_vcpu: its vCPU.
            what: the runstate, the cause of the wake-up, the step of I/O, or the key of the scheduler's state.
            value: for a switch, how long the incoming vCPU had waited, ns; the pCPU a migration comes from; the
                timer's token; the value of the state; what a step of I/O counts.
            id: which packet, request or event a step of I/O is about.

        Raises:
            ValueError: there is no such replication.
        """
        return pl.read_ipc(self._file(replication))

    def export_perfetto(self, out: str | PathLike[str], replication: int = 0) -> None:
        """Writes a replication as a trace that https://ui.perfetto.dev opens.

        Raises:
            ValueError: there is no such replication.
            EngineError: it cannot be read or written.
        """
        _engine.export_perfetto(self._file(replication), self._names, out)

    def _file(self, replication: int) -> Path:
        if not 0 <= replication < self.replications:
            raise ValueError(f"no replication {replication}; allowed: 0 to {self.replications - 1}")
        return self._directory / f"events-{replication}.arrow"


def export_perfetto(source: str | PathLike[str], out: str | PathLike[str], replication: int = 0) -> None:
    """Writes a trace, or the decisions of a saved run, as a trace that https://ui.perfetto.dev opens.

    Raises:
        FileNotFoundError: there is neither.
        ValueError: the run has no decisions, or there is no such replication.
        EngineError: it cannot be read or written.
    """
    path = Path(source)
    if _mark(path) is not None:
        Trace.load(path).export_perfetto(out, replication)
        return
    from vcpulab.results.run import Run

    run = Run.load(path)
    if not run.traced:
        raise ValueError(f"the run in `{path}` was not traced\n  hint: vcpulab run FILE --trace DIR")
    if not 0 <= replication < run.scenario.replications:
        raise ValueError(f"no replication {replication}; allowed: 0 to {run.scenario.replications - 1}")
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch, "events.arrow")
        _events_of(run, replication).write_ipc(file, compression="lz4", compat_level=pl.CompatLevel.oldest())
        _engine.export_perfetto(file, {int(number): name for number, name in _names(run).items()}, out)


def _events_of(run: "Run", replication: int) -> pl.DataFrame:
    """The decisions of a saved run as events: who had which pCPU, and when each vCPU ran."""
    from vcpulab.show import charts as plots

    end = run.scenario.warmup_ns + run.scenario.duration_ns
    slices = plots.slices(run, replication, run.scenario.warmup_ns, end).with_columns(
        pl.col("vcpu").cast(pl.Int64), pl.col("domain").cast(pl.Int64), pl.col("pcpu").cast(pl.UInt32)
    )
    ran = slices.filter(pl.col("domain") >= 0)
    empty = pl.lit(None, pl.Int64)

    def events(of: pl.DataFrame, time: str, kind: str, what: str | None) -> pl.DataFrame:
        return of.select(
            pl.col(time).alias("time_ns"),
            pl.lit(kind).alias("kind"),
            "pcpu",
            "domain",
            "vcpu",
            empty.alias("by_domain"),
            empty.alias("by_vcpu"),
            pl.lit(what, pl.String).alias("what"),
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


def _names(run: "Run") -> dict[str, str]:
    names = run.df_domains().select("number", "domain").unique(maintain_order=True)
    return {str(number): name for number, name in names.iter_rows()}


def _mark(path: Path) -> dict[str, object] | None:
    """What `trace.json` says; `None` if no trace is there."""
    try:
        mark = json.loads((path / _MARK).read_text())
    except (OSError, ValueError):
        return None
    return mark if isinstance(mark, dict) and mark.get("format") == _FORMAT else None
