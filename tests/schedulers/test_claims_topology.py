"""What docs/schedulers claims of cores, run queues, soft affinity, core scheduling and the newer releases."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import pytest

import vcpulab
from claims import longest_wait_ms, run

approx = pytest.approx
both = pytest.mark.parametrize("scheduler", ["credit", "credit2"])
BY_CPU = {"host.sched_gran": "cpu"}
BEFORE = {"host.generation": "xen4.17"}
AFTER = {"host.generation": "xen4.22"}


class Stay(NamedTuple):
    """A domain on a pCPU."""

    domain: int
    pcpu: int
    start_ns: int
    end_ns: int


def stays(result: vcpulab.Run) -> Iterator[Stay]:
    """Who ran where, from the first decision of each pCPU on."""
    rows = result.df_decisions().sort("pcpu", "time_ns", maintain_order=True)
    for (pcpu, start, domain), (same, end, _) in pairwise(rows.select("pcpu", "time_ns", "to_domain").rows()):
        if pcpu == same and domain is not None and domain >= 0:
            yield Stay(domain, pcpu, start, end)


def by_domain(stay: Stay) -> tuple[int, int]:
    """Each domain's stays in their order."""
    return stay.domain, stay.start_ns


def share_on(result: vcpulab.Run, pcpus: set[int]) -> float:
    """The part of its time that domain 1 was on these pCPUs, %."""
    own = [(stay.pcpu in pcpus, stay.end_ns - stay.start_ns) for stay in stays(result) if stay.domain == 1]
    return 100 * sum(time for there, time in own if there) / sum(time for _, time in own)


def together(result: vcpulab.Run) -> float:
    """The part of 10 s in which domains 1 and 2 ran at once, %."""
    first, second = ([stay for stay in stays(result) if stay.domain == domain] for domain in (1, 2))
    shared = (min(a.end_ns, b.end_ns) - max(a.start_ns, b.start_ns) for a in first for b in second)
    return sum(time for time in shared if time > 0) / 1e8


def gotten(result: vcpulab.Run, *domains: str) -> list[float]:
    """CPU time of domains, % of a pCPU."""
    return [result[f"{domain}.gotten"].mean for domain in domains]


def busy(result: vcpulab.Run) -> list[int]:
    """The pCPUs that were ever busy."""
    return [pcpu for pcpu in result.df_pcpus()["pcpu"] if result[f"pcpu.{pcpu}.run"].mean > 0]


# Cores


