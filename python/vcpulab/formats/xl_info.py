"""What `xl info` prints of a host, and with `-n` of its threads, cores, sockets and nodes.

Source: xl(1) of Xen 4, and what 4.17 prints.
"""

import re
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any

from vcpulab.formats.errors import wrong
from vcpulab.formats.sources import text_of


@dataclass(frozen=True)
class Cpu:
    """A line of `cpu_topology`: a thread that is online."""

    cpu: int
    core: int
    """Its core's number in the socket."""
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

    said: dict[str, str]
    """By name: `nr_cpus`, `xen_version`, `xen_scheduler`, `xen_commandline`, …"""
    cpus: list[Cpu] = field(default_factory=list)
    """Without `-n` none."""
    nodes: list[Node] = field(default_factory=list)

    def as_data(self) -> dict[str, Any]:
        """All of it, by name."""
        cpus, nodes = ([asdict(row) for row in rows] for rows in (self.cpus, self.nodes))
        tables = {"cpu_topology": cpus, "numa_info": nodes}
        return {**self.said, **{name: rows for name, rows in tables.items() if rows}}


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
        RecordingError: it is something else.
    """
    info = Info({})
    table: str | None = None
    for number, line in enumerate(text_of(Path(path)).splitlines(), 1):
        name, sign, value = (part.strip() for part in line.partition(":"))
        if not line.strip() or (table is not None and " ".join(line.split()) == _TABLES[table][0]):
            continue
        if sign and not value and name in _TABLES:
            table = name
        elif sign and re.fullmatch(r"[a-zA-Z]\w*", name):
            table = None
            info.said[name] = value
        elif table is None or not _took(info, table, line):
            allowed = "`name : value`" if table is None else _TABLES[table][1]
            raise wrong(str(path), number, line, allowed)
    if "xen_version" not in info.said:
        raise wrong(str(path), None, ", ".join(info.said), "`xl info`, with `xen_version`")
    _check(str(path), info)
    return info


def _took(info: Info, table: str, line: str) -> bool:
    """A row of a table; of devices nothing is kept."""
    cpu, node = _CPU.fullmatch(line), _NODE.fullmatch(line)
    if table == "cpu_topology" and cpu is not None:
        info.cpus.append(Cpu(*map(int, cpu.groups())))
    elif table == "numa_info" and node is not None:
        memory, free, distances = int(node[2]), int(node[3]), [int(one) for one in node[4].split(",")]
        info.nodes.append(Node(int(node[1]), memory, free, distances))
    else:
        return table == "device topology"
    return True


def _check(path: str, info: Info) -> None:
    """A table that was cut, or two hosts' in one file, would make a host that is not there."""
    numbers, said = sorted(one.cpu for one in info.cpus), info.said.get("nr_cpus", "")
    twice = [number for number, other in pairwise(numbers) if number == other]
    if twice:
        raise wrong(path, None, f"cpu {twice[0]} twice", "each CPU once in cpu_topology")
    if info.cpus and said.isdecimal() and int(said) != len(numbers):
        raise wrong(path, None, f"{len(numbers)} CPUs in cpu_topology", f"{said}, as nr_cpus says")
