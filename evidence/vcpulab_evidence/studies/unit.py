"""A unit of work of a study: a replication of a case. Everything that decides its values is imported here."""

from collections.abc import Callable
from dataclasses import dataclass

from vcpulab.results.run import run as run_scenario
from vcpulab.scenario.scenario import Scenario
from vcpulab_evidence.studies.case import Case
from vcpulab_evidence.studies.window import Window


@dataclass(frozen=True)
class Unit:
    """A replication of a case."""

    case: Case
    replication: int
    scenario: Scenario
    key: str

    @property
    def work(self) -> tuple[object, ...]:
        """Everything that decides the values: a setting may be part of two figures, under two names."""
        nameless = self.scenario.change({"name": "any"})
        return nameless.to_toml(), self.case.main, self.case.prepare, self.case.measure

    def measure(self, going_on: Callable[[], bool]) -> dict[str, float]:
        """Runs the unit, after the trials of its case."""

        def trial(scenario: Scenario) -> Window:
            ran = run_scenario(scenario, jobs=1, waits=False, progress=lambda _: going_on())
            return Window(ran, self.case.main)

        scenario = self.case.prepare(self.scenario, trial) if self.case.prepare else self.scenario
        return dict(self.case.measure(trial(scenario)))
