"""The figures of the paper, drawn again."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from vcpulab._extras import require
from vcpulab.results.statistics import Interval
from vcpulab.show.charts import COLORS, dressed, rows_of
from vcpulab_evidence.studies.cells import Cell
from vcpulab_evidence.studies.charts import Chart, Mark, curves, marks, published
from vcpulab_evidence.studies.cherkasova2007 import alert
from vcpulab_evidence.studies.cherkasova2007.cases import (
    ALERT_SCHEDULERS,
    ALERT_TARGETS,
    ALLOWANCES_MS,
    COMPARED_NWC,
    COMPARED_WC,
    FILLED,
    PERIODS_MS,
    RATIOS,
    bvt_kind,
    compared_case,
    reserved_case,
    sedf_kind,
    web_case,
)
from vcpulab_evidence.studies.cherkasova2007.estimates import case_of
from vcpulab_evidence.studies.results import Missing, Results

if TYPE_CHECKING:
    import altair as alt
else:
    alt = require("altair", "report")

SWEEP = "dom0-weight-sweep"
RATIO = "weight of Dom0 over Dom1"


def charts(results: Results, cells: Sequence[Cell]) -> list[Chart]:
    """The figures whose experiments were run."""
    drawn = [
        _sweep(results, cells, "Figure 1: Web server throughput", "web_throughput", "requests/s"),
        _sweep(results, cells, "Figure 2: CPU time of Dom0", "cpu_util@dom0", "% of the CPU"),
        _sweep(results, cells, "Figure 3: CPU time of Dom1", "cpu_util@dom1", "% of the CPU"),
        _released(results, cells),
        _reservations(results, cells),
        _three(results, "4", "work-conserving", COMPARED_WC),
        _three(results, "5", "not work-conserving", COMPARED_NWC),
    ]
    with suppress(Missing):  # ALERT was not run
        drawn += [_errors_by_target(results), _tails(results), _three_minutes(results)]
    return [chart for chart in drawn if chart is not None]


def _sweep(results: Results, cells: Sequence[Cell], title: str, metric: str, unit: str) -> Chart | None:
    data = _by_ratio(results, cells, metric, "xen3.0.2")
    text = "Hollow: Table 1 of the paper, at equal weights. The points of its figure itself do not survive as numbers."
    return _chart(f"{title} by weight of Dom0", data, (RATIO, unit), text, SWEEP)


def _by_ratio(results: Results, cells: Sequence[Cell], metric: str, generation: str) -> list[Mark]:
    printed = _printed(cells, metric)
    data: list[Mark] = []
    for panel, series, kind in _curves(generation):
        cases = {f"{ratio:g}": web_case(kind, ratio) for ratio in RATIOS}
        data += marks(results, panel, series, cases, metric)
        printed_value = printed.get(cases["1"].replace(generation, "xen3.0.2"))
        if printed_value is not None:
            data.append(published(panel, series, "1", printed_value))
    return data


def _printed(cells: Sequence[Cell], metric: str) -> dict[str, float]:
    """Published values by case."""
    means = (cell for cell in cells if cell.metric == metric and cell.stat == "mean")
    return {case_of(cell): cell.number for cell in means if cell.number is not None}


def _curves(generation: str) -> Iterator[tuple[str, str, str]]:
    """The panel, name and setting of each curve."""
    for allowance in reversed(ALLOWANCES_MS):
        yield "a) BVT", f"C = {allowance} ms", bvt_kind(allowance)
    for panel, mode in (("b) SEDF WC", "wc"), ("c) SEDF NWC", "nwc")):
        for period in PERIODS_MS:
            yield panel, f"period = {period} ms", sedf_kind(mode, period, generation)


def _released(results: Results, cells: Sequence[Cell]) -> Chart | None:
    data = [mark for mark in _by_ratio(results, cells, "web_throughput", "xen3.0.3") if "SEDF" in mark.panel]
    text = (
        "The same with SEDF as it was released in Xen 3.0.3: throughput hardly depends on the period where the paper's "
        "does, and falls to nothing where extra time is off. The authors' tree had the older rule (C-I10)."
    )
    return _chart("Figure 1 with released SEDF: Web server throughput", data, (RATIO, "requests/s"), text, SWEEP)


def _reservations(results: Results, cells: Sequence[Cell]) -> Chart | None:
    printed = _printed(cells, "web_throughput")
    data: list[Mark] = []
    for panel, mode in (("SEDF WC", "wc"), ("SEDF NWC", "nwc")):
        full = {str(p): web_case(sedf_kind(mode, p)) for p in PERIODS_MS}
        data += marks(results, panel, "100 % reserved", full, "web_throughput")
        for filled in reversed(FILLED):
            part = {str(p): reserved_case(mode, filled, p) for p in PERIODS_MS}
            data += marks(results, panel, f"{100 * filled:.0f} % reserved", part, "web_throughput")
        data += [published(panel, "100 % reserved", p, printed[case]) for p, case in full.items() if case in printed]
    text = (
        "The paper does not print slices; we assume that they fill the CPU. Against Table 1 (hollow), 80 % is as far "
        "below at 10 ms as 100 % is above, and further off at 1000 ms; with 60 % 10 and 100 ms are alike."
    )
    title = "SEDF at equal weights, by how much of the CPU is reserved"
    return _chart(title, data, ("period, ms", "requests/s"), text, "sedf-reservations")


def _three(results: Results, number: str, mode: str, kinds: tuple[str, ...]) -> Chart | None:
    data: list[Mark] = []
    for panel, workload, metric in (
        ("web server, requests/s", "web", "web_throughput"),
        ("iperf, Mbit/s", "iperf", "throughput"),
        ("disk read, KB/s", "disk", "throughput"),
    ):
        for kind in kinds:
            cases = {f"{ratio:g}": compared_case(workload, kind, ratio) for ratio in RATIOS}
            data += marks(results, panel, kind.split("-")[0], cases, metric)
    if not data:
        return None
    text = (
        "BVT with C = 5 ms, SEDF with a period of 10 ms, Credit as in Xen 3.0.3; the paper does not say which settings "
        "it compares, and its points do not survive as numbers."
    )
    title = f"Figure {number}: three workloads, {mode}"
    return Chart(title, curves(data, RATIO, "", title, same_scale=False), text, "comparison")


def _chart(title: str, data: list[Mark], axes: tuple[str, str], text: str, experiment: str) -> Chart | None:
    if all(mark.published for mark in data):
        return None
    return Chart(title, curves(data, *axes, title), text, experiment)


def _errors_by_target(results: Results) -> Chart:
    rows = []
    for panel, scheduler in (("a) SEDF", alert.SEDF), ("b) Credit", alert.CREDIT)):
        for target in ALERT_TARGETS:
            # Equal errors are drawn as one mark, whose size grows with their number.
            counted = Counter(round(error, 1) for error in alert.errors(results, scheduler, target))
            rows += [{"panel": panel, "target": target, "error": e, "seconds": n} for e, n in sorted(counted.items())]
    title = "Figure 6: allocation error in each second, by target"
    base = alt.Chart(rows_of(rows)).mark_circle(color=COLORS[0], opacity=0.7)
    drawn = [
        base.transform_filter(alt.datum.panel == panel)
        .encode(
            x=alt.X("target:Q", title="target, % of the CPU"),
            y=alt.Y("error:Q", title="error, %"),
            size=alt.Size("seconds:Q", title="seconds", scale=alt.Scale(range=[12, 120])),
            tooltip=["target:Q", "error:Q", "seconds:Q"],
        )
        .properties(width=320, height=220, title=panel)
        for panel in ("a) SEDF", "b) Credit")
    ]
    ranges = "; ".join(
        f"{name}: {ascending[0]:.1f} to {ascending[-1]:.1f} %"
        for name, ascending in (
            ("SEDF", alert.all_errors(results, alert.SEDF)),
            ("Credit", alert.all_errors(results, alert.CREDIT)),
        )
    )
    chart = alt.concat(*drawn, columns=2).properties(title=title, description=f"{title}. {ranges}.")
    text = (
        "Positive: more CPU than the target, as the paper's figure has it (its formula has the opposite sign, C-I4). "
        "Published: SEDF at most +9.52 %, Credit -100 to +370 %. SEDF is exact here because the simulated monitor "
        "reads the counters exactly once a second; the authors' XenMon had to wait for the CPU itself."
    )
    return Chart(title, dressed(chart).to_dict(), text, "alert")


def _tails(results: Results) -> Chart:
    rows = []
    for scheduler in ALERT_SCHEDULERS:
        ascending = alert.all_errors(results, scheduler)
        name = " ".join(scheduler)
        # Shares of all points: too little, from the lowest on; too much, from the highest on.
        sides = ([e for e in ascending if e < 0], [e for e in reversed(ascending) if e > 0])
        for side, errors in zip(("too little", "too much"), sides, strict=True):
            last: dict[float, float] = {}
            for i, error in enumerate(errors, 1):
                last[round(error, 1)] = 100 * i / len(ascending)
            rows += [{"scheduler": name, "side": side, "error": e, "share": share} for e, share in last.items()]
    title = "Figure 7: distribution of errors in each second, both tails"
    names = [" ".join(scheduler) for scheduler in ALERT_SCHEDULERS]
    lines = (
        alt.Chart(rows_of(rows))
        .mark_line(interpolate="step-after")
        .encode(
            x=alt.X("error:Q", title="error, %", scale=alt.Scale(domain=[-100, 400], clamp=True)),
            y=alt.Y("share:Q", title="points at or beyond, % of all"),
            color=alt.Color("scheduler:N", title=None, sort=names, scale=alt.Scale(domain=names, range=COLORS)),
            detail="side:N",
            tooltip=["scheduler:N", "side:N", "error:Q", "share:Q"],
        )
    )
    printed = [{"error": -9.9, "share": 10.0}, {"error": 36.3, "share": 10.0}]
    points = (
        alt.Chart(rows_of(printed))
        .mark_point(filled=False, size=110, strokeWidth=2, shape="diamond", color="currentColor")
        .encode(x="error:Q", y="share:Q", tooltip=["error:Q", "share:Q"])
    )
    tails = "; ".join(alert.tails(results, scheduler) for scheduler in ALERT_SCHEDULERS)
    chart = alt.layer(lines, points).properties(
        width="container", height=260, title=title, description=f"{title}. {tails}."
    )
    text = (
        "Left: share of all points at or below an error; right: at or above. Hollow: Credit as published. Which of "
        "Credit's versions the authors had is open (C-I7): released 3.0.3 errs upwards far more, 3.3.0 to both sides."
    )
    return Chart(title, dressed(chart).to_dict(), text, "alert")


def _three_minutes(results: Results) -> Chart:
    data = [
        Mark("", " ".join(scheduler), float(target), Interval(alert.long_error(results, scheduler, target), None, 1))
        for scheduler in ALERT_SCHEDULERS
        for target in ALERT_TARGETS
    ]
    title = "Figure 8: error over 3 minutes, by target"
    text = (
        "Published: both are close, Credit clearly worse for targets of 1 to 30 %. Of Credit's versions only that of "
        "Xen 3.0.3 errs over 3 minutes: it charges 10 ms to whom a tick finds running, and stops nobody in between."
    )
    return Chart(title, curves(data, "target, % of the CPU", "error, %", title, width=480), text, "alert")
