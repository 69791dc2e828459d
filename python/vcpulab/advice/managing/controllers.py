"""Controllers to choose from; a new one is a class here and a line in `CONTROLLERS`."""

from collections.abc import Mapping

from vcpulab.advice.managing.controller import Controller, Seen


class Proportional(Controller):
    """Allocates what was used, divided by the target: as much as keeps the utilisation of the allocation there.

    The utilisation controller of Wang, Zhu and Singhal 2005, "Utilization and SLO-based control for dynamic sizing of
    resource partitions" (DSOM 2005), with the whole correction in one interval.
    """

    def allocate(self, seen: Seen) -> float:
        """See the class."""
        return seen.used / self.target


class Integral(Controller):
    """Moves the allocation in steps that are proportional to how far its utilisation is from the target.

    a(k+1) = a(k) - K (target - u(k)), where u is what was used of the allocation, and K = GAIN x used / target: an
    integral controller whose gain adapts to the load, after Padala et al. 2007, "Adaptive control of virtualized
    resources in utility computing environments" (EuroSys 2007).
    """

    GAIN = 0.8
    """Assumed: large enough to follow a step of demand in a few intervals."""

    def allocate(self, seen: Seen) -> float:
        """See the class."""
        if seen.allocated <= 0:
            return seen.used / self.target
        utilisation = seen.used / seen.allocated
        return seen.allocated - self.GAIN * seen.used / self.target * (self.target - utilisation)


class Predictive(Controller):
    """Allocates what will be used, as a level with a trend tells, divided by the target.

    Double exponential smoothing: Holt 1957, "Forecasting seasonals and trends by exponentially weighted moving
    averages" (reprinted in the International Journal of Forecasting 20, 2004).
    """

    LEVEL, TREND = 0.5, 0.3
    """Smoothing constants; assumed."""

    def __init__(self, target: float) -> None:
        """Has seen nothing yet."""
        super().__init__(target)
        self.level: float | None = None
        self.trend = 0.0

    def allocate(self, seen: Seen) -> float:
        """See the class."""
        if self.level is None:
            self.level = seen.used
        else:
            before = self.level
            self.level = self.LEVEL * seen.used + (1 - self.LEVEL) * (before + self.trend)
            self.trend = self.TREND * (self.level - before) + (1 - self.TREND) * self.trend
        return (self.level + self.trend) / self.target


CONTROLLERS: Mapping[str, type[Controller]] = {
    "proportional": Proportional,
    "integral": Integral,
    "predictive": Predictive,
}
