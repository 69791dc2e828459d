"""The kinds of files that are read, and how each is known by what is in it."""

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

from vcpulab._work.progress import Progress
from vcpulab.errors import RecordingError
from vcpulab.formats import (
    cgls,
    collected,
    host_setup,
    jtl,
    linux_cpus,
    linux_experiment,
    linux_host,
    proxmox,
    ps,
    virsh,
    xen_xml,
    xenmon,
    xenpm,
    xentop,
    xl,
    xl_cfg,
    xl_dmesg,
    xl_info,
    xl_long,
    xl_sched,
)
from vcpulab.formats.excerpts import Excerpt, excerpts
from vcpulab.formats.headed import heading_of
from vcpulab.formats.sources import TEXT_BYTES_MAX, opened
from vcpulab.formats.trace import Recording, VcpuThread, read_trace
from vcpulab.formats.unread import unread

KvmKind = Literal[
    "virsh-list",
    "virsh-domain",
    "virsh-xml",
    "virsh-domstats",
    "virsh-nodeinfo",
    "virsh-capabilities",
    "lscpu",
    "qm-list",
    "qm-config",
    "ps-threads",
    "linux",
    "systemd-cgls",
    "linux-experiment",
    "host-setup",
]
XenKind = Literal[
    "xl-list",
    "xl-vcpu-list",
    "xl-cpupool-list",
    "xl-sched",
    "xl-info",
    "xl-dmesg",
    "xl-cfg",
    "xl-list-l",
    "xen-xml",
    "xenpm",
    "xentop",
]
"""A kind of listing of a Xen host."""
Kind = Literal[
    "xentrace",
    "sched-text",
    XenKind,
    "xenmon",
    "jtl",
    "collected",
    KvmKind,
]
UNKNOWN = "not known by how it begins"
INSTEAD = "not read, but this is"
"""The end of a reason after which a command follows."""
_PEEK_BYTES = 1 << 14
_TRACE_BEGINS = (b"\x03\xf0\x01\x20", b"\x20\x01\xf0\x03")


class UnknownKindError(RecordingError):
    """A file that begins like none of the kinds."""


@dataclass(frozen=True)
class Read:
    """A file, and what it holds."""

    path: Path
    kind: Kind
    holds: Any
    """A `Recording` for traces; else what the kind's reader in `formats` returns."""

    def as_data(self) -> dict[str, Any]:
        """All of it, as JSON has it."""
        holds = self.holds
        if isinstance(holds, Recording):
            return {"kind": self.kind, **holds.as_data()}
        if isinstance(holds, xl_info.Info | xl_dmesg.Dmesg | linux_host.Linux):
            holds = holds.as_data()
        elif isinstance(holds, linux_experiment.Experiment):
            holds = asdict(holds)
        elif self.kind == "jtl":
            holds = [_requests(request) for request in holds]
        elif isinstance(holds, list):
            holds = [asdict(row) for row in holds]
        return {"kind": self.kind, "file": str(self.path), "holds": holds}


def _requests(requests: jtl.Requests) -> dict[str, Any]:
    percentiles = {f"p{percent}_ms": requests.percentile_ms(percent) for percent in (50, 90, 99)}
    own = ("label", "count", "failed", "began_ms", "ended_ms", "rate", "mean_ms")
    return {**{name: getattr(requests, name) for name in own}, **percentiles}


