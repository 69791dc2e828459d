"""The output of `xl sched-credit`, `sched-credit2`, `sched-rtds` and similar commands on the domains of CPU pools."""

import re
from dataclasses import dataclass, field
from os import PathLike

from vcpulab.formats.errors import wrong
from vcpulab.formats.excerpts import Excerpt, numbered
from vcpulab.formats.sources import text_of

COLUMNS = ("weight", "cap", "period", "budget", "extratime", "vcpu", "slice", "latency", "extra")
"""The columns that may follow the name and the number of a domain, in lower case."""
_WORDS = {"extratime": ("yes", "no"), "vcpu": ("all",)}
"""Columns of RTDS whose cells may be words."""
_SCHEDULER = re.compile(r"\bsched-(\w+)")
_MS = re.compile(r"\d{1,9}\.0")
"""A time as xm prints it of SEDF."""
_COLUMN_NAMES = {"period(ms)": "period", "slice(ms)": "slice", "lat(ms)": "latency"}
_NAMES = {"edf": "sedf"}
"""Names that xl prints for schedulers, to their usual names."""


@dataclass(frozen=True)
class Sched:
    """The domains of one CPU pool, and its scheduler."""

    pool: str
    """Empty: not printed, as by `-d DOMAIN`, and by the tools of Xen 4.1."""
    scheduler: str
    """Empty: not known."""
    parameters: dict[str, str]
    """The parameters of the scheduler as a whole, as printed: `tslice` to `30ms`."""
    domains: list[dict[str, int | str]] = field(default_factory=list)
    """Columns by their headings in lower case: `name`, `id`, and `weight`, `cap`, `period` (us), `budget` (us)…"""


def is_heading(words: list[str]) -> bool:
    """`True`: the words are the heading of such a table.

    Examples:
        >>> is_heading("Name ID Weight Cap".split()), is_heading("Name ID Mem VCPUs State Time(s)".split())
        (True, False)
    """
    columns = _columns(words)
    return columns[:2] == ["name", "id"] and len(columns) > 2 and set(COLUMNS).issuperset(columns[2:])


def _columns(words: list[str]) -> list[str]:
    columns = [word.lower() for word in words]
    return [_COLUMN_NAMES.get(column, column) for column in columns]


def read_sched(path: str | PathLike[str]) -> list[Sched]:
    """The outputs of `xl sched-…` in a file, one or several.

    Raises:
        RecordingError: the file has another content.
    """
    pools: dict[str, Sched] = {}
    pool: Sched | None = None
    columns: list[str] | None = None
    for number, line in numbered(text_of(path)):
        words = line.split()
        if words[0] == "Cpupool":
            pool, columns = _pool(str(path), number, line, pools), None
        elif is_heading(words):
            columns = _columns(words)
            pool = pool or pools.setdefault("", Sched("", _scheduler_of(path, columns), {}))
        elif pool is None or columns is None:
            allowed = "`Cpupool NAME: PARAMETER=VALUE …`" if pool is None else "the heading `Name ID …`"
            raise wrong(str(path), number, line, f"{allowed} first")
        else:
            _add_domain(str(path), number, line, pool, columns)
    if not any(name or named.domains for name, named in pools.items()):
        raise wrong(str(path), 1, " ".join(columns or []), "`Cpupool NAME: PARAMETER=VALUE …` first, or domains")
    return list(pools.values())


def _scheduler_of(path: str | PathLike[str], columns: list[str]) -> str:
    """The scheduler whose table it is: by the command above it, or else by columns that no other one has."""
    typed = _SCHEDULER.search(path.command) if isinstance(path, Excerpt) else None
    if typed is not None:
        return typed[1]
    return "rtds" if "budget" in columns else "sedf" if "slice" in columns else ""


def _pool(path: str, number: int, line: str, pools: dict[str, Sched]) -> Sched:
    match = re.fullmatch(r"Cpupool ([^:]{1,255}):(.*)", line.strip())
    parameters = [word.partition("=") for word in re.split(r"[\s,]+", match[2].strip()) if word] if match else []
    if match is None or any(not sign for _, sign, _ in parameters):
        raise wrong(path, number, line, "`Cpupool NAME: PARAMETER=VALUE …`")
    values = {key: value for key, _, value in parameters}
    # Credit has a time slice, Credit2 none; RTDS says its name.
    scheduler = values.pop("sched", "credit" if "tslice" in values else "credit2").lower()
    scheduler = _NAMES.get(scheduler, scheduler)
    sched = pools.setdefault(match[1], Sched(match[1], scheduler, values))
    sched.parameters.update(values)
    return sched


def _add_domain(path: str, number: int, line: str, pool: Sched, columns: list[str]) -> None:
    cells = line.rsplit(maxsplit=len(columns) - 1)
    allowed = "a name and a number in each column"
    if len(cells) != len(columns):
        raise wrong(path, number, line, allowed)
    row: dict[str, int | str] = {}
    for column, cell in zip(columns, cells, strict=True):
        if column == "name":
            row[column] = cell.strip()
        elif _MS.fullmatch(cell):
            row[column] = int(cell.partition(".")[0])
        elif cell in _WORDS.get(column, ()):
            row[column] = cell.strip()
        elif cell.isdecimal() and len(cell) <= 18:
            row[column] = int(cell)
        else:
            raise wrong(path, number, line, allowed)
    pool.domains.append(row)
