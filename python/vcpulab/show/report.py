"""Reports on runs as pages: charts and tables of each run, and of all runs. Needs the extra `report`."""

from collections.abc import Iterator, Mapping
from functools import partial

from vcpulab.results.run import Run
from vcpulab.show.document import Block, Chart, Folded, Heading, Lines
from vcpulab.show.folded import View, things


def blocks(runs: Mapping[str, Run], published: Mapping[str, Mapping[str, float]] | None = None) -> Iterator[Block]:
    """The report on labeled runs.

    Args:
        runs: runs by label (such as the scheduler); a run that kept its decisions gets a timeline.
        published: published values by address, by the label of the run; drawn below the simulated ones.
    """
    yield from overview(runs, published)
    yield from waits(runs)
    yield from timelines(runs)
    yield from details(runs)


def overview(runs: Mapping[str, Run], published: Mapping[str, Mapping[str, float]] | None = None) -> Iterator[Block]:
    """Throughput and CPU time of all runs."""
    from vcpulab.show import plots

    yield Heading("Throughput and CPU time")
    yield Chart(partial(plots.apps, runs, published))
    yield Chart(partial(plots.domains, runs, published))


def waits(runs: Mapping[str, Run]) -> Iterator[Block]:
    """The causes of waits, and the waits after waking up, for each run in which any vCPU waited."""
    from vcpulab.show import plots

    charts = []
    for label, run in runs.items():
        if not run.df_waits().is_empty():
            charts.append(Chart(partial(plots.waits, run, label)))
        if not run.df_wakeups().is_empty():
            charts.append(Chart(partial(plots.wakeups, run, label)))
    if charts:
        yield Heading("Who made whom wait")
        yield Lines(
            [
                "While a vCPU waits, the time is split evenly over the pCPUs it may run on and charged to what has "
                "them. Below: the share of the wake-ups that had a pCPU within each time, by cause."
            ]
        )
        yield from charts


def timelines(runs: Mapping[str, Run]) -> Iterator[Block]:
    """A zoomable timeline of 200 ms for each run that kept its decisions."""
    from vcpulab.show import plots

    charts = [Chart(partial(plots.timeline, run, title=label)) for label, run in runs.items() if run.has_decisions]
    if charts:
        yield Heading("Who ran when")
        yield Lines(
            ["The first 200 ms after the warm-up. Zoom with the wheel, move by dragging, reset with a double click."]
        )
        yield from charts


def details(runs: Mapping[str, Run]) -> Iterator[Block]:
    """All metrics of each run, and its scenario, folded away."""
    yield Heading("All metrics and scenarios")
    for label, run in runs.items():
        yield Folded(
            label,
            [
                *(kind.table() for kind in things(run, View(all=True))),
                Lines(run.scenario.to_toml().splitlines(), typed=True),
            ],
        )
