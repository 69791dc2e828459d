"""Documents as self-contained HTML pages, from templates (Jinja2). All text is escaped."""

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import groupby
from os import PathLike
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader
from markupsafe import Markup

from vcpulab import _engine
from vcpulab._extras import require
from vcpulab._files import atomic
from vcpulab.show import drawing
from vcpulab.show.document import (
    Block,
    Chart,
    Contents,
    Drawing,
    Folded,
    Heading,
    Lines,
    Prose,
    SideBySide,
    form_of,
    list_items,
    texts,
)
from vcpulab.show.table import Table


def write(path: str | PathLike[str], title: str, blocks: Iterable[Block]) -> None:
    """Writes a page in which charts are drawn. Needs the extra `report`.

    Args:
        path: the file; an existing file is replaced.
        title: the title of the page.
        blocks: the content of the page; what comes before the first heading is its lead.
    """
    page = _templates().get_template("page.html")
    text = page.render(
        title=title,
        parts=rendered(list(blocks)),
        engine=f"vcpulab {_engine.build_info()['version']}",
        library=Markup(_library().replace("</script", "<\\/script")),
    )
    atomic.write(path, text)


def rendered(blocks: Sequence[Block]) -> list[Markup]:
    """Blocks as parts of a page; a heading and the blocks after it are a section."""
    lead: list[Markup] = []
    sections: list[tuple[Heading, list[Markup]]] = []
    for form, group in groupby(blocks, form_of):
        into = sections[-1][1] if sections else lead
        if form is not None:
            lines = [block for block in group if isinstance(block, Lines)]
            content = list_items(lines) if form == "bullets" else texts(lines)
            into += [_part(form, content)] if content else []
            continue
        for block in group:
            match block:
                case Heading():
                    sections.append((block, into := []))
                case Contents():
                    into.append(_part("contents", [heading for heading in blocks if isinstance(heading, Heading)]))
                case _:
                    into.append(_block(block))
    return [*lead, *(_part("section", *section) for section in sections)]


def _block(block: Block) -> Markup:  # noqa: PLR0911 (a line for each kind)
    match block:
        case Prose(text):
            return _prose(text)
        case Table(title=title, folded=True):
            return _part("folded", title, [_part("table", replace(block, title=""))])
        case Table():
            return _part("table", block)
        case Chart():
            return _chart(block.draw().to_dict())
        case Drawing():
            return _part("drawing", block.title, _prose(block.text), _chart(block.spec), block.command)
        case Folded(title, blocks):
            return _part("folded", title, rendered(blocks))
        case SideBySide(blocks):
            return _part("side_by_side", rendered(blocks))
        case _:
            raise AssertionError(block)


@cache
def _templates() -> Environment:
    return Environment(loader=PackageLoader("vcpulab.show"), autoescape=True, trim_blocks=True, lstrip_blocks=True)


def _part(name: str, *values: object) -> Markup:
    """A macro of `templates/parts.html`."""
    parts: Any = _templates().get_template("parts.html").module
    return Markup(getattr(parts, name)(*values))


def _chart(spec: dict[str, Any]) -> Markup:
    """A chart in Vega-Lite, drawn when the page is opened, with its description for readers who do not see it."""
    # `<` might end the script, or begin a comment in it; Vega does not treat line and paragraph separators as text.
    data = json.dumps(spec, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    data = data.replace("\u2028", " ").replace("\u2029", " ")
    return _part("chart", spec.get("description", ""), Markup(data))


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


def _library() -> str:
    """The JavaScript program that draws charts, cached in the user's cache folder: making it takes two seconds."""
    vl_convert, platformdirs = require("vl_convert", "report"), require("platformdirs", "report")
    kept = Path(platformdirs.user_cache_dir("vcpulab"), f"vega-{vl_convert.__version__}.js")
    # Without a cache folder, the program is made each time.
    with suppress(OSError):
        return kept.read_text(encoding="utf-8")
    library = drawing.library()
    with suppress(OSError):
        atomic.write(kept, library)
    return library
