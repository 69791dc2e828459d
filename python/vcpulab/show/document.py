"""Documents: blocks, and parts with several sizes, which a terminal, a page and Markdown render."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

from vcpulab.show.table import Table

if TYPE_CHECKING:
    import altair as alt


# ---- blocks ----


@dataclass(frozen=True)
class Heading:
    """The beginning of a section."""

    text: str

    @property
    def anchor(self) -> str:
        """The name of the section in links."""
        return "".join(letter if letter.isalnum() else "-" for letter in self.text.lower())


@dataclass(frozen=True)
class Contents:
    """Links to the sections of a page."""


@dataclass(frozen=True)
class Prose:
    """Text, in Markdown."""

    text: str


@dataclass(frozen=True)
class Lines:
    """Lines of words, wrapped at the width of a terminal.

    On a page, lines with a `begin` are a list, nested by their indentation.
    """

    lines: Sequence[str]
    begin: str = ""
    """The text before each line on a terminal."""
    indent: str = "  "
    """The text before each continuation of a line on a terminal."""
    typed: bool = False
    """`True`: commands to type, which are not wrapped."""


@dataclass(frozen=True)
class Chart:
    """A chart; terminals do not show it."""

    draw: Callable[[], "alt.TopLevelMixin"]


@dataclass(frozen=True)
class Drawing:
    """A chart under a title, with a text and the command that makes it."""

    title: str
    spec: dict[str, Any]
    """The chart, in Vega-Lite."""
    text: str
    command: str


@dataclass(frozen=True)
class Folded:
    """Blocks that a reader of a page unfolds; terminals do not show them."""

    title: str
    blocks: Sequence["Block"]


@dataclass(frozen=True)
class SideBySide:
    """Sections of a page next to each other where there is room; terminals do not show them."""

    blocks: Sequence["Block"]


Block: TypeAlias = Heading | Contents | Prose | Lines | Table | Chart | Drawing | Folded | SideBySide
BLANK = Lines([""])


# ---- lines on a page ----


@dataclass(frozen=True)
class Item:
    """An item of a list."""

    text: str
    inner: list["Item"] = field(default_factory=list)
    """The list below the item."""


def form_of(block: Block) -> Literal["typed", "bullets", "paragraphs"] | None:
    """The form of lines on a page, which adjacent lines share; `None`: the block has no lines."""
    if not isinstance(block, Lines):
        return None
    return "typed" if block.typed else "bullets" if block.begin else "paragraphs"


def texts(blocks: Iterable[Lines]) -> list[str]:
    """The lines of adjacent blocks; blank lines, which separate blocks on a terminal, stay in commands only."""
    return [line for block in blocks for line in block.lines if line or block.typed]


def list_items(blocks: Iterable[Lines]) -> list[Item]:
    """Adjacent lines as a nested list: lines that are indented further are below the line before them.

    Examples:
        >>> items = list_items([Lines(["a"], "  "), Lines(["b", "c"], "    "), Lines(["d"], "  ")])
        >>> [(item.text, [below.text for below in item.inner]) for item in items]
        [('a', ['b', 'c']), ('d', [])]
    """
    items: list[Item] = []
    levels: list[tuple[int, list[Item]]] = []
    for block in blocks:
        indent = len(block.begin) - len(block.begin.lstrip(" "))
        for line in texts([block]):
            while levels and levels[-1][0] > indent:
                levels.pop()
            if not levels or levels[-1][0] < indent:
                levels.append((indent, levels[-1][1][-1].inner if levels else items))
            levels[-1][1].append(Item(line))
    return items


# ---- parts with several sizes ----


@dataclass(frozen=True)
class Version:
    """A part of a document in some size."""

    blocks: Sequence[Block] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    """The omitted contents: noun to count; 0: something that is not counted."""


@dataclass(frozen=True)
class Part:
    """A part of a document with several sizes, for terminals; a page has room for everything."""

    version: Callable[[int, int], Version]
    """The version of a size, for a width of the terminal; larger sizes take more lines."""
    rounds: Sequence[int] = (0,)
    """The sizes that the part reaches in the rounds in which a page is filled; the last one is the largest.

    The first size is shown even without room. In each further round, every part grows towards its next size.
    """
    rank: int = 0
    """The rank; in a round, parts of lower rank grow first, and among equal ranks the earlier part."""
    page: Iterable[Block] | None = None
    """The blocks on a page, perhaps made when they are needed; `None`: those of the largest size."""

    def size(self, number: int) -> int:
        """The size in a round; a part with fewer rounds stays at its largest."""
        return self.rounds[min(number, len(self.rounds) - 1)]

    @property
    def largest(self) -> int:
        """The largest size."""
        return self.rounds[-1]

    @property
    def on_page(self) -> Iterable[Block]:
        """The blocks on a page."""
        return self.version(self.largest, sys.maxsize).blocks if self.page is None else self.page

    @classmethod
    def always(cls, *blocks: Block) -> Self:
        """A part that is always shown in full."""
        return cls(lambda *_: Version(blocks))

    @classmethod
    def only_on_page(cls, *blocks: Block) -> Self:
        """A part that only a page has."""
        return cls(lambda *_: Version(), page=blocks)

    @classmethod
    def rows(cls, table: Table, called: str, *, rounds: Sequence[int] = (0,), rank: int = 0) -> Self:
        """A table that first loses the columns that do not fit side by side, and then its last rows.

        Args:
            table: the table, with the most important rows and columns first.
            called: the noun for a row.
            rounds: the numbers of rows in the first rounds; in the round after them all.
            rank: see `Part`.
        """
        height = len(table.rows)
        if not height:
            return cls.always(table)

        def version(size: int, width: int) -> Version:
            if size > height:
                return Version([table])
            if size == 0:
                return Version(left_out={called: height})
            shown, columns = table.head(size).cut(width)
            left = {called: height - size, "column": columns}
            return Version([shown], {noun: number for noun, number in left.items() if number})

        # Omitted columns are shown only after every part has all its rows.
        return cls(version, [*_at_most(height, rounds), height + 1], rank)

    @classmethod
    def items(
        cls,
        contents: Sequence[Sequence[Block]],
        called: str,
        *,
        rounds: Sequence[int] = (0,),
        rank: int = 0,
    ) -> Self:
        """A sequence of items whose last ones may be left out.

        Args:
            contents: the blocks of each item.
            called: the noun for an item.
            rounds: the numbers of items in the first rounds; in the round after them all.
            rank: see `Part`.
        """

        def version(size: int, _width: int) -> Version:
            left = len(contents) - size
            return Version([block for item in contents[:size] for block in item], {called: left} if left else {})

        return cls(version, [*_at_most(len(contents), rounds), len(contents)], rank)

    @classmethod
    def lines(cls, texts: Sequence[str], called: str, *, rounds: Sequence[int] = (0,), rank: int = 0) -> Self:
        """A sequence of lines whose last ones may be left out; see `items`."""
        return cls.items([[Lines([text])] for text in texts], called, rounds=rounds, rank=rank)

    @classmethod
    def alternatives(
        cls, *versions: Version, rounds: Sequence[int] = (0,), rank: int = 0, page: Iterable[Block] | None = None
    ) -> Self:
        """A part with a few versions, the shortest first.

        Args:
            versions: the versions.
            rounds: the numbers of the versions in the first rounds; in the round after them the last one.
            rank: see `Part`.
            page: see `Part`.
        """
        return cls(lambda size, _width: versions[size], [*rounds, len(versions) - 1], rank, page)


def _at_most(largest: int, sizes: Iterable[int]) -> list[int]:
    return [min(size, largest) for size in sizes]


Document: TypeAlias = Iterable[Part]


def on_page(document: Document) -> list[Block]:
    """The blocks of a document on a page."""
    return [block for part in document for block in part.on_page]


def in_full(document: Document) -> list[Block]:
    """The blocks of a document that a terminal without a limit shows."""
    blocks = (block for part in document for block in part.version(part.largest, sys.maxsize).blocks)
    return [block for block in blocks if isinstance(block, Heading | Lines | Table)]


def count(number: int, thing: str) -> str:
    """A number of things in words.

    Examples:
        >>> count(1, "host"), count(2, "host")
        ('1 host', '2 hosts')
    """
    return f"{number} {thing}{'' if number == 1 else 's'}"
