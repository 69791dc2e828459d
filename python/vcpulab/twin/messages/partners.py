"""The further partners of vCPUs that wake one another, inferred from wake-ups that are no ticks.

Where answers mostly come before the asking vCPU blocks, few wake-ups show them, and ticks, at which any vCPU may be
present, hide these few. Once an exchange is known, ticks and the wake-ups that it explains can be left out.
"""

from collections import Counter
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

import polars as pl

from vcpulab.twin.links import PART_LEAST, Link, Vcpu, asks, by_lift, times_of
from vcpulab.twin.messages.ticks import recognise
from vcpulab.twin.sequences import turns_of

OF_OTHERS_LEAST = 0.02
"""The least fraction of a vCPU's wake-ups, without ticks, at which a further partner is present. It is below
`PART_LEAST`, because answers that come before the vCPU blocks leave few wake-ups. Assumed."""


def with_partners(events: Path, summary: Mapping[str, Any], candidates: Set[Link]) -> set[Link]:
    """The links without those that are due to chance, and links of further vCPUs that ask a linked vCPU.

    Args:
        events: the file of events that `formats.read_trace` wrote.
        summary: the summary of these events that it returned.
        candidates: links by wake-up counts.
    """
    wakes = _without_ticks(events) if candidates else {}
    # Nobody answers who was only there at ticks.
    kept = {
        (a, b)
        for a, b in candidates
        if (b, a) in candidates or (b in wakes and wakes[b][a] >= PART_LEAST * wakes[b].total())
    }
    members = {vcpu for link in kept for vcpu in link}
    pcpus = times_of(summary)
    further: set[Link] = set()
    for woken in members & set(wakes):
        wakers = {waker for waker, target in kept if target == woken}
        least = OF_OTHERS_LEAST * wakes[woken].total()
        left = {waker: count for waker, count in wakes[woken].items() if waker not in wakers}
        times = [{runner: time for runner, time in pcpu.items() if runner not in {woken, *wakers}} for pcpu in pcpus]
        further |= {
            (waker, woken)
            for waker in by_lift(left, times)
            if waker in wakes and waker not in members and left[waker] >= least
        }
        for waker in sorted(
            runner for runner in members - wakers if (woken, runner) in kept and left.get(runner, 0) >= least
        ):
            # Where several ask one, each is there hardly more often than by chance: chance is what outsiders show.
            rest = members - {waker}
            outside = {runner: count for runner, count in left.items() if runner not in rest}
            if asks(
                outside,
                waker,
                [{runner: time for runner, time in pcpu.items() if runner not in rest} for pcpu in times],
            ):
                further.add((waker, woken))
    # Who asks is answered, even where no wake-up shows it: the answer may always come before it blocks.
    return kept | further | {(b, a) for a, b in further}


def _without_ticks(events: Path) -> dict[Vcpu, Counter[Vcpu | None]]:
    """For each vCPU, how often each other vCPU was present when it was woken by anything but its tick."""
    ticks: set[tuple[Vcpu, int]] = set()
    for vcpu, history in turns_of(events).items():
        tick = recognise(history.turns)
        if tick is not None:
            ticks |= {(vcpu, turn.woke_ns) for turn, on in zip(history.turns, tick.on, strict=True) if on}
    scanned = pl.scan_ipc(events).filter(pl.col("kind").is_in(["runstate", "wake"]), pl.col("domain") >= 0)
    columns = ["time_ns", "kind", "what", "domain", "vcpu", "by_domain", "by_vcpu"]
    counts: dict[Vcpu, Counter[Vcpu | None]] = {}
    wakers: dict[Vcpu, Vcpu | None] = {}
    for time, kind, state, domain, vcpu, by_domain, by_vcpu in scanned.select(columns).collect().iter_rows():
        woken = domain, vcpu
        if kind == "wake":
            wakers[woken] = None if by_domain is None else (by_domain, by_vcpu)
        elif state == "blocked":
            wakers.pop(woken, None)
        elif woken in wakers:
            waker = wakers.pop(woken)
            if (woken, time) not in ticks:
                counts.setdefault(woken, Counter())[waker] += 1
    return counts
