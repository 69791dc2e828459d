"""Runs the missing runs of a plan and stores them. A killed sweep continues from the stored runs."""

import json
import math
import time
from collections import deque
from collections.abc import Callable

import polars as pl

from vcpulab.errors import VcpulabError
from vcpulab.policy import OwnPolicy
from vcpulab.scenario.scenario import Scenario
from vcpulab.sweeps.executors import BatchResult, ClusterLostError, Executor
from vcpulab.sweeps.plan import Plan, Unit
from vcpulab.sweeps.store import Store
from vcpulab.sweeps.work import Batch, Item, Measured, RunFailedError, canonical, engine

TASK_S = 0.5
"""Target duration of a task: below a quarter of a second the cost of submitting it matters; the rest is a margin for
runs that are quicker than earlier ones."""
_GROWTH_MAX = 8
"""Maximum growth from a batch to the next: an estimate from a few runs may have a large error."""
_BATCH_MAX = 10_000
_SHORTEST_S = 0.05
"""Minimum duration of a task: submitting it takes some milliseconds."""
_KEEP_S = 1.0
"""Interval at which results are stored: the most that can be lost."""
_ROUNDS_MAX = 6
"""Maximum number of rounds in which damaged runs are done again."""
_TRIES = 4
"""Maximum number of times that a batch is submitted when its workers die."""

Counted = Callable[[int, int], object]
"""A callback with the number of finished runs, and the number of all runs."""


class SweepFailedError(VcpulabError):
    """A sweep stopped early; finished runs are kept."""


class Sizer:
    """The number of runs in a task of about `task_s` seconds, estimated from the durations of earlier tasks.

    Examples:
        >>> sizer = Sizer(task_s=0.5)
        >>> sizer.size
        1
        >>> sizer.learn(runs=1, seconds=0.01)
        >>> sizer.size  # 50 would do, but one run says little
        8
    """

    def __init__(self, task_s: float = TASK_S) -> None:
        self.size = 1
        self._task_s = task_s
        self._run_s: float | None = None

    def learn(self, runs: int, seconds: float) -> None:
        """Updates the estimate with the duration of a batch."""
        each = max(seconds, 1e-6) / runs
        self._run_s = each if self._run_s is None else (self._run_s + each) / 2
        self.size = max(1, min(math.ceil(self._task_s / self._run_s), _GROWTH_MAX * self.size, _BATCH_MAX))

    def next(self, left: int, slots: int) -> int:
        """The number of runs in the next task.

        Towards the end tasks become smaller, so that all workers finish together: no task is more than half of a
        worker's share of the runs left (after Polychronopoulos and Kuck 1987, "Guided self-scheduling"), unless it
        becomes so short that the cost of submitting it matters.

        Args:
            left: the number of runs left.
            slots: the number of tasks that run at a time.

        Examples:
            >>> sizer = Sizer()
            >>> sizer.size = 50
            >>> [sizer.next(left, slots=2) for left in (1000, 100, 10, 1)]
            [50, 25, 3, 1]
        """
        if slots == 1:
            return min(self.size, left)
        shortest = math.ceil(_SHORTEST_S / self._run_s) if self._run_s is not None else 1
        return min(self.size, left, max(math.ceil(left / (2 * max(slots, 1))), shortest))