_READERS: dict[Kind, Callable[[str | PathLike[str]], object]] = {
    "xl-list": xl.read_list,
    "xl-vcpu-list": xl.read_vcpu_list,
    "xl-cpupool-list": xl.read_pools,
    "xl-sched": xl_sched.read_sched,
    "xl-info": xl_info.read_info,
    "xl-dmesg": xl_dmesg.read_dmesg,
    "xl-cfg": xl_cfg.read_cfg,
    "xl-list-l": xl_long.read_long,
    "xen-xml": xen_xml.read_xen_xml,
    "xenpm": xenpm.read_frequencies,
    "xentop": xentop.read_xentop,
    "xenmon": xenmon.read_xenmon,
    "jtl": jtl.read_jtl,
    "collected": collected.read_collected,
    "virsh-list": virsh.read_list,
    "virsh-domain": virsh.read_domain,
    "virsh-xml": virsh.read_xml,
    "virsh-domstats": virsh.read_domstats,
    "virsh-nodeinfo": linux_cpus.read_counts,
    "virsh-capabilities": linux_cpus.read_capabilities,
    "lscpu": linux_cpus.read_lscpu,
    "qm-list": proxmox.read_list,
    "qm-config": proxmox.read_config,
    "ps-threads": ps.read_threads,
    "linux": linux_host.read_linux,
    "systemd-cgls": cgls.read_cgls,
    "linux-experiment": linux_experiment.read_experiment,
    "host-setup": host_setup.read_setup,
}
KINDS: tuple[Kind, ...] = ("xentrace", "sched-text", *_READERS)
"""All that are read."""
THREADS = "threads.txt"
"""The file of a folder that says which threads are vCPUs, unless another one is named."""


_SCENARIO = re.compile(r"(?m)^\[(host|domain\.[^\]]+)\]")
_PERF_DATA = (b"PERFILE2", b"2ELIFREP")
"""A `perf.data` of either byte order."""
_TRACE_CMD = b"\x17\x08Dtracing"
"""A `trace.dat`."""
_PERF_TABLES = re.compile(
    r"(?m)^Runtime summary$|^[ \t]{1,80}time[ \t]{1,80}cpu[ \t]{1,80}(\S{1,512}[ \t]{1,80})?task name\s"
    r"|^[ \t]{0,80}Task[ \t]{1,80}\|[ \t]{1,80}Runtime ms\s"
)
"""The tables of `perf sched timehist`, with and without `-s`, and of `perf sched latency`."""
_AS_TEXT = "perf script -i {} --guest-code --ns -F +pid > trace.txt"
"""`perf sched script` is the same."""


Source = Path | Excerpt
"""A file, or the part of it that a command printed."""
_WHOLE: frozenset[Kind] = frozenset(
    {"xentrace", "sched-text", "xenmon", "jtl", "collected", "virsh-xml", "xen-xml", "virsh-capabilities"}
)
"""Kinds that are never a part of a file."""
_AGAIN = frozenset({"xl-list", "xl-vcpu-list", "virsh-list"})
"""Kinds of which a second heading begins another listing."""


def kind_of(path: str | PathLike[str]) -> Kind:
    """The kind of a file's content, by its beginning; of several listings the first one's.

    Raises:
        RecordingError: none of the kinds begins like that.
        OSError: it cannot be read.
    """
    return next(kind for _, kind in listings_in(Path(path)) if kind is not None)


def listings_in(path: Path) -> list[tuple[Source, Kind | None]]:
    """The listings of a file, each with its kind; `None`: of that part it is not known.

    Raises:
        RecordingError: no part of it is known.
        OSError: it cannot be read.
    """
    with opened(path) as (source, _):
        data = source.read(TEXT_BYTES_MAX + 1)
    begins = data[:_PEEK_BYTES].decode(errors="replace").removeprefix("\ufeff")
    if data[:4] in _TRACE_BEGINS:
        return [(path, "xentrace")]
    _refuse_binary(path, data, begins)
    try:
        whole: Kind | None = _kind_of_text(path, begins)
    except UnknownKindError:
        whole = None
    try:
        text = data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError:
        text = None
    if text is None or whole in _WHOLE or len(data) > TEXT_BYTES_MAX:
        if whole is None:
            raise _unknown(path)
        return [(path, whole)]
    listings: list[tuple[Source, Kind | None]] = []
    for part in excerpts(path, text, _begun_by, _AGAIN, xl.HEADINGS):
        try:
            prints_file = linux_host.printed_file(part) is not None
            text = part.text.lstrip("\n")[:_PEEK_BYTES]
            listings.append((part, "linux" if prints_file else _kind_of_text(path, text)))
        except UnknownKindError:
            listings.append((part, None))
    if not any(kind for _, kind in listings):
        raise _unknown(path)
    return listings


