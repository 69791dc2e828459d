"""A table of text, for the terminal, a page, and Markdown."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from vcpulab.show.terminal_text import plain

_WORDS = re.compile(r"[a-z]{4}")
"""A pattern of words, which matches verdicts, and no number with its unit."""
_GAP = 3
"""The width that a column takes beside its text: padding on both sides and a column of the box."""


@dataclass(frozen=True)
class Table:
    """A table of text cells under headings; `show.terminal`, `show.html` and `show.markdown` render it."""

    title: str
    headings: Sequence[str]
    """The headings; a metric's unit follows its name after a comma: `response_p99, ms`."""
    rows: Sequence[Sequence[str]]
    text_columns: int = 1
    """Number of columns, from the first on, that hold text; the others hold numbers."""
    together: bool = False
    """Whether the columns are compared, and stay side by side in a narrow terminal."""
    narrower: "Table | None" = None
    """A narrower table with most of the same information, for narrow terminals."""
    folded: bool = False
    """Whether a reader of a page unfolds the table."""

    @property
    def is_prose(self) -> bool:
        """Whether no column holds numbers."""
        return self.text_columns >= len(self.headings)

    def stacked(self) -> "Table":
        """The table with units below the names, for narrow columns."""
        narrower = None if self.narrower is None else self.narrower.stacked()
        return replace(self, headings=[heading.replace(", ", "\n", 1) for heading in self.headings], narrower=narrower)

    def head(self, rows: int) -> "Table":
        """The first rows of the table."""
        narrower = None if self.narrower is None else self.narrower.head(rows)
        return replace(self, rows=self.rows[:rows], narrower=narrower)

    def suited(self, width: int) -> "Table":
        """The table, or its widest narrower variant that fits a terminal of a width."""
        if self.narrower is None or self._fits(width):
            return self
        return self.narrower.suited(width)

    def cut(self, width: int) -> "tuple[Table, int]":
        """The suited table with the columns that fit side by side, and the number of omitted columns."""
        table = self.suited(width)
        if table.together:
            return table, 0
        kept = [*range(table.text_columns), *table.fitting(width)[0]]
        headings, rows = ([[row[at] for at in kept] for row in part] for part in ([table.headings], table.rows))
        return replace(table, headings=headings[0], rows=rows), len(table.headings) - len(kept)

    def fitting(self, width: int) -> list[list[int]]:
        """The columns of numbers, cut into groups for tables that fit a width."""
        widths = [
            _GAP + max(len(line) for cell in column for line in plain(cell).split("\n"))
            for column in zip(self.headings, *self.rows, strict=True)
        ]
        room = width - sum(widths[: self.text_columns])
        parts: list[list[int]] = [[]]
        left = room
        for index in range(self.text_columns, len(widths)):
            if parts[-1] and widths[index] > left:
                parts.append([])
                left = room
            parts[-1].append(index)
            left -= widths[index]
        return parts

    def least_width(self) -> int:
        """The minimum width of a terminal that shows the table in one piece, without a broken name.

        Words beside numbers may wrap, and text that has several lines anyway.
        """
        total = 0
        for index, heading in enumerate(self.headings):
            cells = [heading, *(row[index] for row in self.rows)]
            is_text = index < self.text_columns
            wraps = not is_text and self.wraps(index)
            parts = [
                part
                for cell in cells
                for part in (cell.split() if wraps or (is_text and "\n" in cell) else cell.split("\n"))
            ]
            total += _GAP + max(map(len, parts), default=0)
        return total

    def wraps(self, column: int) -> bool:
        """Whether a column beside the text has words, which may wrap."""
        return any(_WORDS.search(row[column]) for row in self.rows)

    def _fits(self, width: int) -> bool:
        return self.least_width() <= width if self.together else len(self.fitting(width)) == 1
