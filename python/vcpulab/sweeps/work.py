"""The work of a sweep in pieces: what a worker is given, does, and gives back. It needs nothing but this package."""

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
KEYS = {"run_id": pl.String(), "scenario": pl.String(), "seed": pl.Int64()}
"""The columns of a shard that are no tables."""
FORMAT = "vcpulab-sweep/1"
"""What shards look like; another format is another kind of file."""


@cache
def engine() -> str:
    """The engine: its version, and a hash of its code and of what keeps its tables here.

    Only runs of the same one are taken for the same.
    """
    return f"{_engine.build_info()['version']}-{maker(__name__)[:16]}"


def canonical(scenario: Scenario) -> str:
    """A scenario, complete, as if for one replication from seed 0: what all its runs have in common."""
    return _of_all_runs(scenario).to_toml()


def digest(scenario: Scenario) -> str:
    """What stands for the canonical scenario in the keys of its runs."""
    return sha256(_of_all_runs(scenario).to_json().encode()).hexdigest()


def _of_all_runs(scenario: Scenario) -> _engine.Scenario:
    return scenario._engine.with_run(seed=0, replications=1)


def key_of(digest: str, seed: int) -> str:
    """What names a run: everything that it depends on, with the `digest` of its scenario."""
    return key(engine(), FORMAT, digest, str(seed))


class Item(NamedTuple):
    """One run to do."""

    key: str
    scenario: str
    """The canonical scenario."""
    seed: int


class Batch(NamedTuple):
    """Runs that one task does together."""

    number: int
    items: tuple[Item, ...]
    policies: tuple[OwnPolicy, ...] = ()
    """Schedulers of these scenarios that are not built in."""


class Measured(NamedTuple):
    """What a batch left behind."""

    engine: str
    seconds: float
    """How long the task took."""
    frame: pl.DataFrame
    """A row for each run: its key, seed, scenario, and each table as a list of rows."""


class RunFailedError(VcpulabError):
    """The engine failed in a run; it would again."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(key, message)
        self.key = key
        self.message = message


def measure(batch: Batch, go_on: Callable[[], bool] | None = None) -> Measured:
    """Does the runs of a batch, one after the other in this thread.

    Args:
        batch: what to run.
        go_on: asked now and then; `False` cancels.

    Raises:
        RunFailedError: a run failed.
        KeyboardInterrupt: it was cancelled.
    """
    started = time.perf_counter()
    progress = None if go_on is None else lambda _: go_on()
    policies = Policies(None, batch.policies)
    parsed = {text: Scenario.from_toml(text, policies=policies) for text in {item.scenario for item in batch.items}}
    scenarios = [parsed[item.scenario]._engine.with_run(seed=item.seed) for item in batch.items]
    try:
        results = _engine.run_many(scenarios, jobs=1, progress=progress)
    except EngineError:
        for item, scenario in zip(batch.items, scenarios, strict=True):
            try:
                _engine.run(scenario, jobs=1, progress=progress)
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
