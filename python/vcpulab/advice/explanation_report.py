"""A page on why it is slow: the numbers, what holds them back, where the time goes, and single requests in time.

Needs the extra `report`.
"""

from os import PathLike

from vcpulab.advice.explaining import Explanation
from vcpulab.show import html
from vcpulab.show import path as paths


def write(path: str | PathLike[str], title: str, found: Explanation) -> None:
    """Writes the page.

    Args:
        path: the file; replaced if it is there.
        title: of the page.
        found: what `explain` answered.
    """
    holds = [f"{one.finding.path}: {one.finding.reason}" for one in found.advice]
    parts = [html.section("What is slow", [html.bullets(map(str, found.explained) or ["Nobody is late."])])]
    if holds:
        parts.append(html.section("What holds it back", [html.bullets(holds)]))
    for one in found.explained:
        if one.paths:
            shown = [html.chart(paths.chart(path)) for path in one.paths]
            parts.append(html.section(f"Single requests: {one.address}", [*shown, html.table(paths.beside(one.paths))]))
        parts.append(html.section(f"Where the time goes: {one.address}", [html.table(one.table())]))
    html.write(path, title, parts)
