"""One HTML file that needs nothing else: tables, charts and their data, and the code that draws them.

Needs the extra `report`.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from os import PathLike
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

import polars as pl

from vcpulab import _engine
from vcpulab.extras import require
from vcpulab.results.addresses import apps
from vcpulab.results.metrics import APP, DOMAIN, PCPU, Metric
from vcpulab.results.statistics import Interval

if TYPE_CHECKING:
    import altair as alt

    from vcpulab.results.run import Run

_KINDS = (
    ("domain", "Domains", DOMAIN),
    ("app", "Applications", APP),
    ("pcpu", "pCPUs", PCPU),
)


def write(
    path: str | PathLike[str],
    title: str,
    runs: Mapping[str, "Run"],
    *,
    lead: str = "",
    first: str = "",
    published: Mapping[str, Mapping[str, float]] | None = None,
) -> None:
    """Writes a report on labelled runs.

    Args:
        path: the file; replaced if it is there.
        title: of the page.
        runs: label (such as the scheduler) to run; a timeline is drawn for those that kept their decisions.
        lead: HTML under the title.
        first: HTML before the charts.
        published: label to address to value: drawn beside the runs, marked as published.
    """
    from vcpulab.show import charts as plots

    charts = [plots.apps(runs, published), plots.domains(runs, published)]
    body = first + section("Throughput and CPU time", map(figure, charts))
    body += waits(runs) + timelines(runs) + details(runs)
    write_page(path, title, lead, body)


def waits(runs: Mapping[str, "Run"]) -> str:
    """Who made whom wait, and how long after waking up, for each run in which anybody did."""
    from vcpulab.show import charts as plots

    charts = []
    for label, run in runs.items():
        if not run.df_waits().is_empty():
            charts.append(plots.waits(run, label))
        if not run.df_wakeups().is_empty():
            charts.append(plots.wakeups(run, label))
    if not charts:
        return ""
    hint = (
        "<p>While a vCPU waits, the time is split evenly over the pCPUs it may run on and charged to whoever has them. "
        "Below: which share of the wake-ups had a pCPU within how long, by why the vCPU woke.</p>"
    )
    return section("Who made whom wait", [hint, *map(figure, charts)])


def timelines(runs: Mapping[str, "Run"]) -> str:
    """A zoomable timeline of 200 ms for each run that kept its decisions."""
    from vcpulab.show import charts as plots

    charts = [plots.timeline(run, title=label) for label, run in runs.items() if run.has_decisions]
    if not charts:
        return ""
    hint = (
        "<p>The first 200 ms after the warm-up. Zoom with the wheel, move by dragging, reset with a double click.</p>"
    )
    return section("Who ran when", [hint, *map(figure, charts)])


def details(runs: Mapping[str, "Run"]) -> str:
    """All metrics of each run, and its scenario, folded away."""
    parts = [
        f"<details><summary>{escape(label)}</summary>{summary_tables(run)}"
        f"<pre>{escape(run.scenario.to_toml())}</pre></details>"
        for label, run in runs.items()
    ]
    return section("All metrics and scenarios", parts)


def write_page(path: str | PathLike[str], title: str, lead: str, body: str) -> None:
    """Writes a page in which `figure`s are drawn."""
    vl_convert = require("vl_convert", "report")
    engine = _engine.build_info()
    page = Template(files("vcpulab.show").joinpath("report.html").read_text(encoding="utf-8")).substitute(
        title=escape(title),
        lead=lead,
        body=body,
        engine=escape(f"vcpulab {engine['version']}"),
        library=vl_convert.javascript_bundle().replace("</script", "<\\/script"),
    )
    # Whoever looks finds the old page or the new one, never half of one.
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = target.with_name(f".{target.name}.new")
    scratch.write_text(page, encoding="utf-8")
    scratch.replace(target)


def section(heading: str, parts: Iterable[str]) -> str:
    """Parts under a heading."""
    return f"<section><h2>{escape(heading)}</h2>{''.join(parts)}</section>"


def figure(chart: "alt.TopLevelMixin") -> str:
    """A chart, drawn when the page is opened."""
    spec = chart.to_dict()
    said = escape(spec.get("description", ""), quote=True)
    data = json.dumps(spec, separators=(",", ":")).replace("</", "<\\/")
    return f'<figure aria-label="{said}"><script type="application/json">{data}</script></figure>'


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """A table whose first column names the rows."""
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in headings)
    body = "".join(
        f'<tr><th scope="row">{escape(first)}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in rest)}</tr>'
        for first, *rest in rows
    )
    return (
        f"<div class=scroll><table><caption>{escape(caption)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def summary_tables(run: "Run") -> str:
    """The summary of a run as tables, a row for each thing."""
    return "".join(table(headings, rows, caption) for caption, headings, rows in summary_grid(run))


def summary_grid(run: "Run") -> Iterable[tuple[str, list[str], list[list[str]]]]:
    """Caption, headings and rows for each kind of thing in a summary; things are called as in addresses."""
    kinds = {app.name: app.kind for app in apps(run.scenario)}
    for of, caption, metrics in _KINDS:
        headings, rows = grid_of(run.summary().filter(of=of), of, metrics)
        if of == "app":
            rows = [[f"{name} ({kinds[name]})", *cells] for name, *cells in rows]
        yield caption, headings, rows


def grid_of(summary: pl.DataFrame, heading: str, metrics: Sequence[Metric]) -> tuple[list[str], list[list[str]]]:
    """Headings and rows for a summary of things of one kind."""
    rows = []
    for (name,), values in summary.group_by(["thing"], maintain_order=True):
        cells = [
            "–" if row["mean"] is None else str(Interval(row["mean"], row["half_width"], row["n"]))
            for row in values.iter_rows(named=True)
        ]
        rows.append([str(name), *cells])
    return [heading, *(f"{metric.name.replace('_', ' ')}, {metric.unit}" for metric in metrics)], rows
