"""Recordings as traces that https://ui.perfetto.dev opens."""

import tempfile
from collections.abc import Iterable
from pathlib import Path

from vcpulab import _engine
from vcpulab._files import atomic
from vcpulab._work.progress import Progress
from vcpulab.errors import RequestError
from vcpulab.formats.kinds import names_of, read
from vcpulab.formats.trace import Recording, VcpuThread


def export_perfetto(
    trace: Path,
    out: Path,
    *,
    cpu_mhz: float | None = None,
    threads: Iterable[VcpuThread] = (),
    progress: Progress | None = None,
) -> Recording:
    """Writes a recording as a trace that https://ui.perfetto.dev opens; for the options see `read_trace`.

    Returns:
        What was read.

    Raises:
        RequestError: it is a file of another kind.
        RecordingError: it holds something else, or is damaged.
        OSError: it cannot be read.
        EngineError: the trace cannot be written.
    """
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch, "events.arrow")
        recording = read(trace, cpu_mhz=cpu_mhz, threads=threads, events=file, progress=progress)
        if not isinstance(recording.holds, Recording):
            raise RequestError(f"{trace}: found {recording.kind}; allowed: a trace of xentrace, perf or ftrace")
        with atomic.scratch(out) as new:
            _engine.export_perfetto(file, names_of([recording])[0], new)
    return recording.holds
