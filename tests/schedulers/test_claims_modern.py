"""What docs/schedulers claims of Credit, Credit2, Enhanced, null and round-robin, with the figures quoted there."""

from itertools import pairwise
from statistics import fmean
from typing import Any

import pytest

import vcpulab
from claims import load, longest_wait_ms, run

ABC = ("a", "b", "c")
approx = pytest.approx


def under(scheduler: str, generation: str | None = None) -> dict[str, Any]:
    """The change that runs a scenario under another scheduler."""
    return {"host.scheduler": scheduler} | ({} if generation is None else {"host.generation": generation})


def gotten(run: vcpulab.Run, *domains: str) -> tuple[float, ...]:
    """CPU time of domains, % of a pCPU."""
    return tuple(run[f"{domain}.gotten"].mean for domain in domains)


def longest_absence_ms(run: vcpulab.Run) -> float:
    """The longest time for which domain 1, the only one, did not run, ms."""
    switches: list[tuple[int, int]] = run.df_decisions().select("time_ns", "to_domain").rows()
    absences = [back - away for (away, to), (back, _) in pairwise(switches) if to != 1]  # on and off alternate
    return max(absences) / 1e6


def of_pcpus(run: vcpulab.Run, name: str) -> list[float]:
    """A figure of each pCPU."""
    return [run[f"pcpu.{pcpu}.{name}"].mean for pcpu in run.df_pcpus()["pcpu"]]


def overhead(run: vcpulab.Run) -> float:
    """Overhead of all pCPUs, % of their time."""
    return fmean(of_pcpus(run, "overhead"))


# Credit


def test_credit_boost() -> None:
    assert longest_wait_ms(run("credit-boost"), "player") == 0
    assert longest_wait_ms(run("credit-boost", under("credit2")), "player") == approx(2.0, rel=0.01)
    assert longest_wait_ms(run("credit-boost", under("round-robin")), "player") == approx(29.8, rel=0.01)


def test_credit_boost_in_older_generations() -> None:
    assert run("credit-boost")["player.response_p99"].mean == approx(1.0, rel=0.01)
    for generation, failed in (("xen3.0.3", 365), ("xen3.3.0", 210)):
        older = run("credit-boost", under("credit", generation))
        assert older["player.response_p99"].mean == approx(81, rel=0.02)
        assert older["player.failed"].mean == approx(failed, rel=0.02)


def test_credit_balance() -> None:
    assert gotten(run("credit-balance"), *ABC) == approx((66.5, 66.7, 66.8), abs=0.05)
    assert gotten(run("credit-balance", under("sedf")), *ABC) == approx((50, 100, 50), abs=0.05)


def test_credit_cap() -> None:
    capped = run("credit-cap")
    assert gotten(capped, "capped") == approx((50.0,), abs=0.05)
    assert capped["pcpu.0.idle"].mean == approx(50.0, abs=0.05)


def test_credit_whole_slices() -> None:
    waits = {
        name: longest_wait_ms(run("credit-whole-slices", changes), "a")
        for name, changes in (("30 ms", {}), ("5 ms", {"host.tslice_ms": 5}), ("credit2", under("credit2")))
    }
    assert waits == approx({"30 ms": 90, "5 ms": 15, "credit2": 3}, rel=0.01)


def test_credit_cap_gap() -> None:
    capped = run("credit-cap-gap", decisions=True)
    assert gotten(capped, "capped") == approx((9.9,), abs=0.05)
    assert longest_absence_ms(capped) == approx(270, rel=0.01)


def test_credit_ticks() -> None:
    thief_and_honest = ("thief", "honest")
    assert gotten(run("credit-ticks"), *thief_and_honest) == approx((90, 10), abs=0.1)
    work = load("credit-ticks").to_dict()["domain"]["thief"]["app"][0]["phase"]
    found_once = {"domain.thief.app.0.phase": [{"event": [{"run": "100ms"}]}, *work]}
    assert gotten(run("credit-ticks", found_once), *thief_and_honest) == approx((50, 50), abs=0.1)
    sampled = run("credit-ticks", found_once | under("credit", "xen3.3.0"))
    assert gotten(sampled, *thief_and_honest) == approx((90, 10), abs=0.1)


def test_credit_lost_slice() -> None:
    assert gotten(run("credit-lost-slice"), *ABC) == approx((35.7, 7.1, 37.2), abs=0.05)
    assert gotten(run("credit-lost-slice", under("credit2")), *ABC) == approx((26.7, 26.7, 26.7), abs=0.05)
    out_of_step = gotten(run("credit-lost-slice", {"domain.sleeper.app.0.period": "43ms"}), *ABC)
    assert out_of_step == approx((27.1, 26.9, 27.4), abs=0.06)


