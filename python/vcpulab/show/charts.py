"""Charts (Altair). Each says the same by position and label as by colour, and reads on light and dark paper."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from vcpulab.extras import require
from vcpulab.results.addresses import apps as applications
from vcpulab.results.statistics import Interval, number
from vcpulab.results.timeline import slices

if TYPE_CHECKING:
    import altair as alt

    from vcpulab.advice.compare import Comparison
    from vcpulab.results.run import Run
else:
    alt = require("altair", "report")

# Okabe and Ito's eight colours, told apart with any colour vision; black is left out: it is lost on dark paper.
COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#999999", "#F0E442"]
_PUBLISHED_COLOUR = "#888888"
_INK = "currentColor"
_BAR_PX = 20
_TIMELINE_SLICES_MAX = 20_000


@dataclass(frozen=True)
class Bar:
    """One bar: `group` is what is measured (a domain, an application), `label` under what (a scheduler)."""

    group: str
    label: str
    interval: Interval
    published: bool = False
    """Drawn hollow: not measured here."""

    @property
    def said(self) -> str:
        """Its value in words; a published one as it was printed."""
        return f"{self.interval.mean:g}" if self.published else str(self.interval)


Published = Mapping[str, Mapping[str, float]]
"""Label to address to published value."""


def domains(runs: Mapping[str, "Run"], published: Published | None = None) -> "alt.TopLevelMixin":
    """CPU time by domain, for each of the labelled runs."""
    data = _bars(runs, "domain", "gotten", published or {})
    return bars(data, "CPU time gotten, % of a pCPU", "CPU time by domain")


def apps(runs: Mapping[str, "Run"], published: Published | None = None) -> "alt.TopLevelMixin":
    """Throughput by application, for each of the labelled runs. A service is shown as its clients."""
    asked = {name for run in runs.values() for name in _services(run)}
    data = [bar for bar in _bars(runs, "app", "throughput", published or {}) if bar.group not in asked]
    return bars(data, "completed per second", "Throughput by application")


def _services(run: "Run") -> set[str]:
    """The applications that clients ask, as addresses name them."""
    clients = run.scenario.to_dict().get("client", {}).values()
    services = [(client["server"], client["app"]) for client in clients]
    return {app.name for app in applications(run.scenario) if (app.domain, app.kind) in services}


def _bars(runs: Mapping[str, "Run"], of: str, metric: str, published: Published) -> list[Bar]:
    measured = [
        Bar(row["thing"], label, Interval(row["mean"], row["half_width"], row["n"]))
        for label, run in runs.items()
        for row in run.summary().filter(of=of, metric=metric).iter_rows(named=True)
        if row["mean"] is not None
    ]
    things = {bar.group for bar in measured}
    printed = [
        Bar(thing, label, Interval(value, None, 1), published=True)
        for label, cells in published.items()
        for address, value in cells.items()
        for thing, _, which in [address.rpartition(".")]
        if which == metric and thing in things
    ]
    return measured + printed


def bars(data: Sequence[Bar], axis: str, title: str) -> "alt.TopLevelMixin":
    """Horizontal bars with their confidence intervals and values."""
    frame = pl.DataFrame(
        {
            "group": [bar.group for bar in data],
            "label": [bar.label for bar in data],
            "mean": [bar.interval.mean for bar in data],
            "low": [bar.interval.mean - (bar.interval.half_width or 0) for bar in data],
            "high": [bar.interval.mean + (bar.interval.half_width or 0) for bar in data],
            "text": [f"{bar.label}: {bar.said}" for bar in data],
            "published": [bar.published for bar in data],
        },
        schema_overrides={"mean": pl.Float64, "low": pl.Float64, "high": pl.Float64},
    )
    measured = _in_order(frame.filter(~pl.col("published"))["label"])
    groups, labels = _in_order(frame["group"]), _in_order(frame["label"])
    base = alt.Chart(_data(frame)).encode(
        y=alt.Y("group:N", title=None, sort=groups, axis=alt.Axis(labelLimit=200, ticks=False)),
        yOffset=alt.YOffset("label:N", sort=labels),
    )
    # The values stand beside the bars: room for them.
    most = frame["high"].max() if len(data) else None
    scale = alt.Scale(domainMin=0, domainMax=1.45 * float(most), nice=False) if most else alt.Undefined  # type: ignore[arg-type]
    colour = alt.Color("label:N", sort=labels, legend=None, scale=alt.Scale(domain=measured, range=COLOURS))
    bar = base.mark_bar(strokeWidth=1.5).encode(
        x=alt.X("mean:Q", title=axis, scale=scale, axis=alt.Axis(tickCount=8)),
        color=alt.condition("datum.published", alt.value(_PUBLISHED_COLOUR), colour),
        stroke=alt.condition("datum.published", alt.value(_PUBLISHED_COLOUR), colour),
        fillOpacity=alt.condition("datum.published", alt.value(0.15), alt.value(0.85)),
        strokeDash=alt.condition("datum.published", alt.value([4, 3]), alt.value([1, 0])),
        tooltip=["group:N", "label:N", "mean:Q", "low:Q", "high:Q"],
    )
    whisker = base.mark_rule(color=_INK, strokeWidth=1.5).encode(x="low:Q", x2="high:Q")
    text = base.mark_text(align="left", baseline="middle", dx=6, color=_INK).encode(x="high:Q", text="text:N")
    said = "; ".join(f"{bar.group}, {bar.label}: {bar.said}" for bar in data)
    chart = alt.layer(bar, whisker, text).properties(
        width="container", height=alt.Step(_BAR_PX), title=title, description=f"{title}, {axis}. {said}."
    )
    return dressed(chart)


def differences(found: Sequence["Comparison"]) -> "alt.TopLevelMixin":
    """Changes in % with their intervals, a line for each metric, grouped by what they are good for."""
    rows = [
        {
            "metric": comparison.address.name,
            "percent": comparison.percent,
            "low": comparison.percent - _percent_half_width(comparison),
            "high": comparison.percent + _percent_half_width(comparison),
            "verdict": {"unclear": "not told apart"}.get(comparison.verdict, comparison.verdict),
        }
        for comparison in found
        if comparison.percent is not None and comparison.verdict != "same"
    ]
    verdicts = ["better", "worse", "not told apart"]
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        y=alt.Y("metric:N", title=None, sort=None, axis=alt.Axis(labelLimit=240)),
        color=alt.Color(
            "verdict:N",
            title=None,
            scale=alt.Scale(domain=verdicts, range=[COLOURS[2], COLOURS[5], COLOURS[6]]),
            legend=alt.Legend(orient="bottom"),
        ),
        tooltip=["metric:N", "percent:Q", "low:Q", "high:Q", "verdict:N"],
    )
    # Where one change dwarfs all others they can still be told from none.
    scale = alt.Scale(type="symlog", constant=10)
    rule = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", title="change, %", scale=scale, axis=alt.Axis(tickCount=8)), x2="high:Q"
    )
    shape = alt.Shape("verdict:N", scale=alt.Scale(domain=verdicts, range=["triangle-up", "triangle-down", "circle"]))
    point = base.mark_point(filled=True, size=70).encode(x="percent:Q", shape=shape)
    zero = alt.Chart(alt.InlineData(values=[{"zero": 0}])).mark_rule(color=_INK, opacity=0.5).encode(x="zero:Q")
    said = "; ".join(f"{row['metric']} {row['percent']:.3g} %, {row['verdict']}" for row in rows)
    title = "Change of each metric"
    chart = alt.layer(zero, rule, point).properties(
        width="container", height=alt.Step(_BAR_PX), title=title, description=f"{title}, in %. {said}."
    )
    return dressed(chart)


def _percent_half_width(comparison: "Comparison") -> float:
    return 100 * (comparison.difference.half_width or 0) / abs(comparison.before.mean)


def allocations(decisions: pl.DataFrame, title: str) -> "alt.TopLevelMixin":
    """What each managed domain was allocated and what it used, interval by interval."""
    long = decisions.select("time_s", "domain", "allocated", "used").unpivot(
        ["allocated", "used"], index=["time_s", "domain"], variable_name="what", value_name="percent"
    )
    domains = _in_order(decisions["domain"])
    said = "; ".join(
        f"{name}: allocated {number(float(group['allocated'].mean() or 0))} % and used "  # type: ignore[arg-type]
        f"{number(float(group['used'].mean() or 0))} % of a pCPU on average"  # type: ignore[arg-type]
        for (name,), group in decisions.group_by(["domain"], maintain_order=True)
    )
    chart = (
        alt.Chart(_data(long))
        .mark_line(interpolate="step-before")
        .encode(
            x=alt.X("time_s:Q", title="time, s"),
            y=alt.Y("percent:Q", title="% of a pCPU", scale=alt.Scale(zero=True)),
            color=alt.Color("domain:N", sort=domains, scale=alt.Scale(domain=domains, range=COLOURS)),
            strokeDash=alt.StrokeDash(
                "what:N",
                scale=alt.Scale(domain=["used", "allocated"], range=[[1, 0], [5, 3]]),
            ),
            tooltip=["domain:N", "what:N", "time_s:Q", "percent:Q"],
        )
        .properties(width="container", height=220, title=title, description=f"{title}. {said}.")
    )
    return dressed(chart)


def waits(run: "Run", title: str | None = None) -> "alt.TopLevelMixin":
    """A map: who waited, for whom, how much."""
    frame = run.df_wait_shares()
    labels = [_share_said(share) for share in frame["of_elapsed"]]
    frame = frame.with_columns(pl.Series("said", labels, pl.String), pl.col("of_wait").round(1))
    title = title or f"Who made whom wait: {run.scenario.name}"
    domains = _in_order(run.df_domains()["domain"])
    base = alt.Chart(_data(frame)).encode(
        x=alt.X("by:N", title="waited for", sort=[*domains, "idle", "hypervisor"], axis=alt.Axis(labelAngle=0)),
        y=alt.Y("domain:N", title="waited", sort=domains),
        tooltip=["domain:N", "by:N", alt.Tooltip("said:N", title="% of elapsed"), "of_wait:Q"],
    )
    map_ = base.mark_rect().encode(
        color=alt.Color("of_elapsed:Q", title="% of elapsed", scale=alt.Scale(scheme="blues", domainMin=0))
    )
    # The upper third of the blues is dark.
    dark = f"datum.of_elapsed > {0.65 * max(frame['of_elapsed'], default=0)}"
    text = base.mark_text().encode(text="said:N", color=alt.condition(dark, alt.value("white"), alt.value("black")))
    said = "; ".join(f"{row['domain']} for {row['by']}: {row['said']} %" for row in frame.iter_rows(named=True))
    chart = alt.layer(map_, text).properties(
        width="container", height=alt.Step(32), title=title, description=f"{title}, % of elapsed. {said}."
    )
    return dressed(chart)


def _share_said(share: float) -> str:
    """A percentage as it fits a cell of a map."""
    if share < 0.01:
        return "< 0.01"
    return f"{share:.{2 if share < 10 else 1}f}"


def wakeups(run: "Run", title: str | None = None) -> "alt.TopLevelMixin":
    """Which share of the wake-ups waited at most how long, a line for each domain and cause."""
    buckets = (
        run.df_wakeup_buckets()
        .group_by("domain", "cause", "below_ns")
        .agg(pl.col("count").sum())
        .sort("domain", "cause", "below_ns")
        .with_columns((100 * pl.col("count").cum_sum() / pl.col("count").sum()).over("domain", "cause").alias("share"))
    )
    frame = buckets.select("domain", "cause", (pl.col("below_ns") / 1e3).alias("wait_us"), "share")
    title = title or f"Wait after waking up: {run.scenario.name}"
    domains = _in_order(run.df_domains()["domain"])
    lines = run.df_wakeup_means()
    said = "; ".join(
        f"{row['domain']}, {row['cause']}: median {number(row['p50_us'])} µs, 99 % within {number(row['p99_us'])} µs"
        for row in lines.iter_rows(named=True)
    )
    chart = (
        alt.Chart(_data(frame))
        .mark_line(interpolate="step-before", point=True)
        .encode(
            x=alt.X("wait_us:Q", title="waited at most, µs", scale=alt.Scale(type="log")),
            y=alt.Y("share:Q", title="wake-ups, %", scale=alt.Scale(domain=[0, 100])),
            color=alt.Color("domain:N", sort=domains, scale=alt.Scale(domain=domains, range=COLOURS)),
            strokeDash=alt.StrokeDash("cause:N"),
            tooltip=["domain:N", "cause:N", "wait_us:Q", "share:Q"],
        )
        .properties(width="container", height=240, title=title, description=f"{title}. {said}.")
    )
    return dressed(chart)


def timeline(
    run: "Run",
    *,
    replication: int = 0,
    start_ms: float | None = None,
    window_ms: float = 200,
    title: str | None = None,
) -> "alt.TopLevelMixin":
    """See `Plots.timeline`."""
    if not run.has_decisions:
        raise ValueError("the run kept no decisions\n  hint: run(scenario, decisions=True)")
    start_ns = run.scenario.warmup_ns if start_ms is None else round(start_ms * 1e6)
    end_ns = min(start_ns + round(window_ms * 1e6), run.scenario.warmup_ns + run.scenario.duration_ns)
    shown = slices(run, replication, start_ns, end_ns).filter(pl.col("domain") >= 0)
    if shown.height > _TIMELINE_SLICES_MAX:
        # A browser would choke on more: the window ends where they are used up.
        end_ns = shown["start_ns"].sort()[_TIMELINE_SLICES_MAX]
        shown = slices(run, replication, start_ns, end_ns).filter(pl.col("domain") >= 0)
    names = run.df_domains().select(pl.col("number").alias("domain"), pl.col("domain").alias("name")).unique()
    frame = (
        shown.join(names, on="domain", how="left")
        .sort("pcpu", "domain", "vcpu", "start_ns")
        .select(
            pl.format("pCPU {}: {} vCPU {}", "pcpu", "name", "vcpu").alias("lane"),
            pl.col("name").alias("domain"),
            (pl.col("start_ns") / 1e6).alias("start_ms"),
            (pl.col("end_ns") / 1e6).alias("end_ms"),
            ((pl.col("end_ns") - pl.col("start_ns")) / 1e3).alias("ran_us"),
            (pl.col("waited_ns") / 1e3).alias("waited_us"),
        )
    )
    title = title or f"Who ran when: {run.scenario.name}"
    domains = _in_order(run.df_domains()["domain"])
    window = f"{start_ns / 1e6:g} to {end_ns / 1e6:g} ms"
    chart = (
        alt.Chart(_data(frame))
        .mark_bar(clip=True, minBandSize=1)
        .encode(
            x=alt.X(
                "start_ms:Q",
                title="time since the host started, ms",
                axis=alt.Axis(tickCount=8),
                scale=alt.Scale(domain=[start_ns / 1e6, end_ns / 1e6], nice=False, zero=False),
            ),
            x2="end_ms:Q",
            y=alt.Y("lane:N", title=None, sort=_in_order(frame["lane"]), axis=alt.Axis(labelLimit=240)),
            color=alt.Color("domain:N", sort=domains, legend=None, scale=alt.Scale(domain=domains, range=COLOURS)),
            tooltip=["lane:N", "start_ms:Q", "end_ms:Q", "ran_us:Q", "waited_us:Q"],
        )
        .add_params(alt.selection_interval(name="zoom", encodings=["x"], bind="scales"))
        .properties(
            width="container",
            height=alt.Step(28),
            title=title,
            description=f"{title}: {frame.height} slices of CPU time from {window}, a lane for each vCPU on each pCPU.",
        )
    )
    return dressed(chart)


def _data(frame: pl.DataFrame) -> "alt.InlineData":
    # In the chart itself: Altair refuses frames of more than 5000 rows.
    return alt.InlineData(values=frame.to_dicts())


def _in_order(names: pl.Series) -> list[Any]:
    return names.unique(maintain_order=True).to_list()


def dressed(chart: "alt.TopLevelMixin") -> "alt.TopLevelMixin":
    """Draws in the colour of the text around it, on whatever stands behind it."""
    ink = {"labelColor": _INK, "titleColor": _INK, "tickColor": _INK, "domainColor": _INK}
    dressed: alt.TopLevelMixin = (
        chart.configure(background="transparent", font="system-ui, sans-serif")
        .configure_axis(**ink, labelFontSize=12, titleFontSize=12, gridColor=_INK, gridOpacity=0.15)
        .configure_view(stroke=None)
        .configure_legend(labelColor=_INK, titleColor=_INK)
        .configure_title(color=_INK, anchor="start", fontSize=14)
    )
    return dressed
