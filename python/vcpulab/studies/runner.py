"""Runs the cases of a study: on all processors, as often as the precision asked for needs, resumable at any moment.

Each replication of each case is a unit of work. What it measured becomes one line of `units.jsonl` in the study's
directory, under a key that says all it depends on: a unit that is there is never run again, and one that was made by
another engine, another scenario or another way to measure is not mistaken for it.
"""

import json
import math
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from vcpulab import _engine
from vcpulab.results.figures import Interval
from vcpulab.results.run import run as run_scenario
from vcpulab.scenario.scenario import Scenario
from vcpulab.studies.calibration import Calibration
from vcpulab.studies.results import Results
from vcpulab.studies.study import Case, Study
from vcpulab.studies.window import Window

REPLICATIONS_MAX = 200


@dataclass(frozen=True)
class Effort:
    """How much is run."""

    fast: bool = False
    """A short look: two replications of short runs."""
    precision: float = 0.02
    """Replications are added until every interval that decides is at most so wide, half of it over the mean."""
    replications_max: int = 40
    """At most so many, whatever the intervals."""
    jobs: int = 0
    """Units at a time; 0: one for each processor. It never changes the results."""


class Units:
    """The units of work that are done: a file of lines that only grows."""

    def __init__(self, path: Path | None) -> None:
        """Reads what is there; `None`: they are kept in memory only."""
        self._path = path
        self._figures: dict[str, dict[str, float]] = {}
        if path is not None and path.exists():
            whole = path.read_bytes()
            for line in whole.splitlines():
                try:
                    unit = json.loads(line)
                    self._figures[unit["key"]] = unit["figures"]
                except (ValueError, KeyError, TypeError):
                    continue  # cut off when its writer was killed: it is run again
            if whole and not whole.endswith(b"\n"):
                with path.open("ab") as file:
                    file.write(b"\n")

    def get(self, key: str) -> dict[str, float] | None:
        """What the unit measured, if it is done."""
        return self._figures.get(key)

    def add(self, key: str, case: str, replication: int, figures: dict[str, float]) -> None:
        """Keeps what a unit measured."""
        self._figures[key] = figures
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            line = json.dumps({"key": key, "case": case, "replication": replication, "figures": figures})
            with self._path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")


@dataclass(frozen=True)
class Unit:
    """One replication of one case."""

    case: Case
    replication: int
    scenario: Scenario
    key: str

    def measure(self, going_on: Callable[[], bool]) -> dict[str, float]:
        """Runs it, after the trials that its case needs."""

        def trial(scenario: Scenario) -> Window:
            ran = run_scenario(scenario, jobs=1, waits=False, progress=lambda _: going_on())
            return Window(ran, self.case.main)

        scenario = self.case.prepare(self.scenario, trial) if self.case.prepare else self.scenario
        return dict(self.case.measure(trial(scenario)))


class Runner:
    """Runs cases of one study."""

    def __init__(self, study: Study, effort: Effort, units: Units, calibration: Calibration | None = None) -> None:
        """Takes what to run and what is done already."""
        self._study = study
        self._effort = effort
        self._units = units
        self._calibration = calibration
        self._scenarios: dict[str, Scenario] = {}
        self._made: dict[tuple[str, int], Unit] = {}
        self._done = 0
        self._planned = 0

    def run(self, cases: Sequence[Case], progress: Callable[[float], bool] | None = None) -> Results:
        """Runs what is not done yet.

        Args:
            cases: which.
            progress: called now and then with the fraction done of what is planned so far; `False` cancels.

        Raises:
            KeyboardInterrupt: it was cancelled; what is done is kept.
            EngineError: a run failed.
        """
        wanted = {case.key: self._first(case) for case in cases}
        while True:
            units = [self._unit(case, k) for case in cases for k in range(wanted[case.key])]
            self._run_missing(units, progress)
            more = {case.key: self._enough(case, wanted[case.key]) for case in cases}
            if more == wanted:
                return Results({case.key: self._figures(case, wanted[case.key]) for case in cases})
            wanted = more

    def _first(self, case: Case) -> int:
        if self._effort.fast:
            return 2
        return self._study.replications if case.precise or case.main else 1

    def _enough(self, case: Case, n: int) -> int:
        """How many replications of a case are needed, as far as can be told from the first `n`."""
        if self._effort.fast or not case.precise:
            return n
        figures = self._figures(case, n)
        needed = n
        for name in case.precise:
            interval = Interval.of(figure[name] for figure in figures)
            if interval is None or interval.half_width is None or not interval.mean:
                continue
            width = interval.half_width / abs(interval.mean)
            if math.isfinite(width) and width > self._effort.precision:
                # The width goes with the root of the number; half as many more at most, as it is an estimate itself.
                needed = max(needed, min(math.ceil(n * (width / self._effort.precision) ** 2), n + max(n // 2, 2)))
        return min(needed, max(n, self._effort.replications_max))

    def _figures(self, case: Case, n: int) -> list[dict[str, float]]:
        return [self._units.get(self._unit(case, k).key) or {} for k in range(n)]

    def _unit(self, case: Case, replication: int) -> Unit:
        # Asked for again in each round; a scenario takes a millisecond to make.
        unit = self._made.get((case.key, replication))
        if unit is None:
            unit = self._made[case.key, replication] = self._make(case, replication)
        return unit

    def _make(self, case: Case, replication: int) -> Unit:
        if case.key not in self._scenarios:
            self._scenarios[case.key] = self._study.scenario(case, self._calibration, fast=self._effort.fast)
        base = self._scenarios[case.key]
        scenario = base.with_run(seed=base.seed + replication, replications=1)
        basis = "\0".join((_version(self._study.name), case.key, str(case.main), scenario.to_toml()))
        return Unit(case, replication, scenario, sha256(basis.encode()).hexdigest()[:32])

    def _run_missing(self, units: Iterable[Unit], progress: Callable[[float], bool] | None) -> None:
        missing = [unit for unit in units if self._units.get(unit.key) is None]
        self._planned += len(missing)
        stop = threading.Event()
        jobs = self._effort.jobs or os.cpu_count() or 1
        with ThreadPoolExecutor(jobs) as pool:
            try:
                pending: dict[Future[dict[str, float]], Unit] = {
                    pool.submit(unit.measure, lambda: not stop.is_set()): unit for unit in missing
                }
                for unit, figures in _as_completed(pending):
                    self._units.add(unit.key, unit.case.key, unit.replication, figures)
                    self._done += 1
                    _tell(progress, self._done / self._planned)
            except BaseException:
                stop.set()
                pool.shutdown(cancel_futures=True)
                raise


def _tell(progress: Callable[[float], bool] | None, fraction: float) -> None:
    if progress is not None and not progress(fraction):
        raise KeyboardInterrupt


def _as_completed(pending: dict[Future[dict[str, float]], Unit]) -> Iterator[tuple[Unit, dict[str, float]]]:
    waiting = set(pending)
    while waiting:
        # Waking up now and then lets an interrupt through.
        done, waiting = wait(waiting, timeout=0.5, return_when=FIRST_COMPLETED)
        for future in done:
            yield pending[future], future.result()


@cache
def _version(study: str) -> str:
    """What measures: the engine, and the code of the study."""
    hashed = sha256(Path(_engine.__file__).read_bytes())
    here = files("vcpulab.studies")
    for folder in (here, here.joinpath(study)):
        for file in sorted((f for f in folder.iterdir() if f.name in _MEASURES), key=lambda f: f.name):
            hashed.update(file.read_bytes())
    return hashed.hexdigest()


_MEASURES = ("window.py", "cases.py")
"""Files whose code decides what a unit measures."""
