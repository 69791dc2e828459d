"""What docs/schedulers claims of Linux's CFS and EEVDF, with the figures quoted there."""

from typing import Any

import polars as pl
import pytest

import vcpulab
from claims import longest_wait_ms, run

approx = pytest.approx

CFS: dict[str, Any] = {"host.scheduler": "linux-cfs"}
EEVDF: dict[str, Any] = {"host.scheduler": "linux-eevdf"}
BOTH = pytest.mark.parametrize("policy", [CFS, EEVDF], ids=["cfs", "eevdf"])


def gotten(run: vcpulab.Run, *domains: str) -> tuple[float, ...]:
    """CPU time of domains, % of a pCPU."""
    return tuple(run[f"{domain}.gotten"].mean for domain in domains)


def turns_ms(run: vcpulab.Run) -> list[float]:
    """The time between two switches of the only pCPU, ms."""
    times = run.df_decisions().get_column("time_ns").unique().sort()
    return (times.diff().drop_nulls() / 1e6).to_list()


def test_a_waking_domain() -> None:
    assert longest_wait_ms(run("linux-cfs-sleeper", CFS), "player") == approx(0)
    assert longest_wait_ms(run("linux-cfs-sleeper", EEVDF), "player") == approx(3.8, abs=0.05)


@BOTH
def test_shares(policy: dict[str, Any]) -> None:
    assert gotten(run("linux-shares", policy), "a", "b", "c") == approx((14.3, 28.6, 57.1), abs=0.1)


def test_turns() -> None:
    for changes, ms in ((EEVDF, 4), (EEVDF | {"host.hz": 1000}, 1), (CFS, 4)):
        turns = turns_ms(run("linux-turns", changes, decisions=True))
        assert len(turns) > 1000
        assert turns == approx([ms] * len(turns), rel=0.01)


def test_eight_cpus() -> None:
    assert longest_wait_ms(run("linux-eight-cpus", CFS), "hogs") == approx(16)
    assert longest_wait_ms(run("linux-eight-cpus", EEVDF), "hogs") == approx(4)


@BOTH
def test_per_vm(policy: dict[str, Any]) -> None:
    assert gotten(run("linux-per-vm", policy), "four", "eight") == approx((200, 200), abs=1)


def test_per_vm_of_credit2() -> None:
    assert gotten(run("linux-per-vm", {"host.scheduler": "credit2"}), "four", "eight") == approx((133, 267), abs=1)


@BOTH
def test_quota(policy: dict[str, Any]) -> None:
    assert gotten(run("linux-quota", policy), "limited") == approx((42.0,), abs=0.05)


@BOTH
def test_idle_group(policy: dict[str, Any]) -> None:
    assert gotten(run("linux-idle-group", policy), "batch", "other") == approx((0.3, 99.7), abs=0.05)


@BOTH
def test_cores(policy: dict[str, Any]) -> None:
    spread = run("linux-cores", policy)
    busy = [100 - spread[f"pcpu.{pcpu}.idle"].mean for pcpu in range(8)]
    assert [first + second for first, second in zip(busy[::2], busy[1::2], strict=True)] == approx([100] * 4, abs=0.1)


def test_a_limit_of_the_whole_vm() -> None:
    each = {"domain.vm.global_quota_us": None, "domain.vm.vcpu_quota_us": 50_000}
    for policy, whole_ms, each_ms in ((CFS, 30, 1), (EEVDF, 34, 1)):
        assert run("linux-vm-quota", policy)["vm.3.response_p99"].mean == approx(whole_ms, rel=0.02)
        assert run("linux-vm-quota", policy | each)["vm.3.response_p99"].mean == approx(each_ms, rel=0.02)


def test_a_sleeper_among_hogs() -> None:
    assert gotten(run("linux-eevdf-sleeper-share", EEVDF), "sleeper") == approx((14.3,), abs=0.05)
    assert gotten(run("linux-eevdf-sleeper-share", CFS), "sleeper") == approx((20.0,), abs=0.05)


@BOTH
def test_nice_of_vcpus(policy: dict[str, Any]) -> None:
    assert gotten(run("linux-nice", policy), "eager", "modest") == approx((50.0, 50.0), abs=0.05)
    lighter = policy | {"domain.modest.weight": 20}
    assert gotten(run("linux-nice", lighter), "eager", "modest") == approx((83.3, 16.7), abs=0.05)


def test_batch_and_idle_preempt_nobody() -> None:
    for policy, plain_ms in ((CFS, 0), (EEVDF, 3.8)):
        for of_thread, ms in (("batch", 3.8), ("idle", 3.8), ("other", plain_ms)):
            changed = run("linux-batch", policy | {"domain.player.sched_policy": of_thread})
            assert longest_wait_ms(changed, "player") == approx(ms, abs=0.05)


def test_idle_threads_in_a_group_of_the_usual_weight() -> None:
    for policy, ms in ((CFS, 0), (EEVDF, 3.6)):
        assert longest_wait_ms(run("linux-idle-policy", policy), "player") == approx(ms, abs=0.05)
        hogs = run("linux-idle-policy", policy | {"domain.player.app": [{"kind": "hog"}]})
        assert gotten(hogs, "background", "player") == approx((50.0, 50.0), abs=0.05)


@BOTH
def test_a_spinning_vm_of_sched_fifo(policy: dict[str, Any]) -> None:
    assert gotten(run("linux-fifo", policy), "spinner", "shop") == approx((95, 5), abs=0.1)


def test_a_spinning_vm_of_sched_fifo_without_a_limit() -> None:
    for changes in (CFS | {"host.rt_runtime_us": -1}, EEVDF | {"host.fair_server_runtime_us": 0}):
        assert gotten(run("linux-fifo", changes), "spinner", "shop") == approx((100, 0))


@BOTH
def test_isolated_cpus(policy: dict[str, Any]) -> None:
    assert gotten(run("linux-isolated", policy), "telecom", "web") == approx((100, 200), abs=0.1)
    pinned = policy | {"domain.telecom.affinity": ["2", "3", "4", "5"]}
    assert gotten(run("linux-isolated", pinned), "telecom", "web") == approx((400, 200), abs=0.1)


def test_request_timer() -> None:
    def switches(generation: str) -> float:
        hogs = run("linux-request-timer", {"host.generation": generation})
        return sum(hogs[f"hogs{number}.context_switches"].mean for number in (1, 2, 3))

    assert switches("7.0") == approx(250, rel=0.01)
    assert switches("7.1") == approx(1429, rel=0.01)


def test_limits_thread_by_thread() -> None:
    switches = {
        generation: run("linux-vm-quota", {"host.generation": generation})["vm.context_switches"].mean
        for generation in ("6.17", "6.18")
    }
    assert switches == approx({"6.17": 98, "6.18": 108}, abs=0.5)


def test_weight_per_busy_vcpu() -> None:
    for generation, percent in (("7.2", 80), ("7.3", 172)):
        assert gotten(run("linux-busy-vcpus", {"host.generation": generation}), "large") == approx((percent,), abs=1)


@pytest.mark.parametrize(
    ("changes", "caches"),
    [({"host.generation": "7.1"}, 2), ({}, 1), ({"host.generation": "7.3"}, 1), ({"host.llc_balancing": 0}, 2)],
)
def test_vms_in_one_cache(changes: dict[str, Any], caches: int) -> None:
    pcpus = run("linux-llc", changes).df_pcpus()
    busy = pcpus.filter((pl.col("run_ns") > 0) & ~pl.col("pcpu").is_in([7, 15]))
    assert busy.select(pl.col("pcpu") // 8).n_unique() == caches
