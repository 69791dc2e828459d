"""Recordings of Xen, as a kind of recordings: each is predicted by the twins of all recordings of the same guests."""

import math
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from statistics import fmean, median

from vcpulab._work.progress import Progress, part, report
from vcpulab.errors import RequestError
from vcpulab.results.cache import RunCache
from vcpulab.results.statistics import Interval, paired
from vcpulab_evidence.validation.xen import recording as folders_of
from vcpulab_evidence.validation.xen.agreement import BARS, OWN, THROUGHPUTS, WHAT_IF, Agreement, Change, Held
from vcpulab_evidence.validation.xen.chance import OF_POINTS, Spread, spread
from vcpulab_evidence.validation.xen.recording import Recorded
from vcpulab_evidence.validation.xen.settings import changes
from vcpulab_evidence.validation.xen.twin_runs import Replications, Unit

_READING = 0.1
"""Fraction of the work that is reading."""


class Xen:
    """Recordings of Xen, as a kind of recordings."""

    find = staticmethod(folders_of.find)

    def validate(
        self,
        folders: Sequence[Path],
        *,
        what_if: bool = True,
        store: RunCache | None = None,
        jobs: int = 0,
        progress: Progress | None = None,
    ) -> Agreement:
        """Predicts each recording by the twins of all recordings of the same guests.

        Args:
            folders: the folders of the recordings.
            what_if: also by twins of recordings in other settings.
            store: keeps the results of runs, so that a stopped validation continues from them.
            jobs: runs at a time; 0: one for each processor.
            progress: see `Progress`.

        Raises:
            RecordingError: a recording cannot be read.
            KeyboardInterrupt: the work was stopped.
        """
        store = RunCache(None) if store is None else store
        recordings, skipped = _read(folders, progress)
        pairs = [(a, b) for a in recordings for b in recordings if a.guests == b.guests]
        if not what_if:
            pairs = [(a, b) for a, b in pairs if a.setting.key == b.setting.key]
        units = {(a.folder, b.folder): Unit(a, b) for a, b in pairs}
        measured = _measured(list(units.values()), store, jobs, part(progress, _READING, 1.0))
        by_chance = spread(recordings)
        cells = [
            cell
            for a, b in pairs
            for cell in _held(
                a, b, measured[units[a.folder, b.folder].key], measured[units[a.folder, a.folder].key], by_chance
            )
        ]
        return Agreement(cells, by_chance.apart, [recording.folder for recording in recordings], skipped)


def _read(folders: Sequence[Path], progress: Progress | None) -> tuple[list[Recorded], dict[Path, str]]:
    recordings: list[Recorded] = []
    skipped: dict[Path, str] = {}
    for number, folder in enumerate(folders):
        report(progress, _READING * number / len(folders))
        try:
            recordings.append(folders_of.read(folder))
        except RequestError as error:
            skipped[folder] = str(error)
    return recordings, skipped


def _measured(units: Sequence[Unit], store: RunCache, jobs: int, progress: Progress | None) -> dict[str, Replications]:
    """The results of all runs by key; missing results are measured."""
    by_key = {unit.key: unit.done(store) for unit in units}
    missing = {unit.key: unit for unit in units if by_key[unit.key] is None}
    stop = threading.Event()
    with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        try:
            pending = {pool.submit(unit.measure, lambda _: not stop.is_set()): unit for unit in missing.values()}
            for number, (unit, measured) in enumerate(_as_completed(pending), 1):
                unit.keep(store, measured)
                by_key[unit.key] = measured
                report(progress, number / len(missing))
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise
    return {key: measured for key, measured in by_key.items() if measured is not None}


def _as_completed(pending: Mapping[Future[list[dict[str, float]]], Unit]) -> Iterator[tuple[Unit, Replications]]:
    waiting = set(pending)
    while waiting:
        # Waking up now and then lets an interrupt through.
        done, waiting = wait(waiting, timeout=0.5, return_when=FIRST_COMPLETED)
        for future in done:
            yield pending[future], future.result()


def _held(
    demands: Recorded, setting: Recorded, elsewhere: Replications, own: Replications, by_chance: Spread
) -> Iterator[Held]:
    """The cells of a pair of recordings.

    Args:
        demands: the recording that the twin was made of.
        setting: the recording that the twin is compared with.
        elsewhere: the results of the twin in that recording's setting.
        own: the results of the twin in its own setting.
        by_chance: the effect of chance.
    """
    same = demands.setting.key == setting.setting.key
    order = list(BARS)
    for (thing, metric), recorded in sorted(
        setting.values.items(), key=lambda item: (order.index(item[0][1]), item[0][0])
    ):
        values = list(_values(demands, (own, elsewhere), thing, metric))
        interval = Interval.from_values(values)
        if interval is None or not recorded:
            continue
        scale = 1.0 if metric in OF_POINTS else 100 / recorded
        middle = median(values)
        off, half = scale * (middle - recorded), scale * (interval.half_width or 0.0)
        chance = by_chance.chance_of(setting, thing, metric)
        wide = math.hypot(half, chance.half_width if chance else 0.0)
        before = demands.values.get((thing, metric))
        real = None if same or not before else _recorded_change(demands, setting, thing, metric, by_chance)
        simulated = (
            None
            if real is None
            else _predicted_change(list(_values(demands, (own, own), thing, metric)), values, metric)
        )
        yield Held(
            kind=OWN if same else WHAT_IF,
            guests=demands.kind,
            demands=demands.name,
            setting=setting.name,
            scheduler_before=demands.setting.scheduler,
            scheduler=setting.setting.scheduler,
            changed=" + ".join(changes(demands.setting, setting.setting)),
            thing=thing,
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
            off_rank=setting.rank_off(thing, metric, middle),
            before=before,
            change_recorded=real.by if real else None,
            sign_recorded=real.sign if real else None,
            change_predicted=simulated.by if simulated else None,
            sign_predicted=simulated.sign if simulated else None,
        )


def _values(demands: Recorded, runs: tuple[Replications, Replications], thing: str, metric: str) -> Iterable[float]:
    """A metric of a twin in another setting, in each replication.

    Guests that answer messages count the rounds of one of their twin's applications. Other guests do the same work in
    the same CPU time in any setting, except for the cost of preemptions: as much as they did in the recording.

    Args:
        demands: the recording that the twin was made of.
        runs: the results of the twin in its own setting, and in the other setting.
        thing: domain, or `host`.
        metric: the name of the metric.
    """
    own, elsewhere = runs
    if metric not in THROUGHPUTS:
        return [replication[f"{thing} {metric}"] for replication in elsewhere if f"{thing} {metric}" in replication]
    rate, computed = demands.work_rate.get(thing), demands.computed.get(thing)
    if not rate or not computed:
        return []
    if thing in demands.answering:
        rounds = {
            name: fmean(replication[name] for replication in own)
            for name in own[0]
            if name.startswith(f"{thing} rounds ")
        }
        # The guest counts the rounds of one application: the one with the nearest rate in its twin.
        counted = min(rounds, key=lambda name: abs(rounds[name] - rate))
        if rounds[counted]:
            return [rate / rounds[counted] * replication[counted] for replication in elsewhere]
    return [
        rate / computed * replication[f"{thing} computed"]
        for replication in elsewhere
        if f"{thing} computed" in replication
    ]


def _recorded_change(a: Recorded, b: Recorded, thing: str, metric: str, by_chance: Spread) -> Change:
    before, after = a.values[thing, metric], b.values[thing, metric]
    first, second = by_chance.chance_of(a, thing, metric), by_chance.chance_of(b, thing, metric)
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
