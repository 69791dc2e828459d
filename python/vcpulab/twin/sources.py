"""The files of a recorded host, and the facts gathered from them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from vcpulab import formats as recordings
from vcpulab._work.progress import Progress
from vcpulab.errors import RequestError
from vcpulab.formats.collected import Collected, read_collected
from vcpulab.formats.errors import wrong
from vcpulab.formats.xl_info import Info
from vcpulab.hosts.kernel import params_of
from vcpulab.hosts.kvm_host import KINDS as KVM_KINDS
from vcpulab.hosts.kvm_host import KvmHost
from vcpulab.hosts.kvm_listings import read_host as read_listed
from vcpulab.hosts.kvm_threads import Roles, roles_of
from vcpulab.hosts.xen_host import XenHost, read_host

_OF_XEN = ("xl-list", "xl-vcpu-list", "xl-sched", "xl-cpupool-list", "xl-info")
"""The kinds of files of a Xen host that a twin uses besides the trace; other files need not be readable."""


@dataclass(frozen=True)
class Sources:
    """The files of one host, and what they say."""

    trace: Path
    kind: recordings.Kind
    cpu_mhz: float | None = None
    names: Mapping[int, str] = field(default_factory=dict)
    """Domain number to name."""
    scheduler: str | None = None
    """`None`: no file says it."""
    host_params: Mapping[str, int | str] = field(default_factory=dict)
    """The recorded parameters of the scheduler as a whole."""
    info: Info = field(default_factory=lambda: Info({}))
    """The host's CPUs."""
    xen: XenHost | None = None
    """The Xen host; `None`: a Linux host."""
    kvm: KvmHost | None = None
    """The Linux host; `None`: a Xen host."""
    roles: Roles = field(default_factory=Roles)
    """The roles of a Linux host's threads; see `with_threads`."""
    notes: tuple[str, ...] = ()
    """Notes on unused files, with reasons."""

    @property
    def of_linux(self) -> bool:
        """`True`: the recording is of a Linux host, whose vCPUs no scheduler of Xen's had."""
        return self.kvm is not None

    @property
    def how_to_say_scheduler(self) -> str:
        """The missing input, for the error if no file names the recorded scheduler."""
        if self.of_linux:
            return (
                "`uname -a > kernel.txt` on the host, beside the recording, says it: up to Linux 6.5 it is linux-cfs, "
                "from 6.6 on linux-eevdf; or name it, such as linux-eevdf"
            )
        return "add the output of `xl info` or `xl sched-credit`, or name it"

    @property
    def threads(self) -> Sequence[recordings.VcpuThread]:
        """The distinguished threads of a Linux host, each as a vCPU of a domain."""
        return self.roles.threads

    def is_daemon(self, domain: int) -> bool:
        """`True`: a domain is made of threads of the host, and is no VM."""
        return self.names.get(domain) in self.roles.daemons

    def with_threads(self, progress: Progress | None = None) -> "Sources":
        """The sources with the roles of a Linux host's threads, which takes one pass over its recording.

        Raises:
            RequestError: it is too short to tell anything.
            RecordingError: it is no recording.
        """
        if self.kvm is None or self.threads:
            return self
        whole = recordings.read_trace(self.trace, "sched-text", progress=progress)
        roles = roles_of(whole.report["threads"], whole.summary["span_ns"], self.kvm)
        return replace(
            self, roles=roles, names=roles.names(), host_params=params_of(self.kvm.linux, whole.report["hz"])
        )

    def name(self, domain: int) -> str:
        """The name of a domain in a scenario."""
        if domain == 0 and self.kvm is None:
            return "dom0"
        return re.sub(r"[^A-Za-z0-9_.-]", "-", self.names.get(domain, f"dom{domain}"))


