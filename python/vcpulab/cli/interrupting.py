"""Ctrl-C: what is known by then is printed, and marked as what it is."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from vcpulab.cli import terminal
from vcpulab.errors import Interrupted

P = ParamSpec("P")
T = TypeVar("T")


def so_far(work: Callable[P, T], *args: P.args, **options: P.kwargs) -> tuple[T, bool]:
    """The answer of some work, and whether it was interrupted: then it is as far as it is known.

    Whoever has shown it calls `stop` with that.

    Raises:
        KeyboardInterrupt: it was interrupted before anything was known.
    """
    try:
        return work(*args, **options), False
    except Interrupted as interrupted:
        said = f": {interrupted.said}" if interrupted.said else ""
        terminal.warn(f"interrupted: what follows is what was known by then{said}")
        answer: T = interrupted.so_far
        return answer, True


def stop(*, interrupted: bool) -> None:
    """Ends a command that was interrupted, when what was known is shown.

    Raises:
        KeyboardInterrupt: it was.
    """
    if interrupted:
        raise KeyboardInterrupt
