"""HTML from templates (Jinja2): what pages are made of, and pages that need nothing else. All text is escaped."""

import json
from collections.abc import Iterable
from functools import cache
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader
from markupsafe import Markup

from vcpulab import _engine
from vcpulab.extras import require
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
    spec = shown.to_dict()
    data = json.dumps(spec, separators=(",", ":")).replace("</", "<\\/")
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
    """Parts that are folded away at first."""
    return _part("folded", heading, list(parts))


def preformatted(text: str) -> Markup:
    """Text as it stands, such as commands."""
    return _part("preformatted", text)


def side_by_side(parts: Iterable[Markup]) -> Markup:
    """Sections whose charts stand beside one another where there is room."""
    return _part("side_by_side", list(parts))


def contents(headings: Iterable[object]) -> Markup:
    """Links to headings, each with a text and an anchor."""
    return _part("contents", list(headings))


def heading(text: str, anchor: str) -> Markup:
    """A heading that can be linked to."""
    return _part("heading", text, anchor)


def drawing(title: str, text: Markup, shown: "alt.TopLevelMixin", command: str) -> Markup:
    """A chart under its title, with the command that makes it."""
    return _part("drawing", title, text, chart(shown), command)


def write(path: str | PathLike[str], title: str, parts: Iterable[Markup], lead: Iterable[str] = ()) -> None:
    """Writes a page in which charts are drawn. Needs the extra `report`.

    Args:
        path: the file; replaced if it is there.
        title: of the page.
        parts: its sections.
        lead: paragraphs under the title.
    """
    vl_convert = require("vl_convert", "report")
    page = _templates().get_template("page.html")
    text = page.render(
        title=title,
        lead=list(lead),
        parts=list(parts),
        engine=f"vcpulab {_engine.build_info()['version']}",
        library=Markup(vl_convert.javascript_bundle().replace("</script", "<\\/script")),
    )
    # A reader finds the old page or the new one, never half of one.
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = target.with_name(f".{target.name}.new")
    scratch.write_text(text, encoding="utf-8")
    scratch.replace(target)
