"""Charts of runs: `run.plot`, and charts of several labeled runs. All but `tables` need the extra `report`."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

import polars as pl

from vcpulab.results.addresses import app_rows
from vcpulab.results.addresses import apps as applications
from vcpulab.results.metrics import ThingKind, metric
from vcpulab.results.pcpu_groups import labels
from vcpulab.results.run import Run
from vcpulab.results.statistics import Interval, number
from vcpulab.results.timeline import slices
from vcpulab.scenario.alike import ROWS_MAX, rows
from vcpulab.scenario.names import in_short
from vcpulab.scenario.scenario import Scenario, join
from vcpulab.show.folded import View, things

if TYPE_CHECKING:
    import altair as alt

_TIMELINE_SLICES_MAX = 20_000

Published = Mapping[str, Mapping[str, float]]
"""Published values by address, by the label of the run."""
PUBLISHED = " (published)"
"""Suffix of the label of a published value."""


class Plots:
    """The charts of a run."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def domains(self) -> "alt.TopLevelMixin":
        """CPU time by domain."""
        return domains({self._run.scenario.name: self._run})

    def apps(self) -> "alt.TopLevelMixin":
        """Throughput by application; a service is shown as its clients."""
        return apps({self._run.scenario.name: self._run})

    def waits(self) -> "alt.TopLevelMixin":
        """A map of waits: the waiting domains, and the causes of their waits."""
        return waits(self._run)

    def wakeups(self) -> "alt.TopLevelMixin":
        """The waits of vCPUs after waking up, by domain and cause."""
        return wakeups(self._run)

    def timeline(
        self, *, replication: int = 0, start_ms: float | None = None, window_ms: float = 200
    ) -> "alt.TopLevelMixin":
        """The running vCPUs over time: zoom with the wheel, move by dragging. Needs a run with its decisions.

        Args:
            replication: the number of the replication.
            start_ms: start of the window, ms since the host started; `None`: the end of the warm-up.
            window_ms: length of the window; the window ends earlier if it has more slices than a browser can draw.

        Raises:
            ValueError: the run kept no decisions.
        """
        return timeline(self._run, replication=replication, start_ms=start_ms, window_ms=window_ms)

    def tables(self) -> str:
        """The metrics as HTML tables; if there are many domains, alike ones share a row."""
        from vcpulab.show import html

        tables = html.rendered([kind.table() for kind in things(self._run, View())])
        # A notebook breaks cells at any space.
        return "".join(tables).replace(" ± ", "\u00a0±\u00a0")


def domains(runs: Mapping[str, Run], published: Published | None = None) -> "alt.TopLevelMixin":
    """CPU time by domain, for each of the labeled runs."""
    from vcpulab.show import charts

    frame = _bars(runs, "domain", "gotten", published or {})
    return charts.bars(frame, metric("domain", "gotten").title, "CPU time by domain")


def apps(runs: Mapping[str, Run], published: Published | None = None) -> "alt.TopLevelMixin":
    """Throughput by application, for each of the labeled runs. A service is shown as its clients."""
    from vcpulab.show import charts

    services = {name for run in runs.values() for name in _services(run)}
    frame = _bars(runs, "app", "throughput", published or {}).filter(~pl.col("group").is_in(services))
    return charts.bars(frame, metric("app", "throughput").title, "Throughput by application")


def _services(run: Run) -> set[str]:
    """The names of the applications that serve clients, as in addresses."""
    services = [(client.server, client.app) for client in run.scenario.clients.values()]
    return {app.name for app in applications(run.scenario) if (app.domain, app.kind) in services}


def _bars(runs: Mapping[str, Run], kind: ThingKind, name: str, published: Published) -> pl.DataFrame:
    """A metric of all runs for `charts.bars`, with published values below the simulated ones.

    If any value is published, groups without a published value are left out.
    """
    from vcpulab.show.charts import BARS

    rows: list[tuple[str, str, float, float | None, str, bool]] = []
    row_of = _alike([run.scenario for run in runs.values()], kind)
    for label, run in runs.items():
        printed = published.get(label, {})
        of_groups: dict[str, list[Interval]] = {}
        for row in run.summary().filter(of=kind, metric=name).drop_nulls("mean").iter_rows(named=True):
            interval = Interval(row["mean"], row["half_width"], row["n"])
            of_groups.setdefault(row_of.get(row["thing"], row["thing"]), []).append(interval)
        for thing, intervals in of_groups.items():
            rows.append((thing, label, *_together(intervals), False))
        for row in run.summary().filter(of=kind, metric=name).drop_nulls("mean").iter_rows(named=True):
            value = printed.get(row["address"])
            if value is not None:
                rows.append((row["thing"], label + PUBLISHED, value, None, f"{value:g}", True))
    compared = {group for group, *_, printed in rows if printed}
    shown = [row for row in rows if not compared or row[0] in compared]
    return pl.DataFrame(shown, schema=BARS, orient="row")


