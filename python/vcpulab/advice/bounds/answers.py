"""Bounds and estimates of a scenario: throughput, bottleneck and response time of each load."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from vcpulab.advice import core_sharing
from vcpulab.advice.bounds import mva
from vcpulab.advice.bounds.asymptotic import least_response, limit
from vcpulab.advice.bounds.document import document as document_of
from vcpulab.advice.bounds.model import Load, Model, Station
from vcpulab.advice.bounds.stations import model
from vcpulab.advice.bounds.together import together
from vcpulab.scenario.alike import rows
from vcpulab.scenario.scenario import Scenario
from vcpulab.show.answer import Answer
from vcpulab.show.document import Document

if TYPE_CHECKING:
    from vcpulab.advice.bounds.checking import Checked

ALWAYS_LEFT_OUT = (
    "context switches, decisions, interrupts and upcalls, cold caches: the bounds hold without them, estimates are too "
    "good by them",
    "weights, priorities and reservations: the bounds hold for any, estimates share CPUs evenly",
)
LOAD_WORDS = ("rate", "customers")
"""Bottlenecks other than stations: the rate of requests, or the number of users who wait and think."""


@dataclass(frozen=True)
class LoadBound:
    """Bounds and estimates of a load."""

    name: str
    throughput_max: float
    """Upper bound on the throughput, units of work per second, for any work of the other loads."""
    limit: str
    """Limit that sets `throughput_max`: a station, `rate` (all requests are served), or `customers` (users who wait and
    think)."""
    together: float
    """Throughput beside all other loads: fixed rates first, then users who think, then programs without an end."""
    bottleneck: str
    """Limit of the throughput beside the other loads: a full station, or the value of `limit`."""
    response_min_s: float | None
    """Lower bound on the mean response time at that throughput, s; `None`: the load has no response time."""
    throughput: float
    """Estimated throughput, 1/s."""
    response_s: float | None
    """Estimated mean response time, s; infinite: it grows for as long as the load lasts."""
    demands: Mapping[str, float]
    """Least service of one unit, by station, s."""

    def undefined(self) -> dict[str, str]:
        """Reasons why some of these numbers are infinite, or `None`, by name."""
        rates = ("throughput_max", "together", "throughput")
        reasons = {name: "nothing limits it" for name in rates if getattr(self, name) == math.inf}
        for name in ("response_min_s", "response_s"):
            value = getattr(self, name)
            if value is None or value == math.inf:
                reasons[name] = "it answers nobody" if value is None else "it grows for as long as the load lasts"
        return reasons


@dataclass(frozen=True)
class StationBound:
    """A station and its utilization."""

    name: str
    kind: str
    servers: float
    asked: float
    """Utilization if every load had the throughput of its own bound; above 1 the loads exceed the station."""
    busy: float
    """Utilization if the loads share the host as in `LoadBound.together`: 1 at most."""


@dataclass(frozen=True)
class Bounds(Answer):
    """Bounds and estimates of a scenario's loads and stations."""

    scenario: str
    loads: tuple[LoadBound, ...]
    stations: tuple[StationBound, ...]
    """The busiest first."""
    method: str
    """Method of the estimates, with whether it is exact for the network."""
    not_modelled: tuple[str, ...]
    """Parts of the scenario that the model leaves out."""
    model: Model
    notes: tuple[str, ...] = ()
    """Remarks on pCPUs that share a core or a clock rate."""
    alike: tuple[tuple[str, ...], ...] = ()
    """The domains in rows of alike ones."""

    def document(self, checked: "Sequence[Checked] | None" = None) -> Document:
        """The bounds as a document.

        Args:
            checked: simulated results beside their bounds.
        """
        return document_of(self, checked)

    def to_frame(self) -> pl.DataFrame:
        """A row for each load: bounds and estimates of its throughput and response time, and its bottleneck."""
        rows = [
            (
                load.name,
                load.throughput_max,
                load.bottleneck,
                load.together,
                load.response_min_s,
                load.throughput,
                load.response_s,
            )
            for load in self.loads
        ]
        columns = ("load", "throughput_max", "bottleneck", "together", "response_min_s", "throughput", "response_s")
        numbers = pl.Float64
        kinds = (pl.String, numbers, pl.String, *[numbers] * 4)
        return pl.DataFrame(rows, dict(zip(columns, kinds, strict=True)), orient="row")


