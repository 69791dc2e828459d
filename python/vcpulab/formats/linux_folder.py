"""Recordings of a Linux kernel's scheduler with what was set up for them: a folder of files each.

`trace.txt` (what tracefs's `trace` says; `trace.txt.xz` and the like where it is compressed), `experiment.txt` (groups,
VMs, threads and their work), `threads.txt` (who is who), `tunables.txt` (the kernel's parameters), and perhaps
`expected.txt` (how many decisions are known to differ).
"""

from collections.abc import Sequence
from pathlib import Path

from vcpulab._engine import LinuxRecording
from vcpulab.errors import RecordingError
from vcpulab.formats import folders
from vcpulab.formats.sources import opened, text_of

NEEDED = ("experiment.txt", "threads.txt", "tunables.txt")
EXPECTED = "expected.txt"
TRACES = ("trace.txt", "trace.txt.xz", "trace.txt.gz", "trace.txt.bz2")
TRACE_BYTES_MAX = 1 << 28
"""The longest trace, uncompressed."""


def is_recording(folder: Path) -> bool:
    """Whether a folder holds such a recording: what was set up, and what came of it."""
    return (folder / NEEDED[0]).exists() and any((folder / name).exists() for name in TRACES)


def find(path: Path) -> list[Path]:
    """The recordings at or below a path, sorted.

    Raises:
        RecordingError: folders are nested too deep.
    """
    return folders.find(path, is_recording)


def read(folder: Path) -> LinuxRecording:
    """Reads a recording.

    Raises:
        RecordingError: a file is missing, or does not hold what it should.
        OSError: a file cannot be read.
    """
    trace = _one_of(folder, TRACES)
    texts = {name: text_of(_one_of(folder, [name])) for name in NEEDED}
    expected = folder / EXPECTED
    try:
        return LinuxRecording(
            experiment=texts["experiment.txt"],
            threads=texts["threads.txt"],
            tunables=texts["tunables.txt"],
            trace=_long(trace),
            expected=text_of(expected) if expected.exists() else None,
        )
    except ValueError as error:
        if isinstance(error, RecordingError):
            raise
        raise wrong(folder, error) from None


def wrong(folder: Path, error: ValueError) -> RecordingError:
    """The engine's error about a recording, with the folder of the files that it names."""
    message = str(error)
    return RecordingError(
        f"{folder}/{message}" if message.split(".txt", 1)[0].isidentifier() else f"{folder}: {message}"
    )


def _one_of(folder: Path, names: Sequence[str]) -> Path:
    for name in names:
        if (folder / name).exists():
            return folder / name
    files = ", ".join([*NEEDED, TRACES[0]])
    raise RecordingError(
        f"{folder}: {names[0]}: no such file; allowed: a folder with {files} (the last may be {', '.join(TRACES[1:])})"
    )


def _long(path: Path) -> str:
    with opened(path) as (source, _):
        data = source.read(TRACE_BYTES_MAX + 1)
    if len(data) > TRACE_BYTES_MAX:
        raise RecordingError(f"{path}: too long; allowed: at most {TRACE_BYTES_MAX} bytes")
    # Names of tasks may hold any bytes.
    return data.decode(errors="replace")
