"""`vcpulab explain`: why is it slow?"""

import json
from pathlib import Path
from typing import Annotated

from vcpulab import verbs
from vcpulab.cli import files, terminal, views
from vcpulab.cli.interrupting import so_far, stop
from vcpulab.cli.options import Jobs, TableOrJson, command, number
from vcpulab.show.table import Table

TREES = 2
"""Those who are late for one reason look alike: the time of as many is shown."""


@command("explain", "vcpulab explain web.toml", "vcpulab explain web.toml --slo 'web.response_p99 < 50ms'")
def explain(
    file: Path,
    /,
    *,
    slo: str | None = None,
    replications: Annotated[
        int, number("Replications of each simulation, as it is and mended.", 2, 10_000)
    ] = verbs.REPLICATIONS,
    format: TableOrJson = "table",
    jobs: Jobs = 0,
) -> None:
    """Explain what is slow: where its time goes, what holds it back, what mends it.

    Without a metric all who are late are explained: clients whose 99th percentile is above 20 ms and above 20 times
    the CPU time of a request, or who lose more than 5 % of their requests; periodic jobs that miss as many deadlines.

    Args:
        file: Scenario file.
        slo: A metric such as web.response_p99, or an objective such as 'web.response_p99 < 50ms'.
    """
    scenario = files.load(file)
    with terminal.progress(f"explaining {scenario.name}") as progress:
        found, interrupted = so_far(
            verbs.explain, scenario, slo, replications=replications, jobs=jobs, progress=progress
        )
    if format == "json":
        print(json.dumps(found.as_data(), indent=2))
        stop(interrupted=interrupted)
        return
    if not found.explained:
        print(f"{file}: nobody is late (--slo METRIC explains one nevertheless)")
    for one in found.explained:
        print(one)
    if found.advice:
        print("\nWhat holds it back, and what mends it:\n")
        views.show_advice(str(file), found.advice)
    for one in found.explained[:TREES]:
        rows = [["  " * part.depth + part.name, str(part.percent)] for part in one.parts]
        views.show_table(Table(f"Where the time goes: {one.address}", ["part", "% of the time"], rows))
    if len(found.explained) > TREES:
        terminal.say(f"--slo METRIC shows where the time of the other {len(found.explained) - TREES} goes")
    stop(interrupted=interrupted)
