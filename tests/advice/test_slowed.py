"""Time gotten is not work done: the causes of slow services are explained, with their fixes, and counted in bounds."""

import re
from pathlib import Path
from typing import Any

import pytest

import vcpulab
from support import Vcpulab
from vcpulab.advice import core_sharing
from vcpulab.advice.bounds.checking import check
from vcpulab.advice.capacity.words import sentences
from vcpulab.advice.lint.catalogue import RULES
from vcpulab.advice.lint.lint import Advice
from vcpulab.hypervisors.commands import new_steps

HALF = {"smt_compute_beside_compute_percent": 50}
FAR = {"memory_share_memory_percent": 80, "memory_share_compute_percent": 80, "numa_distance": 40}
SLOW = {"min_mhz": 1000}
TWO_CORES = {"sockets": 1, "cores": 2, "threads": 2, "nodes": 1}
FOUR_CORES = TWO_CORES | {"cores": 4}
TWO_NODES = {"sockets": 2, "cores": 2, "threads": 1, "nodes": 2}


def scenario(
    costs: dict[str, int], topology: dict[str, int], domains: dict[str, Any], rate: int = 120, **host: Any
) -> vcpulab.Scenario:
    """A service whose requests take 5 ms of a core of its own, beside others."""
    web = {"nic": {"driver_domain": "dom0"}, "app": [{"kind": "web-server", "request_cpu": "5ms"}]}
    document = {
        "name": "slowed",
        "run": {"duration": "1s", "warmup": "200ms", "replications": 2},
        "host": {"profile": "generic", "scheduler": "credit2", "topology": topology, "costs": costs, **host},
        "domain": {"dom0": {"driver_domain": True}, "web": web | domains.pop("web", {}), **domains},
        "client": {"users": {"kind": "open-loop", "server": "web", "rate": rate, "file_size": "4KB"}},
    }
    return vcpulab.Scenario.from_dict(document)


def hog(vcpus: int = 1, **fields: Any) -> dict[str, Any]:
    return {"vcpus": vcpus, "app": [{"kind": "hog", "instance": vcpus}], **fields}


def advice_on(host: vcpulab.Scenario) -> dict[str, Advice]:
    return {one.finding.rule: one for one in vcpulab.explain(host, "web.response_p99", replications=3).advice}


def test_threads_of_one_core() -> None:
    host = scenario(HALF, FOUR_CORES, {"web": {"affinity": "0"}, "batch": hog(affinity="1")})
    found = advice_on(host)["threads-shared"]
    assert re.search(
        r"web loses \d\d % of its CPU time to busy threads of the same cores, while \d cores idle", found.finding.reason
    )
    assert found.finding.changes == {"domain.web.affinity": "all"}
    assert found.helps
    assert found.after is not None
    assert found.after["users.response_p99"].mean < 30 < vcpulab.run(host)["users.response_p99"].mean


def test_where_no_core_is_idle_others_keep_off() -> None:
    crowd = {f"batch{number}": hog() for number in range(3)}
    found = advice_on(scenario(HALF, TWO_CORES, crowd))["threads-shared"]
    assert found.helps
    assert list(found.finding.changes) in (
        ["host.sched_gran"],
        [f"domain.{one}.affinity" for one in ("web", "dom0", *crowd)],
    )


def test_memory_of_another_node() -> None:
    host = scenario(FAR, TWO_NODES, {"web": {"affinity": "0-1", "memory_nodes": 1}})
    found = advice_on(host)["memory-remote"]
    assert "its memory is on node 1" in found.finding.reason
    soft = scenario(FAR, TWO_NODES, {"web": {"soft_affinity": "0-1", "memory_nodes": 1}})
    fixed = advice_on(soft)["memory-remote"]
    assert fixed.finding.changes == {"domain.web.soft_affinity": "2-3"}
    assert fixed.helps


def test_memory_on_all_nodes_comes_to_one_beside_each_domain() -> None:
    others = {"batch": hog()}
    found = advice_on(scenario(FAR, TWO_NODES, others))["memory-remote"]
    assert "its memory is on the nodes that it may run on" in found.finding.reason
    assert found.helps
    assert set(found.finding.changes.values()) <= {"0-1", "2-3"}


