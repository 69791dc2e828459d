"""Settings of a Linux host that listings have and no field of a scenario says."""

import re
from collections.abc import Iterator

from vcpulab.formats.linux_host import Linux
from vcpulab.hosts.kernel import DECISIVE, PARAMETERS, is_fair_server
from vcpulab.scenario.names import in_short

_TAKEN = {*PARAMETERS, "halt_poll_ns", "cmdline", "isolated", "nohz_full"}
"""The last parts of paths of settings that become fields of a scenario, or notes of their own."""
_BUILT = "CONFIG_"


def unused_settings(linux: Linux) -> Iterator[str]:
    """The notes on settings that are left out.

    Examples:
        >>> linux = Linux(None, {"/proc/cmdline": "ro quiet", "kernel.sched_rr_timeslice_ms": "100"})
        >>> for note in unused_settings(linux):
        ...     print(note)
        no field of a scenario says kernel.sched_rr_timeslice_ms = 100; left out
    """
    other_settings = [
        f"{path} = {value}"
        for path, value in linux.settings.items()
        if re.split(r"[/.]", path)[-1] not in _TAKEN
        and not path.startswith(_BUILT)
        and not path.endswith(DECISIVE)
        and not is_fair_server(path)
    ]
    if other_settings:
        yield f"no field of a scenario says {in_short(other_settings)}; left out"
