"""The largest load that keeps SLOs on a host, and the bottleneck beyond it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import polars as pl

from vcpulab._work.budget import Budget
from vcpulab.advice import core_sharing, starvation
from vcpulab.advice.capacity.document import document as document_of
from vcpulab.advice.capacity.judging import REPLICATIONS, Judged, Standing, together, try_out, worst
from vcpulab.advice.capacity.occupancy import FULL, Station, bottleneck, stations
from vcpulab.advice.capacity.search import SearchResult, search
from vcpulab.advice.capacity.service_alone import Alone, alone
from vcpulab.advice.capacity.slos import default_slos, served
from vcpulab.advice.capacity.varying import Growth
from vcpulab.advice.verdicts import NotFound, Verdict
from vcpulab.errors import Interrupted, RequestError
from vcpulab.results.addresses import Slo, app_rows, in_short
from vcpulab.scenario.alike import rows
from vcpulab.show.answer import Answer
from vcpulab.show.document import Document

_USUAL = 8
"""The number of loads at which half of a search is reported as done."""


@dataclass(frozen=True)
class Point:
    """A load, run and judged."""

    value: float
    judged: list[Judged]
    """The standing of each SLO; of an SLO that every copy has, the worst standing."""
    standing: Standing
    replications: int
    stations: list[Station]
    """The stations that the SLO nearest to breaking depends on, the fullest first."""
    starved: Mapping[str, str] = field(default_factory=dict)
    """The starved domains at this load, each with the reason."""

    @property
    def worst(self) -> Judged:
        """The SLO that is broken most, or is nearest to breaking."""
        return worst(self.judged)

    @property
    def bottleneck(self) -> Station | None:
        """The station nearest to full."""
        return bottleneck(self.stations)


@dataclass(frozen=True)
class Capacity(Answer):
    """The largest load that keeps the SLOs, and every load that was tried."""

    growth: Growth
    slos: list[Slo]
    by_default: bool
    """Were no SLOs given?"""
    result: SearchResult
    points: list[Point]
    """Every load tried, in order."""
    alone: Alone | None = None
    """If the lowest load breaks an SLO: the SLO's metric with the service alone on the host."""

    @property
    def verdict(self) -> Verdict | None:
        """The reason why no load keeps the SLOs: proven, or not found; `None`: a load keeps them, or the lowest may."""
        lowest = self.point(self.growth.within.lowest)
        if self.result.value is not None or lowest is None or lowest.standing != "broken":
            return None
        proof = None if self.alone is None else self.alone.proof(lowest.worst.slo)
        return proof or NotFound(1, (f"{self.growth.name} = {self.growth.format(lowest.value)}",), "load")

    @cached_property
    def in_short(self) -> dict[str, list[Slo]]:
        """Name to SLOs: those on one metric of alike things share a name; the nearest to breaking come first."""
        scenario = self.growth.at(self.growth.present)
        # Failures of things that are not alike share a name, too.
        failures = [slo for slo in self.slos if slo.bound == 0]
        limits = [slo for slo in self.slos if slo.bound != 0]
        by_name = in_short(failures) | in_short(limits, app_rows(scenario, rows(scenario)))
        slack = {
            slo: min((point.judged[index].slack for point in self.points), default=0.0)
            for index, slo in enumerate(self.slos)
        }
        return dict(sorted(by_name.items(), key=lambda named: min(slack[slo] for slo in named[1])))

    @cached_property
    def notes(self) -> list[str]:
        """Notes on pCPUs that are not whole cores of their own."""
        return core_sharing.notes(self.growth.at(self.growth.present).model)

    def point(self, value: float | None) -> Point | None:
        """The measurement at a load; `None`: the load was not tried."""
        return next((point for point in self.points if point.value == value), None)

    @property
    def first_beyond(self) -> Point | None:
        """The first load that breaks an SLO; if none does, the first that is not known to keep them."""
        beyond = [point for point in self.points if point.standing == "broken"]
        beyond = beyond or [point for point in self.points if point.standing == "open"]
        return beyond[0] if beyond else None

    @property
    def saturated(self) -> Point | None:
        """The load that shows the bottleneck: the first one too large at which a station is full, or the largest."""
        points = [point for point in self.points if point.bottleneck is not None]
        least = -math.inf if self.result.value is None else self.result.value
        beyond = [point for point in points if point.value > least] or points[-1:]
        full = (point for point in beyond if point.bottleneck is not None and point.bottleneck.used >= FULL)
        return next(full, beyond[-1] if beyond else None)

    def to_frame(self) -> pl.DataFrame:
        """A row for each load tried: its standing, the SLO nearest to breaking, and the fullest station."""
        rows = [
            (
                point.value,
                point.standing,
                point.replications,
                str(point.worst.slo),
                None if point.worst.interval is None else point.worst.interval.mean,
                None if point.bottleneck is None else point.bottleneck.name,
            )
            for point in self.points
        ]
        columns = ("value", "standing", "replications", "slo", "mean", "fullest")
        kinds = (pl.Float64, pl.String, pl.UInt32, pl.String, pl.Float64, pl.String)
        return pl.DataFrame(rows, dict(zip(columns, kinds, strict=True)), orient="row")

    def document(self) -> Document:
        """The answer as a document."""
        return document_of(self)

    def as_data(self) -> dict[str, object]:
        """As plain data."""
        result, beyond, saturated = self.result, self.first_beyond, self.saturated
        first = beyond.worst if beyond else None
        full = saturated.bottleneck if saturated else None
        return {
            "grows": self.growth.name,
            "present": self.growth.present,
            "outcome": result.outcome,
            "value": result.value,
            "open_until": result.open_until,
            "broken_from": result.broken,
            "stopped": result.stopped,
            **({"notes": self.notes} if self.notes else {}),
            "verdict": None if self.verdict is None else self.verdict.sentence([str(self.points[0].worst.slo)]),
            "slos": [str(slo) for slo in self.slos],
            "slos_by_default": self.by_default,
            "first_to_break": first.row() if first else None,
            "bottleneck": {"at": saturated.value, **full.row()} if saturated and full else None,
            "broken_below": result.broken_below,
            "holds_above": result.holds_above,
            "points": [
                {
                    "value": point.value,
                    "standing": point.standing,
                    "starved": starvation.rows(point.starved),
                    "replications": point.replications,
                    "slos": [judged.row() for judged in point.judged],
                    "stations": [station.row() for station in point.stations],
                }
                for point in self.points
            ],
        }