def test_low_clock_rates() -> None:
    host = scenario(SLOW, TWO_CORES, {}, governor="powersave")
    found = advice_on(host)["low-clock-rate"]
    assert "(governor powersave)" in found.finding.reason
    assert found.finding.changes == {"host.governor": "performance"}
    assert found.helps


def test_where_the_time_goes_says_what_is_lost() -> None:
    host = scenario(HALF, TWO_CORES, {"web": {"affinity": "0"}, "batch": hog(affinity="1")})
    (explained,) = vcpulab.explain(host, "users.response_p99", replications=2).explained
    parts = {part.name: part.percent.mean for part in explained.parts}
    assert parts["is work done"] == pytest.approx(parts["lost to busy threads of its core"], rel=0.05), "half each"
    assert parts["computes"] == pytest.approx(
        parts["is work done"] + parts["lost to busy threads of its core"], rel=0.02
    )
    assert "lost to a low clock rate" not in parts


@pytest.mark.parametrize(
    "host",
    [
        scenario({}, TWO_CORES, {"web": {"affinity": "0"}, "batch": hog(affinity="1")}),
        scenario(HALF, FOUR_CORES, {"batch": hog()}),
        scenario(FAR, TWO_NODES, {"web": {"affinity": "0-1", "memory_nodes": 0}}),
        scenario(SLOW, TWO_CORES, {}),
    ],
)
def test_nothing_is_said_where_nothing_is_lost(host: vcpulab.Scenario) -> None:
    found = vcpulab.explain(host, "web.response_p99", replications=2)
    assert not {one.finding.rule for one in found.advice} & {"threads-shared", "memory-remote", "low-clock-rate"}
    assert "is work done" not in {part.name for one in found.explained for part in one.parts}


def test_lint_simulates_the_mend_of_pinned_siblings_where_their_cost_is_known() -> None:
    host = scenario(HALF, FOUR_CORES, {"a": hog(affinity="2"), "b": hog(affinity="3")}, rate=5)
    (found,) = vcpulab.lint(host, replications=3)
    assert (found.finding.rule, found.finding.changes) == ("pinned-to-one-core", {"domain.b.affinity": "0"})
    assert found.helps
    assert {one.verdict for one in found.main_effects() if one.address.name.endswith("throughput")} == {"improves"}


@pytest.mark.parametrize("percent", [50, 65, 90])
def test_bounds_hold_and_are_near_where_threads_share(percent: int) -> None:
    batch = scenario({"smt_compute_beside_compute_percent": percent}, TWO_CORES, {"batch": hog(4)}, rate=1)
    checked = check(vcpulab.bounds(batch), vcpulab.run(batch))
    assert all(one.holds for one in checked)
    hogs = next(one for one in checked if one.name == "batch.0" and one.what == "throughput")
    assert hogs.bound == pytest.approx(1000 * 2 * max(1, 2 * percent / 100))
    assert hogs.simulated.mean > 0.95 * hogs.bound


def test_bounds_hold_where_clocks_rise() -> None:
    turbo = scenario({"cpu_mhz": 3000, "turbo_one_core_mhz": 4500}, TWO_CORES, {"batch": hog(1)}, rate=1)
    checked = check(vcpulab.bounds(turbo), vcpulab.run(turbo))
    assert all(one.holds for one in checked)
    hogs = next(one for one in checked if one.name == "batch.0" and one.what == "throughput")
    assert 1000 < hogs.simulated.mean <= hogs.bound == 1500


