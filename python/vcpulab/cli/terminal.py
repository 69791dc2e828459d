"""Printing: plain text on stdout; messages and progress on stderr.

Colours only repeat what the words say; `NO_COLOR` turns them off.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from vcpulab._work.progress import Progress
from vcpulab.cli import signals
from vcpulab.cli.streams import Plain
from vcpulab.show.terminal_text import plain

if TYPE_CHECKING:
    from rich.console import Console


def console(*, stderr: bool = False, **options: Any) -> "Console":
    """A console for text with styles; the text must be escaped already."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    file: Any = stream.styled if isinstance(stream, Plain) else stream
    return Console(file=file, highlight=False, **options)


_LINE_MOST = 2000


def say(message: str) -> None:
    """Prints a message; very long lines are cut."""
    print(_cut(message), file=sys.stderr)


def _cut(message: str) -> str:
    if len(message) <= _LINE_MOST:
        return message
    lines = (
        line if len(line) <= _LINE_MOST else f"{line[:_LINE_MOST]} … ({len(line)} characters)"
        for line in message.split("\n")
    )
    return "\n".join(lines)


def warn(message: str) -> None:
    """Prints a warning."""
    _labelled("warning: ", "bold yellow", message)


def warn_left_out(paths: Iterable[str], under: str = "the new scheduler") -> None:
    """Warns of parameters that another scheduler does not have, and of the setting that a reboot decides anew."""
    from vcpulab.scenario.scenario import AT_BOOT

    paths = list(paths)
    at_boot = [path for path in paths if path.endswith(f".{AT_BOOT}")]
    for path in paths:
        if path not in at_boot:
            warn(f"{path} is left out: {under} does not have it")
    if at_boot:
        several = f" of {len(at_boot)} domains" if len(at_boot) > 1 else ""
        warn(f"{AT_BOOT}{several} is left out: a reboot to {under} decides it anew, and runs draw it")


def error(message: str) -> None:
    """Prints an error."""
    _labelled("error: ", "bold red", message)


def _labelled(label: str, style: str, message: str) -> None:
    if not (sys.stderr.isatty() or os.environ.get("FORCE_COLOR")):
        say(f"{label}{message}")
        return
    from rich.text import Text

    console(stderr=True, soft_wrap=True).print(Text.assemble((label, style), plain(_cut(message))))


@contextmanager
def progress(title: str) -> Iterator[Progress]:
    """A progress bar with the pace of the engine, if stderr is a terminal; takes the fraction done."""
    if not sys.stderr.isatty():
        yield lambda _fraction: not signals.arrived()
        return
    from rich.markup import escape
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn

    from vcpulab.cli.pace import Pace, PacedProgress

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with PacedProgress(*columns, console=console(stderr=True), transient=True) as bar:
        bar.pace = Pace()
        task = bar.add_task(escape(plain(title)), total=1.0)

        def advance(fraction: float) -> bool:
            bar.update(task, completed=fraction)
            return not signals.arrived()

        yield advance


@contextmanager
def status(title: str) -> Iterator[Progress]:
    """A status line with the steps of a search and the pace of the engine, if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _fraction: not signals.arrived()
        return
    from vcpulab.cli.pace import Pace

    pace = Pace(title)

    class Status:
        def __call__(self, _fraction: float, /) -> bool:
            return not signals.arrived()

        def step(self, name: str, /) -> None:
            pace.before = f"{title}: {name}"

    with console(stderr=True).status(pace):
        yield Status()
