"""Recordings of Xen, as a kind of recordings: what is predicted of each by the twins of all others of its guests."""

import math
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from statistics import fmean, median

from vcpulab.errors import RequestError
from vcpulab.results.cache import RunCache
from vcpulab.results.statistics import Interval, paired
from vcpulab.validation.xen import recorded as folders_of
from vcpulab.validation.xen.chance import OF_POINTS, Spread, spread
from vcpulab.validation.xen.judged import BARS, OWN, THROUGHPUTS, WHAT_IF, Agreement, Change, Held
from vcpulab.validation.xen.predicted import Replications, Unit
from vcpulab.validation.xen.recorded import Recorded
from vcpulab.validation.xen.settings import changes

_READING = 0.1
"""The part of the work that reading is."""


class Xen:
    """Recordings of Xen, as a kind of recordings."""

    find = staticmethod(folders_of.find)

    def validate(
        self,
        found: Sequence[Path],
        *,
        what_if: bool = True,
        store: RunCache | None = None,
        jobs: int = 0,
        progress: Callable[[float], bool | None] = lambda _: True,
    ) -> Agreement:
        """Predicts each recording by the twins of all of the same guests.

        Args:
            found: the recordings.
            what_if: also by those of recordings in other settings.
            store: where what runs measured is kept, so that an ended validation goes on where it stopped.
            jobs: runs at a time; 0: one for each processor.
            progress: takes the fraction done; false ends the work.

        Raises:
            RecordingError: one cannot be read.
            KeyboardInterrupt: the work was ended.
        """
        store = RunCache(None) if store is None else store
        recordings, skipped = _read(found, progress)
        pairs = [(a, b) for a in recordings for b in recordings if a.guests == b.guests]
        if not what_if:
            pairs = [(a, b) for a, b in pairs if a.setting.key == b.setting.key]
        units = {(a.folder, b.folder): Unit(a, b) for a, b in pairs}
        measured = _measured(list(units.values()), store, jobs, _rest(progress, _READING))
        by_chance = spread(recordings)
        cells = [
            cell
            for a, b in pairs
            for cell in _held(
                a, b, measured[units[a.folder, b.folder].key], measured[units[a.folder, a.folder].key], by_chance
            )
        ]
        return Agreement(cells, by_chance.apart, [one.folder for one in recordings], skipped)


def _read(found: Sequence[Path], progress: Callable[[float], bool | None]) -> tuple[list[Recorded], dict[Path, str]]:
    recordings: list[Recorded] = []
    skipped: dict[Path, str] = {}
    for number, folder in enumerate(found):
        _tell(progress, _READING * number / len(found))
        try:
            recordings.append(folders_of.read(folder))
        except RequestError as error:
            skipped[folder] = str(error)
    return recordings, skipped


def _rest(progress: Callable[[float], bool | None], begin: float) -> Callable[[float], bool | None]:
    return lambda fraction: progress(begin + (1 - begin) * fraction)


def _measured(
    units: Sequence[Unit], store: RunCache, jobs: int, progress: Callable[[float], bool | None]
) -> dict[str, Replications]:
    """What all runs measure, by key; those that were not run before are."""
    found = {unit.key: unit.done(store) for unit in units}
    missing = {unit.key: unit for unit in units if found[unit.key] is None}
    stop = threading.Event()
    with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        try:
            pending = {pool.submit(unit.measure, lambda _: not stop.is_set()): unit for unit in missing.values()}
            for number, (unit, measured) in enumerate(_as_completed(pending), 1):
                unit.keep(store, measured)
                found[unit.key] = measured
                _tell(progress, number / len(missing))
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise
    return {key: measured for key, measured in found.items() if measured is not None}


def _tell(progress: Callable[[float], bool | None], fraction: float) -> None:
    if progress(fraction) is False:
        raise KeyboardInterrupt


def _as_completed(pending: Mapping[Future[list[dict[str, float]]], Unit]) -> Iterator[tuple[Unit, Replications]]:
    waiting = set(pending)
    while waiting:
        # Waking up now and then lets an interrupt through.
        done, waiting = wait(waiting, timeout=0.5, return_when=FIRST_COMPLETED)
        for future in done:
            yield pending[future], future.result()


