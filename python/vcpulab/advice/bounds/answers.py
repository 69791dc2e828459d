"""Bounds and estimates of a scenario: what can go through, what limits it, and how long it takes."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import polars as pl

from vcpulab.advice import sharing
from vcpulab.advice.bounds import mva
from vcpulab.advice.bounds.asymptotic import least_response, limit
from vcpulab.advice.bounds.model import Load, Model, Station
from vcpulab.advice.bounds.stations import model
from vcpulab.advice.bounds.together import together
from vcpulab.results.statistics import number
from vcpulab.scenario.scenario import Scenario
from vcpulab.show.answer import Answer

ALWAYS_LEFT_OUT = (
    "context switches, decisions, interrupts and upcalls, cold caches: the bounds hold without them, estimates are too "
    "good by them",
    "weights, priorities and reservations: the bounds hold for any, estimates share CPUs evenly",
)
LOAD_WORDS = ("rate", "customers")
"""Bottlenecks that are no station: all that is asked for is done, or users wait and think."""


@dataclass(frozen=True)
class LoadBound:
    """What a load can achieve."""

    name: str
    throughput_max: float
    """Bound: units of work in a second, never more, whatever the other loads do."""
    limit: str
    """What sets that bound: a station, `rate` (all that is asked for), or `customers` (users who wait and think)."""
    together: float
    """Throughput beside all other loads: fixed rates first, then users who think, then programs that have no end."""
    bottleneck: str
    """What limits the throughput beside the other loads: a station that is full, or what `limit` says."""
    response_min_s: float | None
    """Bound: mean response time at that throughput, never less; `None`: it has none."""
    throughput: float
    """Estimate."""
    response_s: float | None
    """Estimate; infinite: it grows for as long as the load lasts."""
    demands: Mapping[str, float]
    """Least service of one unit, by station, s."""

    def undefined(self) -> dict[str, str]:
        """Why some of these numbers are infinite, or `None`, by name."""
        rates = ("throughput_max", "together", "throughput")
        found = {name: "nothing limits it" for name in rates if getattr(self, name) == math.inf}
        for name in ("response_min_s", "response_s"):
            value = getattr(self, name)
            if value is None or value == math.inf:
                found[name] = "it answers nobody" if value is None else "it grows for as long as the load lasts"
        return found


@dataclass(frozen=True)
class StationBound:
    """A station, and how busy it would be."""

    name: str
    kind: str
    servers: float
    asked: float
    """Utilization if every load had the throughput of its own bound; above 1 they cannot all have it."""
    busy: float
    """Utilization if the loads share the host as `LoadBound.together` says: 1 at most."""


@dataclass(frozen=True)
class Bounds(Answer):
    """What a scenario's host can carry."""

    scenario: str
    loads: tuple[LoadBound, ...]
    stations: tuple[StationBound, ...]
    """The busiest first."""
    method: str
    """How the estimates were found, and whether that is exact for the network."""
    not_modelled: tuple[str, ...]
    """What is left out."""
    model: Model
    notes: tuple[str, ...] = ()
    """What the number of pCPUs does not say."""

    def to_frame(self) -> pl.DataFrame:
        """A row for each load: bounds and estimates of its throughput and response time, and its bottleneck."""
        rows = [
            (
                one.name,
                one.throughput_max,
                one.bottleneck,
                one.together,
                one.response_min_s,
                one.throughput,
                one.response_s,
            )
            for one in self.loads
        ]
        columns = ("load", "throughput_max", "bottleneck", "together", "response_min_s", "throughput", "response_s")
        numbers = pl.Float64
        kinds = (pl.String, numbers, pl.String, *[numbers] * 4)
        return pl.DataFrame(rows, dict(zip(columns, kinds, strict=True)), orient="row")

    def __str__(self) -> str:
        return "\n".join(
            f"{one.name}: at most {number(one.throughput_max)}/s, together with the others {number(one.together)}/s, "
            f"limited by {one.bottleneck}"
            for one in self.loads
        )


