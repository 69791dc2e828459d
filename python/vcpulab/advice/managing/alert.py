"""Allocation errors: the CPU time that a scheduler gives a domain that always wants more, compared with its limit.

This is ALERT of Cherkasova, Gupta and Vahdat 2007, section 5.2, on the scenario's host: each managed domain computes
without end, limited to a fixed share; everything else on the host continues.
"""

from collections.abc import Mapping

import polars as pl

from vcpulab.advice.managing.limits import limits
from vcpulab.errors import ScenarioError
from vcpulab.results.run import run
from vcpulab.scenario.scenario import Scenario, join

NO_ERRORS = pl.DataFrame(schema={"replication": pl.UInt32, "domain": pl.String, "error": pl.Float64})


def allocation_errors(scenario: Scenario, shares: Mapping[str, float], interval_s: float) -> pl.DataFrame:
    """The difference between each interval's CPU time and the share, % of the share.

    Args:
        scenario: the host.
        shares: domain to the share that limits it, % of a pCPU.
        interval_s: length of the intervals.

    Returns:
        A row for each replication, interval and domain: `replication`, `domain`, `error` (signed, %). No rows if the
        scenario is invalid without the services of these domains.
    """
    clients = [name for name, client in scenario.clients.items() if client.server in shares]
    changes: dict[str, object] = {join(["client", name]): None for name in clients}
    for name, share in shares.items():
        changes[join(["domain", name, "app"])] = [{"kind": "hog"}]
        changes |= {join(["domain", name, param]): value for param, value in limits(scenario, name, share).items()}
    changes["run.sample"] = f"{round(interval_s * 1e9)}ns"
    try:
        saturated = scenario.change(changes)
    except ScenarioError:
        return NO_ERRORS
    samples = run(saturated, waits=False).df_samples()
    share_table = pl.DataFrame(
        {"domain": list(shares), "share": list(shares.values())}, schema_overrides={"share": pl.Float64}
    )
    used = 100 * pl.col("running_ns") / pl.col("elapsed_ns")
    return samples.join(share_table, on="domain", maintain_order="left").select(
        "replication", "domain", (100 * (used / pl.col("share") - 1)).alias("error")
    )
