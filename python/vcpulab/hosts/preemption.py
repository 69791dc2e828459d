"""The preemption model of a Linux host's kernel, by its listings."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from vcpulab.formats.linux_host import Linux

PREEMPT = ("sched/preempt", "sched_preempt")
"""The ends of the paths of the file that lists the models, the one in force in parentheses."""
COMMAND = "cat /sys/kernel/debug/sched/preempt"
"""The command that prints the model."""
_MODELS = ("none", "voluntary", "full", "lazy")
_IN_FORCE = re.compile(r".*\((\w+)\).*|(\w+)")
_BOOT_OPTION = re.compile(r"(?:^|\s)preempt=(?P<model>\w+)")
_BUILT = {
    "CONFIG_PREEMPT_LAZY": "lazy",
    "CONFIG_PREEMPT_VOLUNTARY": "voluntary",
    "CONFIG_PREEMPT_NONE": "none",
    "CONFIG_PREEMPT": "full",
}
"""The options of a build that choose the model in force without an option at boot."""
_REAL_TIME = re.compile(r"\bPREEMPT[_ ]RT\b")
_STATIC = re.compile(r"#\S+ (SMP )?PREEMPT(?!_)\b")
"""A version of a build (`uname -v`) whose only model is `full`."""


@dataclass(frozen=True)
class Preemption:
    """The preemption model of a kernel, and what shows it."""

    model: str
    reason: str
    real_time: bool = False
    """`True`: the kernel is built with PREEMPT_RT."""


def preemption_of(linux: Linux) -> Preemption | None:
    """The preemption model that a host lists; `None`: nothing listed shows it.

    Examples:
        >>> preemption_of(Linux("7.0.13", {"/sys/kernel/debug/sched/preempt": "full (lazy)"})).model
        'lazy'
        >>> preemption_of(Linux("6.12.48", {"/proc/cmdline": "ro quiet preempt=full"})).reason
        'the kernel was booted with preempt=full'
        >>> preemption_of(Linux("6.12.48+deb13-amd64 #1 SMP PREEMPT_DYNAMIC Debian 6.12.48-1"))
    """
    real_time = _REAL_TIME.search(linux.version or "") is not None or linux.option("CONFIG_PREEMPT_RT") == "y"
    model, reason = next(_evidence(linux, real_time=real_time), (None, ""))
    return None if model is None else Preemption(model, reason, real_time)


def _evidence(linux: Linux, *, real_time: bool) -> Iterator[tuple[str, str]]:
    """Models with what shows them, the strongest evidence first."""
    listed = next((text for text in map(linux.ends_with, PREEMPT) if text is not None), "").strip()
    in_force = _IN_FORCE.fullmatch(listed)
    if in_force is not None and (model := in_force[1] or in_force[2]) in _MODELS:
        yield model, f"/sys/kernel/debug/sched/preempt is {listed}"
    option = _BOOT_OPTION.search(linux.setting("cmdline") or "")
    if option is not None and option["model"] in _MODELS:
        yield option["model"], f"the kernel was booted with preempt={option['model']}"
    for name, model in _BUILT.items():
        if linux.option(name) == "y":
            yield model, f"the kernel is built with {name}"
    if real_time:
        yield "full", "the kernel is built with PREEMPT_RT"
    elif _STATIC.search(linux.version or ""):
        yield "full", "the kernel is built with PREEMPT alone (uname -v)"
