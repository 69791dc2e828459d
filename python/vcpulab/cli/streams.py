"""Where text goes: plain, in letters that a terminal knows, and to nobody once nobody takes it."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, redirect_stdout
from typing import Any, TextIO

from vcpulab.show.terminal_text import plain

_ASCII = ("ascii", "ansi_x3.4-1968", "us-ascii")


class Unheard(BaseException):
    """What was printed went nowhere, and nothing else is to be done; nobody on the way makes an error of it."""


class Heard:
    """A stream that may break: its reader has gone, or its disk is full."""

    def __init__(self, stream: TextIO, *, goes_on: bool) -> None:
        self.goes_on = goes_on
        """Is there something to do that needs no listener?"""
        self.broken: OSError | None = None
        self._stream = stream

    def write(self, text: str) -> int:
        """Prints.

        Raises:
            Unheard: the stream is broken, and nothing else is to be done.
        """
        self._try(lambda: self._stream.write(text))
        return len(text)

    def write_bytes(self, data: bytes) -> None:
        """Prints what is no text, as `write` does."""
        self.flush()
        self._try(lambda: self._stream.buffer.write(data))
        self._try(self._stream.buffer.flush)

    def flush(self) -> None:
        """Sees to it that all is printed, as `write` does."""
        self._try(self._stream.flush)

    def _try(self, do: Callable[[], object]) -> None:
        try:
            do()
        except OSError as error:
            self.broken = error
            # What is left in its buffers goes nowhere, and Python has nothing to complain of at the end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
            if not self.goes_on:
                raise Unheard from None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Plain:
    """A stream for text of whatever origin: what a terminal would obey is escaped."""

    def __init__(self, styled: Heard) -> None:
        self.styled = styled

    def write(self, text: str) -> int:
        """Prints."""
        self.styled.write(plain(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.styled, name)


def printing_aside() -> AbstractContextManager[object]:
    """While this lasts, what code of the user's own prints goes to stderr, and does not mix with a command's answer."""
    return redirect_stdout(sys.stderr)


@contextmanager
def printing_plainly() -> Iterator[Heard]:
    """While this lasts, whatever is printed does no harm to a terminal; letters that it does not know are replaced.

    Yields:
        The standard output.
    """
    before = sys.stdout, sys.stderr
    for stream in before:
        if hasattr(stream, "reconfigure") and (stream.encoding or "").lower().replace("-", "") != "utf8":
            # ASCII is what is left where the locale is none: UTF-8 is likelier.
            stream.reconfigure(encoding="utf-8" if stream.encoding.lower() in _ASCII else None, errors="replace")
    heard = Heard(sys.stdout, goes_on=False)
    sys.stdout, sys.stderr = Plain(heard), Plain(Heard(sys.stderr, goes_on=True))
    try:
        yield heard
    finally:
        sys.stdout, sys.stderr = before


def go_on_unheard() -> None:
    """Something is to be done, such as a file to be written, whether or not anybody reads what is printed."""
    if isinstance(sys.stdout, Plain):
        sys.stdout.styled.goes_on = True


def write_bytes(data: bytes) -> None:
    """Prints what is no text."""
    assert isinstance(sys.stdout, Plain)
    sys.stdout.styled.write_bytes(data)
