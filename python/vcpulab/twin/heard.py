"""Which messages each turn of vCPUs that wake one another had heard.

A wake-up shows a message only to a vCPU that is blocked. Another that comes before it blocks again is hidden: it is
inferred from what its sender does in turns that show it, or, if none can show it, as sent.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from heapq import nsmallest
from itertools import combinations
from math import log, prod
from statistics import median
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from vcpulab.twin.links import Link, Vcpu
from vcpulab.twin.sequences import Turns
from vcpulab.twin.ticks import Recognised, recognise

SAMPLES_LEAST = 5
_OF_TURNS_LEAST = 0.04
"""Of the turns of a vCPU: kinds of messages that are fewer are chance."""
ALWAYS, NEVER = 0.8, 0.1
"""What is sent in so many of the turns in which it would have been seen is sent in all, or in none."""
_ASKED_MOST = 4
"""Of so many messages it is asked which of them came."""
_CLEARLY = 2
"""How many times nearer to a turn's CPU time one explanation must be than the next."""
_LIKE_TIMER = 0.1
"""As much as its CPU time may differ from that after a timer, what is said to be heard may be that timer."""
_RARELY = 0.02
"""Nothing is taken to be likelier or less likely than this allows for."""
_IN_ORDER = 1e-6
"""What is as likely is in order: next to nothing in comparison to any likelihood."""
_HEARD_MOST = 16
"""Messages of one turn. That more came at once is not what was recorded, but what inferring has made of it: taken for
true, they would be sent on, and come back."""
_PASSES = 6
"""What a turn heard tells what its kind sends, and that what others heard."""


class Kind(NamedTuple):
    """A kind of messages, or the vCPU's own timer (no sender)."""

    sender: Vcpu | None
    because: Vcpu | None = None
    """Who had woken the sender; `None`: time."""
    question: Vcpu | None = None
    """Of an answer: for whom that was asked which it answers, if not for either of the two."""

    def then(self, vcpu: Vcpu, to: Vcpu) -> "Kind":
        """The kind of what a vCPU sends to another after such a message.

        Examples:
            >>> dom0, server, client = (0, 0), (1, 0), (2, 0)
            >>> Kind(client).then(dom0, server) == Kind(dom0, client)
            True
            >>> Kind(dom0, client).then(server, dom0) == Kind(server, dom0, client)
            True
        """
        return Kind(vcpu, self.sender, self.because)


TIME = Kind(None)
Action = tuple[int, Vcpu | None]
"""CPU time, and whom a message goes to after it."""


class Heard(NamedTuple):
    """The messages that came to a vCPU before a turn of it was over, from the first on."""

    kinds: tuple[Kind, ...]
    is_sure: bool
    """Can there have been no other?"""


