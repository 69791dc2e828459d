"""The page that shows a capacity: each SLO's metric against the load. Needs the extra `report`."""

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING

from vcpulab.advice.capacity.growing import Capacity, Point
from vcpulab.advice.capacity.judging import worst
from vcpulab.advice.capacity.words import sentences
from vcpulab.extras import require
from vcpulab.results.addresses import Slo
from vcpulab.show import html
from vcpulab.show.charts import COLOURS, dressed, rows_of
from vcpulab.show.table import Table

if TYPE_CHECKING:
    import altair as alt
else:
    alt = require("altair", "report")

_WORDS = {"holds": "holds", "open": "cannot tell", "broken": "broken"}
_SHAPES = {"holds": "circle", "cannot tell": "diamond", "broken": "cross"}


def write(path: str | PathLike[str], title: str, answer: Capacity) -> None:
    """Writes the page.

    Args:
        path: the file; replaced if it exists.
        title: the name of the scenario.
        answer: the capacity to show.
    """
    drawn, flat = _worth_drawing(answer)
    charts = [html.chart(chart(answer, index)) for index in drawn]
    if flat:
        charts.append(html.paragraphs(f"0 at every load: {', '.join(flat)}."))
    parts = [html.section("Metrics against the load", charts)]
    growth = answer.growth
    rows = [
        [
            growth.format(point.value),
            _WORDS[point.standing],
            *(_nearest(answer, point, slos) for slos in answer.in_short.values()),
            str(point.replications),
        ]
        for point in answer.points
    ]
    tried = Table("", [growth.name, "SLOs", *answer.in_short, "replications"], rows, text_columns=2)
    parts.append(html.section("Loads tried", [html.table(tried)]))
    if answer.saturated is not None:
        stations = [
            [station.name, f"{100 * station.used:.0f} %", station.kind, station.reason]
            for station in answer.saturated.stations
        ]
        full = html.table(Table("", ["station", "used", "kind", "measured"], stations, text_columns=4))
        parts.append(html.section(f"How full everything is at {growth.format(answer.saturated.value)}", [full]))
    html.write(path, f"Capacity: {title}", parts, sentences(answer))


def _nearest(answer: Capacity, point: Point, slos: Sequence[Slo]) -> str:
    """The metric of the worst of some SLOs on alike things at a load."""
    interval = worst([point.judged[answer.slos.index(slo)] for slo in slos]).interval
    return "–" if interval is None else str(interval)


def _worth_drawing(answer: Capacity) -> tuple[list[int], list[str]]:
    """The index of the worst of each group of SLOs on alike things; and the metrics that are 0 at every load."""

    def means(index: int) -> list[float]:
        intervals = (point.judged[index].interval for point in answer.points)
        return [0.0 if interval is None else interval.mean for interval in intervals]

    def excess(index: int) -> float:
        return max(map(answer.slos[index].excess, means(index)), default=0.0)

    drawn, flat = [], []
    for name, slos in answer.in_short.items():
        index = max(map(answer.slos.index, slos), key=excess)
        if any(means(index)):
            drawn.append(index)
        else:
            flat.append(name.partition(" ")[0] if len(slos) == 1 else name)
    return drawn, flat


def chart(answer: Capacity, index: int) -> "alt.TopLevelMixin":
    """A chart of one SLO's metric at every load tried, with its intervals and the bound."""
    slo = answer.slos[index]
    data = [
        {
            "load": point.value,
            "mean": judged.interval.mean,
            "low": slo.address.metric.possible(judged.interval.mean - (judged.interval.half_width or 0)),
            "high": slo.address.metric.possible(judged.interval.mean + (judged.interval.half_width or 0)),
            "slo": slo.bound,
            "standing": _WORDS[judged.standing],
        }
        for point in answer.points
        for judged in [point.judged[index]]
        if judged.interval is not None
    ]
    words = list(_SHAPES)
    base = alt.Chart(rows_of(data)).encode(
        x=alt.X("load:Q", title=answer.growth.name, scale=alt.Scale(type="log", nice=False))
    )
    line = base.mark_line(color="currentColor", opacity=0.4).encode(y=alt.Y("mean:Q", title=slo.address.title))
    whisker = base.mark_rule(color="currentColor").encode(y="low:Q", y2="high:Q")
    point = base.mark_point(filled=True, size=70, opacity=1).encode(
        y="mean:Q",
        shape=alt.Shape(
            "standing:N",
            title="SLO",
            sort=words,
            scale=alt.Scale(domain=words, range=list(_SHAPES.values())),
            legend=alt.Legend(orient="top"),
        ),
        color=alt.Color(
            "standing:N",
            title="SLO",
            sort=words,
            scale=alt.Scale(domain=words, range=[COLOURS[i] for i in (2, 1, 5)]),
        ),
        tooltip=["load:Q", "mean:Q", "low:Q", "high:Q", "standing:N"],
    )
    rule = base.mark_line(strokeDash=[6, 4], color=COLOURS[5]).encode(y="slo:Q")
    points = "; ".join(f"{row['load']:g}: {row['mean']:.3g}, {row['standing']}" for row in data)
    title = f"SLO: {slo}"
    return dressed(
        alt.layer(line, whisker, rule, point).properties(
            width="container",
            height=260,
            title=title,
            description=f"{slo.address.name} against {answer.growth.name}; {title}. {points}.",
        )
    )
