"""`vcpulab capacity`: the largest load that a host can carry."""

from pathlib import Path

from vcpulab import _api
from vcpulab.cli import files, outputs, page, terminal
from vcpulab.cli.interrupting import run_or_partial, stop
from vcpulab.cli.options import All, Budget, Jobs, Report, Several, Slo, TableOrJson, command
from vcpulab.show.as_json import as_json

DONE, FAILED = 0, 1


@command(
    "capacity",
    "vcpulab capacity web.toml --vary web.rate --highest 800",
    "vcpulab capacity web.toml --vary copies:web --format json",
)
def capacity(
    file: Path,
    /,
    *,
    vary: str,
    slo: Slo = (),
    lowest: float | None = None,
    highest: float | None = None,
    replications: Several = None,
    budget: Budget = 600.0,
    all: All = False,
    report: Report = None,
    format: TableOrJson = "table",
    jobs: Jobs = 0,
) -> int:
    """Find the largest load that keeps objectives, and the bottleneck beyond it.

    Args:
        file: Scenario file.
        vary: The load: a number of the scenario (web.users, web.rate), or copies:NAME, copies of a domain with its
            clients.
        slo: A service-level objective, such as `web.response_p99 < 50ms`; may be given again. Without any: no failed
            requests, and a response p99 of at most 10 times that at the lowest load.
        lowest: The lowest load; 1, or the rate at which a hundred requests come in a replication, if left out.
        highest: The highest load; what the scenario allows if left out.
    """
    scenario = files.load(file)
    with terminal.status(f"varying {vary}") as progress:
        answer, interrupted = run_or_partial(
            _api.capacity,
            scenario,
            vary,
            slo=slo,
            lowest=lowest,
            highest=highest,
            replications=replications,
            seconds=budget,
            jobs=jobs,
            progress=progress,
        )
    if format == "json":
        print(as_json({"interrupted": interrupted, **answer.as_data()}))
    else:
        page.show(answer.document(), all=all)
    outputs.report(report, f"Capacity: {scenario.name}", answer.document())
    stop(interrupted=interrupted)
    return DONE if answer.result.outcome in ("found", "all") else FAILED
