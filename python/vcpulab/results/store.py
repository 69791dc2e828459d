"""A run on disk: the scenario as run, its tables as Parquet, and `result.json`, which describes them.

Policies of the user are in `policies.json`, with the content of their files.
"""

import json
import shlex
from collections.abc import Iterator
from dataclasses import asdict
from io import BytesIO
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import polars as pl
from polars.io.plugins import register_io_source

from vcpulab import _engine
from vcpulab._files import atomic
from vcpulab.errors import RequestError
from vcpulab.policy import OwnPolicy, Param, Policies
from vcpulab.results.metrics import metric
from vcpulab.results.tables import TABLES
from vcpulab.scenario.scenario import Scenario

if TYPE_CHECKING:
    from vcpulab.results.run import Run

_MARK = "result.json"
_POLICIES = "policies.json"
_FORMAT = "vcpulab-run/1"
_ROW_GROUP = 1 << 15
"""Number of rows in memory while a table is written."""
_FILES = {_MARK, _POLICIES, "scenario.toml", *(f"{name}.parquet" for name in TABLES)}
"""All files of a run on disk."""


def check_free(directory: str | PathLike[str]) -> Path:
    """The directory, links followed, if a run may be written there: it is new, empty, or holds only a run.

    Raises:
        FileExistsError: it is no directory, or other files would be lost.
    """
    return atomic.check_folder(directory, _MARK, _FILES, "a run's")


def save(run: "Run", directory: str | PathLike[str]) -> None:
    """See `Run.save`."""
    with atomic.replaced(check_free(directory)) as new:
        (new / "scenario.toml").write_text(run.scenario.to_toml())
        if run.scenario.policies:
            own = [asdict(policy.remembered()) for policy in run.scenario.policies.values()]
            (new / _POLICIES).write_text(json.dumps(own, indent=2) + "\n")
        for name, parts in run.in_parts():
            write_parts(parts, new / f"{name}.parquet")
        (new / _MARK).write_text(json.dumps(describe(run), indent=2) + "\n")


def write_parquet(table: pl.DataFrame, file: Path) -> None:
    """Writes a table to a file.

    Raises:
        OSError: it cannot be written.
    """
    # Polars writes to memory, as it would not report the system's error.
    buffer = BytesIO()
    table.write_parquet(buffer)
    file.write_bytes(buffer.getbuffer())


def write_parts(parts: Iterator[pl.DataFrame], file: Path) -> None:
    """Writes a table that comes in parts, one or more, and is never in memory as a whole.

    Raises:
        OSError: it cannot be written.
    """
    first = next(parts)
    second = next(parts, None)
    if second is None:
        write_parquet(first, file)
        return

    def read(columns: list[str] | None, *_: object) -> Iterator[pl.DataFrame]:
        return (part if columns is None else part.select(columns) for part in chain([first, second], parts))

    with file.open("wb") as opened:
        output = _Output(opened)
        try:
            table = register_io_source(read, schema=first.schema)
            table.sink_parquet(cast("BinaryIO", output), row_group_size=_ROW_GROUP, engine="streaming")
        except pl.exceptions.ComputeError:
            raise output.error or OSError(f"{file.name} cannot be written") from None


class _Output:
    """A file for output that keeps the system's error, which Polars does not report."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.flush = file.flush
        self.error: OSError | None = None

    def write(self, data: bytes) -> int:
        try:
            return self._file.write(data)
        except OSError as error:
            self.error = error
            raise


class _Saved(dict[str, pl.DataFrame]):
    """The tables of a run on disk; an older version may have saved fewer tables."""

    path: Path

    def __missing__(self, name: str) -> pl.DataFrame:
        problem = f"the run has no table `{name}`: the version of vcpulab that saved it had none"
        raise RequestError(
            problem,
            field="run",
            found=str(self.path),
            hint=f"vcpulab run {shlex.quote(str(self.path / 'scenario.toml'))}",
        )


def load(directory: str | PathLike[str]) -> tuple[Scenario, dict[str, pl.DataFrame], bool]:
    """The scenario, the tables, and whether decisions were kept. Policies are loaded as text, not executed."""
    path = Path(directory)
    mark = _mark(path)
    if mark is None:
        raise FileNotFoundError(f"`{path}` does not hold a run")
    tables = _Saved({table.stem: pl.read_parquet(table) for table in sorted(path.glob("*.parquet"))})
    tables.path = path
    file = path / "scenario.toml"
    scenario = Scenario.from_toml(file.read_text(), str(file), folder=path, policies=_policies(path / _POLICIES))
    return scenario, tables, bool(mark["decisions"])


def _policies(file: Path) -> Policies:
    """The saved policies of a run, never executed, whatever their file contains."""
    own = json.loads(file.read_text()) if file.exists() else []
    policies = (
        OwnPolicy(**{**policy, "params": tuple(Param(**param) for param in policy["params"])}).remembered()
        for policy in own
    )
    return Policies(None, list(policies))


def describe(run: "Run") -> dict[str, Any]:
    """The scenario, the engine, and every metric of a run; `undefined` is the reason for a missing mean."""
    return {
        "format": _FORMAT,
        "engine": _engine.build_info(),
        "scenario": run.scenario.name,
        "seed": run.scenario.seed,
        "replications": run.scenario.replications,
        "duration_ns": run.scenario.duration_ns,
        "warmup_ns": run.scenario.warmup_ns,
        "decisions": run.has_decisions,
        "metrics": rows(run.summary()),
    }


def rows(summary: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows of a summary as data; `undefined` is the reason for a missing mean."""
    return [
        {**row, "undefined": metric(row["of"], row["metric"]).undefined_is if row["mean"] is None else None}
        for row in summary.to_dicts()
    ]


def _mark(path: Path) -> dict[str, object] | None:
    """The content of `result.json`; `None` if the directory holds no run."""
    try:
        mark = json.loads((path / _MARK).read_text())
    except (OSError, ValueError):
        return None
    return mark if isinstance(mark, dict) and mark.get("format") == _FORMAT else None
