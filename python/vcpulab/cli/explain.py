"""`vcpulab explain`: why is it slow?"""

from pathlib import Path
from typing import Annotated

from vcpulab import verbs
from vcpulab.advice.explaining import FOLLOWED, Explanation
from vcpulab.cli import files, terminal, views
from vcpulab.cli.interrupting import so_far, stop
from vcpulab.cli.options import Flag, Jobs, Report, TableOrJson, TypedFor, command, number
from vcpulab.cli.outputs import written
from vcpulab.hypervisors import Toolstack
from vcpulab.show.as_json import as_json
from vcpulab.show.path import LINES_MAX, beside, timeline

_FINDINGS = 2
"""So many findings are shown unless all are asked for ..."""
_LINES = 6
"""... and a request in so many lines, if there is one finding at most."""


@command(
    "explain",
    "vcpulab explain web.toml",
    "vcpulab explain web.toml --slo 'web.response_p99 < 50ms'",
    "vcpulab explain web.toml --slo 'w*.response_p99 < 50ms'",
)
def explain(
    file: Path,
    /,
    *,
    slo: str | None = None,
    replications: Annotated[
        int, number("Replications of each simulation, as it is and mended.", 2, 10_000)
    ] = verbs.REPLICATIONS,
    toolstack: TypedFor = None,
    format: TableOrJson = "table",
    report: Report = None,
    jobs: Jobs = 0,
    all: Flag = False,
) -> None:
    """Explain what is slow: where its time goes, what holds it back, what mends it.

    Without a metric all who are late are explained: clients whose 99th percentile is above 20 ms and above 20 times
    the CPU time of a request, or who lose more than 5 % of their requests; periodic jobs that miss as many deadlines.

    Of a percentile of a client's response times the request at it is followed from its begin to its answer, and the
    median one beside it: where it was when, what it waited for, and who ran meanwhile.

    Args:
        file: Scenario file.
        slo: A metric such as web.response_p99, or an objective such as 'web.response_p99 < 50ms', or that of every one
            that matches 'web*.response_p99'.
        all: Show every finding, requests in more detail, and the median one beside; by default, what fits on a page.
    """
    scenario = files.load(file)
    with terminal.progress(f"explaining {scenario.name}") as progress:
        found, interrupted = so_far(
            verbs.explain, scenario, slo, replications=replications, jobs=jobs, progress=progress
        )
    if format == "json":
        print(as_json(found.as_data(toolstack)))
    else:
        _show(file, found, toolstack, all=all)
    if report is not None:
        from vcpulab.advice import explanation_report

        with written(report):
            explanation_report.write(report, f"Why is it slow? {scenario.name}", found, toolstack)
    stop(interrupted=interrupted)


def _show(file: Path, found: Explanation, toolstack: Toolstack | None, *, all: bool) -> None:
    """Prints why those who are late are so: the first of them with the request that took longest, unless all is."""
    if not found.explained:
        print(f"{file}: nobody is late (--slo METRIC explains one nevertheless)")
    views.show_lines([*found.outlook(), *found.numbers()])
    advice = found.advice if all else found.advice[:_FINDINGS]
    if advice:
        print("\nWhat holds it back, and what mends it:\n")
        views.show_advice(str(file), advice, toolstack)
    for one in found.explained[: FOLLOWED if all else 1]:
        views.show_table(one.table())
        if one.paths and (all or len(advice) < _FINDINGS):
            views.show_table(timeline(one.paths[0], LINES_MAX if all else _LINES))
        if one.paths and all:
            views.show_table(beside(one.paths))
        if one.not_followed:
            print(f"{one.address}: {one.not_followed}")
    if not all and (more := _more(found)):
        print(f"{' and '.join(more)}: --all")
    if len(found.explained) > FOLLOWED:
        terminal.say(f"--slo METRIC shows where the time of the other {len(found.explained) - FOLLOWED} goes")


def _more(found: Explanation) -> list[str]:
    """What there is no room for on a page."""
    findings = len(found.advice) - _FINDINGS
    more = [f"{findings} more finding{'s' if findings > 1 else ''}"] if findings > 0 else []
    if found.explained[1:FOLLOWED]:
        more.append(f"where the time of {found.explained[1].address} goes")
    if any(one.paths for one in found.explained):
        more.append("requests from begin to answer")
    return more
