"""What `xentop -b` prints: the CPU use of each domain, one update after the other."""

import re
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from vcpulab.formats.errors import wrong
from vcpulab.formats.sources import text_of

HEADING = ["NAME", "STATE", "CPU(sec)", "CPU(%)"]
"""The first columns; which follow depends on the release."""
NAME_MOST = 10
"""Names are cut to so many characters, unless xentop is asked for full ones."""
_ROW = re.compile(
    r"\s*(?P<name>\S.*?)\s+(?P<state>[dsbcpr-]{6})\s+(?P<cpu_s>\d{1,12})\s+(?P<percent>\d{1,6}\.\d{1,3})\s.*"
)


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


def read_xentop(path: str | PathLike[str]) -> list[Usage]:
    """`xentop -b`.

    Raises:
        RecordingError: it is something else.
    """
    found: list[Usage] = []
    update = -1
    for number, line in enumerate(text_of(Path(path)).splitlines(), 1):
        if not line.strip():
            continue
        if line.split()[:4] == HEADING:
            update += 1
            continue
        match = _ROW.fullmatch(line + " ")
        if update < 0 or match is None:
            allowed = f"the heading `{' '.join(HEADING)} …`" if update < 0 else "name, state, seconds, CPU(%) …"
            raise wrong(str(path), number, line, allowed)
        found.append(Usage(update, match["name"], match["state"], int(match["cpu_s"]), float(match["percent"])))
    if update < 0:
        raise wrong(str(path), 1, "", f"the heading `{' '.join(HEADING)} …`")
    return found
