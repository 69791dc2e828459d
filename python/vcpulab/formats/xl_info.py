"""The output of `xl info` on a host, and with `-n` on its threads, cores, sockets and nodes.

Source: xl(1) of Xen 4, and what 4.17 prints.
"""

import re
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from os import PathLike
from typing import Any

from vcpulab.formats.errors import wrong
from vcpulab.formats.excerpts import numbered
from vcpulab.formats.sources import text_of


@dataclass(frozen=True)
class Cpu:
    """A line of `cpu_topology`: a thread that is online."""

    cpu: int
    core: int
    """The number of the core in the socket."""
    socket: int
    node: int


@dataclass(frozen=True)
class Node:
    """A line of `numa_info`."""

    node: int
    memory_mb: int
    free_mb: int
    distances: list[int]
    """To each node, in ACPI's measure: 10 is its own."""


@dataclass(frozen=True)
class Info:
    """`xl info`."""

    settings: dict[str, str]
    """Settings by name: `nr_cpus`, `xen_version`, `xen_scheduler`, `xen_commandline`, …"""
    cpus: list[Cpu] = field(default_factory=list)
    """Without `-n` none."""
    nodes: list[Node] = field(default_factory=list)

    def as_data(self) -> dict[str, Any]:
        """All of it, by name."""
        cpus, nodes = ([asdict(row) for row in rows] for rows in (self.cpus, self.nodes))
        tables = {"cpu_topology": cpus, "numa_info": nodes}
        return {**self.settings, **{name: rows for name, rows in tables.items() if rows}}


_SETTING = re.compile(r"\s{0,80}(?P<name>[a-zA-Z]\w{0,80})\s{0,80}:(?=\s|$)")
_LONG = ("hw_caps", "virt_caps", "xen_caps", "xen_commandline", "platform_params", "cc_compiler", "version")
"""Settings whose values a mailer wraps."""
_CPU = re.compile(r"\s*(\d{1,6}):\s+(\d{1,9})\s+(\d{1,9})\s+(\d{1,9})\s*")
_NODE = re.compile(r"\s*(\d{1,6}):\s+(\d{1,12})\s+(\d{1,12})\s+(\d{1,9}(?:,\d{1,9})*)\s*")
_TABLES = {
    "cpu_topology": ("cpu: core socket node", "`CPU: CORE SOCKET NODE`"),
    "numa_info": ("node: memsize memfree distances", "`NODE: MEMSIZE MEMFREE DISTANCE,…`"),
    "device topology": ("device node", "`DEVICE NODE`"),
}
"""The tables of `-n`: their headings, and what a row is."""


def read_info(path: str | PathLike[str]) -> Info:
    """`xl info`, with or without `-n`.

    Raises:
        RecordingError: the file does not have this format.
    """
    info = Info({})
    table: str | None = None
    long_value: tuple[str, int] | None = None
    """The setting that the next line may continue, and that line's number."""
    for number, line in numbered(text_of(path)):
        if line.startswith("[CPU") or (table is not None and " ".join(line.split()) == _TABLES[table][0]):
            continue
        match = _SETTING.match(line)
        name, value = (match["name"], line[match.end() :].strip()) if match else (line.rstrip(": \t"), "")
        if name in _TABLES and not value:
            table = name
        elif match is not None:
            if name in info.settings and name == "host":
                raise wrong(str(path), number, line, "one host: this is another `xl info`")
            table, info.settings[name] = None, value
            long_value = (name, number + 1) if name in _LONG else None
        elif table is not None:
            if not _took(info, table, line):
                raise wrong(str(path), number, line, _TABLES[table][1])
        elif long_value is not None and long_value[1] == number:
            name = long_value[0]
            info.settings[name] = f"{info.settings[name]} {line.strip()}".strip()
            long_value = name, number + 1
        else:
            raise wrong(str(path), number, line, "`name : value`")
    if not {"xen_version", "xen_major", "nr_cpus"} & info.settings.keys():
        raise wrong(str(path), None, ", ".join(info.settings), "`xl info`, with `xen_version` or `nr_cpus`")
    _check(str(path), info)
    return info


def _took(info: Info, table: str, line: str) -> bool:
    """A row of a table; of devices nothing is kept."""
    cpu, node = _CPU.fullmatch(line), _NODE.fullmatch(line)
    if table == "cpu_topology" and cpu is not None:
        info.cpus.append(Cpu(*map(int, cpu.groups())))
    elif table == "numa_info" and node is not None:
        memory, free, distances = int(node[2]), int(node[3]), [int(distance) for distance in node[4].split(",")]
        info.nodes.append(Node(int(node[1]), memory, free, distances))
    else:
        return table == "device topology"
    return True


def _check(path: str, info: Info) -> None:
    """A table that was cut, or two hosts' in one file, would make a host that is not there."""
    numbers, nr_cpus = sorted(cpu.cpu for cpu in info.cpus), info.settings.get("nr_cpus", "")
    twice = [number for number, next_number in pairwise(numbers) if number == next_number]
    if twice:
        raise wrong(path, None, f"cpu {twice[0]} twice", "each CPU once in cpu_topology")
    if info.cpus and nr_cpus.isdecimal() and int(nr_cpus) != len(numbers):
        raise wrong(path, None, f"{len(numbers)} CPUs in cpu_topology", f"{nr_cpus}, as nr_cpus says")
