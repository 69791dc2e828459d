"""What a setting is worth: its score, less its price and what others lose; and who loses most.

Nothing is run here: candidates are judged by the rows that they have, each against the same replication of the present
setting.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

from vcpulab.advice.capacity.occupancy import with_servers
from vcpulab.advice.lateness import LATE_MS
from vcpulab.advice.tuning import leaving
from vcpulab.advice.tuning.candidates import Candidate, Harm, Standing
from vcpulab.advice.tuning.goals import Goal, Row, excess, lasts_s, score
from vcpulab.advice.tuning.prices import PRICES, price
from vcpulab.advice.tuning.spaces import Parameter, Space
from vcpulab.results.addresses import Address, Slo
from vcpulab.results.statistics import paired
from vcpulab.scenario.scenario import split

LEAST_HARM = 0.01
"""A smaller loss is none: about 1 %."""
AS_GOOD = 0.1
"""Settings that lack no more than this part of the best score are as good; the one with the least price is taken."""
_BEYOND_ALL = 1e9
"""What starves somebody is further beyond the SLOs than anything else."""
_OF_OTHERS = 0.5
"""Of settings with the same price, that which leaves other domains alone: each parameter of theirs adds this, %."""
_SIGNIFICANT = 0.05


class Worth:
    """What candidates are worth, against the present setting."""

    def __init__(self, space: Space, goals: Sequence[Goal], slos: Sequence[Slo], prices: Mapping[str, float]) -> None:
        """Takes what is wanted.

        Args:
            space: the parameters that may be changed.
            goals: what is wanted; all count alike.
            slos: what must hold of the means over replications.
            prices: of changing a parameter of each kind, %; see `prices`.
        """
        self.space = space
        self._goals = list(goals)
        self._gains: dict[int, list[list[float]]] = {}
        """Number of a candidate to its gains in each replication, goal by goal: they are asked for again and again."""
        self.slos = list(slos)
        self.prices = {**PRICES, **prices}
        self.others = leaving.others(space.scenario, goals)
        self.bystanders = leaving.bystanders(space.scenario, goals)
        self.present: Candidate
        """The present setting; to be given before anything is judged."""

    # ---- gains ----

    @property
    def goals(self) -> list[Goal]:
        """What is wanted."""
        return self._goals

    @goals.setter
    def goals(self, goals: Sequence[Goal]) -> None:
        self._goals = list(goals)
        self._gains.clear()

    def gains(self, candidate: Candidate) -> list[list[float]]:
        """The gains in each replication against the same one of the present setting, goal by goal."""
        known = self._gains.setdefault(candidate.number, [])
        both = zip(candidate.rows[len(known) :], self.present.rows[len(known) :], strict=False)
        known += [[goal.gain(new, old) for goal in self.goals] for new, old in both]
        return known

    def scores(self, candidate: Candidate) -> list[float]:
        """The score of each replication against the same one of the present setting."""
        return [score(self.goals, gains) for gains in self.gains(candidate)]

    def standing(self, candidate: Candidate, n: int | None = None) -> Standing:
        """Where a candidate stands, by its first n replications, or by all that it has."""
        rows = candidate.rows[:n]
        gains = tuple(math.fsum(of_goal) / len(rows) for of_goal in zip(*self.gains(candidate)[:n], strict=True))
        beyond = math.fsum(max(excess(slo, rows), 0.0) for slo in self.slos) + _BEYOND_ALL * bool(candidate.starves)
        return Standing(score(self.goals, gains), gains, beyond)

    def order(self, candidate: Candidate, n: int | None = None) -> tuple[bool, float, float]:
        """Greater is better; see `Standing.order`."""
        return self.standing(candidate, n).order

    def keeps(self, candidate: Candidate) -> bool:
        """Does it keep the SLOs, and starve nobody?"""
        return self.standing(candidate).excess <= 0

    def slack(self, candidate: Candidate) -> float:
        """How far inside its SLOs it is, as a fraction of the bound that is nearest; 0: it does not keep them."""
        if not self.slos or not self.keeps(candidate):
            return 0.0
        return min(-excess(slo, candidate.rows) for slo in self.slos)

    def late(self, candidate: Candidate) -> bool:
        """Does a response time that is a goal stay above what its owner feels?"""
        for goal in self.goals:
            values = [row[goal.addresses[0].name] for row in candidate.rows]
            present = [value for value in values if value is not None]
            if goal.felt is not None and (len(present) < len(values) or math.fsum(present) > goal.felt * len(present)):
                return True
        return False

    def is_enough(self, candidate: Candidate) -> bool:
        """Does it keep the SLOs, and leave no goal late?"""
        return self.keeps(candidate) and not self.late(candidate)

    def rank(self, candidate: Candidate) -> tuple[bool, float]:
        """Greater is better, of those that are alike in the SLOs: first what leaves no goal late, then by `net`."""
        return (not self.late(candidate), self.net(candidate))

    def by_scheduler(self, candidates: Iterable[Candidate]) -> dict[str, Candidate]:
        """Scheduler to the best of these under it, of those that starve nobody."""
        best: dict[str, Candidate] = {}
        for one in candidates:
            if one.rows and not one.starves:
                there = best.get(one.scheduler)
                if there is None or self.order(one) > self.order(there):
                    best[one.scheduler] = one
        return best

    # ---- what it takes ----

    def changed(self, candidate: Candidate) -> list[Parameter]:
        """The parameters that are not where they are now, without the choice of a scheduler."""
        return [
            parameter
            for parameter in self.space.parameters
            if candidate.picks.get(parameter.key, parameter.now) != parameter.now and parameter.name != "host.scheduler"
        ]

    def price(self, candidate: Candidate) -> float:
        """What it costs to set, %."""
        another = candidate.scheduler != self.present.scheduler
        own = set(with_servers(self.space.document["domain"], leaving.concerned(self.goals)))
        strangers = [p for p in self.changed(candidate) if split(p.name)[0] == "domain" and not own & set(_domains(p))]
        changed = [(parameter, candidate.picks[parameter.key]) for parameter in self.changed(candidate)]
        of_others = _OF_OTHERS * len(strangers) if own else 0.0
        return price(changed, self.prices, restarts=another) + another * self.prices["scheduler"] + of_others

    def cost(self, candidate: Candidate) -> tuple[float, float]:
        """Less is better: of those with one price the best."""
        return (round(self.price(candidate), 6), -self.standing(candidate).score)

    def nets(self, candidate: Candidate) -> list[float]:
        """The score of each replication, less the price and what other services lose: to take from those is no gain.

        The price is a part of the score where that is more than 1: what is dear stays dear beside a great gain.
        """
        spent = self.price(candidate) / 100
        both = zip(self.scores(candidate), candidate.rows, self.present.rows, strict=False)
        return [one - spent * max(1.0, one) - self._taken(row, was) for one, row, was in both]

    def net(self, candidate: Candidate) -> float:
        """The mean of `nets`."""
        nets = self.nets(candidate)
        return math.fsum(nets) / len(nets)

    def _taken(self, row: Row, was: Row) -> float:
        """The mean loss of other services' response times, on the scale of the score, of those that people feel."""
        lost = [max(-self._of_owner([address]).gain(row, was), 0.0) for address in self.others]
        return math.fsum(lost) / len(lost) if lost else 0.0

    # ---- which is advised ----

    def stated(self) -> bool:
        """Do SLOs say how good is good enough, of each goal?"""
        each = all(leaving.on_the_goal(goal, self.slos) for goal in self.goals)
        return each and bool(leaving.concerned(self.goals))

    def as_good(self, candidate: Candidate, best: Candidate) -> bool:
        """Is it about as good as the best? Where the SLOs say how good is good enough: whatever keeps them.

        What leaves a goal late is not as good as what does not.
        """
        if not (self.keeps(candidate) and self.keeps(best)):
            return candidate is best
        if self.late(candidate) and not self.late(best):
            return False
        top = self.net(best)
        return self.stated() or self.net(candidate) >= top - AS_GOOD * abs(top)

    # ---- who pays ----

    def harm(self, new: Sequence[Row], old: Sequence[Row]) -> Harm | None:
        """Who loses most, of those whom the goals are not about; `None`: nobody significantly."""
        found = [self._loss(new, old, row) for row in self.bystanders]
        return max((one for one in found if one is not None), key=lambda harm: harm.size, default=None)

    def _loss(self, new: Sequence[Row], old: Sequence[Row], row: Sequence[Address]) -> Harm | None:
        """The mean loss of alike ones, on the scale of the score; of response times what is felt."""
        goal = self._of_owner(row)
        pairs = list(zip(new, old, strict=False))
        losses = [-goal.gain(new, old) for new, old in pairs]
        size = math.fsum(losses) / len(losses)
        if size < LEAST_HARM or not greater(losses, [0.0] * len(losses)):
            return None
        sums = [math.fsum(one[a.name] or 0.0 for one in side for a in row) for side in zip(*pairs, strict=True)]
        percent = 100 * (sums[0] / sums[1] - 1) if sums[1] else None
        return Harm(size, percent, row[0].metric.name, tuple(address.thing for address in row))

    def _of_owner(self, row: Sequence[Address]) -> Goal:
        """What the owners of alike things want of one metric; of response times what is felt."""
        first = row[0]
        floor = LATE_MS if first.metric.name == "response_p99" else None
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
