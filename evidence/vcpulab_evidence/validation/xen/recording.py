"""A recording of a Xen host with its setting: a folder, as `make real-xen` writes it.

`trace.bin` (perhaps compressed), `sched.txt` (`xl sched-credit` and the like), `list0.txt`, `vcpus.txt`, `info.txt`,
each guest's `NAME.cfg`, `guests.txt` (the guests' own reports), and perhaps `experiment.toml`.
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
from vcpulab_evidence.validation.xen.settings import Setting, setting_of

TRACES = ("trace.bin", "trace.bin.xz", "trace.bin.gz", "trace.bin.bz2")
NEEDED = "sched.txt"
EXPERIMENT = "experiment.toml"
LISTINGS = ("list0.txt", "vcpus.txt", NEEDED, "pools.txt", "info.txt")
PARTS = {"wait_median": 0.5, "wait_p90": 0.9}
"""Percentiles of waits, by metric."""
WAKES_LEAST = 30
"""Minimum number of wake-ups for a percentile: a tenth of fewer would be two or three of them."""

_GOOD_TO = 0.01

Values = Mapping[tuple[str, str], float]
"""Values by domain (or `host`) and metric."""

_OF_A_RUN = {"wt", "sec", "seed", "at", "console", "quiet", "rdinit", "root"}
"""Words of a guest's kernel command line about its start, not its work."""
_GUEST = re.compile(r"G (?P<name>\S+) (?P<values>.*)")
_VALUE = re.compile(r"(?P<name>\w+)=(?P<value>[0-9]+(?:\.[0-9]+)?)")


