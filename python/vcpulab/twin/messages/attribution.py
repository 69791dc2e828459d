"""The attribution of messages to turns of vCPUs that wake one another.

A wake-up shows a message only to a blocked vCPU. A further message that arrives before the vCPU blocks again is hidden:
it is inferred from the turns of its sender in which such messages are visible. Estimates of received and sent messages
depend on each other, so they are iterated.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from heapq import nsmallest
from itertools import combinations
from typing import NamedTuple

from vcpulab.twin.links import Link, Vcpu
from vcpulab.twin.messages.costs import costs, frequent, has_long_timer, saves
from vcpulab.twin.messages.fractions import parts
from vcpulab.twin.messages.sent import with_sent
from vcpulab.twin.messages.turns import ALWAYS, CLEARLY, NEVER, TIME, Beliefs, Kind, Received, VcpuTurns
from vcpulab.twin.sequences import Turns

_ASKED_MOST = 4
"""The largest number of uncertain messages of a turn whose combinations are tried, because combinations double with
each message. With more the turn counts as uncertain. Assumed."""
_LIKE_TIMER = 0.1
"""The relative difference of CPU time up to which a kind of messages may consist of turns that a timer began.
Assumed."""
_RECEIVED_MOST = 16
"""The largest number of messages of a turn. More are an artifact of the estimation: they would be sent on, and come
back. Assumed."""
_PASSES_MOST = 6
"""The largest number of passes. Beliefs may alternate for ever. In two recordings of request loops nothing changes
after the third pass."""


def attributed(turns: Mapping[Vcpu, Turns], links: Set[Link]) -> dict[Vcpu, Beliefs]:
    """The turns of each vCPU, with the messages that each has received.

    Args:
        turns: the turns by vCPU.
        links: wake-up links: pairs of a waking and a woken vCPU.
    """
    turns = {vcpu: replace(each, turns=[turn.among(turns) for turn in each.turns]) for vcpu, each in turns.items()}
    beliefs = _seen(_linked({vcpu: Beliefs.from_history(vcpu, history) for vcpu, history in turns.items()}, links))
    beliefs = {
        vcpu: replace(each, received=[Received(each.woken_by(turn), is_sure=False) for turn in range(len(each.turns))])
        for vcpu, each in beliefs.items()
    }
    in_time = sorted((ended, vcpu, turn) for vcpu, each in beliefs.items() for turn, ended in enumerate(each.ended))
    order = [(vcpu, turn) for _, vcpu, turn in in_time]
    for _ in range(_PASSES_MOST):
        before, beliefs = beliefs, _pass(beliefs, order)
        if all(_is_settled(before[vcpu], each) for vcpu, each in beliefs.items()):
            break
    return beliefs


def _is_settled(before: Beliefs, after: Beliefs) -> bool:
    """`True`: a pass has changed nothing that it estimates; everything else is recorded, or follows from `by_timer`."""
    return (
        before.by_timer == after.by_timer
        and before.received == after.received
        and before.inferred_sends == after.inferred_sends
        and before.frequent_kinds == after.frequent_kinds
        and before.costs == after.costs
        and before.clean == after.clean
        and before.saves == after.saves
        and before.has_long_timer == after.has_long_timer
        and before.parts == after.parts
    )


def _pass(beliefs: Mapping[Vcpu, Beliefs], order: Iterable[tuple[Vcpu, int]]) -> dict[Vcpu, Beliefs]:
    """The beliefs after both steps, by those before; `order`: all turns in the order in which they end."""
    beliefs = _attribution(beliefs, order)
    beliefs = {vcpu: _with_costs(each) for vcpu, each in beliefs.items()}
    beliefs = {vcpu: replace(each, parts=parts(each, beliefs)) for vcpu, each in beliefs.items()}
    timed = {vcpu: _with_timers(each, beliefs) for vcpu, each in beliefs.items()}
    # Nothing else decides what wake-ups show.
    return timed if all(timed[vcpu].by_timer == each.by_timer for vcpu, each in beliefs.items()) else _seen(timed)


def _linked(beliefs: Mapping[Vcpu, Beliefs], links: Set[Link]) -> dict[Vcpu, Beliefs]:
    """The beliefs with the vCPUs that each vCPU wakes."""
    targets: dict[Vcpu, list[VcpuTurns]] = {vcpu: [] for vcpu in beliefs}
    for waker, woken in sorted(links):
        if waker in beliefs and woken in beliefs:
            targets[waker].append(beliefs[woken])
    return {vcpu: replace(each, targets=targets[vcpu]) for vcpu, each in beliefs.items()}


def _seen(beliefs: Mapping[Vcpu, Beliefs]) -> dict[Vcpu, Beliefs]:
    """The beliefs with what wake-ups show of messages, by what is believed of ticks and timers."""
    sent = {vcpu: with_sent(each, beliefs) for vcpu, each in beliefs.items()}
    within: dict[Vcpu, list[list[tuple[Vcpu, int]]]] = {vcpu: [[] for _ in each.turns] for vcpu, each in sent.items()}
    hides: dict[Vcpu, set[tuple[int, Vcpu]]] = {vcpu: set() for vcpu in sent}
    for vcpu, sender in sent.items():
        for turn, target, at in _overlaps(sender):
            within[target][at].append((vcpu, turn))
            hides[vcpu].add((turn, target))
    return {vcpu: replace(each, within=within[vcpu], hides=hides[vcpu]) for vcpu, each in sent.items()}


def _overlaps(sender: Beliefs) -> Iterator[tuple[int, Vcpu, int]]:
    """The turns of a vCPU, each with a target and its turn that may have been sent more to than wake-ups show."""
    for turn, (ran, ended) in enumerate(zip(sender.ran, sender.ended, strict=True)):
        if sender.is_tick(turn):
            continue
        for target in sender.targets:
            at = bisect_left(target.woke, ended) - 1
            if at >= 0 and target.ended[at] > ran and at not in sender.begins.get((turn, target.vcpu), ()):
                yield turn, target.vcpu, at


def _attribution(beliefs: Mapping[Vcpu, Beliefs], order: Iterable[tuple[Vcpu, int]]) -> dict[Vcpu, Beliefs]:
    """Step 1: the messages of all turns in the order in which they end. Later turns depend on earlier ones."""
    received = {vcpu: list(each.received) for vcpu, each in beliefs.items()}
    inferred_sends = {vcpu: dict(each.inferred_sends) for vcpu, each in beliefs.items()}
    after = {
        vcpu: replace(each, received=received[vcpu], inferred_sends=inferred_sends[vcpu])
        for vcpu, each in beliefs.items()
    }
    for vcpu, turn in order:
        received[vcpu][turn], sends = _attribute(after[vcpu], turn, after)
        for (sender, sender_turn), is_sent in sends.items():
            inferred_sends[sender][sender_turn, vcpu] = is_sent
    return after


def _with_costs(receiver: Beliefs) -> Beliefs:
    """Step 2: the costs of each kind of messages, by the turns that surely received one, or several."""
    receiver = replace(receiver, frequent_kinds=frequent(receiver.received))
    cpu_ns, clean = costs(receiver)
    receiver = replace(receiver, costs=cpu_ns, clean=clean)
    return replace(receiver, saves=saves(receiver), has_long_timer=has_long_timer(receiver))


def _with_timers(receiver: Beliefs, beliefs: Mapping[Vcpu, Beliefs]) -> Beliefs:
    return replace(receiver, by_timer=receiver.by_timer | set(_by_timer(receiver, beliefs)))


def _by_timer(receiver: Beliefs, beliefs: Mapping[Vcpu, Beliefs]) -> Iterator[int]:
    """The turns started by a timer while a sender of the receiver was running, recognized by their CPU time.

    Until the timer's cost is known: turns longer than any message, if the sender sends nothing for the messages that
    it had received, and no other message can have arrived.
    """
    timer = receiver.costs.get(TIME)
    longest = max(
        (receiver.costs.get(kind, float("inf")) for kind in receiver.frequent_kinds - {TIME}), default=float("inf")
    )
    # A kind that costs as much as the timer may consist of such turns alone.
    message_costs = [
        cost
        for kind, cost in receiver.costs.items()
        if timer and kind != TIME and abs(cost - timer) > _LIKE_TIMER * timer
    ]
    for turn in range(1, len(receiver.turns)):
        sender, ran = receiver.sender(turn), receiver.run[turn]
        if sender is None:
            continue
        if timer is None:
            most, is_timer = NEVER, ran > CLEARLY * longest and not receiver.within[turn]
        else:
            most, is_timer = (
                ALWAYS,
                CLEARLY * abs(ran - timer) <= min(abs(ran - typical) for typical in (0, *message_costs)),
            )
        if is_timer:
            kinds = beliefs[sender].behind(receiver.turns[turn - 1].sender_turn, receiver, turn)
            if all(beliefs[sender].part(kind, receiver.vcpu) < most for kind in kinds):
                yield turn


class _Candidate(NamedTuple):
    """A message that a turn may have received: its possible sender, and the sender's turn."""

    sender: Vcpu
    turn: int
    kind: Kind


