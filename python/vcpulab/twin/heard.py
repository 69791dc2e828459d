"""The turns of vCPUs that wake one another, and the kinds of messages that they had heard."""

from bisect import bisect_left
from collections.abc import Sequence, Set
from math import log, prod
from typing import NamedTuple

import numpy as np

from vcpulab.twin.links import Vcpu
from vcpulab.twin.sequences import Turns
from vcpulab.twin.ticks import Recognised, recognise

SAMPLES_LEAST = 5
ALWAYS, NEVER = 0.8, 0.1
"""What is sent in so many of the turns in which it would have been seen is sent in all, or in none."""
CLEARLY = 2
"""How many times nearer to a turn's CPU time one explanation must be than the next."""
_RARELY = 0.02
"""Nothing is taken to be likelier or less likely than this allows for."""
_IN_ORDER = 1e-6
"""What is as likely is in order: next to nothing in comparison to any likelihood."""


class Kind(NamedTuple):
    """A kind of messages, or the vCPU's own timer (no sender)."""

    sender: Vcpu | None
    because: Vcpu | None = None
    """Who had woken the sender; `None`: time."""
    before: Vcpu | None = None
    """Who had woken that one: of a server's answers, what was sent for them says whose questions they answer."""

    def then(self, vcpu: Vcpu) -> "Kind":
        """The kind of what a vCPU sends after such a message.

        Examples:
            >>> dom0, server, client = (0, 0), (1, 0), (2, 0)
            >>> asked = Kind(client).then(dom0)
            >>> asked == Kind(dom0, client)
            True
            >>> asked.then(server) == Kind(server, dom0, client)
            True
        """
        return Kind(vcpu, self.sender, self.because)

    def answers(self, vcpu: Vcpu) -> bool:
        """Is what is sent to a vCPU after such a message the answer to what it had sent itself?"""
        return self.before == vcpu

    def acknowledges(self, vcpu: Vcpu) -> bool:
        """Does such a message come because a vCPU had sent something itself: a receipt, or the answer of a device?"""
        return self.because == vcpu


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

    def __init__(self, vcpu: Vcpu, history: Turns) -> None:
        self.vcpu, self.turns = vcpu, history.turns
        self.recognised: Recognised | None = recognise(history.turns)
        # A list answers for one turn several times as fast as an array.
        self._on = self.recognised.on.tolist() if self.recognised is not None else [False] * len(history.turns)
        self._is_tick = self.recognised.is_tick.tolist() if self.recognised is not None else self._on
        self.run = [turn.run_ns for turn in history.turns]
        """CPU time of each turn, ns."""
        self.woke = [turn.woke_ns for turn in history.turns]
        self.ran = [turn.woke_ns + turn.waited_ns for turn in history.turns]
        self.ended = [turn.woke_ns + turn.span_ns for turn in history.turns]
        self.computes: list[list[Action]] = []
        """Of each turn: CPU time, and whom it wakes after it."""
        self.sends: list[Set[Vcpu]] = [frozenset() for _ in history.turns]
        """Of each turn: whom it wakes."""
        self.targets: list[Seen] = []
        """Whom it wakes."""
        self.within: list[list[tuple[Seen, int]]] = [[] for _ in history.turns]
        """Of each turn: those of others in which more may have been sent to it than the wake-up shows."""
        self.heard: list[Heard] = []
        self.frequent_kinds: Set[Kind] = frozenset()
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
        self.has_long_timer = False
        """Does what its timer begins take so much longer than any message that it is taken for none?"""
        self.inferred_sends: dict[tuple[int, Vcpu], bool] = {}
        """Of turns and targets that no wake-up shows: was something sent, by what the target then computed?"""
        self.by_timer: set[int] = set()
        """Turns that its timer began while somebody happened to run that wakes it at other times."""

    def is_tick(self, turn: int) -> bool:
        """Was it a tick and nothing else?"""
        return bool(self._is_tick[turn]) and not self.sends[turn]

    def by_tick(self, turn: int) -> bool:
        """Was it woken by a tick, whatever else it then did?"""
        return bool(self._on[turn])

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

    def only_from(self, sender: Vcpu) -> list[Kind]:
        """The kind of messages that it hears from another, if there is but one."""
        kinds = [kind for kind in self.frequent_kinds if kind.sender == sender]
        return kinds if len(kinds) == 1 else []

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

    def sends_for(self, kind: Kind) -> bool:
        """May something be sent for such a message?"""
        return any(self.part(kind, target.vcpu) > NEVER for target in self.targets)

    def behind(self, turn: int, target: "Seen", begun: int) -> Sequence[Kind]:
        """What of what a turn heard it began that turn of its target for: each for one, the last for the rest."""
        kinds = self.may_send(turn, target.vcpu) or list(self.heard[turn].kinds)
        turns_begun = self.begins[turn, target.vcpu]
        taken = self._assigned(kinds, target, turns_begun)
        mine = taken.get(begun, len(kinds) - 1)
        if begun != turns_begun[-1] or (turn, target.vcpu) in self.hides:
            return kinds[mine : mine + 1] or kinds[-1:]
        rest = [kind for number, kind in enumerate(kinds) if number == mine or number not in taken.values()]
        return rest or kinds[-1:]

    def _assigned(self, kinds: Sequence[Kind], target: "Seen", begun: Sequence[int]) -> dict[int, int]:
        """For which of these messages it most likely began each of those turns, by whom that woke; else in order."""
        if len(set(kinds)) < 2 or len(begun) < 2:
            return dict(zip(begun, range(len(kinds)), strict=False))
        # To load it takes longer than what most commands do.
        from scipy.optimize import linear_sum_assignment

        sent = [kind.then(self.vcpu) for kind in kinds]
        kinds_sent = set(sent)
        of_kinds = [{kind: -log(target.likelihood(turn, kind)) for kind in kinds_sent} for turn in begun]
        unlikely = [[of_kind[kind] for kind in sent] for of_kind in of_kinds]
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
        if self.recognised is None or not self.by_tick(turn):
            return took - self.saves * max(len(kinds) - 1, 0)
        return took - self.saves * len(kinds) + self.recognised.tick.cpu_ns

    def has_time(self, turn: int, kinds: Sequence[Kind], further: Kind) -> bool:
        """Did a turn take long enough for a further message, as far as it is known what that takes?"""
        if further not in self.clean:
            return True
        clean_kinds = [kind for kind in kinds if kind in self.clean]
        takes = self.costs[further] - (self.saves if kinds else 0.0)
        return takes <= CLEARLY * (self.run[turn] - self.takes(turn, clean_kinds))

    def may_answer(self, turn: int, target: "Seen") -> bool:
        """Did a turn take so much longer than for what it heard that the target had asked, too, and is answered?"""
        kinds = self.heard[turn].kinds
        if any(kind not in self.costs for kind in kinds) or all(
            sender is not target for sender, _ in self.within[turn]
        ):
            return False
        question_costs = [
            self.costs[kind]
            for kind in self.frequent_kinds & self.costs.keys()
            if kind.sender == target.vcpu and self.part(kind, target.vcpu) >= ALWAYS
        ]
        return bool(question_costs) and 2 * (self.run[turn] - self.takes(turn, kinds)) > min(question_costs)

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
