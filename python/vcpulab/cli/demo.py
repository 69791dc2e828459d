"""The demo on the terminal: runs it, prints the comparison, and writes the report."""

from os import PathLike
from pathlib import Path

from vcpulab.cli import terminal, views
from vcpulab.results.run import run as run_scenario
from vcpulab.studies import demo


def run(out: str | PathLike[str], *, jobs: int = 0) -> Path:
    """Runs the experiment, prints the comparison, and writes the report to `out`.

    Returns:
        The report's path.
    """
    with terminal.progress("looking for the load of each row"):
        scenarios = demo.loaded(demo.scenarios(), jobs=jobs)
    runs = {}
    for label, scenario in scenarios.items():
        with terminal.progress(f"running under {label}") as progress:
            runs[label] = run_scenario(scenario, jobs=jobs, decisions=True, progress=progress)
    views.print_table(f"{demo.TITLE} (5 replications)", demo.HEADINGS, demo.comparison(runs))
    path = Path(out) / "report.html"
    demo.write(path, runs)
    return path
