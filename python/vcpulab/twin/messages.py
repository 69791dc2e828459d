"""What vCPUs do that wake one another: tasks that wait for a message, each of which answers one kind of message.

Under another scheduler messages meet others than they met in the recording: what came apart comes together, and the
other way round. So turns are not replayed in their order. Each kind of message (who sends it, and woken by whom) has
a task that awaits it, and does one of the things that were seen to follow such a message alone: computes, and sends
what it sent. A turn during which more may have come than one wake-up shows teaches nothing. Sleeps are told apart by
what they are counted from: from the answer to a message (a client thinks), then they belong to that task, or from the
last sleep (a timer of its own).
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import pairwise
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from vcpulab.twin.links import Link, Vcpu
from vcpulab.twin.sequences import Turns
from vcpulab.twin.stretches import mean_stretch
from vcpulab.twin.ticks import Recognised, Tick, recognise

SAMPLES_MOST = 250
"""Of what one task does; more make a scenario longer, and hardly better."""
_SAMPLES_LEAST = 5
_OF_TURNS_LEAST = 0.04
"""Of the turns of a vCPU: kinds of messages that are fewer are chance."""
_ALWAYS, _NEVER = 0.8, 0.1
"""What is sent in so many of the turns in which it would have been seen is sent in all, or in none."""
_FOLLOWED = 0.7
"""Of the answers to a kind of messages: if so many are followed by a sleep, it may be counted from there."""
_STEADIER = 0.5
"""So much less must sleeps differ if they are counted from an answer."""


class Kind(NamedTuple):
    """A kind of messages, or the vCPU's own timer (no sender)."""

    sender: Vcpu | None
    because: Vcpu | None = None
    """Who had woken the sender; `None`: time."""


TIME = Kind(None)
Action = tuple[int, Vcpu | None]
"""CPU time, and whom a message goes to after it."""


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


class _Seen:
    """The turns of a vCPU, and what is known of each."""

    def __init__(self, vcpu: Vcpu, its: Turns) -> None:
        self.vcpu, self.turns = vcpu, its.turns
        self.sources: list[_Seen] = []
        """Who wakes it."""
        self.found: Recognised | None = recognise(its.turns)
        self.woke = [turn.woke_ns for turn in its.turns]
        self.ran = [turn.woke_ns + turn.waited_ns for turn in its.turns]
        self.ended = [turn.woke_ns + turn.span_ns for turn in its.turns]

    def is_tick(self, turn: int) -> bool:
        return self.found is not None and bool(self.found.is_tick[turn])

    def by_tick(self, turn: int) -> bool:
        """Was it woken by a tick, whatever else it then did?"""
        return self.found is not None and bool(self.found.on[turn]) and self.sender(turn) is None

    def sender(self, turn: int) -> Vcpu | None:
        blocked = self.turns[turn - 1].blocked if turn > 0 else 0
        return blocked if isinstance(blocked, tuple) else None

    def blocks_at(self, time: int) -> bool:
        at = bisect_right(self.woke, time) - 1
        return at < 0 or self.ended[at] <= time

    def runs_within(self, begin: int, end: int) -> bool:
        """Does another turn begin to run after `begin` and before `end`?"""
        return bisect_left(self.ran, end) > bisect_right(self.ran, begin)

    def others_came(self, turn: int) -> bool:
        """May there have been another message before the turn was over?"""
        begin, end = self.woke[turn], self.ended[turn]
        return any(source.runs_within(begin, end) for source in self.sources)

    def sends(self, turn: int) -> Set[Vcpu]:
        return {woken for _, woken in self.turns[turn].computes if woken is not None}


def tasks_of(turns: Mapping[Vcpu, Turns], links: Set[Link]) -> tuple[list[Task], dict[Vcpu, Tick]]:
    """The tasks of vCPUs that wake one another, and their ticks.

    Args:
        turns: of each of these vCPUs.
        links: who wakes whom.
    """
    seen = {vcpu: _Seen(vcpu, its) for vcpu, its in turns.items()}
    for waker, woken in sorted(links):
        if waker in seen and woken in seen:
            seen[woken].sources.append(seen[waker])
    kinds = {vcpu: _kinds(its, seen) for vcpu, its in seen.items()}
    known = {vcpu: _frequent(its) for vcpu, its in kinds.items()}
    tasks: list[Task] = []
    for vcpu, its in seen.items():
        learnt = _Learnt(its, kinds[vcpu], seen, known, links)
        tasks += learnt.tasks()
    return _reached(tasks), {vcpu: its.found.tick for vcpu, its in seen.items() if its.found is not None}


