"""Goals of a search, the gain of a setting for each goal, and the SLOs that a setting must keep.

Goals have many units. A gain compares a setting with the present one on the same random numbers, on one scale. For
rates, times and counts it is the natural logarithm of the ratio (0.1 is about 10 %, 0.7 twice as good, and each further
factor counts as much as the one before). For percentages and indices, which have a maximum, it is the difference over
the maximum (0.1 is ten points). The score is the mean gain, by weight.

A logarithm needs a lower limit. A replication cannot distinguish less than half an event from none, so none counts as
half an event. An answer that never came counts as one that takes as long as the replication.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from vcpulab.errors import RequestError
from vcpulab.results.addresses import Address, Slo, addresses, apps, find_all, judged
from vcpulab.results.metrics import COUNT, Quantity
from vcpulab.results.run import Run, run
from vcpulab.scenario.scenario import Scenario, join

Row = Mapping[str, float | None]
"""The metrics of one replication."""


def rows(measured: Run, metrics: Iterable[Address]) -> list[Row]:
    """The values of these metrics in a run, a row for each replication."""
    values = measured.values(metrics)
    return [{name: listed[index] for name, listed in values.items()} for index in range(measured.scenario.replications)]


LEAST_EVENTS = 0.5
"""A count of none, and a rate of none in a replication, count as this many."""
LEAST_S = 1e-6
"""Shorter times count as this long, s: the difference is negligible."""
UNDEFINED = 2.0
"""Gain of a percentage or an index that is defined over one that is not: twice the maximum."""
_EXCESS_MAX = 1e6
_MEANS = 0.1
_LOOK = 2
"""Replications of the check whether an SLO holds under the present setting."""


@dataclass(frozen=True)
class Goal:
    """A metric to maximise or to minimise, or the mean gain of several metrics of one kind."""

    name: str
    addresses: tuple[Address, ...]
    higher: bool
    weight: float = 1.0
    """Weight of the goal in the score."""
    floor: float | None = None
    """Lower values count as this: users notice no difference. In the unit of the metric."""
    felt: float | None = None
    """Limit above which a response time is late, in the unit of the metric; `None`: not known, or set by an SLO."""
    seconds: float = 1.0
    """Duration of a replication."""

    def gain(self, new: Row, old: Row) -> float:
        """The gain of a replication over the same one under another setting; 0: no difference."""
        # Every domain counts alike, however many run in it.
        by_domain: dict[str, list[float]] = {}
        for address in self.addresses:
            by_domain.setdefault(address.domain, []).append(self._gain(address, new[address.name], old[address.name]))
        return math.fsum(math.fsum(gains) / len(gains) for gains in by_domain.values()) / len(by_domain)

    def _gain(self, address: Address, new: float | None, old: float | None) -> float:
        whole = address.metric.unit.whole
        if whole is None:
            better = math.log(self._counted(address, new) / self._counted(address, old))
        elif new is None or old is None:
            return UNDEFINED * ((new is not None) - (old is not None))
        else:
            better = (new - old) / whole
        return better if self.higher else -better

    def _counted(self, address: Address, value: float | None) -> float:
        """The value inside the logarithm: above 0, and the worst possible one if nothing was completed."""
        unit = address.metric.unit
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
        """A gain in percent: the increase of a rate, the decrease of a time; for a metric with a maximum, points."""
        if self.addresses[0].metric.unit.whole is not None:
            return 100 * gain
        return 100 * (math.expm1(gain) if self.higher else -math.expm1(-gain))

    def __str__(self) -> str:
        return f"{'maximise' if self.higher else 'minimise'} {self.name}"


def lasts_s(scenario: Scenario) -> float:
    """Duration of a replication with its warm-up, s."""
    return (scenario.warmup_ns + scenario.duration_ns) / 1e9


def score(goals: Sequence[Goal], gains: Sequence[float]) -> float:
    """The mean gain, by weight."""
    return math.fsum(g.weight * gain for g, gain in zip(goals, gains, strict=True)) / math.fsum(g.weight for g in goals)


def goal(scenario: Scenario, name: str, *, higher: bool) -> Goal:
    """A goal stated by hand; a pattern of metrics is one goal, in which every domain counts alike.

    Raises:
        RequestError: no such metric.

    Examples:
        >>> print(goal(Scenario.starter(), "web.response_p99", higher=False))
        minimise http.response_p99
    """
    metrics = find_all(scenario, [name], "maximise" if higher else "minimise")
    shown = metrics[0].name if len(metrics) == 1 else name
    return Goal(shown, tuple(metrics), higher, seconds=lasts_s(scenario))


def default_goals(scenario: Scenario) -> list[Goal]:
    """The default goals: throughput, response times, fairness, and the waiting time of driver domains.

    The last two are means rather than ends: they count for a tenth, so that no customer regresses for them.

    A service is judged by its clients. Jobs that an import assumed are no goals if the scenario has any other load.

    Examples:
        >>> [str(goal) for goal in default_goals(Scenario.starter())]
        ['maximise throughput', 'minimise response_p99', 'maximise host.fairness', 'minimise dom0.waited']
    """
    assumed = {app.name for app in apps(scenario) if app.assumed}
    every = {address.thing for address in judged(scenario)}
    things = every - assumed or every
    listed = addresses(scenario)
    drivers = {join([name]) for name, domain in scenario.domains.items() if domain.driver_domain}

    own = [address for address in listed if address.thing in things]
    wanted = (
        ("throughput", True, 1.0, _of_quantity(own, Quantity.THROUGHPUT)),
        ("response_p99", False, 1.0, [address for address in own if address.metric.is_judged_response]),
        ("host.fairness", True, _MEANS, _of_quantity(listed, Quantity.FAIRNESS)),
        (
            "driver domains waited",
            False,
            _MEANS,
            [address for address in _of_quantity(listed, Quantity.WAITING_TIME) if address.thing in drivers],
        ),
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


def _of_quantity(listed: Iterable[Address], quantity: Quantity) -> list[Address]:
    return [address for address in listed if address.metric.quantity is quantity]


def contradictions(slos: Sequence[Slo]) -> None:
    """Refuses contradictory SLOs.

    Raises:
        RequestError: two SLOs exclude each other.
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
    """The distance of a metric's mean beyond its SLO, as a fraction of the bound; 0 or less: the SLO is kept."""
    values = [row[slo.address.name] for row in rows]
    present = [value for value in values if value is not None]
    if len(present) < len(values) or not present:
        return _EXCESS_MAX
    mean = math.fsum(present) / len(present)
    over = slo.excess(mean)
    return min(max(over, 0.0), _EXCESS_MAX) or 1e-12 if not slo.holds(mean) else min(over, 0.0)


