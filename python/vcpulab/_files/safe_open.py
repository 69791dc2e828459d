"""Opening of regular files only: a device or a pipe, which may never end or never begin, is refused."""

import errno
import os
from os import PathLike
from stat import S_ISDIR, S_ISREG
from typing import BinaryIO


def opened(path: str | PathLike[str]) -> BinaryIO:
    """A regular file, opened for reading.

    Raises:
        OSError: the path cannot be read, or is not a regular file.
    """
    # Opening a pipe without a writer would block.
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    kind = os.fstat(number).st_mode
    if not S_ISREG(kind):
        os.close(number)
        if S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
    return os.fdopen(number, "rb")


def read(path: str | PathLike[str], most: int) -> bytes:
    """The content of a regular file of at most `most` bytes.

    Raises:
        OSError: the path cannot be read, is not a regular file, or is longer.
    """
    with opened(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"too long; allowed: at most {most} bytes", os.fspath(path))
    return data