def _kinds(its: _Seen, seen: Mapping[Vcpu, _Seen]) -> list[Kind | None]:
    """The kind of each turn; `None`: a tick, or it cannot be told."""
    kinds: list[Kind | None] = []
    for turn in range(len(its.turns)):
        sender = its.sender(turn)
        if sender is None:
            # A tick woke it, and then something else was to be done: a message's work, or that of its timer.
            told = turn > 0 and not its.is_tick(turn) and not (its.by_tick(turn) and its.others_came(turn))
            kinds.append(TIME if told else None)
            continue
        senders_turn = its.turns[turn - 1].sender_turn
        senders = seen[sender]
        by_tick = senders.by_tick(senders_turn) and senders.others_came(senders_turn)
        if senders_turn >= len(senders.turns) or senders_turn <= 0 or by_tick:
            kinds.append(None)
        else:
            kinds.append(Kind(sender, senders.sender(senders_turn)))
    return kinds


def _frequent(kinds: Sequence[Kind | None]) -> Set[Kind]:
    counts = Counter(kind for kind in kinds if kind is not None)
    least = max(_SAMPLES_LEAST, _OF_TURNS_LEAST * sum(counts.values()))
    return {kind for kind, count in counts.items() if count >= least or kind == TIME}


class _Learnt:
    """What a vCPU does after each kind of messages, learnt from turns in which nothing else can have come."""

    def __init__(
        self,
        its: _Seen,
        kinds: Sequence[Kind | None],
        seen: Mapping[Vcpu, _Seen],
        known: Mapping[Vcpu, Set[Kind]],
        links: Set[Link],
    ) -> None:
        self.its, self.kinds, self.seen, self.known = its, kinds, seen, known[its.vcpu]
        self.targets = [woken for sender, woken in links if sender == its.vcpu and woken in seen]
        self.sure: dict[Kind, tuple[Set[Vcpu], Set[Vcpu]]] = {}
        """Of each kind: whom it sends to always, and to whom at all."""
        for kind in self.known:
            self.sure[kind] = self._sends(kind, known)
        self.clean = [self._is_clean(turn) for turn in range(len(its.turns))]

    def _sends(self, kind: Kind, known: Mapping[Vcpu, Set[Kind]]) -> tuple[Set[Vcpu], Set[Vcpu]]:
        turns = [turn for turn, its in enumerate(self.kinds) if its == kind and not self.its.others_came(turn)]
        always, at_all = set(), set()
        for target in self.targets:
            if Kind(self.its.vcpu, kind.sender) not in known[target]:
                continue
            visible = [turn for turn in turns if self.seen[target].blocks_at(self.its.ran[turn])]
            part = sum(target in self.its.sends(turn) for turn in visible) / max(len(visible), 1)
            if part >= _ALWAYS:
                always.add(target)
            if part > _NEVER:
                at_all.add(target)
        return always, at_all

    def _is_clean(self, turn: int) -> bool:
        kind = self.kinds[turn]
        if kind is None or kind not in self.known or self.its.by_tick(turn) or self.its.others_came(turn):
            return False
        always, at_all = self.sure[kind]
        began = self.its.ran[turn]
        if not all(self.seen[target].blocks_at(began) for target in at_all):
            return False
        return always <= self.its.sends(turn)

    def _actions(self, turn: int) -> list[Action]:
        kind = self.kinds[turn]
        at_all: Set[Vcpu] = self.sure[kind][1] if kind is not None else set()
        actions: list[Action] = []
        held = 0
        for cpu, woken in self.its.turns[turn].computes:
            if woken is None or woken in at_all:
                actions.append((held + cpu, woken))
                held = 0
            else:
                held += cpu
        if held:
            actions.append((held, None))
        return actions

    def tasks(self) -> Iterable[Task]:
        anchor = self._anchor()
        for kind in sorted(self.known, key=str):
            if kind == TIME:
                samples = self._timed() if anchor is None else []
            else:
                samples = self._answers(kind, sleeps=kind == anchor)
            # What a timer did once or twice is no pattern.
            if len(samples) >= (_SAMPLES_LEAST if kind == TIME else 1):
                yield Task(self.its.vcpu, kind, samples, starts=kind in (TIME, anchor))

    def _before(self, turn: int) -> int | None:
        """The turn before, without ticks."""
        turn -= 1
        while turn >= 0 and self.its.is_tick(turn):
            turn -= 1
        return turn if turn >= 0 else None

    def _timed_turns(self) -> list[int]:
        return [turn for turn, kind in enumerate(self.kinds) if kind == TIME]

    def _is_hidden_within(self, turn: int, following: int) -> bool:
        """May the timer have been due between these turns, and something else have woken the vCPU first?"""
        between = range(turn + 1, following)
        return self.its.by_tick(following) or any(
            self.kinds[one] is None and not self.its.is_tick(one) for one in between
        )

    def _anchor(self) -> Kind | None:
        """The kind of messages from whose answers sleeps are counted; `None`: from the last sleep."""
        timed = self._timed_turns()
        if len(timed) < _SAMPLES_LEAST:
            return None
        from_last = [self.its.woke[b] - self.its.ended[a] for a, b in pairwise(timed)]
        after: dict[Kind, list[int]] = {}
        for turn in timed:
            before = self._before(turn)
            kind = None if before is None else self.kinds[before]
            if before is not None and kind is not None and kind != TIME:
                after.setdefault(kind, []).append(self.its.woke[turn] - self.its.ended[before])
        best = min(
            (
                (_dispersion(sleeps), kind)
                for kind, sleeps in after.items()
                if kind in self.known and len(sleeps) >= _FOLLOWED * self._followable(kind)
            ),
            default=None,
            key=lambda each: each[0],
        )
        return best[1] if best is not None and best[0] < _STEADIER * _dispersion(from_last) else None

    def _followable(self, kind: Kind) -> int:
        """Answers to such messages after which the next turn is of a kind that can be told."""
        count = 0
        for turn, its in enumerate(self.kinds):
            if its is not None and its != kind:
                before = self._before(turn)
                count += before is not None and self.kinds[before] == kind
        return count

    def _answers(self, kind: Kind, *, sleeps: bool) -> list[Sample]:
        turns = [turn for turn, its in enumerate(self.kinds) if its == kind]
        clean = [turn for turn in turns if self.clean[turn]]
        if not sleeps:
            taken = clean if len(clean) >= _SAMPLES_LEAST else turns
            return [Sample(self._actions(turn)) for turn in taken[:SAMPLES_MOST]]
        samples = []
        for turn in self._timed_turns():
            before = self._before(turn)
            if before is not None and self.kinds[before] == kind and self.clean[before] and self.clean[turn]:
                then_ns = self.its.woke[turn] - self.its.ended[before]
                samples.append(Sample(self._actions(before), then_ns, self._actions(turn)))
        return samples[:SAMPLES_MOST]

    def _timed(self) -> list[Sample]:
        timed = self._timed_turns()
        pairs = list(pairwise(timed))
        clean = [pair for pair in pairs if self.clean[pair[0]] and not self._is_hidden_within(*pair)]
        return [
            Sample(self._actions(turn), self.its.woke[following] - self.its.ended[turn])
            for turn, following in (clean if len(clean) >= _SAMPLES_LEAST else pairs)
        ][:SAMPLES_MOST]