def _attribute(
    receiver: Beliefs, turn: int, beliefs: Mapping[Vcpu, Beliefs]
) -> tuple[Received, dict[tuple[Vcpu, int], bool]]:
    """The messages that a turn has received, by the turns of other vCPUs as attributed up to now.

    Returns:
        The messages; and for each turn of another vCPU, if the CPU time decides it, whether it sent one.
    """
    # A recording does not show what started the first turn: it counts as started by time.
    kinds = [TIME] if turn == 0 else list[Kind]()
    sender = receiver.sender(turn)
    is_sure = turn > 0
    if sender is not None:
        source, source_turn = beliefs[sender], receiver.turns[turn - 1].sender_turn
        behind = source.behind(source_turn, receiver, turn)
        sent = [kind.then(sender) for kind in behind] or receiver.only_from(sender)
        always = len(sent) > 1 and all(source.part(kind, receiver.vcpu) >= ALWAYS for kind in behind)
        is_sure = len(set(sent)) == 1 or always
        # One wake-up may stand for several messages that the sender had received before it ran, if each leads to one.
        kinds += (sent if always else sent[:1]) if is_sure else []
    elif turn > 0 and not receiver.by_tick(turn):
        kinds.append(TIME)
    candidates: list[_Candidate] = []
    for name, source_turn in sorted(receiver.within[turn], key=lambda each: beliefs[each[0]].ended[each[1]]):
        source = beliefs[name]
        is_sure = is_sure and bool(source.received[source_turn].kinds)
        for kind in source.hidden(source_turn, receiver.vcpu):
            if source.part(kind, receiver.vcpu) >= ALWAYS:
                if kind.answers(receiver.vcpu) or receiver.has_time(turn, kinds, kind.then(source.vcpu)):
                    kinds.append(kind.then(source.vcpu))
            else:
                candidates.append(_Candidate(source.vcpu, source_turn, kind.then(source.vcpu)))
    if (receiver.by_tick(turn) or receiver.has_long_timer) and TIME not in kinds and not receiver.is_tick(turn):
        # The wait after the wake-up may have been so long that the timer of the vCPU expired meanwhile.
        candidates.append(_Candidate(receiver.vcpu, turn, TIME))
    return _decided(receiver, turn, Received(tuple(kinds), is_sure), candidates)


