"""HTML from templates (Jinja2): parts of pages, and self-contained pages. All text is escaped."""

import json
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader
from markupsafe import Markup

from vcpulab import _engine
from vcpulab._files import atomic
from vcpulab.extras import require
from vcpulab.show import drawing as drawing_of
from vcpulab.show.table import Table

if TYPE_CHECKING:
    import altair as alt


@cache
def _templates() -> Environment:
    return Environment(loader=PackageLoader("vcpulab.show"), autoescape=True, trim_blocks=True, lstrip_blocks=True)


def _part(name: str, *values: object) -> Markup:
    """A macro of `templates/parts.html`."""
    parts: Any = _templates().get_template("parts.html").module
    return Markup(getattr(parts, name)(*values))


def table(shown: Table) -> Markup:
    """A table whose first column names the rows."""
    rendered = _part("table", shown)
    return folded(shown.title, [rendered]) if shown.folded else rendered


def chart(shown: "alt.TopLevelMixin") -> Markup:
    """A chart, drawn when the page is opened, with its description for readers who do not see it."""
    return specified(shown.to_dict())


def specified(spec: dict[str, Any]) -> Markup:
    """A chart from its specification in Vega-Lite, drawn when the page is opened."""
    # `<` might end the script, or begin a comment in it; Vega does not treat line and paragraph separators as text.
    data = json.dumps(spec, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    data = data.replace("\u2028", " ").replace("\u2029", " ")
    return _part("chart", spec.get("description", ""), Markup(data))


def section(heading: str, parts: Iterable[Markup]) -> Markup:
    """Parts under a heading."""
    return _part("section", heading, list(parts))


def paragraphs(*lines: str) -> Markup:
    """Each line a paragraph."""
    return _part("paragraphs", lines)


def bullets(lines: Iterable[str]) -> Markup:
    """Each line an item of a list."""
    return _part("bullets", list(lines))


def folded(heading: str, parts: Iterable[Markup]) -> Markup:
    """Parts that a reader unfolds."""
    return _part("folded", heading, list(parts))


def preformatted(text: str) -> Markup:
    """Preformatted text, such as commands."""
    return _part("preformatted", text)


def side_by_side(parts: Iterable[Markup]) -> Markup:
    """Sections with charts side by side where there is room."""
    return _part("side_by_side", list(parts))


def contents(headings: Iterable[object]) -> Markup:
    """Links to headings, each with a text and an anchor."""
    return _part("contents", list(headings))


def heading(text: str, anchor: str) -> Markup:
    """A heading that can be linked to."""
    return _part("heading", text, anchor)


def drawing(title: str, text: Markup, spec: dict[str, Any], command: str) -> Markup:
    """A chart, specified in Vega-Lite, under its title, with the command that makes it."""
    return _part("drawing", title, text, specified(spec), command)


def write(path: str | PathLike[str], title: str, parts: Iterable[Markup], lead: Iterable[str] = ()) -> None:
    """Writes a page in which charts are drawn. Needs the extra `report`.

    Args:
        path: the file; an existing file is replaced.
        title: the title of the page.
        parts: the sections of the page.
        lead: paragraphs under the title.
    """
    page = _templates().get_template("page.html")
    text = page.render(
        title=title,
        lead=list(lead),
        parts=list(parts),
        engine=f"vcpulab {_engine.build_info()['version']}",
        library=Markup(_library().replace("</script", "<\\/script")),
    )
    atomic.write(path, text)


def _library() -> str:
    """The JavaScript program that draws charts, cached in the user's cache folder: making it takes two seconds."""
    vl_convert, platformdirs = require("vl_convert", "report"), require("platformdirs", "report")
    kept = Path(platformdirs.user_cache_dir("vcpulab"), f"vega-{vl_convert.__version__}.js")
    # Without a cache folder, the program is made each time.
    with suppress(OSError):
        return kept.read_text(encoding="utf-8")
    library = drawing_of.library()
    with suppress(OSError):
        atomic.write(kept, library)
    return library
