"""The output of `xl list` and similar commands of Xen's `xl`, and before it `xm`: domains, vCPUs and CPU pools.

Columns are those of xl(1) of Xen 4.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike

from vcpulab.formats.errors import wrong
from vcpulab.formats.excerpts import numbered
from vcpulab.formats.sources import text_of


@dataclass(frozen=True)
class Domain:
    """A line of `xl list`."""

    name: str
    number: int | None
    """The domain's ID; `None`: the domain is off, and `xm` has its configuration."""
    memory_mb: int
    vcpus: int
    state: str
    cpu_s: float
    """CPU time since its creation, to 0.1 s."""
    pool: str | None = None
    """The domain's CPU pool, with `-c`."""
    nodes: str | None = None
    """Nodes that its memory is taken from, with `-n`: `all`, or numbers and ranges."""


@dataclass(frozen=True)
class Vcpu:
    """A line of `xl vcpu-list`."""

    name: str
    """The name of the domain."""
    domain: int
    number: int
    pcpu: int | None
    """The pCPU that the vCPU is on; `None`: offline."""
    state: str
    cpu_s: float
    hard: str
    """pCPUs it may run on: `all`, or numbers and ranges."""
    soft: str
    """pCPUs it prefers."""


@dataclass(frozen=True)
class Pool:
    """A line of `xl cpupool-list`."""

    name: str
    cpus: str | None = None
    """The CPUs of the pool, with `-c`."""
    scheduler: str | None = None
    """Without `-c`."""
    size: int | None = None
    """The number of its CPUs, without `-c`."""


_NUMBER = r"[0-9]{1,9}"
_SECONDS = r"[0-9]{1,12}(\.[0-9]{1,9})?"
_LIST = (r".+", _NUMBER, _NUMBER, _NUMBER, r"[a-z-]{6}", _SECONDS)
_VCPU = (r".+", _NUMBER, _NUMBER, rf"{_NUMBER}|-", r"[a-z-]{3}", _SECONDS)
_POOL = (r".+", _NUMBER, r"\S+", r"y|n", _NUMBER)
_POOL_CPUS = (r".+", r"all|\d{1,5}([,-]\d{1,5})*")
"""The cells of a row; names may hold spaces."""
_ANY_CPU = re.compile(r"(?<=\s)any[ \t]cpu$")
_LIST_OFF = (r".+", _NUMBER, _NUMBER, _SECONDS)
"""A row of `xm list` without an ID and a state."""
LIST_HEADING = ["Name", "ID", "Mem", "VCPUs", "State", "Time(s)"]
_MORE = {
    "pool": (["Cpupool"], r"\S+", "pool"),
    "nodes": (["NODE", "Affinity"], r"any_node|[\w,-]+", "nodes"),
    "uuid": (["UUID"], r"[0-9A-Fa-f-]{1,36}", "UUID"),
    "reason": (["Reason-Code"], r"\S+", "reason"),
    "label": (["Security", "Label"], r"\S+", "label"),
}
"""Columns of `-c`, `-n`, `-v` and `-Z`, in any order: their headings, a cell, and what it is."""
POOL_HEADING = ["Name", "CPUs", "Sched", "Active", "Domain", "count"]
POOL_CPUS_HEADING = ["Name", "CPU", "list"]
VCPU_HEADING = ["Name", "ID", "VCPU", "CPU", "State", "Time(s)", "Affinity", "(Hard", "/", "Soft)"]
OLD_VCPU_HEADING = ["Name", "ID", "VCPU", "CPU", "State", "Time(s)", "CPU", "Affinity"]
"""Up to Xen 4.4, which has no soft affinity."""
OLDEST_VCPU_HEADING = ["Name", "ID", "VCPUs", "CPU", "State", "Time(s)", "CPU", "Affinity"]
"""`xm vcpu-list` of Xen 3."""
VCPU_HEADINGS = (VCPU_HEADING, OLD_VCPU_HEADING, OLDEST_VCPU_HEADING)
OLD_LIST_HEADING = ["Name", "ID", "Mem(MiB)", "VCPUs", "State", "Time(s)"]
"""`xm list` of Xen 3."""
HEADINGS = (
    LIST_HEADING,
    OLD_LIST_HEADING,
    *([*LIST_HEADING, *words] for words, _, _ in _MORE.values()),
    POOL_HEADING,
    POOL_CPUS_HEADING,
    *VCPU_HEADINGS,
)


def is_list_heading(words: list[str]) -> bool:
    """`True`: the words are the heading of `xl list`."""
    return _more_columns(words) is not None


def _more_columns(words: list[str]) -> list[str] | None:
    """The columns after those that `xl list` always has; `None`: it is another heading.

    Examples:
        >>> _more_columns("Name ID Mem VCPUs State Time(s) Cpupool NODE Affinity".split())
        ['pool', 'nodes']
        >>> _more_columns("Name ID Mem".split())
    """
    count = len(LIST_HEADING)
    if words[:count] not in (LIST_HEADING, OLD_LIST_HEADING):
        return None
    rest, columns = words[count:], []
    while rest:
        column = next((name for name, (heading, _, _) in _MORE.items() if rest[: len(heading)] == heading), None)
        if column is None or column in columns:
            return None
        columns.append(column)
        rest = rest[len(_MORE[column][0]) :]
    return columns


