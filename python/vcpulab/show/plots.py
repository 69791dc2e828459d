"""Charts of runs: `run.plot`, and the same of several labelled runs. All but `tables` need the extra `report`."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

import polars as pl

from vcpulab.results.addresses import app_rows
from vcpulab.results.addresses import apps as applications
from vcpulab.results.metrics import ThingKind, metric
from vcpulab.results.places import labels
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
"""Label of a run to address to published value."""
PUBLISHED = " (published)"
"""What follows the label where something was published."""


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
        """Who made whom wait, as a map."""
        return waits(self._run)

    def wakeups(self) -> "alt.TopLevelMixin":
        """How long vCPUs waited after waking up, by domain and cause."""
        return wakeups(self._run)

    def timeline(
        self, *, replication: int = 0, start_ms: float | None = None, window_ms: float = 200
    ) -> "alt.TopLevelMixin":
        """Who ran when: zoom with the wheel, move by dragging. Needs a run with its decisions.

        Args:
            replication: which one.
            start_ms: start of the window, since the host started; `None`: the end of the warm-up.
            window_ms: length of the window; it ends earlier where there is more in it than a browser can draw.

        Raises:
            ValueError: the run kept no decisions.
        """
        return timeline(self._run, replication=replication, start_ms=start_ms, window_ms=window_ms)

    def tables(self) -> str:
        """The metrics as HTML tables; of many domains alike ones in a row."""
        from vcpulab.show import html

        tables = (html.table(one.table()) for one in things(self._run, View()))
        # A notebook breaks cells at any space.
        return "".join(tables).replace(" ± ", "\u00a0±\u00a0")


def domains(runs: Mapping[str, Run], published: Published | None = None) -> "alt.TopLevelMixin":
    """CPU time by domain, for each of the labelled runs."""
    from vcpulab.show import charts

    frame = _bars(runs, "domain", "gotten", published or {})
    return charts.bars(frame, metric("domain", "gotten").title, "CPU time by domain")


def apps(runs: Mapping[str, Run], published: Published | None = None) -> "alt.TopLevelMixin":
    """Throughput by application, for each of the labelled runs. A service is shown as its clients."""
    from vcpulab.show import charts

    asked = {name for run in runs.values() for name in _services(run)}
    frame = _bars(runs, "app", "throughput", published or {}).filter(~pl.col("group").is_in(asked))
    return charts.bars(frame, metric("app", "throughput").title, "Throughput by application")


def _services(run: Run) -> set[str]:
    """The applications that clients ask, as addresses name them."""
    clients = run.scenario.to_dict().get("client", {}).values()
    services = [(client["server"], client["app"]) for client in clients]
    return {app.name for app in applications(run.scenario) if (app.domain, app.kind) in services}


def _bars(runs: Mapping[str, Run], of: ThingKind, name: str, published: Published) -> pl.DataFrame:
    """One metric of all runs, as `charts.bars` takes it; below each what was published of the same.

    If something was, groups of which nothing was published are left out.
    """
    from vcpulab.show.charts import BARS

    rows: list[tuple[str, str, float, float | None, str, bool]] = []
    row_of = _alike([run.scenario for run in runs.values()], of)
    for label, run in runs.items():
        printed = published.get(label, {})
        those: dict[str, list[Interval]] = {}
        for row in run.summary().filter(of=of, metric=name).drop_nulls("mean").iter_rows(named=True):
            interval = Interval(row["mean"], row["half_width"], row["n"])
            those.setdefault(row_of.get(row["thing"], row["thing"]), []).append(interval)
        for thing, intervals in those.items():
            rows.append((thing, label, *_together(intervals), False))
        for row in run.summary().filter(of=of, metric=name).drop_nulls("mean").iter_rows(named=True):
            value = printed.get(row["address"])
            if value is not None:
                rows.append((row["thing"], label + PUBLISHED, value, None, f"{value:g}", True))
    compared = {group for group, *_, printed in rows if printed}
    shown = [row for row in rows if not compared or row[0] in compared]
    return pl.DataFrame(shown, schema=BARS, orient="row")


def _together(intervals: Sequence[Interval]) -> tuple[float, float | None, str]:
    """Mean, half width and words of one value; of those of alike things their mean, and the least and the most."""
    if len(intervals) == 1:
        return intervals[0].mean, intervals[0].half_width, str(intervals[0])
    means = [one.mean for one in intervals]
    least, most = number(min(means)), number(max(means))
    return fmean(means), None, f"{least if least == most else f'{least} to {most}'} ({len(means)})"


def _alike(scenarios: Sequence[Scenario], of: ThingKind = "domain") -> dict[str, str]:
    """What each domain, or application, is called in a chart: of many, alike ones are drawn as one."""
    alike = rows(*scenarios)
    if sum(map(len, alike)) <= ROWS_MAX:
        return {}
    named = app_rows(scenarios[0], alike) if of == "app" else [[join([one]) for one in row] for row in alike]
    return {name: in_short(row) for row in named for name in row}


def _called(run: Run, frame: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """A frame whose domains are called as in charts."""
    called = _alike([run.scenario])
    return frame.with_columns(pl.col(column).replace(called) for column in columns)


def waits(run: Run, title: str | None = None) -> "alt.TopLevelMixin":
    """A map: who waited, for whom, how much."""
    from vcpulab.show import charts

    shares = _called(run, run.df_wait_shares().with_columns(of=pl.col("domain")), "domain", "by")
    members = pl.col("of").n_unique().over("domain")
    # What a domain waits for all of alike ones; the mean of alike ones that wait.
    frame = (
        shares.with_columns(pl.col("of_elapsed", "of_wait") / members)
        .group_by("domain", "by", maintain_order=True)
        .agg(pl.col("of_elapsed", "of_wait", "half_width").sum())
    )
    return charts.waits(frame, _domains(run), title or f"Who made whom wait: {run.scenario.name}")


def wakeups(run: Run, title: str | None = None) -> "alt.TopLevelMixin":
    """The share of the wake-ups that waited at most some time, a line for each domain and cause."""
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
    # In words, of alike domains the first.
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
        # A browser would choke on more: the window ends where they are used up.
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
