"""Messages and progress on stderr. Colours only repeat what the words say; `NO_COLOR` turns them off."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def say(message: str) -> None:
    """Prints a message."""
    print(message, file=sys.stderr)


def warn(message: str) -> None:
    """Prints a warning."""
    _labelled("warning: ", "bold yellow", message)


def error(message: str) -> None:
    """Prints an error."""
    _labelled("error: ", "bold red", message)


def _labelled(label: str, style: str, message: str) -> None:
    if not (sys.stderr.isatty() or os.environ.get("FORCE_COLOR")):
        say(f"{label}{message}")
        return
    from rich.console import Console
    from rich.text import Text

    Console(stderr=True, highlight=False, soft_wrap=True).print(Text.assemble((label, style), message))


@contextmanager
def progress(what: str) -> Iterator[Callable[[float], bool]]:
    """A progress bar, if stderr is a terminal; takes the fraction done."""
    if not sys.stderr.isatty():
        yield lambda _fraction: True
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=1.0)

        def advance(fraction: float) -> bool:
            bar.update(task, completed=fraction)
            return True

        yield advance


@contextmanager
def status(what: str) -> Iterator[Callable[[str], None]]:
    """The work in progress, if stderr is a terminal; takes how far it has come."""
    if not sys.stderr.isatty():
        yield lambda _said: None
        return
    from rich.console import Console

    with Console(stderr=True, highlight=False).status(what) as shown:
        yield lambda said: shown.update(f"{what}: {said}")
