"""Which messages each turn of vCPUs that wake one another had heard.

A wake-up shows a message only to a vCPU that is blocked. Another that comes before it blocks again is hidden: it is
inferred from what its sender does in turns that show it. What a turn heard tells what its kind sends, and that what
others heard, so that all is inferred again some times.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence, Set
from heapq import nsmallest
from itertools import combinations
from typing import NamedTuple

from vcpulab.twin.heard import ALWAYS, CLEARLY, NEVER, TIME, Heard, Kind, Seen
from vcpulab.twin.kinds import costs, frequent, has_long_timer, parts, saves
from vcpulab.twin.links import Link, Vcpu
from vcpulab.twin.sequences import Turns

_ASKED_MOST = 4
"""Of so many messages it is asked which of them came."""
_LIKE_TIMER = 0.1
"""As much as its CPU time may differ from that after a timer, what is said to be heard may be that timer."""
_HEARD_MOST = 16
"""Messages of one turn. That more came at once is not what was recorded, but what inferring has made of it: taken for
true, they would be sent on, and come back."""
_PASSES = 6
"""What a turn heard tells what its kind sends, and that what others heard."""


def seen_of(turns: Mapping[Vcpu, Turns], links: Set[Link]) -> dict[Vcpu, Seen]:
    """What is known of each vCPU's turns.

    Args:
        turns: of each of these vCPUs.
        links: who wakes whom.
    """
    seen = {vcpu: Seen(vcpu, its) for vcpu, its in turns.items()}
    for waker, woken in sorted(links):
        if waker in seen and woken in seen:
            seen[waker].targets.append(seen[woken])
    _look(seen)
    for its in seen.values():
        its.heard = [Heard(its.woken_by(turn), is_sure=False) for turn in range(len(its.turns))]
    in_time = sorted((ended, vcpu, turn) for vcpu, its in seen.items() for turn, ended in enumerate(its.ended))
    for _ in range(_PASSES):
        for _, vcpu, turn in in_time:
            seen[vcpu].heard[turn] = _hear(seen[vcpu], turn, seen)
        for its in seen.values():
            its.known = frequent(its.heard)
            its.costs, its.clean = costs(its)
            its.saves = saves(its)
            its.has_long_timer = has_long_timer(its)
        all_parts = {vcpu: parts(its) for vcpu, its in seen.items()}
        for vcpu, its in seen.items():
            its.parts = all_parts[vcpu]
        for its in seen.values():
            _find_timers(its, seen)
        _look(seen)
    return seen


def _look(seen: Mapping[Vcpu, Seen]) -> None:
    """Finds out what wake-ups show, by what is known of ticks and timers."""
    for its in seen.values():
        its.within, its.hides = [[] for _ in its.turns], set()
        its.know_sent()
    for its in seen.values():
        _overlap(its)


def _find_timers(its: Seen, seen: Mapping[Vcpu, Seen]) -> None:
    """Notes which turns a timer began though somebody ran that sends to it at other times: by their CPU time.

    As long as nothing says what follows its timer: those that take longer than any message, though nothing is sent for
    what that one had heard, and nothing else can have come.
    """
    timer = its.costs.get(TIME)
    longest = max((its.costs.get(kind, float("inf")) for kind in its.known - {TIME}), default=float("inf"))
    # A kind that costs what the timer does may be nothing but such turns.
    others = [
        cost for kind, cost in its.costs.items() if timer and kind != TIME and abs(cost - timer) > _LIKE_TIMER * timer
    ]
    for turn in range(1, len(its.turns)):
        sender, ran = its.sender(turn), its.run[turn]
        if sender is None:
            continue
        if timer is None:
            most, is_timer = NEVER, ran > CLEARLY * longest and not its.within[turn]
        else:
            most, is_timer = ALWAYS, CLEARLY * abs(ran - timer) <= min(abs(ran - other) for other in (0, *others))
        if is_timer:
            kinds = seen[sender].behind(its.turns[turn - 1].sender_turn, its, turn)
            if all(seen[sender].part(kind, its.vcpu) < most for kind in kinds):
                its.by_timer.add(turn)


def _overlap(its: Seen) -> None:
    """Notes which turns of its targets the turns of a vCPU may have sent more to than they show."""
    for turn, (ran, ended) in enumerate(zip(its.ran, its.ended, strict=True)):
        if its.is_tick(turn):
            continue
        for target in its.targets:
            at = bisect_left(target.woke, ended) - 1
            if at >= 0 and target.ended[at] > ran and at not in its.begins.get((turn, target.vcpu), ()):
                target.within[at].append((its, turn))
                its.hides.add((turn, target.vcpu))


class _Asked(NamedTuple):
    """A message that a turn may have heard: who may have sent it, in which turn."""

    sender: Seen
    turn: int
    kind: Kind


def _hear(its: Seen, turn: int, seen: Mapping[Vcpu, Seen]) -> Heard:
    """What a turn heard, by what is known of others so far."""
    # Why its first turn began a recording does not say: what it led to is told apart from there.
    kinds = [TIME] if turn == 0 else list[Kind]()
    sender = its.sender(turn)
    is_sure = turn > 0
    if sender is not None:
        that, its_turn = seen[sender], its.turns[turn - 1].sender_turn
        behind = that.behind(its_turn, its, turn)
        sent = [kind.then(sender) for kind in behind] or its.only_from(sender)
        always = len(sent) > 1 and all(that.part(kind, its.vcpu) >= ALWAYS for kind in behind)
        is_sure = len(set(sent)) == 1 or always
        # One wake-up may stand for several messages that the sender had heard before it ran, if each leads to one.
        kinds += (sent if always else sent[:1]) if is_sure else []
    elif turn > 0 and not its.by_tick(turn):
        kinds.append(TIME)
    asked: list[_Asked] = []
    for that, its_turn in sorted(its.within[turn], key=lambda each: each[0].ended[each[1]]):
        is_sure = is_sure and bool(that.heard[its_turn].kinds)
        for kind in that.hidden(its_turn, its.vcpu):
            if that.part(kind, its.vcpu) >= ALWAYS:
                if kind.answers(its.vcpu) or its.has_time(turn, kinds, kind.then(that.vcpu)):
                    kinds.append(kind.then(that.vcpu))
            else:
                asked.append(_Asked(that, its_turn, kind.then(that.vcpu)))
    if (its.by_tick(turn) or its.has_long_timer) and TIME not in kinds and not its.is_tick(turn):
        # It may have waited for so long after what woke it that its timer was due.
        asked.append(_Asked(its, turn, TIME))
    return _decided(its, turn, Heard(tuple(kinds), is_sure), asked)


def _decided(its: Seen, turn: int, heard: Heard, asked: Sequence[_Asked]) -> Heard:
    """What a turn heard of what it is known to have heard, and of what it may have heard besides."""
    if len(heard.kinds) > _HEARD_MOST:
        return Heard(heard.kinds[:_HEARD_MOST], is_sure=False)
    if not asked or not heard.is_sure:
        return heard
    found = _explained(its, turn, heard.kinds, [each.kind for each in asked])
    if found is None:
        return heard._replace(is_sure=False)
    for number, each in enumerate(asked):
        if each.kind != TIME:
            each.sender.told[each.turn, its.vcpu] = number in found
    return Heard((*heard.kinds, *(asked[number].kind for number in sorted(found))), is_sure=True)


def _explained(its: Seen, turn: int, kinds: Sequence[Kind], may: Sequence[Kind]) -> Set[int] | None:
    """Which of what a turn may have heard besides it did, by whom it woke and the CPU time that it took.

    Returns:
        Their numbers; `None`: that does not tell.
    """
    # What takes far more than there was to take did not come, whatever else did.
    left_over = [number for number, kind in enumerate(may) if its.has_time(turn, kinds, kind)]
    if not left_over:
        return set()
    if len(left_over) > _ASKED_MOST or any(
        kind not in its.costs for kind in (*kinds, *(may[one] for one in left_over))
    ):
        return None
    sets = [set(some) for size in range(len(left_over) + 1) for some in combinations(left_over, size)]
    sets = [some for some in sets if its.explains(turn, {*kinds, *(may[one] for one in some)})]
    if len(sets) < 2:
        return sets[0] if sets else None
    took = [its.takes(turn, [*kinds, *(may[one] for one in some)]) for some in sets]
    off = {number: abs(its.run[turn] - it) for number, it in enumerate(took)}
    best, second = nsmallest(2, off, key=lambda number: (off[number], number))
    return sets[best] if CLEARLY * off[best] <= off[second] else None
