"""What a scheduler gives a domain that always wants more, against what it was told to give: its allocation error.

ALERT of Cherkasova, Gupta and Vahdat 2007, section 5.2, on the host at hand: each managed domain computes without end,
limited to a fixed share; everything else on the host goes on.
"""

from collections.abc import Mapping

import polars as pl

from vcpulab.advice.managing.limits import limits
from vcpulab.errors import ScenarioError
from vcpulab.results.run import run
from vcpulab.scenario.scenario import Scenario, join

NO_ERRORS = pl.DataFrame(schema={"replication": pl.UInt32, "domain": pl.String, "error": pl.Float64})


def allocation_errors(scenario: Scenario, shares: Mapping[str, float], interval_s: float) -> pl.DataFrame:
    """How far each interval's CPU time is from the share, % of the share.

    Args:
        scenario: the host.
        shares: domain to the share that it is limited to, % of a pCPU.
        interval_s: length of the intervals.

    Returns:
        A row for each replication, interval and domain: `replication`, `domain`, `error` (signed, %); no rows where the
        host cannot be without the services of these domains.
    """
    document = scenario.to_dict()
    asking = [name for name, client in document.get("client", {}).items() if client["server"] in shares]
    changes: dict[str, object] = {join(["client", name]): None for name in asking}
    for name, share in shares.items():
        changes[join(["domain", name, "app"])] = [{"kind": "hog"}]
        changes |= {join(["domain", name, param]): value for param, value in limits(document, name, share).items()}
    changes["run.sample"] = f"{round(interval_s * 1e9)}ns"
    try:
        hungry = scenario.change(changes)
    except ScenarioError:
        return NO_ERRORS
    samples = run(hungry, waits=False).df_samples()
    wanted = pl.DataFrame(
        {"domain": list(shares), "share": list(shares.values())}, schema_overrides={"share": pl.Float64}
    )
    used = 100 * pl.col("running_ns") / pl.col("elapsed_ns")
    return samples.join(wanted, on="domain", maintain_order="left").select(
        "replication", "domain", (100 * (used / pl.col("share") - 1)).alias("error")
    )