def read_list(path: str | PathLike[str]) -> list[Domain]:
    """`xl list`, also with `-c`, `-n`, `-v` and `-Z`.

    Raises:
        RecordingError: the file does not have this format.
    """
    lines = list(numbered(text_of(path)))
    more = _more_columns(lines[0][1].split()) if lines else None
    if more is None:
        raise _no_heading(path, lines, LIST_HEADING)
    row = (*_LIST, *(_MORE[column][1] for column in more))
    allowed = ", ".join(["name, ID, memory, vCPUs, six state letters, seconds", *(_MORE[column][2] for column in more)])
    domains = [_off(line) for _, line in lines[1:]]
    off = [domain for domain in domains if domain is not None]
    rows = [
        (number, line.replace("any node", "any_node"))
        for (number, line), domain in zip(lines[1:], domains, strict=True)
        if domain is None
    ]
    running = []
    for name, number, memory, vcpus, state, time, *rest in _rows(path, rows, row, allowed):
        cells = dict(zip(more, rest, strict=True))
        running.append(
            Domain(
                name,
                int(number),
                int(memory),
                int(vcpus),
                state,
                float(time),
                cells.get("pool"),
                cells.get("nodes"),
            )
        )
    return [*running, *off]


def names_of(domains: Iterable[Domain]) -> dict[int, str]:
    """The names of domains by their IDs."""
    return {domain.number: domain.name for domain in domains if domain.number is not None}


def _off(line: str) -> Domain | None:
    """A domain that `xm list` has and that does not run: a row without an ID; `None`: another row."""
    cells = _cells(line, _LIST_OFF)
    return None if cells is None else Domain(cells[0], None, int(cells[1]), int(cells[2]), "", 0.0)


def read_pools(path: str | PathLike[str]) -> list[Pool]:
    """`xl cpupool-list`, also with `-c`, or both after each other.

    Raises:
        RecordingError: the file does not have this format.
    """
    pools: dict[str, Pool] = {}
    with_cpus: bool | None = None
    lines = list(numbered(text_of(path)))
    for number, line in lines:
        cells = line.split()
        if cells in (POOL_HEADING, POOL_CPUS_HEADING):
            with_cpus = cells == POOL_CPUS_HEADING
        elif with_cpus is None:
            raise _no_heading(path, lines, POOL_HEADING)
        else:
            row = _cells(line, _POOL_CPUS if with_cpus else _POOL)
            # A pool without CPUs is a name alone.
            if row is None and (not with_cpus or "  " in line.strip()):
                allowed = "name and CPUs" if with_cpus else "name, number of CPUs, scheduler, y or n, number of domains"
                raise wrong(str(path), number, line, allowed)
            name, *rest = row or [line.strip()]
            pool = pools.get(name, Pool(name))
            if with_cpus:
                pools[name] = replace(pool, cpus=rest[0]) if rest else pool
            else:
                pools[name] = replace(pool, scheduler=rest[1], size=int(rest[0]))
    if not pools:
        raise _no_heading(path, lines, POOL_HEADING)
    return list(pools.values())


def read_vcpu_list(path: str | PathLike[str]) -> list[Vcpu]:
    """`xl vcpu-list`.

    Raises:
        RecordingError: the file does not have this format.
    """
    lines = list(numbered(text_of(path)))
    heading = lines[0][1].split() if lines else []
    if heading not in VCPU_HEADINGS:
        raise _no_heading(path, lines, VCPU_HEADING)
    soft_too = heading == VCPU_HEADING
    row = (*_VCPU, *((r".+", "/", r".+") if soft_too else (r".+",)))
    allowed = "name, ID, vCPU, CPU, three state letters, seconds, affinity" + " / affinity" * soft_too
    rows = _rows(path, [(number, _any_cpu(line)) for number, line in lines[1:]], row, allowed)
    return [
        Vcpu(
            name,
            int(domain),
            int(number),
            None if pcpu == "-" else int(pcpu),
            state,
            float(time),
            hard,
            soft[-1] if soft else "all",
        )
        for name, domain, number, pcpu, state, time, hard, *soft in rows
    ]


def _any_cpu(line: str) -> str:
    """A row in which all CPUs are one word; xm writes `any cpu`."""
    return _ANY_CPU.sub("all", line.rstrip())


def _no_heading(path: str | PathLike[str], lines: list[tuple[int, str]], heading: list[str]) -> Exception:
    number, line = lines[0] if lines else (1, "")
    return wrong(str(path), number, line, f"the heading `{' '.join(heading)}`")


def _rows(
    path: str | PathLike[str], lines: list[tuple[int, str]], row: Sequence[str], allowed: str
) -> Iterator[list[str]]:
    """The cells of each row; of a row that a mailer wrapped, the two lines are read as one."""
    at = 0
    while at < len(lines):
        number, line = lines[at]
        cells = _cells(line, row)
        # A line that is a row by itself does not end another one.
        if cells is None and at + 1 < len(lines) and lines[at + 1][0] == number + 1:
            rest = lines[at + 1][1]
            cells = None if _cells(rest, row) else _cells(f"{line} {rest}", row)
            at += 1
        if cells is None:
            raise wrong(str(path), number, line, allowed)
        yield cells
        at += 1


def _cells(line: str, row: Sequence[str]) -> list[str] | None:
    cells = line.rsplit(maxsplit=len(row) - 1)
    if len(cells) != len(row) or not all(map(re.fullmatch, row, cells)):
        return None
    return [cell.strip() for cell in cells]
