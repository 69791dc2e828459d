"""Messages that interrupts alone handle (Linux's softirq), inferred from ticks that they do not start again.

Linux stops the tick of an idle vCPU, and restarts it when a process is to run (`tick_nohz_idle_exit`). After a message
that no process waits for, such as a receipt, the vCPU stays in its idle loop, and no further tick comes.
"""

from collections import Counter
from collections.abc import Set

from vcpulab.twin.messages.turns import NEVER, SAMPLES_LEAST, TIME, Beliefs, Kind

_LATE = 0.1
"""The delay after which a tick is missing, as a fraction of its period. Assumed."""


def softirq_kinds(receiver: Beliefs) -> Set[Kind]:
    """The kinds of messages that wake no process of a vCPU; of one without ticks nothing tells.

    Where hardly a turn shows it, those that nothing is sent for.
    """
    if receiver.recognised is None:
        return frozenset()
    started, stopped = _ticks(receiver, receiver.recognised.tick.period_ns)

    def is_one(kind: Kind) -> bool:
        count = started[kind] + stopped[kind]
        if count >= SAMPLES_LEAST:
            # After a process it always came: what did come may have been for another message, which no wake-up shows.
            return stopped[kind] > NEVER * count
        return not receiver.sends_for(kind)

    return {kind for kind in receiver.frequent_kinds if kind != TIME and is_one(kind)}


def _ticks(receiver: Beliefs, period_ns: int) -> tuple[Counter[Kind], Counter[Kind]]:
    """For each kind, the number of its messages after which a stopped tick came again, and after which it did not."""
    started, stopped = Counter[Kind](), Counter[Kind]()
    for turn in range(1, len(receiver.turns) - 1):
        kinds, is_sure = receiver.received[turn]
        if not receiver.is_tick(turn - 1) or receiver.by_tick(turn) or not is_sure or len(set(kinds)) != 1:
            continue
        since = (receiver.ended[turn] - receiver.woke[turn - 1]) % period_ns
        if receiver.by_tick(turn + 1):
            started[kinds[0]] += 1
        elif receiver.woke[turn + 1] - receiver.ended[turn] > (1 + _LATE) * period_ns - since:
            stopped[kinds[0]] += 1
    return started, stopped