class Seen:
    """The turns of a vCPU, and what is known of each."""

    def __init__(self, vcpu: Vcpu, its: Turns) -> None:
        self.vcpu, self.turns = vcpu, its.turns
        self.found: Recognised | None = recognise(its.turns)
        self.woke = [turn.woke_ns for turn in its.turns]
        self.ran = [turn.woke_ns + turn.waited_ns for turn in its.turns]
        self.ended = [turn.woke_ns + turn.span_ns for turn in its.turns]
        self.computes: list[list[Action]] = []
        """Of each turn: CPU time, and whom it wakes after it."""
        self.sends: list[Set[Vcpu]] = []
        """Of each turn: whom it wakes."""
        self.targets: list[Seen] = []
        """Whom it wakes."""
        self.within: list[list[tuple[Seen, int]]] = [[] for _ in its.turns]
        """Of each turn: those of others in which more may have been sent to it than the wake-up shows."""
        self.heard: list[Heard] = []
        self.known: Set[Kind] = frozenset()
        """Kinds of messages that are no exceptions."""
        self.parts: dict[tuple[Kind, Vcpu], float] = {}
        """In how many of the turns that answer a kind of messages something is sent to another."""
        self.once: set[tuple[Kind, Vcpu]] = set()
        """After which kinds of messages exactly one is sent to another."""
        self.begins: dict[tuple[int, Vcpu], list[int]] = {}
        """Of each turn and target: the turns of that one that it began, in order."""
        self.hides: set[tuple[int, Vcpu]] = set()
        """Turns and targets: more may have been sent than began a turn there."""
        self.costs: dict[Kind, float] = {}
        """CPU time of what answers each kind of messages, of those that came alone, in the median."""
        self.clean: Set[Kind] = frozenset()
        """Kinds whose cost is of turns in which nothing else can have come."""
        self.saves = 0.0
        """How much less each further message of a turn takes than alone."""
        self.told: dict[tuple[int, Vcpu], bool] = {}
        """Of turns and targets that no wake-up shows: was something sent, by what the target then computed?"""
        self.by_timer: set[int] = set()
        """Turns that its timer began while somebody happened to run that wakes it at other times."""

    def is_tick(self, turn: int) -> bool:
        """Was it a tick and nothing else?"""
        return self.found is not None and bool(self.found.is_tick[turn])

    def by_tick(self, turn: int) -> bool:
        """Was it woken by a tick, whatever else it then did?"""
        return self.found is not None and bool(self.found.on[turn])

    def sender(self, turn: int) -> Vcpu | None:
        """Who woke it; `None`: time, or a tick while somebody else was there."""
        blocked = self.turns[turn - 1].blocked if turn > 0 and not self.by_itself(turn) else 0
        return blocked if isinstance(blocked, tuple) else None

    def by_itself(self, turn: int) -> bool:
        """Was it woken by a tick, or known to be by its timer, whoever ran?"""
        return self.by_tick(turn) or turn in self.by_timer

    def woken_by(self, turn: int) -> tuple[Kind, ...]:
        """What woke it, before anything is known of why that was sent."""
        sender = self.sender(turn)
        return (Kind(sender),) if sender is not None or (turn > 0 and not self.by_tick(turn)) else ()

    def know_sent(self) -> None:
        """Finds out whom it woke, once its targets are known: a tick of theirs was due whoever ran."""
        self.computes, self.sends, self.begins = [], [], {}
        by_tick: dict[tuple[int, Vcpu], list[bool]] = {}
        for target in self.targets:
            for at, turn in enumerate(target.turns[:-1]):
                if turn.blocked == self.vcpu:
                    by_tick.setdefault((turn.sender_turn, target.vcpu), []).append(target.by_itself(at + 1))
                    if not target.by_itself(at + 1):
                        self.begins.setdefault((turn.sender_turn, target.vcpu), []).append(at + 1)
        for number, turn in enumerate(self.turns):
            actions: list[Action] = []
            held = 0
            for cpu, woken in turn.computes:
                held += cpu
                wakes = by_tick.get((number, woken)) if woken is not None else None
                if wakes and not wakes.pop(0):
                    actions.append((held, woken))
                    held = 0
            self.computes.append([*actions, (held, None)])
            self.sends.append({woken for _, woken in actions if woken is not None})

    def shows(self, turn: int, target: "Seen") -> bool:
        """Would a message of that turn have woken the target? It sleeps all the while, or is woken by it."""
        if target.vcpu in self.sends[turn]:
            return True
        at = bisect_left(target.woke, self.ended[turn]) - 1
        return at < 0 or target.ended[at] <= self.ran[turn]

    def part(self, kind: Kind, target: Vcpu) -> float:
        """In how many of the turns that answer such messages something is sent to the target."""
        return self.parts.get((kind, target), 0.0)

    def behind(self, turn: int, target: "Seen", begun: int) -> Sequence[Kind]:
        """What of what a turn heard it began that turn of its target for: each for one, the last for the rest."""
        kinds = self.may_send(turn, target.vcpu) or list(self.heard[turn].kinds)
        of = self.begins[turn, target.vcpu]
        taken = self._assigned(kinds, target, of)
        mine = taken.get(begun, len(kinds) - 1)
        if begun != of[-1] or (turn, target.vcpu) in self.hides:
            return kinds[mine : mine + 1] or kinds[-1:]
        rest = [kind for number, kind in enumerate(kinds) if number == mine or number not in taken.values()]
        return rest or kinds[-1:]

    def _assigned(self, kinds: Sequence[Kind], target: "Seen", begun: Sequence[int]) -> dict[int, int]:
        """For which of these messages it most likely began each of those turns, by whom that woke; else in order."""
        if len(set(kinds)) < 2 or len(begun) < 2:
            return dict(zip(begun, range(len(kinds)), strict=False))
        sent = [kind.then(self.vcpu, target.vcpu) for kind in kinds]
        unlikely = [[-log(target.likelihood(turn, kind)) for kind in sent] for turn in begun]
        in_order = np.abs(np.subtract.outer(np.arange(len(begun)), np.arange(len(kinds))))
        turns, numbers = linear_sum_assignment(np.array(unlikely) + _IN_ORDER * in_order)
        return {begun[turn]: int(number) for turn, number in zip(turns, numbers, strict=True)}

    def likelihood(self, turn: int, kind: Kind) -> float:
        """How likely it is to send to those whom that turn woke, and to nobody else, after such a message."""
        parts = ((target, min(max(self.part(kind, target.vcpu), _RARELY), 1 - _RARELY)) for target in self.targets)
        return prod(
            part if target.vcpu in self.sends[turn] else 1 - part for target, part in parts if self.shows(turn, target)
        )

    def hidden(self, turn: int, target: Vcpu) -> Sequence[Kind]:
        """Of what a turn heard: what it may have sent for without a wake-up that shows it."""
        return self.may_send(turn, target)[len(self.begins.get((turn, target), ())) :]

    def takes(self, turn: int, kinds: Sequence[Kind]) -> float:
        """CPU time of a turn in which these messages came and no other, and its tick, if it has one."""
        took = sum(self.costs[kind] for kind in kinds)
        if self.found is None or not self.by_tick(turn):
            return took - self.saves * max(len(kinds) - 1, 0)
        return took - self.saves * len(kinds) + self.found.tick.cpu_ns

    def has_time(self, turn: int, kinds: Sequence[Kind], further: Kind) -> bool:
        """Did a turn take long enough for a further message, as far as it is known what that takes?"""
        if further not in self.clean:
            return True
        known = [kind for kind in kinds if kind in self.clean]
        takes = self.costs[further] - (self.saves if kinds else 0.0)
        return takes <= _CLEARLY * (self.turns[turn].run_ns - self.takes(turn, known))

    def explains(self, turn: int, kinds: Set[Kind]) -> bool:
        """Is something sent after any of these to everyone whom that turn woke?"""
        return not self.parts or all(
            any(self.part(kind, target) > NEVER for kind in kinds) for target in self.sends[turn]
        )

    def may_send(self, turn: int, target: Vcpu) -> list[Kind]:
        """Of what a turn heard: what something may have been sent for; all of it as long as nothing is known."""
        if not self.parts:
            return list(self.heard[turn].kinds)
        return [kind for kind in self.heard[turn].kinds if self.part(kind, target) > NEVER]


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
    for its in seen.values():
        its.know_sent()
        its.heard = [Heard(its.woken_by(turn), is_sure=False) for turn in range(len(its.turns))]
    for its in seen.values():
        _overlap(its)
    in_time = sorted((ended, vcpu, turn) for vcpu, its in seen.items() for turn, ended in enumerate(its.ended))
    for _ in range(_PASSES):
        for _, vcpu, turn in in_time:
            seen[vcpu].heard[turn] = _hear(seen[vcpu], turn, seen)
        for its in seen.values():
            its.known = _frequent(its.heard)
            its.costs, its.clean = _costs(its)
            its.saves = _saves(its)
        all_parts = {vcpu: _parts(its) for vcpu, its in seen.items()}
        for vcpu, its in seen.items():
            its.parts = all_parts[vcpu]
        for its in seen.values():
            _find_timers(its, seen)
        for its in seen.values():
            its.within, its.hides = [[] for _ in its.turns], set()
        for its in seen.values():
            its.know_sent()
        for its in seen.values():
            _overlap(its)
    return seen