def missed(scenario: Scenario, slos: Sequence[Slo], *, jobs: int = 0) -> list[Slo]:
    """The SLOs that do not hold under the present setting.

    Raises:
        EngineError: the run failed.
    """
    if not slos:
        return []
    measured = rows(run(scenario.with_run(replications=_LOOK), jobs=jobs), [slo.address for slo in slos])
    return [slo for slo in slos if excess(slo, measured) > 0]


def goals(
    scenario: Scenario, maximise: Iterable[str], minimise: Iterable[str], missed: Sequence[Slo] = ()
) -> list[Goal]:
    """The goals stated by hand; without any, the SLOs that do not hold; if all hold, the default goals.

    Raises:
        RequestError: no such metric, or one is named twice.
    """
    chosen = [goal(scenario, name, higher=True) for name in maximise]
    chosen += [goal(scenario, name, higher=False) for name in minimise]
    names = [stated.name for stated in chosen]
    for name in names:
        if names.count(name) > 1:
            raise RequestError(f"`{name}` is named twice", field="maximise", allowed="each metric once")
    wanted = {slo.address.name: slo for slo in missed}
    chosen = chosen or [goal(scenario, name, higher=slo.operator.startswith(">")) for name, slo in wanted.items()]
    return chosen or default_goals(scenario)
