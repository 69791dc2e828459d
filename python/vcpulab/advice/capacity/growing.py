"""How much more a host can carry: the largest load that keeps SLOs, and what stops it from carrying more."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import polars as pl

from vcpulab.advice import sharing, starving
from vcpulab.advice.capacity.alone import Alone, alone
from vcpulab.advice.capacity.judging import REPLICATIONS, Judged, Standing, together, try_out, worst
from vcpulab.advice.capacity.occupancy import Station, bottleneck, stations
from vcpulab.advice.capacity.search import Found, search
from vcpulab.advice.capacity.slos import default_slos, served
from vcpulab.advice.capacity.varying import Growth
from vcpulab.advice.verdicts import NotFound, Verdict
from vcpulab.budget import Budget
from vcpulab.errors import Interrupted, RequestError
from vcpulab.results.addresses import Slo, app_rows, in_short
from vcpulab.scenario.alike import rows
from vcpulab.show.answer import Answer

FULL = 0.9
"""A station that is used so much is full: nothing else limits a larger load."""


@dataclass(frozen=True)
class Point:
    """A load, run and judged."""

    value: float
    judged: list[Judged]
    """How each SLO stands; one that copies have, too, as it stands for the worst of them."""
    standing: Standing
    replications: int
    stations: list[Station]
    """How busy everything is that the SLO nearest to breaking depends on, the fullest first."""
    starved: Mapping[str, str] = field(default_factory=dict)
    """Who starves there, with the reason."""

    @property
    def worst(self) -> Judged:
        """The SLO that is broken most, or nearest to it."""
        return worst(self.judged)

    @property
    def bottleneck(self) -> Station | None:
        """What is nearest to full."""
        return bottleneck(self.stations)


@dataclass(frozen=True)
class Capacity(Answer):
    """The answer to how much more."""

    growth: Growth
    slos: list[Slo]
    by_default: bool
    """Were no SLOs given?"""
    found: Found
    points: list[Point]
    """Every load tried, in order."""
    alone: Alone | None = None
    """Where the lowest load breaks an SLO: that SLO's number, of the service alone on the host."""

    @property
    def verdict(self) -> Verdict | None:
        """Why no load was found: proven, or not found; `None`: one was found, or the lowest one may keep the SLOs."""
        lowest = self.point(self.growth.within.lowest)
        if self.found.value is not None or lowest is None or lowest.standing != "broken":
            return None
        proof = None if self.alone is None else self.alone.proof(lowest.worst.slo)
        return proof or NotFound(1, (f"{self.growth.name} = {self.growth.said(lowest.value)}",), "load")

    @cached_property
    def in_short(self) -> dict[str, list[Slo]]:
        """The SLOs, those on one metric of alike things under one name; what came nearest to breaking first."""
        there = self.growth.at(self.growth.present)
        # A failure is one, whoever's it is.
        failures = [one for one in self.slos if one.bound == 0]
        others = [one for one in self.slos if one.bound != 0]
        found = in_short(failures) | in_short(others, app_rows(there, rows(there)))
        slack = {
            slo: min((point.judged[index].slack for point in self.points), default=0.0)
            for index, slo in enumerate(self.slos)
        }
        return dict(sorted(found.items(), key=lambda named: min(slack[slo] for slo in named[1])))

    @cached_property
    def notes(self) -> list[str]:
        """What the number of pCPUs does not say."""
        return sharing.said(self.growth.at(self.growth.present).to_dict())

    def point(self, value: float | None) -> Point | None:
        """What was measured at a load."""
        return next((point for point in self.points if point.value == value), None)

    @property
    def first_beyond(self) -> Point | None:
        """The first load that is broken; where none is, the first that is not known to hold."""
        beyond = [point for point in self.points if point.standing == "broken"]
        beyond = beyond or [point for point in self.points if point.standing == "open"]
        return beyond[0] if beyond else None

    @property
    def saturated(self) -> Point | None:
        """Where the bottleneck shows: the first load beyond at which something is full, or else the largest tried."""
        there = [point for point in self.points if point.bottleneck is not None]
        least = -math.inf if self.found.value is None else self.found.value
        beyond = [point for point in there if point.value > least] or there[-1:]
        full = (point for point in beyond if point.bottleneck is not None and point.bottleneck.used >= FULL)
        return next(full, beyond[-1] if beyond else None)

    def to_frame(self) -> pl.DataFrame:
        """A row for each load tried: how it stands, the SLO nearest to breaking, and what is fullest."""
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

    def __str__(self) -> str:
        most, first = self.found.value, self.first_beyond
        sentence = f"{self.growth.name}: " + ("no load was found" if most is None else f"{most:g} keeps the SLOs")
        if self.found.stopped is not None:
            sentence += f"; {self.found.stopped}"
        return sentence if first is None else f"{sentence}; at {first.value:g} the first to break is {first.worst.slo}"

    def document(self) -> dict[str, object]:
        """As plain data."""
        found, beyond, saturated = self.found, self.first_beyond, self.saturated
        first = beyond.worst if beyond else None
        full = saturated.bottleneck if saturated else None
        return {
            "grows": self.growth.name,
            "present": self.growth.present,
            "outcome": found.outcome,
            "value": found.value,
            "open_until": found.open_until,
            "broken_from": found.broken,
            "stopped": found.stopped,
            **({"notes": self.notes} if self.notes else {}),
            "verdict": None if self.verdict is None else self.verdict.sentence([str(self.points[0].worst.slo)]),
            "slos": [str(slo) for slo in self.slos],
            "slos_by_default": self.by_default,
            "first_to_break": first.row() if first else None,
            "bottleneck": {"at": saturated.value, **full.row()} if saturated and full else None,
            "broken_below": found.broken_below,
            "holds_above": found.holds_above,
            "points": [
                {
                    "value": point.value,
                    "standing": point.standing,
                    "starved": starving.rows(point.starved),
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
    progress: Callable[[str], None] = lambda _said: None,
) -> Capacity:
    """The largest value that keeps the SLOs.

    All loads meet the same random numbers, as far as they make the same requests.

    Args:
        growth: what grows.
        slos: what must hold, besides that clients' requests do not fail; without any: responses near those at the
            lowest load.
        replications: of each load to begin with; by default the scenario's, or five if it has fewer.
        jobs: replications at a time.
        budget: the time after which the search stops.
        progress: is told what is tried.

    Raises:
        RequestError: nothing has response times or failures that SLOs could be on by default.
        Interrupted: it was cancelled when some load had been tried.

    Examples:
        >>> from vcpulab import Scenario
        >>> from vcpulab.advice.capacity import growth
        >>> scenario = Scenario.starter().change({"run.duration": "500ms"})
        >>> answer = capacity(growth(scenario, "http.rate", highest=250, lowest=100))
        >>> answer.found.outcome
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
        progress(f"{growth.name} = {growth.said(value)}")
        groups = [growth.spread(slo, value) for slo in given]
        verdict = try_out(
            growth.at(value),
            [one for group in groups for one in group],
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
            starved=starving.starved(verdict.run),
        )
        return points[value].standing

    found = search(growth.within, measure)
    answer = Capacity(growth, given, not slos, found, [points[value] for value in sorted(points)])
    if found.interrupted:
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
