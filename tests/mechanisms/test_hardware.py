"""Threads that share cores, memory that is far, clock rates: what they cost, and that it is told."""

from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest

import vcpulab

HOST = """
[run]
duration = "500ms"
warmup = "100ms"
[host]
scheduler = "{scheduler}"
profile = "exact"
topology = {{ sockets = 2, cores = 2, threads = 2, nodes = 2 }}
[host.costs]
cpu_mhz = 2400
{costs}
"""

SHARED = """
smt_compute_beside_compute_percent = 60
smt_compute_beside_memory_percent = 80
smt_memory_beside_compute_percent = 70
smt_memory_beside_memory_percent = 55
memory_share_memory_percent = 50
bandwidth_memory_mb_per_s = 12000
node_mb_per_s = 30000
numa_distance = 17
turbo_one_core_mhz = 3800
turbo_all_cores_mhz = 3000
min_mhz = 1200
lock_ns = 100
ipi_ns = 500
"""


def domain(name: str, vcpus: int = 1, **fields: object) -> str:
    """A domain of hogs, one for each vCPU."""
    written = {"vcpus": vcpus, **fields}
    lines = (f"{key} = {value!r}".replace("'", '"') for key, value in written.items())
    apps = ", ".join(['{ kind = "hog" }'] * vcpus)
    return "\n".join([f"[domain.{name}]", *lines, f"app = [{apps}]", ""])


def ran(text: str) -> pl.DataFrame:
    """What each domain got."""
    return vcpulab.run(vcpulab.Scenario.from_toml(text)).df_domains()


def rows(costs: str, *domains: str, scheduler: str = "credit2") -> Iterator[dict[str, Any]]:
    text = HOST.format(scheduler=scheduler, costs=costs) + "".join(domains)
    return ran(text).iter_rows(named=True)


def test_two_threads_of_a_core_do_less_than_two_cores() -> None:
    """What was gotten is the same; the work is not."""
    smt = "smt_compute_beside_compute_percent = 60"
    [beside] = rows(smt, domain("a", 2, affinity="0-1"))
    [apart] = rows(smt, domain("a", 2, affinity="0,2"))
    assert beside["running_ns"] == apart["running_ns"] == 1_000_000_000
    assert apart["work_ns"] == apart["running_ns"]
    assert beside["work_ns"] == pytest.approx(600_000_000, rel=1e-4)
    assert beside["slowed_threads_ns"] == beside["running_ns"] - beside["work_ns"]


def test_memory_is_where_the_domain_prefers_to_run_or_where_it_is_said() -> None:
    far = "numa_distance = 20\nmemory_share_memory_percent = 50"
    memory: list[dict[str, Any]] = [{}, {"memory_nodes": 1}, {"memory_nodes": [0, 1]}]
    hogs = [domain("a", bound_by="memory", affinity="0", **fields) for fields in memory]
    work = [next(rows(far, hog))["work_ns"] / 500_000_000 for hog in hogs]
    assert work == pytest.approx([1, 1 / 1.5, 1 / 1.25], rel=1e-4)


@pytest.mark.parametrize("scheduler", ["credit", "credit2", "rtds", "null"])
def test_the_time_gotten_is_work_and_what_was_lost(scheduler: str) -> None:
    domains = [domain("a", 2), domain("b", 3, bound_by="memory"), domain("c", 2, bound_by="io", memory_nodes=1)]
    for row in rows(SHARED, *domains, scheduler=scheduler):
        lost = row["slowed_threads_ns"] + row["slowed_memory_ns"] + row["slowed_frequency_ns"]
        assert row["work_ns"] + lost == row["running_ns"] > 0
        assert row["work_ns"] != row["running_ns"]


@pytest.mark.parametrize(("scheduler", "kept"), [("credit2", 1 / 2), ("credit", 5 / 6)])
def test_a_cap_at_a_low_clock_rate_is_a_smaller_cap(scheduler: str, kept: float) -> None:
    """Administrators' report: with `ondemand` a domain with a cap does less than its cap of the work.

    Credit2 gives it 2 ms of every 10, and the governor never sees a busy core. Credit gives it 30 ms of every 150, of
    which the governor has noticed the first 10.
    """
    clocks = "turbo_one_core_mhz = 2400\nturbo_all_cores_mhz = 2400\nmin_mhz = 1200"
    text = HOST.format(scheduler=scheduler, costs=clocks) + domain("a", 1, cap=20, affinity="0")
    work = {}
    for governor in ("performance", "ondemand"):
        [row] = ran(text.replace("[host]", f'[host]\ngovernor = "{governor}"')).iter_rows(named=True)
        work[governor] = row["work_ns"] / row["running_ns"]
    assert work["performance"] == 1
    assert work["ondemand"] == pytest.approx(kept, abs=0.01)


def test_without_a_topology_nothing_is_slowed() -> None:
    text = HOST.format(scheduler="credit2", costs=SHARED) + domain("a", 4, bound_by="memory")
    flat = "\n".join(line for line in text.splitlines() if not line.startswith("topology"))
    domains = ran(flat.replace("[host]", "[host]\npcpus = 8"))
    assert domains.filter(pl.col("work_ns") != pl.col("running_ns")).is_empty()