@both
def test_hogs_get_cores_of_their_own(scheduler: str) -> None:
    def cores(changes: dict[str, Any]) -> list[int]:
        return [pcpu // 2 for pcpu in busy(run(f"{scheduler}-cores", changes))]

    assert cores({}) == [0, 1]
    assert len(set(cores({"host.smt_power_savings": 1}))) == 1
    assert len(set(cores({"host.generation": "xen4.4.1"}))) == 1


def test_credit_fetches_work_from_its_own_node_first() -> None:
    for changes, crossed in (({}, 0), ({"host.topology.nodes": 1}, 440)):
        moves = [
            (before.pcpu // 2, after.pcpu // 2)
            for before, after in pairwise(sorted(stays(run("credit-nodes", changes, decisions=True)), key=by_domain))
            if before.domain == after.domain and before.pcpu != after.pcpu
        ]
        assert len(moves) == 440
        assert sum(before != after for before, after in moves) == crossed


# Soft affinity


@both
def test_a_preferred_pcpu_is_not_waited_for(scheduler: str) -> None:
    pinned = {f"domain.{name}.soft_affinity": None for name in "ab"} | {f"domain.{name}.affinity": "0" for name in "ab"}
    assert gotten(run(f"{scheduler}-soft-affinity"), "a", "b") == approx([100, 100])
    assert gotten(run(f"{scheduler}-soft-affinity", pinned), "a", "b") == approx([50, 50], abs=0.05)


@pytest.mark.parametrize(("scheduler", "there"), [("credit", 16.9), ("credit2", 67.1)])
def test_a_preference_does_nothing_on_a_busy_host(scheduler: str, there: float) -> None:
    without = {"domain.a.soft_affinity": None}
    for changes, share in (({}, there), (without, there), (without | {"domain.a.affinity": "0-1"}, 100)):
        result = run(f"{scheduler}-soft-affinity-busy", changes, decisions=True)
        assert share_on(result, {0, 1}) == approx(share, abs=0.1)


def test_credit_preference_makes_a_vcpu_wait() -> None:
    result = run("credit-soft-affinity-waits")
    assert result["hog.waited"].mean == approx(13.3, abs=0.05)
    assert longest_wait_ms(result, "hog") == approx(30, rel=0.01)
    assert result["pcpu.1.idle"].mean == approx(64.8, abs=0.05)
    for changes in ({"domain.hog.soft_affinity": None}, {"host.scheduler": "credit2"}):
        assert run("credit-soft-affinity-waits", changes)["hog.waited"].mean == 0


def test_null_serves_who_prefers_a_pcpu_first() -> None:
    assert gotten(run("null-soft-affinity"), "c", "d") == approx([0, 50], abs=0.1)
    assert gotten(run("null-soft-affinity", {"domain.d.soft_affinity": None}), "c", "d") == approx([50, 0], abs=0.1)


def test_rtds_does_not_look_at_preferences() -> None:
    results = [run("rtds-soft-affinity", changes, decisions=True) for changes in ({}, {"domain.a.soft_affinity": None})]
    assert results[0].df_decisions().equals(results[1].df_decisions())
    assert share_on(results[0], {0}) == approx(47.5, abs=0.1)
    assert results[0]["a.migrations"].mean == approx(36.3, rel=0.01)


# Waking, and looking for work


def test_credit_wakes_one_idle_pcpu() -> None:
    for changes, decisions in (({}, 35_935), ({"host.tickle_one_idle": 0}, 62_056)):
        result = run("credit-tickle", changes)
        assert 16 * result["host.decisions"].mean == approx(decisions, rel=0.001)
        assert result["player01.waited"].mean == 0


def test_credit_looks_for_work_once_in_a_millisecond() -> None:
    newest = run("credit-balance-limit")
    assert newest["host.idle"].mean == approx(53.8, abs=0.1)
    assert [newest[f"{name}.waited"].mean for name in "abcd"] == approx([3.92, 2.95, 2.46, 2.87], abs=0.01)
    for changes in ({"host.load_balance_ratelimit_us": 0}, BEFORE):
        older = run("credit-balance-limit", changes)
        assert [older[f"{name}.waited"].mean for name in "abcd"] == approx([1.38, 1.30, 0.76, 0.90], abs=0.01)


# Credit2's run queues


def test_credit2_large_run_queues_share_evenly() -> None:
    hogs = [f"hog{number:02}" for number in range(1, 13)]
    for changes, least, most in (
        ({"host.runqueue": "cpu"}, 55.4, 84.7),
        ({"host.runqueue": "core"}, 66.5, 66.9),
        ({}, 65.5, 69.0),
        ({"host.runqueue": "node"}, 65.5, 69.0),
        ({"host.runqueue": "all"}, 66.7, 66.7),
        ({"host.runqueue": "all", "host.max_cpus_runqueue": 4}, 65.5, 69.0),
    ):
        shares = gotten(run("credit2-arrangements", changes), *hogs)
        assert (min(shares), max(shares)) == approx((least, most), abs=0.05)


def test_credit2_wakes_in_its_own_run_queue() -> None:
    players = [f"player{number}" for number in range(1, 5)]
    for runqueue, least, most in (("cpu", 3.96, 8.15), ("all", 0.09, 0.24)):
        result = run("credit2-own-run-queue", {"host.runqueue": runqueue})
        waits = [result[f"{player}.waited"].mean for player in players]
        assert (min(waits), max(waits)) == approx((least, most), abs=0.01)
        assert result["host.idle"].mean == approx(13, abs=0.5)


def test_credit2_creation_of_a_release_puts_vcpus_side_by_side() -> None:
    hogs = [f"hog{number}" for number in range(1, 5)]
    released = run("credit2-creation")
    assert sorted(gotten(released, *hogs)) == approx([98, 98, 100, 100], abs=0.1)
    assert max(longest_wait_ms(released, hog) for hog in hogs) == approx(10, rel=0.01)
    assert gotten(run("credit2-creation", {"host.creation": "contract"}), *hogs) == approx([100] * 4)


def test_credit2_leaves_who_is_in_deep_debt_waiting_beside_an_idle_pcpu() -> None:
    waits = run("credit2-deep-debt")
    assert waits["light.waited"].mean == approx(24.9, abs=0.1)
    assert longest_wait_ms(waits, "light") == approx(3.95, rel=0.01)
    for changes in ({"host.migrate_resist_us": 0}, {"domain.light.weight": 16384}, {"host.scheduler": "credit"}):
        assert run("credit2-deep-debt", changes)["light.waited"].mean == 0


# Releases


def test_credit2_slices_before_and_after() -> None:
    for generation, wait, lost in ((BEFORE, 10, 0.515), (AFTER, 1, 5.13)):
        assert longest_wait_ms(run("credit2-two-hogs", generation), "a") == approx(wait, rel=0.01)
        result = run("credit2-two-large-hogs", generation)
        assert result["host.overhead"].mean == approx(lost, rel=0.01)
        assert run("credit2-cold-caches", generation)["host.overhead"].mean == approx(5.39, rel=0.01)


def test_rtds_extratime_comes_at_once() -> None:
    assert gotten(run("rtds-late-extratime"), "shop", "batch") == approx([49, 51], abs=0.1)
    assert gotten(run("rtds-late-extratime", BEFORE), "shop", "batch") == approx([10, 90], abs=0.1)


def test_arinc653_pools_keep_their_own_timetables() -> None:
    for generation, radar in (("xen4.17", 66.6), ("xen4.18", 33.3), ("xen4.22", 33.3)):
        result = run("arinc653-pools", {"host.generation": generation, "pool.right.generation": generation})
        assert gotten(result, "flight", "cabin", "radar", "radio") == approx([50, 50, radar, 100 - radar], abs=0.1)


# Core scheduling


@both
def test_core_scheduling_wastes_threads_of_odd_vcpus(scheduler: str) -> None:
    claim = f"{scheduler}-core-scheduling"
    alone = run(claim)
    assert gotten(alone, *"abcd") == approx([50] * 4, abs=0.25)
    assert alone["host.idle"].mean == approx(50)
    assert gotten(run(claim, BY_CPU), *"abcd") == approx([100] * 4)
    wider = {f"domain.{name}.vcpus": 2 for name in "abcd"} | {f"domain.{name}.app.0.instance": 2 for name in "abcd"}
    assert gotten(run(claim, wider), *"abcd") == approx(gotten(run(claim, wider | BY_CPU), *"abcd"))


@pytest.mark.parametrize(
    ("scheduler", "with_hog", "alone", "beside"), [("credit", 29.0, 2.0, 61), ("credit2", 12.0, 3.0, 67)]
)
def test_core_scheduling_keeps_domains_apart_and_companions_waiting(
    scheduler: str, with_hog: float, alone: float, beside: float
) -> None:
    claim = f"{scheduler}-core-companion"
    for changes, tail, shared in (({}, with_hog, 0), (BY_CPU, alone, beside)):
        result = run(claim, changes, decisions=True)
        assert result["mixed.1.response_p99"].mean == approx(tail, rel=0.01)
        assert together(result) == approx(shared, abs=1)


def test_null_gives_a_vcpu_a_whole_core() -> None:
    assert gotten(run("null-core-scheduling"), *"abcd") == [100, 100, 0, 0]
    assert gotten(run("null-core-scheduling", BY_CPU), *"abcd") == [100] * 4


def test_rtds_companions_share_a_budget() -> None:
    assert run("rtds-core-scheduling")["shop.1.response_p99"].mean == approx(7.0, rel=0.01)
    assert run("rtds-core-scheduling", BY_CPU)["shop.1.response_p99"].mean == approx(1.0, rel=0.01)


def test_arinc653_runs_a_core_in_a_slot() -> None:
    assert gotten(run("arinc653-core"), "flight", "cabin") == approx([100, 100])
    assert gotten(run("arinc653-core", BY_CPU), "flight", "cabin") == approx([50, 50])
