"""Archives of a host's files, as `vcpulab collect` writes them: unpacked while they are read."""

import lzma
import shutil
import tarfile
import tempfile
import weakref
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from vcpulab._files import safe_open
from vcpulab.errors import RecordingError, RequestError

_SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2")
FILES_MAX = 10_000
BYTES_MAX = 1 << 30
"""The most bytes of all files, unpacked."""
_CHUNK = 1 << 20


def is_archive(path: Path) -> bool:
    """Whether a path has the name of an archive.

    Examples:
        >>> is_archive(Path("host.tar.gz")), is_archive(Path("trace.txt.gz"))
        (True, False)
    """
    return path.name.endswith(_SUFFIXES)


@dataclass(frozen=True)
class Unpacked:
    """Paths, with a folder in place of each archive."""

    paths: tuple[Path, ...]
    archives: tuple[tuple[Path, Path], ...] = ()
    """Each folder with its archive."""
    notes: tuple[str, ...] = ()
    """Notes on entries of archives that are no files."""

    def shown(self, text: str) -> str:
        """A message about files of the folders, which names the archives."""
        for folder, archive in self.archives:
            text = text.replace(str(folder), str(archive))
        return text


@contextmanager
def unpacked(paths: Sequence[Path]) -> Iterator[Unpacked]:
    """The paths, with archives unpacked into folders that exist until the end; errors name the archives.

    Raises:
        RecordingError: an archive is damaged, or holds too much.
        OSError: an archive cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="vcpulab-") as parent:
        result = unpack(paths, Path(parent))
        try:
            yield result
        except RecordingError as error:
            raise RecordingError(result.shown(str(error))) from None
        except RequestError as error:
            if error.reason is not None:
                error.reason = result.shown(error.reason)
            raise


def unpacked_for(owner: object, paths: Sequence[Path]) -> Unpacked:
    """The paths, with archives unpacked into folders that exist as long as `owner` does.

    Raises:
        RecordingError: an archive is damaged, or holds too much.
        OSError: an archive cannot be read.
    """
    parent = tempfile.mkdtemp(prefix="vcpulab-")
    weakref.finalize(owner, shutil.rmtree, parent, ignore_errors=True)
    return unpack(paths, Path(parent))


def unpack(paths: Sequence[Path], parent: Path) -> Unpacked:
    """The paths, with archives unpacked into folders below `parent`.

    Raises:
        RecordingError: an archive is damaged, or holds too much.
        OSError: an archive cannot be read.
    """
    archives: list[tuple[Path, Path]] = []
    notes: list[str] = []
    into: list[Path] = []
    for path in paths:
        if path.is_dir() or not is_archive(path):
            into.append(path)
            continue
        folder = parent / str(len(archives)) / path.name
        folder.mkdir(parents=True)
        notes += _unpack(path, folder)
        archives.append((folder, path))
        into.append(folder)
    return Unpacked(tuple(into), tuple(archives), tuple(notes))


def _unpack(path: Path, folder: Path) -> list[str]:
    """Writes the files of an archive into a folder, each under a name without folders; notes on what is no file."""
    left, count, notes = BYTES_MAX, 0, []
    with safe_open.opened(path) as raw:
        try:
            with tarfile.open(fileobj=raw, mode="r|*") as archive:
                for member in archive:
                    count += 1
                    if count > FILES_MAX:
                        raise RecordingError(f"{path}: too many files; allowed: at most {FILES_MAX}")
                    source = archive.extractfile(member) if member.isfile() else None
                    if source is None:
                        if not member.isdir():
                            notes.append(f"{path}: {member.name!r}: not used: a link or a device, and no file")
                        continue
                    with (folder / _flat(member.name, folder)).open("xb") as file:
                        while chunk := source.read(_CHUNK):
                            left -= len(chunk)
                            if left < 0:
                                raise RecordingError(f"{path}: too much in it; allowed: at most {BYTES_MAX} bytes")
                            file.write(chunk)
        except (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError) as error:
            raise RecordingError(f"{path}: an archive, but damaged or cut off: {error}") from None
    return notes


def _flat(name: str, folder: Path) -> str:
    """A name of a file in a folder for a path in an archive, whose first folder is that of the whole archive.

    Examples:
        >>> _flat("vcpulab-kvm1/kernel.txt", Path("empty")), _flat("/etc/pve/../100.conf", Path("empty"))
        ('kernel.txt', 'pve-100.conf')
    """
    parts = [part for part in PurePosixPath(name).parts if part not in ("/", "..", ".")]
    flat = "-".join(parts[1:] or parts)[-200:].lstrip(".") or "file"
    free, number = flat, 1
    while (folder / free).exists():
        number += 1
        free = f"{number}-{flat}"
    return free
