"""The batches of a sweep: the input, work and output of a worker, which needs only this package."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from typing import NamedTuple

import polars as pl

from vcpulab import _engine
from vcpulab.errors import EngineError, VcpulabError
from vcpulab.policy import OwnPolicy, Policies
from vcpulab.results.addresses import apps
from vcpulab.results.cache import key, maker
from vcpulab.results.tables import named
from vcpulab.scenario.scenario import Scenario

TABLES = ("domains", "vcpus", "pcpus", "apps", "io", "waits", "wakeups")
"""The result tables that are kept of every run."""
KEYS = {"run_id": pl.String(), "scenario": pl.String(), "seed": pl.Int64(), "replication": pl.UInt32()}
"""The columns of a shard that are no tables."""
FORMAT = "vcpulab-sweep/1"
"""The format of shards."""


@cache
def engine() -> str:
    """The engine: its version, and a hash of its code and of the Python code that keeps its tables.

    Runs of different engines are never treated as the same.
    """
    return f"{_engine.build_info()['version']}-{maker(__name__)[:16]}"


def canonical(scenario: Scenario) -> str:
    """The text of a scenario with one replication and seed 0, which is the same for all its runs."""
    return _of_all_runs(scenario).to_toml()


def digest(scenario: Scenario) -> str:
    """The digest of the canonical scenario, for the keys of its runs."""
    return sha256(_of_all_runs(scenario).to_json().encode()).hexdigest()


def _of_all_runs(scenario: Scenario) -> _engine.Scenario:
    return scenario._engine.with_run(seed=0, replications=1)


def key_of(digest: str, seed: int, replication: int) -> str:
    """The key of a run, from everything that the run depends on, with the `digest` of its scenario."""
    return key(engine(), FORMAT, digest, str(seed), str(replication))


class Item(NamedTuple):
    """A run of a batch."""

    key: str
    scenario: str
    """The canonical scenario."""
    seed: int
    """The seed of the scenario."""
    replication: int
    """The number of the replication, from 0."""


class Batch(NamedTuple):
    """Runs that a task does together."""

    number: int
    items: tuple[Item, ...]
    policies: tuple[OwnPolicy, ...] = ()
    """The policies of the scenarios that are not built in."""


class Measured(NamedTuple):
    """The results of a batch."""

    engine: str
    seconds: float
    """The duration of the task."""
    frame: pl.DataFrame
    """A row for each run: its key, scenario, seed, replication, and each table as a list of rows."""


class RunFailedError(VcpulabError):
    """The engine failed in a run, reproducibly."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(key, message)
        self.key = key
        self.message = message


def measure(batch: Batch, go_on: Callable[[], bool] | None = None) -> Measured:
    """Does the runs of a batch, one after the other in this thread.

    Args:
        batch: the batch.
        go_on: called now and then; `False` cancels.

    Raises:
        RunFailedError: a run failed.
        KeyboardInterrupt: the batch was cancelled.
    """
    started = time.perf_counter()
    progress = None if go_on is None else lambda _: go_on()
    policies = Policies(None, batch.policies)
    parsed = {text: Scenario.from_toml(text, policies=policies) for text in {item.scenario for item in batch.items}}
    scenarios = [parsed[item.scenario]._engine.with_run(seed=item.seed) for item in batch.items]
    try:
        only = [item.replication for item in batch.items]
        results = _engine.run_many(scenarios, jobs=1, only=only, progress=progress)
    except EngineError:
        for item, scenario in zip(batch.items, scenarios, strict=True):
            try:
                _engine.run_many([scenario], jobs=1, only=[item.replication], progress=progress)
            except EngineError as error:
                raise RunFailedError(item.key, str(error)) from None
        raise
    frame = _nested(batch.items, parsed, results)
    return Measured(engine(), time.perf_counter() - started, frame)


def _nested(items: Sequence[Item], parsed: Mapping[str, Scenario], results: list[_engine.Results]) -> pl.DataFrame:
    """A row for each run."""
    frame = pl.DataFrame(list(items), pl.Schema(KEYS), orient="row")
    called = {text: apps(scenario) for text, scenario in parsed.items()}
    for name in TABLES:
        parts = [pl.Series(name, getattr(result, name)()) for result in results]
        if name == "apps":
            parts = [
                named(part.struct.unnest(), called[item.scenario]).to_struct(name)
                for item, part in zip(items, parts, strict=True)
            ]
        runs = pl.Series([index for index, part in enumerate(parts) for _ in range(len(part))], dtype=pl.UInt32)
        rows = pl.DataFrame({"index": runs, name: pl.concat(parts).struct.unnest().drop("replication").to_struct()})
        lists = rows.group_by("index", maintain_order=True).agg(name)
        frame = frame.with_row_index("index").join(lists, on="index", how="left", maintain_order="left").drop("index")
    return frame.rechunk()
