"""Ctrl-C and SIGTERM: the partial answer is printed, and marked as partial."""

from collections.abc import Callable, Mapping
from typing import ParamSpec, TypeVar

from vcpulab.cli import signals, terminal
from vcpulab.cli.streams import printing_aside
from vcpulab.errors import Interrupted

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")


def run_or_partial(work: Callable[P, T], *args: P.args, **options: P.kwargs) -> tuple[T, bool]:
    """The answer of some work, and whether the work was interrupted, which makes the answer partial.

    The output of policies and controllers goes to stderr: stdout has the answer alone. After showing the answer,
    the caller passes the flag to `stop`; a first signal waits for that call.

    Raises:
        KeyboardInterrupt: the work was interrupted before there was an answer.
    """
    signals.working()
    try:
        with printing_aside():
            return work(*args, **options), False
    except Interrupted as interrupted:
        extent = f": {interrupted.extent}" if interrupted.extent else ""
        terminal.warn(f"interrupted: what follows is what was known by then{extent}")
        answer: T = interrupted.partial
        return answer, True
    finally:
        signals.showing()


def each(work: Callable[[str, T], R], things: Mapping[str, T]) -> dict[str, R]:
    """The answers of some work on several things, one after the other.

    Raises:
        Interrupted: the work was interrupted after the first answers.
        KeyboardInterrupt: the work was interrupted before the first answer.
    """
    answers: dict[str, R] = {}
    for label, thing in things.items():
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
    """Ends an interrupted command after its partial answer is shown.

    Raises:
        KeyboardInterrupt: the command was interrupted.
    """
    if interrupted:
        raise KeyboardInterrupt
    signals.check()
