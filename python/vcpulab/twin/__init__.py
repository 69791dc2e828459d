"""The twin of a recorded host: a scenario that wants what its vCPUs wanted, and how well it does what they did.

A vCPU computes from waking to blocking, and is blocked for some time: the spreads of both are taken from the
recording. Who runs when, how long each waits and how often they switch is for the scheduler to say, and is what a twin
is scored by, on a part of the recording that it was not made of.
"""

from vcpulab.twin.build import Made, make
from vcpulab.twin.scoring import REPLICATIONS, TOLERANCES, Row, score
from vcpulab.twin.sources import Sources, gather

__all__ = ["REPLICATIONS", "TOLERANCES", "Made", "Row", "Sources", "gather", "make", "score"]
