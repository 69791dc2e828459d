"""Documents and tables in Markdown."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from vcpulab._files import atomic
from vcpulab.show import drawing
from vcpulab.show.document import Block, Drawing, Heading, Item, Lines, Prose, form_of, list_items, texts
from vcpulab.show.table import Table

_SVG_WIDTH = 760


def text(blocks: Sequence[Block], title: str, folder: Path) -> str:
    """Blocks under a title; drawings are written to files in a folder."""
    parts = [f"# {title}"]
    specs = [_sized(block.spec) for block in blocks if isinstance(block, Drawing)]
    files = [folder / f"figure-{number}.svg" for number in range(1, len(specs) + 1)]
    for file, drawn in zip(files, drawing.pictures("svg", specs) if specs else (), strict=True):
        atomic.write(file, drawn)
    names = (file.name for file in files)
    for form, group in groupby(blocks, form_of):
        if form is not None:
            parts.append(_lines(form, [block for block in group if isinstance(block, Lines)]))
            continue
        for block in group:
            match block:
                case Heading(heading):
                    parts.append(f"## {heading}")
                case Prose(prose):
                    parts.append(prose)
                case Table():
                    parts.append(table(block))
                case Drawing():
                    picture = f"![{block.title}]({next(names)})"
                    parts += [f"### {block.title}", block.text, picture, f"`{block.command}`"]
                case _:
                    pass
    return "\n\n".join(part for part in parts if part) + "\n"


def _lines(form: str, blocks: Sequence[Lines]) -> str:
    """Adjacent lines as paragraphs, a list, or a text as typed."""
    if form == "bullets":
        return "\n".join(_bullets(list_items(blocks)))
    lines = texts(blocks)
    return "\n".join(["```", *lines, "```"]) if form == "typed" else "\n\n".join(lines)


def _bullets(items: Sequence[Item], indent: str = "") -> Iterator[str]:
    for item in items:
        yield f"{indent}- {item.text}"
        yield from _bullets(item.inner, f"{indent}  ")


def table(shown: Table) -> str:
    """The table under its title, if it has one."""
    lines = [shown.headings, ["---"] * len(shown.headings), *shown.rows]
    title = [f"**{shown.title}**", ""] if shown.title else []
    return "\n".join([*title, *map(_row, lines)])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


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