def bounds(scenario: Scenario) -> Bounds:
    """Bounds and estimates, without a simulation.

    Examples:
        >>> found = bounds(Scenario.starter())
        >>> found.stations[0].name
        'Pool-0: pCPUs'
    """
    it = model(scenario)
    servers = {name: station.servers for name, station in it.stations.items()}
    limits = {
        load.name: limit(
            load.demands,
            servers,
            rate=math.inf if load.rate is None else load.rate,
            customers=load.customers if load.has_response else math.inf,
            cycle=load.alone + load.think,
            words=LOAD_WORDS,
        )
        for load in it.loads
    }
    shares = together(it.loads, limits, it.stations)
    asked, busy = (
        mva.busy((rates[load.name].throughput, load.demands) for load in it.loads) for rates in (limits, shares)
    )
    estimated = estimate(it)
    loads = []
    for load in it.loads:
        most = limits[load.name]
        share = shares[load.name]
        # A fixed rate is served before all else, so it cannot get more than what is left by its equals.
        ceiling = most.throughput if load.rate is None else share.throughput
        throughput, response = _within(load, ceiling, estimated)
        least = least_response(load.customers, most.throughput, load.think, load.alone)
        least = least if load.rate is None else load.alone
        loads.append(
            LoadBound(
                load.name,
                most.throughput,
                most.by,
                share.throughput,
                share.by,
                least if load.has_response else None,
                throughput,
                response if load.has_response else None,
                load.demands,
            )
        )
    stations = [
        StationBound(name, one.kind, one.servers, *(rates.get(name, 0.0) / one.servers for rates in (asked, busy)))
        for name, one in it.stations.items()
    ]
    stations.sort(key=lambda one: -one.asked)
    left_out = (*it.not_modelled, *ALWAYS_LEFT_OUT)
    notes = tuple(sharing.said(scenario.to_dict()))
    return Bounds(scenario.name, tuple(loads), tuple(stations), estimated.method, left_out, it, notes)


def _within(load: Load, most: float, estimated: mva.Solution) -> tuple[float, float]:
    """The estimate, which a bound overrules: centres do not know of everything that bounds know."""
    throughput, response = estimated.throughput[load.name], estimated.response[load.name]
    if throughput <= most:
        return throughput, response
    return most, response if load.rate is not None else load.customers / most - load.think


# ---- estimates ----


def estimate(it: Model) -> mva.Solution:
    """The loads in a network of the stations that wait for one another, by mean-value analysis.

    CPU time is taken of each domain's vCPUs where there are pCPUs for all of them, otherwise of the pool. An open loop
    that asks for more than there is has as many requests under way as it may, and so is a closed one.
    """
    chosen = _centres(it)
    centres = [mva.Centre(station.name, max(1, round(station.servers))) for station in chosen]
    demands = {load.name: _at_centres(load, chosen) for load in it.loads}
    # What of a unit's least time is at no centre is spent on the way.
    away = {load.name: max(0.0, load.alone - math.fsum(demands[load.name].values())) for load in it.loads}
    saturated: set[str] = set()
    while True:
        open_ = [
            mva.Open(load.name, load.rate, demands[load.name])
            for load in it.loads
            if load.rate is not None and load.name not in saturated
        ]
        beyond = _beyond(centres, open_)
        if not beyond:
            break
        saturated |= beyond
    closed = [
        mva.Closed(load.name, load.customers, demands[load.name], load.think + away[load.name])
        for load in it.loads
        if load.rate is None or load.name in saturated
    ]
    found = mva.solve(centres, closed, open_)
    response = {load.name: found.response[load.name] + away[load.name] for load in it.loads}
    return replace(found, response=response)


def _centres(it: Model) -> list[Station]:
    """Stations that count in estimates: each second of service is at one of them only."""
    used = {name for load in it.loads for name, demand in load.demands.items() if demand > 0}
    stations = [station for name, station in it.stations.items() if name in used]
    of = {
        kind: [station for station in stations if station.kind == kind] for kind in ("domain", "pool", "vcpu", "thread")
    }
    crowded = sum(one.servers for one in of["domain"]) > sum(one.servers for one in of["pool"])
    devices = [station for station in stations if station.kind in ("link", "client machine", "disk")]
    return [*devices, *(of["pool"] if crowded else [*of["thread"], *of["domain"], *of["vcpu"]])]


def _at_centres(load: Load, centres: list[Station]) -> dict[str, float]:
    """Demands at the centres: a certain vCPU's work is none of the others'; a part of a server takes longer."""
    found = {}
    for station in centres:
        demand = load.demands.get(station.name, 0.0)
        if demand and station.kind == "domain":
            own = [one.name for one in centres if one.kind == "vcpu" and one.of == station.of]
            demand -= math.fsum(load.demands.get(name, 0.0) for name in own)
        if demand > 1e-15:
            found[station.name] = demand * max(1, round(station.servers)) / station.servers
    return found


def _beyond(centres: list[mva.Centre], open_: list[mva.Open]) -> set[str]:
    """Open loads at a centre that cannot serve all that they ask for."""
    found: set[str] = set()
    for centre in centres:
        busy = math.fsum(one.rate * one.demands.get(centre.name, 0.0) for one in open_)
        if busy >= centre.servers:
            found |= {one.name for one in open_ if one.demands.get(centre.name, 0.0) > 0}
    return found