def _together(intervals: Sequence[Interval]) -> tuple[float, float | None, str]:
    """Mean, half width and text of a value; for alike things the mean, and the least and the most as text."""
    if len(intervals) == 1:
        return intervals[0].mean, intervals[0].half_width, str(intervals[0])
    means = [interval.mean for interval in intervals]
    least, most = number(min(means)), number(max(means))
    return fmean(means), None, f"{least if least == most else f'{least} to {most}'} ({len(means)})"


def _alike(scenarios: Sequence[Scenario], kind: ThingKind = "domain") -> dict[str, str]:
    """The name of each domain or application in a chart: if there are many, alike ones share a name."""
    alike = rows(*scenarios)
    if sum(map(len, alike)) <= ROWS_MAX:
        return {}
    named = app_rows(scenarios[0], alike) if kind == "app" else [[join([domain]) for domain in row] for row in alike]
    return {name: in_short(row) for row in named for name in row}


def _called(run: Run, frame: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """A frame with the names of domains as in charts."""
    called = _alike([run.scenario])
    return frame.with_columns(pl.col(column).replace(called) for column in columns)


def waits(run: Run, title: str | None = None) -> "alt.TopLevelMixin":
    """A map of waits: the waiting domains, and the causes of their waits."""
    from vcpulab.show import charts

    shares = _called(run, run.df_wait_shares().with_columns(of=pl.col("domain")), "domain", "by")
    members = pl.col("of").n_unique().over("domain")
    # The waits for alike domains are summed; the waits of alike domains are averaged.
    frame = (
        shares.with_columns(pl.col("of_elapsed", "of_wait") / members)
        .group_by("domain", "by", maintain_order=True)
        .agg(pl.col("of_elapsed", "of_wait", "half_width").sum())
    )
    return charts.waits(frame, _domains(run), title or f"Who made whom wait: {run.scenario.name}")


def wakeups(run: Run, title: str | None = None) -> "alt.TopLevelMixin":
    """The cumulative share of wake-ups by wait, a line for each domain and cause."""
    from vcpulab.show import charts

    frame = (
        _called(run, run.df_wakeup_buckets(), "domain")
        .group_by("domain", "cause", "below_ns")
        .agg(pl.col("count").sum())
        .sort("domain", "cause", "below_ns")
        .with_columns((100 * pl.col("count").cum_sum() / pl.col("count").sum()).over("domain", "cause").alias("share"))
        .select("domain", "cause", (pl.col("below_ns") / 1e3).alias("wait_us"), "share")
    )
    title = title or f"Wait after waking up: {run.scenario.name}"
    # The text has the first of alike domains.
    means = _called(run, run.df_wakeup_means(), "domain").unique(["domain", "cause"], keep="first", maintain_order=True)
    return charts.wakeups(frame, means, _domains(run), title)


def timeline(
    run: Run,
    *,
    replication: int = 0,
    start_ms: float | None = None,
    window_ms: float = 200,
    title: str | None = None,
) -> "alt.TopLevelMixin":
    """See `Plots.timeline`."""
    from vcpulab.show import charts

    if not run.has_decisions:
        raise ValueError("the run kept no decisions\n  hint: run(scenario, decisions=True)")
    start_ns = run.scenario.warmup_ns if start_ms is None else round(start_ms * 1e6)
    end_ns = min(start_ns + round(window_ms * 1e6), run.scenario.warmup_ns + run.scenario.duration_ns)
    shown = slices(run, replication, start_ns, end_ns).filter(pl.col("domain") >= 0)
    if shown.height > _TIMELINE_SLICES_MAX:
        # A browser is too slow with more slices: the window ends at the maximum.
        end_ns = shown["start_ns"].sort()[_TIMELINE_SLICES_MAX]
        shown = slices(run, replication, start_ns, end_ns).filter(pl.col("domain") >= 0)
    names = run.df_domains().select(pl.col("number").alias("domain"), pl.col("domain").alias("name")).unique()
    frame = (
        shown.join(names, on="domain", how="left")
        .sort("pcpu", "start_ns")
        .select(
            "pcpu",
            pl.col("name").replace(_alike([run.scenario])).alias("domain"),
            pl.format("{} vCPU {}", "name", "vcpu").alias("vcpu"),
            (pl.col("start_ns") / 1e6).alias("start_ms"),
            (pl.col("end_ns") / 1e6).alias("end_ms"),
            ((pl.col("end_ns") - pl.col("start_ns")) / 1e3).alias("ran_us"),
            (pl.col("waited_ns") / 1e3).alias("waited_us"),
        )
    )
    title = title or f"Who ran when: {run.scenario.name}"
    return charts.timeline(frame, _domains(run), labels(run.scenario), (start_ns / 1e6, end_ns / 1e6), title)


def _domains(run: Run) -> list[str]:
    return _called(run, run.df_domains(), "domain")["domain"].unique(maintain_order=True).to_list()
