"""Ticks of a guest's kernel that find its vCPU busy: what one takes of a turn, and turns without them.

A vCPU whose bursts are all alike keeps step with its own tick: with one within, a burst is longer, and the next begins
later. Taken for part of a burst it would come at any time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

import numpy as np

from vcpulab.twin.links import Vcpu
from vcpulab.twin.messages.ticks import Demand, Recognised, Tick, demands_besides, recognise, tick_and_demands
from vcpulab.twin.sequences import Turn, Turns

_COUNT_LEAST = 20
"""The least number of turns with a tick within them, and of turns without one, for the cost of a busy tick. Assumed."""
_QUARTILES_APART = 1.349
"""The distance between the quartiles of a normal distribution, in standard deviations."""
_BIAS_MOST = 0.25
"""The largest bias of that cost, as a fraction: long turns contain more ticks, by the variance of turns over their
mean. Assumed."""


def all_told(turns: Mapping[Vcpu, Turns]) -> dict[Vcpu, tuple[Tick | None, list[Demand]]]:
    """The ticks of vCPUs that nobody wakes, and what each wanted besides (`ticks.tick_and_demands`).

    Where the turns of a vCPU do not show the cost of a busy tick, the median ratio to the cost of an idle tick on
    other vCPUs applies.
    """
    analysed = {vcpu: (vcpu_turns.turns, recognise(vcpu_turns.turns)) for vcpu, vcpu_turns in turns.items()}
    costs = {vcpu: busy_ns(vcpu_turns, seen) if seen else 0 for vcpu, (vcpu_turns, seen) in analysed.items()}
    parts = [costs[vcpu] / seen.tick.cpu_ns for vcpu, (_, seen) in analysed.items() if seen and costs[vcpu]]
    usual = median(parts) if parts else 0.0
    demands: dict[Vcpu, tuple[Tick | None, list[Demand]]] = {}
    for vcpu, (vcpu_turns, seen) in analysed.items():
        cost = costs[vcpu] or (round(usual * seen.tick.cpu_ns) if seen else 0)
        tick, wanted = (
            tick_and_demands(without_busy(vcpu_turns, seen, cost))
            if seen and cost
            else demands_besides(vcpu_turns, seen)
        )
        demands[vcpu] = replace(tick, busy_ns=cost) if tick else None, wanted
    return demands


def busy_ns(turns: Sequence[Turn], recognised: Recognised) -> int:
    """CPU time of a tick that finds its vCPU busy, ns; 0: turns do not say, for they are not alike."""
    counts = _within(turns, recognised)
    ran = np.array([turn.run_ns for turn in turns], float)
    alike = ~recognised.on
    with_one, without = ran[alike & (counts == 1)], ran[alike & (counts == 0)]
    if min(len(with_one), len(without)) < _COUNT_LEAST:
        return 0
    cost = float(np.median(with_one) - np.median(without))
    spread = float(np.subtract(*np.percentile(without, (75, 25)))) / _QUARTILES_APART
    is_told = 0 < cost <= 2 * recognised.tick.cpu_ns and spread**2 / float(np.median(without)) <= _BIAS_MOST * cost
    return round(cost) if is_told else 0


def without_busy(turns: Sequence[Turn], recognised: Recognised, cost_ns: int) -> list[Turn]:
    """The turns without the CPU time of ticks."""
    return [
        turn.without(cost_ns * int(count)) if count else turn
        for turn, count in zip(turns, _within(turns, recognised), strict=True)
    ]


def _within(turns: Sequence[Turn], recognised: Recognised) -> np.ndarray:
    """The number of ticks that found a vCPU busy in each turn; ticks that came while it could not run count once."""
    period, at = recognised.tick.period_ns, recognised.tick.at_ns
    begin = np.array([turn.woke_ns + turn.waited_ns for turn in turns], np.int64)
    end = np.array([turn.woke_ns + turn.span_ns for turn in turns], np.int64)
    most = np.array([1 + turn.run_ns // period + len(turn.preempted) for turn in turns], np.int64)
    return np.asarray(np.minimum((end - at) // period - (begin - at) // period, most))
