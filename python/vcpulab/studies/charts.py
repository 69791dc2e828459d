"""Charts that studies draw: curves with intervals, published values beside them as hollow marks."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from vcpulab.extras import require
from vcpulab.results.statistics import Interval
from vcpulab.show.charts import CHAR_PX, COLOURS, dressed
from vcpulab.studies.results import Missing, Results

if TYPE_CHECKING:
    import altair as alt
else:
    alt = require("altair", "report")

_INK = "currentColor"


class Chart(NamedTuple):
    """A figure of a paper, drawn again."""

    title: str
    chart: "alt.TopLevelMixin"
    text: str = ""
    """A caption: the effect to see, and what the paper shows of it."""
    experiment: str | None = None
    """The experiment it is made from: for the command that makes it."""


class Mark(NamedTuple):
    """One value in a chart."""

    panel: str
    series: str
    """The name of its curve, which gives it its colour."""
    x: float | str
    """Text: the positions are in the order of the marks."""
    interval: Interval
    published: bool = False
    """Hollow: as the authors printed it."""


def marks(results: Results, panel: str, series: str, cases: Mapping[str, str], metric: str) -> list[Mark]:
    """A curve: a metric of cases by their position; cases that were not run are left out."""
    found = []
    for x, case in cases.items():
        try:
            found.append(Mark(panel, series, x, results.interval(case, metric)))
        except Missing:
            continue
    return found


def published(panel: str, series: str, x: float | str, value: float) -> Mark:
    """A published value."""
    return Mark(panel, series, x, Interval(value, None, 1), published=True)


def curves(
    data: Sequence[Mark], x: str, y: str, title: str, *, same_scale: bool = True, joined: bool = True, width: int = 220
) -> "alt.TopLevelMixin":
    """Panels beside each other, a curve for each series.

    Args:
        data: what to draw.
        x: title of the horizontal axis.
        y: title of the vertical axis.
        title: of it all.
        same_scale: do all panels have the same vertical scale?
        joined: are the marks of a series joined by a line?
        width: of a panel, in pixels.
    """
    panels = list(dict.fromkeys(mark.panel for mark in data))
    series = list(dict.fromkeys(mark.series for mark in data))
    positions: list[Any] = list(dict.fromkeys(mark.x for mark in data))
    names = isinstance(positions[0], str) if positions else True
    crowded = CHAR_PX * max((len(str(position)) + 1 for position in positions), default=0) * len(positions) > width
    level = alt.Axis(labelAngle=-30 if crowded else 0)
    at = alt.X("x:N", title=x, sort=positions, axis=level) if names else alt.X("x:Q", title=x)
    # Below the panels: beside three of them it would be out of sight.
    colour = alt.Color(
        "series:N",
        title=None,
        sort=series,
        scale=alt.Scale(domain=series, range=COLOURS),
        legend=alt.Legend(orient="bottom", labelLimit=300),
    )
    drawn = []
    for panel in panels:
        rows = [_row(mark) for mark in data if mark.panel == panel]
        base = alt.Chart().encode(
            x=at,
            y=alt.Y("mean:Q", title=y if same_scale else f"{panel}, {y}" if y else panel),
            color=colour,
            tooltip=["series:N", "x:N", "mean:Q", "low:Q", "high:Q", "of:N"],
        )
        ours, theirs = base.transform_filter("!datum.published"), base.transform_filter("datum.published")
        layers: list[Any] = [ours.mark_line(strokeWidth=1.5)] if joined else []
        layers += [
            ours.mark_rule(strokeWidth=2).encode(y="low:Q", y2="high:Q"),
            ours.mark_point(filled=True, size=40, opacity=1),
            theirs.mark_point(filled=False, size=110, strokeWidth=2, shape="diamond", opacity=1),
        ]
        drawn.append(
            alt.layer(*layers, data=alt.InlineData(values=rows)).properties(width=width, height=200, title=panel)
        )
    said = "; ".join(f"{mark.panel}, {mark.series}, {mark.x}: {_said(mark)}" for mark in data)
    whole = alt.concat(*drawn, columns=3).resolve_scale(y="shared" if same_scale else "independent", color="shared")
    return dressed(whole.properties(title=title, description=f"{title}: {y} by {x}. {said}."))


def _row(mark: Mark) -> dict[str, object]:
    half = mark.interval.half_width or 0.0
    return {
        "series": mark.series,
        "x": mark.x,
        "mean": mark.interval.mean,
        "low": mark.interval.mean - half,
        "high": mark.interval.mean + half,
        "published": mark.published,
        "of": "published" if mark.published else "simulated",
    }


def _said(mark: Mark) -> str:
    return f"{mark.interval.mean:g} (published)" if mark.published else str(mark.interval)
