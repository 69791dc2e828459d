"""`vcpulab explain`: the causes of slow clients and applications."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from vcpulab import _api
from vcpulab.advice.explanation import FOLLOWED, Explained, Explanation
from vcpulab.cli import files, page, terminal, views
from vcpulab.cli.interrupting import run_or_partial, stop
from vcpulab.cli.options import Flag, Jobs, Report, TableOrJson, TypedFor, command, number
from vcpulab.cli.outputs import written
from vcpulab.cli.page import Lines, Part
from vcpulab.hypervisors import Toolstack
from vcpulab.scenario.scenario import Scenario
from vcpulab.scenario.topology import Topology
from vcpulab.show.as_json import as_json
from vcpulab.show.request_path import LINES_MAX, beside, timeline

_FINDINGS = 2
"""The number of findings that are shown before the parts of the time."""
_LINES = 6
"""The number of lines on a request that are shown without `--all`."""


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
        int, number("Replications of each simulation, without and with the fix.", 2, 10_000)
    ] = _api.REPLICATIONS,
    toolstack: TypedFor = None,
    format: TableOrJson = "table",
    report: Report = None,
    jobs: Jobs = 0,
    all: Flag = False,
) -> None:
    """Explain what is slow: where its time goes, what holds it back, how to fix it.

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
    scenario = files.load(file, toolstack)
    with terminal.progress(f"explaining {scenario.name}") as progress:
        answer, interrupted = run_or_partial(
            _api.explain, scenario, slo, replications=replications, jobs=jobs, progress=progress
        )
    if format == "json":
        print(as_json({**answer.as_data(toolstack), **views.cautions_as_data(scenario)}))
    else:
        _show(file, answer, scenario, toolstack, all=all)
    if report is not None:
        from vcpulab.advice import explanation_report

        with written(report):
            explanation_report.write(report, f"Why is it slow? {scenario.name}", answer, toolstack)
    stop(interrupted=interrupted)


def _show(file: Path, answer: Explanation, scenario: Scenario, toolstack: Toolstack | None, *, all: bool) -> None:
    """Prints the explanation: fixes, the parts of the time, and the slowest requests."""
    nobody = [] if answer.explained else [f"{file}: nobody is late (--slo METRIC explains one nevertheless)"]
    topology = Topology.from_host(scenario.to_dict()["host"])
    host = [] if topology.is_flat else [f"host: {topology}"]
    parts = [page.always(Lines([*nobody, *answer.outlook(), *answer.numbers(), *host])), views.cautions(scenario)]
    if answer.advice:
        parts.append(page.always(Lines(["", "What holds it back, and how to fix it:", ""])))
        findings = [views.advice(str(file), advice, toolstack, all=all) for advice in answer.advice]
        parts.append(page.items(findings, "finding", least=1, soon=_FINDINGS))
    for place, entry in enumerate(answer.explained[:FOLLOWED]):
        parts += _where_time_goes(entry, all=all, secondary=place > 0)
    page.show(parts, all=all)
    if len(answer.explained) > FOLLOWED:
        terminal.say(f"--slo METRIC shows where the time of the other {len(answer.explained) - FOLLOWED} goes")


def _where_time_goes(entry: Explained, *, all: bool, secondary: bool) -> Iterator[Part]:
    """The parts of the time of a metric, and its followed requests; secondary metrics come after fixes."""
    order = {"soon": 0, "rank": 1} if secondary else {}
    yield page.rows(entry.table(), f"part of the time of {entry.address}", **order)
    if entry.paths:
        pieces = [timeline(entry.paths[0], LINES_MAX if all else _LINES), *([beside(entry.paths)] if all else [])]
        detail = {"requests from begin to answer": 0}
        versions = [page.Version(left_out=detail), page.Version(pieces, {} if all else detail)]
        yield page.alternatives(*versions, **order)
    if entry.not_followed and (all or not secondary):
        note = Lines([f"{entry.address}: {entry.not_followed}"])
        yield page.alternatives(page.Version(), page.Version([note]), **order)
