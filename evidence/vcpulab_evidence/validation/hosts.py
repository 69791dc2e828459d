"""Recordings of hosts with any number of CPUs: twins that have a domain for each thread, compared with recordings.

Recordings of one setting are in folders whose names differ only in a number at the end: `NAME-1`, `NAME-2`. A twin of
each is compared with all of them. The largest difference between two of these recordings is their noise, and the limit
of the error. Of a setting that was recorded once, the noise is the difference between the halves over √2: halves have
twice the variance of whole recordings.

The CPUs on which threads start are chance, and decide for seconds what threads get. So a prediction is the median of
runs in which threads start in different orders, and its range is that of these runs.
"""

import math
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import median

from vcpulab import formats
from vcpulab._work.progress import Progress, part, report
from vcpulab.errors import VcpulabError
from vcpulab.formats import Recording, folders, linux_folder
from vcpulab.results.run import Run, run
from vcpulab.scenario.scenario import Scenario
from vcpulab.twin import build, placement
from vcpulab.twin.conservation import in_other_orders
from vcpulab.twin.placement import Placement
from vcpulab.twin.scoring import pairings, span_ns
from vcpulab.twin.sources import Sources, gather
from vcpulab_evidence.validation.report import ANOTHER, OWN, Cell, Comparison

WAKES_LEAST = 20
"""The least number of wake-ups of a thread in each recording of a setting: of 20, two are above the 90th percentile.
Assumed."""
_NUMBER = re.compile(r"-\d+$")
_Key = tuple[str, str]
"""Thread or `host`, and metric."""


@dataclass(frozen=True)
class Metric:
    """A metric of a thread, or of the host."""

    name: str
    unit: str
    off_unit: str
    """The unit of errors and noise: the unit of the metric, `points` of a percentage, or `%` of the recorded value."""
    of_emulated: bool = False
    """`True`: emulated CPUs, which run in turn, have it as real CPUs do."""

    def off(self, predicted: float, recorded: float) -> float:
        """The error, in its unit."""
        difference = predicted - recorded
        if self.off_unit != "%" or not difference:
            return difference
        return 100 * difference / recorded if recorded else math.inf


_OF_TWINS = {
    "gotten": Metric("share", "% of a CPU", "points", of_emulated=True),
    "executions": Metric("switches", "1/s", "%"),
    "switches": Metric("switches", "1/s", "%"),
    "migrations": Metric("migrations", "1/s", "1/s"),
    "wake_p50": Metric("wait_median", "µs", "%"),
    "wake_p90": Metric("wait_p90", "µs", "%"),
}
"""The metrics by their names as metrics of twins."""
_ON_MAIN_CPU = Metric("on_main_cpu", "% of the time", "points", of_emulated=True)
_BESIDE = Metric("beside", "threads", "threads", of_emulated=True)
METRICS: Mapping[str, Metric] = {metric.name: metric for metric in (*_OF_TWINS.values(), _ON_MAIN_CPU, _BESIDE)}
"""The metrics by name."""


@dataclass(frozen=True)
class _Part:
    """A recording, or a half of it."""

    recording: Recording
    placements: Mapping[str, Placement]
    """The placement of each thread."""


