"""The demand of a vCPU as an application of a scenario: in stretches of its turns, from spreads, or turn by turn."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from vcpulab.twin.links import Link
from vcpulab.twin.messages.ticks import Demand
from vcpulab.twin.sequences import Turns
from vcpulab.twin.stretches import mean_stretch

BLOCKS_LEAST = 5
"""The least number of blocks of a vCPU for a distribution. With fewer the vCPU always computes, or is idle. Assumed."""
HOG_SLEEPS_MOST = 0.01
"""The largest fraction of its time that a thread of Linux sleeps or is absent and still counts as a hog. Assumed."""
EVENTS_OF_PHASE = 1000
"""The number of events of a phase of a replay. Assumed."""


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


def conserving(thread: Mapping[str, Any], resume_ns: int = 0, absent_ns: int = 0) -> dict[str, Any] | None:
    """The demand of a thread of Linux, so that it gets as much CPU time again: a hog, or computing and sleeping.

    A thread that did not exist for part of the time counts as asleep then: the work of a few ms is spread over the
    recording instead of repeated throughout. Unknown time does not count.

    Args:
        thread: its table of the summary.
        resume_ns: CPU time that each preemption cost it, and that the host's costs have, too.
        absent_ns: how long it had not begun, where it was there for most of the recording, and is to go on.

    Examples:
        >>> few = {"count": 0}
        >>> thread = {"running_ns": 300, "runnable_ns": 0, "blocked_ns": 9700, "offline_ns": 0, "executions": 2}
        >>> conserving(thread | {"preempted": 1, "burst": few, "block": few})["phase"]
        [{'event': [{'run': '300ns'}, {'sleep': '9700ns'}]}]
        >>> conserving(thread | {"blocked_ns": 0})
        {'kind': 'hog'}
    """
    computes, sleeps = thread["running_ns"], slept_ns(thread, absent_ns)
    if computes <= 0:
        return None
    if sleeps <= HOG_SLEEPS_MOST * (computes + thread["runnable_ns"]):
        return {"kind": "hog"}
    if thread["block"]["count"] >= BLOCKS_LEAST and thread["burst"]["count"] >= BLOCKS_LEAST:
        burst, block = thread["burst"], thread["block"]
        lost_ns = resume_ns * thread["preempted"] / burst["count"]
        # As much sleep for each ns of computing as there was.
        mean_ns = sleeps * burst["mean_ns"] / computes
        event: list[dict[str, Any]] = [
            {"run": _spread(burst, least=1, less=lost_ns)},
            {"sleep": _spread(dict(block) | {"mean_ns": mean_ns}, least=0)},
        ]
    else:
        times = max(thread["executions"] - thread["preempted"], 1)
        event = [{"run": f"{max(computes // times, 1)}ns"}, {"sleep": f"{sleeps // times}ns"}]
    return {"kind": "phases", "phase": [{"event": event}]}


def slept_ns(thread: Mapping[str, Any], absent_ns: int = 0) -> int:
    """The time that a thread of Linux did not want to run: asleep, ended, or not begun, less `absent_ns`."""
    return max(int(thread["blocked_ns"] + thread["offline_ns"]) - absent_ns, 0)


def in_stretches(demands: Sequence[Demand], most: int, sleeps_per_run: float | None = None) -> dict[str, Any]:
    """Turns in stretches of their recorded order, of which each begins at a random one.

    Args:
        demands: what the vCPU computed and how long it slept, in order.
        most: turns that the scenario may hold; of more the first ones are taken.
        sleeps_per_run: time asleep for each ns of computing in the whole recording, to which sleeps are scaled.
    """
    taken = [demand for demand in demands[:most] if demand.sleep_ns > 0]
    if sleeps_per_run is not None and not any(each.ticks for each in taken):
        factor = sleeps_per_run * sum(each.run_ns for each in taken) / sum(each.sleep_ns for each in taken)
        taken = [each._replace(sleep_ns=max(round(factor * each.sleep_ns), 1)) for each in taken]
    sleeps = [{"ticks": each.ticks} if each.ticks else {"sleep": f"{each.sleep_ns}ns"} for each in taken]
    phases = [
        {"event": [{"run": f"{max(each.run_ns, 1)}ns"}, sleep]} for each, sleep in zip(taken, sleeps, strict=True)
    ]
    return {"kind": "phases", "stretch": mean_stretch([each[:2] for each in taken]), "phase": phases}


def replayed(history: Turns, channel: Callable[[Link], str]) -> dict[str, Any]:
    """The turns of a vCPU one after the other, and again from the first; each is a unit of work.

    Args:
        history: the turns of the vCPU.
        channel: names the event channel of two vCPUs.
    """
    events: list[dict[str, Any]] = []
    for turn in history.turns:
        for cpu_ns, woken in turn.computes:
            if cpu_ns > 0:
                events.append({"run": f"{cpu_ns}ns"})
            if woken is not None:
                events.append({"notify": channel((history.vcpu, woken))})
        events.append({"done": True})
        if isinstance(turn.blocked, tuple):
            events.append({"await": channel((turn.blocked, history.vcpu))})
        elif turn.blocked > 0:
            events.append({"sleep": f"{turn.blocked}ns"})
    phases = [{"event": events[at : at + EVENTS_OF_PHASE]} for at in range(0, len(events), EVENTS_OF_PHASE)]
    return {"kind": "phases", "start_delay": f"{history.first_ns}ns", "phase": phases}


def _spread(times: Mapping[str, Any], least: int, less: float = 0.0) -> list[str]:
    """Quantiles, so that they have the mean that was measured, less so much: a histogram is good to 1 % only."""
    quantiles: Sequence[int] = times["quantiles_ns"]
    halves = [(a + b) / 2 for a, b in pairwise(quantiles)]
    factor = (times["mean_ns"] - less) * len(halves) / sum(halves) if sum(halves) > 0 else 1.0
    return [f"{max(least, round(factor * quantile))}ns" for quantile in quantiles]