def _held(
    demands: Recorded, setting: Recorded, there: Replications, own: Replications, by_chance: Spread
) -> Iterator[Held]:
    """The cells of one pair.

    Args:
        demands: the recording that the twin was made of.
        setting: the one that it is held against.
        there: what the twin does in the setting of that.
        own: what it does in its own.
        by_chance: what chance gives.
    """
    same = demands.setting.key == setting.setting.key
    order = list(BARS)
    for (of, metric), recorded in sorted(setting.values.items(), key=lambda one: (order.index(one[0][1]), one[0][0])):
        values = list(_values(demands, (own, there), of, metric))
        interval = Interval.from_values(values)
        if interval is None or not recorded:
            continue
        scale = 1.0 if metric in OF_POINTS else 100 / recorded
        middle = median(values)
        off, half = scale * (middle - recorded), scale * (interval.half_width or 0.0)
        chance = by_chance.of(setting, of, metric)
        wide = math.hypot(half, chance.half_width if chance else 0.0)
        before = demands.values.get((of, metric))
        real = None if same or not before else _recorded_change(demands, setting, of, metric, by_chance)
        simulated = (
            None if real is None else _predicted_change(list(_values(demands, (own, own), of, metric)), values, metric)
        )
        yield Held(
            kind=OWN if same else WHAT_IF,
            guests=demands.kind,
            demands=demands.name,
            setting=setting.name,
            scheduler_before=demands.setting.scheduler,
            scheduler=setting.setting.scheduler,
            changed=" + ".join(changes(demands.setting, setting.setting)),
            of=of,
            metric=metric,
            recorded=recorded,
            predicted=middle,
            predicted_mean=interval.mean,
            half_width=interval.half_width or 0.0,
            off=off,
            off_mean=scale * (interval.mean - recorded),
            chance=chance.half_width if chance else None,
            evidence=chance.evidence if chance else "",
            off_low=off - wide,
            off_high=off + wide,
            off_rank=setting.rank_off(of, metric, middle),
            before=before,
            change_recorded=real.by if real else None,
            sign_recorded=real.sign if real else None,
            change_predicted=simulated.by if simulated else None,
            sign_predicted=simulated.sign if simulated else None,
        )


def _values(demands: Recorded, runs: tuple[Replications, Replications], of: str, metric: str) -> Iterable[float]:
    """A metric in each replication of what a twin does elsewhere.

    Guests that answer messages do what they count in rounds of one of their twin's applications. Others do the same
    work in the same CPU time whatever the setting, but for what preemptions cost them: so much as they did where they
    were recorded.

    Args:
        demands: the recording that the twin was made of.
        runs: what it does in its own setting, and elsewhere.
        of: domain, or `host`.
        metric: which.
    """
    own, there = runs
    if metric not in THROUGHPUTS:
        return [one[f"{of} {metric}"] for one in there if f"{of} {metric}" in one]
    rate, computed = demands.work_rate.get(of), demands.computed.get(of)
    if not rate or not computed:
        return []
    if of in demands.answering:
        rounds = {name: fmean(one[name] for one in own) for name in own[0] if name.startswith(f"{of} rounds ")}
        # What it counts is one of the things that it does: that which its twin does as often.
        counted = min(rounds, key=lambda name: abs(rounds[name] - rate))
        if rounds[counted]:
            return [rate / rounds[counted] * one[counted] for one in there]
    return [rate / computed * one[f"{of} computed"] for one in there if f"{of} computed" in one]


def _recorded_change(a: Recorded, b: Recorded, of: str, metric: str, by_chance: Spread) -> Change:
    before, after = a.values[of, metric], b.values[of, metric]
    first, second = by_chance.of(a, of, metric), by_chance.of(b, of, metric)
    if metric in OF_POINTS:
        scale, ratio = 1.0, 1.0
    else:
        scale, ratio = 100 / before, after / before
    wide = None if first is None or second is None else math.hypot(first.half_width, ratio * second.half_width)
    return Change(scale * (after - before), wide)


def _predicted_change(before: Sequence[float], after: Sequence[float], metric: str) -> Change | None:
    difference = paired(after, before) if len(before) == len(after) else None
    if difference is None:
        return None
    mean = sum(before) / len(before)
    scale = 1.0 if metric in OF_POINTS else 100 / mean if mean else 0.0
    return Change(scale * difference.interval.mean, scale * (difference.interval.half_width or 0.0))
