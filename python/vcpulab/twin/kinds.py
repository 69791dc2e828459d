"""What is known of each kind of messages to a vCPU: what one takes, and how often something is sent for it.

A wake-up shows that something was sent only to a vCPU that is blocked. What hardly a turn shows is told by what its
target computes, or taken for sent.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from statistics import median
from typing import NamedTuple

from vcpulab.twin.heard import ALWAYS, NEVER, SAMPLES_LEAST, TIME, Heard, Kind, Seen
from vcpulab.twin.links import Vcpu

_OF_TURNS_LEAST = 0.04
"""Of the turns of a vCPU: kinds of messages that are fewer are chance."""
_LONG = 3
"""So many times what any message takes, a timer's turn is taken for none."""


def frequent(heard: Sequence[Heard]) -> Set[Kind]:
    """Kinds that are no exceptions among what turns heard, and the timer."""
    counts = Counter(kind for its in heard for kind in its.kinds)
    least = max(SAMPLES_LEAST, _OF_TURNS_LEAST * sum(counts.values()))
    return {kind for kind, count in counts.items() if count >= least or kind == TIME}


def costs(its: Seen) -> tuple[dict[Kind, float], Set[Kind]]:
    """CPU time of each kind of messages: of the turns that surely heard one alone, the median.

    Returns:
        That, and the kinds for which it is of turns in which nothing else can have come.
    """
    ran: dict[Kind, list[int]] = {}
    clean: dict[Kind, list[int]] = {}
    for turn, (kinds, is_sure) in enumerate(its.heard):
        if is_sure and len(kinds) == 1 and not its.by_tick(turn):
            ran.setdefault(kinds[0], []).append(its.run[turn])
            if not its.within[turn]:
                clean.setdefault(kinds[0], []).append(its.run[turn])
    clean = {kind: times for kind, times in clean.items() if len(times) >= SAMPLES_LEAST}
    return {kind: median(times) for kind, times in (ran | clean).items() if len(times) >= SAMPLES_LEAST}, set(clean)


def saves(its: Seen) -> float:
    """How much less each further message of a turn takes than alone: of the turns that surely heard several.

    Of kinds that are no exceptions; it is no more than what the least of them takes.
    """
    costs = {kind: its.costs[kind] for kind in its.known if kind in its.costs}
    several = [
        (sum(costs[kind] for kind in kinds) - its.run[turn]) / (len(kinds) - 1)
        for turn, (kinds, is_sure) in enumerate(its.heard)
        if is_sure and len(kinds) > 1 and not its.by_tick(turn) and all(kind in costs for kind in kinds)
    ]
    return min(max(median(several), 0.0), *costs.values()) if len(several) >= SAMPLES_LEAST else 0.0


def has_long_timer(its: Seen) -> bool:
    """Does what its timer begins take so much longer than any message that it is taken for none?"""
    messages = its.known - {TIME}
    if TIME not in its.costs or not messages or not messages <= its.costs.keys():
        return False
    return its.costs[TIME] > _LONG * max(its.costs[kind] for kind in messages)


def parts(its: Seen) -> dict[tuple[Kind, Vcpu], float]:
    """Of each kind of messages and each target: in how many turns that would show it something is sent."""
    return {(kind, target.vcpu): part for target in its.targets for kind, part in _parts_to(its, target).items()}