def bounds(scenario: Scenario) -> Bounds:
    """Bounds and estimates, without a simulation.

    Examples:
        >>> bounds(Scenario.starter()).stations[0].name
        'Pool-0: pCPUs'
    """
    network = model(scenario)
    servers = {name: station.servers for name, station in network.stations.items()}
    limits = {
        load.name: limit(
            load.demands,
            servers,
            rate=math.inf if load.rate is None else load.rate,
            customers=load.customers if load.has_response else math.inf,
            cycle=load.alone + load.think,
            words=LOAD_WORDS,
        )
        for load in network.loads
    }
    shares = together(network.loads, limits, network.stations)
    offered, busy = (
        mva.busy((rates[load.name].throughput, load.demands) for load in network.loads) for rates in (limits, shares)
    )
    estimated = estimate(network)
    loads = []
    for load in network.loads:
        most = limits[load.name]
        share = shares[load.name]
        # Loads with a fixed rate are served first, so only each other limits them.
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
        StationBound(
            name, station.kind, station.servers, *(rates.get(name, 0.0) / station.servers for rates in (offered, busy))
        )
        for name, station in network.stations.items()
    ]
    stations.sort(key=lambda station: -station.asked)
    left_out = (*network.not_modelled, *ALWAYS_LEFT_OUT)
    notes = tuple(core_sharing.notes(scenario.model))
    alike = tuple(map(tuple, rows(scenario)))
    return Bounds(scenario.name, tuple(loads), tuple(stations), estimated.method, left_out, network, notes, alike)


def _within(load: Load, most: float, estimated: mva.Solution) -> tuple[float, float]:
    """The estimate, no higher than the bound: a bound includes limits that no centre models."""
    throughput, response = estimated.throughput[load.name], estimated.response[load.name]
    if throughput <= most:
        return throughput, response
    return most, response if load.rate is not None else load.customers / most - load.think


# ---- estimates ----


def estimate(network: Model) -> mva.Solution:
    """Throughput and response time of the loads by mean-value analysis, on the stations where requests queue.

    CPU time is taken from each domain's vCPUs if the pool has a pCPU for each vCPU, otherwise from the pool. An open
    loop that overloads a station has its maximum of requests under way, so it is solved as a closed loop.
    """
    chosen = _centres(network)
    centres = [mva.Centre(station.name, max(1, round(station.servers))) for station in chosen]
    demands = {load.name: _at_centres(load, chosen) for load in network.loads}
    # The rest of a unit's least time, outside all centres, is a delay.
    away = {load.name: max(0.0, load.alone - math.fsum(demands[load.name].values())) for load in network.loads}
    saturated: set[str] = set()
    while True:
        open_ = [
            mva.Open(load.name, load.rate, demands[load.name])
            for load in network.loads
            if load.rate is not None and load.name not in saturated
        ]
        beyond = _beyond(centres, open_)
        if not beyond:
            break
        saturated |= beyond
    closed = [
        mva.Closed(load.name, load.customers, demands[load.name], load.think + away[load.name])
        for load in network.loads
        if load.rate is None or load.name in saturated
    ]
    solution = mva.solve(centres, closed, open_)
    response = {load.name: solution.response[load.name] + away[load.name] for load in network.loads}
    return replace(solution, response=response)


def _centres(network: Model) -> list[Station]:
    """Stations that count in estimates: each second of service is at exactly one station."""
    used = {name for load in network.loads for name, demand in load.demands.items() if demand > 0}
    stations = [station for name, station in network.stations.items() if name in used]
    by_kind = {
        kind: [station for station in stations if station.kind == kind] for kind in ("domain", "pool", "vcpu", "thread")
    }
    crowded = sum(station.servers for station in by_kind["domain"]) > sum(
        station.servers for station in by_kind["pool"]
    )
    devices = [station for station in stations if station.kind in ("link", "client machine", "disk")]
    return [*devices, *(by_kind["pool"] if crowded else [*by_kind["thread"], *by_kind["domain"], *by_kind["vcpu"]])]


def _at_centres(load: Load, centres: list[Station]) -> dict[str, float]:
    """Demands at the centres: the work of one vCPU is not work of the others; a fraction of a server takes longer."""
    demands = {}
    for station in centres:
        demand = load.demands.get(station.name, 0.0)
        if demand and station.kind == "domain":
            own = [centre.name for centre in centres if centre.kind == "vcpu" and centre.domain == station.domain]
            demand -= math.fsum(load.demands.get(name, 0.0) for name in own)
        if demand > 1e-15:
            demands[station.name] = demand * max(1, round(station.servers)) / station.servers
    return demands


def _beyond(centres: list[mva.Centre], open_: list[mva.Open]) -> set[str]:
    """Open loads that overload a centre."""
    overloading: set[str] = set()
    for centre in centres:
        busy = math.fsum(load.rate * load.demands.get(centre.name, 0.0) for load in open_)
        if busy >= centre.servers:
            overloading |= {load.name for load in open_ if load.demands.get(centre.name, 0.0) > 0}
    return overloading