def _begun_by(line: str) -> Kind | None:
    """The listing that a line in the middle of a text begins."""
    words = line.split(maxsplit=_HEADING_WORDS_MOST)
    return _of_heading(words) or next((kind for pattern, kind in _BEGUN.items() if re.match(pattern, line)), None)


def _refuse_binary(path: Path, data: bytes, text: str) -> None:
    """Refuses empty files, binary files of perf and trace-cmd, and tables that perf makes of recordings.

    Raises:
        RecordingError: the file is one of these.
    """
    if not text.strip():
        raise RecordingError(f"{path}: empty: nothing was recorded or written to it")
    if data[:8] in _PERF_DATA:
        raise RecordingError(
            f"{path}: a binary perf.data file; allowed: its text\n  hint: {_AS_TEXT.format(shlex.quote(str(path)))}"
        )
    if data.startswith(_TRACE_CMD):
        as_text = f"trace-cmd report -i {shlex.quote(str(path))} > trace.txt"
        raise RecordingError(f"{path}: a binary trace.dat file; allowed: its text\n  hint: {as_text}")
    if _PERF_TABLES.search(text):
        raise RecordingError(
            f"{path}: a table of `perf sched`, without wake-ups; allowed: the trace\n"
            f"  hint: {_AS_TEXT.format('perf.data')}"
        )


def _kind_of_text(path: Path, text: str) -> Kind:
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise _unknown(path)
    kind = _of_heading(lines[0].split()) or _of_kvm(text, lines) or _of_line(text, lines[0])
    if kind is not None:
        return kind
    output = unread(text)
    if output is not None:
        raise RecordingError(f"{path}: {output.title}: {INSTEAD}\n  hint: {output.command}")
    if _SCENARIO.search(text):
        recorder = f"vcpulab run {shlex.quote(str(path))} --trace DIRECTORY"
        raise RecordingError(f"{path}: a scenario, not a recording\n  hint: {recorder} records one")
    if re.search(r"(?m)^[ \t]*(name|kernel|memory|vcpus|type|builder)[ \t]*=", text):
        return "xl-cfg"
    raise _unknown(path)


def _unknown(path: Path) -> UnknownKindError:
    hint = "vcpulab import --kind KIND, if it is one of these"
    return UnknownKindError(f"{path}: {UNKNOWN}; allowed: {', '.join(KINDS)}\n  hint: {hint}")


@dataclass(frozen=True)
class Unused:
    """A file of a folder that is not used, and why."""

    path: Path
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: not used: {self.reason}"

    def in_folder(self) -> str:
        """The text of the entry with the file's name alone, for any location of the folder."""
        return str(self).replace(str(self.path), self.path.name)


def kinds_in(folder: Path) -> Iterator[tuple[Source, Kind] | Unused]:
    """The listings in the files of a folder, by name, each with its kind, or why that is not known."""
    for path in sorted(folder.iterdir()):
        try:
            if path.is_file():
                yield from known_in(path)
        except UnknownKindError:
            yield Unused(path, f"{UNKNOWN} (`vcpulab import {shlex.quote(str(path))}` lists the kinds)")
        except (RecordingError, OSError) as error:
            reason, _, hint = str(error).removeprefix(f"{path}: ").partition("\n  hint: ")
            yield Unused(path, reason.split("\n")[0] + f": {hint}" * reason.endswith(INSTEAD))


def known_in(path: Path) -> Iterator[tuple[Source, Kind] | Unused]:
    """The listings of a file, each with its kind, and the parts of which that is not known.

    Raises:
        RecordingError: no part of it is known.
        OSError: it cannot be read.
    """
    for source, kind in listings_in(path):
        if kind is not None:
            yield source, kind
        elif isinstance(source, Excerpt):
            first, last = source.lines
            yield Unused(path, f"line {first}" + f" to line {last}" * (first < last) + f": {UNKNOWN}")


def hypervisor_of(kind: Kind) -> Literal["xen", "kvm"] | None:
    """The hypervisor whose listing a kind is; `None`: both have such listings."""
    if kind in get_args(KvmKind):
        return "kvm"
    return "xen" if kind.startswith(("xe", "xl")) else None


