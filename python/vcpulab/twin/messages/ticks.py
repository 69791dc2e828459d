"""The tick of a guest's kernel, told from what its vCPUs did, and taken out of it.

Linux leaves its tick on when it goes idle, and the next one, which finds it idle, stops it. So a vCPU that sleeps
past the next tick wakes twice, and the first time on a grid that has nothing to do with what sleeps. Drawn like any
other sleep such a wake-up would move with the scheduler; simulated as a tick it stays where it is.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import NamedTuple

import numpy as np

from vcpulab.twin.links import Vcpu
from vcpulab.twin.sequences import Turn

PERIODS_NS = (10_000_000, 4_000_000, 3_333_333, 1_000_000)
"""The periods of Linux's ticks: CONFIG_HZ is 100, 250, 300 or 1000."""
_WIDTH = 0.01
"""The width of the grid, as a fraction of a period: a hypervisor delays timers. Assumed."""
_LATE_NS = 50_000
"""The largest further delay: Xen handles timers together that expire within this time (its `timer_slop`)."""
_DRIFTS = 500e-6
"""The largest relative difference between the rates of a guest's clock and the trace's. Assumed."""
_LIFT_LEAST = 5
"""The least ratio of wake-ups on the grid to the number expected by chance. Assumed."""
_COUNT_LEAST = 8
"""The least number of wake-ups on the grid. Assumed."""
_CHANCE_MOST = 0.01
"""The largest probability that as many wake-ups at random times are on one of all grids that are tried. Assumed."""
_OF_MOST = 0.8
"""A grid with at least this fraction of the wake-ups of the best grid is preferred if its period is longer: ticks of
4 ms are also on a grid of 1 ms. Assumed."""
_COST_MOST = 0.1
"""The largest CPU time of a tick, as a fraction of its period. Assumed."""
_OFTEN = 0.1
"""If at least this fraction of a vCPU's sleeps have the same length, that length is the program's choice, and no
timeout that ends at a tick. Assumed."""
_SHORT = 0.6
"""The longest tick, as a fraction of the usual turn: longer ones are indistinguishable from other turns. Assumed."""
_ALIKE = 2
"""The largest ratio of a tick's CPU time to the median of ticks. Assumed."""


@dataclass(frozen=True)
class Tick:
    """A tick that finds a vCPU idle."""

    period_ns: int
    cpu_ns: int
    at_ns: int = 0
    """When one of them was."""
    busy_ns: int = 0
    """CPU time of one that finds the vCPU busy; 0: nothing says."""
    is_alone: bool = True
    """`True`: some ticks had nothing else to do, which shows the cost of a tick."""

    def fields(self) -> dict[str, str]:
        """The fields of a domain."""
        return {
            "idle_tick": f"{self.period_ns}ns",
            "idle_tick_cpu": f"{self.cpu_ns}ns",
            **({"busy_tick_cpu": f"{self.busy_ns}ns"} if self.busy_ns else {}),
            "idle_tick_at": f"{self.at_ns % self.period_ns}ns",
        }


def alike(ticks: Mapping[Vcpu, Tick]) -> dict[Vcpu, Tick]:
    """The ticks, with a common period where periods are about equal: all guests of a host have its clock.

    Where nothing says what a tick costs, it costs what it does elsewhere.
    """
    averaged = {}
    for vcpu, tick in ticks.items():
        near = [neighbor for neighbor in ticks.values() if abs(neighbor.period_ns / tick.period_ns - 1) < _DRIFTS]
        costs = [neighbor.cpu_ns for neighbor in near if neighbor.is_alone]
        averaged[vcpu] = replace(
            tick,
            period_ns=round(median(neighbor.period_ns for neighbor in near)),
            cpu_ns=tick.cpu_ns if tick.is_alone or not costs else round(median(costs)),
        )
    return averaged


class Demand(NamedTuple):
    """The demand of a vCPU: CPU time, and the following sleep, independent of other vCPUs."""

    run_ns: int
    sleep_ns: int
    ticks: int = 0
    """The number of ticks until which the vCPU sleeps, as for timeouts of a kernel; 0: it sleeps for `sleep_ns`."""


class Recognised(NamedTuple):
    """The tick of a vCPU among its turns."""

    tick: Tick
    on: np.ndarray
    """A flag for each turn: it began on the grid."""
    is_tick: np.ndarray
    """A flag for each turn: it was a tick and nothing else."""
    at_tick: np.ndarray
    """A flag for each turn: it began when a tick would be due, after any sleep, so that the tick was stopped."""