def gather(paths: Iterable[Path], *, cpu_mhz: float | None = None, threads: Path | None = None) -> Sources:
    """Reads all files but the trace, which is read for each part of it.

    Args:
        paths: Files, and folders of files, of which what is no recording is passed over, but for `formats.THREADS`.
        cpu_mhz: Frequency of the counter in Xen's trace.
        threads: For KVM, which threads are vCPUs.

    Raises:
        RequestError: there is no trace, or more than one.
        RecordingError: a file named is no recording.
        OSError: it cannot be read.
    """
    recordings_read: list[tuple[recordings.Source, recordings.Kind]] = []
    unused: list[recordings.Unused] = []
    for path in paths:
        if path.is_dir():
            threads = threads or recordings.threads_in(path)
        entries = list(recordings.kinds_in(path) if path.is_dir() else recordings.known_in(path))
        recordings_read += [entry for entry in entries if not isinstance(entry, recordings.Unused)]
        unused += [entry for entry in entries if isinstance(entry, recordings.Unused)]
    traces = [(Path(path), kind) for path, kind in recordings_read if kind in ("xentrace", "sched-text")]
    if len(traces) != 1:
        trace_paths = ", ".join(str(path) for path, _ in traces) or "none"
        raise RequestError(
            f"found {trace_paths}; allowed: one trace, of xentrace, perf or ftrace, and what else there is of its host"
        )
    trace, trace_kind = traces[0]
    is_linux = trace_kind == "sched-text"
    notes = [entry.in_folder() for entry in unused if entry.path != threads]
    vcpu_threads = recordings.read_threads(threads) if is_linux and threads is not None else ()
    listings = list(_listings(recordings_read, notes, is_linux=is_linux))
    if is_linux:
        kvm = read_listed(listings, vcpu_threads)
        scheduler = None if kvm.kernel is None else kvm.kernel.scheduler
        return Sources(trace, trace_kind, cpu_mhz, scheduler=scheduler, info=kvm.info, kvm=kvm, notes=tuple(notes))
    xen = read_host(listings)
    first = xen.pools[0]
    return Sources(
        trace,
        trace_kind,
        _listed_mhz(listings) if cpu_mhz is None else cpu_mhz,
        names=xen.names,
        scheduler=None if first.is_assumed else first.scheduler,
        host_params=first.params,
        info=xen.info,
        xen=xen,
        notes=(*notes, *(note for pool in xen.pools for note in pool.notes if not pool.is_assumed), *xen.notes),
    )


def _listings(
    recordings_read: Iterable[tuple[recordings.Source, recordings.Kind]], notes: list[str], *, is_linux: bool
) -> Iterator[recordings.Read]:
    """The listings of the recorded host.

    Args:
        recordings_read: all files with their kinds.
        notes: receives a note for each file that is not used.
        is_linux: `True`: the recorded host is a Linux host.
    """
    for source, kind in recordings_read:
        path = Path(source)
        # What a domain's file says that matters, its vCPUs show.
        if kind in ("xentrace", "sched-text", "xl-cfg"):
            continue
        if kind == "collected":
            notes += map(str, filter(Collected.failed, read_collected(source)))
            continue
        if kind not in _OF_XEN and kind not in KVM_KINDS:
            notes.append(f"{path}: not used: {kind} says nothing of how vCPUs behave")
        elif (kind in KVM_KINDS) != is_linux:
            host_kind = "a Xen host" if is_linux else "a KVM host"
            notes.append(f"{path}: not used: {kind} is of {host_kind}, and the recording is not")
        else:
            yield recordings.read(source, kind)


def _listed_mhz(listings: Sequence[recordings.Read]) -> float | None:
    """The frequency of the counter by the first listing that has it."""
    for listing in listings:
        if listing.kind == "xl-info" and "cpu_mhz" in listing.holds.settings:
            return _mhz(listing.path, listing.holds.settings["cpu_mhz"])
    return None


def _mhz(path: Path, text: str) -> float:
    mhz = float(text) if re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,9})?", text) else 0.0
    if not 1 <= mhz <= 100_000:
        raise wrong(str(path), None, text, "a frequency as cpu_mhz, 1 to 100000")
    return mhz
