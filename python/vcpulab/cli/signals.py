"""Ctrl-C and SIGTERM, from the first moment of a process to its last.

The exit status of an interrupted command is that of a command ended by a signal in a shell: 128 + the signal's number.
"""

import os
import signal
from types import FrameType
from typing import Literal

_DEFAULTS = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
MESSAGE = "interrupted"

_phase: Literal["idle", "working", "showing"] = "idle"
_first: int | None = None


def take() -> None:
    """Installs the handlers of SIGINT and SIGTERM; signals that the parent process ignores stay ignored."""
    for number, default in _DEFAULTS.items():
        if signal.getsignal(number) is default:
            signal.signal(number, _arrived)


def idle() -> None:
    """From now on a signal ends the process at once, without a partial answer.

    Python may lose exceptions during imports, and prints them at the end of the process.
    """
    _enter("idle")


def working() -> None:
    """From now on a signal raises `KeyboardInterrupt`.

    Raises:
        KeyboardInterrupt: a signal has arrived already.
    """
    check()
    _enter("working")


def showing() -> None:
    """From now on the first signal waits for `check`, so that the answer is shown and written; the second raises."""
    _enter("showing")


def check() -> None:
    """Ends the work if a signal has arrived.

    Raises:
        KeyboardInterrupt: a signal has arrived.
    """
    if arrived():
        raise KeyboardInterrupt


def arrived() -> bool:
    """`True`: a signal has arrived. Python may lose or replace its exception while packages are imported."""
    return _first is not None


def status() -> int:
    """The exit status of an interrupted command."""
    return 128 + (_first or signal.SIGINT)


def _enter(phase: Literal["idle", "working", "showing"]) -> None:
    global _phase  # noqa: PLW0603 - a process has one
    _phase = phase


def _arrived(number: int, _frame: FrameType | None) -> None:
    global _first  # noqa: PLW0603 - a process has one
    waits = _phase == "showing" and _first is None
    _first = _first or number
    if _phase == "idle":
        os.write(2, f"{MESSAGE}\n".encode())
        os._exit(status())
    if not waits:
        raise KeyboardInterrupt
