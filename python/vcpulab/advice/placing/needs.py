"""The needs of an item: the resources that it uses alone on a host, less those that an empty host uses."""

from collections.abc import Mapping, Sequence

import polars as pl

from vcpulab.advice.capacity.occupancy import stations
from vcpulab.advice.placing.fleet import Fleet, Item
from vcpulab.results.addresses import Slo
from vcpulab.results.metrics import Quantity
from vcpulab.results.run import Run

_ELASTIC = 0.99
"""The occupied share of a vCPU from which its domain takes all the CPU time that it gets."""


def used_by_all(run: Run) -> float:
    """The share of the pCPUs' time that is not idle, mean over replications."""
    pcpus = run.df_pcpus()
    return 1 - float(pcpus["idle_ns"].sum()) / float(pcpus["elapsed_ns"].sum())


def measured(run: Run) -> dict[str, float]:
    """Resource to its used share: pCPUs of each pool, driver domains, disks and links."""
    pools = run.df_pcpus().group_by("pool", maintain_order=True).agg(pl.col("idle_ns", "elapsed_ns").sum())
    kvm = run.scenario.host.hypervisor == "kvm"
    used = {
        f"pCPUs of {'the host' if kvm else row['pool']}": 1 - row["idle_ns"] / row["elapsed_ns"]
        for row in pools.to_dicts()
    }
    domains = run.df_domains().group_by("domain", maintain_order=True).agg(pl.col("running_ns", "elapsed_ns").sum())
    running = {row["domain"]: row["running_ns"] / row["elapsed_ns"] for row in domains.to_dicts()}
    for name, domain in run.scenario.domains.items():
        if domain.driver_domain:
            used[f"vCPUs of {name}"] = running[name] / domain.vcpus
    return used | {station.name: station.used for station in stations(run) if station.kind in ("disk", "link")}


def needs(
    fleet: Fleet,
    item: Item,
    alone: Run,
    *,
    empty: Mapping[str, float],
    slos: Sequence[Slo] | None = None,
    memory: float | None = None,
) -> dict[str, float]:
    """Resource to the share of an empty host's free capacity that an item needs.

    If `slos` is `None`, the need is the share that the item uses alone. An item without SLOs needs nothing: it gets the
    capacity that is left. An item that takes all the CPU time it can get (such as one that computes without end) and
    has an SLO on its throughput needs only the share that the SLO takes.
    """
    share = 1.0 if slos is None else _share_needed(item, alone, slos)
    mine = {f"vCPUs of {name}" for name in item.domains}
    needed = {}
    for name, used in measured(alone).items():
        used_empty = empty.get(name, 0.0)
        # A host that is full without the item has no room; the simulation finds that.
        if name not in mine and used > used_empty and used_empty < 1:
            needed[name] = share * (used - used_empty) / (1 - used_empty)
    if memory is not None:
        sizes = {name: domain.memory.bytes for name, domain in alone.scenario.domains.items()}
        free = memory - sum(sizes[name] for name in fleet.common)
        needed["memory"] = sum(sizes[name] for name in item.domains) / free if free > 0 else float("inf")
    return needed


def _share_needed(item: Item, alone: Run, slos: Sequence[Slo]) -> float:
    if not slos:
        return 0.0
    least = [slo for slo in slos if slo.address.metric.quantity is Quantity.THROUGHPUT and slo.operator.startswith(">")]
    occupied = [station.used for station in stations(alone, item.domains) if station.kind == "guest vCPU"]
    if not least or max(occupied, default=0.0) < _ELASTIC:
        return 1.0
    values = alone.values([slo.address for slo in least])
    shares = []
    for slo in least:
        present = [value for value in values[slo.address.name] if value]
        shares.append(slo.bound * len(present) / sum(present) if present else 1.0)
    return min(1.0, max(shares))
