"""Charts (Altair) of tidy frames.

Each chart shows the same by position and label as by color, and is readable on light and dark paper. Each has its own
configuration, so that the theme of a notebook does not change it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from vcpulab._engine import verdict_text
from vcpulab._extras import require
from vcpulab.results.metrics import OF_ELAPSED, metric
from vcpulab.results.request_path import KINDS
from vcpulab.results.statistics import number

if TYPE_CHECKING:
    import altair as alt

else:
    alt = require("altair", "report")

# Okabe and Ito's eight colors, distinct for any color vision; without black, which is invisible on dark paper.
COLORS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#999999", "#F0E442"]


def palette(names: Sequence[str]) -> list[str]:
    """A distinct color for each name: first `COLORS`, then further colors around the circle of hues.

    Further colors alternate in lightness, so that neighbors are distinct without their hue.

    Examples:
        >>> len(set(palette([str(number) for number in range(60)])))
        60
    """
    further = (
        f"hsl({round(137.508 * number) % 360}, {(70, 45)[number % 2]}%, {(38, 62, 50)[number % 3]}%)"
        for number in range(max(0, len(names) - len(COLORS)))
    )
    return [*COLORS[: len(names)], *further]


_PUBLISHED_COLOUR = "#888888"
_INK = "currentColor"
_BAR_PX = 20
LABEL_PX = 220
"""Maximum width of names beside a chart."""
LONG_LABEL_PX = alt.expr(f"windowSize()[0] < 600 ? 160 : {1.4 * LABEL_PX}")
"""Maximum width of names with a metric, which are long: less on a telephone."""
_COLUMNS = alt.expr("windowSize()[0] < 600 ? 1 : 4")
"""Number of columns of a legend: fewer on a telephone."""
CHAR_PX = 6.5
"""Mean width of a character of labels and values."""

_TICKS = [-100, -50, -20, -10, 0, 10, 20, 50, *(digit * 10**power for power in range(2, 9) for digit in (1, 2, 5))]
"""Possible labels of the axis of changes in %: on its scale, round numbers are far apart."""

VERDICTS = (verdict_text("improves"), verdict_text("regresses"), verdict_text("unclear"))
"""The verdicts that `differences` draws."""


BARS = {
    "group": pl.String(),
    "label": pl.String(),
    "mean": pl.Float64(),
    "half_width": pl.Float64(),
    "shown": pl.String(),
    "published": pl.Boolean(),
}
"""Columns of the frame of `bars`: the measured thing (a domain, an application), the label of the run (a scheduler),
the mean and half the width of its interval, the value in words, and whether it is published, which is drawn hollow."""


def bars(frame: pl.DataFrame, axis: str, title: str) -> "alt.TopLevelMixin":
    """Horizontal bars with their confidence intervals and values, from a frame with the columns `BARS`."""
    half_width = pl.col("half_width").fill_null(0.0)
    frame = frame.with_columns(
        # No metric of bars can be below 0.
        low=(pl.col("mean") - half_width).clip(lower_bound=0.0),
        high=pl.col("mean") + half_width,
        # A published value is below its label.
        text=pl.format("{}: {}", pl.when("published").then(pl.lit("published")).otherwise("label"), "shown"),
    ).drop("half_width")
    measured = _in_order(frame.filter(~pl.col("published"))["label"])
    groups, labels = _in_order(frame["group"]), _in_order(frame["label"])
    base = alt.Chart(_data(frame)).encode(
        y=alt.Y(
            "group:N",
            title=None,
            sort=groups,
            axis=alt.Axis(labelLimit=LABEL_PX, ticks=False),
            scale=alt.Scale(paddingInner=0.1, paddingOuter=0.05),
        ),
        yOffset=alt.YOffset("label:N", sort=labels),
    )
    # The values are beside the bars: the axis leaves room for them at any width of the page.
    most = max(frame["high"], default=0.0)
    room = CHAR_PX * max(map(len, frame["text"]), default=0)
    end = alt.expr(f"{most} * width / max(width - {room}, 0.25 * width)")
    scale = alt.Scale(domainMin=0, domainMax=end, nice=False) if most else alt.Undefined
    colour = alt.Color("label:N", sort=labels, legend=None, scale=alt.Scale(domain=measured, range=palette(measured)))
    bar = base.mark_bar(strokeWidth=1.5).encode(
        x=alt.X("mean:Q", title=axis, scale=scale, axis=alt.Axis(tickCount=6, orient="top")),
        color=alt.condition("datum.published", alt.value(_PUBLISHED_COLOUR), colour),
        stroke=alt.condition("datum.published", alt.value(_PUBLISHED_COLOUR), colour),
        fillOpacity=alt.condition("datum.published", alt.value(0.15), alt.value(0.85)),
        strokeDash=alt.condition("datum.published", alt.value([4, 3]), alt.value([1, 0])),
        tooltip=["group:N", "label:N", "mean:Q", "low:Q", "high:Q"],
    )
    whisker = base.mark_rule(color=_INK, strokeWidth=1.5, clip=True).encode(x="low:Q", x2="high:Q")
    text = base.mark_text(align="left", baseline="middle", dx=6, color=_INK).encode(x="high:Q", text="text:N")
    values = "; ".join(f"{row['group']}, {row['label']}: {row['shown']}" for row in frame.iter_rows(named=True))
    chart = alt.layer(bar, whisker, text).properties(
        width="container", height=alt.Step(_BAR_PX), title=title, description=f"{title}, {axis}. {values}."
    )
    return dressed(chart)


_DIFFERENCES_MAX = 16
"""Maximum number of changes that are drawn, the largest first; the table has all changes."""


def differences(frame: pl.DataFrame) -> "alt.TopLevelMixin":
    """Changes in % with their intervals, a line for each metric, the largest changes first.

    No interval reaches below -100 %, the loss of the whole value.

    Args:
        frame: columns `metric`, `percent`, `low`, `high`, `verdict` (one of `VERDICTS`), `size`, which orders the
            changes, and `told`, which moves changes before all others.
    """
    clipped = frame.with_columns(pl.col("low", "high").clip(lower_bound=-100.0))
    shown = clipped.sort("told", "size", descending=True, maintain_order=True).head(_DIFFERENCES_MAX)
    rows = shown.drop("told", "size").to_dicts()
    verdicts = list(VERDICTS)
    base = alt.Chart(rows_of(rows)).encode(
        y=alt.Y("metric:N", title=None, sort=None, axis=alt.Axis(labelLimit=LONG_LABEL_PX)),
        color=alt.Color(
            "verdict:N",
            title=None,
            scale=alt.Scale(domain=verdicts, range=[COLORS[2], COLORS[5], COLORS[6]]),
            legend=alt.Legend(orient="top", columns=_COLUMNS),
        ),
        tooltip=["metric:N", "percent:Q", "low:Q", "high:Q", "verdict:N"],
    )
    # On this scale, small changes differ visibly from 0 beside a large one.
    scale = alt.Scale(type="symlog", constant=10, nice=False)
    ends = [shown["low"].min(), shown["high"].max(), 0.0]
    ticks = [tick for tick in _TICKS if min(ends) <= tick <= max(ends)]  # type: ignore[type-var]
    signed = "datum.value == 0 ? '0' : format(datum.value, '+,d')"
    axis = alt.Axis(values=ticks, labelOverlap="greedy", orient="top", labelExpr=signed)
    rule = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", title="change, %", scale=scale, axis=axis), x2="high:Q"
    )
    shape = alt.Shape("verdict:N", scale=alt.Scale(domain=verdicts, range=["triangle-up", "triangle-down", "circle"]))
    point = base.mark_point(filled=True, size=70).encode(x="percent:Q", shape=shape)
    zero = alt.Chart(rows_of([{"zero": 0}])).mark_rule(color=_INK, opacity=0.5).encode(x="zero:Q")
    changes = "; ".join(f"{row['metric']} {row['percent']:.3g} %, {row['verdict']}" for row in rows)
    cut = "" if len(shown) == len(frame) else f": the {len(shown)} largest of {len(frame)}"
    title = f"Change of each metric{cut}"
    chart = alt.layer(zero, rule, point).properties(
        width="container", height=alt.Step(_BAR_PX), title=title, description=f"{title}, in %. {changes}."
    )
    return dressed(chart)


def _by_domain(domains: Sequence[str]) -> "alt.Color":
    """A color for each domain, with a legend above."""
    return alt.Color(
        "domain:N",
        title=None,
        sort=domains,
        scale=alt.Scale(domain=domains, range=palette(domains)),
        legend=alt.Legend(orient="top", columns=2, labelLimit=LABEL_PX),
    )


_DASHES = [[1, 0], [8, 4], [2, 3], [10, 3, 2, 3], [4, 2], [16, 4]]
"""Patterns of dashes that are distinct in a legend."""


def _dashes(orient: Literal["top", "bottom"]) -> "alt.Legend":
    """A legend of dashed lines, long enough to distinguish them."""
    line: dict[str, Any] = {
        "symbolType": "stroke",
        "symbolStrokeColor": _INK,
        "symbolStrokeWidth": 2,
        "symbolSize": 900,
    }
    return alt.Legend(orient=orient, columns=_COLUMNS, **line)


def allocations(decisions: pl.DataFrame, title: str) -> "alt.TopLevelMixin":
    """The allocation and use of each managed domain, interval by interval."""
    long = decisions.select("time_s", "domain", "allocated", "used").unpivot(
        ["allocated", "used"], index=["time_s", "domain"], variable_name="what", value_name="percent"
    )
    domains = _in_order(decisions["domain"])
    means = "; ".join(
        f"{name}: allocated {number(float(group['allocated'].mean() or 0))} % and used "  # type: ignore[arg-type]
        f"{number(float(group['used'].mean() or 0))} % of a pCPU on average"  # type: ignore[arg-type]
        for (name,), group in decisions.group_by(["domain"], maintain_order=True)
    )
    y_title = f"allocated and used, {metric('controller', 'used').unit}"
    chart = (
        alt.Chart(_data(long))
        .mark_line(interpolate="step-before")
        .encode(
            x=alt.X("time_s:Q", title="time, s"),
            y=alt.Y("percent:Q", title=y_title, scale=alt.Scale(zero=True)),
            color=_by_domain(domains),
            strokeDash=alt.StrokeDash(
                "what:N",
                title=None,
                legend=_dashes("top"),
                scale=alt.Scale(domain=["used", "allocated"], range=[[1, 0], [5, 3]]),
            ),
            tooltip=["domain:N", "what:N", "time_s:Q", "percent:Q"],
        )
        .properties(width="container", height=220, title=title, description=f"{title}. {means}.")
    )
    return dressed(chart)


def waits(frame: pl.DataFrame, domains: Sequence[str], title: str) -> "alt.TopLevelMixin":
    """A map of waits: the waiting domains, and the causes of their waits.

    Args:
        frame: columns of `Run.df_wait_shares`.
        domains: the domains in their order.
        title: the title of the chart.
    """
    labels = [_share_text(share) for share in frame["of_elapsed"]]
    frame = frame.with_columns(pl.Series("said", labels, pl.String), pl.col("of_wait").round(1))
    base = alt.Chart(_data(frame)).encode(
        x=alt.X("by:N", title="waited for", sort=[*domains, "idle", "hypervisor"], axis=alt.Axis(labelAngle=-40)),
        y=alt.Y("domain:N", title=None, sort=domains, axis=alt.Axis(labelLimit=LABEL_PX)),
        tooltip=["domain:N", "by:N", alt.Tooltip("said:N", title=OF_ELAPSED.text), "of_wait:Q"],
    )
    map_ = base.mark_rect().encode(
        color=alt.Color(
            "of_elapsed:Q",
            title=OF_ELAPSED.text,
            scale=alt.Scale(scheme="blues", domainMin=0),
            legend=alt.Legend(orient="top", gradientLength=160),
        )
    )
    # The upper third of the blues is dark.
    dark = f"datum.of_elapsed > {0.65 * max(frame['of_elapsed'], default=0)}"
    text = base.mark_text().encode(text="said:N", color=alt.condition(dark, alt.value("white"), alt.value("black")))
    shares = "; ".join(f"{row['domain']} for {row['by']}: {row['said']} %" for row in frame.iter_rows(named=True))
    # Cells have room for their numbers, however narrow the page is.
    chart = alt.layer(map_, text).properties(
        width=alt.Step(56), height=alt.Step(32), title=title, description=f"{title}, {OF_ELAPSED}. {shares}."
    )
    return dressed(chart)


def _share_text(percent: float) -> str:
    """A percentage, short enough for a cell of a map."""
    if percent < 0.01:
        return "< 0.01"
    return f"{percent:.{2 if percent < 10 else 1}f}"


def wakeups(frame: pl.DataFrame, means: pl.DataFrame, domains: Sequence[str], title: str) -> "alt.TopLevelMixin":
    """The cumulative share of wake-ups by wait, a line for each domain and cause.

    Args:
        frame: columns `domain`, `cause`, `wait_us` and `share`, the cumulative share in %.
        means: columns of `Run.df_wakeup_means`.
        domains: the domains in their order.
        title: the title of the chart.
    """
    percentiles = "; ".join(
        f"{row['domain']}, {row['cause']}: median {number(row['p50_us'])} µs, 99 % within {number(row['p99_us'])} µs"
        for row in means.iter_rows(named=True)
    )
    base = alt.Chart(_data(frame)).encode(
        x=alt.X("wait_us:Q", title="waited at most, µs", scale=alt.Scale(type="log")),
        y=alt.Y("share:Q", title="wake-ups, %", scale=alt.Scale(domain=[0, 100])),
        color=_by_domain(domains),
        detail="cause:N",
        tooltip=["domain:N", "cause:N", "wait_us:Q", "share:Q"],
    )
    # Points that belong to the line would have no stroke in its legend.
    line = base.mark_line(interpolate="step-before").encode(
        strokeDash=alt.StrokeDash("cause:N", title=None, scale=alt.Scale(range=_DASHES), legend=_dashes("bottom"))
    )
    chart = alt.layer(line, base.mark_point(filled=True, size=30, opacity=1)).properties(
        width="container", height=240, title=title, description=f"{title}. {percentiles}."
    )
    return dressed(chart)


def timeline(
    frame: pl.DataFrame,
    domains: Sequence[str],
    places: Mapping[int, str],
    window_ms: tuple[float, float],
    title: str,
) -> "alt.TopLevelMixin":
    """Slices of CPU time, a row for each pCPU, in the color of the running domain.

    Args:
        frame: columns `pcpu`, `domain`, `vcpu`, `start_ms`, `end_ms`, `ran_us` and `waited_us`, a row for each slice;
            `domain` is the domain, or the name of its group of alike domains.
        domains: the domains in their order.
        places: names of the rows by pCPU, in the order of the rows; empty: the numbers of the pCPUs.
        window_ms: the window that is shown at first, ms since the host started.
        title: the title of the chart.
    """
    start_ms, end_ms = window_ms
    window = f"{start_ms:g} to {end_ms:g} ms"
    row = alt.Y("pcpu:O", title="pCPU")
    if places:
        frame = frame.with_columns(place=pl.col("pcpu").replace_strict(places, return_dtype=pl.String))
        row = alt.Y("place:N", title=None, sort=list(places.values()), axis=alt.Axis(labelLimit=240))
    chart = (
        alt.Chart(_data(frame))
        .mark_bar(clip=True, minBandSize=1)
        .encode(
            x=alt.X(
                "start_ms:Q",
                title="time since the host started, ms",
                axis=alt.Axis(tickCount=6),
                scale=alt.Scale(domain=[start_ms, end_ms], nice=False, zero=False),
            ),
            x2="end_ms:Q",
            y=row,
            color=_by_domain(domains),
            tooltip=["pcpu:O", "vcpu:N", "start_ms:Q", "end_ms:Q", "ran_us:Q", "waited_us:Q"],
        )
        .add_params(alt.selection_interval(name="zoom", encodings=["x"], bind="scales"))
        .properties(
            width="container",
            height=alt.Step(22),
            title=title,
            description=f"{title}: {frame.height} slices of CPU time from {window}, a row for each pCPU.",
        )
    )
    return dressed(chart)


def legs(frame: pl.DataFrame, title: str, description: str) -> "alt.TopLevelMixin":
    """The states of a request over time, a row for each place.

    Args:
        frame: columns `where`, `kind` (one of `results.request_path.KINDS`), `said`, `begin_ms` and `end_ms`.
        title: the title of the chart.
        description: the chart in words.
    """
    kinds = [kind for kind in KINDS if kind in frame["kind"]]
    colours = [COLORS[KINDS.index(kind)] for kind in kinds]
    chart = (
        alt.Chart(_data(frame))
        .mark_bar(minBandSize=1)
        .encode(
            x=alt.X("begin_ms:Q", title="time since the request was begun, ms", axis=alt.Axis(tickCount=8)),
            x2="end_ms:Q",
            y=alt.Y("where:N", title=None, sort=_in_order(frame["where"]), axis=alt.Axis(labelLimit=240)),
            color=alt.Color(
                "kind:N",
                title=None,
                scale=alt.Scale(domain=kinds, range=colours),
                legend=alt.Legend(orient="bottom", columns=_COLUMNS),
            ),
            tooltip=["where:N", "said:N", "begin_ms:Q", "end_ms:Q"],
        )
        .properties(width="container", height=alt.Step(28), title=title, description=description)
    )
    return dressed(chart)


def rows_of(rows: Iterable[Mapping[str, object]]) -> "alt.InlineData":
    """Rows as the data of a chart, in the chart itself: Altair refuses frames of more than 5000.

    The rows are set last, and as a tuple: Altair would check each row of a list, and copy the list with each step.
    """
    data = alt.InlineData(values=[])
    data.values = tuple(rows)
    return data


def _data(frame: pl.DataFrame) -> "alt.InlineData":
    return rows_of(frame.iter_rows(named=True))


def _in_order(names: pl.Series) -> list[Any]:
    return names.unique(maintain_order=True).to_list()


CONFIG: dict[str, Any] = {
    "background": "transparent",
    "font": "system-ui, sans-serif",
    "axis": {
        **{f"{part}Color": _INK for part in ("label", "title", "tick", "domain", "grid")},
        "gridOpacity": 0.15,
        "labelFontSize": 12,
        "titleFontSize": 12,
    },
    "view": {"stroke": None},
    "legend": {"labelColor": _INK, "titleColor": _INK},
    "title": {"color": _INK, "anchor": "start", "fontSize": 14},
}
"""Vega-Lite's configuration of every chart: in the color of the text around it, on a transparent background."""


def dressed(chart: "alt.TopLevelMixin") -> "alt.TopLevelMixin":
    """A chart with the configuration `CONFIG`."""
    dressed: alt.TopLevelMixin = chart.configure(**CONFIG)
    return dressed
