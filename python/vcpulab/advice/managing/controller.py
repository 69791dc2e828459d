"""The one thing that a controller does."""

from abc import ABC, abstractmethod
from typing import NamedTuple

from vcpulab import plugins

ENTRY_POINTS = "vcpulab.controllers"
"""The entry point group in which installed packages offer controllers."""


class Seen(NamedTuple):
    """What a controller sees of its domain: the interval that has just ended. CPU time is in % of a pCPU."""

    time_s: float
    """When it ended, since measuring began."""
    used: float
    """What the domain used."""
    allocated: float
    """What it might have used at most."""
    waited: float
    """How long its vCPUs were runnable and did not run, or were held back by the allocation; % of the interval, at most
    100 for each vCPU."""


class Controller(ABC):
    """Decides how much CPU time a domain may use in the next interval. One object serves one domain in one replication.

    Args:
        target: the part of its allocation that the domain should use, above 0 and at most 1; the rest is for bursts.
    """

    def __init__(self, target: float) -> None:
        """Remembers the target."""
        self.target = target

    @abstractmethod
    def allocate(self, seen: Seen) -> float:
        """The most that the domain may use in the next interval, % of a pCPU.

        The manager keeps the answer between what a scheduler can give and what there is.
        """


def load(reference: str) -> type[Controller]:
    """Finds a controller: `file.py:Class`, or the name under which an installed package offers one.

    Raises:
        PluginError: there is none.
    """
    return plugins.load(reference, Controller, ENTRY_POINTS, "controller")  # type: ignore[type-abstract]  # it is checked there
