"""Means of a run over its replications: of every metric, of waits by cause, of waits after wake-ups."""

from collections.abc import Mapping

import polars as pl

from vcpulab.results.metrics import METRICS, ThingKind, summarise
from vcpulab.results.statistics import Interval

VALUES = pl.Schema(
    {
        "replication": pl.UInt32,
        "address": pl.String,
        "of": pl.String,
        "thing": pl.String,
        "metric": pl.String,
        "unit": pl.String,
        "value": pl.Float64,
    }
)
"""The columns of `Run.metrics`."""

_WAIT_SHARES = {"domain": pl.String, "by": pl.String} | dict.fromkeys(
    ("of_elapsed", "of_wait", "half_width"), pl.Float64
)


def long(wide: pl.DataFrame, kind: ThingKind) -> pl.DataFrame:
    """The metrics of one kind of thing, a row for each value; columns as in `Run.metrics`."""
    units = {metric.name: metric.unit.text for metric in METRICS[kind]}
    rows = wide.unpivot(list(units), index=["replication", "thing"], variable_name="metric", value_name="value")
    unit = pl.col("metric").replace_strict(units, return_dtype=pl.String)
    address = pl.format("{}.{}", "thing", "metric")
    return rows.with_columns(of=pl.lit(kind), unit=unit, address=address).select(VALUES.names()).cast(VALUES)


def means(wide: Mapping[ThingKind, pl.DataFrame]) -> pl.DataFrame:
    """The mean of every metric of every thing over the replications; columns as in `Run.summary`."""
    summary = pl.concat(summarise(rows, kind, METRICS[kind]) for kind, rows in wide.items())
    # Most domains have few devices.
    return summary.filter((pl.col("of") != "io") | pl.col("mean").is_not_null())


def wait_shares(domains: pl.DataFrame, waits: pl.DataFrame) -> pl.DataFrame:
    """See `Run.df_wait_shares`. Causes without any wait of the domain are left out."""
    pairs = waits.select("domain", "by").unique(maintain_order=True)
    # In a replication without the pair it waited 0.
    each = (
        domains.select("replication", "domain", "elapsed_ns", "runnable_ns")
        .join(pairs, on="domain", maintain_order="left")
        .join(waits, on=["replication", "domain", "by"], how="left")
        .with_columns(pl.col("wait_ns").fill_null(0))
    )
    waited = pl.col("wait_ns")
    of_waits = pl.when(pl.col("runnable_ns") != 0).then(waited / pl.col("runnable_ns"))
    by_pair = each.group_by("domain", "by", maintain_order=True).agg(
        100 * waited / pl.col("elapsed_ns"), (100 * of_waits).alias("of_waits")
    )
    rows = []
    for domain, by, *shares in by_pair.iter_rows():
        interval, of_wait = map(Interval.from_values, shares)
        if interval is not None:
            rows.append((domain, by, interval.mean, of_wait and of_wait.mean, interval.half_width))
    return pl.DataFrame(rows, _WAIT_SHARES, orient="row")


def wakeup_means(domains: pl.DataFrame, wakeups: pl.DataFrame) -> pl.DataFrame:
    """See `Run.df_wakeup_means`."""
    quantiles = ("mean", "p50", "p90", "p95", "p99")
    return (
        wakeups.join(
            domains.select("replication", "domain", "elapsed_ns"),
            on=["replication", "domain"],
            maintain_order="left",
        )
        .group_by("domain", "cause", maintain_order=True)
        .agg(
            (1e9 * pl.col("count").sum() / pl.col("elapsed_ns").sum()).alias("per_s"),
            *((pl.col(f"{name}_ns").mean() / 1e3).alias(f"{name}_us") for name in quantiles),
            (pl.col("max_ns").max() / 1e3).alias("max_us"),
        )
        .sort("domain", maintain_order=True)
    )
