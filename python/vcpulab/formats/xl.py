"""What Xen's `xl` prints and reads: listings of domains, vCPUs and pools, schedulers' parameters, domains' files.

Columns and syntax are those of xl(1) and xl.cfg(5) of Xen 4.
"""

import re
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path

from vcpulab.formats.errors import wrong
from vcpulab.formats.sources import text_of

Value = int | str | list["Value"]
"""What a domain's file can say."""


@dataclass(frozen=True)
class Domain:
    """A line of `xl list`."""

    name: str
    number: int
    memory_mb: int
    vcpus: int
    state: str
    cpu_s: float
    """CPU time since its creation, to 0.1 s."""
    pool: str | None = None
    """Its CPU pool, with `-c`."""
    nodes: str | None = None
    """Nodes that its memory is taken from, with `-n`: `all`, or numbers and ranges."""


@dataclass(frozen=True)
class Vcpu:
    """A line of `xl vcpu-list`."""

    name: str
    """Its domain's."""
    domain: int
    number: int
    pcpu: int | None
    """Where it is; `None`: offline."""
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
    """Its CPUs, with `-c`."""
    scheduler: str | None = None
    """Without `-c`."""


@dataclass(frozen=True)
class Memory:
    """Memory of a domain on a node, as `xl debug-keys u` writes it."""

    domain: int
    node: int
    pages: int


@dataclass(frozen=True)
class Sched:
    """What `xl sched-credit`, `sched-credit2` or `sched-rtds` prints of one CPU pool."""

    pool: str
    scheduler: str
    parameters: dict[str, str]
    """Of the scheduler as a whole, as printed: `tslice` to `30ms`."""
    domains: list[dict[str, int | str]] = field(default_factory=list)
    """Columns by their headings in lower case: `name`, `id`, and `weight`, `cap`, `period` (us), `budget` (us)…"""


_NUMBER = r"[0-9]{1,9}"
_SECONDS = r"[0-9]{1,12}(\.[0-9]{1,9})?"
_LIST = (r".+", _NUMBER, _NUMBER, _NUMBER, r"[a-z-]{6}", _SECONDS)
_VCPU = (r".+", _NUMBER, _NUMBER, rf"{_NUMBER}|-", r"[a-z-]{3}", _SECONDS, r".+", "/", r".+")
"""The cells of a row; names may hold spaces."""
LIST_HEADING = ["Name", "ID", "Mem", "VCPUs", "State", "Time(s)"]
_POOL_COLUMN, _NODE_COLUMN = ["Cpupool"], ["NODE", "Affinity"]
LIST_HEADINGS = [[*LIST_HEADING, *more] for more in ([], _POOL_COLUMN, _NODE_COLUMN, _POOL_COLUMN + _NODE_COLUMN)]
"""Without and with `-c` and `-n`."""
POOL_HEADING = ["Name", "CPUs", "Sched", "Active", "Domain", "count"]
POOL_CPUS_HEADING = ["Name", "CPU", "list"]
VCPU_HEADING = ["Name", "ID", "VCPU", "CPU", "State", "Time(s)", "Affinity", "(Hard", "/", "Soft)"]
_SCHED_COLUMNS = {"weight", "cap", "period", "budget", "extratime", "vcpu"}


def read_list(path: str | PathLike[str]) -> list[Domain]:
    """`xl list`, also with `-c` and `-n`.

    Raises:
        RecordingError: it is something else.
    """
    lines = _lines(path, *LIST_HEADINGS)
    more = lines[0].split()[len(LIST_HEADING) :]
    pooled, on_nodes = "Cpupool" in more, "NODE" in more
    row = (*_LIST, *([r"\S+"] * pooled), *([r"[\w,-]+"] * on_nodes))
    allowed = "name, ID, memory, vCPUs, six state letters, seconds" + ", pool" * pooled + ", nodes" * on_nodes
    found = []
    for name, number, memory, vcpus, state, time, *rest in _rows(path, lines, row, allowed):
        pool, nodes = rest[0] if pooled else None, rest[-1] if on_nodes else None
        found.append(Domain(name, int(number), int(memory), int(vcpus), state, float(time), pool, nodes))
    return found


def read_pools(path: str | PathLike[str]) -> list[Pool]:
    """`xl cpupool-list`, also with `-c`, or both after each other.

    Raises:
        RecordingError: it is something else.
    """
    found: dict[str, Pool] = {}
    with_cpus = False
    for number, line in enumerate(_lines(path, POOL_HEADING, POOL_CPUS_HEADING), 1):
        cells = line.split()
        if cells in (POOL_HEADING, POOL_CPUS_HEADING):
            with_cpus = cells == POOL_CPUS_HEADING
        elif with_cpus and len(cells) == 2 and re.fullmatch(r"[\d,-]+", cells[1]):
            found[cells[0]] = replace(found.get(cells[0], Pool(cells[0])), cpus=cells[1])
        elif not with_cpus and len(cells) == 5 and cells[3] in ("y", "n"):
            found[cells[0]] = replace(found.get(cells[0], Pool(cells[0])), scheduler=cells[2])
        elif cells:
            allowed = "name and CPUs" if with_cpus else "name, number of CPUs, scheduler, y or n, number of domains"
            raise wrong(str(path), number, line, allowed)
    return list(found.values())


