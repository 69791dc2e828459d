"""The blocks of a long report, and its two forms: a page, and Markdown with charts in files."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from vcpulab._files import atomic
from vcpulab.show import drawing, html, markdown
from vcpulab.show.table import Table

_SVG_WIDTH = 760


@dataclass(frozen=True)
class Heading:
    """The beginning of a section."""

    text: str

    @property
    def anchor(self) -> str:
        """The name of the section in links."""
        return "".join(letter if letter.isalnum() else "-" for letter in self.text.lower())


@dataclass(frozen=True)
class Prose:
    """Text, in Markdown."""

    text: str


@dataclass(frozen=True)
class Drawing:
    """A chart, and the command that makes it."""

    title: str
    spec: dict[str, Any]
    """The chart, in Vega-Lite."""
    text: str
    command: str


Block = Heading | Prose | Table | Drawing


def page(blocks: Sequence[Block]) -> Iterator[Markup]:
    """The blocks as parts of a page, with links to its sections first."""
    yield html.contents(block for block in blocks if isinstance(block, Heading))
    for block in blocks:
        match block:
            case Heading(text):
                yield html.heading(text, block.anchor)
            case Prose(text):
                yield _prose(text)
            case Table():
                yield html.table(block)
            case Drawing():
                yield html.drawing(block.title, _prose(block.text), block.spec, block.command)


def text(blocks: Sequence[Block], title: str, folder: Path) -> str:
    """The blocks as Markdown; charts are written to files in a folder."""
    parts = [f"# {title}"]
    specs = [_sized(block.spec) for block in blocks if isinstance(block, Drawing)]
    files = [folder / f"figure-{number}.svg" for number in range(1, len(specs) + 1)]
    for file, drawn in zip(files, drawing.pictures("svg", specs) if specs else (), strict=True):
        atomic.write(file, drawn)
    names = (file.name for file in files)
    for block in blocks:
        match block:
            case Heading(text_):
                parts.append(f"## {text_}")
            case Prose(text_):
                parts.append(text_)
            case Table():
                parts.append(markdown.table(block))
            case Drawing():
                picture = f"![{block.title}]({next(names)})"
                parts += [f"### {block.title}", block.text, picture, f"`{block.command}`"]
    return "\n\n".join(part for part in parts if part) + "\n"


def _prose(text: str) -> Markup:
    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML

    class Scrolled(RendererHTML):
        """A renderer of tables that scroll separately on narrow screens."""

        def table_open(self, *_: object) -> str:
            return "<div class=scroll><table class=prose>"

        def table_close(self, *_: object) -> str:
            return "</table></div>"

    return Markup(MarkdownIt("commonmark", {"html": False}, renderer_cls=Scrolled).enable("table").render(text))


def _sized(spec: dict[str, Any]) -> dict[str, Any]:
    """A chart for a file: with a fixed width, and black on white."""
    sized = {**spec, "width": _SVG_WIDTH} if spec.get("width") == "container" else spec
    return _inked(sized)  # type: ignore[return-value]


def _inked(value: object) -> object:
    if isinstance(value, dict):
        return {key: _inked(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_inked(item) for item in value]
    return {"currentColor": "black", "transparent": "white"}.get(value, value) if isinstance(value, str) else value
