"""What is traded for what: settings that no other beats in gain, harm and price at once.

The gain is the score, the harm what those lose most whom the goals are not about (`Worth.harm`; of the recommended
setting as confirmed), the price what it takes to set (`prices`). Of the settings that were tried a few are left, the
cheapest first, and one is recommended.
Those that were given up early get the replications that they lack first.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from vcpulab.advice.tuning.candidates import Candidate, Found, Harm
from vcpulab.advice.tuning.confirming import Confirmation
from vcpulab.advice.tuning.search import Search
from vcpulab.advice.tuning.worth import LEAST_HARM
from vcpulab.results.statistics import Interval

OFFERS_MAX = 5
_NOMINEES = 8
_SAME_GAIN = 0.05
"""Gains that differ by less than this part of the best one are the same, of great ones about 5 % apart."""
_LEAST_PART = 0.2
"""Less than this part of the best gain is no offer."""
_CHANGES_MAX = 3
"""A setting of more parameters is no offer that anybody reads, unless it is the best."""
_SAME_PRICE = 0.5
"""Prices that differ by less are the same, %."""


@dataclass(frozen=True)
class Offer:
    """A setting on the front."""

    candidate: Candidate
    gain: Interval
    """The score; see `goals`."""
    goals: tuple[Interval | None, ...]
    """The metric of each goal that has one metric, under the setting; `None`: of several, or of nothing completed."""
    harm: Harm | None
    """What others lose most; `None`: nobody loses significantly."""
    price: float
    """What it takes to set, %."""
    recommended: bool

    @property
    def loss(self) -> float:
        """The size of the harm."""
        return self.harm.size if self.harm is not None else 0.0

    def beats(self, other: "Offer", best: float) -> bool:
        """Is it as good in all three, and better in one?"""
        more, less, cheaper = self.gain.mean - other.gain.mean, other.loss - self.loss, other.price - self.price
        same = _same(best)
        if more < -same or less < -LEAST_HARM or cheaper < -_SAME_PRICE:
            return False
        return more > same or less > LEAST_HARM or cheaper > _SAME_PRICE


def front(
    search: Search, found: Found, confirmed: Confirmation, tell: Callable[[float], bool | None] | None = None
) -> list[Offer]:
    """The front, the cheapest first; where nothing conflicts the best alone; nothing if that is the present setting.

    Args:
        search: where settings were tried.
        found: how it ended.
        confirmed: its best, on fresh random numbers.
        tell: told of the part of the runs that is done; `False` cancels.

    Raises:
        EngineError: a run failed.
    """
    if found.best is search.present:
        return []
    beyond = search.worth.standing(found.best).excess
    tried = [
        one
        for one in found.candidates
        if len(one.rows) > 1
        and not one.starves
        and one is not found.best
        and one not in search.rejected
        and len(search.worth.changed(one)) <= _CHANGES_MAX
        and search.worth.standing(one).excess <= beyond
    ]
    nominees = _thinned(_unbeaten([_offer(search, found, one, confirmed) for one in [found.best, *tried]]), _NOMINEES)
    search.complete([one.candidate for one in nominees], tell or (lambda _: True))
    offers = _thinned(_unbeaten([_offer(search, found, one.candidate, confirmed) for one in nominees]), OFFERS_MAX)
    return sorted(offers, key=lambda one: (round(one.price, 6), -one.gain.mean))


def _offer(search: Search, found: Found, candidate: Candidate, confirmed: Confirmation) -> Offer:
    gain = Interval.from_values(search.worth.scores(candidate))
    assert gain is not None
    goals = tuple(
        Interval.from_values(row[goal.addresses[0].name] for row in candidate.rows)
        if len(goal.addresses) == 1
        else None
        for goal in search.goals
    )
    best = candidate is found.best
    harm = confirmed.harm if best else search.worth.harm(candidate.rows, search.present.rows)
    return Offer(candidate, gain, goals, harm, search.worth.price(candidate), best)


def _unbeaten(offers: Sequence[Offer]) -> list[Offer]:
    """The recommended one first."""
    (advised,) = (one for one in offers if one.recommended)
    top = max(advised.gain.mean, 0.0)
    worth = [one for one in offers if one.gain.mean >= _LEAST_PART * top or one.recommended]
    there = [one for one in worth if one.recommended or not any(other.beats(one, top) for other in worth)]
    # Of those that are the same in everything, the first.
    apart: list[Offer] = []
    for one in sorted(there, key=lambda one: (not one.recommended, one.candidate.number)):
        if all(one.beats(other, top) or other.beats(one, top) or _differs(one, other, top) for other in apart):
            apart.append(one)
    return apart


def _differs(one: Offer, other: Offer, top: float) -> bool:
    return (
        abs(one.gain.mean - other.gain.mean) > _same(top)
        or abs(one.loss - other.loss) > LEAST_HARM
        or abs(one.price - other.price) > _SAME_PRICE
    )


def _same(best: float) -> float:
    """Gains that differ by no more are the same."""
    return _SAME_GAIN * min(best, 1.0)


def _thinned(offers: Sequence[Offer], most: int) -> list[Offer]:
    """At most so many: the recommended one, that with the most gain, that with the least harm, then by gain."""
    first = [
        *(one for one in offers if one.recommended),
        max(offers, key=lambda one: one.gain.mean),
        min(offers, key=lambda one: (one.loss, -one.gain.mean)),
        *sorted(offers, key=lambda one: -one.gain.mean),
    ]
    return list({one.candidate.number: one for one in first}.values())[:most]
