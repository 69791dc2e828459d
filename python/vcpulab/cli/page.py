"""Documents on a terminal: parts grow by importance while lines are left; the last line names the rest."""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import product
from typing import TYPE_CHECKING

from vcpulab.cli import terminal
from vcpulab.show.document import Block, Document, Lines, Part, Version
from vcpulab.show.table import Table
from vcpulab.show.terminal import PIPE_COLUMNS, broken, printed, rendered
from vcpulab.show.terminal_text import plain

if TYPE_CHECKING:
    from rich.console import Console

LINES_MAX = 40
"""The largest number of terminal lines of an answer, unless all is shown."""


# ---- blocks ----


def print_blocks(blocks: Iterable[Block]) -> None:
    """Prints the blocks that a terminal shows."""
    console = _stdout()
    for block in printed(blocks):
        if isinstance(block, Table):
            for part in rendered(block, console.width):
                console.print(part)
        else:
            for line in broken(block, _words_width()):
                print(line)


def show_table(table: Table) -> None:
    """Prints a table."""
    print_blocks([table])


def show_lines(lines: Iterable[str], *, begin: str = "", indent: str = "  ") -> None:
    """Prints lines of words; see `Lines`."""
    print_blocks([Lines(list(lines), begin, indent)])


def _stdout() -> "Console":
    return terminal.console(width=None if sys.stdout.isatty() else _stated_width() or PIPE_COLUMNS)


def _stated_width() -> int:
    """The width that the environment states; 0: none."""
    stated = os.environ.get("COLUMNS", "")
    return int(stated) if stated.isdecimal() else 0


def _words_width() -> int:
    return _stdout().width if sys.stdout.isatty() or _stated_width() else sys.maxsize


def _height(blocks: Iterable[Block]) -> int:
    """The number of terminal lines of some blocks."""
    from rich.cells import cell_len

    console, words_width = _stdout(), _words_width()
    lines = 0
    for block in printed(blocks):
        if isinstance(block, Table):
            lines += sum(len(console.render_lines(part)) for part in rendered(block, console.width))
        else:
            texts = [line for text in broken(block, words_width) for line in text.split("\n")]
            lines += sum(max(1, -(-cell_len(plain(line)) // console.width)) for line in texts)
    return lines


# ---- what fits a page ----


def show(document: Document, *, all: bool = False) -> None:
    """Prints a document in full, or on a page with a last line that names the omitted contents."""
    parts, width = list(document), _stdout().width
    sizes = [part.largest for part in parts] if all else _fitting(parts, width)
    versions = [part.version(size, width) for part, size in zip(parts, sizes, strict=True)]
    for version in versions:
        print_blocks(version.blocks)
    print_blocks(_hint(versions))


def _fitting(parts: Sequence[Part], width: int) -> list[int]:
    """The sizes of the parts on a page with a last line that names the omitted contents."""
    heights = [cache(lambda size, part=part: _height(part.version(size, width).blocks)) for part in parts]
    for room in range(LINES_MAX, 0, -1):
        sizes = _grown(parts, heights, room)
        hint = _hint([part.version(size, width) for part, size in zip(parts, sizes, strict=True)])
        if _height(hint) + sum(height(size) for height, size in zip(heights, sizes, strict=True)) <= LINES_MAX:
            return sizes
    return [part.size(0) for part in parts]


def _grown(parts: Sequence[Part], heights: Sequence[Callable[[int], int]], room: int) -> list[int]:
    """The sizes of the parts in a number of lines: each in order of importance as large as the free lines allow."""
    sizes = [part.size(0) for part in parts]
    left = room - sum(height(size) for height, size in zip(heights, sizes, strict=True))
    by_rank = sorted(range(len(parts)), key=lambda index: parts[index].rank)
    rounds = range(1, max((len(part.rounds) for part in parts), default=0))
    for number, index in product(rounds, by_rank):
        part, height, size = parts[index], heights[index], sizes[index]
        # Each size takes at least a line more.
        largest = min(part.size(number), LINES_MAX)
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
