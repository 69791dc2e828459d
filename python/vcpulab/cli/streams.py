"""Standard output and error: escaped text in the terminal's encoding, and no errors after the reader has gone."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, redirect_stdout
from typing import Any, TextIO

from vcpulab.show.terminal_text import plain

_ASCII = ("ascii", "ansi_x3.4-1968", "us-ascii")


class NoReader(BaseException):
    """The output has no reader, and the command has nothing else to do; no `except Exception` catches it."""


class BreakableStream:
    """A stream that may break: its reader has gone, or its disk is full."""

    def __init__(self, stream: TextIO, *, needs_no_reader: bool) -> None:
        self.needs_no_reader = needs_no_reader
        """`True`: the command has work to do that needs no reader."""
        self.broken: OSError | None = None
        self._stream = stream

    def write(self, text: str) -> int:
        """Prints.

        Raises:
            NoReader: the stream is broken, and the command has nothing else to do.
        """
        self._try(lambda: self._stream.write(text))
        return len(text)

    def write_bytes(self, data: bytes) -> None:
        """Prints bytes, as `write` prints text."""
        self.flush()
        self._try(lambda: self._stream.buffer.write(data))
        self._try(self._stream.buffer.flush)

    def flush(self) -> None:
        """Flushes the stream; raises as `write` does."""
        self._try(self._stream.flush)

    def _try(self, do: Callable[[], object]) -> None:
        try:
            do()
        except OSError as error:
            self.broken = error
            # The rest of the buffers goes to the null device, so that Python reports no error at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
            if not self.needs_no_reader:
                raise NoReader from None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Plain:
    """A stream for text from any source: control sequences are escaped."""

    def __init__(self, styled: BreakableStream) -> None:
        self.styled = styled

    def write(self, text: str) -> int:
        """Prints."""
        self.styled.write(plain(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.styled, name)


def printing_aside() -> AbstractContextManager[object]:
    """A context in which stdout is redirected to stderr, so that output of users' code stays out of the answer."""
    return redirect_stdout(sys.stderr)


@contextmanager
def printing_plainly() -> Iterator[BreakableStream]:
    """A context in which printed text is escaped, and letters outside the terminal's encoding are replaced.

    Yields:
        The standard output.
    """
    before = sys.stdout, sys.stderr
    for stream in before:
        if hasattr(stream, "reconfigure") and (stream.encoding or "").lower().replace("-", "") != "utf8":
            # Without a locale Python chooses ASCII; UTF-8 is likelier.
            stream.reconfigure(encoding="utf-8" if stream.encoding.lower() in _ASCII else None, errors="replace")
    stdout = BreakableStream(sys.stdout, needs_no_reader=False)
    sys.stdout, sys.stderr = Plain(stdout), Plain(BreakableStream(sys.stderr, needs_no_reader=True))
    try:
        yield stdout
    finally:
        sys.stdout, sys.stderr = before


def continue_without_reader() -> None:
    """Lets the command go on, for example to write a file, even if stdout has no reader."""
    if isinstance(sys.stdout, Plain):
        sys.stdout.styled.needs_no_reader = True


def write_bytes(data: bytes) -> None:
    """Prints bytes."""
    assert isinstance(sys.stdout, Plain)
    sys.stdout.styled.write_bytes(data)
