"""The throughput that all loads of a host can have at once.

A bound on one load holds for any work of the other loads, so several bounds may not hold at the same time. Here the
loads share the stations: loads with a fixed rate first, then users who think, then programs without an end. Within each
of these kinds, all get the same fraction of their bounds until a station is full; loads that do not need that station
get more (progressive filling: Bertsekas and Gallager 1992, "Data networks", section 6.5).
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from vcpulab.advice.bounds.asymptotic import Limit
from vcpulab.advice.bounds.model import Load, Station

_FULL = 1e-9
"""The fraction of a station that is left when it counts as full."""


class _Filling(NamedTuple):
    """Free capacity of each station while loads are served."""

    free: dict[str, float]
    """Free seconds of service in a second, by station."""
    servers: Mapping[str, float]


def together(loads: Iterable[Load], limits: Mapping[str, Limit], stations: Mapping[str, Station]) -> dict[str, Limit]:
    """The throughput of each load beside all others, and its bottleneck.

    The work of these throughputs at a station never exceeds the station's capacity.

    Args:
        loads: the loads.
        limits: the bound of each load by itself.
        stations: the stations that the loads need.

    Examples:
        >>> cpu = Station("cpu", "pool", 1)
        >>> web, batch = (Load(name, (), {"cpu": 0.5}, 0.5, rate, 1, 0, 0, 0, 0, True)
        ...               for name, rate in (("web", 0.5), ("batch", None)))
        >>> alone = {"web": Limit(0.5, "rate"), "batch": Limit(2.0, "cpu")}
        >>> together([web, batch], alone, {"cpu": cpu})
        {'web': Limit(throughput=0.5, by='rate'), 'batch': Limit(throughput=1.5, by='cpu')}
    """
    servers = {name: station.servers for name, station in stations.items()}
    filling = _Filling(dict(servers), servers)
    kinds: defaultdict[int, list[Load]] = defaultdict(list)
    for load in loads:
        kinds[_turn(load)].append(load)
    return {name: share for turn in sorted(kinds) for name, share in _fill(kinds[turn], limits, filling)}


def _turn(load: Load) -> int:
    """The order of service: fixed rates do not wait, users wait for a while, programs get the rest."""
    if load.rate is not None:
        return 0
    return 1 if load.think > 0 else 2


def _fill(loads: Iterable[Load], limits: Mapping[str, Limit], filling: _Filling) -> Iterable[tuple[str, Limit]]:
    """Serves loads of one kind from the free capacity of the stations."""
    active = {load.name: load for load in loads}
    users: defaultdict[str, set[str]] = defaultdict(set)
    """Station to the loads that need it."""
    slope: defaultdict[str, float] = defaultdict(float)
    """Seconds of service that a station gives when all its active loads have their whole bounds."""
    for load in list(active.values()):
        bound = limits[load.name]
        if math.isinf(bound.throughput):
            del active[load.name]
            yield load.name, bound
            continue
        for station, demand in load.demands.items():
            if demand > 0:
                users[station].add(load.name)
                slope[station] += bound.throughput * demand
    level = 0.0
    while active:
        full_at = {station: level + max(0.0, filling.free[station]) / use for station, use in slope.items() if use > 0}
        target = min(1.0, min(full_at.values(), default=1.0))
        # The bound of a single load is reached exactly where its own station is full.
        target = 1.0 if target >= 1 - _FULL else target
        for station, use in slope.items():
            filling.free[station] -= (target - level) * use
        level = target
        if level == 1.0:
            yield from ((name, limits[name]) for name in active)
            return
        for station in [full_station for full_station, at in full_at.items() if at <= level * (1 + _FULL)]:
            for name in sorted(users[station] & active.keys()):
                load, most = active.pop(name), limits[name].throughput
                for shared_station, demand in load.demands.items():
                    if demand > 0:
                        users[shared_station].discard(name)
                        # A station without loads has no demand; rounding may leave a rest.
                        slope[shared_station] = (
                            slope[shared_station] - most * demand if users[shared_station] & active.keys() else 0.0
                        )
                yield name, Limit(level * most, station)