@dataclass(frozen=True)
class Recorded:
    """A recording, read."""

    folder: Path
    twin: Twin
    whole: Recording
    setting: Setting
    guests: str
    """The work of the guests: the same text for recordings of the same guests."""
    kind: str
    """The name of this kind of guests."""
    work_rate: Mapping[str, float] = field(default_factory=dict)
    """Units of work per second of each guest that counts its work."""
    loops: frozenset[str] = frozenset()
    """The guests of request loops: clients and servers."""
    seed: int | None = None
    """The seed of the boot, if the recording has one."""

    @property
    def name(self) -> str:
        """The name of the folder."""
        return self.folder.name

    @property
    def boot(self) -> tuple[str, ...]:
        """A key of the boot: scheduler and release are chosen when a host boots."""
        return self.guests, self.setting.scheduler, str(self.setting.host.get("generation")), str(self.seed)

    @cached_property
    def values(self) -> Values:
        """The measured values."""
        measured = dict(_values(self.whole, self.twin))
        rates = {name: rate for name, rate in self.work_rate.items() if rate}
        return measured | {
            (name, "loops" if name in self.loops else "throughput"): rate for name, rate in rates.items()
        }

    @cached_property
    def halves(self) -> tuple[Values, Values]:
        """The measured values of each half of the recording, without the guests' counts."""
        first, second = (
            dict(_values(read_part(self.twin.sources, part), self.twin, wakes_least=WAKES_LEAST // 2))
            for part in ((0.0, 0.5), (0.5, 1.0))
        )
        return first, second

    @property
    def resume_ns(self) -> int:
        """CPU time that each preemption costs a vCPU, ns; 0 if the recording does not show it."""
        return self.twin.scenario.host.costs.resume_ns

    @cached_property
    def answering(self) -> frozenset[str]:
        """The domains whose twins answer messages."""
        return frozenset(
            name
            for name, domain in self.twin.scenario.domains.items()
            if any(event.await_ is not None for app in domain.apps for phase in app.phases for event in phase.events)
        )

    @cached_property
    def computed(self) -> Mapping[str, float]:
        """The share of each domain without the cost of preemptions, % of a pCPU."""
        shares: dict[str, float] = {}
        for vcpu in self.whole.summary["vcpus"]:
            name = self.twin.sources.name(vcpu["domain"])
            computed_ns = vcpu["running_ns"] - self.resume_ns * vcpu["preempted"]
            shares[name] = shares.get(name, 0.0) + 100 * computed_ns / self.span_ns
        return shares

    def rank_off(self, domain: str, metric: str, predicted_us: float) -> float | None:
        """Percentage of a domain's waits between a recorded percentile and its prediction.

        Returns:
            Points of 100; `None`: the metric is no percentile of waits.
        """
        if metric not in PARTS:
            return None
        times, ranks = self._waits[domain]
        # Recorded percentiles are good to 1 %.
        low, high = np.interp([predicted_us * (1 - _GOOD_TO), predicted_us * (1 + _GOOD_TO)], times, ranks)
        return 100 * float(max(low - PARTS[metric], PARTS[metric] - high, 0.0))

    @cached_property
    def _waits(self) -> Mapping[str, tuple[np.ndarray, np.ndarray]]:
        """The waits of each domain, µs, ascending, each with the fraction of waits that are no longer."""
        by_domain: dict[str, list[tuple[float, float]]] = {}
        for vcpu in self.whole.summary["vcpus"]:
            by_domain.setdefault(self.twin.sources.name(vcpu["domain"]), []).extend(_weighted(vcpu["wake_latency"]))
        ordered = {domain: np.array(sorted(waits)).T for domain, waits in by_domain.items() if waits}
        return {
            domain: (times / 1e3, np.cumsum(weights) / weights.sum()) for domain, (times, weights) in ordered.items()
        }

    @property
    def span_ns(self) -> int:
        """The duration of the recording, ns."""
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
        RequestError: no twin can be made of the recording.
        OSError: a file cannot be read.
    """
    # Other files, such as messages of the console, have no information on the setting.
    twin = Twin(*(folder / name for name in (*TRACES, *LISTINGS) if (folder / name).exists()))
    experiment = _experiment(folder / EXPERIMENT)
    programs = {path.stem: _program(path) for path in sorted(folder.glob("*.cfg"))}
    kind = experiment.get("guests_kind")
    return Recorded(
        folder,
        twin,
        read_part(twin.sources),
        setting_of(twin),
        f"kind {kind}" if kind else "; ".join(f"{name}: {does}" for name, (does, _) in programs.items()),
        kind or ", ".join(programs),
        _work_rates(folder / "guests.txt", programs, experiment.get("seconds")),
        _loops({name: words for name, (_, words) in programs.items()}),
        experiment.get("seed"),
    )


_EXPERIMENT_FIELDS = {
    "guests_kind": (str, "a text, the same for the same guests"),
    "seconds": (int, "a whole number"),
    "seed": (int, "a whole number, the same for what was recorded in one boot"),
}


def _experiment(path: Path) -> dict[str, Any]:
    """The content of `experiment.toml`; empty without the file."""
    if not path.exists():
        return {}
    try:
        fields = tomllib.loads(text_of(path))
    except tomllib.TOMLDecodeError as error:
        raise RecordingError(f"{path}: {error}") from None
    for name, (kind, allowed) in _EXPERIMENT_FIELDS.items():
        if name in fields and not isinstance(fields[name], kind):
            raise RecordingError(f"{path}: {name}: found {fields[name]!r}; allowed: {allowed}")
    return fields


def _program(path: Path) -> tuple[str, dict[str, str]]:
    """The work of a guest as text independent of the setting, and all words of its kernel's command line."""
    settings = xl_cfg.read_cfg(path)
    words = dict(word.partition("=")[::2] for word in str(settings.get("extra", "")).split())
    does = [f"{word}={value}" for word, value in sorted(words.items()) if word not in _OF_A_RUN]
    return f"{settings.get('vcpus', 1)} vCPUs, {' '.join(does)}", words


def _loops(programs: Mapping[str, Mapping[str, str]]) -> frozenset[str]:
    """The clients and servers of request loops, from the command lines of `make real-xen`'s guests."""
    servers = {words["ask"] for words in programs.values() if "ask" in words}
    return frozenset(name for name, words in programs.items() if "ask" in words or words.get("adr") in servers)


def _work_rates(
    path: Path, programs: Mapping[str, tuple[str, Mapping[str, str]]], window_s: int | None
) -> dict[str, float]:
    """Units of work per second of each guest that reports its work, over the reported time.

    Args:
        path: `guests.txt`.
        programs: the work of each guest, and the words of its kernel's command line.
        window_s: the reported time in seconds; by default the time in the guest's command line.
    """
    if not path.exists():
        return {}
    rates = {}
    for line in text_of(path).splitlines():
        match = _GUEST.fullmatch(line.strip())
        if match is None or match["name"] not in programs:
            continue
        values = {pair["name"]: float(pair["value"]) for pair in _VALUE.finditer(match["values"])}
        worked = programs[match["name"]][1].get("sec", "")
        seconds = window_s or (int(worked) if worked.isdecimal() else 0)
        if "iters" in values and seconds:
            rates[match["name"]] = values["iters"] / seconds
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
    """The quantiles of a vCPU's waits, ns, each with the number of waits that it represents."""
    quantiles = wait["quantiles_ns"] if wait["count"] else []
    yield from ((time, wait["count"] / len(quantiles)) for time in quantiles)


def _quantile(waits: list[Mapping[str, Any]], part: float) -> float:
    """A quantile of the waits of several vCPUs together, from the quantiles of each."""
    if len(waits) == 1:
        return float(waits[0]["p50_ns" if part == 0.5 else "p90_ns"])
    each = sorted(pair for wait in waits for pair in _weighted(wait))
    rest = part * sum(weight for _, weight in each)
    for time, weight in each:
        rest -= weight
        if rest <= 0:
            return float(time)
    return float(each[-1][0])