class HostRecording:
    """A recording of a host, and its twin.

    Args:
        folder: the files of the recording.

    Raises:
        RequestError: the folder has not one trace.
        RecordingError: a file holds something else.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        sources = gather([folder]).with_threads()
        roles = sources.roles.by_thread()
        self.sources: Sources = replace(sources, roles=roles, names=roles.names())
        """The files, each vCPU as a domain."""

    @property
    def setting(self) -> Path:
        """The folder without the number of the run."""
        return self.folder.with_name(_NUMBER.sub("", self.folder.name))

    @property
    def is_emulated(self) -> bool:
        """`True`: the CPUs were emulated, and ran in turn."""
        return linux_folder.is_recording(self.folder)

    @property
    def scheduler(self) -> str:
        """The scheduler of the twin, and its generation."""
        host = self.twin.written()["host"]
        return f"{host['scheduler']} {host['generation']}"

    @property
    def threads(self) -> list[str]:
        """The names of the vCPUs, as domains."""
        return [vm for vm in self.sources.roles.vms if vm in self.sources.names.values()]

    @cached_property
    def whole(self) -> _Part:
        """All of it."""
        return self._part(0.0, 1.0)

    @cached_property
    def halves(self) -> tuple[_Part, _Part]:
        """Its halves."""
        return self._part(0.0, 0.5), self._part(0.5, 1.0)

    @cached_property
    def twin(self) -> Scenario:
        """The scenario that demands what its threads did."""
        with tempfile.TemporaryDirectory() as scratch:
            recording = self.whole.recording
            events = build.read_events(self.sources, (0.0, 1.0), recording, Path(scratch, "events.arrow"))
            return build.make(self.sources, recording, events=events).scenario

    @cached_property
    def runs(self) -> list[Run]:
        """Runs of the twin, in each of which threads start in another order."""
        lasts = self.twin.change({"run.duration": f"{span_ns(self.whole.recording)}ns"})
        return [run(scenario, decisions=True) for scenario in in_other_orders(lasts)]

    def _part(self, begin: float, end: float) -> _Part:
        with tempfile.TemporaryDirectory() as scratch:
            events = Path(scratch, "events.arrow")
            recording = build.read(self.sources, (begin, end), events=events)
            names = {
                (thread.domain, thread.vcpu): self.sources.name(thread.domain)
                for thread in self.sources.threads
                if not self.sources.is_daemon(thread.domain)
            }
            placements = placement.recorded(events, names)
        return _Part(recording, {names[vcpu]: placed for vcpu, placed in placements.items()})


class Hosts:
    """Recordings of hosts, as a kind of recordings."""

    def find(self, path: Path) -> list[Path]:
        """The recordings at or below a path."""
        return folders.find(path, _is_recording)

    def validate(
        self, paths: Sequence[Path], progress: Progress | None = None, *, what_if: bool = True
    ) -> tuple[list[Comparison], dict[Path, str]]:
        """Predicts recordings from their own demands, and from those of others of the same setting.

        Args:
            paths: the folders of recordings.
            progress: see `Progress`.
            what_if: also predict recordings from the demands of others.

        Returns:
            The comparisons, and the recordings that cannot be predicted with the reason.
        """
        skipped: dict[Path, str] = {}
        settings: dict[Path, list[HostRecording]] = {}
        for number, path in enumerate(paths):
            report(progress, number / len(paths) / 2)
            try:
                recording = HostRecording(path)
                _ = recording.twin
            except VcpulabError as error:
                skipped[path] = str(error)
            else:
                settings.setdefault(recording.setting, []).append(recording)
        comparisons: list[Comparison] = []
        for number, recordings in enumerate(settings.values()):
            within = part(progress, 0.5 + number / len(settings) / 2, 0.5 + (number + 1) / len(settings) / 2)
            comparisons += _compared(recordings, within)
        shown = [comparison for comparison in comparisons if what_if or comparison.kind == OWN]
        return sorted(shown, key=lambda comparison: comparison.kind != OWN), skipped


def _is_recording(folder: Path) -> bool:
    traces = (folder / name for name in linux_folder.TRACES)
    has_trace = (folder / formats.THREADS).exists() and any(trace.exists() for trace in traces)
    return has_trace and not linux_folder.is_recording(folder)


def _compared(recordings: Sequence[HostRecording], progress: Progress | None) -> Iterator[Comparison]:
    """Each recording of a setting, predicted from the demands of each."""
    of_runs = [_recorded(recording, recording.whole) for recording in recordings]
    alone = recordings[0] if len(recordings) == 1 else None
    again = of_runs if alone is None else [_recorded(alone, half) for half in alone.halves]
    scale = 1.0 if alone is None else math.sqrt(2)
    for number, demands in enumerate(recordings):
        report(progress, number / len(recordings))
        for target, recorded in zip(recordings, of_runs, strict=True):
            simulated = _simulated(demands, target)
            cells = []
            for key, value in recorded.items():
                values = [each[key] for each in again if key in each]
                if key in simulated and len(values) == len(again):
                    noise = (max(values) - min(values)) / scale
                    cells.append(_cell(key, value, simulated[key], noise))
            kind = OWN if demands is target else ANOTHER
            yield Comparison(demands.folder, target.folder, demands.scheduler, cells, kind)


def _recorded(recording: HostRecording, measured: _Part) -> dict[_Key, float]:
    """The values of a recording, or of a half of it."""
    values: dict[_Key, float] = {}
    for pairing in pairings(recording.sources, measured.recording, recording.runs[0]):
        metric = _OF_TWINS.get(pairing.metric.name)
        few = 0 < pairing.count < WAKES_LEAST
        if metric is not None and not few and not pairing.is_switching:
            values[pairing.place, metric.name] = pairing.recorded
    for thread, placed in measured.placements.items():
        values[thread, _ON_MAIN_CPU.name] = placed.on_main_cpu
        values[thread, _BESIDE.name] = placed.beside
    return {key: value for key, value in values.items() if _has(recording, METRICS[key[1]])}


def _has(recording: HostRecording, metric: Metric) -> bool:
    return metric.of_emulated or not recording.is_emulated


def _simulated(demands: HostRecording, target: HostRecording) -> dict[_Key, list[float]]:
    """The values of each run of a twin, as the target's are measured."""
    values: dict[_Key, list[float]] = {}
    for done in demands.runs:
        for pairing in pairings(target.sources, target.whole.recording, done):
            metric = _OF_TWINS.get(pairing.metric.name)
            if metric is not None:
                values.setdefault((pairing.place, metric.name), []).extend(pairing.simulated)
        [placements] = placement.simulated(done, demands.threads)
        for thread, placed in placements.items():
            values.setdefault((thread, _ON_MAIN_CPU.name), []).append(placed.on_main_cpu)
            values.setdefault((thread, _BESIDE.name), []).append(placed.beside)
    return values


def _cell(key: _Key, recorded: float, simulated: Sequence[float], noise: float) -> Cell:
    thread, name = key
    metric, predicted = METRICS[name], median(simulated)
    limit = abs(metric.off(recorded + noise, recorded))
    off = metric.off(predicted, recorded)
    least, most = min(simulated), max(simulated)
    return Cell(
        thread,
        name,
        metric.unit,
        recorded,
        predicted,
        (least, most),
        off,
        metric.off_unit,
        f"{limit:.2g} {metric.off_unit}",
        abs(off) <= limit,
        least <= recorded <= most,
        limit,
    )