class _Grid(NamedTuple):
    period_ns: float
    begin: float
    """When it begins, after the first wake-up."""
    on: np.ndarray
    """A flag for each wake-up: it is on the grid."""
    excess: float
    """The number of wake-ups on the grid in excess of the number expected by chance."""


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
    by_chance = float(early.sum() * _WIDTH)
    grids = (2 * int(_DRIFTS * period_ns / step) + 1) / _WIDTH
    if count < max(_COUNT_LEAST, _LIFT_LEAST * by_chance) or grids * _tail(count, by_chance) > _CHANCE_MOST:
        return None
    grid = _Grid(best, begin, early, count - by_chance)
    return grid._replace(on=early & _is_on(grid, times))


def _tail(count: int, mean: float) -> float:
    """The probability of at least that many events where their number has a Poisson distribution.

    Examples:
        >>> _tail(0, 2.0), round(_tail(1, 2.0), 4), _tail(10, 2.0) < 1e-4
        (1.0, 0.8647, True)
    """
    term = below = math.exp(-mean)
    if not count:
        return 1.0
    for number in range(1, count):
        term *= mean / number
        below += term
    return max(1 - below, 0.0)


def _is_on(grid: _Grid, times: np.ndarray) -> np.ndarray:
    """A flag for each time after the first wake-up: it is on the grid."""
    width = _WIDTH * grid.period_ns
    return np.asarray((times - grid.begin + width / 4) % grid.period_ns < width * 5 / 4 + _LATE_NS)


def _densest(times: np.ndarray, period: float) -> tuple[int, float]:
    """The number of times in the densest part of a period, and the beginning of that part."""
    if not len(times):
        return 0, 0.0
    phases = np.sort(times % period)
    around = np.concatenate([phases, phases + period])
    counts = np.searchsorted(around, phases + _WIDTH * period) - np.arange(len(phases))
    first = int(counts.argmax())
    return int(counts[first]), float(phases[first])


def tick_and_demands(turns: Sequence[Turn]) -> tuple[Tick | None, list[Demand]]:
    """The tick of a vCPU that nobody wakes, if it has one that can be told, and what the vCPU wanted besides.

    Where a vCPU waited after a tick for so long that it was to compute before it ran, the tick and that are one turn:
    its sleep ended at some time of the wait, and is put at the length of another sleep that would have ended then.
    """
    return demands_besides(turns, recognise(turns))


def demands_besides(turns: Sequence[Turn], recognised: Recognised | None) -> tuple[Tick | None, list[Demand]]:
    """The tick of a vCPU and its demands besides, after a search for the tick."""
    if recognised is None:
        return None, [Demand(turn.run_ns, turn.blocked_ns) for turn in turns]
    return recognised.tick, _without(turns, recognised)


def recognise(turns: Sequence[Turn]) -> Recognised | None:
    """The tick of a vCPU, and which of its turns are of it, whoever else was there when it was due."""
    if len(turns) < 2 * _COUNT_LEAST:
        return None
    woke = np.array([turn.woke_ns for turn in turns], np.int64)
    slept = np.array([0, *(turn.blocked_ns for turn in turns[:-1])], float)
    by_time = np.array([True, *(isinstance(turn.blocked, int) for turn in turns[:-1])]) & (slept > 0)
    ran = np.array([turn.run_ns for turn in turns], float)
    # Most ticks are short: among the others they may be too few to be told.
    short = by_time & (ran < _SHORT * ran[by_time].mean()) if by_time.any() else by_time
    for candidates in (short, by_time):
        left = candidates
        while (grid := _longest(woke, slept, left)) is not None and grid.on.any():
            recognised = _of_grid(turns, grid, (woke, slept, ran), by_time)
            if recognised is not None:
                return recognised
            # Something else keeps step with the tick, as a request loop may; the tick itself may be seen besides.
            left = left & ~grid.on
    return None


def _longest(woke: np.ndarray, slept: np.ndarray, by_time: np.ndarray) -> _Grid | None:
    """The grid of the longest period that most of these wake-ups are on."""
    early = {period: by_time & (slept <= (1 + _WIDTH) * period) for period in PERIODS_NS}
    grids = [grid for period in PERIODS_NS if (grid := _grid(woke, early[period], period)) is not None]
    # A grid is also one of each shorter period that goes into its own.
    most = max((grid.excess for grid in grids), default=0)
    return max(
        (grid for grid in grids if grid.excess >= _OF_MOST * most), key=lambda grid: grid.period_ns, default=None
    )


