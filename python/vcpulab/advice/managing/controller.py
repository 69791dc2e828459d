"""The interface of controllers."""

from abc import ABC, abstractmethod
from typing import NamedTuple

from vcpulab import plugins

ENTRY_POINTS = "vcpulab.controllers"
"""The entry point group in which installed packages offer controllers."""


class Usage(NamedTuple):
    """A controller's view of its domain: the interval that has just ended. CPU time is in % of a pCPU."""

    time_s: float
    """End of the interval, since measuring began."""
    used: float
    """CPU time that the domain used."""
    allocated: float
    """Most CPU time that the domain could use."""
    waited: float
    """Time in which the domain's vCPUs were runnable and did not run, or were held back by the allocation; % of the
    interval, at most 100 for each vCPU."""


class Controller(ABC):
    """Decides how much CPU time a domain may use in the next interval. One object serves one domain in one replication.

    Args:
        target: the fraction of its allocation that the domain should use, above 0 and at most 1; the rest is for
            bursts.
    """

    def __init__(self, target: float) -> None:
        """Remembers the target."""
        self.target = target

    @abstractmethod
    def allocate(self, usage: Usage) -> float:
        """The most that the domain may use in the next interval, % of a pCPU.

        The manager limits the answer to the range from the least that a scheduler can give to the pool's pCPUs.
        """


def load(reference: str) -> type[Controller]:
    """Loads a controller: `file.py:Class`, or the name under which an installed package offers one.

    Raises:
        PluginError: no such controller.
    """
    return plugins.load(reference, Controller, ENTRY_POINTS, "controller")  # type: ignore[type-abstract]  # it is checked there
