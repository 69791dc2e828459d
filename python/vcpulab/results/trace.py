"""Traces: all events of a run, written to disk during the run.

A trace is a directory with the scenario as run, its description `trace.json`, and an Arrow file for each replication.
"""

import json
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Self

import polars as pl

from vcpulab import _engine
from vcpulab._files import atomic
from vcpulab.results.pcpu_groups import groups

if TYPE_CHECKING:
    from vcpulab.results.run import Run

_MARK = "trace.json"
_FORMAT = "vcpulab-trace/1"


def prepare(directory: str | PathLike[str]) -> None:
    """Makes the directory, and removes an old trace in it.

    Raises:
        FileExistsError: it is no directory, or holds something else.
    """
    path = Path(directory)
    if path.exists() and not path.is_dir():
        raise FileExistsError(f"`{path}` is not a directory")
    path.mkdir(parents=True, exist_ok=True)
    if any(path.iterdir()) and mark_of(path) is None:
        raise FileExistsError(f"`{path}` holds other files than a trace's; choose another directory")
    for file in (*path.glob("events-*.arrow"), path / "scenario.toml"):
        file.unlink(missing_ok=True)
    # From now on the directory is a trace, although incomplete.
    atomic.write(path / _MARK, json.dumps({"format": _FORMAT, "complete": False}) + "\n")


def discard(directory: str | PathLike[str]) -> None:
    """Removes the files of a trace whose run failed; the directory remains, and is empty."""
    path = Path(directory)
    for file in (*path.glob("events-*.arrow"), path / _MARK):
        file.unlink(missing_ok=True)


def complete(directory: str | PathLike[str], run: "Run") -> None:
    """Describes the events; removes those of replications that an interrupted run does not have."""
    path = Path(directory)
    for file in path.glob("events-*.arrow"):
        if int(file.stem.rpartition("-")[2]) >= run.scenario.replications:
            file.unlink()
    atomic.write(path / "scenario.toml", run.scenario.to_toml())
    mark = {
        "format": _FORMAT,
        "complete": True,
        "engine": _engine.build_info(),
        "scenario": run.scenario.name,
        "replications": run.scenario.replications,
        "domains": domain_names(run),
    }
    if places := groups(run.scenario):
        mark["places"] = places
    atomic.write(path / _MARK, json.dumps(mark, indent=2) + "\n")


class Trace:
    """The events of a run.

    Examples:
        >>> import tempfile, vcpulab
        >>> scenario = vcpulab.Scenario.starter().change({"run.duration": "50ms", "run.replications": 1})
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     run = vcpulab.run(scenario, trace=directory)
        ...     events = vcpulab.Trace.load(directory).events()
        >>> events.filter(kind="wake").is_empty()
        False
    """

    def __init__(self, directory: Path, names: dict[int, str], places: list[list[str]], replications: int) -> None:
        self._directory = directory
        self._names = names
        self._places = places
        self.replications = replications
        """Number of replications."""

    @classmethod
    def load(cls, directory: str | PathLike[str]) -> Self:
        """Opens the trace in a directory.

        Raises:
            FileNotFoundError: the directory holds no complete trace.
        """
        path = Path(directory)
        mark = mark_of(path)
        if mark is None:
            raise FileNotFoundError(f"`{path}` does not hold a trace")
        if not mark["complete"]:
            raise FileNotFoundError(f"the run that wrote the trace in `{path}` did not end")
        names = mark["domains"]
        assert isinstance(names, dict)
        replications = mark["replications"]
        assert isinstance(replications, int)
        # Not written of a flat host.
        places = mark.get("places", [])
        assert isinstance(places, list)
        return cls(path, {int(number): str(name) for number, name in names.items()}, places, replications)

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

    def export_perfetto(
        self, out: str | PathLike[str], replication: int = 0, *, slices: Sequence[tuple[str, int, int, str]] = ()
    ) -> None:
        """Writes a replication as a trace that https://ui.perfetto.dev opens.

        Args:
            out: the file.
            replication: from 0.
            slices: on tracks of their own: the track, begin and end in ns, and the name of each.

        Raises:
            ValueError: there is no such replication.
            EngineError: it cannot be read or written.
        """
        with atomic.scratch(out) as file:
            _engine.export_perfetto(self._file(replication), self._names, file, places=self._places, slices=slices)

    def _file(self, replication: int) -> Path:
        if not 0 <= replication < self.replications:
            raise ValueError(f"no replication {replication}; allowed: 0 to {self.replications - 1}")
        return self._directory / f"events-{replication}.arrow"


def domain_names(run: "Run") -> dict[str, str]:
    """The name of each domain by its number, as text."""
    names = run.df_domains().select("number", "domain").unique(maintain_order=True)
    return {str(number): name for number, name in names.iter_rows()}


def mark_of(path: Path) -> dict[str, object] | None:
    """The content of `trace.json`; `None` if the directory holds no trace."""
    try:
        mark = json.loads((path / _MARK).read_text())
    except (OSError, ValueError):
        return None
    return mark if isinstance(mark, dict) and mark.get("format") == _FORMAT else None
