"""The layout of an answer on a page: parts grow by importance while lines are left; the last line names the rest."""

import os
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from vcpulab.cli import terminal
from vcpulab.show.table import Table
from vcpulab.show.terminal import fitting, rendered, suited
from vcpulab.show.terminal_text import plain

if TYPE_CHECKING:
    from rich.console import Console

LINES_MAX = 40
"""The largest number of terminal lines of an answer, unless all is shown."""
# Wide enough for every table where no terminal states its width.
_PIPE_COLUMNS = 240


# ---- what is printed ----


@dataclass(frozen=True)
class Lines:
    """Lines of words, wrapped at the width of the terminal; unwrapped where no width is known."""

    lines: Sequence[str]
    begin: str = ""
    """The text before each line."""
    indent: str = "  "
    """The text before each continuation of a line."""
    typed: bool = False
    """`True`: commands to type, which are not wrapped."""

    def broken(self, width: int) -> list[str]:
        """The lines as they are printed; a wrapped line holds line breaks."""
        if self.typed:
            return [f"{self.begin}{line}" for line in self.lines]
        wrapper = textwrap.TextWrapper(
            width,
            initial_indent=self.begin,
            subsequent_indent=self.indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        return [wrapper.fill(_UNIT.sub("\u00a0", line)).replace("\u00a0", " ") for line in self.lines]


_UNIT = re.compile(r"(?<=\d) (?=%|[mµ]?s\b)")
"""The space between a number and its unit, where lines are not wrapped."""
Piece: TypeAlias = Table | Lines
BLANK = Lines([""])


def print_pieces(pieces: Iterable[Piece]) -> None:
    """Prints tables and words."""
    console = _stdout()
    for piece in pieces:
        if isinstance(piece, Table):
            for part in rendered(piece, console.width):
                console.print(part)
        else:
            for line in piece.broken(_words_width()):
                print(line)


def show_table(table: Table) -> None:
    """Prints a table."""
    print_pieces([table])


def show_lines(lines: Iterable[str], *, begin: str = "", indent: str = "  ") -> None:
    """Prints lines of words; see `Lines`."""
    print_pieces([Lines(list(lines), begin, indent)])


def fits(table: Table) -> bool:
    """`True`: all columns of a table fit side by side."""
    return sum(1 for _ in rendered(table, _stdout().width)) == 1


def _stdout() -> "Console":
    return terminal.console(width=None if sys.stdout.isatty() else _stated_width() or _PIPE_COLUMNS)


def _stated_width() -> int:
    """The width that the environment states; 0: none."""
    stated = os.environ.get("COLUMNS", "")
    return int(stated) if stated.isdecimal() else 0


def _words_width() -> int:
    return _stdout().width if sys.stdout.isatty() or _stated_width() else sys.maxsize


def _height(pieces: Iterable[Piece]) -> int:
    """The number of terminal lines of some pieces."""
    from rich.cells import cell_len

    console, words_width = _stdout(), _words_width()
    lines = 0
    for piece in pieces:
        if isinstance(piece, Table):
            lines += sum(len(console.render_lines(part)) for part in rendered(piece, console.width))
        else:
            printed = [line for text in piece.broken(words_width) for line in text.split("\n")]
            lines += sum(max(1, -(-cell_len(plain(line)) // console.width)) for line in printed)
    return lines


# ---- what fits a page ----


@dataclass(frozen=True)
class Version:
    """A part of an answer in some size."""

    pieces: Sequence[Piece] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    """The omitted contents: noun to count; 0: something that is not counted."""


@dataclass(frozen=True)
class Part:
    """A part of an answer with several sizes."""

    version: Callable[[int], Version]
    """The version of a size; larger sizes take more lines."""
    whole: int = 0
    """The largest size."""
    least: int = 0
    """The size shown even without room."""
    soon: int | None = None
    """The size to which the part grows before any part grows beyond its own `soon`; `None`: the largest."""
    rank: int = 0
    """The rank; parts of lower rank grow first, and among equal ranks the earlier part."""


def always(*pieces: Piece) -> Part:
    """A part that is always shown in full."""
    return Part(lambda _: Version(pieces))


def rows(table: Table, called: str, *, least: int = 0, soon: int | None = None, rank: int = 0) -> Part:
    """A table that first loses the columns that do not fit side by side, and then its last rows.

    Args:
        table: the table, with the most important rows and columns first.
        called: the noun for a row.
        least: see `Part`, in rows.
        soon: see `Part`, in rows.
        rank: see `Part`.
    """
    height = len(table.rows)
    if not height:
        return always(table)

    def version(size: int) -> Version:
        if size > height:
            return Version([table])
        if size == 0:
            return Version(left_out={called: height})
        shown, columns = _beside(_head(table, size))
        left = {called: height - size, "column": columns}
        return Version([shown], {noun: number for noun, number in left.items() if number})

    # Omitted columns are shown only after every part has all its rows.
    return Part(version, height + 1, min(least, height), None if soon is None else min(soon, height), rank)


def items(
    contents: Sequence[Sequence[Piece]], called: str, *, least: int = 0, soon: int | None = None, rank: int = 0
) -> Part:
    """A sequence of items whose last ones may be left out.

    Args:
        contents: the pieces of each item.
        called: the noun for an item.
        least: see `Part`, in items.
        soon: see `Part`, in items.
        rank: see `Part`.
    """

    def version(size: int) -> Version:
        left = len(contents) - size
        return Version([piece for item in contents[:size] for piece in item], {called: left} if left else {})

    return Part(version, len(contents), min(least, len(contents)), soon, rank)


def alternatives(*versions: Version, soon: int | None = None, rank: int = 0) -> Part:
    """A part with a few versions, the shortest first.

    Args:
        versions: the versions.
        soon: see `Part`, in versions.
        rank: see `Part`.
    """
    return Part(lambda size: versions[size], len(versions) - 1, soon=soon, rank=rank)


def show(parts: Sequence[Part], *, all: bool = False) -> None:
    """Prints an answer in full, or on a page with a last line that names the omitted contents."""
    sizes = [part.whole for part in parts] if all else _fitting(parts)
    versions = [part.version(size) for part, size in zip(parts, sizes, strict=True)]
    for version in versions:
        print_pieces(version.pieces)
    print_pieces(_hint(versions))


def _fitting(parts: Sequence[Part]) -> list[int]:
    """The sizes of the parts on a page with a last line that names the omitted contents."""
    heights = [cache(lambda size, part=part: _height(part.version(size).pieces)) for part in parts]
    for room in range(LINES_MAX, 0, -1):
        sizes = _grown(parts, heights, room)
        hint = _hint([part.version(size) for part, size in zip(parts, sizes, strict=True)])
        if _height(hint) + sum(height(size) for height, size in zip(heights, sizes, strict=True)) <= LINES_MAX:
            return sizes
    return [part.least for part in parts]


def _grown(parts: Sequence[Part], heights: Sequence[Callable[[int], int]], room: int) -> list[int]:
    """The sizes of the parts in a number of lines: each in order of importance as large as the free lines allow."""
    sizes = [part.least for part in parts]
    left = room - sum(height(size) for height, size in zip(heights, sizes, strict=True))
    by_rank = sorted(range(len(parts)), key=lambda index: parts[index].rank)
    soon = [(index, parts[index].soon) for index in by_rank]
    for index, until in (*soon, *((index, None) for index in by_rank)):
        part, height, size = parts[index], heights[index], sizes[index]
        # Each size takes at least a line more.
        largest = min(part.whole, part.whole if until is None else until, LINES_MAX)
        mine = left + height(size)
        sizes[index] = next((more for more in range(largest, size, -1) if height(more) <= mine), size)
        left = mine - height(sizes[index])
    return sizes


def _hint(versions: Iterable[Version]) -> list[Lines]:
    """A line that names the omitted contents and the option that shows them."""
    left: Counter[str] = Counter()
    for version in versions:
        left.update(version.left_out)
    phrases = [
        f"{number} more {noun if number == 1 else _plural(noun)}" if number else noun for noun, number in left.items()
    ]
    if not phrases:
        return []
    return [Lines([f"{', '.join(phrases[:-1])}{' and ' if phrases[1:] else ''}{phrases[-1]}: --all"])]


def _plural(noun: str) -> str:
    first, preposition, rest = noun.partition(" of ")
    many = f"{first[:-1]}ies" if first.endswith("y") else f"{first}s"
    return f"{many}{preposition}{rest}"


def _beside(table: Table) -> tuple[Table, int]:
    """A table with the columns that fit side by side, and the number of omitted columns."""
    width = _stdout().width
    table = suited(table, width)
    if table.together:
        return table, 0
    kept = [*range(table.text_columns), *fitting(table, width)[0]]
    headings, rows = ([[row[at] for at in kept] for row in part] for part in ([table.headings], table.rows))
    return replace(table, headings=headings[0], rows=rows), len(table.headings) - len(kept)


def _head(table: Table, rows: int) -> Table:
    """The first rows of a table."""
    narrower = None if table.narrower is None else _head(table.narrower, rows)
    return replace(table, rows=table.rows[:rows], narrower=narrower)
