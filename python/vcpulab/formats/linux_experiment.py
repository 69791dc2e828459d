"""The setups of recordings of Linux's schedulers (`experiment.txt`): control groups, VMs, and their threads.

A line each: `cg PATH weight=N max=QUOTA,PERIOD burst=N idle=N threaded`, `vm NAME GROUP`, `th cg=GROUP nice=N policy=P`
of the VM before, `set FILE VALUE`. What its threads do (`wk`, `sl`, `jit`, `yield`) is in the recording.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike

from vcpulab.formats.errors import wrong
from vcpulab.formats.sources import text_of

BEGINS = r"(cg|vm|th|set) \S+( |$)"
"""The beginning of such a file."""
_ALLOWED = {
    "cg": "cg PATH weight=N max=QUOTA,PERIOD burst=N idle=N threaded",
    "vm": "vm NAME GROUP",
    "th": "th cg=GROUP nice=N policy=other|batch|idle wk=N sl=N jit=N yield=N",
    "set": "set FILE VALUE",
}
_POLICIES = ("other", "batch", "idle")


@dataclass(frozen=True)
class Thread:
    """A thread of a VM, in order."""

    group: str
    """The path of the thread's control group; empty: the root group."""
    nice: int = 0
    policy: str = "other"
    """`other`, `batch` or `idle`: `SCHED_OTHER` and so on."""


@dataclass
class Experiment:
    """All lines."""

    groups: dict[str, dict[str, str]] = field(default_factory=dict)
    """Control groups by path, with the contents of their files."""
    machines: dict[str, list[Thread]] = field(default_factory=dict)
    """The threads of each VM, by its name."""


def read_experiment(path: str | PathLike[str]) -> Experiment:
    """Such a file.

    Raises:
        RecordingError: a line says something else.
    """
    experiment = Experiment()
    name, around = None, ""
    for number, line in enumerate(text_of(path).splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if words[0] not in _ALLOWED:
            raise wrong(str(path), number, line, ", ".join(_ALLOWED))
        options = dict(word.partition("=")[::2] for word in words[1:])
        if words[0] == "cg" and len(words) > 1:
            experiment.groups[words[1].strip("/")] = _files(options)
        elif words[0] == "vm" and 1 < len(words) < 4:
            name, around = words[1], (words[2] if len(words) == 3 else "").strip("/")
            experiment.machines[name] = []
        elif words[0] == "th" and name is not None and _is_thread(options):
            group, nice = options.get("cg", around).strip("/"), int(options.get("nice", "0"))
            experiment.machines[name].append(Thread(group, nice, options.get("policy", "other")))
        elif words[0] != "set":
            raise wrong(str(path), number, line, f"`{_ALLOWED[words[0]]}`")
    return experiment


def _is_thread(options: Mapping[str, str]) -> bool:
    return (
        re.fullmatch(r"-?\d{1,2}", options.get("nice", "0")) is not None and options.get("policy", "other") in _POLICIES
    )


def _files(options: dict[str, str]) -> dict[str, str]:
    names = {"weight": "cpu.weight", "max": "cpu.max", "burst": "cpu.max.burst", "idle": "cpu.idle"}
    return {names[option]: value.replace(",", " ") for option, value in options.items() if option in names}
