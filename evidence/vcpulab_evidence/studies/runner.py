"""Runs the cases of a study: on all processors, with enough replications for the precision, and resumable.

Each replication of each case is a unit of work. Its metrics become one line of `units.jsonl` in the study's
directory, with a key that covers everything it depends on: a stored unit is never run again, and a unit of another
engine, another scenario or another measurement has another key.
"""

import math
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import takewhile

from vcpulab._work.progress import Progress, report
from vcpulab.results.cache import RunCache, key, maker
from vcpulab.results.statistics import Interval
from vcpulab.scenario.scenario import Scenario
from vcpulab_evidence.studies.calibration import Calibration
from vcpulab_evidence.studies.case import Case
from vcpulab_evidence.studies.definition import Study
from vcpulab_evidence.studies.results import Results
from vcpulab_evidence.studies.unit import Unit

REPLICATIONS_MAX = 200


@dataclass(frozen=True)
class StudyEffort:
    """The effort of a study: replications, precision, and units at a time."""

    fast: bool = False
    """`True`: a short look with a few replications of short runs."""
    fast_replications: int = 2
    """Number of replications of a short look."""
    precision: float = 0.02
    """Half the width of an interval over its mean: replications are added until deciding intervals are this narrow."""
    replications_max: int = 40
    """Maximum number of replications of a case."""
    jobs: int = 0
    """Units at a time; 0: one for each processor. The results do not depend on it."""


class Runner:
    """A runner of the cases of a study."""

    def __init__(
        self, study: Study, effort: StudyEffort, done: RunCache, calibration: Calibration | None = None
    ) -> None:
        """Takes the study, the effort, and the stored results."""
        self._study = study
        self._effort = effort
        self._ran = done
        self._calibration = calibration
        self._scenarios: dict[str, Scenario] = {}
        self._made: dict[tuple[str, int], Unit] = {}
        self._done = 0
        self._planned = 0

    def run(self, cases: Sequence[Case], progress: Progress | None = None) -> Results:
        """Runs the missing units of some cases.

        Args:
            cases: the cases.
            progress: called now and then with the fraction done of the planned units; `False` cancels.

        Raises:
            KeyboardInterrupt: the run was cancelled; finished units are kept.
            EngineError: a run failed.
        """
        wanted = {case.key: self._first(case) for case in cases}
        while True:
            units = [self._unit(case, k) for case in cases for k in range(wanted[case.key])]
            self._run_missing(units, progress)
            more = {case.key: self._enough(case, wanted[case.key]) for case in cases}
            if more == wanted:
                return Results({case.key: self._metrics(case, wanted[case.key]) for case in cases})
            wanted = more

    def measured(self, cases: Sequence[Case]) -> Results | None:
        """The stored results of some cases, each from its first replication; `None`: nothing is stored."""
        stored = {
            case.key: [*takewhile(bool, (self._ran.get(self._unit(case, k).key) for k in range(REPLICATIONS_MAX)))]
            for case in cases
        }
        measured = {key: [metrics for metrics in values if metrics] for key, values in stored.items() if values}
        return Results(measured) if measured else None

    def _first(self, case: Case) -> int:
        if self._effort.fast:
            return self._effort.fast_replications
        return self._study.replications if case.precise or case.main else 1

    def _enough(self, case: Case, n: int) -> int:
        """The number of replications that a case needs, estimated from the first `n`."""
        if self._effort.fast or not case.precise:
            return n
        metrics = self._metrics(case, n)
        needed = n
        for name in case.precise:
            interval = Interval.from_values(metric[name] for metric in metrics)
            if interval is None or interval.half_width is None or not interval.mean:
                continue
            width = interval.half_width / abs(interval.mean)
            if math.isfinite(width) and width > self._effort.precision:
                # The width falls with the root of the number; the estimate is uncertain: at most half as many more.
                needed = max(needed, min(math.ceil(n * (width / self._effort.precision) ** 2), n + max(n // 2, 2)))
        return min(needed, max(n, self._effort.replications_max))

    def _metrics(self, case: Case, n: int) -> list[dict[str, float]]:
        return [self._ran.get(self._unit(case, k).key) or {} for k in range(n)]

    def _unit(self, case: Case, replication: int) -> Unit:
        # Cached for the next rounds: making a scenario takes a millisecond.
        unit = self._made.get((case.key, replication))
        if unit is None:
            unit = self._made[case.key, replication] = self._make(case, replication)
        return unit

    def _make(self, case: Case, replication: int) -> Unit:
        if case.key not in self._scenarios:
            self._scenarios[case.key] = self._study.scenario(case, self._calibration, fast=self._effort.fast)
        base = self._scenarios[case.key]
        scenario = base.with_run(seed=base.seed + replication, replications=1)
        made_by = maker("vcpulab_evidence.studies.unit", f"vcpulab_evidence.studies.{self._study.name}.cases")
        return Unit(case, replication, scenario, key(made_by, case.key, str(case.main), scenario.to_toml()))

    def _run_missing(self, units: Iterable[Unit], progress: Progress | None) -> None:
        missing = [unit for unit in units if self._ran.get(unit.key) is None]
        self._planned += len(missing)
        stop = threading.Event()
        jobs = self._effort.jobs or os.cpu_count() or 1
        with ThreadPoolExecutor(jobs) as pool:
            try:
                alike: dict[object, list[Unit]] = {}
                for unit in missing:
                    alike.setdefault(unit.work, []).append(unit)
                pending: dict[Future[dict[str, float]], list[Unit]] = {
                    pool.submit(same[0].measure, lambda: not stop.is_set()): same for same in alike.values()
                }
                for same, metrics in _as_completed(pending):
                    for unit in same:
                        self._ran.add(unit.key, unit.case.key, unit.replication, metrics)
                    self._done += len(same)
                    report(progress, self._done / self._planned)
            except BaseException:
                stop.set()
                pool.shutdown(cancel_futures=True)
                raise


def _as_completed(
    pending: dict[Future[dict[str, float]], list[Unit]],
) -> Iterator[tuple[list[Unit], dict[str, float]]]:
    waiting = set(pending)
    while waiting:
        # Waking up now and then lets an interrupt through.
        done, waiting = wait(waiting, timeout=0.5, return_when=FIRST_COMPLETED)
        for future in done:
            yield pending[future], future.result()
