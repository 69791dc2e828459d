"""A case of a study: a scenario, and its measurement."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from vcpulab.scenario.scenario import Scenario
from vcpulab_evidence.studies.window import Window

Trial = Callable[[Scenario], Window]
"""A trial: runs a scenario once, and returns its window."""
Prepare = Callable[[Scenario, Trial], Scenario]
"""A function that makes the measured scenario from the scenario of a replication, with trials."""


@dataclass(frozen=True)
class Case:
    """A scenario that a study runs, and its measurement."""

    key: str
    """The experiment and name, such as `dom0-weight-sweep: bvt C=50 1`; unique in the study."""
    template: str
    """The scenario file in the study's folder that the case changes."""
    changes: Mapping[str, object]
    """The changes to the template, for `Scenario.change`, after the calibrated constants."""
    measure: Callable[[Window], Mapping[str, float]]
    """The values of a replication by metric, named as the published metrics where possible."""
    main: str | None = None
    """The application whose completions show the end of the warm-up; `None`: nothing is cut off."""
    precise: tuple[str, ...] = ()
    """Metrics whose intervals decide the number of replications."""
    fast: Mapping[str, object] = field(default_factory=dict)
    """More changes for a fast run, such as its duration."""
    prepare: Prepare | None = None
    """Sets a value that the authors determined by trials, such as a load; called for each replication."""

    @property
    def experiment(self) -> str:
        """The experiment of the case."""
        return self.key.partition(": ")[0]

    @property
    def name(self) -> str:
        """The name within the experiment."""
        return self.key.partition(": ")[2]
