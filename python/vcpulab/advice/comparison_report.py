"""A page on two runs: the metrics that changed, for which domain, by how much, and timelines of both.

Needs the extra `report`.
"""

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike

from markupsafe import Markup

from vcpulab.advice.compare import Comparison, frame_of_changes, in_words, seen_by_clients, table_of_differences
from vcpulab.advice.in_short import ROWS_FULL, alike_changes, headline
from vcpulab.advice.in_short import words as words_in_short
from vcpulab.advice.starvation import Starving
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
    comparisons: Sequence[Comparison],
    *,
    lead: Sequence[str] = (),
    steps: Sequence[Step] = (),
) -> None:
    """Writes the page; it runs the beginning of both scenarios once more, for their timelines.

    Args:
        path: the file; an existing one is replaced.
        title: the title of the page.
        labels: names of the runs; they differ.
        runs: before and after.
        comparisons: the answer of `compare`.
        lead: paragraphs under the title.
        steps: the steps on a real host from the first scenario's settings to the second's.
    """
    labelled = dict(zip(labels, runs, strict=True))
    beginnings = {
        label: _beginning(measured.scenario) for label, measured in labelled.items() if measured.scenario.can_run
    }
    summary = headline(comparisons, (runs[0].scenario, runs[1].scenario))
    lead = [*Starving.between(*runs).lines(), f"{summary}.", *lead]
    parts = [
        html.section("Verdict", verdict(runs, labels, comparisons)),
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


def verdict(runs: tuple[Run, Run], labels: tuple[str, str], comparisons: Sequence[Comparison]) -> list[Markup]:
    """The largest changes as a chart and in words, and a folded table of every metric.

    Args:
        runs: before and after.
        labels: names of the runs.
        comparisons: the answer of `compare`.
    """
    from vcpulab.show import charts

    judged = [comparison for comparison in comparisons if comparison.address.better and comparison.percent is not None]
    changed = [
        comparison
        for comparison in comparisons
        if any(side is None or side.mean for side in (comparison.before, comparison.after))
    ]
    title = "Every metric that they share and that is not 0 in both"
    table = replace(table_of_differences(changed, labels), title=title, folded=True)
    scenarios = (runs[0].scenario, runs[1].scenario)
    many = len(judged) > ROWS_FULL
    goals = {address.name for address in seen_by_clients(runs[0])}
    changes = alike_changes(judged, scenarios, goals) if many else frame_of_changes(judged, goals)
    clear = [comparison for comparison in judged if comparison.verdict != "same"]
    words = words_in_short(clear, scenarios) if many else in_words(comparisons)
    drawn = [] if changes.is_empty() else [html.chart(charts.differences(changes))]
    return [*drawn, html.bullets(words), html.table(table)]


def _beginning(scenario: Scenario) -> Run:
    """The part of a run that a timeline shows."""
    shown = {"run.duration": f"{min(TIMELINE_MS * 1_000_000, scenario.duration_ns)}ns", "run.replications": 1}
    return run(scenario.change(shown), decisions=True, waits=False)
