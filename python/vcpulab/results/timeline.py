"""The decisions of a run as slices of time: the vCPU on each pCPU from start to end."""

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from vcpulab.results.run import Run


def slices(run: "Run", replication: int, start_ns: int, end_ns: int) -> pl.DataFrame:
    """The slices of a run in a window, cut to the window.

    Args:
        run: a run that kept its decisions.
        replication: the number of the replication.
        start_ns: the start of the window, ns since the host started.
        end_ns: the end of the window.

    Returns:
        `pcpu`, `domain` (its number; -1: idle), `vcpu`, `start_ns`, `end_ns`, and `waited_ns`, the wait for a pCPU
        before the slice; null for slices that began before measuring did.
    """
    trace = run.df_decisions().filter(replication=replication).sort("pcpu", "time_ns", maintain_order=True)
    measured_ns = run.scenario.warmup_ns
    # The vCPU before the first decision is the vCPU that this decision replaced.
    first = trace.group_by("pcpu", maintain_order=True).first()
    before = first.select(
        "pcpu",
        pl.lit(measured_ns, pl.Int64).alias("start_ns"),
        pl.col("from_domain").alias("domain"),
        pl.col("from_vcpu").alias("vcpu"),
        pl.lit(None, pl.Int64).alias("waited_ns"),
    )
    after = trace.select(
        "pcpu",
        pl.col("time_ns").alias("start_ns"),
        pl.col("to_domain").alias("domain"),
        pl.col("to_vcpu").alias("vcpu"),
        "waited_ns",
    )
    last_ns = measured_ns + run.scenario.duration_ns
    return (
        pl.concat([before, after])
        .sort("pcpu", "start_ns", maintain_order=True)
        .with_columns(pl.col("start_ns").shift(-1).over("pcpu").fill_null(last_ns).alias("end_ns"))
        .with_columns(pl.col("start_ns").clip(lower_bound=start_ns), pl.col("end_ns").clip(upper_bound=end_ns))
        .filter(pl.col("start_ns") < pl.col("end_ns"))
        .select("pcpu", "domain", "vcpu", "start_ns", "end_ns", "waited_ns")
    )
