"""The output of `xenpm get-cpufreq-para`: the frequencies of each CPU, and the governor that chooses among them.

Source: what `xenpm` of Xen 4.8 to 4.17 prints; frequencies are in kHz, the sampling rate in µs.
"""

import re
from dataclasses import dataclass, replace
from os import PathLike

from vcpulab.formats.errors import wrong
from vcpulab.formats.excerpts import numbered
from vcpulab.formats.sources import text_of


@dataclass(frozen=True)
class Frequencies:
    """The frequencies of a CPU."""

    cpu: int
    governor: str = ""
    most_khz: int | None = None
    """`None`: not said, as where the hardware chooses."""
    least_khz: int | None = None
    sample_us: int | None = None
    """Time between two choices of the governor `ondemand`."""
    up_percent: int | None = None
    """The load of a CPU above which that governor chooses the highest frequency, %."""
    turbo: bool = False
    """`True`: the CPU may exceed the highest frequency."""


_RANGE = re.compile(r"max \[(\d{1,9})\] min \[(\d{1,9})\] cur \[(\d{1,9})\]")


def read_frequencies(path: str | PathLike[str]) -> list[Frequencies]:
    """`xenpm get-cpufreq-para`.

    Raises:
        RecordingError: the file does not have this format.
    """
    frequencies: list[Frequencies] = []
    for number, line in numbered(text_of(path)):
        name, _, value = (part.strip() for part in line.partition(":"))
        values = _RANGE.fullmatch(value)
        if name == "cpu id" and value.isdecimal() and len(value) < 7:
            frequencies.append(Frequencies(int(value)))
        elif name == "cpu id" or not frequencies:
            raise wrong(str(path), number, line, "`cpu id : NUMBER` first")
        elif name == "current_governor":
            frequencies[-1] = replace(frequencies[-1], governor=value)
        elif name == "scaling frequency" and values is not None:
            frequencies[-1] = replace(frequencies[-1], most_khz=int(values[1]), least_khz=int(values[2]))
        elif name == "sampling_rate" and values is not None:
            frequencies[-1] = replace(frequencies[-1], sample_us=int(values[3]))
        elif name == "turbo mode":
            frequencies[-1] = replace(frequencies[-1], turbo=value == "enabled")
        elif name == "up_threshold" and value.isdecimal() and len(value) < 4:
            frequencies[-1] = replace(frequencies[-1], up_percent=int(value))
    if not frequencies:
        raise wrong(str(path), None, "nothing", "`xenpm get-cpufreq-para`")
    return frequencies
