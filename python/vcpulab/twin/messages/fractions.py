"""The fraction of the turns answering each kind of messages that send a message to each target.

A wake-up shows a message only if the receiver was blocked. A message that hardly any turn shows is inferred from the
work of its receiver, or assumed to be sent.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from statistics import median
from typing import NamedTuple

from vcpulab.twin.links import Vcpu
from vcpulab.twin.messages.costs import OF_TURNS_LEAST
from vcpulab.twin.messages.turns import ALWAYS, NEVER, SAMPLES_LEAST, TIME, Beliefs, Kind


def parts(sender: Beliefs, beliefs: Mapping[Vcpu, Beliefs]) -> dict[tuple[Kind, Vcpu], float]:
    """The fraction of the turns answering each kind of messages that send to each target; only telling turns count."""
    return {
        (kind, target.vcpu): part
        for target in sender.targets
        for kind, part in _parts_to(sender, beliefs[target.vcpu]).items()
    }


def _parts_to(sender: Beliefs, target: Beliefs) -> dict[Kind, float]:
    """The fractions for one target."""
    # Thousands of turns show one of a few things.
    shown = Counter(_shown(sender, target))
    # Where nothing else can have come, nothing was sent for anything else.
    clean = _Counted({each: count for each, count in shown.items() if each.is_clean})
    certain, all_turns = (
        _Counted({each: count for each, count in shown.items() if not each.may_answer}),
        _Counted(shown),
    )
    received = Counter(kind for kinds, _ in sender.received for kind in set(kinds))
    parts: dict[Kind, float] = {}
    hidden = list[Kind]()
    for kind in sender.frequent_kinds:
        least = max(SAMPLES_LEAST, OF_TURNS_LEAST * received[kind])
        # Where nothing is clean, what the target may have asked meanwhile says nothing of this kind.
        counted = clean if clean.shown[kind] >= least else all_turns if clean.shown[kind] else certain
        parts[kind] = counted.part(kind)
        seen = counted.shown[kind] + counted.unsent[kind]
        if kind != TIME and (seen < SAMPLES_LEAST or (seen < least and NEVER < parts[kind] < ALWAYS)):
            hidden.append(kind)
    always = {kind for kind in sender.frequent_kinds if kind not in hidden and parts[kind] >= ALWAYS}
    for kind in hidden:
        if kind.answers(target.vcpu):
            parts[kind] = 1.0
            continue
        left = _left(sender, target, kind)
        cost = target.costs.get(kind.then(sender.vcpu), min(target.costs.values(), default=0.0))
        # What costs hardly more if it comes with others is not told from what they cost.
        if len(left) >= SAMPLES_LEAST and 2 * target.saves <= cost:
            parts[kind] = float(2 * median(left) > cost - target.saves)
            continue
        # What hardly a turn can show is sent, unless those few speak against it, or what is sent is for others: who
        # sends at other times need not for the receipt of it.
        explained = sum(
            count for (kinds, is_sent, *_), count in shown.items() if is_sent and kind in kinds and always & kinds
        )
        is_receipt = kind.acknowledges(sender.vcpu) and bool(always)
        parts[kind] = 0.0 if is_receipt or explained >= SAMPLES_LEAST else 1.0
    return parts


class _Shown(NamedTuple):
    """The evidence of a turn."""

    kinds: frozenset[Kind]
    """The messages that the turn received."""
    is_sent: bool
    """`True`: the turn sent a message to the target."""
    is_clean: bool
    """`True`: the turn cannot have received other messages."""
    may_answer: bool = False
    """`True`: the message may answer a question that the target asked meanwhile."""


class _Counted:
    """The number of turns with each kind of messages, and of those that sent something."""

    def __init__(self, turns: Mapping[_Shown, int]) -> None:
        silent: Set[Kind] = frozenset()
        while True:
            self.sent, self.shown, self.unsent = Counter[Kind](), Counter[Kind](), Counter[Kind]()
            for (kinds, is_sent, *_), count in turns.items():
                # Which of several it was for, only those that never send tell.
                may = kinds - silent or kinds
                counts = dict.fromkeys(may, count)
                if len(may) == 1:
                    self.shown.update(counts)
                    self.sent.update(counts if is_sent else {})
                elif not is_sent:
                    self.unsent.update(counts)
            rarely_sent = {
                kind for kind in self.shown if self.shown[kind] >= SAMPLES_LEAST and self.part(kind) <= NEVER
            }
            if rarely_sent <= silent:
                return
            silent |= rarely_sent

    def part(self, kind: Kind) -> float:
        """The fraction of the turns with a kind of messages that sent something, of turns that show it."""
        return self.sent[kind] / self.shown[kind] if self.shown[kind] else 0.0


def _left(sender: Beliefs, target: Beliefs, kind: Kind) -> list[float]:
    """CPU time that the target's turns took besides what else they received, where one such message may have come."""
    sent = kind.then(sender.vcpu)
    other_kinds = [[message for message in received.kinds if message != sent] for received in target.received]
    came = [
        sum(kind in sender.received[at].kinds for at in _may_have_sent(sender, target, turn))
        for turn in range(len(other_kinds))
    ]
    # What never came without it does not tell what it costs alone.
    without = Counter(message for turn, kinds in enumerate(other_kinds) if not came[turn] for message in set(kinds))
    return [
        target.run[turn] - target.takes(turn, kinds)
        for turn, kinds in enumerate(other_kinds)
        if came[turn] == 1 and target.received[turn].is_sure
        if all(message in target.costs and without[message] >= SAMPLES_LEAST for message in kinds)
    ]


def _may_have_sent(sender: Beliefs, target: Beliefs, turn: int) -> Iterator[int]:
    """The turns in which something may have been sent to that turn of the target."""
    if target.sender(turn) == sender.vcpu:
        yield target.turns[turn - 1].sender_turn
    yield from (at for candidate, at in target.within[turn] if candidate == sender.vcpu)


def _shown(sender: Beliefs, target: Beliefs) -> Iterator[_Shown]:
    """The received messages of each turn that shows whether it sent something to a target, and whether it did."""
    for turn, (kinds, is_sure) in enumerate(sender.received):
        is_clean = not sender.within[turn]
        if target.vcpu in sender.sends[turn]:
            if is_sure:
                yield _Shown(frozenset(kinds), True, is_clean, sender.may_answer(turn, target))
        elif sender.shows(turn, target):
            yield _Shown(frozenset(kinds), False, is_clean)
        elif len(set(kinds)) == 1 and (turn, target.vcpu) in sender.inferred_sends:
            yield _Shown(frozenset(kinds), sender.inferred_sends[turn, target.vcpu], is_clean)
