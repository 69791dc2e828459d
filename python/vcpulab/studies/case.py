"""A case of a study: a scenario, and what is measured in it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from vcpulab.scenario.scenario import Scenario
from vcpulab.studies.window import Window

Trial = Callable[[Scenario], Window]
"""Runs a scenario once, and gives its window."""
Prepare = Callable[[Scenario, Trial], Scenario]
"""From the scenario of a replication, and trials, the scenario that is measured."""


@dataclass(frozen=True)
class Case:
    """A scenario that a study runs, and what is measured in it."""

    key: str
    """Its experiment and its name there, such as `dom0-weight-sweep: bvt C=50 1`; no other case of the study has it."""
    template: str
    """The scenario file in the study's folder from which it is made."""
    changes: Mapping[str, object]
    """Its changes to the template, as `Scenario.change` takes them; calibrated constants come before."""
    measure: Callable[[Window], Mapping[str, float]]
    """Metric to value, for one replication; named as the published metrics where there is one."""
    main: str | None = None
    """The application whose completions tell when the warm-up is over; `None`: nothing is cut off."""
    precise: tuple[str, ...] = ()
    """Metrics whose intervals decide how many replications there are."""
    fast: Mapping[str, object] = field(default_factory=dict)
    """More changes for a fast run, such as its duration."""
    prepare: Prepare | None = None
    """Sets a value that the authors found by trial before they measured, such as a load; in each replication anew."""

    @property
    def experiment(self) -> str:
        """The experiment it belongs to."""
        return self.key.partition(": ")[0]

    @property
    def name(self) -> str:
        """Its name within the experiment."""
        return self.key.partition(": ")[2]
