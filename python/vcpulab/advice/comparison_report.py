"""A page on two runs: what changed for whom, by how much, and who ran when.

Needs the extra `report`.
"""

from collections.abc import Sequence
from html import escape
from os import PathLike

from vcpulab.advice.compare import Comparison, gainers_and_payers
from vcpulab.results.run import Run, run
from vcpulab.results.statistics import number
from vcpulab.scenario.scenario import Scenario
from vcpulab.show import report

TIMELINE_MS = 200


def write(
    path: str | PathLike[str],
    title: str,
    labels: tuple[str, str],
    runs: tuple[Run, Run],
    found: Sequence[Comparison],
    *,
    lead: str = "",
) -> None:
    """Writes the page; it runs the beginning of both scenarios once more, for their timelines.

    Args:
        path: the file; replaced if it is there.
        title: of the page.
        labels: what the runs are called; not the same.
        runs: before and after.
        found: what `compare` found.
        lead: HTML under the title.
    """
    from vcpulab.show import charts as plots

    verdicts = "".join(f"<li>{escape(line)}</li>" for line in in_words(found))
    body = report.section("Verdict", [f"<ul>{verdicts}</ul>"])
    judged = [comparison for comparison in found if comparison.address.better and comparison.percent is not None]
    body += report.section("What changed", [report.figure(plots.differences(judged)), _table(found)])
    labelled = dict(zip(labels, runs, strict=True))
    body += report.section(
        "Throughput and CPU time", map(report.figure, (plots.apps(labelled), plots.domains(labelled)))
    )
    body += report.waits(labelled)
    beginnings = {label: _beginning(one.scenario) for label, one in labelled.items() if one.policy is None}
    body += f"<div class=pair>{report.timelines(beginnings)}</div>" + report.details(labelled)
    report.write_page(path, title, lead, body)


def _beginning(scenario: Scenario) -> Run:
    """What is to be seen of a run in a timeline."""
    shown = {"run.duration": f"{min(TIMELINE_MS * 1_000_000, scenario.duration_ns)}ns", "run.replications": 1}
    return run(scenario.change(shown), decisions=True, waits=False)


def _table(found: Sequence[Comparison]) -> str:
    rows = [cells(comparison) for comparison in found if comparison.before.mean or comparison.after.mean]
    headings = [f"{HEADINGS[0]}, {HEADINGS[1]}", *HEADINGS[2:]]
    rows = [[f"{name}, {unit}", *rest] for name, unit, *rest in rows]
    return report.table(headings, rows, "Every metric that they share and that is not 0 in both")


HEADINGS = ("metric", "unit", "before", "after", "difference", "%", "p", "verdict")


def cells(comparison: Comparison) -> list[str]:
    """A comparison as a row of words, under `HEADINGS`."""
    percent, p = comparison.percent, comparison.p
    return [
        comparison.address.name,
        comparison.address.unit,
        str(comparison.before),
        str(comparison.after),
        signed(str(comparison.difference)),
        "–" if percent is None else signed(number(percent)),
        "–" if p is None else ("< 0.001" if p < 0.001 else f"{p:.3f}"),
        {"unclear": "not told apart"}.get(comparison.verdict, comparison.verdict),
    ]


def in_words(found: Sequence[Comparison]) -> list[str]:
    """Who gains what, who pays what, a line for each."""
    gains, pays = gainers_and_payers(found)
    lines = [
        f"{who} {verb}: {', '.join(change(comparison) for comparison in what)}"
        for verb, side in (("gains", gains), ("pays", pays))
        for who, what in side.items()
    ]
    unclear = sum(1 for comparison in found if comparison.address.better and comparison.verdict == "unclear")
    if not lines:
        lines = ["nobody gains or pays as far as can be told"]
    if unclear:
        lines.append(f"not told apart: {unclear} metric{'' if unclear == 1 else 's'} (more replications may)")
    return lines


def change(comparison: Comparison) -> str:
    """How a metric changes, in words."""
    percent = comparison.percent
    if percent is None or abs(percent) > 1000:
        address, before, after = comparison.address, comparison.before.mean, comparison.after.mean
        return f"{address} {number(before)} → {number(after)} {address.unit}"
    return f"{comparison.address.name} {signed(number(percent))} %"


def signed(text: str) -> str:
    """A number with its sign."""
    return text if text.startswith("-") or text in ("0", "0 ± 0") else f"+{text}"
