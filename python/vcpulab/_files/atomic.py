"""Atomic writes of files and folders: written under another name beside the target, then renamed."""

import os
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path


def write(path: str | PathLike[str], content: str | bytes) -> None:
    """Writes or replaces a file and creates the folders above it; text is UTF-8 with invalid characters escaped.

    Raises:
        OSError: the file cannot be written; an old file is unchanged.
    """
    data = content.encode(errors="backslashreplace") if isinstance(content, str) else content
    with scratch(path) as file:
        file.write_bytes(data)


@contextmanager
def scratch(path: str | PathLike[str]) -> Iterator[Path]:
    """A temporary file that becomes the target at the end; after a failure an old target is unchanged.

    The target of a symbolic link is replaced, and the link kept. A device such as `/dev/stdout` is written to directly.

    Raises:
        OSError: the file cannot be written.
    """
    target = Path(path)
    if target.exists() and not target.is_file():
        yield target
        return
    target = Path(os.path.realpath(target))
    beside = target.with_name(f".{target.name[:200]}-{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # Renaming would replace even a write-protected file.
        if target.exists() and not os.access(target, os.W_OK):
            raise PermissionError(13, os.strerror(13), str(target))
        yield beside
        if target.exists():
            beside.chmod(target.stat().st_mode & 0o777)
        _sync(beside)
        beside.replace(target)
        _sync(target.parent)
    except OSError as error:
        if error.errno is None or error.filename not in (None, str(beside)):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        beside.unlink(missing_ok=True)


def check_folder(path: str | PathLike[str], mark: str, own: Collection[str], owner: str) -> Path:
    """The folder, links followed, if it may be replaced: it is new, empty, or holds only files of ours.

    Args:
        path: the folder.
        mark: the file that marks a folder of ours.
        own: names of the files in a folder of ours, the mark among them.
        owner: the owner of the files, for the message, such as "a run's".

    Raises:
        FileExistsError: the path is not a directory, or other files would be lost.
    """
    folder = Path(os.path.realpath(path))
    if folder.is_dir():
        names = sorted(entry.name for entry in folder.iterdir())
        foreign = [name for name in names if name not in own or not (folder / name).is_file()]
        if names and (foreign or mark not in names):
            first = (foreign or names)[0]
            reason = f"`{path}` holds other files than {owner}, such as `{first}`; they would be lost"
            raise FileExistsError(f"{reason}\n  hint: another directory")
    elif folder.exists() or folder.is_symlink():
        raise FileExistsError(f"`{path}` is not a directory")
    return folder


@contextmanager
def replaced(folder: Path) -> Iterator[Path]:
    """A temporary folder that becomes the target at the end, in place of an old one.

    Raises:
        OSError: the folder cannot be written; an old folder is unchanged.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    # The folder is beside the target, so that the last step is a rename and readers see all or nothing.
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as beside:
        new, old = Path(beside, "new"), Path(beside, "old")
        new.mkdir()
        yield new
        if folder.exists():
            folder.rename(old)
        new.rename(folder)


def _sync(path: Path) -> None:
    """Flushes a file or folder to the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
