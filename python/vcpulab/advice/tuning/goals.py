"""What a setting is wanted for: goals, how much a setting gains of each, and the SLOs that it must keep.

Goals are of many units. A gain is what was gained over the present setting on the same random numbers, on one scale: of
rates and times the difference over the mean of both (so 0.1 is about 10 %, and 2 the most there is); of percentages and
indices, which have an end, the difference over the whole (so 0.1 is ten points). The score is the mean gain, by weight.
"""

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from vcpulab.errors import RequestError
from vcpulab.results.addresses import Address, Slo, addresses, find_all, judged
from vcpulab.results.run import Run
from vcpulab.scenario.scenario import Scenario, join

Row = Mapping[str, float | None]
"""The metrics of one replication."""


def rows(run: Run, asked: Iterable[Address]) -> list[Row]:
    """What a run measured of these, replication by replication."""
    found = run.values(asked)
    return [{name: listed[index] for name, listed in found.items()} for index in range(run.scenario.replications)]


GAIN_MAX = 2.0
_EXCESS_MAX = 1e6
_MEANS = 0.1


@dataclass(frozen=True)
class Goal:
    """Something to maximise or to minimise: a metric, or the mean gain of several of one kind."""

    name: str
    addresses: tuple[Address, ...]
    higher: bool
    weight: float = 1.0
    """How much it counts in the score."""
    floor: float | None = None
    """What is below counts as this: nobody feels the difference. In the unit of the metric."""

    def gain(self, new: Row, old: Row) -> float:
        """How much better a replication is than the same one under another setting; 0: alike."""
        # Every domain counts alike, however many run in it.
        by_domain: dict[str, list[float]] = {}
        for one in self.addresses:
            by_domain.setdefault(one.domain, []).append(self._gain(one, new[one.name], old[one.name]))
        return math.fsum(math.fsum(gains) / len(gains) for gains in by_domain.values()) / len(by_domain)

    def way(self, new: Sequence[Row], old: Sequence[Row]) -> float | None:
        """How much better its only metric is on average, in its unit; `None`: it has several, or no value somewhere."""
        name = self.addresses[0].name
        values = [[row[name] for row in rows] for rows in (new, old)]
        known = [[max(value, self.floor or value) for value in listed if value is not None] for listed in values]
        if len(self.addresses) > 1 or any(len(some) < len(all_) for some, all_ in zip(known, values, strict=True)):
            return None
        after, before = (math.fsum(some) / len(some) for some in known)
        return after - before if self.higher else before - after

    def _gain(self, one: Address, new: float | None, old: float | None) -> float:
        if new is None or old is None:
            # Nothing was completed, so that it is not defined: as bad as can be.
            return GAIN_MAX * ((new is not None) - (old is not None))
        if self.floor is not None:
            new, old = max(new, self.floor), max(old, self.floor)
        better = new - old if self.higher else old - new
        whole = one.metric.unit.whole or (abs(new) + abs(old)) / 2
        return better / whole if whole else 0.0

    def __str__(self) -> str:
        return f"{'maximise' if self.higher else 'minimise'} {self.name}"


def score(goals: Sequence[Goal], gains: Sequence[float]) -> float:
    """The mean gain, by weight."""
    return math.fsum(g.weight * gain for g, gain in zip(goals, gains, strict=True)) / math.fsum(g.weight for g in goals)


def goal(scenario: Scenario, name: str, *, higher: bool) -> Goal:
    """A goal that is stated by hand; a pattern of metrics is one goal, in which every domain counts alike.

    Raises:
        RequestError: there is no such metric.

    Examples:
        >>> print(goal(Scenario.starter(), "web.response_p99", higher=False))
        minimise http.response_p99
    """
    found = find_all(scenario, [name], "maximise" if higher else "minimise")
    return Goal(found[0].name if len(found) == 1 else name, tuple(found), higher)


def default_goals(scenario: Scenario) -> list[Goal]:
    """What is wanted where nobody says: throughput, response times, fairness, driver domains that do not wait.

    The last two are means rather than ends: they count for a tenth, so that no customer regresses for them.

    A service is judged by those who ask it.

    Examples:
        >>> [str(goal) for goal in default_goals(Scenario.starter())]
        ['maximise throughput', 'minimise response_p99', 'maximise host.fairness', 'minimise dom0.waited']
    """
    document = scenario.to_dict()
    things = {address.thing for address in judged(scenario)}
    listed = addresses(scenario)
    drivers = {join([name]) for name, table in document["domain"].items() if table.get("driver_domain")}

    def of(metric: str, things: Container[str]) -> list[Address]:
        return [address for address in listed if address.metric.name == metric and address.thing in things]

    wanted = (
        ("throughput", True, 1.0, of("throughput", things)),
        ("response_p99", False, 1.0, of("response_p99", things)),
        ("host.fairness", True, _MEANS, of("fairness", {"host"})),
        ("driver domains waited", False, _MEANS, of("waited", drivers)),
    )
    return [
        Goal(chosen[0].name if len(chosen) == 1 and "." not in name else name, tuple(chosen), higher, weight)
        for name, higher, weight, chosen in wanted
        if chosen
    ]


def contradictions(slos: Sequence[Slo]) -> None:
    """Refuses SLOs that nothing can keep.

    Raises:
        RequestError: two of them exclude each other.
    """
    for first in slos:
        for second in slos:
            if first.address.name != second.address.name or not first.operator.startswith("<"):
                continue
            strict = "=" not in first.operator or "=" not in second.operator
            if second.operator.startswith(">") and (
                second.bound > first.bound or (second.bound == first.bound and strict)
            ):
                raise RequestError(f"`{first}` and `{second}` contradict each other", field="slo")


def excess(slo: Slo, rows: Sequence[Row]) -> float:
    """How far the mean of a metric is beyond its SLO, as a fraction of it; 0 or less: it is kept."""
    values = [row[slo.address.name] for row in rows]
    present = [value for value in values if value is not None]
    if len(present) < len(values) or not present:
        return _EXCESS_MAX
    mean = math.fsum(present) / len(present)
    over = slo.excess(mean)
    return min(max(over, 0.0), _EXCESS_MAX) or 1e-12 if not slo.holds(mean) else min(over, 0.0)


def goals(scenario: Scenario, maximise: Iterable[str], minimise: Iterable[str]) -> list[Goal]:
    """The goals that are stated by hand; where none are, the default ones.

    Raises:
        RequestError: there is no such metric, or one is named twice.
    """
    found = [goal(scenario, name, higher=True) for name in maximise]
    found += [goal(scenario, name, higher=False) for name in minimise]
    names = [one.name for one in found]
    for name in names:
        if names.count(name) > 1:
            raise RequestError(f"`{name}` is named twice", field="maximise", allowed="each metric once")
    return found or default_goals(scenario)
