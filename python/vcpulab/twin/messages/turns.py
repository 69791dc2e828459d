"""The turns of vCPUs that wake one another, with the messages that each turn received."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from math import log, prod
from typing import NamedTuple, Self

import numpy as np

from vcpulab.twin.links import Vcpu
from vcpulab.twin.messages.assignment import cheapest
from vcpulab.twin.messages.ticks import Recognised, recognise
from vcpulab.twin.sequences import Turn, Turns

SAMPLES_LEAST = 5
"""The least number of turns behind any median or fraction. Assumed."""
ALWAYS = 0.8
"""From this fraction of the turns that show whether a message was sent, all turns with that kind of messages send
it. Assumed."""
NEVER = 0.1
"""Up to this fraction no turn sends it. Assumed."""
CLEARLY = 2
"""An explanation of a turn's CPU time is accepted if the next best one has an error this many times as large.
Assumed."""
_RARELY = 0.02
"""The least likelihood that a turn sends, or does not send, a message: a rare exception must not rule out an
explanation. Assumed."""
_IN_ORDER = 1e-6
"""The price of a change of order, negligible compared with any likelihood: equally likely messages stay in order."""


class Kind(NamedTuple):
    """A kind of messages, or the vCPU's own timer (no sender)."""

    sender: Vcpu | None
    because: Vcpu | None = None
    """The vCPU that had woken the sender; `None`: a timer."""
    before: Vcpu | None = None
    """The vCPU that had woken `because`: for a server's answer, the vCPU whose question it answers."""

    def then(self, vcpu: Vcpu) -> "Kind":
        """The kind of the message that a vCPU sends after such a message.

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
        """`True`: a message sent to `vcpu` after this kind answers a message that `vcpu` had sent."""
        return self.before == vcpu

    def acknowledges(self, vcpu: Vcpu) -> bool:
        """`True`: the message acknowledges one that `vcpu` had sent: a receipt, or the answer of a device."""
        return self.because == vcpu


TIME = Kind(None)
Action = tuple[int, Vcpu | None]
"""CPU time, and the receiver of the message sent after it."""


class Received(NamedTuple):
    """The messages that a vCPU received before the end of a turn, in order."""

    kinds: tuple[Kind, ...]
    is_sure: bool
    """`True`: the turn cannot have received other messages."""


@dataclass(frozen=True, eq=False)
class VcpuTurns:
    """The turns of a vCPU, as recorded."""

    vcpu: Vcpu
    turns: Sequence[Turn]
    recognised: Recognised | None
    """The tick of the vCPU's kernel; `None`: it has none."""
    ticks: Sequence[bool]
    """For each turn, `True`: nothing but a tick, if it also sent nothing."""
    woken_by_tick: Sequence[bool]
    run: Sequence[int]
    """CPU time of each turn, ns."""
    woke: Sequence[int]
    ran: Sequence[int]
    ended: Sequence[int]

    @classmethod
    def from_history(cls, vcpu: Vcpu, history: Turns) -> Self:
        """The turns of a vCPU, about which nothing is believed yet."""
        turns, recognised = history.turns, recognise(history.turns)
        # A list answers for one turn several times as fast as an array.
        none = [False] * len(turns)
        return cls(
            vcpu,
            turns,
            recognised,
            none if recognised is None else recognised.is_tick.tolist(),
            none if recognised is None else recognised.on.tolist(),
            [turn.run_ns for turn in turns],
            [turn.woke_ns for turn in turns],
            [turn.woke_ns + turn.waited_ns for turn in turns],
            [turn.woke_ns + turn.span_ns for turn in turns],
        )

    def by_tick(self, turn: int) -> bool:
        """`True`: a tick woke the turn, whatever it then did."""
        return self.woken_by_tick[turn]


