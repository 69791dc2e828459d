"""Ctrl-C and SIGTERM: what is known by then is printed, and marked as what it is."""

from collections.abc import Callable, Mapping
from typing import ParamSpec, TypeVar

from vcpulab.cli import signals, terminal
from vcpulab.cli.streams import printing_aside
from vcpulab.errors import Interrupted

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")


def so_far(work: Callable[P, T], *args: P.args, **options: P.kwargs) -> tuple[T, bool]:
    """The answer of some work, and whether it was interrupted: then it is as far as it is known.

    What policies and controllers print meanwhile goes to stderr: stdout has the answer alone. Whoever has shown it
    calls `stop` with that; a first signal waits for it.

    Raises:
        KeyboardInterrupt: it was interrupted before anything was known.
    """
    signals.working()
    try:
        with printing_aside():
            return work(*args, **options), False
    except Interrupted as interrupted:
        said = f": {interrupted.extent}" if interrupted.extent else ""
        terminal.warn(f"interrupted: what follows is what was known by then{said}")
        answer: T = interrupted.partial
        return answer, True
    finally:
        signals.showing()


def each(work: Callable[[str, T], R], of: Mapping[str, T]) -> dict[str, R]:
    """The answers of some work on several things, one after the other.

    Raises:
        Interrupted: it was interrupted when some were known.
        KeyboardInterrupt: it was interrupted before.
    """
    answers: dict[str, R] = {}
    for label, thing in of.items():
        try:
            answers[label] = work(label, thing)
        except Interrupted as interrupted:
            answers[label] = interrupted.partial
            raise Interrupted(answers, f"of {label} {interrupted.extent}") from None
        except KeyboardInterrupt:
            if not answers:
                raise
            raise Interrupted(answers, f"of {label} nothing") from None
    return answers


def stop(*, interrupted: bool) -> None:
    """Ends a command that was interrupted, when what was known is shown.

    Raises:
        KeyboardInterrupt: it was.
    """
    if interrupted:
        raise KeyboardInterrupt
    signals.check()
