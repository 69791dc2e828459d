"""Threads as `ps -eLo pid,tid,cgroup:512,comm:20,args` lists them, also with other columns and in another order.

The column of the command line must be the last one. A thread's name, which may hold blanks, is as wide as its column.
"""

import re
from dataclasses import dataclass
from os import PathLike

from vcpulab.formats.errors import wrong
from vcpulab.formats.sources import lines_of

_TID = ("TID", "LWP", "SPID")
_TEXTS = ("COMMAND", "CMD")
_ROWS_MAX = 200_000
DEADLINE = "deadline"
"""`SCHED_DEADLINE`, which no scenario has."""
_POLICIES = {
    "FF": "fifo",
    "RR": "rr",
    "B": "batch",
    "IDL": "idle",
    "DLN": DEADLINE,
    "1": "fifo",
    "2": "rr",
    "3": "batch",
    "5": "idle",
    "6": DEADLINE,
}
"""The values of the columns CLS or POL, and SCH."""


@dataclass(frozen=True)
class Thread:
    """A line of it; empty: not listed."""

    process: int
    thread: int
    name: str = ""
    args: str = ""
    """The command line of its process."""
    group: str = ""
    """The path of its control group, without the first `/`."""
    cgroups: int | None = None
    """The version of control groups that the CPU is under; `None`: not known."""
    policy: str = "other"
    """`fifo`, `rr`, `batch`, `idle`, `deadline`, or `other`: no other one is listed."""
    priority: int = 0
    """The real-time priority under `fifo` and `rr`."""
    nice: int = 0


BEGINS = r"(?=.*\bPID\b)(?=.*\b(TID|LWP|SPID)\b).*\b(COMMAND|CMD)\s*$"
"""The heading of such a list."""


def read_threads(path: str | PathLike[str]) -> list[Thread]:
    """The threads of a list.

    Raises:
        RecordingError: the file does not have this format.
    """
    threads: list[Thread] = []
    columns: list[str] = []
    heading, name_width = "", 0
    for number, line in lines_of(path):
        words = line.split()
        if not columns:
            if not re.match(BEGINS, line):
                raise wrong(str(path), number, line, "a heading with PID, TID (or LWP, SPID), and COMMAND at the end")
            columns = words
            heading = line.rstrip()
            # With a second column of text, the first one is as wide as to that.
            name_width = len(heading) - len(re.sub(r"\S+\s+\S+$", "", heading)) - len(words[-1])
            continue
        if not words:
            continue
        texts = sum(column in _TEXTS for column in columns)
        inside = _name_inside(columns)
        if inside is None:
            plain = columns[: len(columns) - texts]
            cells = line.split(maxsplit=len(plain))
            text = cells[-1] if len(cells) > len(plain) else ""
            name, args = _texts(text, texts, name_width)
        else:
            plain = [column for position, column in enumerate(columns[:-1]) if position != inside]
            cells, name, args = _around_name(line, heading, inside, len(plain))
        row = dict(zip(plain, cells, strict=False))
        tid = next((row[column] for column in _TID if column in row), "")
        if not all(re.fullmatch(r"\d{1,10}", text) for text in (row.get("PID", ""), tid)):
            raise wrong(str(path), number, line, " ".join(columns))
        group, version = _group(row.get("CGROUP", ""))
        policy = _POLICIES.get(row.get("CLS") or row.get("POL") or row.get("SCH") or "", "other")
        priority, nice = (_number(row.get(column, "")) for column in ("RTPRIO", "NI"))
        threads.append(Thread(int(row["PID"]), int(tid), name, args, group, version, policy, priority, nice))
        if len(threads) > _ROWS_MAX:
            raise wrong(str(path), number, "more threads", f"at most {_ROWS_MAX}")
    return threads


def _name_inside(columns: list[str]) -> int | None:
    """The position of a thread's name between other columns; `None`: it is at the end, or not listed.

    Examples:
        >>> _name_inside(["PID", "COMMAND", "TID", "COMMAND"]), _name_inside(["PID", "TID", "COMMAND", "COMMAND"])
        (1, None)
    """
    inside = [position for position, column in enumerate(columns[:-2]) if column in _TEXTS]
    return inside[0] if inside and columns[inside[0] + 1] not in _TEXTS else None


def _around_name(line: str, heading: str, inside: int, plain_count: int) -> tuple[list[str], str, str]:
    """The cells but for the texts, the thread's name, and the command line, of a row with the name inside.

    Args:
        line: the row.
        heading: the line with the names of the columns, which tells where the name is.
        inside: the position of the name.
        plain_count: the number of columns that hold no blanks.

    Examples:
        >>> _around_name(" 12 CPU 0/KVM    13 /usr/bin/kvm -m 1", "PID COMMAND     TID COMMAND", 1, 2)
        (['12', '13'], 'CPU 0/KVM', '/usr/bin/kvm -m 1')
    """
    starts = [match.start() for match in re.finditer(r"\S+", heading)]
    begin, end = starts[inside], starts[inside + 1]
    # Numbers are right below the name of their column, or begin before it.
    while begin < end <= len(line) and not line[end - 1].isspace():
        end -= 1
    before = line[:begin].split()
    after = line[end:].split(maxsplit=plain_count - inside)
    args = after[-1] if len(after) > plain_count - inside else ""
    return [*before, *after[: plain_count - inside]], line[begin:end].strip(), args


def _number(cell: str) -> int:
    return int(cell) if re.fullmatch(r"-?\d{1,3}", cell) else 0


def _texts(rest: str, texts: int, name_width: int = 0) -> tuple[str, str]:
    """Name and command line; of a single column it is told by its looks which of both it is.

    Examples:
        >>> _texts("CPU 0/KVM            /usr/bin/qemu-system-x86_64 -name guest=web", 2)
        ('CPU 0/KVM', '/usr/bin/qemu-system-x86_64 -name guest=web')
        >>> _texts("qemu-system-x86 /usr/bin/kvm -id 100", 2, 16)
        ('qemu-system-x86', '/usr/bin/kvm -id 100')
        >>> _texts("/usr/bin/kvm -id 100", 1), _texts("CPU 0/KVM", 1)
        (('', '/usr/bin/kvm -id 100'), ('CPU 0/KVM', ''))
    """
    if texts == 2:
        if rest[name_width - 1 : name_width] == " ":
            return rest[:name_width].strip(), rest[name_width:].strip()
        name, _, args = rest.partition("  ")
        return name.strip(), args.strip()
    return ("", rest) if re.match(r"/|\S+ -", rest) else (rest.strip(), "")


def _group(text: str) -> tuple[str, int | None]:
    """The path of the group that has the CPU, of `0::/path` or of the list of version 1, and the version.

    Examples:
        >>> _group("0::/a/b"), _group("11:cpu,cpuacct:/a,1:name=systemd:/b,0::/b"), _group("-")
        (('a/b', 2), ('a', 1), ('', None))
    """
    groups: dict[str, str] = {}
    for line in re.split(r",(?=\d+:)", text):
        controllers, colon, path = line.partition(":")[2].partition(":")
        if colon:
            groups.update(dict.fromkeys(controllers.split(","), path.strip("/")))
    if "cpu" in groups:
        return groups["cpu"], 1
    # A list of several hierarchies may be cut off before the one that has the CPU.
    return groups.get("", ""), 2 if list(groups) == [""] else None
