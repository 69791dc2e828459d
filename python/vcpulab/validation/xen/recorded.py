"""A recording of a Xen host with what was set up for it: a folder, as `make real-xen` writes it.

`trace.bin` (perhaps compressed), `sched.txt` (`xl sched-credit` and the like), `list0.txt`, `vcpus.txt`, `info.txt`,
each guest's `NAME.cfg`, `guests.txt` (what guests say of themselves), and perhaps `experiment.toml`.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from vcpulab.errors import RecordingError
from vcpulab.formats import Recording, folders, xl_cfg
from vcpulab.formats.sources import text_of
from vcpulab.twin.build import read as read_part
from vcpulab.twin.twin import Twin
from vcpulab.validation.xen.settings import Setting, setting_of

TRACES = ("trace.bin", "trace.bin.xz", "trace.bin.gz", "trace.bin.bz2")
NEEDED = "sched.txt"
EXPERIMENT = "experiment.toml"
LISTINGS = ("list0.txt", "vcpus.txt", NEEDED, "pools.txt", "info.txt")
PARTS = {"wait_median": 0.5, "wait_p90": 0.9}
"""Percentiles of waits, by metric."""
WAKES_LEAST = 30
"""Of fewer wake-ups no percentile is taken: the tenth part would be two or three of them."""

_GOOD_TO = 0.01

Values = Mapping[tuple[str, str], float]
"""Domain, or `host`, and metric, to value."""

_OF_A_RUN = {"wt", "sec", "seed", "at", "console", "quiet", "rdinit", "root"}
"""Words of a guest's kernel that say when and how it is started, not what it does."""
_GUEST = re.compile(r"G (?P<name>\S+) (?P<said>.*)")
_SAID = re.compile(r"(?P<name>\w+)=(?P<value>[0-9]+(?:\.[0-9]+)?)")


