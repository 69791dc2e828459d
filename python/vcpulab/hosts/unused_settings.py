"""Settings of a Linux host that listings have and no field of a scenario says."""

import re
from collections.abc import Iterator

from vcpulab.formats.linux_host import Linux
from vcpulab.hosts.kernel import DECISIVE, PARAMETERS
from vcpulab.scenario.names import in_short

_TAKEN = {*PARAMETERS, "halt_poll_ns", "cmdline", "isolated"}
"""The last parts of paths of settings that become fields of a scenario, or notes of their own."""
_BUILT = "CONFIG_"
_ISOLATION = re.compile(r"(?:isolcpus|nohz_full)=\S+")


def unused_settings(linux: Linux) -> Iterator[str]:
    """The notes on settings that are left out.

    Examples:
        >>> linux = Linux(None, {"/proc/cmdline": "ro isolcpus=2-3", "kernel.sched_rt_runtime_us": "950000"})
        >>> for note in unused_settings(linux):
        ...     print(note)
        no field of a scenario says isolcpus=2-3: here threads are balanced among these CPUs as among others
        no field of a scenario says kernel.sched_rt_runtime_us = 950000; left out
    """
    isolation = _ISOLATION.findall(linux.setting("cmdline") or "")
    isolated = linux.setting("isolated")
    if isolated and not isolation:
        isolation = [f"isolated CPUs ({isolated})"]
    if isolation:
        yield (
            f"no field of a scenario says {' '.join(isolation)}: here threads are balanced among these CPUs as among "
            "others"
        )
    other_settings = [
        f"{path} = {value}"
        for path, value in linux.settings.items()
        if re.split(r"[/.]", path)[-1] not in _TAKEN and not path.startswith(_BUILT) and not path.endswith(DECISIVE)
    ]
    if other_settings:
        yield f"no field of a scenario says {in_short(other_settings)}; left out"
