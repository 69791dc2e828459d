"""Runs that go on while the results of others are looked at."""

from collections.abc import Callable, Iterable
from typing import Generic, Self, TypeVar

from vcpulab import _engine
from vcpulab.errors import Interrupted
from vcpulab.results.run import Run, ran
from vcpulab.scenario.scenario import Scenario

Name = TypeVar("Name")


class Stream(Generic[Name]):
    """Runs of scenarios, in the order in which they were begun: no processor waits while results are looked at.

    With one job, and under a policy in Python, a scenario runs when it is taken. At the end of a `with` block what
    still runs is called off.

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
        """Nothing runs yet.

        Args:
            jobs: runs at a time; 0: as many as there are processors.
            waits: as for `run`.

        Raises:
            EngineError: there are no threads to be had.
        """
        self._engine = _engine.Stream(jobs=jobs, waits=waits)
        self._begun: dict[Name, tuple[int, Scenario]] = {}
        self.jobs = self._engine.jobs
        """Runs at a time."""

    def begin(self, name: Name, scenario: Scenario) -> None:
        """Begins to run a scenario, all its replications; `name` is what it is taken by."""
        self._begun[name] = (self._engine.begin(scenario._engine), scenario)

    def __contains__(self, name: Name) -> bool:
        """Was it begun, and neither taken nor called off?"""
        return name in self._begun

    def take(self, name: Name, progress: Callable[[float], bool | None] | None = None) -> Run:
        """A run, once it is over.

        Args:
            name: its name; it is free then.
            progress: called now and then; returning `False` cancels.

        Raises:
            EngineError: the run failed.
            KeyboardInterrupt: it was cancelled.
        """
        number, scenario = self._begun.pop(name)
        try:
            results = self._engine.take(number, progress)
        except Interrupted:
            raise KeyboardInterrupt from None
        return ran(scenario, results)

    def call_off(self, names: Iterable[Name]) -> None:
        """Ends these runs, or never starts them: nobody will take them. Those that were not begun do not matter."""
        for name in list(names):
            if name in self._begun:
                self._engine.call_off(self._begun.pop(name)[0])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.call_off(self._begun)
