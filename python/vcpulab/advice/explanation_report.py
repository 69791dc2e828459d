"""A page on a slow host: the metrics, the causes with fixes, where the time goes, and single requests over time.

Needs the extra `report`.
"""

from collections.abc import Iterator
from dataclasses import replace
from os import PathLike

from markupsafe import Markup

from vcpulab.advice.explanation import Explanation
from vcpulab.advice.lint.lint import Advice
from vcpulab.hypervisors import Toolstack
from vcpulab.hypervisors.steps import script
from vcpulab.scenario import settings
from vcpulab.show import html
from vcpulab.show import request_path as paths


def write(path: str | PathLike[str], title: str, answer: Explanation, toolstack: Toolstack | None = None) -> None:
    """Writes the page.

    Args:
        path: the file; an existing one is replaced.
        title: the title of the page.
        answer: the answer of `explain`.
        toolstack: the toolstack of the commands; `None`: that of the scenario's host.
    """
    holds = [paragraph for fix in answer.advice for paragraph in _cause(fix, toolstack)]
    parts = []
    if holds:
        parts.append(html.section("What holds it back, and how to fix it", holds))
    for entry in answer.explained:
        if entry.paths:
            shown = [html.chart(paths.chart(path)) for path in entry.paths]
            parts.append(
                html.section(f"Single requests: {entry.address}", [*shown, html.table(paths.beside(entry.paths))])
            )
        parts.append(
            html.section(f"Where the time goes: {entry.address}", [html.table(replace(entry.table(), title=""))])
        )
    html.write(path, title, parts, [*answer.outlook(), *answer.numbers()] or ["Nobody is late."])


def _cause(fix: Advice, toolstack: Toolstack | None) -> Iterator[Markup]:
    """The cause of a delay, its fix with the effect, and the commands."""
    yield html.paragraphs(f"{fix.finding.path}: {fix.finding.reason}")
    effects = [] if fix.effect is None else [f"with {'; '.join(settings.in_short(fix.finding.changes))}: {fix.does}"]
    yield html.bullets([*effects, *fix.kept(), *([fix.against] if fix.against else [])])
    typed = "\n".join(script(fix.steps(toolstack))) if not fix.against else ""
    if typed:
        yield html.preformatted(typed)