def _parts_to(its: Seen, target: Seen) -> dict[Kind, float]:
    """Of each kind of messages: in how many turns that would show it something is sent to that target."""
    # Thousands of turns show one of a few things.
    shown = Counter(_shown(its, target))
    # Where nothing else can have come, nothing was sent for anything else.
    clean = _Counted({each: count for each, count in shown.items() if each.is_clean})
    certain, others = _Counted({each: count for each, count in shown.items() if not each.may_answer}), _Counted(shown)
    heard = Counter(kind for kinds, _ in its.heard for kind in set(kinds))
    parts: dict[Kind, float] = {}
    hidden = list[Kind]()
    for kind in its.known:
        least = max(SAMPLES_LEAST, _OF_TURNS_LEAST * heard[kind])
        # Where nothing is clean, what the target may have asked meanwhile says nothing of this kind.
        counted = clean if clean.shown[kind] >= least else others if clean.shown[kind] else certain
        parts[kind] = counted.part(kind)
        seen = counted.shown[kind] + counted.unsent[kind]
        if kind != TIME and (seen < SAMPLES_LEAST or (seen < least and NEVER < parts[kind] < ALWAYS)):
            hidden.append(kind)
    always = {kind for kind in its.known if kind not in hidden and parts[kind] >= ALWAYS}
    for kind in hidden:
        if kind.answers(target.vcpu):
            parts[kind] = 1.0
            continue
        left = _left(its, target, kind)
        cost = target.costs.get(kind.then(its.vcpu), min(target.costs.values(), default=0.0))
        # What costs hardly more if it comes with others is not told from what they cost.
        if len(left) >= SAMPLES_LEAST and 2 * target.saves <= cost:
            parts[kind] = float(2 * median(left) > cost - target.saves)
            continue
        # What hardly a turn can show is sent, unless those few speak against it, or what is sent is for others: who
        # sends at other times need not for the receipt of it.
        explained = sum(
            count for (kinds, is_sent, *_), count in shown.items() if is_sent and kind in kinds and always & kinds
        )
        is_receipt = kind.acknowledges(its.vcpu) and bool(always)
        parts[kind] = 0.0 if is_receipt or explained >= SAMPLES_LEAST else 1.0
    return parts


class _Shown(NamedTuple):
    """What a turn shows."""

    kinds: frozenset[Kind]
    """What it heard."""
    is_sent: bool
    """Was something sent?"""
    is_clean: bool
    """Can nothing else have come?"""
    may_answer: bool = False
    """May what was sent be for what the target had asked meanwhile?"""


class _Counted:
    """In how many turns something was sent for each kind of messages, and in how many of all."""

    def __init__(self, turns: Mapping[_Shown, int]) -> None:
        silent: Set[Kind] = frozenset()
        while True:
            self.sent, self.shown, self.unsent = Counter[Kind](), Counter[Kind](), Counter[Kind]()
            for (kinds, is_sent, *_), count in turns.items():
                # Which of several it was for, only those that never send tell.
                may = kinds - silent or kinds
                these = dict.fromkeys(may, count)
                if len(may) == 1:
                    self.shown.update(these)
                    self.sent.update(these if is_sent else {})
                elif not is_sent:
                    self.unsent.update(these)
            found = {kind for kind in self.shown if self.shown[kind] >= SAMPLES_LEAST and self.part(kind) <= NEVER}
            if found <= silent:
                return
            silent |= found

    def part(self, kind: Kind) -> float:
        """In how many of the turns that show it."""
        return self.sent[kind] / self.shown[kind] if self.shown[kind] else 0.0


def _left(its: Seen, target: Seen, kind: Kind) -> list[float]:
    """CPU time that the target's turns took besides what else they heard, where one such message may have come."""
    sent = kind.then(its.vcpu)
    others = [[one for one in heard.kinds if one != sent] for heard in target.heard]
    came = [sum(kind in its.heard[at].kinds for at in _may_have_sent(its, target, turn)) for turn in range(len(others))]
    # What never came without it does not tell what it costs alone.
    without = Counter(one for turn, kinds in enumerate(others) if not came[turn] for one in set(kinds))
    return [
        target.run[turn] - target.takes(turn, kinds)
        for turn, kinds in enumerate(others)
        if came[turn] == 1 and target.heard[turn].is_sure
        if all(one in target.costs and without[one] >= SAMPLES_LEAST for one in kinds)
    ]


def _may_have_sent(its: Seen, target: Seen, turn: int) -> Iterator[int]:
    """The turns in which something may have been sent to that turn of the target."""
    if target.sender(turn) == its.vcpu:
        yield target.turns[turn - 1].sender_turn
    yield from (at for that, at in target.within[turn] if that is its)


def _shown(its: Seen, target: Seen) -> Iterator[_Shown]:
    """What each turn heard that shows whether it sent something to that target, and whether it did."""
    for turn, (kinds, is_sure) in enumerate(its.heard):
        is_clean = not its.within[turn]
        if target.vcpu in its.sends[turn]:
            if is_sure:
                yield _Shown(frozenset(kinds), True, is_clean, its.may_answer(turn, target))
        elif its.shows(turn, target):
            yield _Shown(frozenset(kinds), False, is_clean)
        elif len(set(kinds)) == 1 and (turn, target.vcpu) in its.told:
            yield _Shown(frozenset(kinds), its.told[turn, target.vcpu], is_clean)