@dataclass(frozen=True)
class Recorded:
    """A recording, read."""

    folder: Path
    twin: Twin
    whole: Recording
    setting: Setting
    guests: str
    """What recordings of the same guests have in common."""
    kind: str
    """What these guests are called."""
    work_rate: Mapping[str, float] = field(default_factory=dict)
    """Of each guest that counts its work: how much of it was done in a second."""
    loops: frozenset[str] = frozenset()
    """The guests of request loops: who asks, and who is asked."""
    seed: int | None = None
    """Of the boot, where it says one."""

    @property
    def name(self) -> str:
        """The folder's."""
        return self.folder.name

    @property
    def boot(self) -> tuple[str, ...]:
        """The same for recordings of one boot: scheduler and release are chosen when a host boots."""
        return self.guests, self.setting.scheduler, str(self.setting.host.get("generation")), str(self.seed)

    @cached_property
    def document(self) -> dict[str, Any]:
        """The twin, as tables."""
        return self.twin.scenario.to_dict()

    @cached_property
    def values(self) -> Values:
        """What was measured."""
        found = dict(_values(self.whole, self.twin))
        rates = {name: rate for name, rate in self.work_rate.items() if rate}
        return found | {(name, "loops" if name in self.loops else "throughput"): rate for name, rate in rates.items()}

    @cached_property
    def halves(self) -> tuple[Values, Values]:
        """The same of each half of it, but for what guests count."""
        first, second = (
            dict(_values(read_part(self.twin.sources, part), self.twin, wakes_least=WAKES_LEAST // 2))
            for part in ((0.0, 0.5), (0.5, 1.0))
        )
        return first, second

    @property
    def resume_ns(self) -> int:
        """CPU time that each preemption costs a vCPU, as far as the recording says, ns."""
        return int(self.document["host"]["costs"].get("resume_ns", 0))

    @cached_property
    def answering(self) -> frozenset[str]:
        """The domains whose twins answer messages."""
        events = {
            name: (event for app in table.get("app", []) for phase in app.get("phase", []) for event in phase["event"])
            for name, table in self.document["domain"].items()
        }
        return frozenset(name for name, its in events.items() if any("await" in event for event in its))

    @cached_property
    def computed(self) -> Mapping[str, float]:
        """Of each domain: its share without what preemptions cost it, % of a pCPU."""
        found: dict[str, float] = {}
        for vcpu in self.whole.summary["vcpus"]:
            name = self.twin.sources.name(vcpu["domain"])
            computed_ns = vcpu["running_ns"] - self.resume_ns * vcpu["preempted"]
            found[name] = found.get(name, 0.0) + 100 * computed_ns / self.span_ns
        return found

    def rank_off(self, of: str, metric: str, predicted_us: float) -> float | None:
        """How many of 100 of a domain's waits lie between a percentile and what was predicted for it.

        Returns:
            Points of 100; `None`: the metric is no percentile of waits.
        """
        if metric not in PARTS:
            return None
        times, ranks = self._waits[of]
        # Recorded percentiles are good to 1 %.
        low, high = np.interp([predicted_us * (1 - _GOOD_TO), predicted_us * (1 + _GOOD_TO)], times, ranks)
        return 100 * float(max(low - PARTS[metric], PARTS[metric] - high, 0.0))

    @cached_property
    def _waits(self) -> Mapping[str, tuple[np.ndarray, np.ndarray]]:
        """Of each domain: waits, µs, ascending, and the part of all that are no longer."""
        found: dict[str, list[tuple[float, float]]] = {}
        for vcpu in self.whole.summary["vcpus"]:
            found.setdefault(self.twin.sources.name(vcpu["domain"]), []).extend(_weighted(vcpu["wake_latency"]))
        ordered = {of: np.array(sorted(waits)).T for of, waits in found.items() if waits}
        return {of: (times / 1e3, np.cumsum(weights) / weights.sum()) for of, (times, weights) in ordered.items()}

    @property
    def span_ns(self) -> int:
        """How long it is."""
        return int(self.whole.summary["span_ns"])


def is_recording(folder: Path) -> bool:
    """Whether a folder holds such a recording."""
    return (folder / NEEDED).exists() and any((folder / name).exists() for name in TRACES)


def find(path: Path) -> list[Path]:
    """The recordings at or below a path, sorted.

    Raises:
        RecordingError: folders are nested too deep.
    """
    return folders.find(path, is_recording)


def read(folder: Path) -> Recorded:
    """Reads a recording.

    Raises:
        RecordingError: a file does not hold what it should.
        RequestError: no twin can be made of it.
        OSError: a file cannot be read.
    """
    # What else lies there, such as messages of the console, says nothing of the setting.
    twin = Twin(*(folder / name for name in (*TRACES, *LISTINGS) if (folder / name).exists()))
    said = _experiment(folder / EXPERIMENT)
    programs = {path.stem: _program(path) for path in sorted(folder.glob("*.cfg"))}
    kind = said.get("guests_kind")
    return Recorded(
        folder,
        twin,
        read_part(twin.sources),
        setting_of(twin),
        f"kind {kind}" if kind else "; ".join(f"{name}: {does}" for name, (does, _) in programs.items()),
        kind or ", ".join(programs),
        _work_rates(folder / "guests.txt", programs, said.get("seconds")),
        _loops({name: words for name, (_, words) in programs.items()}),
        said.get("seed"),
    )


_SAYS = {
    "guests_kind": (str, "a text, the same for the same guests"),
    "seconds": (int, "a whole number"),
    "seed": (int, "a whole number, the same for what was recorded in one boot"),
}


def _experiment(path: Path) -> dict[str, Any]:
    """What `experiment.toml` says of a recording, if it is there."""
    if not path.exists():
        return {}
    try:
        said = tomllib.loads(text_of(path))
    except tomllib.TOMLDecodeError as error:
        raise RecordingError(f"{path}: {error}") from None
    for name, (kind, allowed) in _SAYS.items():
        if name in said and not isinstance(said[name], kind):
            raise RecordingError(f"{path}: {name}: found {said[name]!r}; allowed: {allowed}")
    return said


def _program(path: Path) -> tuple[str, dict[str, str]]:
    """What a guest does, in words that do not depend on the setting, and all words of its kernel's command line."""
    settings = xl_cfg.read_cfg(path)
    words = dict(word.partition("=")[::2] for word in str(settings.get("extra", "")).split())
    does = [f"{word}={value}" for word, value in sorted(words.items()) if word not in _OF_A_RUN]
    return f"{settings.get('vcpus', 1)} vCPUs, {' '.join(does)}", words


def _loops(programs: Mapping[str, Mapping[str, str]]) -> frozenset[str]:
    """Who asks another over the network, and who is asked, by the words of `make real-xen`'s guests."""
    asked = {words["ask"] for words in programs.values() if "ask" in words}
    return frozenset(name for name, words in programs.items() if "ask" in words or words.get("adr") in asked)


def _work_rates(
    path: Path, programs: Mapping[str, tuple[str, Mapping[str, str]]], window_s: int | None
) -> dict[str, float]:
    """Of each guest that says how often it did its work: how often a second, in all the time that it says it of.

    Args:
        path: `guests.txt`.
        programs: by guest: what it does, and the words of its kernel's command line.
        window_s: seconds of that time; by default as long as its command line says that it works.
    """
    if not path.exists():
        return {}
    rates = {}
    for line in text_of(path).splitlines():
        match = _GUEST.fullmatch(line.strip())
        if match is None or match["name"] not in programs:
            continue
        said = {one["name"]: float(one["value"]) for one in _SAID.finditer(match["said"])}
        worked = programs[match["name"]][1].get("sec", "")
        seconds = window_s or (int(worked) if worked.isdecimal() else 0)
        if "iters" in said and seconds:
            rates[match["name"]] = said["iters"] / seconds
    return rates


def _values(
    recording: Recording, twin: Twin, *, wakes_least: int = WAKES_LEAST
) -> Iterator[tuple[tuple[str, str], float]]:
    summary = recording.summary
    yield ("host", "switches"), sum(pcpu["switches_per_s"] for pcpu in summary["pcpus"])
    by_domain: dict[str, list[Mapping[str, Any]]] = {}
    for vcpu in summary["vcpus"]:
        by_domain.setdefault(twin.sources.name(vcpu["domain"]), []).append(vcpu)
    for name, vcpus in by_domain.items():
        yield (name, "share"), 100 * sum(vcpu["running_ns"] for vcpu in vcpus) / max(summary["span_ns"], 1)
        waits = [vcpu["wake_latency"] for vcpu in vcpus if vcpu["wake_latency"]["count"]]
        if sum(wait["count"] for wait in waits) >= wakes_least:
            for metric, part in PARTS.items():
                yield (name, metric), _quantile(waits, part) / 1e3


def _weighted(wait: Mapping[str, Any]) -> Iterator[tuple[float, float]]:
    """The quantiles of a vCPU's waits, ns, and for how many waits each stands."""
    quantiles = wait["quantiles_ns"] if wait["count"] else []
    yield from ((time, wait["count"] / len(quantiles)) for time in quantiles)


def _quantile(waits: list[Mapping[str, Any]], part: float) -> float:
    """A quantile of the waits of several vCPUs together, from the quantiles of each."""
    if len(waits) == 1:
        return float(waits[0]["p50_ns" if part == 0.5 else "p90_ns"])
    each = sorted(one for wait in waits for one in _weighted(wait))
    rest = part * sum(weight for _, weight in each)
    for time, weight in each:
        rest -= weight
        if rest <= 0:
            return float(time)
    return float(each[-1][0])
