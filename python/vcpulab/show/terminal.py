"""Tables for a terminal (rich). Nothing is printed here."""

from collections.abc import Iterator

from rich import box
from rich.align import VerticalAlignMethod
from rich.table import Table as RichTable
from rich.text import Text

from vcpulab.show.table import Table
from vcpulab.show.terminal_text import plain


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
