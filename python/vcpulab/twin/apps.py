"""What a vCPU wanted, as an application of a scenario: in stretches of its turns, from spreads, or turn by turn."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from vcpulab.twin.links import Link
from vcpulab.twin.sequences import Turns
from vcpulab.twin.stretches import mean_stretch
from vcpulab.twin.ticks import Demand

BLOCKS_LEAST = 5
"""A vCPU that blocked less often has no spread to draw from: it always computes, or is idle."""
EVENTS_OF_PHASE = 1000


def drawn(vcpu: Mapping[str, Any], resume_ns: int = 0, block_ns: int = 0) -> dict[str, Any] | None:
    """Times to compute and to sleep from the spreads in a summary; or a hog; or nothing.

    Args:
        vcpu: its table of the summary.
        resume_ns: CPU time that each preemption cost it, and that the host's costs have, too.
        block_ns: the same of each time that it blocked.
    """
    if vcpu["block"]["count"] >= BLOCKS_LEAST and vcpu["burst"]["count"] >= BLOCKS_LEAST:
        lost_ns = block_ns + resume_ns * vcpu["preempted"] / vcpu["burst"]["count"]
        event = [{"run": _spread(vcpu["burst"], least=1, less=lost_ns)}, {"sleep": _spread(vcpu["block"], least=0)}]
        return {"kind": "phases", "phase": [{"event": event}]}
    # Off line is a vCPU that a cap holds back, too.
    wanted = vcpu["running_ns"] + vcpu["runnable_ns"] + vcpu["offline_ns"]
    return {"kind": "hog"} if wanted > vcpu["blocked_ns"] and vcpu["running_ns"] > 0 else None


def in_stretches(demands: Sequence[Demand], most: int) -> dict[str, Any]:
    """Turns in stretches of their recorded order, of which each begins at a random one.

    Args:
        demands: what the vCPU computed and how long it slept, in order.
        most: turns that the scenario may hold; of more the first ones are taken.
    """
    taken = [demand for demand in demands[:most] if demand.sleep_ns > 0]
    sleeps = [{"ticks": each.ticks} if each.ticks else {"sleep": f"{each.sleep_ns}ns"} for each in taken]
    phases = [
        {"event": [{"run": f"{max(each.run_ns, 1)}ns"}, sleep]} for each, sleep in zip(taken, sleeps, strict=True)
    ]
    return {"kind": "phases", "stretch": mean_stretch([each[:2] for each in taken]), "phase": phases}


def replayed(its: Turns, channel: Callable[[Link], str]) -> dict[str, Any]:
    """The turns of a vCPU one after the other, and again from the first; each is a unit of work.

    Args:
        its: the turns.
        channel: what the event channel of two vCPUs is called.
    """
    events: list[dict[str, Any]] = []
    for turn in its.turns:
        for cpu_ns, woken in turn.computes:
            if cpu_ns > 0:
                events.append({"run": f"{cpu_ns}ns"})
            if woken is not None:
                events.append({"notify": channel((its.vcpu, woken))})
        events.append({"done": True})
        if isinstance(turn.blocked, tuple):
            events.append({"await": channel((turn.blocked, its.vcpu))})
        elif turn.blocked > 0:
            events.append({"sleep": f"{turn.blocked}ns"})
    phases = [{"event": events[at : at + EVENTS_OF_PHASE]} for at in range(0, len(events), EVENTS_OF_PHASE)]
    return {"kind": "phases", "start_delay": f"{its.first_ns}ns", "phase": phases}


def _spread(times: Mapping[str, Any], least: int, less: float = 0.0) -> list[str]:
    """Quantiles, so that they have the mean that was measured, less so much: a histogram is good to 1 % only."""
    quantiles: Sequence[int] = times["quantiles_ns"]
    halves = [(a + b) / 2 for a, b in pairwise(quantiles)]
    factor = (times["mean_ns"] - less) * len(halves) / sum(halves) if sum(halves) > 0 else 1.0
    return [f"{max(least, round(factor * quantile))}ns" for quantile in quantiles]