def _find_timers(its: Seen, seen: Mapping[Vcpu, Seen]) -> None:
    """Notes which turns a timer began though somebody ran that sends to it at other times: by their CPU time."""
    timer = its.costs.get(TIME)
    if timer is None:
        return
    # A kind that costs what the timer does may be nothing but such turns.
    others = [cost for kind, cost in its.costs.items() if kind != TIME and abs(cost - timer) > _LIKE_TIMER * timer]
    for turn in range(1, len(its.turns)):
        sender, ran = its.sender(turn), its.turns[turn].run_ns
        if sender is None or _CLEARLY * abs(ran - timer) > min(abs(ran - other) for other in (0, *others)):
            continue
        kinds = seen[sender].behind(its.turns[turn - 1].sender_turn, its, turn)
        if all(seen[sender].part(kind, its.vcpu) < ALWAYS for kind in kinds):
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
    kinds: list[Kind] = []
    sender = its.sender(turn)
    is_sure = turn > 0
    if sender is not None:
        that, its_turn = seen[sender], its.turns[turn - 1].sender_turn
        sent = [kind.then(sender, its.vcpu) for kind in that.behind(its_turn, its, turn)]
        is_sure = len(set(sent)) == 1 or (
            len(sent) > 1 and all(that.part(kind, its.vcpu) >= ALWAYS for kind in that.behind(its_turn, its, turn))
        )
        # One wake-up may stand for several messages that the sender had heard before it ran.
        kinds += sent if is_sure else []
    elif turn > 0 and not its.by_tick(turn):
        kinds.append(TIME)
    asked: list[_Asked] = []
    for that, its_turn in sorted(its.within[turn], key=lambda each: each[0].ended[each[1]]):
        is_sure = is_sure and bool(that.heard[its_turn].kinds)
        for kind in that.hidden(its_turn, its.vcpu):
            if that.part(kind, its.vcpu) >= ALWAYS:
                if its.has_time(turn, kinds, kind.then(that.vcpu, its.vcpu)):
                    kinds.append(kind.then(that.vcpu, its.vcpu))
            else:
                asked.append(_Asked(that, its_turn, kind.then(that.vcpu, its.vcpu)))
    if its.by_tick(turn) and not its.is_tick(turn):
        # It may have waited for so long after the tick that its timer was due.
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
    if len(left_over) > _ASKED_MOST or any(kind not in its.costs for kind in (*kinds, *(may[one] for one in left_over))):
        return None
    sets = [set(some) for size in range(len(left_over) + 1) for some in combinations(left_over, size)]
    sets = [some for some in sets if its.explains(turn, {*kinds, *(may[one] for one in some)})]
    if len(sets) < 2:
        return sets[0] if sets else None
    took = [its.takes(turn, [*kinds, *(may[one] for one in some)]) for some in sets]
    off = {number: abs(its.turns[turn].run_ns - it) for number, it in enumerate(took)}
    best, second = nsmallest(2, off, key=lambda number: (off[number], number))
    return sets[best] if _CLEARLY * off[best] <= off[second] else None