def test_credit_per_vcpu() -> None:
    assert gotten(run("credit-per-vcpu"), "small", "large") == approx((25.1, 74.9), abs=0.05)
    older = run("credit-per-vcpu", under("credit", "xen3.3.0"))
    assert gotten(older, "small", "large") == approx((49.8, 50.2), abs=0.05)


# Credit2


def test_credit2_short_waits() -> None:
    for changes, longest in (({}, 2.5), (under("credit2", "xen4.4.1"), 2.0), (under("credit"), 90)):
        measured = run("credit2-short-waits", changes)
        assert max(longest_wait_ms(measured, domain) for domain in "abcde") == approx(longest, rel=0.01)


def test_credit2_affinity_by_generation() -> None:
    pinned = {f"domain.{domain}.affinity": "0" for domain in "abcde"}
    for generation, idle in (("xen4.4.1", 0), ("xen4.17", 100)):
        measured = run("credit2-short-waits", pinned | under("credit2", generation))
        assert of_pcpus(measured, "idle") == approx([0, idle], abs=0.05)


def test_credit2_charged() -> None:
    assert gotten(run("credit2-charged"), "thief", "honest") == approx((50, 50), abs=0.1)
    assert gotten(run("credit2-charged", under("credit")), "thief", "honest") == approx((90, 10), abs=0.1)


def test_credit2_cap() -> None:
    capped = run("credit2-cap", decisions=True)
    assert gotten(capped, "capped") == approx((10.0,), abs=0.02)
    assert longest_absence_ms(capped) == approx(9, rel=0.01)
    assert longest_absence_ms(run("credit2-cap", under("credit"), decisions=True)) == approx(270, rel=0.01)


def test_credit2_light_weight() -> None:
    for changes, longest in (({}, 15.5), ({"domain.light.weight": 256}, 0), (under("credit"), 0)):
        measured = run("credit2-light-weight", changes)
        assert longest_wait_ms(measured, "light") == approx(longest, rel=0.01)
        assert gotten(measured, "light") == approx((4.0,), abs=0.01)
    assert run("credit2-light-weight")["light.entitlement"].mean == approx(5.9, rel=0.01)


def test_credit2_ratelimit() -> None:
    assert run("credit2-ratelimit")["web.wait_p99"].mean == approx(8300, rel=0.02)
    assert run("credit2-ratelimit", {"host.ratelimit_us": 0})["web.wait_p99"].mean == approx(700, rel=0.02)
    assert run("credit2-ratelimit", under("credit"))["web.wait_p99"].mean == approx(970, rel=0.02)


def test_credit2_driver_domain() -> None:
    unlimited, heavier, quieter = {"host.ratelimit_us": 0}, {"domain.web.weight": 512}, {"client.c.rate": 1000}
    for changes, median, tail in (
        ({}, 0.951, 2.28),
        (unlimited, 0.274, 3.45),
        (unlimited | heavier, 0.205, 0.961),
        (quieter, 0.946, 1.78),
        (unlimited | quieter, 0.198, 0.293),
    ):
        measured = run("credit2-driver-domain", changes)
        assert measured["c.response_p50"].mean == approx(median, rel=0.02)
        assert measured["c.response_p99"].mean == approx(tail, rel=0.02)
    assert gotten(run("credit2-driver-domain"), "dom0", "web") == approx((14.5, 27.6), rel=0.02)
    assert gotten(run("credit2-driver-domain", unlimited), "dom0", "web") == approx((24.0, 31.2), rel=0.02)


def test_credit2_run_queues() -> None:
    assert gotten(run("credit2-run-queues"), *ABC) == approx((90.5, 55.0, 54.5), abs=0.05)
    assert gotten(run("credit2-run-queues", {"host.cpus_per_socket": 2}), *ABC) == approx((66.9, 66.6, 66.5), abs=0.05)


def test_credit2_cold_caches() -> None:
    for changes, lost in (({}, 5.39), ({"host.ratelimit_us": 10_000}, 0.54), (under("credit"), 0.18)):
        assert overhead(run("credit2-cold-caches", changes)) == approx(lost, rel=0.05)


def test_credit2_extreme_weights() -> None:
    weighted = run("credit2-extreme-weights")
    assert gotten(weighted, "light") == approx((4.76,), rel=0.01)
    assert weighted["light.entitlement"].mean == approx(0.39, rel=0.02)
    assert gotten(run("credit2-extreme-weights", under("credit")), "light") == approx((0.6,), rel=0.05)


# Enhanced