def _of_grid(
    turns: Sequence[Turn], grid: _Grid, times: tuple[np.ndarray, np.ndarray, np.ndarray], by_time: np.ndarray
) -> Recognised | None:
    """The tick on a grid, if it is one. `times`: of each turn, when it woke, and how long it had slept and then ran."""
    woke, slept, ran = times
    at_tick = _is_on(grid, (woke - woke[0]).astype(float))
    all_on = (slept > 0) & (slept <= (1 + _WIDTH) * grid.period_ns) & at_tick
    if all_on.all():
        return None
    least = _apart(np.sort(ran[all_on & by_time]), ran[~all_on])
    if least is None:
        waited = np.array([turn.waited_ns for turn in turns], float)
        apart = (woke - woke[0] - grid.begin + grid.period_ns / 4) % grid.period_ns
        if median(waited[grid.on]) < median(slept[grid.on]) and _spread(apart[grid.on]) >= _spread(slept[grid.on]):
            return None
        # It waits so long after each that it has something to compute whenever it runs.
        is_tick = np.zeros(len(turns), bool)
        cpu_ns = 1.0
    else:
        is_tick = all_on & (ran < least)
        cpu_ns = float(ran[is_tick & by_time].mean())
    if cpu_ns > _COST_MOST * grid.period_ns:
        return None
    at_ns = round(woke[0] + grid.begin)
    tick = Tick(round(grid.period_ns), max(round(cpu_ns), 1), at_ns, is_alone=least is not None)
    return Recognised(tick, all_on, is_tick, at_tick)


def _apart(on: np.ndarray, off_grid: np.ndarray) -> float | None:
    """The shortest turn on the grid that is more than a tick: above the widest gap between them; `None`: all are.

    Args:
        on: turns on the grid, from the shortest on.
        off_grid: all other turns.
    """
    mean, middle = float(off_grid.mean()), float(np.median(on))
    if middle > mean:
        # Most have something to do besides. Of what is far shorter than they are few would be so by chance.
        count = _shortest(on, middle)
        if count >= _COUNT_LEAST and on[count - 1] <= _ALIKE * np.median(on[:count]):
            return float(on[count])
    count = _shortest(on, mean)
    if count == 0:
        return None
    return float(on[count]) if count < len(on) else mean


def _shortest(on: np.ndarray, usual: float) -> int:
    """The number of turns on the grid below the widest gap, among those far shorter than the usual."""
    short = on[on < _SHORT * usual]
    if not len(short):
        return 0
    next_ones = np.append(on[1 : len(short)], on[len(short)] if len(short) < len(on) else usual)
    return int((next_ones / np.maximum(short, 1)).argmax()) + 1


def _spread(times: np.ndarray) -> float:
    """The distance between the 5th and 95th percentiles of times."""
    low, high = np.percentile(times, (5, 95))
    return float(high - low)


def _without(turns: Sequence[Turn], recognised: Recognised) -> list[Demand]:
    tick, on, is_tick, at_tick = recognised
    demands: list[list[int]] = []
    ends: list[int] = []
    """When each of these sleeps ended."""
    at_grid: list[tuple[int, int]] = []
    """Sleeps that seem to end at a tick, and how long after it the vCPU may have been woken from them."""
    for index, turn in enumerate(turns):
        if demands and is_tick[index]:
            # It sleeps on.
            demands[-1][1] += turn.span_ns + turn.blocked_ns
            ends[-1] = turn.woke_ns + turn.span_ns + turn.blocked_ns
            continue
        if demands and at_tick[index]:
            # A tick that was stopped has woken nobody.
            at_grid.append((len(demands) - 1, turn.waited_ns + tick.cpu_ns if on[index] else 0))
        demands.append([turn.run_ns, turn.blocked_ns])
        ends.append(turn.woke_ns + turn.span_ns + turn.blocked_ns)
    unsure = {at for at, _ in at_grid}
    places = np.array([at for at in range(len(demands)) if at not in unsure])
    sleeps = np.array([sleep for at, (_, sleep) in enumerate(demands) if at not in unsure])
    timeouts: list[int] = []
    for at, during in at_grid:
        least = demands[at][1]
        # A timer is due before it wakes anybody: who runs already takes it then.
        fits, alike = (sleeps > least) & (sleeps <= least + during + _LATE_NS), np.abs(sleeps - least) <= _LATE_NS
        # As many sleeps may have ended at the time of a tick by chance.
        if fits.sum() > alike.sum():
            demands[at][1] = int(sleeps[fits][np.abs(places[fits] - at).argmin()])
        elif alike.sum() < _OFTEN * len(sleeps) and during <= _LATE_NS + tick.cpu_ns:
            timeouts.append(at)
    ticks = {at: _ticks(ends[at], demands[at][1], tick) for at in timeouts}
    if len(timeouts) < max(_COUNT_LEAST, _LIFT_LEAST * len(demands) * (_WIDTH + _LATE_NS / tick.period_ns)):
        # So many of any sleeps end at the time of a tick.
        ticks = {}
    return [Demand(run, sleep, ticks.get(at, 0)) for at, (run, sleep) in enumerate(demands)]


def _ticks(end_ns: int, sleep_ns: int, tick: Tick) -> int:
    """The number of ticks in a sleep, including the one that ended it."""
    since = (end_ns - sleep_ns - tick.at_ns) % tick.period_ns
    return max(1, round((since + sleep_ns) / tick.period_ns))
