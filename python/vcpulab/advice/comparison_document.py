"""The document of two runs: gains, harms and differences; a page also has charts, timelines and every metric."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from vcpulab.advice.compare import Comparison, frame_of_changes, in_words, seen_by_clients, table_of_differences
from vcpulab.advice.in_short import ROWS_FULL, ROWS_MAX, alike_changes, headline, in_short
from vcpulab.advice.in_short import words as words_in_short
from vcpulab.advice.shared_parts import caution_part, commands
from vcpulab.hypervisors.steps import Step
from vcpulab.results.run import Run, run
from vcpulab.scenario import settings
from vcpulab.scenario.scenario import Scenario
from vcpulab.show import report
from vcpulab.show.document import BLANK, Block, Chart, Heading, Lines, Part, SideBySide, Version, count
from vcpulab.show.folded import View, chosen

if TYPE_CHECKING:
    from vcpulab.advice.answers import Differences

Runs = tuple[Run, Run]
TIMELINE_MS = 200
_DIFFERENCES_SOON = 6
"""The number of differences that are shown before other parts grow."""
_COMMANDS_LEAST = 2
"""The fewest commands that are shown: one that takes effect at once, and one after a restart."""


def document(
    answer: "Differences",
    labels: tuple[str, str],
    view: View,
    changes: Mapping[str, Any],
    steps: Sequence[Step],
) -> Iterator[Part]:
    """The document of a comparison; see `WhatIf.document`."""
    runs = (answer.before, answer.after)
    scenarios = (runs[0].scenario, runs[1].scenario)
    summary = [*answer.starving.lines(), headline(answer.comparisons, scenarios)]
    yield Part.always(Lines(summary), Lines([f"set: {line}" for line in settings.in_short(changes)]))
    yield from differences(answer.comparisons, runs, labels, view)
    yield Part.always(Lines(answer.added.lines() if answer.added is not None else ()))
    yield caution_part(*scenarios)
    if steps:
        yield Part.always(Heading("To set it on a real host"))
        yield Part.items(commands(steps, headed=True), "command", rounds=(_COMMANDS_LEAST,))
    yield Part(lambda *_: Version(), page=_on_page(runs, labels))


def differences(
    comparisons: Sequence[Comparison],
    runs: Runs,
    labels: tuple[str, str],
    view: View = View(),
    *,
    heading: bool = True,
    starving: Sequence[str] = (),
    page: Iterable[Block] | None = None,
) -> Iterator[Part]:
    """The parts on the differences of two runs and their meaning.

    Args:
        comparisons: the comparisons of the runs.
        runs: before and after.
        labels: names of the runs.
        view: the things to show on a terminal, and the metric that comes first; `all`: every metric, not only
            improvements, regressions and metrics that clients see.
        heading: whether to show lines on the scenarios.
        starving: lines on starving domains.
        page: the blocks of a page; `None`: the verdict on these comparisons.
    """
    shown = list(comparisons)
    if view.only is not None:
        picked = set(chosen([comparison.address.thing for comparison in shown], runs[0].scenario, view.only))
        shown = [comparison for comparison in shown if comparison.address.thing in picked]
    lines = in_words(shown)
    wanted = {address.name for address in seen_by_clients(runs[0])}
    if not view.all:
        shown = [
            comparison
            for comparison in shown
            if comparison.verdict != "same"
            and (comparison.address.better is not None or comparison.address.metric.name == view.sort)
        ]
    listed = [
        comparison
        for comparison in shown
        if view.all
        or comparison.of_consequence
        or comparison.may_regress
        or comparison.address.name in wanted
        or comparison.address.metric.name == view.sort
    ]
    scenarios = (runs[0].scenario, runs[1].scenario)
    whole = table_of_differences(listed, labels, view.sort)
    # Alike domains fill a page with few rows or with few words.
    many = not view.all and max(len(listed), len(lines)) > ROWS_FULL

    def version(size: int, _width: int) -> Version:
        if size > ROWS_MAX and not many:
            table, words = whole, lines
        else:
            table, words = in_short(shown, scenarios, labels, size, first=view.sort)
        return Version([*([table] if table.rows else []), Lines(words)])

    starving_lines = [Lines(starving), BLANK] if starving else []
    yield Part.always(*(_compared(runs, labels) if heading else []), *starving_lines)
    page = verdict(comparisons, runs, labels) if page is None else page
    yield Part(version, (1, _DIFFERENCES_SOON, ROWS_MAX + (not many)), page=page)


def verdict(comparisons: Sequence[Comparison], runs: Runs, labels: tuple[str, str]) -> Iterator[Block]:
    """The largest changes as a chart and in words, and a folded table of every metric, for a page.

    Args:
        comparisons: the comparisons of the runs.
        runs: before and after.
        labels: names of the runs.
    """
    from vcpulab.show import charts

    judged = [comparison for comparison in comparisons if comparison.address.better and comparison.percent is not None]
    scenarios = (runs[0].scenario, runs[1].scenario)
    many = len(judged) > ROWS_FULL
    goals = {address.name for address in seen_by_clients(runs[0])}
    changes = alike_changes(judged, scenarios, goals) if many else frame_of_changes(judged, goals)
    clear = [comparison for comparison in judged if comparison.verdict != "same"]
    yield Heading("Verdict")
    if not changes.is_empty():
        yield Chart(partial(charts.differences, changes))
    yield Lines(words_in_short(clear, scenarios) if many else in_words(comparisons), begin="- ")
    measured = [
        comparison
        for comparison in comparisons
        if any(side is None or side.mean for side in (comparison.before, comparison.after))
    ]
    title = "Every metric that they share and that is not 0 in both"
    yield replace(table_of_differences(measured, labels), title=title, folded=True)


def _on_page(runs: Runs, labels: tuple[str, str]) -> Iterator[Block]:
    """Charts of both runs, timelines of their beginnings, and all metrics; it runs the beginnings once more."""
    labelled = dict(zip(labels, runs, strict=True))
    yield from report.overview(labelled)
    yield from report.waits(labelled)
    beginnings = {
        label: _beginning(measured.scenario) for label, measured in labelled.items() if measured.scenario.can_run
    }
    yield SideBySide(list(report.timelines(beginnings)))
    yield from report.details(labelled)


def _beginning(scenario: Scenario) -> Run:
    """The part of a run that a timeline shows."""
    shown = {"run.duration": f"{min(TIMELINE_MS * 1_000_000, scenario.duration_ns)}ns", "run.replications": 1}
    return run(scenario.change(shown), decisions=True, waits=False)


def _compared(runs: Runs, labels: tuple[str, str]) -> Iterable[Block]:
    """Lines on the scenarios and the lengths of two runs; equal lines are shown once."""
    hosts = [f"{scenario.name}: {_scheduler(scenario)}" for scenario in (run.scenario for run in runs)]
    same = (
        hosts[:1] if hosts[0] == hosts[1] else [f"{label}: {host}" for label, host in zip(labels, hosts, strict=True)]
    )
    pairs = min(run.scenario.replications for run in runs)
    lengths = list(dict.fromkeys(run.scenario.length_in_words for run in runs))
    how_long = f"{' and '.join(lengths)}, {count(pairs, 'pair')} of replications, seed {runs[0].scenario.seed}"
    return [Lines([*same, how_long]), BLANK]


def _scheduler(scenario: Scenario) -> str:
    return f"{scenario.host.scheduler} {scenario.host.generation}"