def files_by_name(reads: Iterable[Read]) -> dict[str, list[Path]]:
    """The listings that contain each domain, by its name."""
    files: dict[str, list[Path]] = {}
    for read_file in reads:
        for name in _names_in(read_file):
            files.setdefault(name, []).append(read_file.path)
    return files


def _names_in(read_file: Read) -> set[str]:
    holds = read_file.holds
    if read_file.kind == "xl-cfg":
        return {str(holds.get("name", read_file.path.stem))}
    rows = holds if isinstance(holds, list) else []
    domains = [str(domain["name"]) for row in rows if isinstance(row, xl_sched.Sched) for domain in row.domains]
    return {*domains, *(row.name for row in rows if isinstance(getattr(row, "name", None), str))}


def threads_in(folder: Path) -> Path | None:
    """The file of a folder that says which threads are vCPUs, if it has one and it is no list by `ps`."""
    file = folder / THREADS
    try:
        says = file.is_file() and kind_of(file) != "ps-threads"
    except RecordingError:
        says = True
    return file if says else None


def _of_heading(words: list[str]) -> Kind | None:
    headings: dict[Kind, list[list[str]]] = {
        "xl-vcpu-list": list(xl.VCPU_HEADINGS),
        "xl-cpupool-list": [xl.POOL_HEADING, xl.POOL_CPUS_HEADING],
        "virsh-list": virsh.LIST_HEADINGS,
    }
    if xl.is_list_heading(words):
        return "xl-list"
    if xl_sched.is_heading(words):
        return "xl-sched"
    return next((kind for kind, of_kind in headings.items() if words in of_kind), None)


_HEADING_WORDS_MOST = 24
"""No heading has more."""
_BEGUN: dict[str, Kind] = {
    r"Cpupool [^:]{1,255}:": "xl-sched",
    r"\s{0,80}NAME\s{1,80}STATE\s{1,80}CPU\(sec\)\s{1,80}CPU\(%\)": "xentop",
    xentop.SCREEN_BEGINS.pattern: "xentop",
    r"cpu id\s{0,80}: \d": "xenpm",
    r"(host|release)\s{0,80}: ": "xl-info",
    r"\(XEN\) ": "xl-dmesg",
}
"""Listings that a line begins, also in the middle of a text."""


def _of_line(text: str, first: str) -> Kind | None:
    begun: dict[str, Kind] = {
        **_BEGUN,
        collected.BEGINS: "collected",
        r"# passed cpu dom ": "xenmon",
        r"<\?xml|<testResults": "jtl",
    }
    for pattern, kind in begun.items():
        if re.match(pattern, first):
            return kind
    if re.match(xl_long.BEGINS, text) and '"domid"' in text:
        return "xl-list-l"
    if "timeStamp" in first and "elapsed" in first:
        return "jtl"
    if re.search(r"(?m)^\(XEN\) ", text):
        return "xl-dmesg"
    # With `--show-task-events` those come first, and are many.
    if re.search(r"\bsched_(switch|wakeup|waking): |: PERF_RECORD_(COMM|FORK|EXIT)\b", text) or text.startswith(
        "# tracer:"
    ):
        return "sched-text"
    return None


_XML = re.compile(r"(?m)^[ \t]*<(?P<root>capabilities>|domain\s[^>]{0,400}?type=)")
"""The first element that libvirt's XML is known by: capabilities have elements of the other name in them."""
_OF_KVM: tuple[tuple[Kind, str], ...] = (
    ("virsh-domstats", r"(?m)^Domain: '"),
    ("lscpu", rf"(?m)^{linux_cpus.COLUMNS}"),
    ("virsh-nodeinfo", r"(?m)^[ \t]{0,80}(Thread\(s\) per core|Core\(s\) per socket): {1,80}\d"),
    ("linux", r"(?m)^==> /(sys|proc)/\S{1,4096} <==$"),
)
"""Listings of KVM hosts that are known by a line, …"""
_OF_KVM_FIRST: tuple[tuple[Kind, str], ...] = (
    ("virsh-domain", virsh.DOMAIN_BEGINS),
    ("virsh-nodeinfo", r"(CPU model|Architecture):\s"),
    ("qm-list", r"\s*VMID\s+NAME\s+STATUS\s"),
    ("ps-threads", ps.BEGINS),
    ("linux-experiment", linux_experiment.BEGINS),
    ("host-setup", host_setup.BEGINS),
    ("systemd-cgls", cgls.BEGINS),
    ("linux", linux_host.BEGINS),
)
"""… by the first below a heading, …"""
_QM_CONFIG = re.compile(
    r"(?m)^(agent|boot|cores|cpu|cpuunits|memory|meta|name|net0|numa|ostype|scsihw|smbios1|sockets|vmgenid"
    r"|rootfs|unprivileged): "
)
_OF_CONTAINERS = ("rootfs", "unprivileged")
"""… or by several such lines."""


