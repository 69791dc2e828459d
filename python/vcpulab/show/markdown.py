"""Tables in Markdown."""

from collections.abc import Sequence

from vcpulab.show.table import Table


def table(shown: Table) -> str:
    """The table under its title, if it has one."""
    lines = [shown.headings, ["---"] * len(shown.headings), *shown.rows]
    title = [f"**{shown.title}**", ""] if shown.title else []
    return "\n".join([*title, *map(_row, lines)])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