def _frequent(heard: Sequence[Heard]) -> Set[Kind]:
    counts = Counter(kind for its in heard for kind in its.kinds)
    least = max(SAMPLES_LEAST, _OF_TURNS_LEAST * sum(counts.values()))
    return {kind for kind, count in counts.items() if count >= least or kind == TIME}


def _costs(its: Seen) -> tuple[dict[Kind, float], Set[Kind]]:
    """CPU time of each kind of messages: of the turns that surely heard one alone, the median.

    Returns:
        That, and the kinds for which it is of turns in which nothing else can have come.
    """
    ran: dict[Kind, list[int]] = {}
    clean: dict[Kind, list[int]] = {}
    for turn, (kinds, is_sure) in enumerate(its.heard):
        if is_sure and len(kinds) == 1 and not its.by_tick(turn):
            ran.setdefault(kinds[0], []).append(its.turns[turn].run_ns)
            if not its.within[turn]:
                clean.setdefault(kinds[0], []).append(its.turns[turn].run_ns)
    clean = {kind: times for kind, times in clean.items() if len(times) >= SAMPLES_LEAST}
    costs = {kind: median(times) for kind, times in (ran | clean).items() if len(times) >= SAMPLES_LEAST}
    return costs, set(clean)


def _saves(its: Seen) -> float:
    """How much less each further message of a turn takes than alone: of the turns that surely heard several."""
    several = [
        (its.takes(turn, kinds) + its.saves * (len(kinds) - 1) - its.turns[turn].run_ns) / (len(kinds) - 1)
        for turn, (kinds, is_sure) in enumerate(its.heard)
        if is_sure and len(kinds) > 1 and not its.by_tick(turn) and all(kind in its.costs for kind in kinds)
    ]
    return max(median(several), 0.0) if len(several) >= SAMPLES_LEAST else 0.0


