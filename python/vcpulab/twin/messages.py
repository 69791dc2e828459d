"""What vCPUs do that wake one another: tasks that wait for a message, each of which answers one kind of message.

Under another scheduler messages meet others than they met in the recording: what came apart comes together, and the
other way round. So turns are not replayed in their order. Each kind of message (who sends it, and woken by whom) has
a task that awaits it, and does one of the things that were seen to follow such a message: computes, and sends what it
sent.

A wake-up shows a message only to a vCPU that is blocked. Another that comes before it blocks again is hidden: it is
inferred from what its sender does in turns that show it, or, if none can show it, as sent. Sleeps are told apart by
what they are counted from: from the answer to a message (a client thinks), then they belong to that task, or from the
last sleep (a timer of its own).
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import pairwise
from operator import attrgetter
from statistics import median
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
_PASSES = 3
"""What a turn heard tells what its kind sends, and that what others heard."""


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


class _Heard(NamedTuple):
    """The messages that came to a vCPU before a turn of it was over, from the first on."""

    kinds: tuple[Kind, ...]
    is_sure: bool
    """Can there have been no other?"""


class _Seen:
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
        self.targets: list[_Seen] = []
        """Whom it wakes."""
        self.within: list[list[tuple[_Seen, int]]] = [[] for _ in its.turns]
        """Of each turn: those of others in which more may have been sent to it than the wake-up shows."""
        self.heard = [_Heard((), is_sure=False)] * len(its.turns)
        self.parts: dict[tuple[Kind, Vcpu], float] = {}
        """In how many of the turns that answer a kind of messages something is sent to another."""
        self.begins: dict[tuple[int, Vcpu], list[int]] = {}
        """Of each turn and target: the turns of that one that it began, in order."""
        self.hides: set[tuple[int, Vcpu]] = set()
        """Turns and targets: more may have been sent than began a turn there."""

    def is_tick(self, turn: int) -> bool:
        return self.found is not None and bool(self.found.is_tick[turn])

    def by_tick(self, turn: int) -> bool:
        """Was it woken by a tick, whatever else it then did?"""
        return self.found is not None and bool(self.found.on[turn])

    def sender(self, turn: int) -> Vcpu | None:
        """Who woke it; `None`: time, or a tick while somebody else was there."""
        blocked = self.turns[turn - 1].blocked if turn > 0 and not self.by_tick(turn) else 0
        return blocked if isinstance(blocked, tuple) else None

    def know_sent(self) -> None:
        """Finds out whom it woke, once its targets are known: a tick of theirs was due whoever ran."""
        by_tick: dict[tuple[int, Vcpu], list[bool]] = {}
        for target in self.targets:
            for at, turn in enumerate(target.turns[:-1]):
                if turn.blocked == self.vcpu:
                    by_tick.setdefault((turn.sender_turn, target.vcpu), []).append(target.by_tick(at + 1))
                    if not target.by_tick(at + 1):
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

    def shows(self, turn: int, target: "_Seen") -> bool:
        """Would a message of that turn have woken the target? It sleeps all the while, or is woken by it."""
        if target.vcpu in self.sends[turn]:
            return True
        at = bisect_left(target.woke, self.ended[turn]) - 1
        return at < 0 or target.ended[at] <= self.ran[turn]

    def part(self, kind: Kind, target: Vcpu) -> float:
        return self.parts.get((kind, target), 0.0)

    def behind(self, turn: int, target: Vcpu, begun: int) -> Sequence[Kind]:
        """What of what a turn heard it began that turn of its target for: each for one, the last for the rest."""
        kinds = self.may_send(turn, target) or self.heard[turn].kinds
        of = self.begins[turn, target]
        at = of.index(begun)
        if at + 1 < len(of) or (turn, target) in self.hides:
            return kinds[at : at + 1] or kinds[-1:]
        return kinds[min(at, len(kinds) - 1) :]

    def hidden(self, turn: int, target: Vcpu) -> Sequence[Kind]:
        """Of what a turn heard: what it may have sent for without a wake-up that shows it."""
        return self.may_send(turn, target)[len(self.begins.get((turn, target), ())) :]

    def may_send(self, turn: int, target: Vcpu) -> list[Kind]:
        """Of what a turn heard: what something may have been sent for."""
        return [kind for kind in self.heard[turn].kinds if self.part(kind, target) > _NEVER]


def tasks_of(turns: Mapping[Vcpu, Turns], links: Set[Link]) -> tuple[list[Task], dict[Vcpu, Tick]]:
    """The tasks of vCPUs that wake one another, and their ticks.

    Args:
        turns: of each of these vCPUs.
        links: who wakes whom.
    """
    seen = {vcpu: _Seen(vcpu, its) for vcpu, its in turns.items()}
    for waker, woken in sorted(links):
        if waker in seen and woken in seen:
            seen[waker].targets.append(seen[woken])
    for its in seen.values():
        its.know_sent()
    for its in seen.values():
        _overlap(its)
    in_time = sorted((ended, vcpu, turn) for vcpu, its in seen.items() for turn, ended in enumerate(its.ended))
    for number in range(_PASSES):
        for _, vcpu, turn in in_time:
            its = seen[vcpu]
            its.heard[turn] = _woken(its, turn, seen) if number == 0 else _hear(its, turn, seen)
        known = {vcpu: _frequent(its.heard) for vcpu, its in seen.items()}
        all_parts = {vcpu: _parts(its, known[vcpu]) for vcpu, its in seen.items()}
        for vcpu, its in seen.items():
            its.parts = all_parts[vcpu]
    tasks = [task for vcpu, its in seen.items() for task in _Learnt(its, known[vcpu]).tasks()]
    return _reached(tasks), {vcpu: its.found.tick for vcpu, its in seen.items() if its.found is not None}


def _overlap(its: _Seen) -> None:
    """Notes which turns of its targets the turns of a vCPU may have sent more to than they show."""
    for turn, (ran, ended) in enumerate(zip(its.ran, its.ended, strict=True)):
        if its.is_tick(turn):
            continue
        for target in its.targets:
            at = bisect_left(target.woke, ended) - 1
            if at >= 0 and target.ended[at] > ran and at not in its.begins.get((turn, target.vcpu), ()):
                target.within[at].append((its, turn))
                its.hides.add((turn, target.vcpu))


def _woken(its: _Seen, turn: int, seen: Mapping[Vcpu, _Seen]) -> _Heard:
    """What a turn heard, by what woke it alone."""
    sender, kinds = its.sender(turn), list[Kind]()
    if sender is not None:
        its_turn = its.turns[turn - 1].sender_turn
        if not seen[sender].by_tick(its_turn):
            kinds.append(Kind(sender, seen[sender].sender(its_turn)))
    elif turn > 0 and not its.by_tick(turn):
        kinds.append(TIME)
    return _Heard(tuple(kinds), turn > 0 and not its.within[turn])


def _hear(its: _Seen, turn: int, seen: Mapping[Vcpu, _Seen]) -> _Heard:
    """What a turn heard, by what is known of others so far."""
    kinds: list[Kind] = []
    sender = its.sender(turn)
    is_sure = turn > 0
    if sender is not None:
        that, its_turn = seen[sender], its.turns[turn - 1].sender_turn
        because = [kind.sender for kind in that.behind(its_turn, its.vcpu, turn)]
        if len(set(because)) == 1:
            # One wake-up may stand for several messages that the sender had heard before it ran.
            kinds += [Kind(sender, one) for one in because]
        else:
            is_sure = False
    elif turn > 0 and not its.by_tick(turn):
        kinds.append(TIME)
    for that, its_turn in sorted(its.within[turn], key=lambda each: each[0].ended[each[1]]):
        is_sure = is_sure and bool(that.heard[its_turn].kinds)
        for kind in that.hidden(its_turn, its.vcpu):
            if that.part(kind, its.vcpu) >= _ALWAYS:
                kinds.append(Kind(that.vcpu, kind.sender))
            else:
                is_sure = False
    if its.by_tick(turn) and not kinds and not its.is_tick(turn) and is_sure:
        # It waited for so long after the tick that its timer was due.
        kinds.append(TIME)
    return _Heard(tuple(kinds), is_sure)


def _frequent(heard: Sequence[_Heard]) -> Set[Kind]:
    counts = Counter(kind for its in heard for kind in its.kinds)
    least = max(_SAMPLES_LEAST, _OF_TURNS_LEAST * sum(counts.values()))
    return {kind for kind, count in counts.items() if count >= least or kind == TIME}


def _parts(its: _Seen, known: Set[Kind]) -> dict[tuple[Kind, Vcpu], float]:
    """Of each kind of messages and each target: in how many turns that would show it something is sent."""
    parts: dict[tuple[Kind, Vcpu], float] = {}
    for target in its.targets:
        sent, shown = Counter[Kind](), Counter[Kind]()
        for_several: list[Set[Kind]] = []
        for turn, (kinds, is_sure) in enumerate(its.heard):
            if target.vcpu in its.sends[turn]:
                # Which of several it was for, only those that never send tell.
                those = set(kinds) if len(set(kinds)) == 1 else set(its.may_send(turn, target.vcpu))
                if len(those) == 1 and is_sure:
                    shown.update(those)
                    sent.update(those)
                if len(set(kinds)) > 1 and is_sure:
                    for_several.append(set(kinds))
            elif its.shows(turn, target):
                shown.update(set(kinds))
        hidden = list[Kind]()
        for kind in known:
            part = sent[kind] / shown[kind] if shown[kind] else 0.0
            heard = sum(kind in its_kinds for its_kinds, _ in its.heard)
            least = max(_SAMPLES_LEAST, _OF_TURNS_LEAST * heard)
            if kind != TIME and (shown[kind] < _SAMPLES_LEAST or (shown[kind] < least and part > _NEVER)):
                hidden.append(kind)
            parts[kind, target.vcpu] = part
        always = {kind for kind in known if kind not in hidden and parts[kind, target.vcpu] >= _ALWAYS}
        for kind in hidden:
            # What hardly a turn can show is sent, unless those few speak against it, or what is sent is for others.
            explained = sum(kind in those and bool(always & those) for those in for_several)
            parts[kind, target.vcpu] = 0.0 if explained >= _SAMPLES_LEAST else 1.0
    return parts


class _Learnt:
    """What a vCPU does after each kind of messages."""

    def __init__(self, its: _Seen, known: Set[Kind]) -> None:
        self.its, self.known = its, known
        self.sure = [turn for turn in range(len(its.turns)) if self._is_sure(turn)]
        self.costs = self._costs()
        self.offsets = self._offsets()

    def _is_sure(self, turn: int) -> bool:
        """Is it known what a turn heard, and shows it what it may have sent?"""
        kinds, is_sure = self.its.heard[turn]
        return (
            is_sure
            and not self.its.by_tick(turn)
            and len(kinds) > 0
            and all(
                self.its.shows(turn, target)
                for target in self.its.targets
                if any(_NEVER < self.its.part(kind, target.vcpu) < _ALWAYS for kind in kinds)
            )
        )

    def _costs(self) -> dict[Kind, float]:
        """CPU time for each kind: what adds up best to that of turns, by least squares."""
        kinds = sorted({kind for turn in self.sure for kind in self.its.heard[turn].kinds}, key=str)
        counts = np.array([[self.its.heard[turn].kinds.count(kind) for kind in kinds] for turn in self.sure], float)
        ran = np.array([self.its.turns[turn].run_ns for turn in self.sure], float)
        if not len(ran):
            return {}
        found = np.linalg.lstsq(counts, ran, rcond=None)[0]
        return {kind: max(float(cost), 0.0) for kind, cost in zip(kinds, found, strict=True)}

    def _offsets(self) -> dict[tuple[Kind, Vcpu], float]:
        """After how much CPU time something is sent for a message that came alone, in the median."""
        after: dict[tuple[Kind, Vcpu], list[int]] = {}
        for turn in self.sure:
            kinds, done = self.its.heard[turn].kinds, 0
            for cpu, woken in self.its.computes[turn]:
                done += cpu
                if woken is not None and len(kinds) == 1:
                    after.setdefault((kinds[0], woken), []).append(done)
        return {of: median(times) for of, times in after.items()}

    def _turns(self, kind: Kind) -> list[int]:
        """The turns that show best what such a message leads to: those that heard nothing else, if they are most."""
        heard = [turn for turn in self.sure if kind in self.its.heard[turn].kinds]
        alone = [turn for turn in heard if len(self.its.heard[turn].kinds) == 1]
        if len(heard) < _SAMPLES_LEAST:
            return [turn for turn, its in enumerate(self.its.heard) if kind in its.kinds]
        return alone if 2 * len(alone) >= len(heard) else heard

    def _actions(self, turn: int, kind: Kind) -> list[Action]:
        """What a turn did for one of the messages that it heard: all but what the others cost."""
        kinds = self.its.heard[turn].kinds
        at = len(kinds) - 1 if kind == kinds[-1] else kinds.index(kind)
        sends = {target.vcpu for target in self.its.targets if self.its.part(kind, target.vcpu) > _NEVER}
        before = sum(self.costs.get(other, 0.0) for other in kinds[:at])
        if self.its.by_tick(turn) and self.its.found is not None:
            before += self.its.found.tick.cpu_ns
        others = before + sum(self.costs.get(other, 0.0) for other in kinds[at + 1 :])
        run = max(self.its.turns[turn].run_ns - others, 0.0)
        moments = {
            target: self.offsets.get((kind, target), run)
            for target in sends - self.its.sends[turn]
            if self.its.part(kind, target) >= _ALWAYS
        }
        spent = 0
        for cpu, woken in self.its.computes[turn]:
            spent += cpu
            # To whom several send, each sends once.
            if woken in sends and (woken not in moments or kind == kinds[-1]):
                moments[woken] = max(spent - before, 0.0)
        actions, done = list[Action](), 0.0
        in_order: list[tuple[float, Vcpu | None]] = sorted((min(at, run), woken) for woken, at in moments.items())
        for moment, woken in [*in_order, (run, None)]:
            actions.append((round(moment - done), woken))
            done = moment
        return [action for action in actions if action != (0, None)]

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

    def _last(self, turn: int) -> Kind | None:
        """The last message that a turn heard."""
        kinds = self.its.heard[turn].kinds
        return kinds[-1] if kinds else None

    def _before(self, turn: int) -> int | None:
        """The turn before, without ticks."""
        turn -= 1
        while turn >= 0 and self.its.is_tick(turn):
            turn -= 1
        return turn if turn >= 0 else None

    def _timed_turns(self) -> list[int]:
        return [turn for turn, heard in enumerate(self.its.heard) if TIME in heard.kinds]

    def _is_hidden_within(self, turn: int, following: int) -> bool:
        """May the timer have been due between these turns, and something else have woken the vCPU first?"""
        between = range(turn + 1, following)
        return self.its.by_tick(following) or any(
            (self._last(one) is None and not self.its.is_tick(one)) or self._holds_timer(one) for one in between
        )

    def _holds_timer(self, turn: int) -> bool:
        """Did it compute so much more than for what it heard that its timer must have been due while it waited?"""
        known = sum(self.costs.get(kind, 0.0) for kind in self.its.heard[turn].kinds)
        return 2 * (self.its.turns[turn].run_ns - known) > self.costs.get(TIME, float("inf"))

    def _anchor(self) -> Kind | None:
        """The kind of messages from whose answers sleeps are counted; `None`: from the last sleep."""
        timed = self._timed_turns()
        if len(timed) < _SAMPLES_LEAST:
            return None
        # When it was due says only a timer that woke it itself.
        seen = [turn for turn in timed if not self.its.by_tick(turn)]
        from_last = [self.its.woke[b] - self.its.ended[a] for a, b in pairwise(timed) if not self.its.by_tick(b)]
        befores = {turn: before for turn in timed if (before := self._before(turn)) is not None}
        counts = Counter(self._last(before) for before in befores.values())

        def sleeps(kind: Kind) -> list[int]:
            return [
                self.its.woke[turn] - self.its.ended[befores[turn]]
                for turn in seen
                if turn in befores and self._last(befores[turn]) == kind
            ]

        return next(
            (
                kind
                for kind, count in counts.most_common()
                if kind is not None
                and kind != TIME
                and kind in self.known
                and count >= _FOLLOWED * self._followable(kind)
                and _spread(sleeps(kind)) < _spread(from_last)
            ),
            None,
        )

    def _followable(self, kind: Kind) -> int:
        """Answers to such messages after which the next turn is of a kind that can be told."""
        befores = [self._before(turn) for turn in range(len(self.its.turns)) if self._last(turn) is not None]
        return sum(before is not None and self._last(before) == kind for before in befores)

    def _answers(self, kind: Kind, *, sleeps: bool) -> list[Sample]:
        turns = self._turns(kind)
        if not sleeps:
            return [Sample(self._actions(turn, kind)) for turn in turns[:SAMPLES_MOST]]
        timed = set(self._turns(TIME))
        pairs = [(before, turn) for turn in self._timed_turns() if (before := self._before(turn)) is not None]
        pairs = [(before, turn) for before, turn in pairs if self._last(before) == kind]
        clean = [(before, turn) for before, turn in pairs if before in turns and turn in timed]
        return [
            Sample(self._actions(before, kind), self.its.woke[turn] - self.its.ended[before], self._actions(turn, TIME))
            for before, turn in (clean if len(clean) >= _SAMPLES_LEAST else pairs)
        ][:SAMPLES_MOST]

    def _timed(self) -> list[Sample]:
        turns = set(self._turns(TIME))
        pairs = list(pairwise(self._timed_turns()))
        clean = [pair for pair in pairs if pair[0] in turns and not self._is_hidden_within(*pair)]
        return [
            Sample(self._actions(turn, TIME), self.its.woke[following] - self.its.ended[turn])
            for turn, following in (clean if len(clean) >= _SAMPLES_LEAST else pairs)
        ][:SAMPLES_MOST]


def _spread(times: Sequence[int]) -> float:
    """How far apart the middle half of times is."""
    low, high = np.percentile(times, (25, 75)) if times else (0.0, float("inf"))
    return float(high - low)


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
