"""`vcpulab demo`: runs the demo, prints the comparison, and writes the report."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from vcpulab.cli import page, terminal
from vcpulab.cli.interrupting import each, run_or_partial, stop
from vcpulab.cli.options import All, Jobs, command
from vcpulab.cli.outputs import Writes
from vcpulab.results.run import Run, run
from vcpulab.scenario.scenario import Scenario
from vcpulab.show.document import Part
from vcpulab.show.table import Table
from vcpulab_evidence.studies import demo as experiment


@command("demo", "vcpulab demo --out out/demo")
def demo(
    *,
    out: Annotated[Path, Parameter(name=["--out", "-o"], help="Directory for report.html."), Writes.FOLDER] = Path(
        "out/demo"
    ),
    all: All = False,
    jobs: Jobs = 0,
) -> None:
    """Repeat the web-server experiment of Cherkasova, Gupta and Vahdat 2007 and compare."""
    with terminal.progress("looking for the load of each row"):
        scenarios = experiment.loaded(experiment.scenarios(), jobs=jobs)

    def ran(label: str, scenario: Scenario) -> Run:
        with terminal.progress(f"running under {label}") as progress:
            return run(scenario, jobs=jobs, decisions=True, progress=progress)

    runs, interrupted = run_or_partial(each, ran, scenarios)
    title = f"{experiment.TITLE} (5 replications)"
    table = Table(title, experiment.HEADINGS, experiment.comparison(runs), together=True)
    page.show([Part.rows(table, "result")], all=all)
    path = out / "report.html"
    sys.stdout.flush()
    experiment.write(path, runs)
    print(f"report: {path}")
    stop(interrupted=interrupted)
