"""The tick of a guest's kernel, told from what its vCPUs did, and taken out of it.

Linux leaves its tick on when it goes idle, and the next one, which finds it idle, stops it. So a vCPU that sleeps past the
next tick wakes twice, and the first time on a grid that has nothing to do with what sleeps. Drawn like any other sleep
such a wake-up would move with the scheduler; simulated as a tick it stays where it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vcpulab.twin.sequences import Turn

PERIODS_NS = (10_000_000, 4_000_000, 3_333_333, 1_000_000)
"""Of Linux's kernels, by their CONFIG_HZ."""
_WIDTH = 1 / 100
"""Of the part of a period in which wake-ups are on the grid: timers come late, by what a hypervisor lets them wait."""
_DRIFTS = 500e-6
"""How far a guest's clock and the trace's may go apart, at most."""
_LIFT_LEAST = 5
"""How many times more wake-ups on the grid than by chance."""
_COUNT_LEAST = 8
_SPREAD = 1.7
"""How many times the shortest ticks other ticks take: caches are cold, or steal time is to be accounted for."""
_SHORT = 0.6
"""Ticks are shorter than this part of a turn of another kind: else they cannot be told apart."""


@dataclass(frozen=True)
class Tick:
    """A tick that finds a vCPU idle."""

    period_ns: int
    cpu_ns: int


class Demand(NamedTuple):
    """What a vCPU computes, and how long it then sleeps, whoever else there is."""

    run_ns: int
    sleep_ns: int


class _Grid(NamedTuple):
    period_ns: float
    on: np.ndarray
    """Which wake-ups are on it."""
    lift: float
    """How many times more than by chance."""


def _grid(wakes: np.ndarray, early: np.ndarray, period_ns: int) -> _Grid | None:
    """The grid of that period, give or take what clocks differ, that most of the wake-ups of `early` are on."""
    times = (wakes - wakes[0]).astype(float)
    best = float(period_ns)
    reach, span = _DRIFTS * period_ns, 1e9
    last = times[-1]
    while True:
        # In `span` a grid that is off by a step moves by half of its width.
        step = _WIDTH * period_ns / 2 / max(min(span, last) / period_ns, 1)
        some = times[early & (times <= span)]
        tried = best + np.arange(-int(reach / step) - 1, int(reach / step) + 2) * step
        best = max(tried, key=lambda period: (_densest(some, period)[0], -abs(period - period_ns)))
        if span >= last:
            break
        reach, span = 2 * step, 2 * span
    count, begin = _densest(times[early], best)
    lift = count / max(early.sum() * _WIDTH, 1e-9)
    if count < _COUNT_LEAST or lift < _LIFT_LEAST:
        return None
    return _Grid(best, early & ((times - begin) % best < _WIDTH * best), lift)


def _densest(times: np.ndarray, period: float) -> tuple[int, float]:
    """How many of these times are in the densest part of a period, and where that begins."""
    if not len(times):
        return 0, 0.0
    phases = np.sort(times % period)
    around = np.concatenate([phases, phases + period])
    counts = np.searchsorted(around, phases + _WIDTH * period) - np.arange(len(phases))
    first = int(counts.argmax())
    return int(counts[first]), float(phases[first])


def told(turns: Sequence[Turn]) -> tuple[Tick | None, list[Demand]]:
    """The tick of a vCPU, if it has one that can be told, and what the vCPU wanted besides.

    Where a vCPU waited after a tick for so long that it was to compute before it ran, the tick and that are one turn: its
    sleep ended at some time of the wait, and is put at the length of another sleep that would have ended then.
    """
    plain = [Demand(turn.run_ns, turn.blocked) for turn in turns if not isinstance(turn.blocked, tuple)]
    if len(turns) < 2 * _COUNT_LEAST or len(plain) < len(turns):
        return None, plain
    woke = np.array([turn.woke_ns for turn in turns], np.int64)
    ran = np.array([turn.run_ns for turn in turns], float)
    slept = np.array([0, *(demand.sleep_ns for demand in plain[:-1])], float)
    found = [
        (grid.lift * period / max(PERIODS_NS), period, grid)
        for period in PERIODS_NS
        if (grid := _grid(woke, (slept > 0) & (slept <= (1 + _WIDTH) * period), period)) is not None
    ]
    if not found:
        return None, plain
    _, _, grid = max(found, key=lambda each: each[:2])
    on, others = np.sort(ran[grid.on]), ran[~grid.on]
    shortest = on[len(on) // 50]
    if len(others) == 0:
        return None, plain
    if shortest > _SHORT * others.mean():
        # It waits so long after each that it has something to compute whenever it runs.
        is_tick = np.zeros(len(turns), bool)
        cpu_ns = max(float(np.median(on) - np.median(others)), 1.0)
    else:
        is_tick = grid.on & (ran <= _SPREAD * shortest)
        cpu_ns = float(ran[is_tick].mean())
    tick = Tick(round(grid.period_ns), round(cpu_ns))
    return tick, _without(turns, grid.on, is_tick, tick)


def _without(turns: Sequence[Turn], on: np.ndarray, is_tick: np.ndarray, tick: Tick) -> list[Demand]:
    demands: list[list[int]] = []
    merged: list[tuple[int, int]] = []
    """Which sleeps ended during a wait, and how long that was."""
    for index, turn in enumerate(turns):
        assert isinstance(turn.blocked, int)
        if demands and is_tick[index]:
            # It sleeps on.
            demands[-1][1] += turn.span_ns + turn.blocked
            continue
        run = turn.run_ns
        if demands and on[index] and turn.waited_ns > _WIDTH * tick.period_ns:
            merged.append((len(demands) - 1, turn.waited_ns))
            run = max(run - tick.cpu_ns, 1)
        demands.append([run, turn.blocked])
    censored = {at for at, _ in merged}
    known = [(at, sleep) for at, (_, sleep) in enumerate(demands) if at not in censored]
    places, sleeps = np.array([at for at, _ in known]), np.array([sleep for _, sleep in known])
    for at, waited in merged:
        least = demands[at][1]
        fits = (sleeps > least) & (sleeps <= least + waited)
        if fits.any():
            nearest = np.abs(places[fits] - at).argmin()
            demands[at][1] = int(sleeps[fits][nearest])
        else:
            demands[at][1] = least + waited // 2
    return [Demand(run, sleep) for run, sleep in demands]
