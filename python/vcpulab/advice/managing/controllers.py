"""Controllers to choose from; a new controller is a class here and a line in `CONTROLLERS`."""

from collections.abc import Mapping

from vcpulab.advice.managing.controller import Controller, Usage


class Proportional(Controller):
    """Allocates the CPU time used, divided by the target, which keeps the utilisation of the allocation at the target.

    The utilisation controller of Wang, Zhu and Singhal 2005, "Utilization and SLO-based control for dynamic sizing of
    resource partitions" (DSOM 2005), with the whole correction in one interval.
    """

    def allocate(self, usage: Usage) -> float:
        """The allocation for the next interval, % of a pCPU."""
        return usage.used / self.target


class Integral(Controller):
    """Moves the allocation in steps proportional to the difference between its utilisation and the target.

    a(k+1) = a(k) - K (target - u(k)), where u is the utilisation of the allocation, and K = GAIN x used / target: an
    integral controller whose gain adapts to the load, after Padala et al. 2007, "Adaptive control of virtualized
    resources in utility computing environments" (EuroSys 2007).
    """

    GAIN = 0.8
    """Gain of the controller. Assumed: large enough to follow a step of demand in a few intervals."""

    def allocate(self, usage: Usage) -> float:
        """The allocation for the next interval, % of a pCPU."""
        if usage.allocated <= 0:
            return usage.used / self.target
        utilisation = usage.used / usage.allocated
        return usage.allocated - self.GAIN * usage.used / self.target * (self.target - utilisation)


class Predictive(Controller):
    """Allocates the CPU time predicted from a level and a trend, divided by the target.

    Double exponential smoothing: Holt 1957, "Forecasting seasonals and trends by exponentially weighted moving
    averages" (reprinted in the International Journal of Forecasting 20, 2004).
    """

    LEVEL, TREND = 0.5, 0.3
    """Smoothing constants; assumed."""

    def __init__(self, target: float) -> None:
        """Starts without a level."""
        super().__init__(target)
        self.level: float | None = None
        self.trend = 0.0

    def allocate(self, usage: Usage) -> float:
        """The allocation for the next interval, % of a pCPU."""
        if self.level is None:
            self.level = usage.used
        else:
            before = self.level
            self.level = self.LEVEL * usage.used + (1 - self.LEVEL) * (before + self.trend)
            self.trend = self.TREND * (self.level - before) + (1 - self.TREND) * self.trend
        return (self.level + self.trend) / self.target


CONTROLLERS: Mapping[str, type[Controller]] = {
    "proportional": Proportional,
    "integral": Integral,
    "predictive": Predictive,
}
