"""Reports on runs as pages: charts and tables of each run, and of all runs. Needs the extra `report`."""

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike

from markupsafe import Markup

from vcpulab.results.run import Run
from vcpulab.show import html
from vcpulab.show.summary import summary


def write(
    path: str | PathLike[str],
    title: str,
    runs: Mapping[str, Run],
    *,
    lead: Sequence[str] = (),
    first: Sequence[Markup] = (),
    published: Mapping[str, Mapping[str, float]] | None = None,
) -> None:
    """Writes a report on labeled runs.

    Args:
        path: the file; an existing file is replaced.
        title: the title of the page.
        runs: runs by label (such as the scheduler); a run that kept its decisions gets a timeline.
        lead: paragraphs under the title.
        first: parts before the charts.
        published: published values by address, by the label of the run; drawn below the simulated ones.
    """
    parts = [*first, overview(runs, published), *waits(runs), *timelines(runs), details(runs)]
    html.write(path, title, parts, lead)


def overview(runs: Mapping[str, Run], published: Mapping[str, Mapping[str, float]] | None = None) -> Markup:
    """Throughput and CPU time of all runs."""
    from vcpulab.show import plots

    charts = [plots.apps(runs, published), plots.domains(runs, published)]
    return html.section("Throughput and CPU time", map(html.chart, charts))


def waits(runs: Mapping[str, Run]) -> Iterator[Markup]:
    """The causes of waits, and the waits after waking up, for each run in which any vCPU waited."""
    from vcpulab.show import plots

    charts = []
    for label, run in runs.items():
        if not run.df_waits().is_empty():
            charts.append(plots.waits(run, label))
        if not run.df_wakeups().is_empty():
            charts.append(plots.wakeups(run, label))
    if charts:
        hint = html.paragraphs(
            "While a vCPU waits, the time is split evenly over the pCPUs it may run on and charged to what has them. "
            "Below: the share of the wake-ups that had a pCPU within each time, by cause."
        )
        yield html.section("Who made whom wait", [hint, *map(html.chart, charts)])


def timelines(runs: Mapping[str, Run]) -> Iterator[Markup]:
    """A zoomable timeline of 200 ms for each run that kept its decisions."""
    from vcpulab.show import plots

    charts = [plots.timeline(run, title=label) for label, run in runs.items() if run.has_decisions]
    if charts:
        hint = html.paragraphs(
            "The first 200 ms after the warm-up. Zoom with the wheel, move by dragging, reset with a double click."
        )
        yield html.section("Who ran when", [hint, *map(html.chart, charts)])


def details(runs: Mapping[str, Run]) -> Markup:
    """All metrics of each run, and its scenario, folded away."""
    parts = [
        html.folded(label, [*map(html.table, summary(run)), html.preformatted(run.scenario.to_toml())])
        for label, run in runs.items()
    ]
    return html.section("All metrics and scenarios", parts)
