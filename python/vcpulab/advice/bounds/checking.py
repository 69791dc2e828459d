"""Comparison of simulated results with bounds and estimates: no simulation may exceed a bound."""

import math
from dataclasses import dataclass
from typing import Literal

import polars as pl

from vcpulab.advice.bounds.answers import LOAD_WORDS, Bounds
from vcpulab.advice.bounds.model import Load
from vcpulab.results.run import Run
from vcpulab.results.statistics import Interval

Quantity = Literal["throughput", "response", "busy"]

DEVIATIONS = 4.0
"""Standard errors by which a count may exceed its bound by chance (one in thirty thousand)."""


@dataclass(frozen=True)
class Checked:
    """A simulated result and its bound."""

    name: str
    """Name of a load or a station."""
    what: Quantity
    """Throughput, 1/s, and the fraction of time that a station is busy have upper bounds; response time, s, a lower."""
    simulated: Interval
    bound: float
    slack: float
    """Tolerance: work begun before the measurement began, and chance."""
    estimate: float | None

    @property
    def holds(self) -> bool:
        """Is the result within the bound?"""
        if self.what == "response":
            return self.simulated.mean >= self.bound - self.slack
        return self.simulated.mean <= self.bound + self.slack


def check(bounds: Bounds, run: Run) -> list[Checked]:
    """Compares simulated results with bounds.

    The results are the throughput of each load, its mean response time, and the work of all loads at each station,
    which cannot exceed the station's capacity.

    Args:
        bounds: the bounds of the scenario.
        run: a run of the scenario.

    Examples:
        >>> from vcpulab import Scenario, run
        >>> from vcpulab.advice.bounds import bounds
        >>> starter = Scenario.starter().change({"run.duration": "200ms", "run.replications": 1})
        >>> all(result.holds for result in check(bounds(starter), run(starter)))
        True
    """
    seconds = run.scenario.duration_ns * 1e-9
    measured = seconds * run.scenario.replications
    rates = {load.name: _throughput(load, run) for load in bounds.model.loads}
    slack, checked = {}, []
    for load, bound in zip(bounds.model.loads, bounds.loads, strict=True):
        by_load = bound.limit in LOAD_WORDS
        deviation = math.hypot(load.variation, load.randomness if by_load else 0.0)
        chance = DEVIATIONS * deviation * math.sqrt(bound.throughput_max / measured)
        slack[load.name] = load.ahead / seconds + chance
        limiting = bounds.model.stations.get(bound.limit)
        if limiting is not None:
            slack[load.name] += limiting.burst / seconds / load.demands[limiting.name]
        interval = Interval.from_values(rates[load.name])
        if interval is not None:
            checked.append(
                Checked(load.name, "throughput", interval, bound.throughput_max, slack[load.name], bound.throughput)
            )
        response = Interval.from_values(_responses(load, run)) if load.has_response else None
        if response is not None:
            count = max(1.0, sum(rates[load.name]) * seconds)
            chance = DEVIATIONS * load.variation * load.alone / math.sqrt(count)
            checked.append(Checked(load.name, "response", response, load.alone, chance, bound.response_s))
    for station in bounds.model.stations.values():
        demands = {load.name: load.demands.get(station.name, 0.0) / station.servers for load in bounds.model.loads}
        work = [
            math.fsum(rates[name][i] * demand for name, demand in demands.items())
            for i in range(run.scenario.replications)
        ]
        interval = Interval.from_values(work)
        if interval is not None and interval.mean > 0:
            spare = math.fsum(slack[name] * demand for name, demand in demands.items())
            spare += station.burst / seconds / station.servers
            checked.append(Checked(station.name, "busy", interval, 1.0, spare, None))
    return checked


def _rows(load: Load) -> pl.Expr:
    return pl.any_horizontal(*((pl.col("domain") == domain) & (pl.col("app") == app) for domain, app in load.rows))


def _throughput(load: Load, run: Run) -> list[float]:
    """Units in a second, by replication."""
    rows = run.df_apps().filter(_rows(load)).group_by("replication").agg(pl.col("throughput_per_s").sum())
    return [float(value) for value in rows.sort("replication")["throughput_per_s"]]


def _responses(load: Load, run: Run) -> list[float | None]:
    """Mean response time, s, by replication."""
    mean = (pl.col("response_mean_ns") * pl.col("completed")).sum() / pl.col("completed").sum() / 1e9
    answered = pl.col("response_mean_ns").is_not_null() & (pl.col("completed") > 0)
    rows = run.df_apps().filter(_rows(load), answered).group_by("replication").agg(mean.alias("mean"))
    return list(rows.sort("replication")["mean"])
