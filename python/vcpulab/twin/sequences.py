"""The turns of each vCPU, for twins that replay a recording instead of drawing from its spreads.

A turn is the computation of a vCPU from waking to blocking, the vCPUs it wakes meanwhile, and the end of the block: a
timer, or an event of another vCPU whose turns are known, too. The event comes after a certain CPU time of its sender,
and the receiver waits until then: a scheduler that slows the sender slows the receiver.
"""

from collections.abc import Container, Iterable, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import polars as pl

from vcpulab.errors import RequestError
from vcpulab.twin.links import Link, Vcpu

TURNS_MOST = 20_000
"""The largest number of turns in a scenario: with more the file is too long."""
TURNS_READ_MOST = 200_000
"""The largest number of turns to read: more take too long."""


class Turn(NamedTuple):
    """One turn of a vCPU."""

    computes: tuple[tuple[int, Vcpu | None], ...]
    """CPU time, ns, and whom it wakes after it; at the end nobody."""
    blocked: int | Vcpu
    """For how long, ns; or until that one sends an event. 0: the recording ended before it blocked."""
    woke_ns: int = 0
    """When it woke."""
    waited_ns: int = 0
    """The time from the wake-up until the vCPU ran."""
    span_ns: int = 0
    """The time from the wake-up until the vCPU blocked."""
    blocked_ns: int = 0
    """For how long, whatever ended it."""
    sender_turn: int = -1
    """The turn of the one who ended it in which that was, numbered from 0."""
    preempted: tuple[int, ...] = ()
    """The CPU time used before each preemption, ns."""

    @property
    def run_ns(self) -> int:
        """The CPU time of the turn."""
        return sum(cpu_ns for cpu_ns, _ in self.computes)

    def among(self, vcpus: Container[Vcpu]) -> "Turn":
        """The turn among these vCPUs: wake-ups by others count as a timer, wake-ups of others are left out.

        Examples:
            >>> turn = Turn(((5, (1, 0)), (2, (9, 9)), (1, None)), (9, 9), blocked_ns=7).among({(1, 0)})
            >>> turn.computes, turn.blocked
            (((5, (1, 0)), (3, None)), 7)
        """
        computes: list[tuple[int, Vcpu | None]] = []
        before = 0
        for cpu_ns, woken in self.computes:
            before += cpu_ns
            if woken is None or woken in vcpus:
                computes.append((before, woken))
                before = 0
        if isinstance(self.blocked, int) or self.blocked in vcpus:
            return self._replace(computes=tuple(computes))
        return self._replace(computes=tuple(computes), blocked=self.blocked_ns, sender_turn=-1)

    def without(self, owed_ns: int, wake_ns: int = 0) -> "Turn":
        """The turn without CPU time that is not its own work.

        Args:
            owed_ns: taken from what it computes first.
            wake_ns: for each that it wakes, taken from what it computes next.
        """
        computes = []
        for cpu_ns, woken in self.computes:
            left = max(cpu_ns - owed_ns, min(cpu_ns, 1))
            owed_ns -= cpu_ns - left
            if woken is not None:
                owed_ns += wake_ns
            computes.append((left, woken))
        return self._replace(computes=tuple(computes))


@dataclass
class Turns:
    """The turns of a vCPU, from the first known wish for a pCPU on."""

    vcpu: Vcpu
    first_ns: int
    turns: list[Turn]


class _Event(NamedTuple):
    """One vCPU wakes another: in which turns of both."""

    waker: Vcpu
    turn: int
    woken: Vcpu
    ends: int


class _Raw(NamedTuple):
    """A turn as recorded."""

    ran: int
    blocked: int
    sent: list[tuple[int, _Event]]
    woken_by: _Event | None
    """The event that ends the block."""
    woke_ns: int
    began_ns: int
    ended_ns: int
    preempted: tuple[int, ...]
    number: int
    """The number of the turn among all turns of its vCPU, including partly known ones."""


@dataclass
class _Open:
    """A vCPU as its records come."""

    first_ns: int | None = None
    since: int | None = None
    woke_ns: int = 0
    began_ns: int | None = None
    ran: int = 0
    blocked_at: int | None = None
    sent: list[tuple[int, _Event]] = field(default_factory=list)
    """CPU time in its turn, and what it sent then."""
    preempted: list[int] = field(default_factory=list)
    woken_by: _Event | None = None
    """The event that ends the present block."""
    number: int = 0
    """The number of the present turn."""
    is_whole: bool = True
    """`True`: all of the present turn is known."""
    turns: list["_Raw"] = field(default_factory=list)

    def is_known(self) -> bool:
        return self.first_ns is not None

    def computed(self, now: int) -> int:
        return self.ran + (0 if self.since is None else now - self.since)

    def enter(self, state: str, time: int) -> None:
        """Enters a runstate."""
        if self.since is not None:
            self.ran += time - self.since
            self.since = None
        if state == "unknown":
            self.is_whole = False
            return
        if state == "blocked":
            self.blocked_at = time
            return
        begins = self.blocked_at is not None or not self.woke_ns
        if self.first_ns is None:
            self.first_ns = time
            self._begin()
        elif self.blocked_at is not None:
            self.end(time - self.blocked_at, self.blocked_at)
        elif state == "runnable" and self.ran > 0:
            self.preempted.append(self.ran)
        if begins:
            self.woke_ns, self.began_ns = time, None
        self.blocked_at = None
        if state == "running":
            self.since = time
            if self.began_ns is None:
                self.began_ns = time

    def end(self, blocked: int, ended_ns: int) -> None:
        """Ends a turn, after which it was blocked for so long."""
        began_ns = ended_ns if self.began_ns is None else self.began_ns
        preempted = tuple(at for at in self.preempted if at < self.ran)
        if self.is_whole:
            times_and_events = self.ran, blocked, self.sent, self.woken_by, self.woke_ns, began_ns, ended_ns
            self.turns.append(_Raw(*times_and_events, preempted, self.number))
        self.number += 1
        self._begin()

    def _begin(self) -> None:
        self.ran, self.sent, self.preempted, self.woken_by, self.is_whole = 0, [], [], None, True


