"""The tasks of vCPUs that wake one another: each waits for one kind of message, and answers it.

Under another scheduler messages coincide with other messages than in the recording. So turns are not replayed in their
order. Each kind of message (its sender, and the vCPU that woke the sender) has a task that awaits it, and repeats one
of the recorded reactions to such a message: it computes, and sends the same messages.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from operator import attrgetter
from statistics import median
from typing import Any, NamedTuple

from vcpulab.twin.links import Link, Vcpu
from vcpulab.twin.messages.attribution import attributed
from vcpulab.twin.messages.tasks import Task, VcpuTasks, receipts
from vcpulab.twin.messages.ticks import Tick
from vcpulab.twin.messages.turns import TIME, Action, Beliefs, Kind
from vcpulab.twin.messages.wake_costs import Waking, waking
from vcpulab.twin.sequences import Turns
from vcpulab.twin.stretches import mean_stretch

_MOSTLY = 0.5
"""If an awaited answer is sent in at least this fraction of the turns that show it, it is sent exactly once in all
of them: the vCPU that awaited it did continue. Assumed."""


class Exchange(NamedTuple):
    """vCPUs that wake one another."""

    tasks: list[Task]
    ticks: dict[Vcpu, Tick]
    waking: dict[Vcpu, Waking]
    """CPU time of each turn beside what its tasks compute, where it is known."""


def tasks_of(turns: Mapping[Vcpu, Turns], links: Set[Link]) -> Exchange:
    """The tasks of vCPUs that wake one another, and what their kernels do.

    Args:
        turns: of each of these vCPUs.
        links: who wakes whom.
    """
    beliefs = attributed(turns, links)
    wake_costs = {vcpu: cost for vcpu, cost in waking(beliefs).items() if cost.ns > 0}
    alone = [each.costs[kind] for each in beliefs.values() for kind in receipts(each) if kind in each.costs]
    receipt_ns = median(alone) if alone else None
    vcpu_tasks = {vcpu: VcpuTasks(each, wake_costs, receipt_ns) for vcpu, each in beliefs.items()}
    awaited = {(vcpu, each.anchor) for vcpu, each in vcpu_tasks.items() if each.anchor is not None}
    certain = _answered(beliefs, awaited)
    tasks = [task for vcpu, each in vcpu_tasks.items() for task in each.under(certain[vcpu]).tasks()]
    ticks = {vcpu: each.recognised.tick for vcpu, each in beliefs.items() if each.recognised is not None}
    return Exchange(_reached(tasks), ticks, wake_costs)


def _answered(beliefs: Mapping[Vcpu, Beliefs], awaited: Set[tuple[Vcpu, Kind]]) -> dict[Vcpu, Beliefs]:
    """The beliefs with certainty about what leads to answers that a vCPU awaits: it went on, so each came, and once.

    Args:
        beliefs: about each vCPU's turns.
        awaited: who awaits which kinds of messages.
    """
    parts = {vcpu: dict(each.parts) for vcpu, each in beliefs.items()}
    once: dict[Vcpu, set[tuple[Kind, Vcpu]]] = {vcpu: set() for vcpu in beliefs}
    left, done = list(awaited), set(awaited)
    while left:
        waits, kind = left.pop()
        leads = [
            (sender, received, part)
            for sender in beliefs
            for (received, target), part in parts[sender].items()
            if target == waits and received.then(sender) == kind
        ]
        if all(part < _MOSTLY for _, _, part in leads):
            continue
        for sender, received, part in leads:
            parts[sender][received, waits] = float(part >= _MOSTLY)
            once[sender].add((received, waits))
            if part >= _MOSTLY and received != TIME and (sender, received) not in done:
                done.add((sender, received))
                left.append((sender, received))
    return {vcpu: replace(each, parts=parts[vcpu], once=once[vcpu]) for vcpu, each in beliefs.items()}


def _reached(tasks: Sequence[Task]) -> list[Task]:
    """The tasks that messages come to. Of those that wait for one another in a circle one begins without."""
    by_kind = {(task.vcpu, task.kind): task for task in tasks}

    def leads_to(task: Task) -> Iterable[Task]:
        for actions, received in ((attrgetter("actions"), task.kind), (attrgetter("later"), TIME)):
            for woken in {woken for sample in task.samples for _, woken in actions(sample) if woken is not None}:
                sent = woken, received.then(task.vcpu)
                if sent in by_kind:
                    yield by_kind[sent]

    def all_from(first: Iterable[Task]) -> dict[int, Task]:
        tasks_reached: dict[int, Task] = {}
        left = list(first)
        while left:
            for task in leads_to(left.pop()):
                if id(task) not in tasks_reached:
                    tasks_reached[id(task)] = task
                    left.append(task)
        return tasks_reached

    reached = {id(task): task for task in tasks if task.kind == TIME}
    # The most frequent first: others may be reached from there.
    for task in sorted(tasks, key=lambda task: (not task.starts, -len(task.samples))):
        circle = all_from([task])
        if id(task) not in reached and id(task) in circle:
            task.starts = True
            reached |= circle
        elif task.kind == TIME:
            reached |= circle
    for task in tasks:
        task.starts = task.starts and id(task) in reached
    return [task for task in tasks if id(task) in reached]


def app_of(task: Task, tasks: Sequence[Task], channel: Callable[[Vcpu, Kind], str]) -> dict[str, Any]:
    """A task as an application of a scenario.

    Args:
        task: the task.
        tasks: all tasks: what nobody awaits is not sent.
        channel: what the channel of a kind of messages to a vCPU is called.
    """
    awaited = {(task_awaited.vcpu, task_awaited.kind) for task_awaited in tasks if task_awaited.kind != TIME}

    def events(actions: Sequence[Action], received: Kind) -> list[dict[str, Any]]:
        steps: list[dict[str, Any]] = []
        for cpu, woken in actions:
            if cpu > 0:
                steps.append({"run": f"{cpu}ns"})
            if woken is not None and (sent := (woken, received.then(task.vcpu))) in awaited:
                steps.append({"notify": channel(*sent)})
        return steps

    phases = []
    for sample in task.samples:
        answer = events(sample.actions, task.kind)
        sleep = [{"sleep": f"{sample.then_ns}ns"}] if sample.then_ns > 0 else []
        if task.kind == TIME:
            phases.append({"event": [*sleep, *answer]})
            continue
        waits = [{"await": channel(task.vcpu, task.kind)}]
        later = events(sample.later, TIME)
        if sleep or later:
            phases.append({"event": [*sleep, *later, *waits, *answer]})
        else:
            phases.append({"event": [*answer, *waits] if task.starts else [*waits, *answer]})
    # A damaged recording may have turns of no time that tell nobody anything.
    phases = [phase for phase in phases if phase["event"]]
    demands = [(sample.run_ns(), sample.then_ns) for sample in task.samples]
    softirq = {"softirq": True} if task.softirq else {"softirq_first": True} if task.acknowledges_first else {}
    return {"kind": "phases", **softirq, "stretch": mean_stretch(demands), "phase": phases}
