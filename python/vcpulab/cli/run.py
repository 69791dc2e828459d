"""`vcpulab run`: a scenario, simulated."""

from pathlib import Path
from typing import Annotated

from vcpulab.advice import starvation
from vcpulab.advice.run_document import document
from vcpulab.advice.shared_parts import cautions_as_data
from vcpulab.cli import files, page, terminal
from vcpulab.cli.interrupting import run_or_partial, stop
from vcpulab.cli.options import AnyFormat, Flag, Jobs, OutFolder, Replications, Seed, Words, command
from vcpulab.cli.outputs import Writes, written
from vcpulab.cli.streams import printing_aside
from vcpulab.hypervisors.counters import Tool
from vcpulab.results import jtl as jtl_logs
from vcpulab.results import store
from vcpulab.results.run import run as run_scenario
from vcpulab.scenario import settings
from vcpulab.show.as_json import as_json
from vcpulab.show.csv import csv
from vcpulab.show.folded import View, check


@command(
    "run",
    "vcpulab run web.toml",
    "vcpulab run web.toml --set web.weight=512 --set host.scheduler=credit2",
    "vcpulab run web.toml --replications 3 --format csv",
    "vcpulab run web.toml --out out/web",
    "vcpulab run web.toml --counters esx",
    "vcpulab run web.toml --trace out/trace",
    "vcpulab run web.toml --jtl out/jtl",
    "vcpulab run web.toml --io",
    "vcpulab run web.toml --only 'b*' --sort waited",
)
def run(
    file: Path,
    /,
    *,
    set: Words = (),
    format: AnyFormat = "table",
    out: OutFolder = None,
    seed: Seed = None,
    replications: Replications = None,
    jobs: Jobs = 0,
    trace: Annotated[Path | None, Writes.WHOLE_FOLDER] = None,
    counters: Tool | None = None,
    waits: bool | None = None,
    io: Flag = False,
    all: Flag = False,
    only: str | None = None,
    sort: str | None = None,
    jtl: Annotated[Path | None, Writes.WHOLE_FOLDER] = None,
    jtl_format: jtl_logs.Format = "csv",
    jtl_warmup: bool = True,
) -> None:
    """Run a scenario; print every metric as mean ± 95 % confidence interval over replications.

    Args:
        file: Scenario file.
        set: PATH=VALUE, any number of times, as in `vcpulab whatif`; no value: back to the default.
        out: Also write the scenario as run, all tables and the trace to this directory; a run there is replaced.
        trace: Write every event to this directory while the scenario runs; a trace that is there is replaced.
        counters: Also show the counters of another tool, under its names and in its units.
        waits: Show which domains kept which others waiting, and for how long; by default for up to six domains, where a
            page has room.
        io: Show the traffic of the domains' network interfaces, NICs and disks.
        all: Show each domain, application and pCPU in a row of its own, with every metric; by default, alike ones share
            one if there are many, and metrics are those that there is room for.
        only: Show only domains, with their applications, whose names match, such as 'web*'.
        sort: Show first what has most of this metric, such as waited.
        jtl: Log every request of clients to this directory as JMeter would, CLIENT-0.jtl and so on; logs that are there
            are replaced. Time 0 is 2000-01-01 00:00:00 UTC.
        jtl_format: One of JMeter's formats.
        jtl_warmup: Also log the requests that end during the warm-up, as JMeter would.
    """
    given = files.load(file)
    with printing_aside():
        changed = settings.apply(given, set)
    terminal.warn_left_out(changed.left_out)
    scenario = changed.scenario
    if seed is not None or replications is not None:
        scenario = files.with_run(scenario, seed=seed, replications=replications)
    view = View(all, only, sort)
    check(scenario, view)
    if out is not None:
        store.check_free(out)
    with terminal.progress(f"running {scenario.name}") as progress:
        result, interrupted = run_or_partial(
            run_scenario,
            scenario,
            keep_finished=True,
            jobs=jobs,
            decisions=out is not None,
            trace=trace,
            jtl=None if jtl is None else jtl_logs.Jtl(jtl, jtl_format, jtl_warmup),
            progress=progress,
        )
    for warning in result.warnings:
        terminal.warn(warning)
    if format == "json":
        starved = starvation.rows(starvation.starved(result))
        cautions = cautions_as_data(result.scenario)
        print(as_json({"starved": starved, "interrupted": interrupted, **cautions, **store.describe(result)}))
    elif format == "csv":
        print(csv(result.summary()), end="")
    else:
        if result.not_attributed is not None and waits is not False:
            terminal.say(f"who made whom wait is not known: {result.not_attributed}")
        page.show(document(result, counters, waits, io=io, view=view), all=all)
    if out is not None:
        with written(out):
            result.save(out)
    for log in (trace, jtl):
        if log is not None:
            terminal.say(f"written to {log}")
    stop(interrupted=interrupted)
