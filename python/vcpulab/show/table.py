"""The one value that is shown as a table: in the terminal, in a page, in Markdown."""

from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Table:
    """Cells in words under headings; `show.terminal`, `show.html` and `show.markdown` render it."""

    title: str
    headings: Sequence[str]
    """A metric's unit follows its name after a comma: `response_p99, ms`."""
    rows: Sequence[Sequence[str]]
    text_columns: int = 1
    """Number of columns, from the first on, that hold text; the others hold numbers."""
    together: bool = False
    """Whether its columns are compared, and stay beside one another in a narrow terminal."""
    narrower: "Table | None" = None
    """What says most of the same where there is no room for such a table."""
    folded: bool = False
    """Whether a page folds it away at first."""

    @property
    def is_prose(self) -> bool:
        """Whether no column holds numbers."""
        return self.text_columns >= len(self.headings)

    def stacked(self) -> "Table":
        """The same with units below the names, for narrow columns."""
        return replace(self, headings=[heading.replace(", ", "\n", 1) for heading in self.headings])