def read_vcpu_list(path: str | PathLike[str]) -> list[Vcpu]:
    """`xl vcpu-list`.

    Raises:
        RecordingError: it is something else.
    """
    allowed = "name, ID, vCPU, CPU, three state letters, seconds, affinity / affinity"
    rows = _rows(path, _lines(path, VCPU_HEADING), _VCPU, allowed)
    return [
        Vcpu(name, int(domain), int(number), None if pcpu == "-" else int(pcpu), state, float(time), hard, soft)
        for name, domain, number, pcpu, state, time, hard, _, soft in rows
    ]


def _lines(path: str | PathLike[str], *headings: list[str]) -> list[str]:
    """The lines of a listing that begins with one of some headings."""
    lines = text_of(Path(path)).splitlines()
    if not lines or lines[0].split() not in headings:
        raise wrong(str(path), 1, lines[0] if lines else "", f"the heading `{' '.join(headings[0])}`")
    return lines


def _rows(path: str | PathLike[str], lines: list[str], row: tuple[str, ...], allowed: str) -> list[list[str]]:
    rows: list[list[str]] = []
    for number, line in enumerate(lines[1:], 2):
        if not line.strip():
            continue
        cells = line.rsplit(maxsplit=len(row) - 1)
        if len(cells) != len(row) or not all(map(re.fullmatch, row, cells)):
            raise wrong(str(path), number, line, allowed)
        rows.append([cell.strip() for cell in cells])
    return rows


def read_sched(path: str | PathLike[str]) -> list[Sched]:
    """What `xl sched-credit`, `sched-credit2` or `sched-rtds` prints, several after each other too.

    Raises:
        RecordingError: it is something else.
    """
    pools: dict[str, Sched] = {}
    pool: Sched | None = None
    columns: list[str] | None = None
    lines = text_of(Path(path)).splitlines()
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words:
            continue
        if words[0] == "Cpupool":
            pool, columns = _pool(str(path), number, line, pools), None
        elif pool is None:
            raise wrong(str(path), number, line, "`Cpupool NAME: PARAMETER=VALUE …` first")
        elif columns is None:
            columns = [word.lower() for word in words]
            if columns[:2] != ["name", "id"] or not _SCHED_COLUMNS.issuperset(columns[2:]):
                raise wrong(str(path), number, line, f"`Name ID`, then of {', '.join(sorted(_SCHED_COLUMNS))}")
        else:
            _add_domain(str(path), number, line, pool, columns)
    if not pools:
        raise wrong(str(path), 1, lines[0] if lines else "", "`Cpupool NAME: PARAMETER=VALUE …` first")
    return list(pools.values())


def _pool(path: str, number: int, line: str, pools: dict[str, Sched]) -> Sched:
    match = re.fullmatch(r"Cpupool (\S+):\s*(.*)", line.strip())
    parameters = [word.partition("=") for word in re.split(r"[\s,]+", match[2].strip()) if word] if match else []
    if match is None or any(not sign for _, sign, _ in parameters):
        raise wrong(path, number, line, "`Cpupool NAME: PARAMETER=VALUE …`")
    values = {key: value for key, _, value in parameters}
    # Credit has a time slice, Credit2 none; RTDS says its name.
    scheduler = values.pop("sched", "credit" if "tslice" in values else "credit2").lower()
    known = pools.setdefault(match[1], Sched(match[1], scheduler, values))
    known.parameters.update(values)
    return known


def _add_domain(path: str, number: int, line: str, pool: Sched, columns: list[str]) -> None:
    cells = line.rsplit(maxsplit=len(columns) - 1)
    # RTDS says yes or no in the last column, and `all` for all vCPUs.
    words = {"extratime": ("yes", "no"), "vcpu": ("all",)}
    allowed = "a name and a number in each column"
    if len(cells) != len(columns):
        raise wrong(path, number, line, allowed)
    row: dict[str, int | str] = {}
    for column, cell in zip(columns, cells, strict=True):
        if column == "name" or cell in words.get(column, ()):
            row[column] = cell.strip()
        elif cell.isdecimal() and len(cell) <= 18:
            row[column] = int(cell)
        else:
            raise wrong(path, number, line, allowed)
    pool.domains.append(row)


# ---- xl dmesg ----

