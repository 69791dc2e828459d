"""Files and folders that are there whole or not at all: written under another name beside their place, then renamed."""

import os
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path


def write(path: str | PathLike[str], content: str | bytes) -> None:
    """Writes a file, and the folders above it; text in UTF-8, a name that is none escaped. What is there is replaced.

    Raises:
        OSError: it cannot be written; what was there is there still.
    """
    data = content.encode(errors="backslashreplace") if isinstance(content, str) else content
    with scratch(path) as file:
        file.write_bytes(data)


@contextmanager
def scratch(path: str | PathLike[str]) -> Iterator[Path]:
    """Where to write what becomes the file at the end; if that fails, what was there is there still.

    A link stays one, and what it points to is replaced; what is no file, such as `/dev/stdout`, is written to directly.

    Raises:
        OSError: it cannot be written.
    """
    target = Path(path)
    if target.exists() and not target.is_file():
        yield target
        return
    target = Path(os.path.realpath(target))
    beside = target.with_name(f".{target.name[:200]}-{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # Renaming would replace even what its owner protects.
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


def check_folder(path: str | PathLike[str], mark: str, own: Collection[str], what: str) -> Path:
    """The folder, links followed, if it may be replaced: it is new, empty, or holds nothing but files of ours.

    Args:
        path: the folder.
        mark: the file by which one of ours is known.
        own: names of the files that one of ours has, the mark among them.
        what: whose it is, for the message, such as "a run's".

    Raises:
        FileExistsError: it is something else, or other files would be lost.
    """
    folder = Path(os.path.realpath(path))
    if folder.is_dir():
        found = sorted(entry.name for entry in folder.iterdir())
        others = [name for name in found if name not in own or not (folder / name).is_file()]
        if found and (others or mark not in found):
            first = (others or found)[0]
            reason = f"`{path}` holds other files than {what}, such as `{first}`; they would be lost"
            raise FileExistsError(f"{reason}\n  hint: another directory")
    elif folder.exists() or folder.is_symlink():
        raise FileExistsError(f"`{path}` is not a directory")
    return folder


@contextmanager
def replaced(folder: Path) -> Iterator[Path]:
    """Where to write what becomes the folder at the end, instead of one that is there.

    Raises:
        OSError: it cannot be written; what was there is there still.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Beside the target, so that the last step is a rename: whoever looks finds all or nothing.
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as beside:
        new, old = Path(beside, "new"), Path(beside, "old")
        new.mkdir()
        yield new
        if folder.exists():
            folder.rename(old)
        new.rename(folder)


def _sync(path: Path) -> None:
    """What was written is on the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
