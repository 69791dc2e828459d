"""The shares of time that the vCPUs of a domain spent in each state, over all replications.

A share is that of a single vCPU: at most 1, whatever the number of vCPUs.
"""

import polars as pl

from vcpulab.results.run import Run
from vcpulab.scenario.scenario import join


def shares(run: Run, domain: str, state: str) -> list[float]:
    """The share of each vCPU's time in a state (`running`, `runnable`, `blocked`, `offline`), 0 to 1."""
    rows = run.df_vcpus().filter(domain=domain).group_by("vcpu", maintain_order=True)
    share = pl.col(f"{state}_ns").sum() / pl.col("elapsed_ns").sum()
    return rows.agg(share.alias("share")).sort("vcpu")["share"].to_list()


def waited(run: Run, domain: str) -> float:
    """The share of its time for which the vCPU with the longest waits waits."""
    return max(shares(run, domain, "runnable"), default=0.0)


def gotten(run: Run, domain: str) -> float:
    """CPU time of a domain, % of one pCPU."""
    value = run.get(f"{join([domain])}.gotten")
    return 0.0 if value is None else value.mean


def most_gotten(run: Run, domain: str) -> float:
    """CPU time of the vCPU that gets most, % of a pCPU, for comparison with limits of single vCPUs."""
    return 100 * max(shares(run, domain, "running"), default=0.0)


def lost(run: Run, domain: str, to: str) -> float:
    """The fraction of a domain's CPU time lost to `threads`, `memory` or `frequency`; below 0: a gain."""
    sums = run.df_domains().filter(domain=domain).select(pl.col("running_ns", f"slowed_{to}_ns").sum())
    running, slowed = sums.row(0)
    return float(slowed) / max(1, int(running))
