"""The document of a capacity: the answer, the loads tried, and the bottleneck; a page also has charts."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from vcpulab._extras import require
from vcpulab.advice.capacity.judging import worst
from vcpulab.advice.capacity.words import sentences
from vcpulab.results.addresses import Slo
from vcpulab.results.statistics import number
from vcpulab.show.document import Block, Chart, Heading, Lines, Part
from vcpulab.show.table import Table

if TYPE_CHECKING:
    import altair as alt

    from vcpulab.advice.capacity.growing import Capacity, Point

_LOADS_SHOWN_FIRST, _STATIONS_SHOWN_FIRST = 10, 8
"""The number of loads, and of stations, that are shown before other parts grow."""
_STANDINGS = {"holds": "hold", "open": "cannot tell", "broken": "broken"}
_SHAPES = {"hold": "circle", "cannot tell": "diamond", "broken": "cross"}


def document(answer: "Capacity") -> Iterator[Part]:
    """The document of a capacity."""
    yield Part.always(Lines([answer.growth.at(answer.growth.present).name, "", *sentences(answer), ""]))
    yield Part.only_on_page(*_charts(answer))
    # The columns of as many SLOs as fit side by side.
    loads = None
    for most in range(1, len(answer.in_short) + 1):
        loads = _loads(answer, most, loads)
    if loads is not None:
        rows = Part.rows(loads, "load", rounds=(0, _LOADS_SHOWN_FIRST))
        yield replace(rows, page=[replace(loads, headings=_headings(answer, answer.in_short))])
    if answer.saturated is not None:
        stations = [
            [station.name, station.kind, station.reason, number(100 * station.used)]
            for station in answer.saturated.stations
        ]
        title = f"Utilization of each station on the request path, at {answer.growth.format(answer.saturated.value)}"
        table = Table(title, ["station", "kind", "measured", "used, %"], stations, text_columns=3)
        # Sentences are wrapped in a table of text only.
        yield replace(
            Part.rows(table, "station", rounds=(0, _STATIONS_SHOWN_FIRST)), page=[replace(table, text_columns=4)]
        )


def _loads(answer: "Capacity", most: int, narrower: Table | None) -> Table:
    """The table of loads that were tried, with the first `most` SLOs."""
    slos = dict(list(answer.in_short.items())[:most])
    title = "Loads tried"
    if len(slos) < len(answer.in_short):
        title += f", and of {len(answer.in_short)} SLOs {'the one' if most == 1 else f'the {most}'} nearest to breaking"
    headings = _headings(answer, map(_in_lines, slos))
    rows = [
        [
            answer.growth.format(point.value),
            _STANDINGS[point.standing],
            *(_nearest(answer, point, row) for row in slos.values()),
            str(point.replications),
            "–" if point.bottleneck is None else f"{point.bottleneck.name}, {100 * point.bottleneck.used:.0f} %",
        ]
        for point in answer.points
    ]
    return Table(title, headings, rows, text_columns=2, narrower=narrower)


def _headings(answer: "Capacity", slos: Iterable[str]) -> list[str]:
    return [answer.growth.name, "SLOs", *slos, "replications", "nearest to full"]


def _in_lines(slo: str) -> str:
    """An SLO as the heading of a narrow column."""
    return re.sub(r"\.(?=\w+ [<>])", "\n.", slo).replace(", ", ",\n")


def _nearest(answer: "Capacity", point: "Point", slos: Sequence[Slo]) -> str:
    """The metric of the worst of some SLOs on alike things at a load."""
    interval = worst([point.judged[answer.slos.index(slo)] for slo in slos]).interval
    return "–" if interval is None else str(interval)


def _charts(answer: "Capacity") -> Iterator[Block]:
    """A chart of each group of SLOs whose metrics are not 0 at every load."""
    drawn, flat = _worth_drawing(answer)
    yield Heading("Metrics against the load")
    for index in drawn:
        yield Chart(partial(chart, answer, index))
    if flat:
        yield Lines([f"0 at every load: {', '.join(flat)}."])


def _worth_drawing(answer: "Capacity") -> tuple[list[int], list[str]]:
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


def chart(answer: "Capacity", index: int) -> "alt.TopLevelMixin":
    """A chart of one SLO's metric at every load tried, with its intervals and the bound."""
    from vcpulab.show.charts import COLORS, dressed, rows_of

    alt = require("altair", "report")
    slo = answer.slos[index]
    data = [
        {
            "load": point.value,
            "mean": judged.interval.mean,
            "low": slo.address.metric.possible(judged.interval.mean - (judged.interval.half_width or 0)),
            "high": slo.address.metric.possible(judged.interval.mean + (judged.interval.half_width or 0)),
            "slo": slo.bound,
            "standing": _STANDINGS[judged.standing],
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
            scale=alt.Scale(domain=words, range=[COLORS[i] for i in (2, 1, 5)]),
        ),
        tooltip=["load:Q", "mean:Q", "low:Q", "high:Q", "standing:N"],
    )
    rule = base.mark_line(strokeDash=[6, 4], color=COLORS[5]).encode(y="slo:Q")
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