@dataclass(frozen=True, eq=False)
class Beliefs(VcpuTurns):
    """The beliefs about the messages of a vCPU's turns. Each step of the estimation makes new ones."""

    targets: Sequence[VcpuTurns] = ()
    """The vCPUs that this vCPU wakes."""
    by_timer: Set[int] = frozenset()
    """The turns that the timer began while a vCPU ran that wakes this one at other times."""
    computes: Sequence[Sequence[Action]] = ()
    """The actions of each turn: CPU time, and the vCPU woken after it."""
    sends: Sequence[Set[Vcpu]] = ()
    """The vCPUs that each turn wakes."""
    begins: Mapping[tuple[int, Vcpu], Sequence[int]] = field(default_factory=dict)
    """The turns of a target that a turn began, in order."""
    within: Sequence[Sequence[tuple[Vcpu, int]]] = ()
    """For each turn, the turns of other vCPUs that may have sent it more messages than wake-ups show."""
    hides: Set[tuple[int, Vcpu]] = frozenset()
    """Turns and targets where more messages may have been sent than turns began."""
    received: Sequence[Received] = ()
    """The messages that each turn received."""
    inferred_sends: Mapping[tuple[int, Vcpu], bool] = field(default_factory=dict)
    """Whether a turn sent a message to a target without a visible wake-up, inferred from the target's work."""
    frequent_kinds: Set[Kind] = frozenset()
    """The kinds of messages that are not exceptions."""
    costs: Mapping[Kind, float] = field(default_factory=dict)
    """The median CPU time of answers to each kind of messages, over messages that came alone."""
    clean: Set[Kind] = frozenset()
    """The kinds whose cost is from turns that cannot have received other messages."""
    saves: float = 0.0
    """The CPU time saved for each further message of a turn, compared with a message alone."""
    has_long_timer: bool = False
    """`True`: the timer's work takes so much longer than any message that it cannot be confused with messages."""
    parts: Mapping[tuple[Kind, Vcpu], float] = field(default_factory=dict)
    """The fraction of the turns answering a kind of messages that send a message to a target."""
    once: Set[tuple[Kind, Vcpu]] = frozenset()
    """Kinds and targets for which exactly one message is sent."""

    def is_tick(self, turn: int) -> bool:
        """`True`: the turn was a tick and nothing else."""
        return self.ticks[turn] and not self.sends[turn]

    def sender(self, turn: int) -> Vcpu | None:
        """The vCPU that woke a turn; `None`: a timer, or a tick while another vCPU ran."""
        blocked = self.turns[turn - 1].blocked if turn > 0 and not self.by_itself(turn) else 0
        return blocked if isinstance(blocked, tuple) else None

    def by_itself(self, turn: int) -> bool:
        """`True`: a tick or the vCPU's own timer woke the turn, whichever vCPU ran."""
        return self.by_tick(turn) or turn in self.by_timer

    def woken_by(self, turn: int) -> tuple[Kind, ...]:
        """The message that woke a turn, before the cause of the message is known."""
        sender = self.sender(turn)
        return (Kind(sender),) if sender is not None or (turn > 0 and not self.by_tick(turn)) else ()

    def only_from(self, sender: Vcpu) -> list[Kind]:
        """The only kind of messages received from a sender; empty if there are several kinds."""
        kinds = [kind for kind in self.frequent_kinds if kind.sender == sender]
        return kinds if len(kinds) == 1 else []

    def shows(self, turn: int, target: VcpuTurns) -> bool:
        """`True`: a message of that turn would have woken the target, which sleeps until then or is woken by it."""
        if target.vcpu in self.sends[turn]:
            return True
        at = bisect_left(target.woke, self.ended[turn]) - 1
        return at < 0 or target.ended[at] <= self.ran[turn]

    def part(self, kind: Kind, target: Vcpu) -> float:
        """The fraction of the turns answering a kind of messages that send a message to the target."""
        return self.parts.get((kind, target), 0.0)

    def sends_for(self, kind: Kind) -> bool:
        """`True`: a message may be sent for this kind of messages."""
        return any(self.part(kind, target.vcpu) > NEVER for target in self.targets)

    def behind(self, turn: int, target: "Beliefs", begun: int) -> Sequence[Kind]:
        """The received messages for which a turn began that turn of its target: one each, the rest for the last."""
        kinds = self.may_send(turn, target.vcpu) or list(self.received[turn].kinds)
        turns_begun = self.begins[turn, target.vcpu]
        taken = self._assigned(kinds, target, turns_begun)
        mine = taken.get(begun, len(kinds) - 1)
        if begun != turns_begun[-1] or (turn, target.vcpu) in self.hides:
            return kinds[mine : mine + 1] or kinds[-1:]
        rest = [kind for number, kind in enumerate(kinds) if number == mine or number not in taken.values()]
        return rest or kinds[-1:]

    def _assigned(self, kinds: Sequence[Kind], target: "Beliefs", begun: Sequence[int]) -> dict[int, int]:
        """The most likely message for which each of some turns was begun, by the vCPUs they woke; else in order."""
        if len(set(kinds)) < 2 or len(begun) < 2:
            return dict(zip(begun, range(len(kinds)), strict=False))
        sent = [kind.then(self.vcpu) for kind in kinds]
        kinds_sent = set(sent)
        of_kinds = [{kind: -log(target.likelihood(turn, kind)) for kind in kinds_sent} for turn in begun]
        unlikely = [[of_kind[kind] for kind in sent] for of_kind in of_kinds]
        in_order = np.abs(np.subtract.outer(np.arange(len(begun)), np.arange(len(kinds))))
        pairs = cheapest((np.array(unlikely) + _IN_ORDER * in_order).tolist())
        return {begun[turn]: number for turn, number in pairs}

    def likelihood(self, turn: int, kind: Kind) -> float:
        """The likelihood that a turn sends to exactly the vCPUs that it woke, after a kind of message."""
        parts = ((target, min(max(self.part(kind, target.vcpu), _RARELY), 1 - _RARELY)) for target in self.targets)
        return prod(
            part if target.vcpu in self.sends[turn] else 1 - part for target, part in parts if self.shows(turn, target)
        )

    def hidden(self, turn: int, target: Vcpu) -> Sequence[Kind]:
        """The received messages for which a turn may have sent messages without visible wake-ups."""
        return self.may_send(turn, target)[len(self.begins.get((turn, target), ())) :]

    def takes(self, turn: int, kinds: Sequence[Kind]) -> float:
        """The expected CPU time of a turn with exactly these messages, and its tick if it has one."""
        took = sum(self.costs[kind] for kind in kinds)
        if self.recognised is None or not self.by_tick(turn):
            return took - self.saves * max(len(kinds) - 1, 0)
        return took - self.saves * len(kinds) + self.recognised.tick.cpu_ns

    def has_time(self, turn: int, kinds: Sequence[Kind], further: Kind) -> bool:
        """`True`: a turn took long enough for a further message, or the cost of that message is unknown."""
        if further not in self.clean:
            return True
        clean_kinds = [kind for kind in kinds if kind in self.clean]
        takes = self.costs[further] - (self.saves if kinds else 0.0)
        return takes <= CLEARLY * (self.run[turn] - self.takes(turn, clean_kinds))

    def may_answer(self, turn: int, target: VcpuTurns) -> bool:
        """`True`: a turn took so much longer than for its messages that it also answered a question of the target."""
        kinds = self.received[turn].kinds
        if any(kind not in self.costs for kind in kinds) or all(
            sender != target.vcpu for sender, _ in self.within[turn]
        ):
            return False
        question_costs = [
            self.costs[kind]
            for kind in self.frequent_kinds & self.costs.keys()
            if kind.sender == target.vcpu and self.part(kind, target.vcpu) >= ALWAYS
        ]
        return bool(question_costs) and 2 * (self.run[turn] - self.takes(turn, kinds)) > min(question_costs)

    def explains(self, turn: int, kinds: Set[Kind]) -> bool:
        """`True`: for each vCPU that a turn woke, one of these kinds leads to a message."""
        return not self.parts or all(
            any(self.part(kind, target) > NEVER for kind in kinds) for target in self.sends[turn]
        )

    def may_send(self, turn: int, target: Vcpu) -> list[Kind]:
        """The received messages for which a turn may have sent to the target; all while no fractions are known."""
        if not self.parts:
            return list(self.received[turn].kinds)
        return [kind for kind in self.received[turn].kinds if self.part(kind, target) > NEVER]
