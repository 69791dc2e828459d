"""Blocks of documents as a terminal shows them: tables (rich) and wrapped lines. Nothing is printed here."""

import io
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator

from rich import box
from rich.align import VerticalAlignMethod
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from vcpulab.show.document import Block, Heading, Lines
from vcpulab.show.table import Table
from vcpulab.show.terminal_text import plain

PIPE_COLUMNS = 240
"""The width where no terminal states one: enough for every table."""
_UNIT = re.compile(r"(?<=\d) (?=%|[mµ]?s\b)")
"""The space between a number and its unit, where lines are not wrapped."""


def text(blocks: Iterable[Block]) -> str:
    """The blocks that a terminal shows, as plain text without wrapped lines."""
    file = io.StringIO()
    console = Console(file=file, width=PIPE_COLUMNS, color_system=None, force_terminal=False, highlight=False)
    for block in printed(blocks):
        if isinstance(block, Table):
            for part in rendered(block, PIPE_COLUMNS):
                console.print(part)
        else:
            file.writelines(f"{plain(line)}\n" for line in broken(block, sys.maxsize))
    return "\n".join(line.rstrip() for line in file.getvalue().strip("\n").split("\n"))


def printed(blocks: Iterable[Block]) -> Iterator[Table | Lines]:
    """The blocks that a terminal shows."""
    for block in blocks:
        if isinstance(block, Heading):
            yield Lines(["", f"{block.text}:"])
        elif isinstance(block, Table | Lines):
            yield block


def broken(lines: Lines, width: int) -> list[str]:
    """Lines as they are printed; a wrapped line holds line breaks."""
    if lines.typed:
        return [f"{lines.begin}{line}" for line in lines.lines]
    wrapper = textwrap.TextWrapper(
        width,
        initial_indent=lines.begin,
        subsequent_indent=lines.indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [wrapper.fill(_UNIT.sub("\u00a0", line)).replace("\u00a0", " ") for line in lines.lines]


def rendered(shown: Table, width: int) -> Iterator[RichTable]:
    """The table, cut into several tables if its numbers are wider than the terminal, unless they belong together.

    Args:
        shown: the table; text may wrap, further columns of numbers continue below.
        width: columns of the terminal.
    """
    shown = shown.suited(width)
    headings, title = [plain(heading) for heading in shown.headings], plain(shown.title)
    rows = [[plain(cell) for cell in row] for row in shown.rows]
    all_numbers = list(range(shown.text_columns, len(headings)))
    parts = [all_numbers] if shown.together else shown.fitting(width)
    for numbers in parts:
        table = RichTable(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
        for index in range(shown.text_columns):
            # Names do not wrap where wrapping the words beside numbers is enough.
            whole = shown.together and shown.least_width() <= width and not any("\n" in row[index] for row in rows)
            # Names are at the bottom beside numbers, which are there, too; text columns alone begin in the same line.
            vertical: VerticalAlignMethod = "bottom" if numbers else "top"
            table.add_column(Text(headings[index]), vertical=vertical, overflow="fold", no_wrap=whole)
        for index in numbers:
            wraps = shown.together and shown.wraps(index)
            table.add_column(Text(headings[index]), justify="right", vertical="bottom", no_wrap=not wraps)
        for row in rows:
            table.add_row(*(Text(row[index]) for index in [*range(shown.text_columns), *numbers]))
        yield table
        title = ""
