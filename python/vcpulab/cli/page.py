"""How an answer fits a page: each part as long as there is room, the most important first; the rest named in a line."""

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
"""The most lines of a terminal that an answer takes unless all is asked for."""
# Wide enough for every table where there is no terminal that says how wide it is.
_PIPE_COLUMNS = 240


# ---- what is printed ----


@dataclass(frozen=True)
class Lines:
    """Lines of words, each broken where the terminal ends; whole where none says how wide it is."""

    lines: Sequence[str]
    begin: str = ""
    """Stands before each."""
    indent: str = "  "
    """Stands before what goes on in the next line."""
    typed: bool = False
    """Is it typed, and stays in one line?"""

    def broken(self, width: int) -> list[str]:
        """The lines as they are printed, each of which may hold several."""
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
"""What stays in one line: a number and its unit."""
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
    """Are all its columns beside one another?"""
    return sum(1 for _ in rendered(table, _stdout().width)) == 1


def _stdout() -> "Console":
    return terminal.console(width=None if sys.stdout.isatty() else _stated_width() or _PIPE_COLUMNS)


def _stated_width() -> int:
    """The columns that the environment states; 0: it states none."""
    stated = os.environ.get("COLUMNS", "")
    return int(stated) if stated.isdecimal() else 0


def _words_width() -> int:
    return _stdout().width if sys.stdout.isatty() or _stated_width() else sys.maxsize


def _height(pieces: Iterable[Piece]) -> int:
    """The lines of the terminal that they take."""
    from rich.cells import cell_len

    console, words_width = _stdout(), _words_width()
    lines = 0
    for piece in pieces:
        if isinstance(piece, Table):
            lines += sum(len(console.render_lines(part)) for part in rendered(piece, console.width))
        else:
            said = [line for text in piece.broken(words_width) for line in text.split("\n")]
            lines += sum(max(1, -(-cell_len(plain(line)) // console.width)) for line in said)
    return lines


# ---- what fits a page ----


@dataclass(frozen=True)
class Version:
    """A part of an answer, shown in some size."""

    pieces: Sequence[Piece] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    """What it leaves out: how many of what; 0: something that is not counted."""


@dataclass(frozen=True)
class Part:
    """A part of an answer that may be shown in several sizes."""

    version: Callable[[int], Version]
    """Of a size: the larger, the more lines it takes."""
    whole: int = 0
    """The largest size."""
    least: int = 0
    """The size that it has whatever there is room for."""
    soon: int | None = None
    """The size that it grows to before others grow beyond theirs; `None`: the largest."""
    rank: int = 0
    """The less, the sooner it grows; of the same rank what stands first does."""


def always(*pieces: Piece) -> Part:
    """What is shown whatever else is not."""
    return Part(lambda _: Version(pieces))


def rows(table: Table, called: str, *, least: int = 0, soon: int | None = None, rank: int = 0) -> Part:
    """A table that goes without the columns that do not fit beside the others, and then without its last rows.

    Args:
        table: the table, what matters most in its first rows and columns.
        called: what a row is of.
        least: see `Part`, in rows, as the others.
        soon: it too.
        rank: it too.
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
        return Version([shown], {what: number for what, number in left.items() if number})

    # What else there is of columns waits until every part has its rows.
    return Part(version, height + 1, min(least, height), None if soon is None else min(soon, height), rank)


def items(
    of: Sequence[Sequence[Piece]], called: str, *, least: int = 0, soon: int | None = None, rank: int = 0
) -> Part:
    """One after the other, of which the last are left out.

    Args:
        of: each.
        called: what each is.
        least: see `Part`, in items, as the others.
        soon: it too.
        rank: it too.
    """

    def version(size: int) -> Version:
        left = len(of) - size
        return Version([piece for one in of[:size] for piece in one], {called: left} if left else {})

    return Part(version, len(of), min(least, len(of)), soon, rank)


def either(*versions: Version, soon: int | None = None, rank: int = 0) -> Part:
    """What has a few versions, the shortest first.

    Args:
        versions: them.
        soon: see `Part`, in versions.
        rank: it too.
    """
    return Part(lambda size: versions[size], len(versions) - 1, soon=soon, rank=rank)


def show(parts: Sequence[Part], *, all: bool = False) -> None:
    """Prints an answer: on a page, with what is left out in a line, or all of it."""
    sizes = [part.whole for part in parts] if all else _fitting(parts)
    versions = [part.version(size) for part, size in zip(parts, sizes, strict=True)]
    for version in versions:
        print_pieces(version.pieces)
    print_pieces(_hint(versions))


def _fitting(parts: Sequence[Part]) -> list[int]:
    """How large each part is for all to be on a page, with the line that says what is not."""
    heights = [cache(lambda size, part=part: _height(part.version(size).pieces)) for part in parts]
    for room in range(LINES_MAX, 0, -1):
        sizes = _grown(parts, heights, room)
        hint = _hint([part.version(size) for part, size in zip(parts, sizes, strict=True)])
        if _height(hint) + sum(height(size) for height, size in zip(heights, sizes, strict=True)) <= LINES_MAX:
            return sizes
    return [part.least for part in parts]


def _grown(parts: Sequence[Part], heights: Sequence[Callable[[int], int]], room: int) -> list[int]:
    """The sizes: each part, the most important first, as large as what the others have leaves room for."""
    sizes = [part.least for part in parts]
    left = room - sum(height(size) for height, size in zip(heights, sizes, strict=True))
    by_rank = sorted(range(len(parts)), key=lambda index: parts[index].rank)
    soon = [(index, parts[index].soon) for index in by_rank]
    for index, until in (*soon, *((index, None) for index in by_rank)):
        part, height, size = parts[index], heights[index], sizes[index]
        # Each size takes a line at least.
        largest = min(part.whole, part.whole if until is None else until, LINES_MAX)
        mine = left + height(size)
        sizes[index] = next((more for more in range(largest, size, -1) if height(more) <= mine), size)
        left = mine - height(sizes[index])
    return sizes


def _hint(versions: Iterable[Version]) -> list[Lines]:
    """What is left out, and how it is shown."""
    left: Counter[str] = Counter()
    for version in versions:
        left.update(version.left_out)
    said = [
        f"{number} more {what if number == 1 else _plural(what)}" if number else what for what, number in left.items()
    ]
    if not said:
        return []
    return [Lines([f"{', '.join(said[:-1])}{' and ' if said[1:] else ''}{said[-1]}: --all"])]


def _plural(noun: str) -> str:
    first, of, rest = noun.partition(" of ")
    many = f"{first[:-1]}ies" if first.endswith("y") else f"{first}s"
    return f"{many}{of}{rest}"


def _beside(table: Table) -> tuple[Table, int]:
    """A table with as many of its columns as there is room for beside one another, and how many more there are."""
    width = _stdout().width
    table = suited(table, width)
    if table.together:
        return table, 0
    kept = [*range(table.text_columns), *fitting(table, width)[0]]
    headings, rows = ([[row[at] for at in kept] for row in part] for part in ([table.headings], table.rows))
    return replace(table, headings=headings[0], rows=rows), len(table.headings) - len(kept)


def _head(table: Table, rows: int) -> Table:
    """The same with the first rows alone."""
    narrower = None if table.narrower is None else _head(table.narrower, rows)
    return replace(table, rows=table.rows[:rows], narrower=narrower)