_MEMORY_OF = re.compile(r"(?:Domain |d)(?P<domain>\d{1,5}) \(total: \d{1,15}\):?")
_ON_NODE = re.compile(r"Node (?P<node>\d{1,4}): (?P<pages>\d{1,15})")


def read_memory(path: str | PathLike[str]) -> list[Memory]:
    """What `xl debug-keys u` writes to `xl dmesg`: where the memory of each domain is; of several dumps the last.

    Raises:
        RecordingError: it holds no such dump.
    """
    found: dict[tuple[int, int], int] | None = None
    domain: int | None = None
    for line in text_of(Path(path)).splitlines():
        said = re.sub(r"^\(XEN\)\s*(\[[^\]]*\]\s*)?", "", line).strip()
        its, node = _MEMORY_OF.fullmatch(said), _ON_NODE.fullmatch(said)
        if said == "Memory location of each domain:":
            found, domain = {}, None
        elif its is not None:
            domain = int(its["domain"])
        elif node is not None and found is not None and domain is not None:
            found[domain, int(node["node"])] = int(node["pages"])
    if found is None:
        raise wrong(str(path), None, "no `Memory location of each domain:`", "`xl dmesg` after `xl debug-keys u`")
    return [Memory(domain, node, pages) for (domain, node), pages in found.items()]


# ---- xl.cfg ----

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r]+|\\\n|\#[^\n]*)|(?P<end>[\n;])|(?P<sign>[=\[\],]|\+=)
    |(?P<number>-?(?:0[xX][0-9a-fA-F]{1,16}|\d{1,19})(?![\w.]))|(?P<word>[A-Za-z_][\w.]*)
    |"(?P<double>[^"\n]*)"|'(?P<single>[^'\n]*)'""",
    re.VERBOSE,
)


def read_cfg(path: str | PathLike[str]) -> dict[str, Value]:
    """A domain's file (xl.cfg): its settings by name.

    Raises:
        RecordingError: it does not follow the grammar.
    """
    return _Cfg(str(path), text_of(Path(path))).settings()


def _joined(before: Value | None, more: Value) -> Value:
    """What `+=` makes: lists and strings grow, others are replaced."""
    if isinstance(before, list) and isinstance(more, list):
        before.extend(more)
        return before
    return before + more if isinstance(before, str) and isinstance(more, str) else more


class _Cfg:
    """A reader of the grammar: settings, each `NAME = VALUE`, a value being a number, a string, or a list of values."""

    def __init__(self, path: str, text: str) -> None:
        self._path = path
        self._tokens = self._scan(text)
        self._at = 0

    def _scan(self, text: str) -> list[tuple[str, str, int]]:
        tokens, at, line = [], 0, 1
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise wrong(self._path, line, text[at:].split("\n", 1)[0], 'NAME = NUMBER, "STRING" or [LIST]')
            kind = match.lastgroup
            assert kind is not None
            if kind != "space":
                tokens.append((kind, match[kind], line))
            line += match[0].count("\n")
            at = match.end()
        return [*tokens, ("end", "the end of the file", line)]

    def settings(self) -> dict[str, Value]:
        settings: dict[str, Value] = {}
        while self._at < len(self._tokens):
            if self._take("end"):
                continue
            name = self._want("word", "a setting's name")
            sign = self._want("sign", "`=`", ("=", "+="))
            value = self._value(depth=0)
            settings[name] = _joined(settings.get(name), value) if sign == "+=" else value
            self._want("end", "the end of the line")
        return settings

    def _value(self, depth: int) -> Value:
        kind, text, line = self._tokens[self._at]
        self._at += 1
        if kind == "number":
            return int(text, 0) if "x" in text.lower() else int(text)
        if kind in ("double", "single"):
            return text
        if (kind, text) != ("sign", "[") or depth == 8:
            raise wrong(self._path, line, text, "a number, a string in quotes, or a list in brackets (8 deep at most)")
        values: list[Value] = []
        while True:
            self._skip_ends()
            if self._take("sign", "]"):
                return values
            values.append(self._value(depth + 1))
            self._skip_ends()
            if self._take("sign", "]"):
                return values
            self._want("sign", "`,` or `]`", (",",))

    def _skip_ends(self) -> None:
        while self._tokens[self._at][0] == "end" and self._at < len(self._tokens) - 1:
            self._at += 1

    def _take(self, kind: str, text: str | None = None) -> bool:
        here = self._tokens[self._at]
        taken = here[0] == kind and text in (None, here[1])
        self._at += taken
        return taken

    def _want(self, kind: str, allowed: str, texts: tuple[str, ...] | None = None) -> str:
        here, text, line = self._tokens[self._at]
        if here != kind or (texts is not None and text not in texts):
            raise wrong(self._path, line, text.replace("\n", "the end of the line"), allowed)
        self._at += 1
        return text
