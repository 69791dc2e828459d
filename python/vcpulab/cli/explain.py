"""`vcpulab explain`: the causes of slow clients and applications."""

from pathlib import Path
from typing import Annotated

from vcpulab import _api
from vcpulab.advice.explanation_document import FOLLOWED
from vcpulab.advice.shared_parts import cautions_as_data
from vcpulab.cli import files, outputs, page, terminal
from vcpulab.cli.interrupting import run_or_partial, stop
from vcpulab.cli.options import Flag, Jobs, Report, TableOrJson, TypedFor, command, number
from vcpulab.show.as_json import as_json


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
        print(as_json({**answer.as_data(toolstack), **cautions_as_data(scenario)}))
    else:
        page.show(answer.document(toolstack, full=all, label=str(file)), all=all)
        left = len(answer.explained) - FOLLOWED
        if left > 0:
            terminal.say(f"--slo METRIC shows where the time of the other {left} goes")
    outputs.report(report, f"Why is it slow? {scenario.name}", answer.document(toolstack, full=True, label=str(file)))
    stop(interrupted=interrupted)
