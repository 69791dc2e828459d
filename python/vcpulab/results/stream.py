"""Runs that continue while the results of earlier runs are used."""

from collections.abc import Iterable
from typing import Generic, Self, TypeVar

from vcpulab import _engine
from vcpulab._work.progress import Progress
from vcpulab.errors import Interrupted
from vcpulab.results.run import Run, ran
from vcpulab.scenario.scenario import Scenario

Name = TypeVar("Name")


class Stream(Generic[Name]):
    """Runs of scenarios, in the order in which they were begun: no processor waits while results are used.

    With one job, and under a policy in Python, a scenario runs when it is taken. The end of a `with` block calls off
    all runs that are left.

    Examples:
        >>> scenario = Scenario.starter().change({"run.duration": "50ms", "run.replications": 1})
        >>> with Stream() as stream:
        ...     for seed in (7, 8, 9):
        ...         stream.begin(seed, scenario.with_run(seed=seed))
        ...     first = stream.take(7)
        ...     stream.call_off([8])
        ...     third = stream.take(9)
        >>> third.scenario.seed
        9
    """

    def __init__(self, *, jobs: int = 0, waits: bool = True) -> None:
        """Starts the threads; nothing runs yet.

        Args:
            jobs: runs at a time; 0: as many as there are processors.
            waits: as for `run`.

        Raises:
            EngineError: the system refuses to start threads.
        """
        self._engine = _engine.Stream(jobs=jobs, waits=waits)
        self._begun: dict[Name, tuple[int, Scenario]] = {}
        self.jobs = self._engine.jobs
        """Runs at a time."""

    def begin(self, name: Name, scenario: Scenario) -> None:
        """Begins to run all replications of a scenario, under a name."""
        self._begun[name] = (self._engine.begin(scenario._engine), scenario)

    def __contains__(self, name: Name) -> bool:
        """Whether a run was begun, and neither taken nor called off."""
        return name in self._begun

    def take(self, name: Name, progress: Progress | None = None) -> Run:
        """Waits for a run and returns it.

        Args:
            name: the name of the run; the name is free afterwards.
            progress: see `Progress`.

        Raises:
            EngineError: the run failed.
            KeyboardInterrupt: the run was cancelled.
        """
        number, scenario = self._begun.pop(name)
        try:
            results = self._engine.take(number, progress)
        except Interrupted:
            raise KeyboardInterrupt from None
        return ran(scenario, results)

    def call_off(self, names: Iterable[Name]) -> None:
        """Stops runs, or never starts them. Names of runs that were not begun are ignored."""
        for name in list(names):
            if name in self._begun:
                self._engine.call_off(self._begun.pop(name)[0])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.call_off(self._begun)
