"""What a vCPU does after each kind of messages, and after its timer, learnt from turns that show it.

Sleeps are told apart by what they are counted from: from the answer to a message (a client thinks), then they belong to
that task, or from the last sleep (a timer of its own).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from statistics import median

import numpy as np

from vcpulab.twin.heard import ALWAYS, NEVER, SAMPLES_LEAST, TIME, Action, Kind, Seen
from vcpulab.twin.links import Vcpu
from vcpulab.twin.softirq import softirq_kinds
from vcpulab.twin.waking import Waking

SAMPLES_MOST = 250
"""Of what one task does; more make a scenario longer, and hardly better."""
_FOLLOWED = 0.7
"""Of the answers to a kind of messages: if so many are followed by a sleep, it may be counted from there."""


@dataclass
class Sample:
    """What followed a message, or a timer."""

    actions: list[Action]
    then_ns: int = 0
    """How long the vCPU slept thereafter, if it was for a timer that is counted from here."""
    later: list[Action] = field(default_factory=list)
    """What it did then."""

    def run_ns(self) -> int:
        """Its CPU time."""
        return sum(cpu for cpu, _ in [*self.actions, *self.later])


@dataclass
class Task:
    """What answers one kind of messages at a vCPU, or its timer."""

    vcpu: Vcpu
    kind: Kind
    samples: list[Sample]
    starts: bool = False
    """Does it begin without a message?"""
    softirq: bool = False
    """Do interrupts alone deal with it, so that it starts no tick?"""

    @property
    def acknowledges_first(self) -> bool:
        """Is what it is sent for acknowledged, and then passed on: by interrupts, and by a thread?"""
        sent = [[woken for _, woken in sample.actions if woken is not None] for sample in self.samples]
        passed_on = [sends for sends in sent if len(set(sends)) > 1]
        first = sum(sends[0] == self.kind.sender for sends in passed_on)
        return 2 * first > len(self.samples)


def receipts(receiver: Seen) -> Set[Kind]:
    """The kinds of messages that tell a vCPU that what it had sent itself has come: it sends nothing for them.

    So is the answer of a device to who sleeps before it asks again.
    """
    return {
        kind for kind in receiver.frequent_kinds if kind.acknowledges(receiver.vcpu) and not receiver.sends_for(kind)
    }


class Learnt:
    """What a vCPU does after each kind of messages."""

    def __init__(self, vcpu_turns: Seen, waking: Mapping[Vcpu, Waking], receipt_ns: float | None) -> None:
        """Takes what waking costs, of those of whom it is known, and what a receipt takes elsewhere, too."""
        self.seen = vcpu_turns
        self.receipt_ns = receipt_ns
        self.waking = waking.get(vcpu_turns.vcpu, Waking())
        self.share = {target.vcpu for target in vcpu_turns.targets if target.vcpu in waking}
        """Those whose turns were seen to share what was sent to them: more than once in a turn means that."""
        self.sure = [turn for turn in range(len(vcpu_turns.turns)) if self._is_sure(turn)]
        self.costs = self._costs()
        self.offsets = self._offsets()

    def _is_sure(self, turn: int) -> bool:
        """Is it known what a turn heard, and shows it what it may have sent?"""
        kinds, is_sure = self.seen.heard[turn]
        return (
            is_sure
            and not self.seen.by_tick(turn)
            and len(kinds) > 0
            and all(
                self.seen.shows(turn, target)
                for target in self.seen.targets
                if any(NEVER < self.seen.part(kind, target.vcpu) < ALWAYS for kind in kinds)
            )
        )

    def _costs(self) -> dict[Kind, float]:
        """CPU time for each kind: what adds up best to that of turns, by least squares.

        A receipt that never came alone takes what one does elsewhere: of the same driver, for the same event.
        """
        turns = [(self.seen.heard[turn].kinds, float(self.seen.run[turn] - self.waking.ns)) for turn in self.sure]
        if self.receipt_ns is not None:
            alone = max(self.receipt_ns - self.waking.ns, 0.0)
            # As surely as it came.
            came = Counter(kind for kinds, _ in turns for kind in kinds)
            for kind in sorted(receipts(self.seen) - self.seen.costs.keys(), key=str):
                turns += [((kind,), alone)] * came[kind]
        if not turns:
            return {}
        kinds = sorted({kind for heard, _ in turns for kind in heard}, key=str)
        counts = np.array([[heard.count(kind) for kind in kinds] for heard, _ in turns], float)
        solution = np.linalg.lstsq(counts, np.array([ran for _, ran in turns]), rcond=None)[0]
        return {kind: max(float(cost), 0.0) for kind, cost in zip(kinds, solution, strict=True)}

    def _offsets(self) -> dict[tuple[Kind, Vcpu], float]:
        """After how much CPU time something is sent for a message that came alone, in the median."""
        after: dict[tuple[Kind, Vcpu], list[int]] = {}
        for turn in self.sure:
            kinds, done = self.seen.heard[turn].kinds, -self.waking.first_ns
            for cpu, woken in self.seen.computes[turn]:
                done += cpu
                if woken is not None and len(kinds) == 1:
                    after.setdefault((kinds[0], woken), []).append(max(done, 0))
        return {pair: median(times) for pair, times in after.items()}

    def _turns(self, kind: Kind) -> list[int]:
        """The turns that show best what such a message leads to: nothing else may send in them, if they are most."""
        heard = [turn for turn in self.sure if kind in self.seen.heard[turn].kinds]
        # Who is preempted while it sends hears answers within the turn: those without would be those with fewer sends.
        often = any(self.seen.part(kind, target) > NEVER for target in self.share)
        alone = [
            turn
            for turn in heard
            if [kind]
            == [
                message
                for message in self.seen.heard[turn].kinds
                if message == kind or not often or self.seen.sends_for(message)
            ]
        ]
        if len(heard) < SAMPLES_LEAST:
            return [turn for turn, heard_in_turn in enumerate(self.seen.heard) if kind in heard_in_turn.kinds]
        return alone if 2 * len(alone) >= len(heard) else heard

    def _may_send(self, turn: int, kind: Kind, target: Vcpu) -> bool:
        """May what a turn sent to another be for that message: is there none that is always answered so?"""
        part = self.seen.part(kind, target)
        other_kinds = (other_kind for other_kind in self.seen.heard[turn].kinds if other_kind != kind)
        return part >= ALWAYS or (
            part > NEVER and all(self.seen.part(other_kind, target) < ALWAYS for other_kind in other_kinds)
        )

    def _actions(self, turn: int, kind: Kind) -> list[Action]:
        """What a turn did for one of the messages that it heard: all but what the others cost."""
        kinds = self.seen.heard[turn].kinds
        at = len(kinds) - 1 if kind == kinds[-1] else kinds.index(kind)
        sends = {target.vcpu for target in self.seen.targets if self._may_send(turn, kind, target.vcpu)}
        first_ns, last_ns = self.waking
        if self.seen.by_tick(turn) and self.seen.recognised is not None:
            # Its tick has woken it already.
            first_ns, last_ns = max(self.seen.recognised.tick.cpu_ns, self.waking.ns), 0
        before = first_ns + sum(self.costs.get(other_kind, 0.0) for other_kind in kinds[:at])
        overhead = before + sum(self.costs.get(other_kind, 0.0) for other_kind in kinds[at + 1 :]) + last_ns
        run = max(self.seen.run[turn] - overhead, 0.0)
        moments = {
            target: self.offsets.get((kind, target), run)
            for target in sends - self.seen.sends[turn]
            if self.seen.part(kind, target) >= ALWAYS
        }
        spent = 0
        again: list[tuple[float, Vcpu]] = []
        alone = {
            target
            for target in self.share
            if (kind, target) not in self.seen.once and self.seen.may_send(turn, target) == [kind]
        }
        for cpu, woken in self.seen.computes[turn]:
            spent += cpu
            if woken is not None and woken in sends:
                moment = max(spent - before, 0.0)
                if woken in moments and woken in alone:
                    again.append((moment, woken))
                elif woken not in moments or kind == kinds[-1]:
                    # To whom several send, each sends once. Beside others nothing tells what was done for which before.
                    moments[woken] = self.offsets.get((kind, woken), moment) if len(set(kinds)) > 1 else moment
        actions, done = list[Action](), 0.0
        all_moments = [*((at, woken) for woken, at in moments.items()), *again]
        in_order: list[tuple[float, Vcpu | None]] = sorted((min(at, run), woken) for at, woken in all_moments)
        for moment, woken in [*in_order, (run, None)]:
            actions.append((round(moment - done), woken))
            done = moment
        return [action for action in actions if action != (0, None)]

    def tasks(self) -> Iterable[Task]:
        """A task for each kind of messages, and for the timer."""
        softirq = softirq_kinds(self.seen) - {self.anchor}
        for kind in sorted(self.seen.frequent_kinds, key=str):
            if kind == TIME:
                samples = self._timed() if self.anchor is None else []
            else:
                samples = self._answers(kind, sleeps=kind == self.anchor)
            # What a timer did once or twice is no pattern.
            if len(samples) >= (SAMPLES_LEAST if kind == TIME else 1):
                starts = kind in (TIME, self.anchor)
                yield Task(self.seen.vcpu, kind, samples, starts, softirq=kind in softirq)

    def _last(self, turn: int) -> Kind | None:
        """The last message that a turn heard."""
        kinds = self.seen.heard[turn].kinds
        return kinds[-1] if kinds else None

    def _before(self, turn: int) -> int | None:
        """The turn before, without ticks."""
        turn -= 1
        while turn >= 0 and self.seen.is_tick(turn):
            turn -= 1
        return turn if turn >= 0 else None

    def _timed_turns(self) -> list[int]:
        return [turn for turn, heard in enumerate(self.seen.heard) if TIME in heard.kinds]

    def _is_hidden_within(self, turn: int, following: int) -> bool:
        """May the timer have been due between these turns, and something else have woken the vCPU first?"""
        between = range(turn + 1, following)
        return self.seen.by_tick(following) or any(
            (self._last(middle) is None and not self.seen.is_tick(middle)) or self._holds_timer(middle)
            for middle in between
        )

    def _holds_timer(self, turn: int) -> bool:
        """Did it compute so much more than for what it heard that its timer must have been due while it waited?"""
        expected = sum(self.costs.get(kind, 0.0) for kind in self.seen.heard[turn].kinds)
        return 2 * (self.seen.run[turn] - self.waking.ns - expected) > self.costs.get(TIME, float("inf"))

    @cached_property
    def anchor(self) -> Kind | None:
        """The kind of messages from whose answers sleeps are counted; `None`: from the last sleep."""
        timed = self._timed_turns()
        if len(timed) < SAMPLES_LEAST:
            return None
        # When it was due says only a timer that woke it itself.
        seen = [turn for turn in timed if not self.seen.by_tick(turn)]
        from_last = [self.seen.woke[b] - self.seen.ended[a] for a, b in pairwise(timed) if not self.seen.by_tick(b)]
        befores = {turn: before for turn in timed if (before := self._before(turn)) is not None}
        counts = Counter(self._last(before) for before in befores.values())

        def sleeps(kind: Kind) -> list[int]:
            return [
                self.seen.woke[turn] - self.seen.ended[befores[turn]]
                for turn in seen
                if turn in befores and self._last(befores[turn]) == kind
            ]

        return next(
            (
                kind
                for kind, count in counts.most_common()
                if kind is not None
                and kind != TIME
                and kind in self.seen.frequent_kinds
                and count >= _FOLLOWED * self._followable(kind)
                and _spread(sleeps(kind)) < _spread(from_last)
            ),
            None,
        )

    def _followable(self, kind: Kind) -> int:
        """Answers to such messages after which the next turn is of a kind that can be told."""
        befores = [self._before(turn) for turn in range(len(self.seen.turns)) if self._last(turn) is not None]
        return sum(before is not None and self._last(before) == kind for before in befores)

    def _answers(self, kind: Kind, *, sleeps: bool) -> list[Sample]:
        turns = self._turns(kind)
        if not sleeps:
            return [Sample(self._actions(turn, kind)) for turn in turns[:SAMPLES_MOST]]
        timed = set(self._turns(TIME))
        pairs = [(before, turn) for turn in self._timed_turns() if (before := self._before(turn)) is not None]
        pairs = [(before, turn) for before, turn in pairs if self._last(before) == kind]
        answered = [(before, turn) for before, turn in pairs if before in turns]
        clean = [(before, turn) for before, turn in answered if turn in timed]
        if len(clean) < SAMPLES_LEAST:
            answered = clean = pairs
        return [
            Sample(self._actions(answer, kind), self._slept_ns(before, turn), self._actions(turn, TIME))
            for answer, (before, turn) in _with_last(answered, clean)
        ][:SAMPLES_MOST]

    def _slept_ns(self, before: int, turn: int) -> int:
        """From when a turn had done all that it does for what it heard until its timer began another."""
        return self.seen.woke[turn] - self.seen.ended[before] + self.waking.last_ns

    def _timed(self) -> list[Sample]:
        turns = set(self._turns(TIME))
        pairs = list(pairwise(self._timed_turns()))
        clean = [pair for pair in pairs if pair[0] in turns and not self._is_hidden_within(*pair)]
        return [
            Sample(self._actions(turn, TIME), self._slept_ns(turn, following))
            for turn, following in (clean if len(clean) >= SAMPLES_LEAST else pairs)
        ][:SAMPLES_MOST]


def _with_last(
    pairs: Sequence[tuple[int, int]], clean: Sequence[tuple[int, int]]
) -> Iterable[tuple[int, tuple[int, int]]]:
    """Each answer, with the last sleep that is known.

    Where ticks wake a vCPU before most of its timers do, the others follow answers that had the tick in them: of these
    alone answers would take too long.

    Args:
        pairs: answers, and the turns that timers began after them.
        clean: those of them whose timer woke the vCPU itself, one at least.
    """
    clean_pairs, last = set(clean), clean[0]
    for pair in pairs:
        last = pair if pair in clean_pairs else last
        yield pair[0], last


def _spread(times: Sequence[int]) -> float:
    """How far apart the middle half of times is."""
    low, high = np.percentile(times, (25, 75)) if times else (0.0, float("inf"))
    return float(high - low)
