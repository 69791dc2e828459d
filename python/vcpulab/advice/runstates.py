"""What the vCPUs of a domain did with their time, as shares of the time measured over all replications.

A share is that of one vCPU, so that none exceeds 1, however many vCPUs a domain has.
"""

import polars as pl

from vcpulab.results.run import Run
from vcpulab.scenario.scenario import join


def shares(run: Run, domain: str, state: str) -> list[float]:
    """For each vCPU the part of the time in a state (`running`, `runnable`, `blocked`, `offline`), 0 to 1."""
    rows = run.df_vcpus().filter(domain=domain).group_by("vcpu", maintain_order=True)
    share = pl.col(f"{state}_ns").sum() / pl.col("elapsed_ns").sum()
    return rows.agg(share.alias("share")).sort("vcpu")["share"].to_list()


def waited(run: Run, domain: str) -> float:
    """The part of the time for which the vCPU waits that waits most."""
    return max(shares(run, domain, "runnable"), default=0.0)


def gotten(run: Run, domain: str) -> float:
    """CPU time of a domain, % of one pCPU."""
    found = run.get(f"{join([domain])}.gotten")
    return 0.0 if found is None else found.mean


def most_gotten(run: Run, domain: str) -> float:
    """CPU time of the vCPU that gets most, % of a pCPU: what limits of each vCPU are compared with."""
    return 100 * max(shares(run, domain, "running"), default=0.0)


def lost(run: Run, domain: str, to: str) -> float:
    """The part of the time gotten that a domain loses to `threads`, `memory` or `frequency`; below 0: it wins."""
    sums = run.df_domains().filter(domain=domain).select(pl.col("running_ns", f"slowed_{to}_ns").sum())
    running, slowed = sums.row(0)
    return float(slowed) / max(1, int(running))
