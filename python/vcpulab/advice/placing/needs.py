"""What an item needs of a host: measured with the item alone on one, less what an empty host uses."""

from collections.abc import Mapping, Sequence

import polars as pl

from vcpulab.advice.capacity.occupancy import stations
from vcpulab.advice.placing.fleet import Fleet, Item
from vcpulab.hypervisors.settings import hypervisor_of
from vcpulab.results.addresses import Slo
from vcpulab.results.run import Run
from vcpulab.scenario.units import size_bytes

_ELASTIC = 0.99
"""A domain whose vCPUs are occupied so much of the time takes whatever CPU time it gets."""


def used_by_all(run: Run) -> float:
    """Share of the pCPUs' time that is not idle, mean over replications."""
    pcpus = run.df_pcpus()
    return 1 - float(pcpus["idle_ns"].sum()) / float(pcpus["elapsed_ns"].sum())


def measured(run: Run) -> dict[str, float]:
    """Resource to the share of it that is used: pCPUs of each pool, driver domains, disks and links."""
    pools = run.df_pcpus().group_by("pool", maintain_order=True).agg(pl.col("idle_ns", "elapsed_ns").sum())
    kvm = hypervisor_of(run.scenario.to_dict()) == "kvm"
    found = {
        f"pCPUs of {'the host' if kvm else row['pool']}": 1 - row["idle_ns"] / row["elapsed_ns"]
        for row in pools.to_dicts()
    }
    domains = run.df_domains().group_by("domain", maintain_order=True).agg(pl.col("running_ns", "elapsed_ns").sum())
    running = {row["domain"]: row["running_ns"] / row["elapsed_ns"] for row in domains.to_dicts()}
    for name, table in run.scenario.to_dict()["domain"].items():
        if table.get("driver_domain"):
            found[f"vCPUs of {name}"] = running[name] / table["vcpus"]
    return found | {one.name: one.used for one in stations(run) if one.kind in ("disk", "link")}


def needs(
    fleet: Fleet,
    item: Item,
    alone: Run,
    *,
    empty: Mapping[str, float],
    slos: Sequence[Slo] | None = None,
    memory: float | None = None,
) -> dict[str, float]:
    """Resource to the share of what an empty host has of it that the item needs; without SLOs, that it uses alone.

    What has no SLO needs nothing: it gets what is left.
    An item that takes all the CPU time it can get (as one that computes without end) and that has an SLO on its
    throughput needs only as much as the SLO does.
    """
    share = 1.0 if slos is None else _share_needed(item, alone, slos)
    mine = {f"vCPUs of {name}" for name in item.domains}
    found = {}
    for name, used in measured(alone).items():
        there = empty.get(name, 0.0)
        # A host that is full without the item has room for nothing; let the simulation find that.
        if name not in mine and used > there and there < 1:
            found[name] = share * (used - there) / (1 - there)
    if memory is not None:
        domains = alone.scenario.to_dict()["domain"]
        sizes = {name: size_bytes(table["memory"]) for name, table in domains.items()}
        free = memory - sum(sizes[name] for name in fleet.common)
        found["memory"] = sum(sizes[name] for name in item.domains) / free if free > 0 else float("inf")
    return found


def _share_needed(item: Item, alone: Run, slos: Sequence[Slo]) -> float:
    if not slos:
        return 0.0
    least = [one for one in slos if one.address.metric.name == "throughput" and one.operator.startswith(">")]
    occupied = [one.used for one in stations(alone, item.domains) if one.kind == "guest vCPU"]
    if not least or max(occupied, default=0.0) < _ELASTIC:
        return 1.0
    found = alone.values([one.address for one in least])
    shares = []
    for one in least:
        present = [value for value in found[one.address.name] if value]
        shares.append(one.bound * len(present) / sum(present) if present else 1.0)
    return min(1.0, max(shares))
