"""The output of `xentop -b`: the CPU use of each domain, one update after the other."""

import re
from dataclasses import dataclass
from os import PathLike

from vcpulab.formats.errors import wrong
from vcpulab.formats.excerpts import numbered
from vcpulab.formats.sources import text_of

HEADING = ["NAME", "STATE", "CPU(sec)", "CPU(%)"]
"""The first columns; which follow depends on the release."""
NAME_MOST = 10
"""Names are cut to so many characters, unless xentop is asked for full ones."""
SCREEN_BEGINS = re.compile(r"xentop - +\d")
"""The first of three lines above the heading, on its screen."""
_OF_DEVICES = re.compile(
    r"\s{0,40}(Net ?\d|VBD|VCPUs ?\(sec\)|NetBack|Delay\s|vbds? |No (network|block)|T?\s{0,8}Tmem)|\s{0,40}\d{1,4}:\s"
)
"""Rows of `-n`, `-x` and `-v`, and the line of keys at the end of the screen."""
_ROW = re.compile(
    r"(?P<name>.{1,400}?)\s(?P<state>[dsbcpr-]{6})\s+(?P<cpu_s>\d{1,12})\s+(?P<percent>\d{1,6}\.\d{1,3})\s(?P<rest>.*)"
)
_MEMORY = r"\s{0,40}\d{1,15}\s{1,40}[\d.]{1,8}\s{1,40}(no limit|\d{1,15})\s{1,40}(n/a|[\d.]{1,8})"
_VCPUS = re.compile(rf"{_MEMORY}\s{{1,40}}(?P<vcpus>\d{{1,5}})\s")
"""The columns MEM(k), MEM(%), MAXMEM(k), MAXMEM(%) and VCPUS."""


@dataclass(frozen=True)
class Usage:
    """A domain in one update."""

    update: int
    """Counted from 0; the first says nothing of CPU use."""
    name: str
    state: str
    cpu_s: int
    """CPU time since its creation."""
    cpu_percent: float
    """CPU time since the last update, % of one pCPU."""
    vcpus: int | None = None
    """`None`: not listed."""


def read_xentop(path: str | PathLike[str]) -> list[Usage]:
    """`xentop -b`, or a copy of its screen, also with lines for networks, disks and vCPUs.

    Raises:
        RecordingError: the file does not have this format.
    """
    usages: list[Usage] = []
    update = -1
    above_heading = False
    for number, line in numbered(text_of(path)):
        if line.split(maxsplit=4)[:4] == HEADING:
            update, above_heading = update + 1, False
        elif SCREEN_BEGINS.match(line):
            above_heading = True
        elif not above_heading:
            match = _ROW.fullmatch(line + " ")
            if update < 0 or (match is None and not _OF_DEVICES.match(line)):
                allowed = f"the heading `{' '.join(HEADING)} …`" if update < 0 else "name, state, seconds, CPU(%) …"
                raise wrong(str(path), number, line, allowed)
            if match is not None:
                name, cpu_s, percent = match["name"].strip(), int(match["cpu_s"]), float(match["percent"])
                vcpus = _VCPUS.match(match["rest"])
                usages.append(
                    Usage(update, name, match["state"], cpu_s, percent, int(vcpus["vcpus"]) if vcpus else None)
                )
    if update < 0:
        raise wrong(str(path), 1, "", f"the heading `{' '.join(HEADING)} …`")
    return usages
