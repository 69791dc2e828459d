"""The demands of a recorded host's vCPUs: tasks that exchange messages, stretches of turns, or distributions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vcpulab.hosts.kernel_rules import POLICIES
from vcpulab.twin import decision_costs
from vcpulab.twin.apps import BLOCKS_LEAST, conserving, drawn, in_stretches, slept_ns
from vcpulab.twin.busy import all_told
from vcpulab.twin.decision_costs import DecisionCosts
from vcpulab.twin.links import Vcpu, in_exchanges, links
from vcpulab.twin.messages.exchange import tasks_of
from vcpulab.twin.messages.partners import with_partners
from vcpulab.twin.messages.tasks import Task
from vcpulab.twin.messages.ticks import Tick, alike
from vcpulab.twin.messages.wake_costs import Waking
from vcpulab.twin.preemption_costs import resume_ns, without
from vcpulab.twin.sequences import TURNS_MOST, Turns, span_ns, turns_of
from vcpulab.twin.sources import Sources
from vcpulab.twin.stretches import keep_nothing

_THERE_LEAST = 0.5
"""The least fraction of the known time for which a thread of Linux must have existed. Assumed."""
TURNS_OF_VCPU_MOST = 2000
"""The largest number of turns of one vCPU: more make a scenario longer, and hardly better."""


@dataclass(frozen=True)
class Demands:
    """The demands of vCPUs, and the costs of the hypervisor that are no part of them."""

    turns: Mapping[Vcpu, Turns]
    switch_ns: int
    """The mean time between one vCPU's stop and the next one's start."""
    resume_ns: int
    """The CPU time that a vCPU needs besides each time it goes on after it was preempted."""
    takes: DecisionCosts
    replays: Mapping[Vcpu, Turns]
    """The turns of vCPUs that repeat all of them."""
    tasks: Sequence[Task]
    """The tasks of vCPUs that exchange messages."""
    stretches: Mapping[Vcpu, dict[str, Any]]
    """The applications of vCPUs that repeat stretches of their turns."""
    ticks: Mapping[Vcpu, Tick]
    waking: Mapping[Vcpu, Waking]
    of_linux: bool
    """`True`: sleeps of threads are scaled to the CPU time of the whole recording."""

    def by_spreads(self, vcpu: Mapping[str, Any]) -> dict[str, Any] | None:
        """The application of a vCPU by the distributions in its table of the summary; `None`: it runs nothing."""
        if not self.of_linux:
            return drawn(vcpu, self.resume_ns, self.takes.block_ns)
        history = self.turns.get((vcpu["domain"], vcpu["vcpu"]))
        return conserving(vcpu, self.resume_ns, 0 if history is None else history.first_ns)


def demands_of(
    sources: Sources, summary: Mapping[str, Any], scheduler: str, events: Path | None, *, replay: bool
) -> Demands:
    """The demands of the vCPUs of a recording.

    Args:
        sources: the files of the host.
        summary: the summary of the recording, of the vCPUs that a twin has.
        scheduler: the scheduler to simulate.
        events: what happened in the beginning of the recording; `None`: no vCPU blocked.
        replay: replay what happened, instead of drawing from its spreads.
    """
    woken = links(summary)
    if events is not None:
        # On KVM hosts a wake-up says who did it, and what wakes a waker may be no thread.
        woken = with_partners(events, summary, woken if sources.of_linux else in_exchanges(woken))
    turns = {} if events is None else turns_of(events, woken)
    resume, switch_ns, takes = resume_ns(turns.values()), _switch_ns(summary), decision_costs.NOTHING
    if scheduler not in POLICIES:
        takes = decision_costs.measured(summary, scheduler, switch_ns)
    turns = decision_costs.without(without(turns, resume), takes)
    if sources.of_linux:
        lasting = _lasting(summary, turns, 0.0 if events is None else span_ns(events) / max(summary["span_ns"], 1))
        turns = {vcpu: history for vcpu, history in turns.items() if vcpu in lasting}
        woken = {link for link in woken if lasting.issuperset(link)}
    linked = {vcpu for link in woken for vcpu in link}
    replays = {vcpu: history for vcpu, history in turns.items() if replay and _does_something(history)}
    summarized = {vcpu: history for vcpu, history in turns.items() if vcpu not in replays}
    tasks, ticks, waking = tasks_of({vcpu: history for vcpu, history in summarized.items() if vcpu in linked}, woken)
    stretches = _in_stretches(
        {vcpu: history for vcpu, history in summarized.items() if vcpu not in linked},
        _sleeps_per_run(summary, resume, turns) if sources.of_linux else {},
    )
    ticks = alike(ticks | {vcpu: tick for vcpu, (_, tick) in stretches.items() if tick is not None})
    apps = {vcpu: app for vcpu, (app, _) in stretches.items()}
    return Demands(turns, switch_ns, resume, takes, replays, tasks, apps, ticks, waking, sources.of_linux)


def _does_something(history: Turns) -> bool:
    return any(turn.blocked or len(turn.computes) > 1 for turn in history.turns)


def _lasting(summary: Mapping[str, Any], turns: Mapping[Vcpu, Turns], seen: float) -> set[Vcpu]:
    """The threads of Linux that were there for most of the time: what one did that was there for some ms is no pattern.

    Args:
        summary: of the recording.
        turns: what threads did in its beginning.
        seen: the part of its time that this is, 0 to 1.
    """
    lasting = set()
    for thread in summary["vcpus"]:
        history = turns.get((thread["domain"], thread["vcpu"]))
        known_ns = sum(thread[f"{state}_ns"] for state in ("running", "runnable", "blocked", "offline"))
        if history is not None:
            # The last turn of a thread that has ended lasts until the end of the recording.
            was_there_ns = sum(turn.span_ns + turn.blocked_ns for turn in history.turns) - thread["offline_ns"]
            if was_there_ns >= _THERE_LEAST * seen * known_ns:
                lasting.add(history.vcpu)
    return lasting


def _sleeps_per_run(summary: Mapping[str, Any], resume_ns: int, turns: Mapping[Vcpu, Turns]) -> dict[Vcpu, float]:
    """The sleep of threads of Linux for each ns that they computed, without the cost of resuming."""
    ratios = {}
    for thread in summary["vcpus"]:
        vcpu = thread["domain"], thread["vcpu"]
        computes = thread["running_ns"] - resume_ns * thread["preempted"]
        if computes > 0 and vcpu in turns:
            ratios[vcpu] = slept_ns(thread, turns[vcpu].first_ns) / computes
    return ratios


def _in_stretches(
    turns: Mapping[Vcpu, Turns], sleeps_per_run: Mapping[Vcpu, float]
) -> dict[Vcpu, tuple[dict[str, Any], Tick | None]]:
    """The turns of vCPUs that no other vCPU wakes, as an application, and their tick."""
    told_of = all_told(turns)
    often = {
        vcpu: (tick, demands)
        for vcpu, (tick, demands) in told_of.items()
        if sum(each.sleep_ns > 0 for each in demands) >= BLOCKS_LEAST
        and (tick is not None or not keep_nothing([each[:2] for each in demands]))
    }
    most = min(TURNS_OF_VCPU_MOST, TURNS_MOST // max(len(often), 1))
    return {
        vcpu: (in_stretches(demands, most, sleeps_per_run.get(vcpu)), tick) for vcpu, (tick, demands) in often.items()
    }


def _switch_ns(summary: Mapping[str, Any]) -> int:
    """The mean time between one vCPU's stop and the next one's start."""
    switches = sum(pcpu["switches"] for pcpu in summary["pcpus"])
    return round(sum(pcpu["switching_ns"] for pcpu in summary["pcpus"]) / switches) if switches else 0
