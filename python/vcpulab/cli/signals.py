"""Ctrl-C and SIGTERM, from the first moment of a process to its last.

The exit status of a command that was interrupted is what a shell has for one that a signal ended: 128 + its number.
"""

import os
import signal
from types import FrameType
from typing import Literal

_DEFAULTS = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
SAID = "interrupted"

_phase: Literal["idle", "working", "showing"] = "idle"
_first: int | None = None


def take() -> None:
    """Takes the signals that a process is interrupted by; those that its parent had it ignore stay ignored."""
    for number, default in _DEFAULTS.items():
        if signal.getsignal(number) is default:
            signal.signal(number, _arrived)


def idle() -> None:
    """From now on a signal ends the process: it has nothing to give.

    Python loses exceptions in some moments of an import, and at its end prints them.
    """
    _enter("idle")


def working() -> None:
    """From now on a signal raises `KeyboardInterrupt`.

    Raises:
        KeyboardInterrupt: there was one before.
    """
    check()
    _enter("working")


def showing() -> None:
    """From now on the first signal waits for `check`: what is known is shown, and written. Another one raises."""
    _enter("showing")


def check() -> None:
    """Ends what is going on if there was a signal.

    Raises:
        KeyboardInterrupt: there was.
    """
    if arrived():
        raise KeyboardInterrupt


def arrived() -> bool:
    """Was there a signal? Where packages are imported, Python may lose its exception, or make another one of it."""
    return _first is not None


def status() -> int:
    """The exit status of a command that was interrupted."""
    return 128 + (_first or signal.SIGINT)


def _enter(phase: Literal["idle", "working", "showing"]) -> None:
    global _phase  # noqa: PLW0603 - a process has one
    _phase = phase


def _arrived(number: int, _frame: FrameType | None) -> None:
    global _first  # noqa: PLW0603 - a process has one
    waits = _phase == "showing" and _first is None
    _first = _first or number
    if _phase == "idle":
        os.write(2, f"{SAID}\n".encode())
        os._exit(status())
    if not waits:
        raise KeyboardInterrupt
