"""Bounds and estimates of a host's capacity by analysis, without a simulation, and a check of simulations.

`bounds` derives a queueing network from a scenario. Its *bounds* hold for any scheduler, because every demand in them
is a lower bound. Its *estimates* are the result of mean-value analysis with the same demands, for a host without
overhead that shares its CPUs evenly.

Examples:
    >>> from vcpulab import Scenario
    >>> http = bounds(Scenario.starter()).loads[0]
    >>> http.name, http.bottleneck
    ('http', 'rate')
"""

from vcpulab.advice.bounds.answers import Bounds, LoadBound, StationBound, bounds
from vcpulab.advice.bounds.checking import Checked, check

__all__ = ["Bounds", "Checked", "LoadBound", "StationBound", "bounds", "check"]
