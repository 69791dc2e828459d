"""Traces of schedulers: `xentrace` of Xen 4, and the text of `perf sched script` or ftrace."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, Literal

from vcpulab import _engine
from vcpulab._files import atomic
from vcpulab._work.progress import Progress
from vcpulab.errors import RecordingError
from vcpulab.formats.errors import wrong
from vcpulab.formats.sources import BLANK_BYTES_MAX, CHUNK_BYTES, lines_of, opened

Format = Literal["xentrace", "sched-text"]
THREADS_MAX = 4096


@dataclass(frozen=True)
class VcpuThread:
    """A thread of a KVM host that is a vCPU."""

    thread: int
    """The number of the thread (TID)."""
    domain: int
    """The number its VM goes by here."""
    name: str
    """The VM's name."""
    vcpu: int
    """The number of the vCPU in the VM."""


@dataclass(frozen=True)
class Recording:
    """The content of a trace.

    `report` is the engine's report: `format`, `bytes`, `clock` (the source of times), `records` (their kinds and
    numbers), `notes` (problems with `what`, `count`, `first`, `found` and `means`), `threads`, and `summary`, with
    `span_ns`, `domains`, `vcpus`, `pcpus`, `wakers`, `lost_records`, `gaps`, `contradictions` and `unrecorded`.
    """

    path: Path
    report: dict[str, Any]
    threads: tuple[VcpuThread, ...] = ()
    """For KVM: which threads are vCPUs, as it was read."""

    @property
    def summary(self) -> dict[str, Any]:
        """The statistics of the trace."""
        summary: dict[str, Any] = self.report["summary"]
        return summary

    @property
    def notes(self) -> list[dict[str, Any]]:
        """Notes on problems of the trace."""
        notes: list[dict[str, Any]] = self.report["notes"]
        return notes

    @property
    def names(self) -> dict[int, str]:
        """Names of domains that the recording itself tells, by number."""
        return {thread.domain: thread.name for thread in self.threads}

    def as_data(self) -> dict[str, Any]:
        """All of it, as JSON has it."""
        names = {str(number): name for number, name in self.names.items()}
        return {"file": str(self.path), **self.report, "names": names}


def read_trace(
    path: str | PathLike[str],
    format: Format,  # noqa: A002
    *,
    cpu_mhz: float | None = None,
    threads: Iterable[VcpuThread] = (),
    part: tuple[float, float] | None = None,
    events: str | PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Recording:
    """Reads a trace in pieces; the memory it takes does not depend on its length.

    Args:
        path: The trace, compressed or not.
        format: What it is written in.
        cpu_mhz: Frequency of the counter in Xen's trace; found from the execution times in it if left out.
        threads: In text: which threads are vCPUs; if none, those that are called `CPU n/KVM`, the process being the VM.
        part: Only what happened from one fraction of its time to another; it is read twice then.
        events: Write what happened to this Arrow file, in the columns of `Trace.events`.
        progress: Called with the part of the file that is read, 0 to 1; `False` stops.

    Raises:
        RecordingError: it is no such trace, or its times cannot be told.
        OSError: it cannot be read.
        EngineError: the events cannot be written.
        KeyboardInterrupt: it was stopped.
    """
    path = Path(path)
    vcpus = tuple(threads)
    window: tuple[int, int] | None = None

    def read(events: str | PathLike[str] | None = None) -> dict[str, Any]:
        mapping = {vcpu.thread: (vcpu.domain, vcpu.vcpu) for vcpu in vcpus}
        try:
            reader = _engine.RecordingReader(format, cpu_mhz=cpu_mhz, threads=mapping, window_ns=window, events=events)
        except ValueError as error:
            raise RecordingError(str(error)) from None
        return _fed(path, reader, progress)

    finds = format == "sched-text" and not vcpus
    if finds or part is not None:
        all_of_it = read()
        if finds:
            vcpus = tuple(_vcpus_in(all_of_it["threads"]))
        if part is not None:
            span_ns = int(all_of_it["summary"]["span_ns"])
            window = (round(part[0] * span_ns), round(part[1] * span_ns))
        # What happens cannot be written before it is known to whom.
        elif events is None and len({(vcpu.domain, vcpu.vcpu) for vcpu in vcpus}) == len(vcpus):
            return Recording(path, all_of_it, vcpus)
    if events is None:
        return Recording(path, read(), vcpus)
    with atomic.scratch(events) as new:
        return Recording(path, read(new), vcpus)


def _pieces(path: Path, source: BinaryIO) -> Iterator[bytes]:
    blank = 0
    while piece := source.read(CHUNK_BYTES):
        blank = 0 if piece.strip() else blank + len(piece)
        if blank > BLANK_BYTES_MAX:
            raise RecordingError(f"{path}: nothing but empty lines in {blank} bytes")
        yield piece


def _fed(path: Path, reader: _engine.RecordingReader, progress: Progress | None) -> dict[str, Any]:
    size = max(path.stat().st_size, 1)
    try:
        with opened(path) as (source, raw):
            for chunk in _pieces(path, source):
                reader.feed(chunk)
                if progress is not None and progress(min(raw.tell() / size, 1.0)) is False:
                    raise KeyboardInterrupt
        report: dict[str, Any] = json.loads(reader.finish())
    except RecordingError:
        raise
    except ValueError as error:
        raise RecordingError(f"{path}: {error}") from None
    return report


def _vcpus_in(threads: Iterable[Mapping[str, Any]]) -> Iterable[VcpuThread]:
    """A VM is a process; where that was not recorded, each thread is a VM of its own."""
    for thread in threads:
        if thread["vcpu"] is None:
            continue
        number, process = thread["thread"], thread["process"]
        name = f"thread-{number}" if process is None else f"qemu-{process}"
        yield VcpuThread(number, number if process is None else process, name, thread["vcpu"])


def read_threads(path: str | PathLike[str]) -> list[VcpuThread]:
    """A file that says which threads are vCPUs: `thread name vcpu` on each line; `#` begins a comment.

    VMs are numbered from 1 in the order they are first named.

    Raises:
        RecordingError: a line says something else.
    """
    threads: dict[int, VcpuThread] = {}
    numbers: dict[str, int] = {}
    taken: set[tuple[int, int]] = set()
    for line, text in lines_of(Path(path)):
        words = text.partition("#")[0].split()
        if not words:
            continue
        allowed = "`thread name vcpu`: a thread's number from 1, a VM's name, a vCPU's number from 0"
        if len(words) != 3 or not all(re.fullmatch("[0-9]{1,10}", word) for word in words[::2]):
            raise wrong(str(path), line, text, allowed)
        thread, vcpu = int(words[0]), int(words[2])
        if not (0 < thread < 1 << 32 and vcpu < 1 << 16):
            raise wrong(str(path), line, text, allowed)
        domain = numbers.setdefault(words[1], len(numbers) + 1)
        if thread in threads or (domain, vcpu) in taken:
            raise wrong(str(path), line, text, "each thread and each vCPU once")
        taken.add((domain, vcpu))
        threads[thread] = VcpuThread(thread, domain, words[1], vcpu)
        if len(threads) > THREADS_MAX:
            raise wrong(str(path), line, "more threads", f"at most {THREADS_MAX}")
    return list(threads.values())
