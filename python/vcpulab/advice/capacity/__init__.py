"""The largest load at which a host keeps its SLOs.

`judging` decides whether SLOs hold, `search` finds the largest value that keeps them, `varying` defines the load that
grows, and `growing` combines the three; `occupancy` names the bottleneck.
"""

from vcpulab.advice.capacity.growing import Capacity, Point, capacity
from vcpulab.advice.capacity.occupancy import Station, bottleneck, stations
from vcpulab.advice.capacity.varying import Growth, growth

__all__ = ["Capacity", "Growth", "Point", "Station", "bottleneck", "capacity", "growth", "stations"]
