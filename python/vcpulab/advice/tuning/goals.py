"""What a setting is wanted for: goals, how much a setting gains of each, and the SLOs that it must keep.

Goals are of many units. A gain is what was gained over the present setting on the same random numbers, on one scale: of
rates, times and counts the natural logarithm of the ratio (so 0.1 is about 10 %, 0.7 twice as good, and each further
factor counts as much as the one before); of percentages and indices, which have an end, the difference over the whole
(so 0.1 is ten points). The score is the mean gain, by weight.

A logarithm needs an end below. A replication cannot tell less than half an event from none, nor an answer that never
came from one that takes longer than it lasts: so they count.
"""

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from vcpulab.errors import RequestError
from vcpulab.results.addresses import Address, Slo, addresses, apps, find_all, judged
from vcpulab.results.metrics import COUNT
from vcpulab.results.run import Run, run
from vcpulab.scenario.scenario import Scenario, join

Row = Mapping[str, float | None]
"""The metrics of one replication."""


def rows(measured: Run, asked: Iterable[Address]) -> list[Row]:
    """What a run measured of these, replication by replication."""
    found = measured.values(asked)
    return [{name: listed[index] for name, listed in found.items()} for index in range(measured.scenario.replications)]


LEAST_EVENTS = 0.5
"""A count of none, and a rate of none in a replication, count as this many."""
LEAST_S = 1e-6
"""Nobody feels a shorter time, s."""
UNDEFINED = 2.0
"""To have a percentage or an index at all is worth this much: two wholes."""
_EXCESS_MAX = 1e6
_MEANS = 0.1
_LOOK = 2
"""Replications that say whether an SLO holds as it is."""


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
    felt: float | None = None
    """Above this a response time is late, in the unit of the metric; `None`: that is not known, or an SLO says it."""
    seconds: float = 1.0
    """How long a replication lasts."""

    def gain(self, new: Row, old: Row) -> float:
        """How much better a replication is than the same one under another setting; 0: alike."""
        # Every domain counts alike, however many run in it.
        by_domain: dict[str, list[float]] = {}
        for one in self.addresses:
            by_domain.setdefault(one.domain, []).append(self._gain(one, new[one.name], old[one.name]))
        return math.fsum(math.fsum(gains) / len(gains) for gains in by_domain.values()) / len(by_domain)

    def _gain(self, one: Address, new: float | None, old: float | None) -> float:
        whole = one.metric.unit.whole
        if whole is None:
            better = math.log(self._counted(one, new) / self._counted(one, old))
        elif new is None or old is None:
            return UNDEFINED * ((new is not None) - (old is not None))
        else:
            better = (new - old) / whole
        return better if self.higher else -better

    def _counted(self, one: Address, value: float | None) -> float:
        """What a value without an end counts as: above 0, and where nothing was completed as bad as can be."""
        unit = one.metric.unit
        second = unit.written.get("s")
        if second is not None:
            least, never = LEAST_S * second, self.seconds * second
        else:
            least = LEAST_EVENTS if unit is COUNT else LEAST_EVENTS / self.seconds
            never = 1 / least
        if value is None:
            value = 0.0 if self.higher else never
        return max(value, least, self.floor or 0.0)

    def percent(self, gain: float) -> float:
        """A gain in percent: of rates how much more, of times how much less; of what has an end in points."""
        if self.addresses[0].metric.unit.whole is not None:
            return 100 * gain
        return 100 * (math.expm1(gain) if self.higher else -math.expm1(-gain))

    def __str__(self) -> str:
        return f"{'maximise' if self.higher else 'minimise'} {self.name}"


def lasts_s(scenario: Scenario) -> float:
    """How long a replication lasts, its warm-up included, s."""
    return (scenario.warmup_ns + scenario.duration_ns) / 1e9


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
    shown = found[0].name if len(found) == 1 else name
    return Goal(shown, tuple(found), higher, seconds=lasts_s(scenario))


def default_goals(scenario: Scenario) -> list[Goal]:
    """What is wanted where nobody says: throughput, response times, fairness, driver domains that do not wait.

    The last two are means rather than ends: they count for a tenth, so that no customer regresses for them.

    A service is judged by those who ask it. Jobs that an import assumed are no goals where there is anything else.

    Examples:
        >>> [str(goal) for goal in default_goals(Scenario.starter())]
        ['maximise throughput', 'minimise response_p99', 'maximise host.fairness', 'minimise dom0.waited']
    """
    document = scenario.to_dict()
    assumed = {app.name for app in apps(scenario) if app.assumed}
    every = {address.thing for address in judged(scenario)}
    things = every - assumed or every
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
        Goal(
            chosen[0].name if len(chosen) == 1 and "." not in name else name,
            tuple(chosen),
            higher,
            weight,
            seconds=lasts_s(scenario),
        )
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


def missed(scenario: Scenario, slos: Sequence[Slo], *, jobs: int = 0) -> list[Slo]:
    """The SLOs that do not hold as it is.

    Raises:
        EngineError: the run failed.
    """
    if not slos:
        return []
    found = rows(run(scenario.with_run(replications=_LOOK), jobs=jobs), [slo.address for slo in slos])
    return [slo for slo in slos if excess(slo, found) > 0]


def goals(
    scenario: Scenario, maximise: Iterable[str], minimise: Iterable[str], missed: Sequence[Slo] = ()
) -> list[Goal]:
    """The goals that are stated by hand; where none are, SLOs that do not hold; where all do, the default ones.

    Raises:
        RequestError: there is no such metric, or one is named twice.
    """
    found = [goal(scenario, name, higher=True) for name in maximise]
    found += [goal(scenario, name, higher=False) for name in minimise]
    names = [one.name for one in found]
    for name in names:
        if names.count(name) > 1:
            raise RequestError(f"`{name}` is named twice", field="maximise", allowed="each metric once")
    wanted = {slo.address.name: slo for slo in missed}
    found = found or [goal(scenario, name, higher=slo.operator.startswith(">")) for name, slo in wanted.items()]
    return found or default_goals(scenario)
