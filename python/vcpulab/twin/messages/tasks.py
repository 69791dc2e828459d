"""The tasks of a vCPU, one for each kind of messages and one for its timer, with samples from turns that show them.

A sleep is counted from the answer to a message (a client thinks) and belongs to that task, or from the last sleep (an
independent timer).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from statistics import median

import numpy as np

from vcpulab.twin.links import Vcpu
from vcpulab.twin.messages.softirq import softirq_kinds
from vcpulab.twin.messages.turns import ALWAYS, NEVER, SAMPLES_LEAST, TIME, Action, Beliefs, Kind
from vcpulab.twin.messages.wake_costs import Waking

SAMPLES_MOST = 250
"""The largest number of samples of a task: more make a scenario longer, and hardly better."""
_FOLLOWED = 0.7
"""The least fraction of answers to a kind of messages that a sleep follows, for sleeps that are counted from the
answer. Assumed."""


@dataclass
class Sample:
    """The actions after a message, or after a timer."""

    actions: list[Action]
    then_ns: int = 0
    """The sleep of the vCPU after the actions, if it was for a timer that is counted from here."""
    later: list[Action] = field(default_factory=list)
    """The actions after the sleep."""

    def run_ns(self) -> int:
        """The CPU time of all actions."""
        return sum(cpu for cpu, _ in [*self.actions, *self.later])


@dataclass
class Task:
    """A task that answers a kind of messages at a vCPU, or its timer."""

    vcpu: Vcpu
    kind: Kind
    samples: list[Sample]
    starts: bool = False
    """`True`: the task begins without a message."""
    softirq: bool = False
    """`True`: interrupts alone handle the messages, so that they start no tick."""

    @property
    def acknowledges_first(self) -> bool:
        """`True`: messages are first acknowledged (by interrupts), and then passed on (by a thread)."""
        sent = [[woken for _, woken in sample.actions if woken is not None] for sample in self.samples]
        passed_on = [sends for sends in sent if len(set(sends)) > 1]
        first = sum(sends[0] == self.kind.sender for sends in passed_on)
        return 2 * first > len(self.samples)


def receipts(receiver: Beliefs) -> Set[Kind]:
    """The kinds of messages that acknowledge a vCPU's own messages; it sends nothing for them.

    They include the answer of a device to a vCPU that sleeps before its next request.
    """
    return {
        kind for kind in receiver.frequent_kinds if kind.acknowledges(receiver.vcpu) and not receiver.sends_for(kind)
    }


class VcpuTasks:
    """The tasks of a vCPU, found in its turns."""

    def __init__(self, beliefs: Beliefs, waking: Mapping[Vcpu, Waking], receipt_ns: float | None) -> None:
        """Takes the known costs of waking, and the cost of a receipt at other vCPUs."""
        self.beliefs = beliefs
        self.receipt_ns = receipt_ns
        self.waking = waking.get(beliefs.vcpu, Waking())
        self.share = {target.vcpu for target in beliefs.targets if target.vcpu in waking}
        """The targets whose turns share messages: several messages of a turn are then distinct messages."""
        self.sure = [turn for turn in range(len(beliefs.turns)) if self._is_sure(turn)]
        self.costs = self._costs()
        self.offsets = self._offsets()

    def under(self, beliefs: Beliefs) -> "VcpuTasks":
        """The tasks with the same costs of messages, under other beliefs about what is sent for them."""
        tasks = copy(self)
        tasks.beliefs = beliefs
        return tasks

    def _is_sure(self, turn: int) -> bool:
        """`True`: the messages that a turn received are known, and wake-ups show the messages that it sent."""
        kinds, is_sure = self.beliefs.received[turn]
        return (
            is_sure
            and not self.beliefs.by_tick(turn)
            and len(kinds) > 0
            and all(
                self.beliefs.shows(turn, target)
                for target in self.beliefs.targets
                if any(NEVER < self.beliefs.part(kind, target.vcpu) < ALWAYS for kind in kinds)
            )
        )

    def _costs(self) -> dict[Kind, float]:
        """The CPU time of each kind of messages, by least squares over turns.

        A receipt that never came alone costs as much as at other vCPUs: it is of the same driver, for the same event.
        """
        turns = [
            (self.beliefs.received[turn].kinds, float(self.beliefs.run[turn] - self.waking.ns)) for turn in self.sure
        ]
        if self.receipt_ns is not None:
            alone = max(self.receipt_ns - self.waking.ns, 0.0)
            # With the weight of its messages.
            came = Counter(kind for kinds, _ in turns for kind in kinds)
            for kind in sorted(receipts(self.beliefs) - self.beliefs.costs.keys(), key=str):
                turns += [((kind,), alone)] * came[kind]
        if not turns:
            return {}
        kinds = sorted({kind for received, _ in turns for kind in received}, key=str)
        counts = np.array([[received.count(kind) for kind in kinds] for received, _ in turns], float)
        solution = np.linalg.lstsq(counts, np.array([ran for _, ran in turns]), rcond=None)[0]
        return {kind: max(float(cost), 0.0) for kind, cost in zip(kinds, solution, strict=True)}

    def _offsets(self) -> dict[tuple[Kind, Vcpu], float]:
        """The median CPU time before a message is sent, for received messages that came alone."""
        after: dict[tuple[Kind, Vcpu], list[int]] = {}
        for turn in self.sure:
            kinds, done = self.beliefs.received[turn].kinds, -self.waking.first_ns
            for cpu, woken in self.beliefs.computes[turn]:
                done += cpu
                if woken is not None and len(kinds) == 1:
                    after.setdefault((kinds[0], woken), []).append(max(done, 0))
        return {pair: median(times) for pair, times in after.items()}

    def _turns(self, kind: Kind) -> list[int]:
        """The turns that show the effect of a kind of messages best: if most are so, those without other senders."""
        received = [turn for turn in self.sure if kind in self.beliefs.received[turn].kinds]
        # A vCPU preempted while it sends gets answers within the turn; turns without answers would be those with fewer
        # messages.
        often = any(self.beliefs.part(kind, target) > NEVER for target in self.share)
        alone = [
            turn
            for turn in received
            if [kind]
            == [
                message
                for message in self.beliefs.received[turn].kinds
                if message == kind or not often or self.beliefs.sends_for(message)
            ]
        ]
        if len(received) < SAMPLES_LEAST:
            return [
                turn for turn, received_in_turn in enumerate(self.beliefs.received) if kind in received_in_turn.kinds
            ]
        return alone if 2 * len(alone) >= len(received) else received

    def _may_send(self, turn: int, kind: Kind, target: Vcpu) -> bool:
        """`True`: a message of a turn may be for that received message, as no other one always leads to it."""
        part = self.beliefs.part(kind, target)
        other_kinds = (other_kind for other_kind in self.beliefs.received[turn].kinds if other_kind != kind)
        return part >= ALWAYS or (
            part > NEVER and all(self.beliefs.part(other_kind, target) < ALWAYS for other_kind in other_kinds)
        )

    def _actions(self, turn: int, kind: Kind) -> list[Action]:
        """The actions of a turn for one of its messages: all its CPU time less the costs of the other messages."""
        kinds = self.beliefs.received[turn].kinds
        at = len(kinds) - 1 if kind == kinds[-1] else kinds.index(kind)
        sends = {target.vcpu for target in self.beliefs.targets if self._may_send(turn, kind, target.vcpu)}
        first_ns, last_ns = self.waking
        if self.beliefs.by_tick(turn) and self.beliefs.recognised is not None:
            # Its tick has woken it already.
            first_ns, last_ns = max(self.beliefs.recognised.tick.cpu_ns, self.waking.ns), 0
        before = first_ns + sum(self.costs.get(other_kind, 0.0) for other_kind in kinds[:at])
        overhead = before + sum(self.costs.get(other_kind, 0.0) for other_kind in kinds[at + 1 :]) + last_ns
        run = max(self.beliefs.run[turn] - overhead, 0.0)
        moments = {
            target: self.offsets.get((kind, target), run)
            for target in sends - self.beliefs.sends[turn]
            if self.beliefs.part(kind, target) >= ALWAYS
        }
        spent = 0
        again: list[tuple[float, Vcpu]] = []
        alone = {
            target
            for target in self.share
            if (kind, target) not in self.beliefs.once and self.beliefs.may_send(turn, target) == [kind]
        }
        for cpu, woken in self.beliefs.computes[turn]:
            spent += cpu
            if woken is not None and woken in sends:
                moment = max(spent - before, 0.0)
                if woken in moments and woken in alone:
                    again.append((moment, woken))
                elif woken not in moments or kind == kinds[-1]:
                    # Each of several messages to a target is sent once; next to other messages, the order is unknown.
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
        softirq = softirq_kinds(self.beliefs) - {self.anchor}
        for kind in sorted(self.beliefs.frequent_kinds, key=str):
            if kind == TIME:
                samples = self._timed() if self.anchor is None else []
            else:
                samples = self._answers(kind, sleeps=kind == self.anchor)
            # Once or twice is no pattern of a timer.
            if len(samples) >= (SAMPLES_LEAST if kind == TIME else 1):
                starts = kind in (TIME, self.anchor)
                yield Task(self.beliefs.vcpu, kind, samples, starts, softirq=kind in softirq)

    def _last(self, turn: int) -> Kind | None:
        """The last message that a turn received."""
        kinds = self.beliefs.received[turn].kinds
        return kinds[-1] if kinds else None

    def _before(self, turn: int) -> int | None:
        """The turn before, without ticks."""
        turn -= 1
        while turn >= 0 and self.beliefs.is_tick(turn):
            turn -= 1
        return turn if turn >= 0 else None

    def _timed_turns(self) -> list[int]:
        return [turn for turn, received in enumerate(self.beliefs.received) if TIME in received.kinds]

    def _is_hidden_within(self, turn: int, following: int) -> bool:
        """`True`: the timer may have expired between these turns, after another wake-up of the vCPU."""
        between = range(turn + 1, following)
        return self.beliefs.by_tick(following) or any(
            (self._last(middle) is None and not self.beliefs.is_tick(middle)) or self._holds_timer(middle)
            for middle in between
        )

    def _holds_timer(self, turn: int) -> bool:
        """`True`: a turn ran so much longer than for its messages that its timer must have expired while it waited."""
        expected = sum(self.costs.get(kind, 0.0) for kind in self.beliefs.received[turn].kinds)
        return 2 * (self.beliefs.run[turn] - self.waking.ns - expected) > self.costs.get(TIME, float("inf"))

    @cached_property
    def anchor(self) -> Kind | None:
        """The kind of messages from whose answers sleeps are counted; `None`: from the last sleep."""
        timed = self._timed_turns()
        if len(timed) < SAMPLES_LEAST:
            return None
        # Only a timer that woke the vCPU itself shows when it expired.
        by_timer = [turn for turn in timed if not self.beliefs.by_tick(turn)]
        from_last = [
            self.beliefs.woke[b] - self.beliefs.ended[a] for a, b in pairwise(timed) if not self.beliefs.by_tick(b)
        ]
        befores = {turn: before for turn in timed if (before := self._before(turn)) is not None}
        counts = Counter(self._last(before) for before in befores.values())

        def sleeps(kind: Kind) -> list[int]:
            return [
                self.beliefs.woke[turn] - self.beliefs.ended[befores[turn]]
                for turn in by_timer
                if turn in befores and self._last(befores[turn]) == kind
            ]

        return next(
            (
                kind
                for kind, count in counts.most_common()
                if kind is not None
                and kind != TIME
                and kind in self.beliefs.frequent_kinds
                and count >= _FOLLOWED * self._followable(kind)
                and _spread(sleeps(kind)) < _spread(from_last)
            ),
            None,
        )

    def _followable(self, kind: Kind) -> int:
        """The number of answers to a kind of messages before turns of a known kind."""
        befores = [self._before(turn) for turn in range(len(self.beliefs.turns)) if self._last(turn) is not None]
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
        """The time from the end of a turn's work to the turn that its timer began."""
        return self.beliefs.woke[turn] - self.beliefs.ended[before] + self.waking.last_ns

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
    """The distance between the quartiles of times."""
    low, high = np.percentile(times, (25, 75)) if times else (0.0, float("inf"))
    return float(high - low)
