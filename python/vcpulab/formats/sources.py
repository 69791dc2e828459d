"""Files as they are on disk, compressed or not, read in pieces or line by line."""

import bz2
import gzip
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import BinaryIO, cast

from vcpulab._files import safe_open
from vcpulab.errors import RecordingError
from vcpulab.formats.errors import wrong
from vcpulab.formats.excerpts import Excerpt

CHUNK_BYTES = 1 << 18
LINE_BYTES_MAX = 1 << 16
BLANK_LINES_MAX = 100_000
"""The largest number of empty lines in a row; a file with more holds nothing else."""
BLANK_BYTES_MAX = 1 << 24
"""The largest number of blank bytes in a row, of files that are read in pieces."""
TEXT_BYTES_MAX = 1 << 20
"""The longest listing or configuration; none of a real host's comes near it."""


@contextmanager
def opened(path: Path) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """The file's bytes, decompressed while they are read, and the file itself.

    Raises:
        RecordingError: what is compressed is damaged or cut off.
    """
    with safe_open.opened(path) as raw:
        magic = raw.read(6)
        raw.seek(0)
        source: BinaryIO = raw
        if magic == b"\xfd7zXZ\0":
            source = cast(BinaryIO, lzma.LZMAFile(raw))  # noqa: SIM115 - it ends with `raw`
        elif magic[:2] == b"\x1f\x8b":
            source = cast(BinaryIO, gzip.GzipFile(fileobj=raw))
        elif magic[:3] == b"BZh":
            source = cast(BinaryIO, bz2.BZ2File(raw))
        try:
            yield source, raw
        except (lzma.LZMAError, EOFError, zlib.error, OSError) as error:
            # Damage that gzip and bzip2 find is an OSError too, without the number that those of the system have.
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise RecordingError(f"{path}: compressed, but damaged or cut off: {error}") from None


def text_of(path: str | PathLike[str]) -> str:
    """All of a short text, without a mark of the order of its bytes.

    Raises:
        RecordingError: it is too long, or no text.
    """
    if isinstance(path, Excerpt):
        return path.text
    with opened(Path(path)) as (source, _):
        data = source.read(TEXT_BYTES_MAX + 1)
    if len(data) > TEXT_BYTES_MAX:
        raise RecordingError(f"{path}: too long; allowed: at most {TEXT_BYTES_MAX} bytes")
    try:
        return data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise wrong(str(path), data.count(b"\n", 0, error.start) + 1, data[error.start : error.end], "UTF-8") from None


def lines_of(path: str | PathLike[str]) -> Iterator[tuple[int, str]]:
    """The lines of a text of any length, without their ends, and their numbers from 1.

    Raises:
        RecordingError: a line is too long, or no text.
    """
    if isinstance(path, Excerpt):
        yield from ((number, line.rstrip("\r")) for number, line in enumerate(path.text.split("\n"), 1))
        return
    with opened(Path(path)) as (source, _):
        number = blank = 0
        while line := source.readline(LINE_BYTES_MAX + 1):
            number += 1
            blank = 0 if line.strip() else blank + 1
            if blank > BLANK_LINES_MAX:
                raise wrong(str(path), number, "another empty line", f"at most {BLANK_LINES_MAX}")
            if len(line) > LINE_BYTES_MAX:
                raise wrong(str(path), number, "a longer line", f"at most {LINE_BYTES_MAX} bytes")
            try:
                yield number, line.decode().removeprefix("\ufeff" if number == 1 else "").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise wrong(str(path), number, line[error.start : error.end], "UTF-8") from None