def test_a_thread_is_not_a_core_in_bounds_and_capacity() -> None:
    every = {f"smt_{one}_beside_{other}_percent": 65 for one in core_sharing.KINDS for other in core_sharing.KINDS}
    host = scenario(every, TWO_CORES, {"batch": hog(4)}, rate=20)
    pool = next(one for one in vcpulab.bounds(host).stations if one.name == "Pool-0: pCPUs")
    assert pool.servers == pytest.approx(2 * 1.3)
    (note,) = vcpulab.bounds(host).notes
    assert note == (
        "a thread is not a core: the 4 pCPUs are threads of 2 cores, and 2 busy ones of a core do 1.30 times the work "
        "of one"
    )
    grown = vcpulab.capacity(host, "web.rate", highest=20, lowest=20, replications=2, slo=["web.response_p99 < 1s"])
    assert sentences(grown)[-1] == note
    assert grown.as_data()["notes"] == [note]
    unknown = scenario({}, TWO_CORES, {"batch": hog(4)})
    assert "profile generic does not say what busy siblings cost each other" in vcpulab.bounds(unknown).notes[0]
    flat = scenario({}, TWO_CORES | {"threads": 1}, {"batch": hog(2)})
    assert vcpulab.bounds(flat).notes == ()


def test_the_view_of_xenmon_shows_the_work_beside_the_time(command: Vcpulab, tmp_path: Path) -> None:
    pinned = {"web": {"affinity": "0"}, "batch": hog(affinity="1")}
    (tmp_path / "slowed.toml").write_text(scenario(HALF, TWO_CORES, dict(pinned)).text)
    (tmp_path / "alone.toml").write_text(scenario({}, TWO_CORES, dict(pinned)).text)
    shown = command("monitor", "xenmon", "slowed.toml", "--out", "logs").stdout
    assert "Time gotten, which XenMon counts, and the work done in it, which it does not see" in shown
    (batch,) = (line.split() for line in shown.splitlines() if line.strip().startswith("batch"))
    assert float(batch[1]) == pytest.approx(99.9, rel=0.01)
    assert 45 < float(batch[4]) < 75, "gotten ± half width, work"
    assert command("monitor", "xenmon", "alone.toml", "--out", "logs").stdout == ""
    assert re.search(r"gotten +work ", command("run", "slowed.toml").stdout)
    assert "work" not in command("run", "alone.toml", "--all").stdout.partition("Applications")[0]


def test_every_cause_has_what_it_looks_at() -> None:
    assert [name for name in RULES if name in ("threads-shared", "memory-remote", "low-clock-rate")] == [
        "threads-shared",
        "memory-remote",
        "low-clock-rate",
    ]


def test_memory_stays_until_a_domain_is_created_anew() -> None:
    host = scenario(FAR, TWO_NODES, {"batch": hog()})
    moved = host.change({"domain.web.soft_affinity": "0-1", "domain.batch.soft_affinity": "0-1"})
    steps = {step.how: step.text for step in new_steps(host, moved)}
    assert steps["cannot"].startswith("web, batch: memory is on the nodes of the affinity when a domain is created")
    for before, after in (
        (moved, moved.change({"domain.web.soft_affinity": "0"})),
        (scenario({}, TWO_NODES, {"batch": hog()}), scenario({}, TWO_NODES, {"batch": hog(soft_affinity="0-1")})),
        (host, host.change({"domain.web.soft_affinity": "0-1", "domain.web.memory_nodes": [0, 1]})),
    ):
        assert not any("is created; until" in step.text for step in new_steps(before, after))
    assert any("is created; until" in step.text for step in new_steps(host, moved, "libvirt"))


def test_lint_fixes_pinned_siblings(command: Vcpulab, tmp_path: Path) -> None:
    host = scenario(HALF, FOUR_CORES, {"a": hog(affinity="2"), "b": hog(affinity="3")}, rate=5)
    (tmp_path / "pinned.toml").write_text(host.text)
    fixed = command("lint", "pinned.toml", "--fix", "--replications", "3")
    assert fixed.returncode == 0
    assert "pinned.toml: 1 fixed, nothing left" in fixed.stdout
    assert vcpulab.Scenario.load(tmp_path / "pinned.toml").to_dict()["domain"]["b"]["affinity"] == "0"


def test_placing_says_that_a_thread_is_not_a_core(command: Vcpulab, tmp_path: Path) -> None:
    (tmp_path / "two.toml").write_text(scenario({}, TWO_CORES, {"batch": hog()}, rate=20).text)
    placed = command("place", "two.toml", "--slo", "web.response_p99 < 1s", "--replications", "2")
    assert "a thread is not a core: the 4 pCPUs are threads of 2 cores" in placed.stdout