def _decided(
    receiver: Beliefs, turn: int, received: Received, candidates: Sequence[_Candidate]
) -> tuple[Received, dict[tuple[Vcpu, int], bool]]:
    """The messages of a turn: those that it has certainly received, and those candidates that explain its CPU time."""
    if len(received.kinds) > _RECEIVED_MOST:
        return Received(received.kinds[:_RECEIVED_MOST], is_sure=False), {}
    if not candidates or not received.is_sure:
        return received, {}
    arrived = _explained(receiver, turn, received.kinds, [each.kind for each in candidates])
    if arrived is None:
        return received._replace(is_sure=False), {}
    sends = {(each.sender, each.turn): number in arrived for number, each in enumerate(candidates) if each.kind != TIME}
    return Received((*received.kinds, *(candidates[number].kind for number in sorted(arrived))), is_sure=True), sends


def _explained(receiver: Beliefs, turn: int, kinds: Sequence[Kind], may: Sequence[Kind]) -> Set[int] | None:
    """The candidate messages that a turn received, by the vCPUs that it woke and its CPU time.

    Returns:
        Their numbers; `None`: these do not decide.
    """
    # A message whose work takes far longer than the turn ran was not received.
    left_over = [number for number, kind in enumerate(may) if receiver.has_time(turn, kinds, kind)]
    if not left_over:
        return set()
    if len(left_over) > _ASKED_MOST or any(
        kind not in receiver.costs for kind in (*kinds, *(may[index] for index in left_over))
    ):
        return None
    sets = [set(some) for size in range(len(left_over) + 1) for some in combinations(left_over, size)]
    sets = [some for some in sets if receiver.explains(turn, {*kinds, *(may[index] for index in some)})]
    if len(sets) < 2:
        return sets[0] if sets else None
    took = [receiver.takes(turn, [*kinds, *(may[index] for index in some)]) for some in sets]
    off = {number: abs(receiver.run[turn] - cpu_ns) for number, cpu_ns in enumerate(took)}
    best, second = nsmallest(2, off, key=lambda number: (off[number], number))
    return sets[best] if CLEARLY * off[best] <= off[second] else None
