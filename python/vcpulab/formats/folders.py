"""Folders of recordings: those at or below a path."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from vcpulab.errors import RecordingError

DEPTH_MAX = 16
"""Folders in folders are looked into so far."""


def find(path: Path, is_recording: Callable[[Path], bool]) -> list[Path]:
    """The recordings at or below a path, sorted; what is inside of one is not looked into.

    Raises:
        RecordingError: folders are nested too deep.
    """
    return sorted(_below(path, is_recording, 0))


def _below(path: Path, is_recording: Callable[[Path], bool], depth: int) -> Iterator[Path]:
    if not path.is_dir():
        return
    if is_recording(path):
        yield path
        return
    if depth > DEPTH_MAX:
        raise RecordingError(f"{path}: folders are nested more than {DEPTH_MAX} deep")
    with os.scandir(path) as entries:
        names = [entry.name for entry in entries if entry.is_dir()]
    for name in names:
        yield from _below(path / name, is_recording, depth + 1)
