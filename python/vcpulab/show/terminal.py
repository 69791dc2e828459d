"""Tables for a terminal (rich). Nothing is printed here."""

from collections.abc import Iterator, Sequence

from rich import box
from rich.table import Table as RichTable
from rich.text import Text

from vcpulab.show.plain import plain
from vcpulab.show.table import Table


def rendered(shown: Table, width: int) -> Iterator[RichTable]:
    """The table, cut into several where its numbers do not fit beside one another.

    Args:
        shown: the table; text may wrap, numbers go on below.
        width: columns of the terminal.
    """
    headings, title = [plain(heading) for heading in shown.headings], plain(shown.title)
    rows = [[plain(cell) for cell in row] for row in shown.rows]
    for numbers in _fitting(headings, rows, shown.text_columns, width):
        table = RichTable(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
        for index in range(shown.text_columns):
            table.add_column(Text(headings[index]), vertical="bottom")
        for index in numbers:
            table.add_column(Text(headings[index]), justify="right", vertical="bottom", no_wrap=True)
        for row in rows:
            table.add_row(*(Text(row[index]) for index in [*range(shown.text_columns), *numbers]))
        yield table
        title = ""


def _fitting(headings: Sequence[str], rows: Sequence[Sequence[str]], text_columns: int, width: int) -> list[list[int]]:
    """The columns of numbers, cut into tables that are no wider than that."""
    # Padding on both sides and a column of the box.
    gap = 3
    widths = [
        gap + max(len(line) for cell in column for line in cell.split("\n"))
        for column in zip(headings, *rows, strict=True)
    ]
    room = width - sum(widths[:text_columns])
    parts: list[list[int]] = [[]]
    left = room
    for index in range(text_columns, len(headings)):
        if parts[-1] and widths[index] > left:
            parts.append([])
            left = room
        parts[-1].append(index)
        left -= widths[index]
    return parts
