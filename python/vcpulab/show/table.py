"""A table of text, for the terminal, a page, and Markdown."""

from collections.abc import Sequence
from dataclasses import dataclass, replace


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
        return replace(self, headings=[heading.replace(", ", "\n", 1) for heading in self.headings])
