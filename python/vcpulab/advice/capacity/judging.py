"""Decides over replications, with 95 % confidence, whether an SLO holds, is broken, or is open.

An SLO holds if the one-sided confidence bound of the metric's mean keeps it, and is broken if the bound on the other
side breaks it (Student's t). A host holds if all its SLOs hold, which needs no correction (an intersection-union test:
Berger 1982, "Multiparameter hypothesis testing and acceptance sampling", Technometrics 24, pp. 295-300). It is broken
if one SLO is broken; for that, the error is divided by the number of SLOs (Bonferroni). An open verdict is repeated
with twice the replications, with at most `LOOKS` looks; the error is divided by the number of looks, too.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from vcpulab._work.budget import Budget
from vcpulab.results.addresses import Slo
from vcpulab.results.run import Run, run
from vcpulab.results.statistics import CONFIDENCE, Interval, t_quantile
from vcpulab.scenario.scenario import Scenario

Standing = Literal["holds", "open", "broken"]
LOOKS = 3
REPLICATIONS = 5
"""The least number of replications to begin with."""


@dataclass(frozen=True)
class Judged:
    """An SLO and its standing."""

    slo: Slo
    interval: Interval | None
    """The metric's mean with its two-sided interval; `None`: never defined, for example because nothing completed."""
    standing: Standing

    @property
    def slack(self) -> float:
        """The distance of the mean from the bound, as a fraction of it; negative: broken. 1 if a bound of 0 is kept."""
        if self.standing == "holds" and self.slo.bound == 0:
            return 1.0
        return -self.slo.excess(None if self.interval is None else self.interval.mean)

    def row(self) -> dict[str, object]:
        """As flat data."""
        mean, half_width, n = self.interval[:3] if self.interval else (None, None, 0)
        return {
            "slo": str(self.slo),
            "metric": self.slo.address.name,
            "mean": mean,
            "half_width": half_width,
            "replications": n,
            "undefined": None if self.interval else self.slo.address.metric.undefined_is,
            "standing": self.standing,
        }


def judge(slo: Slo, values: Sequence[float | None], *, slos: int = 1) -> Judged:
    """The standing of an SLO, given the metric's value in each replication.

    Args:
        slo: the SLO.
        values: a value for each replication; `None` if undefined.
        slos: the number of SLOs that are judged together.

    Examples:
        >>> from vcpulab.results.addresses import slo
        >>> p99 = slo(Scenario.starter(), "web.response_p99 < 50ms")
        >>> [judge(p99, values).standing for values in ([40.0, 41.0, 42.0], [45.0, 48.0, 60.0], [None, None])]
        ['holds', 'open', 'broken']
    """
    present = [value for value in values if value is not None]
    interval = Interval.from_values(present)
    if interval is None:
        return Judged(slo, None, "broken")
    if _surely_broken(slo, present):
        return Judged(slo, interval, "broken")
    if len(present) < len(values):
        return Judged(slo, interval, "open")
    if slo.holds(_bound(interval, slo, toward_breaking=True, error=(1 - CONFIDENCE) / LOOKS)):
        return Judged(slo, interval, "holds")
    if not slo.holds(_bound(interval, slo, toward_breaking=False, error=(1 - CONFIDENCE) / LOOKS / slos)):
        return Judged(slo, interval, "broken")
    return Judged(slo, interval, "open")


def _surely_broken(slo: Slo, present: Iterable[float]) -> bool:
    """A metric that is never negative has the mean 0 only if every value is 0: a single larger value breaks `<= 0`."""
    nothing = slo.operator == "<=" and slo.bound == 0 and slo.address.metric.bounds[0] == 0
    return nothing and any(value > 0 for value in present)


def _bound(interval: Interval, slo: Slo, *, toward_breaking: bool, error: float) -> float:
    """The one-sided confidence bound of the mean; infinite for a single value."""
    sign = 1 if slo.operator.startswith("<") == toward_breaking else -1
    if interval.standard_error is None:
        return sign * math.inf
    return interval.mean + sign * t_quantile(interval.n - 1, 1 - error) * interval.standard_error


def together(judged: Iterable[Judged]) -> Standing:
    """The standing of a host with these SLOs."""
    standings = {slo.standing for slo in judged}
    return "broken" if "broken" in standings else "open" if "open" in standings else "holds"


@dataclass(frozen=True)
class Verdict:
    """A scenario, run and judged."""

    run: Run
    judged: list[Judged]

    @property
    def standing(self) -> Standing:
        """The standing of all SLOs together."""
        return together(self.judged)


def worst(judged: Iterable[Judged]) -> Judged:
    """The SLO that is broken most, or is nearest to breaking."""
    order: Mapping[Standing, int] = {"broken": 0, "open": 1, "holds": 2}
    return min(judged, key=lambda slo: (order[slo.standing], slo.slack))


def try_out(
    scenario: Scenario, slos: Sequence[Slo], *, replications: int, jobs: int = 0, budget: Budget | None = None
) -> Verdict:
    """Runs a scenario until its SLOs are decided, at most with four times the replications.

    Raises:
        StoppedError: the budget is used up.
    """
    budget = budget or Budget()
    for look in range(LOOKS):
        done = budget.watch(run, scenario.with_run(replications=replications << look), jobs=jobs)
        values = done.values([slo.address for slo in slos])
        judged = [judge(slo, values[slo.address.name], slos=len(slos)) for slo in slos]
        if together(judged) != "open":
            break
    return Verdict(done, judged)
