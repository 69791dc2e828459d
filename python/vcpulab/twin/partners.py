"""Who else wakes and is woken by those that wake one another, told from wake-ups that are no ticks.

Where answers mostly come before their asker blocks, few wake-ups show them, and ticks, at which anybody is there, hide
these few. Once it is known that there is an exchange, ticks can be left out, and those that the exchange explains.
"""

from collections import Counter
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

import polars as pl

from vcpulab.twin.links import PART_LEAST, Link, Vcpu, asks, by_lift, times_of
from vcpulab.twin.sequences import turns_of
from vcpulab.twin.ticks import recognise

OF_OTHERS_LEAST = 0.02
"""Of the wake-ups of who is asked that are no ticks; fewer are exceptions."""


def with_partners(events: Path, summary: Mapping[str, Any], found: Set[Link]) -> set[Link]:
    """Links without those that are none, and those of further vCPUs that ask one of theirs.

    Args:
        events: what `recordings.read_trace` wrote.
        summary: what it said of them.
        found: links so far.
    """
    wakes = _without_ticks(events) if found else {}
    # Nobody answers who was only there at ticks.
    kept = {
        (a, b) for a, b in found if (b, a) in found or (b in wakes and wakes[b][a] >= PART_LEAST * wakes[b].total())
    }
    members = {vcpu for link in kept for vcpu in link}
    pcpus = times_of(summary)
    further: set[Link] = set()
    for woken in members & set(wakes):
        known = {waker for waker, whom in kept if whom == woken}
        least = OF_OTHERS_LEAST * wakes[woken].total()
        left = {waker: count for waker, count in wakes[woken].items() if waker not in known}
        times = [{who: time for who, time in pcpu.items() if who not in {woken, *known}} for pcpu in pcpus]
        further |= {
            (waker, woken)
            for waker in by_lift(left, times)
            if waker in wakes and waker not in members and left[waker] >= least
        }
        for waker in sorted(who for who in members - known if (woken, who) in kept and left.get(who, 0) >= least):
            # Where several ask one, each is there hardly more often than by chance: chance is what outsiders show.
            others = members - {waker}
            outside = {who: count for who, count in left.items() if who not in others}
            if asks(outside, waker, [{who: time for who, time in pcpu.items() if who not in others} for pcpu in times]):
                further.add((waker, woken))
    # Who asks is answered, even where no wake-up shows it: the answer may always come before it blocks.
    return kept | further | {(b, a) for a, b in further}


def _without_ticks(events: Path) -> dict[Vcpu, Counter[Vcpu | None]]:
    """Of each vCPU: how often each other one was there when it was woken by anything but its tick."""
    ticks: set[tuple[Vcpu, int]] = set()
    for vcpu, its in turns_of(events).items():
        tick = recognise(its.turns)
        if tick is not None:
            ticks |= {(vcpu, turn.woke_ns) for turn, on in zip(its.turns, tick.on, strict=True) if on}
    scanned = pl.scan_ipc(events).filter(pl.col("kind").is_in(["runstate", "wake"]), pl.col("domain") >= 0)
    columns = ["time_ns", "kind", "what", "domain", "vcpu", "by_domain", "by_vcpu"]
    found: dict[Vcpu, Counter[Vcpu | None]] = {}
    wakers: dict[Vcpu, Vcpu | None] = {}
    for time, kind, what, domain, vcpu, by_domain, by_vcpu in scanned.select(columns).collect().iter_rows():
        who = domain, vcpu
        if kind == "wake":
            wakers[who] = None if by_domain is None else (by_domain, by_vcpu)
        elif what == "blocked":
            wakers.pop(who, None)
        elif who in wakers:
            waker = wakers.pop(who)
            if (who, time) not in ticks:
                found.setdefault(who, Counter())[waker] += 1
    return found
