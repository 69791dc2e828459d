"""The cost of a preemption: the extra CPU time of a vCPU each time it continues.

Its caches are cold, and its kernel catches up with missed time. A recording shows the cost where turns of equal work
are preempted more or less often. But long turns are preempted more often because they are long, so that a plain
comparison overestimates the cost. Preemptions before any turn could have ended do not depend on the length of the turn:
their number is the instrument (two-stage least squares; Angrist, Imbens and Rubin, *Identification of causal effects
using instrumental variables*, Journal of the American Statistical Association 91, 1996).

A vCPU that is preempted by the vCPU it has just asked may get the answer before it blocks, and continues with it in the
same turn, as the reader of a disk does. That is more work, not a cost. So turns that exchange messages are compared
only with turns that begin and end alike and send as much, and only where some were preempted and some were not.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from vcpulab.twin.links import Vcpu
from vcpulab.twin.sequences import Turn, Turns

_TURNS_LEAST = 20
"""The least number of turns of a kind. Assumed."""
_EARLY = 0.1
"""The fraction of turns that may end before a preemption that counts as early. Assumed."""
_SHORT = 0.5
"""Turns longer than this fraction of the median of the longer half are alike; ticks and similar turns are shorter.
Assumed."""
_EARLY_LEAST = 5
"""The least number of turns that were preempted early: the error of one or two is unknown."""
_BOTH = 0.1
"""The least fraction of message-exchanging turns that was preempted, and that was not. Assumed."""
_WHOLE_LEAST = 10
"""The least number of message-exchanging turns without preemption, which show the length without the cost. Assumed."""
_ERRORS = 3.0
"""The least distance of the estimate from 0, in standard errors: chance exceeds it in one of 740 cases."""


def resume_ns(turns: Iterable[Turns]) -> int:
    """The CPU time that a vCPU needs each time it continues after a preemption, ns; 0: the recording does not show it.

    Each vCPU's estimate counts by its precision (the inverse of its variance).

    Examples:
        >>> def turn(work, *preempted):
        ...     return Turn(((work + 50 * len(preempted), None),), 10, preempted=preempted)
        >>> resume_ns([Turns((1, 0), 0, [turn(1000 + n % 7, *[300 + n] * (n % 3)) for n in range(100)])])
        50
    """
    estimates = [estimate for history in turns if (estimate := _estimate(history.turns)) is not None]
    precision = sum(1 / variance for _, variance in estimates)
    if not estimates:
        return 0
    cost = sum(cost / variance for cost, variance in estimates) / precision
    return round(cost) if cost > _ERRORS * precision**-0.5 else 0


def without(turns: Mapping[Vcpu, Turns], cost_ns: int) -> dict[Vcpu, Turns]:
    """The turns without the cost of preemptions."""
    return {
        vcpu: Turns(vcpu, history.first_ns, [_shorter(turn, cost_ns) for turn in history.turns])
        for vcpu, history in turns.items()
    }


class _Kind(NamedTuple):
    """Turns are of one kind that somebody's message, or time, begins and ends, and that wake others as often."""

    begun_by: Vcpu | None
    ended_by: Vcpu | None
    wakes: int

    @property
    def exchanges(self) -> bool:
        """`True`: a turn exchanged messages."""
        return self != (None, None, 0)


class _Sums(NamedTuple):
    """The contribution of the turns of a kind to an estimate."""

    early_ran: float
    early_often: float
    square: float
    """The sum of squared errors of `early_ran`."""


def _estimate(turns: Sequence[Turn]) -> tuple[float, float] | None:
    """The cost by the turns of one vCPU, ns, and its variance."""
    kinds: dict[_Kind, list[Turn]] = {}
    for before, turn in pairwise(turns):
        wakes = sum(woken is not None for _, woken in turn.computes)
        kinds.setdefault(_Kind(_sender(before), _sender(turn), wakes), []).append(turn)
    sums_of_kinds = [
        sums
        for kind, turns_of_kind in kinds.items()
        if (sums := _sums(turns_of_kind, _BOTH if kind.exchanges else 0.0)) is not None
    ]
    by = sum(sums.early_often for sums in sums_of_kinds)
    if by <= 0:
        return None
    # Turns are as good as in whole ns: no estimate is exact.
    return sum(sums.early_ran for sums in sums_of_kinds) / by, (sum(sums.square for sums in sums_of_kinds) + 1) / by**2


def _sender(turn: Turn) -> Vcpu | None:
    """The vCPU that ended the block after a turn; `None`: a timer."""
    return turn.blocked if isinstance(turn.blocked, tuple) else None


def _sums(turns: Sequence[Turn], part_least: float) -> _Sums | None:
    """The contribution of the turns of a kind; `None`: too few turns, or too few with or without preemptions."""
    ran = np.array([turn.run_ns for turn in turns], float)
    alike = ran >= _SHORT * np.median(ran[ran >= ran.mean()])
    ran = ran[alike]
    preempted = [turn.preempted for turn, is_alike in zip(turns, alike, strict=True) if is_alike]
    often = np.array([len(each) for each in preempted], float)
    if len(ran) < _TURNS_LEAST or not part_least <= (often > 0).mean() <= 1 - part_least:
        return None
    if part_least > 0 and np.count_nonzero(often == 0) < _WHOLE_LEAST:
        return None
    before = np.quantile(ran, _EARLY)
    early = np.array([sum(at < before for at in each) for each in preempted], float)
    if np.count_nonzero(early) < _EARLY_LEAST:
        return None
    early -= early.mean()
    by = float(early @ often)
    if by <= 0:
        return None
    cost = float(early @ ran) / by
    rest = (ran - ran.mean()) - cost * (often - often.mean())
    return _Sums(float(early @ ran), by, float(((early * rest) ** 2).sum()))


def _shorter(turn: Turn, cost_ns: int) -> Turn:
    """The turn without the cost of its preemptions."""
    computes, done = [], 0
    for cpu_ns, woken in turn.computes:
        end = done + cpu_ns
        # A vCPU that waits until the end of a turn was preempted before it.
        within = sum(done <= at < end for at in turn.preempted)
        computes.append((max(cpu_ns - within * cost_ns, min(cpu_ns, 1)), woken))
        done = end
    return turn._replace(computes=tuple(computes))
