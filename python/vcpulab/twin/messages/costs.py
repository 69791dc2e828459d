"""The CPU time that each kind of messages costs a vCPU, by turns that surely received one message alone."""

from collections import Counter
from collections.abc import Sequence, Set
from statistics import median

from vcpulab.twin.messages.turns import SAMPLES_LEAST, TIME, Beliefs, Kind, Received

OF_TURNS_LEAST = 0.04
"""The least fraction of a vCPU's messages that a kind has, or of the turns with a kind that show whether something
was sent. Below it chance may decide. Assumed."""
_LONG = 3
"""The least ratio of the timer's CPU time to that of any message, for a timer that cannot be confused with messages.
Assumed."""


def frequent(received: Sequence[Received]) -> Set[Kind]:
    """Kinds that are no exceptions among what turns received, and the timer."""
    counts = Counter(kind for turn in received for kind in turn.kinds)
    least = max(SAMPLES_LEAST, OF_TURNS_LEAST * sum(counts.values()))
    return {kind for kind, count in counts.items() if count >= least or kind == TIME}


def costs(receiver: Beliefs) -> tuple[dict[Kind, float], Set[Kind]]:
    """CPU time of each kind of messages: of the turns that surely received one alone, the median.

    Returns:
        That, and the kinds for which it is of turns in which nothing else can have come.
    """
    ran: dict[Kind, list[int]] = {}
    clean: dict[Kind, list[int]] = {}
    for turn, (kinds, is_sure) in enumerate(receiver.received):
        if is_sure and len(kinds) == 1 and not receiver.by_tick(turn):
            ran.setdefault(kinds[0], []).append(receiver.run[turn])
            if not receiver.within[turn]:
                clean.setdefault(kinds[0], []).append(receiver.run[turn])
    clean = {kind: times for kind, times in clean.items() if len(times) >= SAMPLES_LEAST}
    return {kind: median(times) for kind, times in (ran | clean).items() if len(times) >= SAMPLES_LEAST}, set(clean)


def saves(receiver: Beliefs) -> float:
    """The CPU time saved for each further message of a turn, by turns that surely received several.

    Only kinds count that are no exceptions. The saving is at most the cost of the cheapest of them.
    """
    costs = {kind: receiver.costs[kind] for kind in receiver.frequent_kinds if kind in receiver.costs}
    several = [
        (sum(costs[kind] for kind in kinds) - receiver.run[turn]) / (len(kinds) - 1)
        for turn, (kinds, is_sure) in enumerate(receiver.received)
        if is_sure and len(kinds) > 1 and not receiver.by_tick(turn) and all(kind in costs for kind in kinds)
    ]
    return min(max(median(several), 0.0), *costs.values()) if len(several) >= SAMPLES_LEAST else 0.0


def has_long_timer(receiver: Beliefs) -> bool:
    """`True`: the timer's work takes so much longer than any message that it cannot be confused with messages."""
    messages = receiver.frequent_kinds - {TIME}
    if TIME not in receiver.costs or not messages or not messages <= receiver.costs.keys():
        return False
    return receiver.costs[TIME] > _LONG * max(receiver.costs[kind] for kind in messages)