class Fixed(Sizer):
    """A fixed number of runs in a task."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def learn(self, runs: int, seconds: float) -> None:
        """Does nothing: the size is fixed."""

    def next(self, left: int, slots: int) -> int:  # noqa: ARG002
        """The fixed size, or the runs left."""
        return min(self.size, left)


def run(
    plan: Plan, store: Store, executor: Executor, sizer: Sizer | None = None, progress: Counted | None = None
) -> None:
    """Runs every run of the plan that is not in the store.

    Args:
        plan: the plan.
        store: the store of the results.
        executor: the executor of the runs.
        sizer: the number of runs in a task.
        progress: called now and then.

    Raises:
        SweepFailedError: a run failed, or no workers are left; finished runs are kept.
        KeyboardInterrupt: the sweep was interrupted; finished runs are kept.
        OSError: results cannot be written.
    """
    units = {unit.key: unit for unit in plan.units()}
    store.add_plan(plan.name, plan_frame(plan))
    for _ in range(_ROUNDS_MAX):
        done = store.done(units)
        missing = [unit for key, unit in units.items() if key not in done]
        if missing:
            _Sweep(plan, store, executor=executor, sizer=sizer or Sizer(), progress=progress, total=len(units)).run(
                missing
            )
        # Runs that cannot be read are done again.
        elif not store.verify(store.shards(units)):
            return
    raise SweepFailedError(f"{store.folder}: what is written there does not read the same\n  hint: is the disk sound?")


def plan_frame(plan: Plan) -> pl.DataFrame:
    """Every run of a plan with the values of its point."""
    units = list(plan.units())
    frame = pl.DataFrame(
        {
            "sweep": pl.repeat(plan.name, len(units), eager=True),
            "point": pl.Series([unit.point for unit in units], dtype=pl.UInt32),
            "replication": pl.Series([unit.replication for unit in units], dtype=pl.UInt32),
            "run_id": pl.Series([unit.key for unit in units], dtype=pl.String),
        }
    )
    columns = (_column(path, [point[index] for point in plan.points]) for index, path in enumerate(plan.paths))
    return frame.with_columns(column.gather(frame["point"]) for column in columns)


def _column(name: str, values: list[object]) -> pl.Series:
    """Values of a field as a column: numbers as numbers, other values as in a scenario file."""
    kinds = {type(value) for value in values}
    if kinds <= {int} or kinds <= {bool}:
        return pl.Series(name, values)
    if kinds <= {int, float}:
        return pl.Series(name, values, dtype=pl.Float64, strict=False)
    return pl.Series(name, [value if isinstance(value, str) else json.dumps(value) for value in values])


class _Sweep:
    """A round over the missing runs."""

    def __init__(
        self, plan: Plan, store: Store, *, executor: Executor, sizer: Sizer, progress: Counted | None, total: int
    ) -> None:
        self._plan, self._store, self._executor, self._sizer = plan, store, executor, sizer
        self._progress = progress
        self._total = total
        self._pending: dict[int, tuple[Batch, int]] = {}
        """Submitted batches, each with the number of its submissions."""
        self._unkept: list[pl.DataFrame] = []
        self._kept_at = time.monotonic()
        self._number = 0
        self._scenario: tuple[int, Scenario, str] | None = None

    def run(self, missing: list[Unit]) -> None:
        left = deque(missing)
        self._points = {unit.key: unit.point for unit in missing}
        done = self._total - len(missing)
        try:
            while left or self._pending:
                # Twice as many batches as run at a time, so that no worker waits for the next.
                room = 2 * self._executor.slots() - len(self._pending)
                while left and room > 0:
                    self._hand_out(self._batch(left))
                    room -= 1
                for outcome in self._executor.gather(timeout_s=0.2):
                    done += self._take(outcome)
                if time.monotonic() - self._kept_at > _KEEP_S:
                    self._keep()
                if self._progress is not None:
                    self._progress(done, self._total)
        except ClusterLostError as error:
            raise SweepFailedError(
                f"{error}\n  hint: what is done is kept; the same command goes on from there"
            ) from None
        finally:
            self._unkept += [outcome.measured.frame for outcome in self._arrived() if outcome.measured is not None]
            self._keep()

    def _arrived(self) -> list[BatchResult]:
        """The results that arrived while the sweep was stopping."""
        try:
            return self._executor.gather(timeout_s=0)
        except ClusterLostError:
            return []

    def _batch(self, left: deque[Unit]) -> Batch:
        self._number += 1
        items = [left.popleft() for _ in range(self._sizer.next(len(left), self._executor.slots()))]
        policies: dict[str, OwnPolicy] = {}
        work = []
        for unit in items:
            scenario, text = self._at(unit.point)
            policies |= scenario.policies
            work.append(Item(unit.key, text, self._plan.seed, unit.replication))
        return Batch(self._number, tuple(work), tuple(policies.values()))

    def _at(self, point: int) -> tuple[Scenario, str]:
        """The scenario of a point, and its text for workers; runs of a point are consecutive."""
        if self._scenario is None or self._scenario[0] != point:
            scenario = self._plan.scenario(point)
            self._scenario = (point, scenario, canonical(scenario))
        return self._scenario[1:]

    def _hand_out(self, batch: Batch, before: int = 0) -> None:
        self._pending[batch.number] = (batch, before + 1)
        self._executor.submit(batch)

    def _take(self, outcome: BatchResult) -> int:
        """Processes the result of a batch; returns the number of finished runs."""
        batch, tries = self._pending.pop(outcome.batch)
        if outcome.measured is not None:
            self._check(outcome.measured)
            self._unkept.append(outcome.measured.frame)
            self._sizer.learn(len(batch.items), outcome.measured.seconds)
            return len(batch.items)
        if outcome.error is None:
            if tries == _TRIES:
                points = sorted({self._points[item.key] for item in batch.items})
                raise SweepFailedError(
                    f"{tries} workers died of the same {len(batch.items)} runs (points {points[0]} to {points[-1]})\n"
                    "  hint: have they vcpulab, and enough memory?"
                )
            self._hand_out(batch, tries)
            return 0
        if isinstance(outcome.error, RunFailedError):
            point = self._points[outcome.error.key]
            raise SweepFailedError(
                f"point {point} ({self._plan.values_text(point)}), seed {self._plan.seed}: {outcome.error.message}"
            ) from outcome.error
        if isinstance(outcome.error, KeyboardInterrupt):
            raise outcome.error
        kind = type(outcome.error).__name__
        raise SweepFailedError(f"a worker failed: {kind}: {outcome.error}") from outcome.error

    def _check(self, measured: Measured) -> None:
        if measured.engine != engine():
            raise SweepFailedError(
                f"a worker has another engine, {measured.engine}; allowed: the one here, {engine()}\n"
                "  hint: install the same package everywhere"
            )

    def _keep(self) -> None:
        self._kept_at = time.monotonic()
        if self._unkept:
            frame = pl.concat(self._unkept)
            self._store.add(frame)
            self._unkept = []
