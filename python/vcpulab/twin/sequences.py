"""What each vCPU did, turn by turn: for twins that replay a recording instead of drawing from its spreads."""

from pathlib import Path
from typing import NamedTuple

import polars as pl

from vcpulab.usage import UsageError

TURNS_MOST = 20_000
"""More turns of all vCPUs make a scenario file that is too long."""


class Turns(NamedTuple):
    """What a vCPU did from its first waking on."""

    first_wake_ns: int
    turns: list[tuple[int, int]]
    """CPU time until it blocked, and how long it was blocked then, ns; in order."""


def turns_of(events: Path) -> dict[tuple[int, int], Turns]:
    """Domain and vCPU to what it did, of those that blocked at all.

    Args:
        events: What `recordings.read_trace` wrote there.

    Raises:
        UsageError: there is too much of it.
    """
    states = pl.scan_ipc(events).filter(pl.col("kind") == "runstate", pl.col("domain") >= 0)
    blocks = states.filter(pl.col("what") == "blocked").select(pl.len()).collect().item()
    if blocks > TURNS_MOST:
        raise UsageError(
            f"found {blocks} turns of computing and blocking; allowed: at most {TURNS_MOST}\n"
            "  hint: replay a shorter recording, or draw from its spreads"
        )
    frame = states.select("domain", "vcpu", "time_ns", "what").collect()
    found = {}
    for (domain, vcpu), rows in frame.group_by(["domain", "vcpu"], maintain_order=True):
        turns = _turns(list(zip(rows["time_ns"], rows["what"], strict=True)))
        if turns is not None:
            found[int(domain), int(vcpu)] = turns
    return found


def _turns(changes: list[tuple[int, str]]) -> Turns | None:
    """From changes of runstate to turns; the last one, which did not end, is left out.

    Examples:
        >>> _turns([(5, "blocked"), (9, "runnable"), (10, "running"), (14, "blocked"), (20, "runnable")])
        Turns(first_wake_ns=9, turns=[(4, 6)])
    """
    turns: list[tuple[int, int]] = []
    first_wake = since = blocked_at = None
    ran = burst = 0
    for time, state in changes:
        if since is not None:
            ran += time - since
            since = None
        if state == "running":
            since = time
        elif state == "blocked":
            blocked_at, burst, ran = time, ran, 0
        elif state in ("runnable", "offline") and blocked_at is not None:
            if first_wake is None:
                first_wake = time
            else:
                turns.append((burst, time - blocked_at))
            blocked_at, ran = None, 0
    return Turns(first_wake, turns) if first_wake is not None and turns else None
