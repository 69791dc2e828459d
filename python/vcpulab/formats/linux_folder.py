"""Recordings of a Linux kernel's scheduler with what was set up for them: a folder of files each.

`trace.txt` (what tracefs's `trace` says; `trace.txt.xz` and the like where it is compressed), `experiment.txt` (groups,
VMs, threads and their work), `threads.txt` (who is who), `tunables.txt` (the kernel's parameters), and perhaps
`expected.txt` (how many decisions are known to differ).
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from vcpulab._engine import LinuxRecording
from vcpulab.errors import RecordingError
from vcpulab.formats.sources import opened, text_of

NEEDED = ("experiment.txt", "threads.txt", "tunables.txt")
EXPECTED = "expected.txt"
TRACES = ("trace.txt", "trace.txt.xz", "trace.txt.gz", "trace.txt.bz2")
DEPTH_MAX = 16
"""Folders in folders are looked into so far."""
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
    return sorted(_below(path, 0))


def _below(path: Path, depth: int) -> Iterator[Path]:
    if not path.is_dir():
        return
    if is_recording(path):
        yield path
        return
    if depth > DEPTH_MAX:
        raise RecordingError(f"{path}: folders are nested more than {DEPTH_MAX} deep")
    with os.scandir(path) as entries:
        folders = [entry.name for entry in entries if entry.is_dir()]
    for name in folders:
        yield from _below(path / name, depth + 1)


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
    """What the engine says of a recording, whose files it names, with the folder."""
    said = str(error)
    return RecordingError(f"{folder}/{said}" if said.split(".txt", 1)[0].isidentifier() else f"{folder}: {said}")


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