def capacity(
    growth: Growth,
    slos: Sequence[Slo] = (),
    *,
    replications: int | None = None,
    jobs: int = 0,
    budget: Budget | None = None,
) -> Capacity:
    """The largest value that keeps the SLOs.

    All loads use the same random numbers, as far as they make the same requests.

    Args:
        growth: the load that grows.
        slos: the SLOs to keep, besides the one that clients' requests do not fail; without any: responses near those
            at the lowest load.
        replications: of each load to begin with; by default the scenario's, or five if it has fewer.
        jobs: replications at a time.
        budget: the time after which the search stops, and the progress that takes each load that is tried.

    Raises:
        RequestError: nothing has response times or failures that SLOs could be on by default.
        Interrupted: the search was cancelled after at least one load was tried.

    Examples:
        >>> from vcpulab import Scenario
        >>> from vcpulab.advice.capacity import growth
        >>> scenario = Scenario.starter().change({"run.duration": "500ms"})
        >>> answer = capacity(growth(scenario, "http.rate", highest=250, lowest=100))
        >>> answer.result.outcome
        'all'
    """
    lowest = growth.at(growth.within.lowest)
    replications = replications or max(lowest.replications, REPLICATIONS)
    budget = budget or Budget()
    given = served(lowest, slos)
    points: dict[float, Point] = {}

    def measure(value: float) -> Standing:
        if not given:
            given.extend(_defaults(growth, replications, jobs, budget))
        budget.step(f"{growth.name} = {growth.format(value)}", usual=_USUAL)
        groups = [growth.spread(slo, value) for slo in given]
        verdict = try_out(
            growth.at(value),
            [slo for group in groups for slo in group],
            replications=replications,
            jobs=jobs,
            budget=budget,
        )
        judged = iter(verdict.judged)
        of_each = [worst([next(judged) for _ in group]) for group in groups]
        concerned = worst(verdict.judged).slo.address.domain
        points[value] = Point(
            value=value,
            judged=of_each,
            standing=together(verdict.judged),
            replications=verdict.run.scenario.replications,
            stations=stations(verdict.run, [concerned] if concerned else []),
            starved=starvation.starved(verdict.run),
        )
        return points[value].standing

    result = search(growth.within, measure)
    answer = Capacity(growth, given, not slos, result, [points[value] for value in sorted(points)])
    if result.interrupted:
        raise Interrupted(answer) if points else KeyboardInterrupt
    if answer.verdict is None:
        return answer
    (first, *_) = answer.points
    return replace(answer, alone=alone(growth.at(first.value), first.worst.slo.address, jobs=jobs))


def _defaults(growth: Growth, replications: int, jobs: int, budget: Budget) -> list[Slo]:
    from vcpulab.results.run import run

    idle = growth.at(growth.within.lowest).with_run(replications=replications)
    slos = default_slos(budget.watch(run, idle, jobs=jobs))
    if not slos:
        raise RequestError("needed, because nothing completed a request at the lowest load", field="slo")
    return slos