def _dispersion(times: Sequence[int]) -> float:
    """How much times differ: the middle half of them, of their median."""
    low, middle, high = np.percentile(times, (25, 50, 75)) if len(times) else (0.0, 0.0, 0.0)
    return float((high - low) / middle) if middle > 0 else float("inf")


def _reached(tasks: Sequence[Task]) -> list[Task]:
    """The tasks that messages come to. Of those that wait for one another in a circle one begins without."""
    by_kind = {(task.vcpu, task.kind): task for task in tasks}

    def leads_to(task: Task) -> Iterable[Task]:
        for actions, because in ((attrgetter("actions"), task.kind.sender), (attrgetter("later"), None)):
            for woken in {woken for sample in task.samples for _, woken in actions(sample) if woken is not None}:
                if (woken, Kind(task.vcpu, because)) in by_kind:
                    yield by_kind[woken, Kind(task.vcpu, because)]

    def all_from(first: Iterable[Task]) -> dict[int, Task]:
        found: dict[int, Task] = {}
        left = list(first)
        while left:
            for task in leads_to(left.pop()):
                if id(task) not in found:
                    found[id(task)] = task
                    left.append(task)
        return found

    reached = {id(task): task for task in tasks if task.kind == TIME}
    # The most frequent first: others may be reached from there.
    for task in sorted(tasks, key=lambda task: (not task.starts, -len(task.samples))):
        circle = all_from([task])
        if id(task) not in reached and id(task) in circle:
            task.starts = True
            reached |= circle
        elif task.kind == TIME:
            reached |= circle
    for task in tasks:
        task.starts = task.starts and id(task) in reached
    return [task for task in tasks if id(task) in reached]


def app_of(task: Task, tasks: Sequence[Task], channel: Callable[[Vcpu, Kind], str]) -> dict[str, Any]:
    """A task as an application of a scenario.

    Args:
        task: the task.
        tasks: all tasks: what nobody awaits is not sent.
        channel: what the channel of a kind of messages to a vCPU is called.
    """
    awaited = {(other.vcpu, other.kind) for other in tasks if other.kind != TIME}

    def events(actions: Sequence[Action], because: Vcpu | None) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for cpu, woken in actions:
            if cpu > 0:
                found.append({"run": f"{cpu}ns"})
            if woken is not None and (woken, Kind(task.vcpu, because)) in awaited:
                found.append({"notify": channel(woken, Kind(task.vcpu, because))})
        return found

    phases = []
    for sample in task.samples:
        answer = events(sample.actions, task.kind.sender)
        sleep = [{"sleep": f"{sample.then_ns}ns"}] if sample.then_ns > 0 else []
        if task.kind == TIME:
            phases.append({"event": [*sleep, *answer]})
            continue
        waits = [{"await": channel(task.vcpu, task.kind)}]
        later = events(sample.later, None)
        if sleep:
            phases.append({"event": [*sleep, *later, *waits, *answer]})
        else:
            phases.append({"event": [*answer, *waits] if task.starts else [*waits, *answer]})
    demands = [(sample.run_ns(), sample.then_ns) for sample in task.samples]
    return {"kind": "phases", "stretch": mean_stretch(demands), "phase": phases}
