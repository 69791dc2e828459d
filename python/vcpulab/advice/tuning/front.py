"""The front: settings that no other beats in gain, harm and price at once.

The gain is the score, the harm the largest loss of a bystander (`Worth.harm`; for the recommended setting as
confirmed), the price the effort of setting it (`prices`). The front has a few of the tried settings, the cheapest
first, one of them recommended. Settings that were given up early first get their missing replications.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from vcpulab._work.progress import Progress
from vcpulab.advice.tuning.candidates import Candidate, Harm, SearchResult
from vcpulab.advice.tuning.confirming import Confirmation
from vcpulab.advice.tuning.search import Search
from vcpulab.advice.tuning.worth import LEAST_HARM
from vcpulab.results.statistics import Interval

OFFERS_MAX = 5
_NOMINEES = 8
_SAME_GAIN = 0.05
"""Gains count as equal if they differ by less than this fraction of the best gain; for gains above 1, by less than
this."""
_LEAST_PART = 0.2
"""Least gain of an offer, as a fraction of the best gain."""
_CHANGES_MAX = 3
"""Most changed parameters of an offer, except for the best setting."""
_SAME_PRICE = 0.5
"""Prices count as equal if they differ by less, %."""


@dataclass(frozen=True)
class Offer:
    """A setting on the front."""

    candidate: Candidate
    gain: Interval
    """The score; see `goals`."""
    goals: tuple[Interval | None, ...]
    """Metric of each goal under the setting; `None`: the goal has several metrics, or nothing was completed."""
    harm: Harm | None
    """Largest loss of a bystander; `None`: none is significant."""
    price: float
    """Price of the setting, %."""
    recommended: bool

    @property
    def loss(self) -> float:
        """The size of the harm."""
        return self.harm.size if self.harm is not None else 0.0

    def beats(self, rival: "Offer", best: float) -> bool:
        """Is this offer as good as `rival` in gain, harm and price, and better in one of them?"""
        more, less, cheaper = self.gain.mean - rival.gain.mean, rival.loss - self.loss, rival.price - self.price
        same = _same(best)
        if more < -same or less < -LEAST_HARM or cheaper < -_SAME_PRICE:
            return False
        return more > same or less > LEAST_HARM or cheaper > _SAME_PRICE


def front(search: Search, result: SearchResult, confirmed: Confirmation, tell: Progress | None = None) -> list[Offer]:
    """The front, the cheapest first; only the best if nothing conflicts; empty if the best is the present setting.

    Args:
        search: the search.
        result: result of the search.
        confirmed: confirmation of its best setting.
        tell: called with the fraction of the runs that is done; returning `False` cancels.

    Raises:
        EngineError: a run failed.
    """
    if result.best is search.present:
        return []
    beyond = search.worth.standing(result.best).excess
    tried = [
        candidate
        for candidate in result.candidates
        if len(candidate.rows) > 1
        and not candidate.starves
        and candidate is not result.best
        and candidate not in search.rejected
        and len(search.worth.changed(candidate)) <= _CHANGES_MAX
        and search.worth.standing(candidate).excess <= beyond
    ]
    nominees = _thinned(
        _unbeaten([_offer(search, result, candidate, confirmed) for candidate in [result.best, *tried]]), _NOMINEES
    )
    search.complete([offer.candidate for offer in nominees], tell or (lambda _: True))
    offers = _thinned(_unbeaten([_offer(search, result, offer.candidate, confirmed) for offer in nominees]), OFFERS_MAX)
    return sorted(offers, key=lambda offer: (round(offer.price, 6), -offer.gain.mean))


def _offer(search: Search, result: SearchResult, candidate: Candidate, confirmed: Confirmation) -> Offer:
    gain = Interval.from_values(search.worth.scores(candidate))
    assert gain is not None
    goals = tuple(
        Interval.from_values(row[goal.addresses[0].name] for row in candidate.rows)
        if len(goal.addresses) == 1
        else None
        for goal in search.goals
    )
    best = candidate is result.best
    harm = confirmed.harm if best else search.worth.harm(candidate.rows, search.present.rows)
    return Offer(candidate, gain, goals, harm, search.worth.price(candidate), best)


def _unbeaten(offers: Sequence[Offer]) -> list[Offer]:
    """The offers that no other beats, the recommended one first."""
    (advised,) = (offer for offer in offers if offer.recommended)
    top = max(advised.gain.mean, 0.0)
    worth = [offer for offer in offers if offer.gain.mean >= _LEAST_PART * top or offer.recommended]
    unbeaten = [offer for offer in worth if offer.recommended or not any(rival.beats(offer, top) for rival in worth)]
    # Of offers that are equal in everything, the first stays.
    apart: list[Offer] = []
    for offer in sorted(unbeaten, key=lambda offer: (not offer.recommended, offer.candidate.number)):
        if all(offer.beats(kept, top) or kept.beats(offer, top) or _differs(offer, kept, top) for kept in apart):
            apart.append(offer)
    return apart


def _differs(first: Offer, second: Offer, top: float) -> bool:
    return (
        abs(first.gain.mean - second.gain.mean) > _same(top)
        or abs(first.loss - second.loss) > LEAST_HARM
        or abs(first.price - second.price) > _SAME_PRICE
    )


def _same(best: float) -> float:
    """Largest difference of two gains that count as equal."""
    return _SAME_GAIN * min(best, 1.0)


def _thinned(offers: Sequence[Offer], most: int) -> list[Offer]:
    """At most `most` offers: the recommended one, the one with most gain, the one with least harm, then by gain."""
    first = [
        *(offer for offer in offers if offer.recommended),
        max(offers, key=lambda offer: offer.gain.mean),
        min(offers, key=lambda offer: (offer.loss, -offer.gain.mean)),
        *sorted(offers, key=lambda offer: -offer.gain.mean),
    ]
    return list({offer.candidate.number: offer for offer in first}.values())[:most]
