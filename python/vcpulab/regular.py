"""Files that are read are files: what never ends, or never begins, such as a device or a pipe, is refused."""

import errno
import os
from os import PathLike
from stat import S_ISDIR, S_ISREG
from typing import BinaryIO


def opened(path: str | PathLike[str]) -> BinaryIO:
    """A regular file, opened for reading.

    Raises:
        OSError: it cannot be read, or is none.
    """
    # A pipe that nobody writes to would have us wait.
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    kind = os.fstat(number).st_mode
    if not S_ISREG(kind):
        os.close(number)
        if S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
    return os.fdopen(number, "rb")


def read(path: str | PathLike[str], most: int) -> bytes:
    """What is in a regular file of at most so many bytes.

    Raises:
        OSError: it cannot be read, is none, or is longer.
    """
    with opened(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"too long; allowed: at most {most} bytes", os.fspath(path))
    return data
