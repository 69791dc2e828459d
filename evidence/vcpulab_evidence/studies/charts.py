"""Charts of studies: curves with intervals, and published values as hollow marks."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from vcpulab._extras import require
from vcpulab.results.statistics import Interval
from vcpulab.show.charts import CHAR_PX, CONFIG, palette
from vcpulab_evidence.studies.results import Missing, Results

if TYPE_CHECKING:
    import altair as alt
else:
    alt = require("altair", "report")


class Chart(NamedTuple):
    """A figure of a paper, drawn again."""

    title: str
    spec: dict[str, Any]
    """The chart in Vega-Lite."""
    text: str = ""
    """A caption: the effect in the chart, and in the paper."""
    experiment: str | None = None
    """The experiment, for the command that makes the chart."""


class Mark(NamedTuple):
    """A value in a chart."""

    panel: str
    series: str
    """The name of the curve, which determines the color."""
    x: float | str
    """The horizontal position; texts are in the order of the marks."""
    interval: Interval
    published: bool = False
    """`True`: a hollow mark, as the authors printed the value."""


def marks(results: Results, panel: str, series: str, cases: Mapping[str, str], metric: str) -> list[Mark]:
    """A curve: a metric of cases by their position; cases that were not run are left out."""
    curve = []
    for x, case in cases.items():
        try:
            curve.append(Mark(panel, series, x, results.interval(case, metric)))
        except Missing:
            continue
    return curve


def published(panel: str, series: str, x: float | str, value: float) -> Mark:
    """A published value."""
    return Mark(panel, series, x, Interval(value, None, 1), published=True)


def curves(
    data: Sequence[Mark], x: str, y: str, title: str, *, same_scale: bool = True, joined: bool = True, width: int = 220
) -> dict[str, Any]:
    """Panels side by side with a curve for each series, in Vega-Lite.

    The specification is written directly, as Altair takes half a second for the panels of a figure.

    Args:
        data: the marks to draw.
        x: title of the horizontal axis.
        y: title of the vertical axis.
        title: title of the figure.
        same_scale: all panels have the same vertical scale.
        joined: a line joins the marks of a series.
        width: width of a panel, in pixels.
    """
    panels = list(dict.fromkeys(mark.panel for mark in data))
    series = list(dict.fromkeys(mark.series for mark in data))
    positions: list[Any] = list(dict.fromkeys(mark.x for mark in data))
    at: dict[str, Any] = {"field": "x", "title": x, "type": "quantitative"}
    if not positions or isinstance(positions[0], str):
        crowded = CHAR_PX * max((len(str(position)) + 1 for position in positions), default=0) * len(positions) > width
        at |= {"type": "nominal", "sort": positions, "axis": {"labelAngle": -30 if crowded else 0}}
    colour = {
        "field": "series",
        "type": "nominal",
        "title": None,
        "sort": series,
        "scale": {"domain": series, "range": palette(series)},
        # Below the panels: beside three of them it would be out of sight.
        "legend": {"orient": "bottom", "labelLimit": 300},
    }
    # Where nothing measured is below 0, no interval is.
    least = 0.0 if all(mark.interval.mean >= 0 for mark in data) else -math.inf
    drawn = []
    for panel in panels:
        # What stands above the panel need not stand beside it, too.
        heading = None if panel in (y, title) else panel
        drawn.append(
            {
                "title": heading,
                "width": width,
                "height": 200,
                "data": {"values": [_row(mark, least) for mark in data if mark.panel == panel]},
                "encoding": {"x": at, "color": colour, "tooltip": _TOOLTIP},
                "layer": list(_layers(y if heading or y else panel, joined)),
            }
        )
    values = "; ".join(f"{mark.panel}, {mark.series}, {mark.x}: {_value_text(mark)}" for mark in data)
    return {
        "$schema": alt.SCHEMA_URL,
        "description": f"{title}: {y} by {x}. {values}.",
        "config": CONFIG,
        "columns": 3,
        "concat": drawn,
        "resolve": {"scale": {"y": "shared" if same_scale else "independent", "color": "shared"}},
    }


_TOOLTIP = [
    {"field": name, "type": "nominal" if name in ("series", "x", "of") else "quantitative"}
    for name in ("series", "x", "mean", "low", "high", "of")
]


def _layers(title: str, joined: bool) -> Iterator[dict[str, Any]]:
    """The layers of a panel with a title of its vertical axis: lines, intervals, simulated and published values."""
    mean, low = ({"field": name, "type": "quantitative", "title": title} for name in ("mean", "low"))
    simulated, printed = {"filter": "!datum.published"}, {"filter": "datum.published"}
    if joined:
        yield {"transform": [simulated], "mark": {"type": "line", "strokeWidth": 1.5}, "encoding": {"y": mean}}
    interval = {"y": low, "y2": {"field": "high", "title": title}}
    yield {"transform": [simulated], "mark": {"type": "rule", "strokeWidth": 2}, "encoding": interval}
    point = {"type": "point", "filled": True, "size": 40, "opacity": 1}
    yield {"transform": [simulated], "mark": point, "encoding": {"y": mean}}
    hollow = {"type": "point", "filled": False, "size": 110, "strokeWidth": 2, "shape": "diamond", "opacity": 1}
    yield {"transform": [printed], "mark": hollow, "encoding": {"y": mean}}


def _row(mark: Mark, least: float) -> dict[str, object]:
    half = mark.interval.half_width or 0.0
    return {
        "series": mark.series,
        "x": mark.x,
        "mean": mark.interval.mean,
        "low": max(mark.interval.mean - half, least),
        "high": mark.interval.mean + half,
        "published": mark.published,
        "of": "published" if mark.published else "simulated",
    }


def _value_text(mark: Mark) -> str:
    return f"{mark.interval.mean:g} (published)" if mark.published else str(mark.interval)
