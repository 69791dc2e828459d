"""`collected.txt`: the commands that `vcpulab collect` ran on a host, and how each ended.

A line `FILE: exit STATUS: COMMAND` for each command, and below it, indented, the reason if the command failed.
"""

import re
from dataclasses import dataclass, replace
from os import PathLike

from vcpulab.formats.errors import wrong
from vcpulab.formats.sources import lines_of

BEGINS = r"# collected by vcpulab collect\b"
_COMMAND = re.compile(r"(?P<file>[\w.-]{1,255}): exit (?P<status>\d{1,3}): (?P<command>.*)")


@dataclass(frozen=True)
class Collected:
    """A command that was run."""

    file: str
    """The file of the archive that holds what it printed."""
    command: str
    status: int
    reason: str = ""
    """What it printed to its standard error, if it failed."""

    def failed(self) -> bool:
        """Whether the command failed."""
        return self.status != 0

    def __str__(self) -> str:
        reason = f": {self.reason}" if self.reason else ""
        return f"{self.file}: on the host `{self.command}` failed (exit {self.status}){reason}"


def read_collected(path: str | PathLike[str]) -> list[Collected]:
    """The commands, in the order in which they were run.

    Raises:
        RecordingError: a line is something else.
    """
    commands: list[Collected] = []
    for number, line in lines_of(path):
        match = _COMMAND.fullmatch(line)
        if match is not None:
            commands.append(Collected(match["file"], match["command"], int(match["status"])))
        elif line.startswith("  ") and commands:
            reason = f"{commands[-1].reason}; {line.strip()}".removeprefix("; ")
            commands[-1] = replace(commands[-1], reason=reason)
        elif line.strip() and not line.startswith("#"):
            raise wrong(str(path), number, line, "`FILE: exit STATUS: COMMAND`")
    return commands
