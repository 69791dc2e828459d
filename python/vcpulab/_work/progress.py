"""The progress of work that takes long, reported to the caller, who may cancel the work."""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

Progress = Callable[[float], bool | None]
"""Called now and then with the fraction done; returning `False` cancels, `True` or nothing continues.

If it has a method `step`, that is called with the name of each step of a search; see `StepProgress`.
"""


@runtime_checkable
class StepProgress(Protocol):
    """A `Progress` that takes the names of steps, too."""

    def __call__(self, fraction: float, /) -> bool | None:
        """Takes the fraction done."""

    def step(self, name: str, /) -> None:
        """Takes the name of the step that begins."""


def part(progress: Progress | None, begin: float, end: float) -> Progress | None:
    """The progress of a part of the work, from one fraction of the whole to another.

    Examples:
        >>> second_half = part(print, 0.5, 1.0)
        >>> second_half(0.5)
        0.75
    """
    return None if progress is None else lambda fraction: progress(begin + (end - begin) * fraction)


def report(progress: Progress | None, fraction: float) -> None:
    """Reports the fraction done.

    Raises:
        KeyboardInterrupt: the caller cancels the work.
    """
    if progress is not None and progress(fraction) is False:
        raise KeyboardInterrupt


def overall(progress: Progress, done: float, _: float) -> bool | None:
    """Reports the fraction of several runs that is done, without the fraction of the present run."""
    return progress(done)
