"""`vcpulab import`: recordings of real hosts, and the files of other tools."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from vcpulab import formats as recordings
from vcpulab.cli import files, page, terminal
from vcpulab.cli.options import (
    CpuMhz,
    Flag,
    Force,
    Out,
    Profile,
    TableOrJson,
    Threads,
    TypedFor,
    command,
    group,
    number,
)
from vcpulab.cli.outputs import Writes
from vcpulab.errors import RequestError
from vcpulab.formats import Read, Recording, archive, rtapp
from vcpulab.formats.collected import Collected, read_collected
from vcpulab.formats.xl_info import Info
from vcpulab.hosts import kvm_host, xen_host
from vcpulab.hosts.pcpu_map import map_of
from vcpulab.hypervisors import Toolstack
from vcpulab.imports import kvm, result, xen
from vcpulab.scenario.units import spans
from vcpulab.show.as_json import as_json
from vcpulab.show.table import Table
from vcpulab.twin.recording_document import document_of

import_ = group(
    "import",
    "Read recordings of real hosts, and make scenarios of the files of other tools.",
    "vcpulab import host.tar.gz --out host.toml",
    "vcpulab import trace.bin --show",
    "vcpulab import trace.bin.xz list0.txt --format json",
    "vcpulab import sched.txt --threads vcpus.txt",
    "vcpulab import rt-app workload.json --out workload.toml --vcpus 2",
    "vcpulab import xl recorded/list0.txt recorded/sched.txt --out host.toml",
    "vcpulab import kvm machines.xml lscpu.txt kernel.txt --out host.toml",
)


@import_.default
def import_files(
    *paths: Path,
    show: Flag = False,
    format: TableOrJson = "table",
    kind: recordings.Kind | None = None,
    cpu_mhz: CpuMhz = None,
    threads: Threads = None,
    events: Annotated[Path | None, Writes.FILE] = None,
    out: Out = None,
    profile: Profile = None,
    toolstack: TypedFor = None,
    force: Force = False,
) -> None:
    """Make a scenario of an archive of a host, or read recordings and listings, and print their content.

    An archive that `vcpulab collect` wrote becomes a scenario, and so do a folder and files with --out: what `vcpulab
    import xl` or `vcpulab import kvm` makes, whichever host it is of.

    Traces of xentrace and the text of `perf sched script` or ftrace; what `xl list`, `vcpu-list`, `sched-credit`,
    `sched-credit2`, `sched-rtds` and `info` print, `xentop -b`, domains' files (xl.cfg), XenMon's logs, JMeter's; what
    `virsh`, `qm`, `ps -eLo` and `lscpu` print of a KVM host, and files of its /sys, /proc and control groups.
    Files may be compressed. Names of domains are taken from what `xl list` printed, given too or in files list*.txt
    beside a trace.

    Args:
        paths: The files, archives, or folders of them, of which what is no recording is passed over, and named.
        show: Print their content; done anyway unless --events or --out is given, and for what is no archive.
        kind: Kind of the files, if their first lines do not tell.
        events: Write the events of the trace to this Arrow file.
        out: Write the scenario to this file; one of an archive is printed if left out.
    """
    if not paths:
        raise RequestError("no files", hint="vcpulab import --help")
    wanted = _Wanted(out, profile, toolstack, force=force)
    prints = show or events is not None or format == "json" or kind is not None
    if wanted.something or (any(map(archive.is_archive, paths)) and not prints):
        _scenario_of_host(paths, wanted)
        return
    with archive.unpacked(paths) as unpacked:
        _print_contents(unpacked, show=show, format=format, kind=kind, cpu_mhz=cpu_mhz, threads=threads, events=events)


def _print_contents(
    unpacked: archive.Unpacked,
    *,
    show: bool,
    format: str,
    kind: recordings.Kind | None,
    cpu_mhz: float | None,
    threads: Path | None,
    events: Path | None,
) -> None:
    """Reads recordings and listings, and prints their content."""
    paths = unpacked.paths
    for note in unpacked.notes:
        terminal.warn(note)
    threads = threads or next(filter(None, map(recordings.threads_in, paths)), None)
    mapping = recordings.read_threads(threads) if threads is not None else []
    sources: list[tuple[recordings.Source, recordings.Kind]] = []
    for entry in _sources(paths, kind):
        if not isinstance(entry, recordings.Unused):
            sources.append(entry)
        elif entry.path != threads:
            terminal.warn(unpacked.shown(str(entry)))
    traces = [path for path, source_kind in sources if source_kind in ("xentrace", "sched-text")]
    if events is not None and len(traces) != 1:
        raise RequestError(f"found {len(traces)} traces", field="events", allowed="one")
    held = []
    for path, source_kind in sources:
        with terminal.progress(f"reading {path.name}") as progress:
            read = recordings.read(
                path,
                source_kind,
                cpu_mhz=cpu_mhz,
                threads=mapping,
                events=events if path in traces else None,
                progress=progress,
            )
            held.append(replace(read, path=Path(unpacked.shown(str(read.path)))))
    if events is not None:
        terminal.say(f"written to {events}")
    if format == "json":
        print(as_json([read.as_data() for read in held]))
    elif show or events is None:
        names = _names(held)
        for read in held:
            _show(read, names)


@command("rt-app", "vcpulab import rt-app workload.json --out workload.toml --vcpus 2", parent=import_)
def import_rt_app(
    file: Path,
    /,
    *,
    out: Out = None,
    vcpus: Annotated[
        int | None,
        number("vCPUs of the domain; the CPUs that the workload names, or one, if left out.", 1, 512),
    ] = None,
    force: Force = False,
) -> None:
    """Make a scenario of a workload of rt-app's; print what a scenario cannot express.

    Args:
        file: The workload (*.json).
        out: Write the scenario to this file instead of printing it.
    """
    files.check_new(out, force=force)
    try:
        made = rtapp.load(file, vcpus=vcpus)
    except OSError as error:
        raise RequestError(f"{file}: {files.reason(error)}") from None
    files.print_or_write(made.text, map(str, made.notes), out)


@command("xl", "vcpulab import xl recorded/list0.txt recorded/sched.txt --out host.toml", parent=import_)
def import_xl(
    *paths: Path, out: Out = None, profile: Profile = None, toolstack: TypedFor = None, force: Force = False
) -> None:
    """Make a scenario of what `xl` and xentop print of a host.

    Release, threads, cores, sockets, nodes and boot options of `xl info -n`; domains with vCPUs, hard and soft affinity
    of `xl list` and `vcpu-list`, or of their files (xl.cfg); CPU pools of `cpupool-list -c`; parameters of
    `sched-credit`, `sched-credit2` or `sched-rtds`; nodes of memory of `xl debug-keys u; xl dmesg`; clock rates of
    `xenpm get-cpufreq-para`; and work that uses as much CPU as the last updates of `xentop -b -f -i 2` say.

    Args:
        paths: The files, any of these, or folders or archives that have them.
        out: Write the scenario to this file instead of printing it.
    """
    _listed(_XL, paths, _Wanted(out, profile, toolstack, force=force))


@command("kvm", "vcpulab import kvm machines.xml lscpu.txt kernel.txt --out host.toml", parent=import_)
def import_kvm(
    *paths: Path, out: Out = None, profile: Profile = None, toolstack: TypedFor = None, force: Force = False
) -> None:
    """Make a scenario of what the tools of a KVM host print: libvirt's, Proxmox VE's, or Linux's own.

    The scheduler and its generation by the kernel (`uname -a`, /boot/config-…) and by files that only some releases
    have (features, cgroup_mode and base_slice_ns of /sys/kernel/debug/sched, /sys/kernel/sched_ext/state); CPUs of
    `lscpu -p`, `virsh capabilities` or `nodeinfo`; VMs of `virsh dumpxml` (several in a file), `virsh list`,
    `vcpuinfo`, `vcpupin`, `emulatorpin`, `schedinfo`, of `qm list` and `qm config`, or of QEMU's command lines by `ps
    -eLo`; what holds now by files of control groups (`grep -rs . --include=cpu.* /sys/fs/cgroup`); and work that uses
    as much CPU as `virsh domstats` or the groups' `cpu.stat` say, twice, with `date +%s.%N` before each.

    Args:
        paths: The files, any of these, or folders or archives that have them.
        out: Write the scenario to this file instead of printing it.
    """
    _listed(_KVM, paths, _Wanted(out, profile, toolstack, force=force))


@dataclass(frozen=True)
class _Wanted:
    """The options of an import of listings."""

    out: Path | None
    profile: str | None
    toolstack: Toolstack | None
    force: bool

    @property
    def something(self) -> bool:
        """Whether an option asks for a scenario."""
        return self != _Wanted(None, None, None, force=False)


def _scenario_of_host(paths: Sequence[Path], wanted: _Wanted) -> None:
    """Makes a scenario of a host's files, by the import that reads files of its hypervisor.

    Raises:
        RequestError: the files are of no host, or of hosts of different hypervisors.
    """
    with archive.unpacked(paths) as unpacked:
        kinds = [entry[1] for entry in _sources(unpacked.paths) if not isinstance(entry, recordings.Unused)]
    hypervisors = {recordings.hypervisor_of(kind) for kind in kinds} - {None}
    if "xen" in hypervisors and not set(kinds) & set(_OF_VMS):
        hypervisors = {"xen"}
    of_hosts = [of_host for of_host in (_XL, _KVM) if of_host.hypervisor in hypervisors]
    if len(of_hosts) != 1:
        content = "files of a Xen host and of a KVM host" if of_hosts else "no listing of a host"
        commands = (f"vcpulab import {of_host.name} {' '.join(map(files.word, paths))}" for of_host in (_XL, _KVM))
        raise RequestError(f"found {content}", hint=" or ".join(commands))
    _listed(of_hosts[0], paths, wanted)


_OF_VMS = ("virsh-list", "virsh-domain", "virsh-xml", "virsh-domstats", "qm-list", "qm-config")
"""Kinds of listings that only a KVM host has; those of its kernel and of its CPUs a Dom0 has, too."""


@dataclass(frozen=True)
class _OfHost:
    """The import of the listings of a kind of host."""

    name: str
    """The command."""
    hypervisor: Literal["xen", "kvm"]
    kinds: Sequence[recordings.Kind]
    scenario_of: Callable[
        [list[Read], str | None, Toolstack | None, Path | None, Iterable[recordings.Unused]], result.Made
    ]


_XL = _OfHost("xl", "xen", xen_host.KINDS, xen.scenario_of)
_KVM = _OfHost("kvm", "kvm", kvm_host.KINDS, kvm.scenario_of)


def _sources(
    paths: Sequence[Path], kind: recordings.Kind | None = None
) -> Iterator[tuple[recordings.Source, recordings.Kind] | recordings.Unused]:
    """The listings in files and folders, with their kinds; `kind`, if given, is the kind of all files."""
    for path in paths:
        if path.is_dir():
            entries = list(recordings.kinds_in(path))
            if all(isinstance(entry, recordings.Unused) for entry in entries):
                raise RequestError(
                    f"{path}: no file of the folder is a recording or a listing", hint="vcpulab import --help"
                )
            yield from entries
        else:
            files.check_readable(path)
            yield from [(path, kind)] if kind is not None else recordings.known_in(path)


def _listed(of_host: _OfHost, paths: Sequence[Path], wanted: _Wanted) -> None:
    """Makes a scenario of listings, and writes or prints it."""
    out = wanted.out
    if not paths:
        raise RequestError("no files", hint=f"vcpulab import {of_host.name} --help")
    files.check_new(out, force=wanted.force)
    with archive.unpacked(paths) as unpacked:
        made = _made(of_host, unpacked.paths, wanted)
        notes = [*unpacked.notes, *map(unpacked.shown, made.notes)]
        text = unpacked.shown(made.text)
    files.print_or_write(text, notes, out, made.hint)


def _made(of_host: _OfHost, paths: Sequence[Path], wanted: _Wanted) -> result.Made:
    """The scenario of listings.

    Raises:
        RequestError: a file is of another host, or none is a listing of such a host.
    """
    name = of_host.name
    reads: list[Read] = []
    unused: list[recordings.Unused] = []
    notes: list[str] = []
    hints: set[str | None] = set()
    for entry in _sources(paths):
        if isinstance(entry, recordings.Unused):
            unused.append(entry)
        elif entry[1] in of_host.kinds:
            reads.append(recordings.read(*entry))
        elif entry[1] == "collected":
            notes += map(str, filter(Collected.failed, read_collected(entry[0])))
        else:
            path, kind = Path(entry[0]), entry[1]
            if path in paths:
                allowed = None if _hint(name, kind, [path]) else ", ".join(of_host.kinds)
                raise RequestError(f"{path}: {_content(name, kind)}", allowed=allowed, hint=_hint(name, kind, [path]))
            unused.append(recordings.Unused(path, _content(name, kind)))
            hints.add(_hint(name, kind, paths))
    if not reads:
        entries = "\n".join(f"  {entry}" for entry in unused)
        hint = next(filter(None, hints), f"vcpulab import {name} --help")
        raise RequestError(f"no listing that `vcpulab import {name}` reads\n{entries}", hint=hint)
    folder = None if wanted.out is None else wanted.out.parent
    made = of_host.scenario_of(reads, wanted.profile, wanted.toolstack, folder, unused)
    return replace(made, notes=[*made.notes, *notes])


_IMPORTS: dict[str, str] = {"xen": "xl", "kvm": "kvm"}
"""The command that makes a scenario of listings, by hypervisor."""
_OF_HOST = {"xen": "a Xen host", "kvm": "a KVM host"}


def _content(name: str, kind: recordings.Kind) -> str:
    """The content of a file of some kind in words, for an error of the import `name`."""
    hypervisor = recordings.hypervisor_of(kind)
    foreign = hypervisor is not None and _IMPORTS[hypervisor] != name
    return f"found {kind}" + (f", of {_OF_HOST[hypervisor]}" if hypervisor is not None and foreign else "")


def _hint(name: str, kind: recordings.Kind, paths: Sequence[Path]) -> str | None:
    """The import command for files of some kind; `None`: no other import reads them."""
    hypervisor = recordings.hypervisor_of(kind)
    if hypervisor is None or _IMPORTS[hypervisor] == name:
        return None
    return f"vcpulab import {_IMPORTS[hypervisor]} {' '.join(map(files.word, paths))}"


def _names(held: Sequence[Read]) -> dict[int, str]:
    names, unread = recordings.names_of(held)
    for listing in unread:
        terminal.warn(f"{listing}: not read: not what `xl list` prints")
    return names


def export_perfetto(trace: Path, out: Path, *, cpu_mhz: float | None, threads: Path | None) -> None:
    """Writes a recording as a trace that Perfetto opens; for `vcpulab export perfetto`."""
    mapping = recordings.read_threads(threads) if threads is not None else []
    with terminal.progress(f"reading {trace.name}") as progress:
        recording = recordings.export_perfetto(trace, out, cpu_mhz=cpu_mhz, threads=mapping, progress=progress)
    for note in recording.notes:
        terminal.warn(_note(note))


# ---- tables ----


def _show(read: Read, names: Mapping[int, str]) -> None:
    if isinstance(read.holds, Recording):
        page.show(document_of(read.holds, names), all=True)
        for note in read.holds.notes:
            terminal.warn(_note(note))
        return
    holds = read.as_data()["holds"]
    if isinstance(holds, dict):
        if isinstance(read.holds, Info):
            _show_nodes(read, holds)
        rows = [[name, json.dumps(value) if isinstance(value, list) else str(value)] for name, value in holds.items()]
        page.show_table(Table(f"{read.path} ({read.kind})", ["setting", "value"], rows, text_columns=2))
    elif read.kind == "xl-sched":
        for pool in holds:
            parameters = " ".join(f"{name}={value}" for name, value in pool["parameters"].items())
            title = f"{read.path}: pool {pool['pool']}, {pool['scheduler']} {parameters}"
            _show_rows(title, pool["domains"])
    else:
        listed_rows = _alike(holds) if read.kind == "xenpm" else holds
        _show_rows(f"{read.path} ({read.kind})", _filled_columns(listed_rows))


def _show_nodes(read: Read, holds: dict[str, Any]) -> None:
    """The topology in words; JSON has each CPU."""
    if "cpu_topology" in holds:
        notes: list[str] = []
        placed = map_of(read.holds, notes)
        holds["cpu_topology"] = "; ".join(
            [str(placed.topology), *notes] if placed is not None and placed.even else notes
        )
    if "numa_info" in holds:
        _show_rows(f"{read.path}: numa_info", holds.pop("numa_info"))


def _alike(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows with CPUs of the same content joined."""
    cpus: dict[str, list[int]] = {}
    first: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        content = json.dumps({**row, "cpu": None})
        cpus.setdefault(content, []).append(row["cpu"])
        first.setdefault(content, row)
    return [{**first[content], "cpu": spans(numbers)} for content, numbers in cpus.items()]


def _show_rows(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    headings = list(rows[0]) if rows else ["nothing"]
    page.show_table(Table(title, headings, [[_cell(value) for value in row.values()] for row in rows]))


def _filled_columns(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows without the columns that are empty in all of them."""
    filled = {name for row in rows for name, value in row.items() if value not in (None, {})}
    return [{name: value for name, value in row.items() if name in filled} for row in rows]


def _cell(value: object) -> str:
    if value in (None, {}):
        return "-"
    if isinstance(value, dict):
        return ", ".join(f"{name}: {item}" for name, item in value.items())
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _note(note: Mapping[str, Any]) -> str:
    place = ", ".join(f"{unit} {at}" for unit, at in note["first"].items())
    return f"{note['what']}: {note['count']}, first at {place} ({note['found']}): {note['means']}"
