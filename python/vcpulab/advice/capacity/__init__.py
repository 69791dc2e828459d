"""How much more can a host carry, and on how few hosts do domains fit?

`judging` decides whether SLOs hold, `search` finds the largest value that does, `growth` says what grows, `growing`
puts them together; `stations` names the bottleneck. `fleet` takes scenarios apart into what can be placed, `packing`
packs it, `placing` lets the simulation judge.
"""

from vcpulab.advice.capacity.growing import Capacity, Point, capacity
from vcpulab.advice.capacity.occupancy import Station, bottleneck, stations
from vcpulab.advice.capacity.varying import Growth, growth

__all__ = ["Capacity", "Growth", "Point", "Station", "bottleneck", "capacity", "growth", "stations"]
