"""Checks of the files that a command writes, before its work, and contexts for writing them after its results.

A file that is written is declared so where its option is: `Annotated[Path, ..., Writes.FILE]`. Everything else that a
command line names is taken to be read.
"""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Any, get_type_hints

from vcpulab.cli import files, terminal
from vcpulab.cli.streams import continue_without_reader
from vcpulab.errors import RequestError
from vcpulab.show.document import Document, on_page

_PROBE_BYTES = 4096


class Writes(Enum):
    """The kinds of outputs that a command writes to a path."""

    FILE = "file"
    FOLDER = "folder"
    """A folder in which files are written."""
    WHOLE_FOLDER = "whole folder"
    """A folder that is replaced with its whole content."""
    SAME_FILE = "same file"
    """A file that may also be read by the command: it is edited."""


def check(command: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Makes sure that the files that a command writes are writable and distinct from its other files.

    Args:
        command: the command's function.
        given: its arguments by name.

    Raises:
        RequestError: a path cannot be written, or is used twice.
    """
    hints = get_type_hints(command, include_extras=True)
    writes = {
        name: (Path(value), kind)
        for name, value in given.items()
        if value is not None
        for kind in getattr(hints.get(name), "__metadata__", ())
        if isinstance(kind, Writes)
    }
    if not writes:
        return
    continue_without_reader()
    forced = bool(given.get("force"))
    read = {file: name for name, value in given.items() if name not in writes for file in _files(value)}
    for field, (path, kind) in writes.items():
        for earlier, (earlier_path, _) in writes.items():
            if earlier < field and _same(earlier_path, path):
                raise RequestError(f"--{earlier} is the same", field=field, found=path, hint="another name")
        if kind is not Writes.SAME_FILE:
            for file in read:
                _check_apart(field, path, kind, file, forced=forced)
        check_writable(field, path, folder=kind in (Writes.FOLDER, Writes.WHOLE_FOLDER))


@contextmanager
def written(path: Path) -> Iterator[None]:
    """A context for writing a file or folder: results are flushed before, and the path is reported after."""
    sys.stdout.flush()
    yield
    terminal.say(f"written to {path}")


def report(path: Path | None, title: str, document: Document) -> None:
    """Writes a document as a page if a path is given.

    Raises:
        OSError: the file cannot be written.
    """
    if path is not None:
        from vcpulab.show import html

        with written(path):
            html.write(path, title, on_page(document))


def _files(value: object) -> Iterator[Path]:
    """The existing files that an argument names: a path, several paths, or `FILE.py:CLASS`."""
    for item in value if isinstance(value, tuple) else (value,):
        if isinstance(item, str):
            names = [item] if item.endswith(".toml") else [item.rpartition(":")[0]]
            yield from (path for path in map(Path, filter(None, names)) if _exists(path))
        elif isinstance(item, Path) and _exists(item):
            yield item


def _exists(path: Path) -> bool:
    try:
        return path.is_file() or (path.is_dir() and path != Path())
    except (OSError, ValueError):
        return False


def _check_apart(field: str, path: Path, kind: Writes, file: Path, *, forced: bool) -> None:
    # What is in a folder that is read may be an output of before, for those who say so.
    inside = file.is_dir() and not forced and path.is_file() and file.resolve() in path.resolve().parents
    around = kind is Writes.WHOLE_FOLDER and path.resolve() in file.resolve().parents
    if _same(path, file) or inside or around:
        reason = f"it would replace what is read, `{file}`"
        raise RequestError(reason, field=field, found=path, hint="another name")


def _same(a: Path, b: Path) -> bool:
    try:
        return a.samefile(b)
    except OSError:
        return a.resolve() == b.resolve()


def check_writable(field: str, path: Path, *, folder: bool = False) -> None:
    """Makes sure that a path has space for a file and permits writing.

    Raises:
        RequestError: the disk is full, or writing is not permitted.
    """
    if path.exists():
        if folder and not path.is_dir():
            raise RequestError("not a directory", field=field, found=path)
        if not folder and path.is_dir():
            raise RequestError("a directory", field=field, found=path, allowed="a file")
        if not folder and not path.is_file():
            return
        if not os.access(path, os.W_OK):
            raise RequestError("permission denied", field=field, found=path)
    above = path.resolve() if folder else path.resolve().parent
    while not above.exists():
        above = above.parent
    try:
        with tempfile.TemporaryFile(dir=above) as probe:
            probe.write(b"\0" * _PROBE_BYTES)
    except OSError as error:
        raise RequestError(files.reason(error), field=field, found=path) from None
