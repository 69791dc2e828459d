"""A run on disk: the scenario as run, its tables as Parquet, and `result.json`, which says what they are."""

import json
import os
import re
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from vcpulab import _engine, whole
from vcpulab.results.metrics import metric
from vcpulab.results.tables import TABLES
from vcpulab.scenario.scenario import Scenario

if TYPE_CHECKING:
    from vcpulab.results.run import Run

_MARK = "result.json"
_FORMAT = "vcpulab-run/1"
_FILES = {_MARK, "scenario.toml", *(f"{name}.parquet" for name in TABLES)}
"""All that a run on disk consists of."""


def check_free(directory: str | PathLike[str]) -> Path:
    """The directory, links followed, if a run may be written there: it is new, empty, or holds a run alone.

    Raises:
        FileExistsError: it is something else, or other files would be lost.
    """
    return whole.check_folder(directory, _MARK, _FILES, "a run's")


def save(run: "Run", directory: str | PathLike[str]) -> None:
    """See `Run.save`."""
    with whole.replaced(check_free(directory)) as new:
        (new / "scenario.toml").write_text(run.scenario.to_toml())
        for name, table in run.tables().items():
            write_parquet(table, new / f"{name}.parquet")
        (new / _MARK).write_text(json.dumps(describe(run), indent=2) + "\n")


def write_parquet(table: pl.DataFrame, file: Path) -> None:
    """Writes a table to a file.

    Raises:
        OSError: it cannot be written.
    """
    try:
        table.write_parquet(file)
    except pl.exceptions.PolarsError as error:
        # What the system said is at the end of what Polars says.
        number = re.search(r"\(os error (\d+)\)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1])), str(file)) from None


def load(directory: str | PathLike[str]) -> tuple[Scenario, dict[str, pl.DataFrame], bool, str | None]:
    """The scenario, the tables, whether decisions were kept, and the policy in place of the scheduler."""
    path = Path(directory)
    mark = _mark(path)
    if mark is None:
        raise FileNotFoundError(f"`{path}` does not hold a run")
    tables = {table.stem: pl.read_parquet(table) for table in sorted(path.glob("*.parquet"))}
    policy = mark.get("policy")
    scenario = Scenario.load(path / "scenario.toml")
    return scenario, tables, bool(mark["decisions"]), None if policy is None else str(policy)


def describe(run: "Run") -> dict[str, Any]:
    """What was run, with which engine, and every metric; `undefined` says why one has no mean."""
    return {
        "format": _FORMAT,
        "engine": _engine.build_info(),
        "scenario": run.scenario.name,
        "seed": run.scenario.seed,
        "replications": run.scenario.replications,
        "duration_ns": run.scenario.duration_ns,
        "warmup_ns": run.scenario.warmup_ns,
        "decisions": run.has_decisions,
        "policy": run.policy,
        "metrics": [{**row, "undefined": _undefined(row)} for row in run.summary().to_dicts()],
    }


def _undefined(row: Mapping[str, Any]) -> str | None:
    """Why a row of a summary has no mean; `None`: it has one."""
    return metric(row["of"], row["metric"]).undefined_is if row["mean"] is None else None


def _mark(path: Path) -> dict[str, object] | None:
    """What `result.json` says; `None` if no run is there."""
    try:
        mark = json.loads((path / _MARK).read_text())
    except (OSError, ValueError):
        return None
    return mark if isinstance(mark, dict) and mark.get("format") == _FORMAT else None
