"""What a report consists of, and how it is said as HTML and as Markdown."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from vcpulab.extras import require
from vcpulab.show import report

if TYPE_CHECKING:
    import altair as alt

_SVG_WIDTH = 760


@dataclass(frozen=True)
class Heading:
    """The beginning of a section."""

    text: str

    @property
    def anchor(self) -> str:
        """What links to it."""
        return "".join(letter if letter.isalnum() else "-" for letter in self.text.lower())


@dataclass(frozen=True)
class Prose:
    """Text, in Markdown."""

    text: str


@dataclass(frozen=True)
class Grid:
    """A table whose first column names the rows."""

    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    folded: bool = False
    """Is it folded away at first?"""
    prose: bool = False
    """Do its columns hold text rather than numbers?"""


@dataclass(frozen=True)
class Drawing:
    """A chart, and what to type to make it."""

    title: str
    chart: "alt.TopLevelMixin"
    text: str
    command: str


Block = Heading | Prose | Grid | Drawing


def html(blocks: Sequence[Block]) -> str:
    """The blocks as the body of a page, with a list of its sections first."""
    headings = [block for block in blocks if isinstance(block, Heading)]
    links = "".join(f'<li><a href="#{h.anchor}">{escape(h.text)}</a></li>' for h in headings)
    parts = [f"<nav><ul>{links}</ul></nav>"]
    for block in blocks:
        match block:
            case Heading(text):
                parts.append(f'<h2 id="{block.anchor}">{escape(text)}</h2>')
            case Prose(text):
                parts.append(_markdown(text))
            case Grid(caption, headings_, rows, folded, prose):
                table = report.table(headings_, rows, "" if folded else caption)
                if prose:
                    table = table.replace("<table>", '<table class="prose">', 1)
                fold = f"<details><summary>{escape(caption)}</summary>{table}</details>"
                parts.append(fold if folded else table)
            case Drawing(title, chart, text, command):
                parts.append(f"<h3>{escape(title)}</h3>{_markdown(text)}{report.figure(chart)}")
                parts.append(f"<p class=command><code>{escape(command)}</code></p>")
    return "".join(parts)


def markdown(blocks: Sequence[Block], title: str, folder: Path) -> str:
    """The blocks as Markdown; charts become files beside it."""
    vl_convert = require("vl_convert", "report")
    parts = [f"# {title}"]
    figures = 0
    for block in blocks:
        match block:
            case Heading(text):
                parts.append(f"## {text}")
            case Prose(text):
                parts.append(text)
            case Grid(caption, headings, rows):
                lines = [_row(headings), _row(["---"] * len(headings)), *map(_row, rows)]
                parts += [f"**{caption}**", "\n".join(lines)]
            case Drawing(title_, chart, text, command):
                figures += 1
                name = f"figure-{figures}.svg"
                (folder / name).write_text(vl_convert.vegalite_to_svg(_sized(chart.to_dict())), encoding="utf-8")
                parts += [f"### {title_}", text, f"![{title_}]({name})", f"`{command}`"]
    return "\n\n".join(part for part in parts if part) + "\n"


def _markdown(text: str) -> str:
    from markdown_it import MarkdownIt

    rendered: str = MarkdownIt("commonmark", {"html": False}).enable("table").render(text)
    return rendered.replace("<table>", "<div class=scroll><table class=prose>").replace("</table>", "</table></div>")


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _sized(spec: dict[str, object]) -> dict[str, object]:
    """A chart that fills its page needs a width where there is none; on white paper, ink is black."""
    sized = {**spec, "width": _SVG_WIDTH} if spec.get("width") == "container" else spec
    return _inked(sized)  # type: ignore[return-value]


def _inked(value: object) -> object:
    if isinstance(value, dict):
        return {key: _inked(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_inked(item) for item in value]
    return {"currentColor": "black", "transparent": "white"}.get(value, value) if isinstance(value, str) else value