def _parts(its: Seen) -> dict[tuple[Kind, Vcpu], float]:
    """Of each kind of messages and each target: in how many turns that would show it something is sent."""
    return {(kind, target.vcpu): part for target in its.targets for kind, part in _parts_to(its, target).items()}


def _parts_to(its: Seen, target: Seen) -> dict[Kind, float]:
    """Of each kind of messages: in how many turns that would show it something is sent to that target."""
    shown = list(_shown(its, target))
    # Where nothing else can have come, nothing was sent for anything else.
    clean, others = _Counted([each for each in shown if each.is_clean]), _Counted(shown)
    heard = Counter(kind for kinds, _ in its.heard for kind in set(kinds))
    parts: dict[Kind, float] = {}
    hidden = list[Kind]()
    for kind in its.known:
        least = max(SAMPLES_LEAST, _OF_TURNS_LEAST * heard[kind])
        counted = clean if clean.shown[kind] >= least else others
        parts[kind] = counted.part(kind)
        seen = counted.shown[kind] + counted.unsent[kind]
        if kind != TIME and (seen < SAMPLES_LEAST or (seen < least and NEVER < parts[kind] < ALWAYS)):
            hidden.append(kind)
    always = {kind for kind in its.known if kind not in hidden and parts[kind] >= ALWAYS}
    for kind in hidden:
        left = _left(its, target, kind)
        if len(left) >= SAMPLES_LEAST:
            parts[kind] = float(2 * median(left) > min(target.costs.values(), default=0.0) - target.saves)
            continue
        # What hardly a turn can show is sent, unless those few speak against it, or what is sent is for others.
        explained = sum(kind in kinds and bool(always & kinds) for kinds, is_sent, _ in shown if is_sent)
        parts[kind] = 0.0 if explained >= SAMPLES_LEAST else 1.0
    return parts


class _Shown(NamedTuple):
    """What a turn shows."""

    kinds: Set[Kind]
    """What it heard."""
    is_sent: bool
    """Was something sent?"""
    is_clean: bool
    """Can nothing else have come?"""


class _Counted:
    """In how many turns something was sent for each kind of messages, and in how many of all."""

    def __init__(self, turns: Sequence[_Shown]) -> None:
        silent: Set[Kind] = frozenset()
        while True:
            self.sent, self.shown, self.unsent = Counter[Kind](), Counter[Kind](), Counter[Kind]()
            for kinds, is_sent, _ in turns:
                # Which of several it was for, only those that never send tell.
                may = kinds - silent or kinds
                if len(may) == 1:
                    self.shown.update(may)
                    self.sent.update(may if is_sent else ())
                elif not is_sent:
                    self.unsent.update(may)
            found = {kind for kind in self.shown if self.shown[kind] >= SAMPLES_LEAST and self.part(kind) <= NEVER}
            if found <= silent:
                return
            silent |= found

    def part(self, kind: Kind) -> float:
        """In how many of the turns that show it."""
        return self.sent[kind] / self.shown[kind] if self.shown[kind] else 0.0


def _left(its: Seen, target: Seen, kind: Kind) -> list[float]:
    """CPU time that the target's turns took besides what else they heard, where one such message may have come."""
    sent = kind.then(its.vcpu, target.vcpu)
    others = [[one for one in heard.kinds if one != sent] for heard in target.heard]
    came = [sum(kind in its.heard[at].kinds for at in _may_have_sent(its, target, turn)) for turn in range(len(others))]
    # What never came without it does not tell what it costs alone.
    without = Counter(one for turn, kinds in enumerate(others) if not came[turn] for one in set(kinds))
    return [
        target.turns[turn].run_ns - target.takes(turn, kinds)
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
                yield _Shown(set(kinds), True, is_clean)
        elif its.shows(turn, target):
            yield _Shown(set(kinds), False, is_clean)
        elif len(set(kinds)) == 1 and (turn, target.vcpu) in its.told:
            yield _Shown(set(kinds), its.told[turn, target.vcpu], is_clean)
