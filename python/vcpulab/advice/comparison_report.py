"""A page on two runs: the metrics that changed, for which domain, by how much, and who ran when.

Needs the extra `report`.
"""

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike

from markupsafe import Markup

from vcpulab.advice.compare import Comparison, frame_of_changes, in_words, seen_by_clients, table_of_differences
from vcpulab.advice.in_short import ROWS_FULL, alike_changes, headline
from vcpulab.advice.in_short import words as words_in_short
from vcpulab.advice.starving import Starving
from vcpulab.hypervisors.steps import Step, script
from vcpulab.results.run import Run, run
from vcpulab.scenario.scenario import Scenario
from vcpulab.show import html, report

TIMELINE_MS = 200


def write(
    path: str | PathLike[str],
    title: str,
    labels: tuple[str, str],
    runs: tuple[Run, Run],
    found: Sequence[Comparison],
    *,
    lead: Sequence[str] = (),
    steps: Sequence[Step] = (),
) -> None:
    """Writes the page; it runs the beginning of both scenarios once more, for their timelines.

    Args:
        path: the file; replaced if it is there.
        title: of the page.
        labels: what the runs are called; not the same.
        runs: before and after.
        found: what `compare` found.
        lead: paragraphs under the title.
        steps: how to make the second of the first on a real host.
    """
    labelled = dict(zip(labels, runs, strict=True))
    beginnings = {label: _beginning(one.scenario) for label, one in labelled.items() if one.scenario.can_run}
    said = headline(found, (runs[0].scenario, runs[1].scenario))
    lead = [*Starving.between(*runs).lines(), f"{said}.", *lead]
    parts = [
        html.section("Verdict", verdict(runs, labels, found)),
        *(
            [html.section("To set it on a real host", [html.preformatted("\n".join(script(steps, headed=True)))])]
            if steps
            else []
        ),
        report.overview(labelled),
        *report.waits(labelled),
        html.side_by_side(report.timelines(beginnings)),
        report.details(labelled),
    ]
    html.write(path, title, parts, lead)


def verdict(runs: tuple[Run, Run], labels: tuple[str, str], found: Sequence[Comparison]) -> list[Markup]:
    """What changed most, as a chart and in words, and every metric, folded away.

    Args:
        runs: before and after.
        labels: what they are called.
        found: what `compare` found.
    """
    from vcpulab.show import charts

    judged = [one for one in found if one.address.better and one.percent is not None]
    changed = [one for one in found if any(side is None or side.mean for side in (one.before, one.after))]
    title = "Every metric that they share and that is not 0 in both"
    table = replace(table_of_differences(changed, labels), title=title, folded=True)
    scenarios = (runs[0].scenario, runs[1].scenario)
    many = len(judged) > ROWS_FULL
    goals = {address.name for address in seen_by_clients(runs[0])}
    changes = alike_changes(judged, scenarios, goals) if many else frame_of_changes(judged, goals)
    clear = [one for one in judged if one.verdict != "same"]
    words = words_in_short(clear, scenarios) if many else in_words(found)
    drawn = [] if changes.is_empty() else [html.chart(charts.differences(changes))]
    return [*drawn, html.bullets(words), html.table(table)]


def _beginning(scenario: Scenario) -> Run:
    """The part of a run that a timeline shows."""
    shown = {"run.duration": f"{min(TIMELINE_MS * 1_000_000, scenario.duration_ns)}ns", "run.replications": 1}
    return run(scenario.change(shown), decisions=True, waits=False)
