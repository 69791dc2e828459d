"""Experiments in the little language that the host reads, checked: control groups, VMs, threads, tunables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import command
from command import ExperimentError

_LATENCY, _MIN_GRANULARITY, _WAKEUP_GRANULARITY = 6_000_000, 750_000, 1_000_000
_BASE_SLICE = {"/sys/kernel/debug/sched/base_slice_ns": 700_000}
TUNABLES = {
    "5.10": {
        "/proc/sys/kernel/sched_latency_ns": _LATENCY,
        "/proc/sys/kernel/sched_min_granularity_ns": _MIN_GRANULARITY,
        "/proc/sys/kernel/sched_wakeup_granularity_ns": _WAKEUP_GRANULARITY,
    },
    "6.1": {
        "/sys/kernel/debug/sched/latency_ns": _LATENCY,
        "/sys/kernel/debug/sched/min_granularity_ns": _MIN_GRANULARITY,
        "/sys/kernel/debug/sched/wakeup_granularity_ns": _WAKEUP_GRANULARITY,
    },
    **dict.fromkeys(("6.12", "6.16", "6.17", "6.18", "6.19", "7.0", "7.1", "7.2", "7.3"), _BASE_SLICE),
}
"""By kernel: the files of what depends on the number of CPUs, with the values on one."""

GROUP = {"weight": (1, 10_000), "burst": (0, 1_000_000_000), "idle": (0, 1)}
THREAD = {"sl": (0, 1_000_000_000), "wk": (0, 1_000_000_000), "jit": (0, 100), "nice": (-20, 19), "yield": (0, 1000)}
POLICIES = ("other", "batch", "idle")
QUOTA_US, PERIOD_US = (1000, 1_000_000_000), (1000, 1_000_000)
"""What the words of lines `cg` and `th` may be."""
THREADS_MOST, PATH_MOST = 64, 180
"""Of `vms.c`."""


@dataclass(frozen=True)
class Experiment:
    """One table of `experiments.toml`."""

    name: str
    experiment: str = ""
    """Its lines."""
    cpus: int = 1
    """Of a host that has these tunables; the host that records has one CPU."""
    seconds: int = 4

    def __post_init__(self) -> None:
        for key, value, most in (("cpus", self.cpus, 4096), ("seconds", self.seconds, 60)):
            if not isinstance(value, int) or not 1 <= value <= most:
                raise ExperimentError(f"experiments.toml: [{self.name}]: {key}: found `{value}`; allowed: 1 to {most}")
        _Reader(self.name).read(self.experiment)

    def text(self, kernel: str) -> str:
        """What the host reads, for a kernel: tunables first."""
        factor = min(self.cpus, 8).bit_length()  # the kernel's: 1 + log2, rounded down
        tunables = TUNABLES[kernel].items() if factor > 1 else ()
        lines = [f"set {file} {value * factor}" for file, value in tunables]
        return "\n".join([*lines, self.experiment.strip(), ""])


def read_experiments(path: Path) -> dict[str, Experiment]:
    """All experiments of a file, checked."""
    return command.read_tables(path, Experiment)


class _Reader:
    """Checks lines, since what passes goes into a shell script and a program that trust it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.line = 0
        self.groups: dict[str, bool] = {}  # whether each is threaded
        self.vms: set[str] = set()
        self.threads = 0

    def read(self, text: str) -> None:
        for self.line, line in enumerate(text.strip().splitlines(), start=1):
            what, *words = line.split() or [""]
            if what not in {"cg", "vm", "th", "set"}:
                self._wrong("first word", what, "cg, vm, th, set")
            getattr(self, f"_{what}")(words)
        if not self.threads:
            raise ExperimentError(f"experiments.toml: [{self.name}]: no thread: a line `th` after a line `vm`")

    def _cg(self, words: list[str]) -> None:
        path, *words = words or [""]
        sound = re.fullmatch(r"[\w.-]+(/[\w.-]+)*", path) and ".." not in path and len(path) <= PATH_MOST
        if not sound or path in self.groups:
            self._wrong("cg", path, f"a new path of letters, digits and . - _, as in a/b, at most {PATH_MOST} long")
        parent = path.rpartition("/")[0]
        if parent and parent not in self.groups:
            self._wrong("cg", path, f"after a line `cg {parent}`")
        self.groups[path] = "threaded" in words
        for key, value in self._pairs([word for word in words if word != "threaded"], [*GROUP, "max", "threaded"]):
            if key == "max":
                quota, _, period = value.partition(",")
                self._number("max quota", quota, *QUOTA_US)
                self._number("max period", period, *PERIOD_US)
            else:
                self._number(key, value, *GROUP[key])

    def _vm(self, words: list[str]) -> None:
        name, *groups = words or [""]
        if not re.fullmatch(r"[\w.-]{1,64}", name) or name in self.vms or len(self.vms) == THREADS_MOST:
            self._wrong(
                "vm", name, f"at most {THREADS_MOST}, each with a new name of 1 to 64 letters, digits and . - _"
            )
        self.vms.add(name)
        for group in groups:
            self._group("vm", group)

    def _th(self, words: list[str]) -> None:
        self.threads += 1
        if not self.vms or self.threads > THREADS_MOST:
            self._wrong("th", " ".join(words), f"after a line `vm`, at most {THREADS_MOST}")
        for key, value in self._pairs(words, [*THREAD, "policy", "cg"]):
            if key == "policy":
                if value not in POLICIES:
                    self._wrong(key, value, ", ".join(POLICIES))
                continue
            if key != "cg":
                self._number(key, value, *THREAD[key])
                continue
            self._group("cg", value)
            if not self.groups[value]:
                self._wrong("cg", value, "a group with `threaded`")

    def _set(self, words: list[str]) -> None:
        paths = r"/(sys/kernel/debug/sched|proc/sys/kernel)/\w+"
        if len(words) != 2 or not re.fullmatch(paths, words[0]) or not re.fullmatch(r"\w+", words[1]):
            self._wrong("set", " ".join(words), "a file of /sys/kernel/debug/sched or /proc/sys/kernel, and a value")

    def _pairs(self, words: list[str], known: list[str]) -> Iterator[tuple[str, str]]:
        for word in words:
            key, _, value = word.partition("=")
            if key not in known:
                self._wrong("word", word, ", ".join(known))
            yield key, value

    def _group(self, field: str, path: str) -> None:
        if path not in self.groups:
            self._wrong(field, path, "a group of a line `cg` before")

    def _number(self, field: str, value: str, least: int, most: int) -> None:
        if not re.fullmatch(r"-?\d+", value) or not least <= int(value) <= most:
            self._wrong(field, value, f"{least} to {most}")

    def _wrong(self, field: str, found: str, allowed: str) -> NoReturn:
        where = f"experiments.toml: [{self.name}]: line {self.line}"
        raise ExperimentError(f"{where}: {field}: found `{found}`; allowed: {allowed}")
