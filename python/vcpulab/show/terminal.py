"""Tables for a terminal (rich). Nothing is printed here."""

import re
from collections.abc import Iterator

from rich import box
from rich.align import VerticalAlignMethod
from rich.table import Table as RichTable
from rich.text import Text

from vcpulab.show.table import Table
from vcpulab.show.terminal_text import plain

_WORDS = re.compile(r"[a-z]{4}")
"""A pattern of words, which matches verdicts, and no number with its unit."""


def rendered(shown: Table, width: int) -> Iterator[RichTable]:
    """The table, cut into several tables if its numbers are wider than the terminal, unless they belong together.

    Args:
        shown: the table; text may wrap, further columns of numbers continue below.
        width: columns of the terminal.
    """
    shown = suited(shown, width)
    headings, title = [plain(heading) for heading in shown.headings], plain(shown.title)
    rows = [[plain(cell) for cell in row] for row in shown.rows]
    all_numbers = list(range(shown.text_columns, len(headings)))
    parts = [all_numbers] if shown.together else fitting(shown, width)
    for numbers in parts:
        table = RichTable(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
        for index in range(shown.text_columns):
            # Names do not wrap where wrapping the words beside numbers is enough.
            whole = shown.together and _least(shown) <= width and not any("\n" in row[index] for row in rows)
            # Names are at the bottom beside numbers, which are there, too; text columns alone begin in the same line.
            vertical: VerticalAlignMethod = "bottom" if numbers else "top"
            table.add_column(Text(headings[index]), vertical=vertical, overflow="fold", no_wrap=whole)
        for index in numbers:
            wraps = shown.together and _wraps(shown, index)
            table.add_column(Text(headings[index]), justify="right", vertical="bottom", no_wrap=not wraps)
        for row in rows:
            table.add_row(*(Text(row[index]) for index in [*range(shown.text_columns), *numbers]))
        yield table
        title = ""


def suited(shown: Table, width: int) -> Table:
    """The table, or its widest narrower variant that fits the terminal."""
    if shown.together and shown.narrower is not None and _least(shown) > width:
        return suited(shown.narrower, width)
    return shown


def _wraps(shown: Table, index: int) -> bool:
    return any(_WORDS.search(row[index]) for row in shown.rows)


def _least(shown: Table) -> int:
    """The minimum width of a terminal that shows the table in one piece, without a broken name.

    Words beside numbers may wrap, and text that has several lines anyway.
    """
    total = 0
    for index, heading in enumerate(shown.headings):
        cells = [heading, *(row[index] for row in shown.rows)]
        is_text = index < shown.text_columns
        wraps = not is_text and _wraps(shown, index)
        parts = [
            part
            for cell in cells
            for part in (cell.split() if wraps or (is_text and "\n" in cell) else cell.split("\n"))
        ]
        # Padding on both sides and a column of the box.
        total += 3 + max(map(len, parts), default=0)
    return total


def fitting(shown: Table, width: int) -> list[list[int]]:
    """The columns of numbers, cut into groups for tables that fit a width."""
    # Padding on both sides and a column of the box.
    gap = 3
    widths = [
        gap + max(len(line) for cell in column for line in plain(cell).split("\n"))
        for column in zip(shown.headings, *shown.rows, strict=True)
    ]
    room = width - sum(widths[: shown.text_columns])
    parts: list[list[int]] = [[]]
    left = room
    for index in range(shown.text_columns, len(widths)):
        if parts[-1] and widths[index] > left:
            parts.append([])
            left = room
        parts[-1].append(index)
        left -= widths[index]
    return parts