def turns_of(events: Path, links: Set[Link] = frozenset()) -> dict[Vcpu, Turns]:
    """The turns of each vCPU.

    Args:
        events: the file of events that `formats.read_trace` wrote.
        links: the wake-up links between vCPUs; other wake-ups are attributed to timers.

    Raises:
        RequestError: the recording has too many events.
    """
    scanned = pl.scan_ipc(events).filter(pl.col("kind").is_in(["runstate", "wake"]), pl.col("domain") >= 0)
    blocks = scanned.filter(kind="runstate", what="blocked").select(pl.len()).collect().item()
    if blocks > TURNS_READ_MOST:
        raise RequestError(
            f"found {blocks} turns of computing and blocking; allowed: at most {TURNS_READ_MOST}\n"
            "  hint: replay a shorter recording, or draw from its spreads"
        )
    columns = ["time_ns", "kind", "what", "domain", "vcpu", "by_domain", "by_vcpu"]
    return _turns(scanned.select(columns).collect().iter_rows(), links)


def span_ns(events: Path) -> int:
    """The length of a recording, ns."""
    span: int = pl.scan_ipc(events).select(pl.col("time_ns").max() - pl.col("time_ns").min()).collect().item()
    return span


_Row = tuple[int, str, str, int, int, int | None, int | None]


def _turns(rows: Iterable[_Row], links: Set[Link]) -> dict[Vcpu, Turns]:
    """Turns from changes of runstate, and from the vCPUs present at wake-ups.

    Examples:
        >>> states = [(5, "blocked"), (9, "runnable"), (10, "running"), (14, "blocked"), (20, "runnable")]
        >>> _turns([(time, "runstate", state, 1, 0, None, None) for time, state in states], set())
        {(1, 0): Turns(vcpu=(1, 0), first_ns=9, turns=[Turn(computes=((4, None),), blocked=6, ...)])}
    """
    open_turns: dict[Vcpu, _Open] = {}
    time = 0
    for time, kind, state, domain, vcpu, by_domain, by_vcpu in rows:
        place = domain, vcpu
        current = open_turns.setdefault(place, _Open())
        if kind == "wake":
            waker = (by_domain or 0, by_vcpu or 0)
            sender = open_turns.get(waker) if by_domain is not None and (waker, place) in links else None
            if sender is not None and sender.is_known() and current.is_known() and current.blocked_at is not None:
                current.woken_by = _Event(waker, sender.number, place, current.number)
                sender.sent.append((sender.computed(time), current.woken_by))
            continue
        current.enter(state, time)
    for current in open_turns.values():
        if current.blocked_at is None and current.computed(time) > 0:
            current.ran = current.computed(time)
            current.woken_by = None
            current.end(0, time)
    complete = {
        place: {turn.number: at for at, turn in enumerate(current.turns)} for place, current in open_turns.items()
    }
    return {
        place: Turns(place, current.first_ns, [_turn(turn, complete) for turn in current.turns])
        for place, current in open_turns.items()
        if current.first_ns is not None and current.turns
    }


def _turn(turn: _Raw, complete: dict[Vcpu, dict[int, int]]) -> Turn:
    """Events of which not both ends are in complete turns are put down to time."""

    def whole(event: _Event) -> bool:
        return event.turn in complete[event.waker] and event.ends in complete[event.woken]

    computes: list[tuple[int, Vcpu | None]] = []
    done = 0
    for at, event in turn.sent:
        if whole(event):
            computes.append((at - done, event.woken))
            done = at
    computes.append((turn.ran - done, None))
    ends = turn.woken_by
    blocked = ends.waker if ends is not None and whole(ends) else turn.blocked
    waited = turn.began_ns - turn.woke_ns
    sender_turn = -1 if isinstance(blocked, int) or ends is None else complete[ends.waker][ends.turn]
    span = turn.ended_ns - turn.woke_ns
    return Turn(tuple(computes), blocked, turn.woke_ns, waited, span, turn.blocked, sender_turn, turn.preempted)
