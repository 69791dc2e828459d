"""The links between vCPUs: for each wake-up, the vCPU on the pCPU that was its cause rather than there by chance.

A timer or a device wakes a vCPU whichever other vCPU runs: each is present at a fraction of the wake-ups equal to its
fraction of the time. A vCPU that sends events is present far more often.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

Vcpu = tuple[int, int]
"""Domain and number."""
Link = tuple[Vcpu, Vcpu]
"""A link: the waking vCPU, and the woken one."""

LIFT_LEAST = 2.5
"""The least ratio of a vCPU's presence at wake-ups to that expected by chance. In recordings of a real Xen
(`make real-xen`) the ratio is 3.1 to 37 for guests that communicate through Dom0, and at most 1.7 for other guests."""
ANSWERED_LIFT_LEAST = 1.9
"""The least ratio if the woken vCPU also wakes the other one, which is rarely due to chance. In the same recordings it
is at least 2.05 for guests that ask through Dom0, and at most 1.2 for guests that a long rate limit keeps in step."""
PART_LEAST = 0.1
"""The least fraction of a vCPU's wake-ups at which another vCPU is present, for that one to be a waker. Assumed."""
BEYOND_LEAST = 0.5
"""The least fraction, beyond chance, of the wake-ups of a vCPU that wakes its waker: a vCPU that runs 40 % of the time
cannot be present 2.5 times more often than by chance. In the same recordings the fraction is 0.65 to 0.81 for a guest
that always reads a disk, and at most 0.45 for guests without communication."""
COUNT_LEAST = 10
"""The least number of such wake-ups. Assumed."""


def links(summary: Mapping[str, Any]) -> set[Link]:
    """The links between vCPUs of a recording, by its summary."""
    pcpus = times_of(summary)
    counts: dict[Vcpu, dict[Vcpu | None, int]] = {}
    for waking in summary["wakers"]:
        waker = None if waking["waker"] is None else (waking["waker"][0], waking["waker"][1])
        counts.setdefault((waking["woken"][0], waking["woken"][1]), {})[waker] = waking["count"]
    times_without = {
        woken: [{runner: time for runner, time in pcpu.items() if runner != woken} for pcpu in pcpus]
        for woken in counts
    }
    often = {(waker, woken) for woken, wakes in counts.items() for waker in by_lift(wakes, times_without[woken])}
    return often | {
        (woken, waker) for waker, woken in often if waker in counts and asks(counts[waker], woken, times_without[waker])
    }


def times_of(summary: Mapping[str, Any]) -> list[dict[Vcpu | None, int]]:
    """For each pCPU, the time that each vCPU ran there, and the idle time."""
    return [
        {(share["domain"], share["vcpu"]): share["running_ns"] for share in pcpu["shares"]}
        | {None: pcpu["idle_ns"] + pcpu["host_ns"]}
        for pcpu in summary["pcpus"]
    ]


def _by_chance(waker: Vcpu | None, pcpus: Sequence[Mapping[Vcpu | None, int]]) -> float:
    """The part of wake-ups that somebody is there at by chance: its part of the time of the pCPU where it ran most."""
    return max((pcpu.get(waker, 0) / max(sum(pcpu.values()), 1) for pcpu in pcpus), default=0.0)


def asks(wakes: Mapping[Vcpu | None, int], waker: Vcpu, pcpus: Sequence[Mapping[Vcpu | None, int]]) -> bool:
    """Whether a vCPU is the reason for wake-ups of the vCPU that answers it.

    Args:
        wakes: number of wake-ups of the answering vCPU during which each vCPU ran.
        waker: the vCPU that is answered.
        pcpus: for each pCPU, the time that each vCPU ran there.
    """
    part = wakes.get(waker, 0) / max(sum(wakes.values()), 1)
    often = part >= PART_LEAST and part >= ANSWERED_LIFT_LEAST * _by_chance(waker, pcpus)
    return often or _beyond_chance(wakes, waker, pcpus) >= BEYOND_LEAST


def _beyond_chance(wakes: Mapping[Vcpu | None, int], waker: Vcpu, pcpus: Sequence[Mapping[Vcpu | None, int]]) -> float:
    """The part of wake-ups that somebody must have been the reason for, if it was there at the others by chance.

    Examples:
        >>> _beyond_chance({(1, 0): 80, (2, 0): 20}, (1, 0), [{(1, 0): 40, (2, 0): 60}])
        0.667
    """
    by_chance = _by_chance(waker, pcpus)
    if by_chance >= 1:
        return 0.0
    return round((wakes.get(waker, 0) / max(sum(wakes.values()), 1) - by_chance) / (1 - by_chance), 3)


def in_exchanges(links_found: Set[Link]) -> set[Link]:
    """The links whose waker is itself woken by another vCPU.

    Guests that wait behind one another for whole slices keep step, and then a timer of one is due whenever another
    runs: that looks like a link, but nobody ever answers.

    Examples:
        >>> a, b, c, d = (1, 0), (2, 0), (3, 0), (4, 0)
        >>> sorted(in_exchanges({(a, b), (b, a), (b, c), (d, c)}))
        [((1, 0), (2, 0)), ((2, 0), (1, 0)), ((2, 0), (3, 0))]
    """
    left = set(links_found)
    while True:
        woken = {target for _, target in left}
        lone = {(waker, target) for waker, target in left if waker not in woken}
        if not lone:
            return left
        left -= lone


def by_lift(wakes: Mapping[Vcpu | None, int], pcpus: Sequence[Mapping[Vcpu | None, int]]) -> Iterator[Vcpu]:
    """The vCPUs whose presence at wake-ups is no chance, by the time that each vCPU ran on each pCPU.

    By chance a vCPU is present in proportion to its fraction of a pCPU's time, at most that of the pCPU where it ran
    most, because timers and devices have their own pCPUs. The most frequent vCPU in relation to that is removed, and
    the rest are compared again.

    Examples:
        >>> wakes = {(0, 0): 90, (1, 0): 80, (2, 0): 20, None: 10}
        >>> list(by_lift(wakes, [{(0, 0): 100, (1, 0): 300, (2, 0): 4000, None: 2000}]))
        [(0, 0), (1, 0)]
    """
    wakes, times = dict(wakes), [dict(pcpu) for pcpu in pcpus]
    all_wakes = sum(wakes.values())

    def by_chance(candidate: Vcpu | None) -> float:
        return sum(wakes.values()) * _by_chance(candidate, times)

    while times:
        often = [each for each, count in wakes.items() if count >= max(PART_LEAST * all_wakes, COUNT_LEAST)]
        waker = max(often, key=lambda each: wakes[each] / max(by_chance(each), 1e-9), default=None)
        if waker is None or wakes[waker] < LIFT_LEAST * by_chance(waker):
            return
        yield waker
        del wakes[waker]
        for pcpu in times:
            pcpu.pop(waker, None)
