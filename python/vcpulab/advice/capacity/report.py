"""The page that shows a capacity: each SLO's metric against the load. Needs the extra `report`."""

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING

from vcpulab.advice.capacity.growing import Capacity, Point
from vcpulab.advice.capacity.judging import worst
from vcpulab.advice.capacity.words import said
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


def write(path: str | PathLike[str], title: str, found: Capacity) -> None:
    """Writes the page.

    Args:
        path: the file; replaced if it is there.
        title: what was grown.
        found: the answer.
    """
    drawn, flat = _worth_drawing(found)
    charts = [html.chart(chart(found, index)) for index in drawn]
    if flat:
        charts.append(html.paragraphs(f"0 at every load: {', '.join(flat)}."))
    parts = [html.section("Metrics against the load", charts)]
    grows = found.growth
    rows = [
        [
            grows.said(point.value),
            _WORDS[point.standing],
            *(_nearest(found, point, those) for those in found.in_short.values()),
            str(point.replications),
        ]
        for point in found.points
    ]
    tried = Table("", [grows.name, "SLOs", *found.in_short, "replications"], rows, text_columns=2)
    parts.append(html.section("Loads tried", [html.table(tried)]))
    if found.saturated is not None:
        stations = [[one.name, f"{100 * one.used:.0f} %", one.kind, one.why] for one in found.saturated.stations]
        full = html.table(Table("", ["station", "used", "kind", "measured"], stations, text_columns=4))
        parts.append(html.section(f"How full everything is at {grows.said(found.saturated.value)}", [full]))
    html.write(path, f"Capacity: {title}", parts, said(found))


def _nearest(found: Capacity, point: Point, slos: Sequence[Slo]) -> str:
    """Of the SLOs on alike things, what came nearest to one, or furthest beyond it."""
    interval = worst([point.judged[found.slos.index(slo)] for slo in slos]).interval
    return "–" if interval is None else str(interval)


def _worth_drawing(found: Capacity) -> tuple[list[int], list[str]]:
    """Of the SLOs on alike things the one that comes nearest to its bound; and the metrics that never differ from 0."""

    def means(index: int) -> list[float]:
        intervals = (point.judged[index].interval for point in found.points)
        return [0.0 if one is None else one.mean for one in intervals]

    drawn, flat = [], []
    for name, those in found.in_short.items():
        index = max(
            map(found.slos.index, those), key=lambda one: max(map(found.slos[one].excess, means(one)), default=0.0)
        )
        if any(means(index)):
            drawn.append(index)
        else:
            flat.append(name.partition(" ")[0] if len(those) == 1 else name)
    return drawn, flat


def chart(found: Capacity, index: int) -> "alt.TopLevelMixin":
    """The metric of one SLO at every load tried, with its intervals and the bound."""
    slo = found.slos[index]
    data = [
        {
            "load": point.value,
            "mean": one.interval.mean,
            "low": slo.address.metric.possible(one.interval.mean - (one.interval.half_width or 0)),
            "high": slo.address.metric.possible(one.interval.mean + (one.interval.half_width or 0)),
            "slo": slo.bound,
            "standing": _WORDS[one.standing],
        }
        for point in found.points
        for one in [point.judged[index]]
        if one.interval is not None
    ]
    words = list(_SHAPES)
    base = alt.Chart(rows_of(data)).encode(
        x=alt.X("load:Q", title=found.growth.name, scale=alt.Scale(type="log", nice=False))
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
    told = "; ".join(f"{row['load']:g}: {row['mean']:.3g}, {row['standing']}" for row in data)
    title = f"SLO: {slo}"
    return dressed(
        alt.layer(line, whisker, rule, point).properties(
            width="container",
            height=260,
            title=title,
            description=f"{slo.address.name} against {found.growth.name}; {title}. {told}.",
        )
    )
