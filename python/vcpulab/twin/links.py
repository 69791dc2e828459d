"""Who wakes whom: which of the vCPUs that were on a pCPU when others woke there were the reason for it.

A timer or a device wakes a vCPU whoever happens to run: each other vCPU is there at as many of its wake-ups as its part
of the time. One that sends events is there far more often.
"""

from collections.abc import Iterator, Mapping
from typing import Any

Vcpu = tuple[int, int]
"""Domain and number."""
Link = tuple[Vcpu, Vcpu]
"""Who wakes, and whom."""

LIFT_LEAST = 2.5
"""How many times more often than by chance. In recordings of a real Xen (`make real-xen`) it is 3.1 to 37 for guests
that ask one another through Dom0, and at most 1.7 for guests that do not, among wake-ups that are no exceptions."""
PART_LEAST = 0.1
"""Of all wake-ups of a vCPU; fewer are exceptions."""
COUNT_LEAST = 10


def links(summary: Mapping[str, Any]) -> set[Link]:
    """Who woke whom in a recording, by its summary."""
    ran: dict[Vcpu | None, int] = {(vcpu["domain"], vcpu["vcpu"]): vcpu["running_ns"] for vcpu in summary["vcpus"]}
    ran[None] = sum(pcpu["idle_ns"] + pcpu["host_ns"] for pcpu in summary["pcpus"])
    found: dict[Vcpu, dict[Vcpu | None, int]] = {}
    for waking in summary["wakers"]:
        waker = None if waking["waker"] is None else (waking["waker"][0], waking["waker"][1])
        found.setdefault((waking["woken"][0], waking["woken"][1]), {})[waker] = waking["count"]
    return {
        (waker, woken)
        for woken, wakers in found.items()
        for waker in _wakers({who: (wakers.get(who, 0), time) for who, time in ran.items() if who != woken})
    }


def _wakers(there: dict[Vcpu | None, tuple[int, int]]) -> Iterator[Vcpu]:
    """Of wake-ups that each found itself there at, and the time that each ran: who is no chance.

    The most frequent in relation to its time is taken out, and the others are compared among themselves.

    Examples:
        >>> list(_wakers({(0, 0): (90, 100), (1, 0): (80, 300), (2, 0): (20, 4000), None: (10, 2000)}))
        [(0, 0), (1, 0)]
    """
    there = dict(there)
    all_wakes = sum(wakes for wakes, _ in there.values())
    while there:
        who, (wakes, time) = max(there.items(), key=lambda each: each[1][0] / max(each[1][1], 1))
        by_chance = sum(w for w, _ in there.values()) * time / max(sum(t for _, t in there.values()), 1)
        if who is None or wakes < max(LIFT_LEAST * by_chance, PART_LEAST * all_wakes, COUNT_LEAST):
            return
        yield who
        del there[who]
