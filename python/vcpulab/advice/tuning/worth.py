"""The worth of a setting: its score, less its price and the losses of other services; and the largest loss.

Candidates are judged by their measured rows, each compared with the same replication of the present setting. Nothing is
run here.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

from vcpulab.advice.capacity.occupancy import with_servers
from vcpulab.advice.lateness import LATE_MS
from vcpulab.advice.tuning import no_change
from vcpulab.advice.tuning.candidates import Candidate, Harm, Standing
from vcpulab.advice.tuning.goals import Goal, Row, excess, lasts_s, score
from vcpulab.advice.tuning.prices import PRICES, price
from vcpulab.advice.tuning.spaces import Parameter, Space
from vcpulab.results.addresses import Address, Slo
from vcpulab.results.statistics import paired
from vcpulab.scenario.scenario import split

LEAST_HARM = 0.01
"""Least loss that counts: about 1 %."""
AS_GOOD = 0.1
"""Largest lack of a setting that is about as good as the best, as a fraction of the best score."""
_BEYOND_ALL = 1e9
"""Excess of a setting that starves a domain, larger than any excess beyond SLOs."""
_OF_OTHERS = 0.5
"""Additional price of each changed parameter of other domains, %."""
_SIGNIFICANT = 0.05


class Worth:
    """The judge of candidates, compared with the present setting."""

    def __init__(self, space: Space, goals: Sequence[Goal], slos: Sequence[Slo], prices: Mapping[str, float]) -> None:
        """Prepares the judge; `present` must be set before its use.

        Args:
            space: the parameters to vary.
            goals: the goals; all count alike.
            slos: the SLOs that the means over replications must keep.
            prices: price of changing a parameter of each kind, %; see `prices`.
        """
        self.space = space
        self._goals = list(goals)
        self._gains: dict[int, list[list[float]]] = {}
        """Cache of gains: number of a candidate to its gains in each replication, goal by goal."""
        self.slos = list(slos)
        self.prices = {**PRICES, **prices}
        self.bystander_responses = no_change.bystander_responses(space.scenario, goals)
        self.bystanders = no_change.bystanders(space.scenario, goals)
        self.present: Candidate
        """The present setting; to be set before any judgment."""

    # ---- gains ----

    @property
    def goals(self) -> list[Goal]:
        """The goals."""
        return self._goals

    @goals.setter
    def goals(self, goals: Sequence[Goal]) -> None:
        self._goals = list(goals)
        self._gains.clear()

    def gains(self, candidate: Candidate) -> list[list[float]]:
        """The gains in each replication against the same one of the present setting, goal by goal."""
        gains = self._gains.setdefault(candidate.number, [])
        rows = zip(candidate.rows[len(gains) :], self.present.rows[len(gains) :], strict=False)
        gains += [[goal.gain(new, old) for goal in self.goals] for new, old in rows]
        return gains

    def scores(self, candidate: Candidate) -> list[float]:
        """The score of each replication against the same one of the present setting."""
        return [score(self.goals, gains) for gains in self.gains(candidate)]

    def standing(self, candidate: Candidate, n: int | None = None) -> Standing:
        """The standing of a candidate, by its first n replications, or by all."""
        rows = candidate.rows[:n]
        gains = tuple(math.fsum(of_goal) / len(rows) for of_goal in zip(*self.gains(candidate)[:n], strict=True))
        beyond = math.fsum(max(excess(slo, rows), 0.0) for slo in self.slos) + _BEYOND_ALL * bool(candidate.starves)
        return Standing(score(self.goals, gains), gains, beyond)

    def order(self, candidate: Candidate, n: int | None = None) -> tuple[bool, float, float]:
        """Key for sorting, greater is better; see `Standing.order`."""
        return self.standing(candidate, n).order

    def keeps(self, candidate: Candidate) -> bool:
        """Does the candidate keep the SLOs, and starve no domain?"""
        return self.standing(candidate).excess <= 0

    def slack(self, candidate: Candidate) -> float:
        """The distance to the nearest SLO, as a fraction of its bound; 0: the candidate does not keep the SLOs."""
        if not self.slos or not self.keeps(candidate):
            return 0.0
        return min(-excess(slo, candidate.rows) for slo in self.slos)

    def late(self, candidate: Candidate) -> bool:
        """Does the response time of a goal stay above its `felt` limit?"""
        for goal in self.goals:
            values = [row[goal.addresses[0].name] for row in candidate.rows]
            present = [value for value in values if value is not None]
            if goal.felt is not None and (len(present) < len(values) or math.fsum(present) > goal.felt * len(present)):
                return True
        return False

    def is_enough(self, candidate: Candidate) -> bool:
        """Does the candidate keep the SLOs, and leave no goal late?"""
        return self.keeps(candidate) and not self.late(candidate)

    def rank(self, candidate: Candidate) -> tuple[bool, float]:
        """Key for sorting candidates that are equal in the SLOs: first those that leave no goal late, then by `net`."""
        return (not self.late(candidate), self.net(candidate))

    def by_scheduler(self, candidates: Iterable[Candidate]) -> dict[str, Candidate]:
        """Scheduler to its best candidate, of those that starve no domain."""
        best: dict[str, Candidate] = {}
        for candidate in candidates:
            if candidate.rows and not candidate.starves:
                leader = best.get(candidate.scheduler)
                if leader is None or self.order(candidate) > self.order(leader):
                    best[candidate.scheduler] = candidate
        return best

    # ---- the price ----

    def changed(self, candidate: Candidate) -> list[Parameter]:
        """The changed parameters, without the choice of a scheduler."""
        return [
            parameter
            for parameter in self.space.parameters
            if candidate.picks.get(parameter.key, parameter.now) != parameter.now and parameter.name != "host.scheduler"
        ]

    def price(self, candidate: Candidate) -> float:
        """The price of setting the candidate, %."""
        another = candidate.scheduler != self.present.scheduler
        own = set(with_servers(self.space.scenario.domains, no_change.concerned(self.goals)))
        strangers = [p for p in self.changed(candidate) if split(p.name)[0] == "domain" and not own & set(_domains(p))]
        changed = [(parameter, candidate.picks[parameter.key]) for parameter in self.changed(candidate)]
        of_others = _OF_OTHERS * len(strangers) if own else 0.0
        return price(changed, self.prices, restarts=another) + another * self.prices["scheduler"] + of_others

    def cost(self, candidate: Candidate) -> tuple[float, float]:
        """Key for sorting, less is better: by price, at equal price by score."""
        return (round(self.price(candidate), 6), -self.standing(candidate).score)

    def nets(self, candidate: Candidate) -> list[float]:
        """The score of each replication, less the price and the losses of other services.

        If the score is above 1, the price is a fraction of it: a great gain does not make an expensive change cheap.
        """
        spent = self.price(candidate) / 100
        replications = zip(self.scores(candidate), candidate.rows, self.present.rows, strict=False)
        return [gain - spent * max(1.0, gain) - self._taken(row, was) for gain, row, was in replications]

    def net(self, candidate: Candidate) -> float:
        """The mean of `nets`."""
        nets = self.nets(candidate)
        return math.fsum(nets) / len(nets)

    def _taken(self, row: Row, was: Row) -> float:
        """The mean loss of other services' response times that users notice, on the scale of the score."""
        lost = [max(-self._of_owner([address]).gain(row, was), 0.0) for address in self.bystander_responses]
        return math.fsum(lost) / len(lost) if lost else 0.0

    # ---- the choice of the advice ----

    def stated(self) -> bool:
        """Does each goal have an SLO on its own metric?"""
        each = all(no_change.on_the_goal(goal, self.slos) for goal in self.goals)
        return each and bool(no_change.concerned(self.goals))

    def as_good(self, candidate: Candidate, best: Candidate) -> bool:
        """Is the candidate about as good as the best? If each goal has an SLO, all that keep the SLOs are.

        A candidate that leaves a goal late is not as good as one that does not.
        """
        if not (self.keeps(candidate) and self.keeps(best)):
            return candidate is best
        if self.late(candidate) and not self.late(best):
            return False
        top = self.net(best)
        return self.stated() or self.net(candidate) >= top - AS_GOOD * abs(top)

    # ---- losses of bystanders ----

    def harm(self, new: Sequence[Row], old: Sequence[Row]) -> Harm | None:
        """The largest loss of bystanders; `None`: none is significant."""
        losses = [self._loss(new, old, row) for row in self.bystanders]
        return max((harm for harm in losses if harm is not None), key=lambda harm: harm.size, default=None)

    def _loss(self, new: Sequence[Row], old: Sequence[Row], row: Sequence[Address]) -> Harm | None:
        """The mean loss of alike bystanders, on the scale of the score; for response times, what users notice."""
        goal = self._of_owner(row)
        pairs = list(zip(new, old, strict=False))
        losses = [-goal.gain(new, old) for new, old in pairs]
        size = math.fsum(losses) / len(losses)
        if size < LEAST_HARM or not greater(losses, [0.0] * len(losses)):
            return None
        sums = [
            math.fsum(measured[a.name] or 0.0 for measured in side for a in row) for side in zip(*pairs, strict=True)
        ]
        percent = 100 * (sums[0] / sums[1] - 1) if sums[1] else None
        return Harm(size, percent, row[0].metric.name, tuple(address.thing for address in row))

    def _of_owner(self, row: Sequence[Address]) -> Goal:
        """The owners' goal for one metric of alike services; for response times, with the floor that users notice."""
        first = row[0]
        floor = LATE_MS if first.metric.is_judged_response else None
        return Goal(first.name, tuple(row), first.better == "higher", floor=floor, seconds=lasts_s(self.space.scenario))


def greater(first: Sequence[float], second: Sequence[float]) -> bool:
    """Is the first significantly (5 %, Student's paired test) greater, pair by pair?"""
    difference = paired(first, second)
    return (
        difference is not None
        and difference.p is not None
        and difference.p < _SIGNIFICANT
        and difference.interval.mean > 0
    )


def _domains(parameter: Parameter) -> list[str]:
    return [split(path)[1] for path in parameter.paths or (parameter.name,)]
