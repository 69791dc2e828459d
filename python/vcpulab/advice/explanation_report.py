"""A page on why it is slow: the numbers, what holds them back, where the time goes, and single requests in time.

Needs the extra `report`.
"""

from collections.abc import Iterator
from dataclasses import replace
from os import PathLike

from markupsafe import Markup

from vcpulab.advice.explaining import Explanation
from vcpulab.advice.lint.lint import Advice
from vcpulab.hypervisors import Toolstack
from vcpulab.hypervisors.steps import script
from vcpulab.scenario import settings
from vcpulab.show import html
from vcpulab.show import request_path as paths


def write(path: str | PathLike[str], title: str, found: Explanation, toolstack: Toolstack | None = None) -> None:
    """Writes the page.

    Args:
        path: the file; replaced if it is there.
        title: of the page.
        found: what `explain` answered.
        toolstack: whose commands; `None`: those of the scenario's host.
    """
    holds = [paragraph for one in found.advice for paragraph in _cause(one, toolstack)]
    parts = []
    if holds:
        parts.append(html.section("What holds it back, and what mends it", holds))
    for one in found.explained:
        if one.paths:
            shown = [html.chart(paths.chart(path)) for path in one.paths]
            parts.append(html.section(f"Single requests: {one.address}", [*shown, html.table(paths.beside(one.paths))]))
        parts.append(html.section(f"Where the time goes: {one.address}", [html.table(replace(one.table(), title=""))]))
    html.write(path, title, parts, [*found.outlook(), *found.numbers()] or ["Nobody is late."])


def _cause(one: Advice, toolstack: Toolstack | None) -> Iterator[Markup]:
    """What holds somebody back, what mends it and with which effect, and how."""
    yield html.paragraphs(f"{one.finding.path}: {one.finding.reason}")
    said = [] if one.effect is None else [f"with {'; '.join(settings.in_short(one.finding.changes))}: {one.does}"]
    yield html.bullets([*said, *one.kept(), *([one.against] if one.against else [])])
    typed = "\n".join(script(one.steps(toolstack))) if not one.against else ""
    if typed:
        yield html.preformatted(typed)
