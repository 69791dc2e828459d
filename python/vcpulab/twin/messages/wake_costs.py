"""The cost of waking a vCPU: the CPU time of each turn that does not depend on its work.

An interrupt, the way out of the idle loop and back, and a thread woken for messages cost CPU time once for all messages
that arrive together. A recording does not show the number of messages. But a turn of a sender may begin several turns
of the woken vCPU, which share the sender's work; and a turn may receive several messages. So turns have different
shares of equal work, and their common part is the cost of waking.
"""

from collections.abc import Iterator, Mapping
from statistics import median
from typing import NamedTuple

import numpy as np

from vcpulab.twin.links import Vcpu
from vcpulab.twin.messages.turns import ALWAYS, SAMPLES_LEAST, TIME, Beliefs, Kind

_TURNS_LEAST = 20
"""The least number of turns. Assumed."""
_ERRORS = 3.0
"""The least distance of the estimate from 0, in standard errors: chance exceeds it in one of 740 cases."""
_DIFFER_LEAST = 0.02
"""The least fraction of turns with unusual shares of work: with fewer, chance decides. Assumed."""
_OUTLIERS = 4.0
"""The error of a turn, in medians of errors, from which on the turn did other work, too, and is left out. Assumed."""
_ERROR_NS_LEAST = 1000.0
"""The least median of errors for that, ns: turns that are nearly equal differ by less. Assumed."""
_NOTHING = 0.2
"""The largest negative cost of a message, as a fraction of the cost of waking, with which the model is still
accepted. Assumed."""
_PASSES = 3
"""The number of passes over all turns: a message that arrived after a turn began may be of a later turn. Assumed."""
_SHORTEST = 0.1
"""The fraction of turns that may be shorter than the cost of waking, which is a part of each of them. Assumed."""


class Waking(NamedTuple):
    """The CPU time of each turn apart from its work for messages and timers, ns; 0: the turns do not show it."""

    first_ns: int = 0
    """The time before the first message is sent."""
    last_ns: int = 0
    """The time after the last message is sent."""

    @property
    def ns(self) -> int:
        """All of it."""
        return self.first_ns + self.last_ns


def waking(beliefs: Mapping[Vcpu, Beliefs]) -> dict[Vcpu, Waking]:
    """The costs of waking each vCPU."""
    shares = _shares(beliefs)
    costs = {vcpu: _estimate(receiver, shares[vcpu]) for vcpu, receiver in beliefs.items()}
    return {vcpu: _divided(beliefs[vcpu], cost_ns) for vcpu, cost_ns in costs.items()}


def _divided(receiver: Beliefs, cost_ns: int) -> Waking:
    """The cost of waking, divided into the part before a turn's messages and the part after them.

    A vCPU that is woken by one that cannot be preempted waits for all of the second part.
    """
    firsts: dict[Kind, list[int]] = {}
    lasts: dict[Kind, list[int]] = {}
    for turn, (kinds, is_sure) in enumerate(receiver.received):
        if len(kinds) == 1 and is_sure and receiver.sends[turn] and not receiver.by_tick(turn):
            firsts.setdefault(kinds[0], []).append(receiver.computes[turn][0][0])
            lasts.setdefault(kinds[0], []).append(receiver.computes[turn][-1][0])
    often = [kind for kind, times in firsts.items() if len(times) >= SAMPLES_LEAST]
    if not often:
        return Waking(cost_ns)
    first, last = (min(median(times[kind]) for kind in often) for times in (firsts, lasts))
    last_ns = round(min(max(cost_ns - first, 0), last))
    return Waking(cost_ns - last_ns, last_ns)


def _shares(beliefs: Mapping[Vcpu, Beliefs]) -> dict[Vcpu, list[dict[Kind, float]]]:
    """The share of each turn in the work that began with a timer, by the messages that it received."""
    shares: dict[Vcpu, list[dict[Kind, float]]] = {
        vcpu: [{TIME: 1.0} if TIME in received.kinds else {} for received in receiver.received]
        for vcpu, receiver in beliefs.items()
    }
    in_time = sorted(
        (woke, vcpu, turn) for vcpu, receiver in beliefs.items() for turn, woke in enumerate(receiver.woke)
    )
    # What a turn received after it woke may be of turns that began later.
    for _ in range(_PASSES):
        for _, vcpu, turn in in_time:
            work = {kind: share for kind, share in shares[vcpu][turn].items() if kind == TIME}
            for sender, its_turn, parts in _messages(beliefs[vcpu], turn, beliefs):
                for kind, share in shares[sender][its_turn].items():
                    if beliefs[sender].part(kind, vcpu) >= ALWAYS:
                        mine = kind.then(sender)
                        work[mine] = work.get(mine, 0.0) + share / parts
            shares[vcpu][turn] = work
    return shares


def _messages(receiver: Beliefs, turn: int, beliefs: Mapping[Vcpu, Beliefs]) -> Iterator[tuple[Vcpu, int, int]]:
    """The sender of each message that a turn received, the sender's turn, and the number of turns it began."""
    sender = receiver.sender(turn)
    if sender is not None:
        sender_turn = receiver.turns[turn - 1].sender_turn
        yield sender, sender_turn, max(len(beliefs[sender].begins.get((sender_turn, receiver.vcpu), ())), 1)
    for source, sender_turn in receiver.within[turn]:
        if not beliefs[source].begins.get((sender_turn, receiver.vcpu)):
            yield source, sender_turn, 1


def _estimate(receiver: Beliefs, shares: list[dict[Kind, float]]) -> int:
    turns = [turn for turn, work in enumerate(shares) if work and not receiver.by_tick(turn)]
    kinds = sorted({kind for turn in turns for kind in shares[turn]}, key=str)
    ran = np.array([receiver.run[turn] for turn in turns], float)
    by_others = ran[[TIME not in shares[turn] for turn in turns]]
    if not len(by_others):
        return 0
    # What is done after its own timer may be a little more than a tick.
    most = float(np.quantile(by_others, _SHORTEST))
    shares_matrix = np.array([[1.0, *(shares[turn].get(kind, 0.0) for kind in kinds)] for turn in turns])
    while len(ran) >= _TURNS_LEAST:
        if np.linalg.matrix_rank(shares_matrix) < shares_matrix.shape[1]:
            return 0
        costs = np.linalg.lstsq(shares_matrix, ran, rcond=None)[0]
        rest = np.abs(ran - shares_matrix @ costs)
        usual = rest <= _OUTLIERS * max(float(np.median(rest)), _ERROR_NS_LEAST)
        if usual.all():
            variance = float((rest**2).sum()) / max(len(ran) - shares_matrix.shape[1], 1)
            error = float(np.sqrt(variance * np.linalg.inv(shares_matrix.T @ shares_matrix)[0, 0]))
            if (
                costs[0] <= _ERRORS * error
                or not _differ(shares_matrix[:, 1:])
                or costs[1:].min() < -_NOTHING * costs[0]
            ):
                return 0
            return round(min(float(costs[0]), most))
        ran, shares_matrix = ran[usual], shares_matrix[usual]
        # What only outliers received is not estimated.
        shares_matrix = shares_matrix[:, shares_matrix.any(axis=0)]
    return 0


def _differ(shares: np.ndarray) -> bool:
    """`True`: enough turns have other shares than most."""
    counts = np.unique(shares.sum(axis=1).round(2), return_counts=True)[1]
    return bool(counts.max() <= (1 - _DIFFER_LEAST) * counts.sum())
