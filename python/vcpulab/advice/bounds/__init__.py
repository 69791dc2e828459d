"""What a host can carry at most, by analysis: bounds and estimates without a simulation, and a check on simulations.

`bounds` derives a queueing network from a scenario. Its *bounds* hold whatever the scheduler does, because every demand
in them is the least there can be. Its *estimates* are those of mean-value analysis with the same demands: of a host
without overhead that shares its CPUs evenly.

Examples:
    >>> from vcpulab import Scenario
    >>> found = bounds(Scenario.starter())
    >>> found.loads[0].name, found.loads[0].bottleneck
    ('http', 'rate')
"""

from vcpulab.advice.bounds.answers import Bounds, LoadBound, StationBound, bounds
from vcpulab.advice.bounds.checking import Checked, check

__all__ = ["Bounds", "Checked", "LoadBound", "StationBound", "bounds", "check"]