def _of_kvm(text: str, lines: Sequence[str]) -> Kind | None:
    """The kind of a KVM host's listing; `None`: the text is none of these kinds."""
    first = next((line for line in lines if heading_of(line) is None), "")
    xml = _XML.search(text)
    by_root: list[Kind] = []
    if xml is not None and xml["root"].startswith("capabilities"):
        by_root = ["virsh-capabilities"]
    elif xml is not None:
        by_root = ["xen-xml" if re.search(xen_xml.BEGINS, text) else "virsh-xml"]
    by_line = (kind for kind, pattern in _OF_KVM if re.search(pattern, text))
    by_first = (kind for kind, pattern in _OF_KVM_FIRST if re.match(pattern, first))
    settings = set(_QM_CONFIG.findall(text))
    configured: list[Kind] = ["qm-config"] if len(settings) > 1 and not settings & set(_OF_CONTAINERS) else []
    return next(chain(by_root, by_line, by_first, configured), None)


def names_of(listings: Iterable[Read]) -> tuple[dict[int, str], list[Path]]:
    """The names of domains by ID in traces and `xl list`, and the unread files `list*.txt` beside a trace."""
    names: dict[int, str] = {}
    unread: list[Path] = []
    for read_listing in listings:
        if isinstance(read_listing.holds, Recording):
            names.update(read_listing.holds.names)
            # An `xl list` beside a trace is of the same host.
            for listing in sorted(read_listing.path.parent.glob("list*.txt")):
                try:
                    names.update(xl.names_of(xl.read_list(listing)))
                except (RecordingError, OSError):
                    unread.append(listing)
        elif read_listing.kind == "xl-list":
            names.update(xl.names_of(read_listing.holds))
    return names, unread


def read(
    path: str | PathLike[str],
    kind: Kind | None = None,
    *,
    cpu_mhz: float | None = None,
    threads: Iterable[VcpuThread] = (),
    events: str | PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Read:
    """Reads a file of any of the kinds, or an excerpt; for the options see `read_trace`, they are for traces only.

    Raises:
        RecordingError: it holds something else, is damaged, or holds several listings: `read_all` reads these.
        OSError: it cannot be read.
        EngineError: the events cannot be written.
    """
    source: str | PathLike[str] = path
    if kind is None:
        listings = listings_in(Path(path))
        if len(listings) > 1:
            kinds = ", ".join(kind or "something unknown" for _, kind in listings)
            raise RecordingError(f"{path}: found {kinds}; allowed: one listing, or `read_all`")
        source, kind = listings[0]
        assert kind is not None
    if kind in ("xentrace", "sched-text"):
        holds: object = read_trace(path, kind, cpu_mhz=cpu_mhz, threads=threads, events=events, progress=progress)
    else:
        holds = _READERS[kind](source)
    return Read(Path(path), kind, holds)


def read_all(path: str | PathLike[str]) -> tuple[list[Read], list[Unused]]:
    """Reads all listings of a file, and names the parts that are none.

    Raises:
        RecordingError: it holds none, or one is damaged.
        OSError: it cannot be read.
    """
    parts = list(known_in(Path(path)))
    reads = [read(*part) for part in parts if not isinstance(part, Unused)]
    return reads, [part for part in parts if isinstance(part, Unused)]