def test_enhanced_long_burst() -> None:
    assert longest_wait_ms(run("enhanced-long-burst"), "long") == approx(3, rel=0.01)
    assert longest_wait_ms(run("enhanced-long-burst", under("credit", "xen4.4.1")), "long") == approx(34, rel=0.01)


def test_enhanced_turns() -> None:
    for changes, longest in (({}, 72), (under("credit", "xen4.4.1"), 132)):
        measured = run("enhanced-turns", changes)
        assert max(longest_wait_ms(measured, domain) for domain in ABC) == approx(longest, rel=0.01)
        assert longest_wait_ms(measured, "sleeper") == 0


def test_enhanced_starved() -> None:
    starved = run("enhanced-starved")
    assert gotten(starved, "player") == (0,)
    assert starved["player.waited"].mean == 100
    for changes in ({"host.boost": "qualifies"}, {"host.pick": "best"}, under("credit", "xen4.4.1")):
        assert gotten(run("enhanced-starved", changes), "player") == approx((9.09,), abs=0.01)
    longer = {"domain.player.app.0.run": "12ms", "domain.player.app.0.period": "60ms"}
    assert longest_wait_ms(run("enhanced-starved", longer), "player") == 0


def test_enhanced_balance() -> None:
    assert gotten(run("enhanced-balance"), *ABC) == approx((50, 100, 50), abs=0.05)
    for changes in ({"host.steal": "credit"}, under("credit", "xen4.4.1")):
        assert gotten(run("enhanced-balance", changes), *ABC) == approx((66.8, 66.5, 66.7), abs=0.05)


# Null


def test_null_isolation() -> None:
    alone = run("null-isolation")
    assert longest_wait_ms(alone, "job") == 0
    assert alone["job.failed"].mean == 0
    assert alone["job.response_p99"].mean == approx(5.0, rel=0.01)
    shared = run("null-isolation", under("credit"))
    assert gotten(shared, "job") == approx((40.1,), abs=0.05)
    # Deadlines, of which more pass than jobs are complete.
    assert shared["job.failed"].mean == 909


def test_null_no_decisions() -> None:
    measured = run("null-no-decisions")
    assert of_pcpus(measured, "decisions") == [0, 0, 0, 0]
    assert overhead(measured) == 0
    credit2 = run("null-no-decisions", under("credit2"))
    assert sum(of_pcpus(credit2, "decisions")) == approx(400, rel=0.01)
    assert overhead(credit2) == approx(0.003, rel=0.05)


def test_null_overcommit() -> None:
    assert gotten(run("null-overcommit"), *ABC) == (100, 100, 0)
    assert min(gotten(run("null-overcommit", under("credit")), *ABC)) == approx(66.5, abs=0.05)


def test_null_idle_holder() -> None:
    measured = run("null-idle-holder")
    assert gotten(measured, "sleeper", "first", "second") == approx((1, 100, 0), abs=0.01)
    assert measured["second.waited"].mean == 100
    assert max(of_pcpus(measured, "idle")) == approx(99, abs=0.05)
    assert gotten(run("null-idle-holder", under("credit")), "second") == approx((100,), abs=0.05)


# Round-robin


def test_round_robin_even() -> None:
    assert gotten(run("round-robin-even"), *ABC) == approx((66.7, 66.6, 66.7), abs=0.05)
    assert gotten(run("round-robin-even", under("sedf")), *ABC) == approx((50, 100, 50), abs=0.05)


def test_round_robin_bounded_wait() -> None:
    for changes, longest in (({}, 20), ({"host.slice_ms": 2}, 4), (under("credit"), 90)):
        measured = run("round-robin-bounded-wait", changes)
        assert max(longest_wait_ms(measured, domain) for domain in "abcde") == approx(longest, rel=0.01)


def test_round_robin_waking() -> None:
    assert run("round-robin-waking")["player.wait_p50"].mean == approx(29_800, rel=0.01)
    assert longest_wait_ms(run("round-robin-waking", under("credit")), "player") == 0


def test_round_robin_per_vcpu() -> None:
    assert gotten(run("round-robin-per-vcpu"), "small", "large") == approx((25, 75), abs=0.05)
    credit = run("round-robin-per-vcpu", under("credit", "xen3.3.0"))
    assert gotten(credit, "small", "large") == approx((49.8, 50.2), abs=0.05)


def test_round_robin_migrations() -> None:
    for changes, migrations, lost in (({}, 200, 0.54), ({"host.slice_ms": 1}, 2000, 5.38), (under("credit"), 11, 0.1)):
        measured = run("round-robin-migrations", changes)
        assert sum(measured[f"{domain}.migrations"].mean for domain in ABC) == approx(migrations, rel=0.05)
        assert overhead(measured) == approx(lost, rel=0.05)
