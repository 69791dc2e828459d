"""`vcpulab lint`: each rule finds the problem of a scenario, and shows a fix with its effect."""

import contextlib
import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import tomli_w

import vcpulab
from support import ROOT, Vcpulab
from vcpulab import Effort
from vcpulab.advice.compare import compare
from vcpulab.advice.fixes import fix
from vcpulab.advice.lint.catalogue import RULES, settings
from vcpulab.advice.lint.foreign import without_foreign
from vcpulab.advice.lint.host import Finding, Host
from vcpulab.advice.lint.lint import Advice, lint
from vcpulab.advice.lint.rule import PARTS
from vcpulab.errors import ScenarioError

HOG = {"app": [{"kind": "hog"}]}
WEB = {"nic": {"driver_domain": "dom0"}, "app": [{"kind": "web-server"}]}
SENDER = {"nic": {"driver_domain": "dom0"}, "app": [{"kind": "tcp-sender"}]}
DOM0 = {"driver_domain": True}
USERS = {"users": {"kind": "closed-loop", "server": "web", "users": 20}}


def advice_on(
    path: Path, host: Mapping[str, Any], domains: Mapping[str, Any], clients: Mapping[str, Any] | None = None
) -> dict[str, Advice]:
    document: dict[str, Any] = {
        "name": "planted",
        "run": {"duration": "1s", "warmup": "100ms"},
        "host": {"profile": "generic", "pcpus": 1, "scheduler": "credit", **host},
        "domain": domains,
    }
    if clients is not None:
        document["client"] = clients
    file = path / "planted.toml"
    file.write_text(tomli_w.dumps(document))
    return {one.finding.rule: one for one in lint(file, effort=Effort(replications=3))[1]}


def commands(advice: Advice) -> list[str]:
    return [step.text for step in advice.steps() if step.how == "run"]


def test_inverted_weights(tmp_path: Path) -> None:
    domains = {"dom0": DOM0 | {"weight": 100}, "web": WEB | {"weight": 700}, "batch": HOG}
    found = advice_on(tmp_path, {"scheduler": "credit2"}, domains, USERS)
    assert list(found) == ["inverted-weights"]
    assert found["inverted-weights"].finding.changes == {"domain.dom0.weight": 1400}
    assert commands(found["inverted-weights"]) == ["xl sched-credit2 -d Domain-0 -w 1400"]
    assert advice_on(tmp_path, {"scheduler": "credit2"}, domains | {"dom0": DOM0 | {"weight": 700}}, USERS) == {}


def test_a_driver_domain_that_uses_less_than_its_share_waits_for_something_else(tmp_path: Path) -> None:
    """It has less weight than the web server, and gets a tenth of what this entitles it to."""
    web = {"app": [{"kind": "web-server", "request_cpu": "500us"}], "weight": 1024}
    domains = {"dom0": DOM0, "web": WEB | web, **{f"batch{index}": HOG for index in range(4)}}
    host = {"pcpus": 2, "ratelimit_us": 4000}
    found = advice_on(tmp_path, host, domains, asked(800))
    assert set(found) == {"ratelimit-too-long"}, "a limit of 4 ms, four times the default, shows in its waits"
    assert "the rate limit of 4.00 ms keeps it from preempting" in found["ratelimit-too-long"].finding.reason
    scenario = vcpulab.Scenario.load(tmp_path / "planted.toml").with_run(replications=2)
    heavy, sooner = vcpulab.run_many(
        [scenario.change({"domain.dom0.weight": 4096}), scenario.change({"host.ratelimit_us": 100})]
    )
    assert heavy["dom0.waited"].mean > 90
    assert sooner["dom0.waited"].mean < 60


def test_a_gain_that_is_large_and_uncertain_is_looked_at_again(tmp_path: Path) -> None:
    """A driver domain with too little weight for a burst now and then: some replications suffer, others do not."""
    app = {"kind": "web-server", "request_cpu": "300us"}
    behind = {"nic": {"driver_domain": "net"}, "weight": 1024, "app": [app]}
    domains = {"dom0": {"weight": 512}, "net": DOM0 | {"weight": 96}, "web": behind, "wiki": behind}
    domains |= {name: HOG | {"weight": 1024} for name in ("ci1", "ci2")}
    clients = {
        name: {"kind": "open-loop", "server": server, "rate": rate, "file_size": "20KB"}
        for name, server, rate in (("devs", "web", 350), ("docs", "wiki", 100))
    }
    found = advice_on(tmp_path, {}, domains, clients)["inverted-weights"]
    scenario = vcpulab.Scenario.load(tmp_path / "planted.toml").with_run(replications=3)
    before, after = vcpulab.run_many([scenario, scenario.change(found.finding.changes)])
    verdicts = [{c.address.name: c.verdict for c in those} for those in (compare(before, after), found.effect or ())]
    assert [one["devs.response_p99"] for one in verdicts] == ["unclear", "improves"]
    fixed = fix(tmp_path / "planted.toml", replications=3)
    assert fixed.measured["devs.response_p99"].verdict == "improves", "as was seen when it was made"


def test_what_costs_more_to_mend_than_it_gains_is_left_alone(tmp_path: Path) -> None:
    """On one pCPU a driver domain that waits takes more packets at a time: throughput grows (Cherkasova 2007)."""
    domains = {"dom0": DOM0 | {"weight": 64}, "web": WEB | {"weight": 1000}}
    users = {"users": {"kind": "closed-loop", "server": "web", "users": 100}}
    host = {"scheduler": "credit2", "ratelimit_us": 0}
    assert "inverted-weights" not in advice_on(tmp_path, host, domains, users)
    scenario = vcpulab.Scenario.load(tmp_path / "planted.toml").with_run(replications=3)
    looked_at = Host(scenario, vcpulab.run(scenario))
    looks_odd = [finding for finding in settings(looked_at) if finding.rule == "inverted-weights"]
    before, after = vcpulab.run_many([scenario, scenario.change(looks_odd[0].changes)])
    (throughput,) = vcpulab.compare(before, after, ["users.throughput"])
    assert throughput.verdict == "regresses"


def test_what_one_client_gains_and_two_others_lose_is_no_mend() -> None:
    document: dict[str, Any] = {
        "name": "three",
        "run": {"duration": "300ms", "warmup": "100ms", "replications": 4},
        "host": {"profile": "generic", "pcpus": 1, "scheduler": "credit2"},
        "domain": {"dom0": DOM0 | {"weight": 4096}, **{f"web{index}": WEBSITE for index in (1, 2, 3)}},
        "client": {f"u{index}": {"kind": "closed-loop", "server": f"web{index}", "users": 20} for index in (1, 2, 3)},
    }
    scenario = vcpulab.Scenario.from_toml(tomli_w.dumps(document))
    before, after = vcpulab.run_many([scenario, scenario.change({"domain.web1.weight": 1024})])
    advice = Advice(Finding("domain.web1.weight", "it is light"), compare(before, after), None, after)
    assert {c.verdict for c in advice.main_effects()} == {"improves", "regresses"}
    assert not advice.helps
    assert "the fix regresses more than it improves" in advice.against


def test_starving_caps(tmp_path: Path) -> None:
    found = advice_on(tmp_path, {}, {"dom0": DOM0 | {"cap": 5}, "web": WEB}, USERS)["starving-cap"]
    assert found.finding.path == "domain.dom0.cap"
    assert [c.verdict for c in found.main_effects() if c.address.name == "users.throughput"] == ["improves"]
    assert commands(found) == ["xl sched-credit -d Domain-0 -c 0"]
    contract = {"dom0": {}, "batch": HOG | {"cap": 40}}
    assert advice_on(tmp_path, {"pcpus": 2}, contract) == {}, "nobody waits for it: its cap is a contract"
    with pytest.raises(vcpulab.ScenarioError, match="cap"):
        advice_on(tmp_path, {"pcpus": 2}, {"dom0": {}, "batch": HOG | {"cap": 150}})
    busy = {"dom0": {}, "batch": HOG | {"cap": 40}, "other": HOG}
    assert advice_on(tmp_path, {}, busy) == {}, "a cap that shares what is scarce is what caps are for"


@pytest.mark.parametrize(
    ("scheduler", "names", "reservation"),
    [
        ("rtds", ("budget_us", "period_us"), (8000, 10000)),
        ("sedf", ("slice", "period"), (80_000_000, 100_000_000)),
        ("atropos", ("nat_slice", "nat_period"), (80_000_000, 100_000_000)),
    ],
)
def test_overbooked_reservations(
    tmp_path: Path, scheduler: str, names: tuple[str, str], reservation: tuple[int, int]
) -> None:
    reserved = dict(zip(names, reservation, strict=True))
    if scheduler == "atropos":
        reserved["latency"] = reserved["nat_period"]  # its default is longer
    domains = {"a": HOG | reserved, "b": HOG | reserved}
    found = advice_on(tmp_path, {"scheduler": scheduler}, domains)["overbooked-reservations"]
    assert "add up to 1.60 pCPUs (a 0.80, b 0.80); there are 1" in found.finding.reason
    assert found.finding.changes == {f"domain.{name}.{names[0]}": reservation[0] * 10 // 16 for name in "ab"}
    assert "overbooked-reservations" not in advice_on(tmp_path, {"scheduler": scheduler, "pcpus": 2}, domains)


def test_batch_work_gives_its_reservation_up_first(tmp_path: Path) -> None:
    job = {"app": [{"kind": "periodic", "run": "6ms", "period": "20ms"}], "budget_us": 6000, "period_us": 20000}
    domains = {"press": job | {"extratime": 0}, "sweep": HOG | {"budget_us": 90000, "period_us": 100000}}
    found = advice_on(tmp_path, {"scheduler": "rtds"}, domains)["overbooked-reservations"]
    assert found.finding.changes == {"domain.sweep.budget_us": 70000}
    pinned = {name: HOG | {"affinity": "0", "budget_us": 6000, "period_us": 10000} for name in "ab"}
    found = advice_on(tmp_path, {"scheduler": "rtds", "pcpus": 2}, pinned)["overbooked-reservations"]
    assert "they are pinned to 0: at least one is not kept" in found.finding.reason


def test_nobody_moves_those_who_were_put_together(tmp_path: Path) -> None:
    """As in scenarios/claims/bvt-no-balancing.toml."""
    quiet = {"app": [{"kind": "periodic", "run": "1ms", "period": "100ms"}]}
    domains = {"a": HOG, "quiet": quiet, "b": HOG}
    found = advice_on(tmp_path, {"scheduler": "bvt", "pcpus": 2}, domains)["placed-together"]
    assert list(found.finding.changes.values()) == ["1"]
    assert "pCPU 1 idle for 99 %" in found.finding.reason
    assert advice_on(tmp_path, {"scheduler": "credit", "pcpus": 2}, domains) == {}


def test_pinning(tmp_path: Path) -> None:
    host = {"pcpus": 4, "pcpus_per_socket": 2}
    assert advice_on(tmp_path, host, {"a": HOG | {"affinity": "0-1"}, "b": HOG | {"affinity": "2"}}) == {}, "none waits"
    crowded = {"a": HOG | {"affinity": "0"}, "b": HOG | {"affinity": "0"}, "c": {"affinity": "1-3", **HOG}}
    found = advice_on(tmp_path, host, crowded)["pinning-leaves-idle"]
    assert "its vCPUs wait there for 50 % of the time" in found.finding.reason
    assert [c.verdict for c in found.main_effects() if c.address.name.endswith("throughput")] == [
        "improves",
        "improves",
    ]
    double = {name: HOG | {"vcpus": 2, "affinity": "0", "app": [{"kind": "hog", "instance": 2}]} for name in "ab"}
    found = advice_on(tmp_path, host, double | {"c": crowded["c"]})["pinning-leaves-idle"]
    assert "its vCPUs wait there for 75 % of the time" in found.finding.reason, "each for so long, not both together"
    protected = crowded | {"c": {"affinity": "1-3", "app": [{"kind": "periodic", "run": "1ms", "period": "10ms"}]}}
    assert advice_on(tmp_path, host, protected) == {}, "batch work is kept away from who has deadlines"
    assert advice_on(tmp_path, host, {"a": HOG | {"vcpus": 2, "affinity": ["0", "1"]}, "b": HOG}) == {}


def test_few_driver_vcpus(tmp_path: Path) -> None:
    senders = {f"g{index}": SENDER for index in range(3)}
    host = {"pcpus": 6, "profile": "lp200r"}
    found = advice_on(tmp_path, host, {"dom0": DOM0, **senders})["few-driver-vcpus"]
    assert found.finding.changes == {
        "domain.dom0.vcpus": 2,
        "domain.g1.nic.driver_vcpu": 1,
    }
    (boot,) = (step.text for step in found.steps() if step.how == "boot")
    assert "dom0_max_vcpus=2" in boot
    (placed,) = commands(found)
    assert "xl domid g1" in placed
    assert "taskset -pc 1" in placed


def test_back_ends_all_on_one_vcpu(tmp_path: Path) -> None:
    senders = {f"g{index}": SENDER for index in range(3)}
    found = advice_on(tmp_path, {"pcpus": 6, "profile": "lp200r"}, {"dom0": DOM0 | {"vcpus": 3}, **senders})
    (finding,) = (one.finding for one in found.values())
    assert finding.rule == "saturated-driver-vcpu"
    assert "one of its 3 vCPUs" in finding.reason
    assert finding.changes == {f"domain.g{index}.nic.driver_vcpu": index for index in (1, 2)}


WEBSITE = {"nic": {"driver_domain": "dom0"}, "app": [{"kind": "web-server", "request_cpu": "2ms", "workers": 16}]}
BATCH = {f"batch{index}": HOG for index in range(3)}


def asked(rate: int, server: str = "web") -> dict[str, Any]:
    return {"visitors": {"kind": "open-loop", "server": server, "rate": rate, "file_size": "4KB"}}


def test_a_service_of_equal_advance_and_a_long_allowance(tmp_path: Path) -> None:
    domains = {"dom0": DOM0 | {"mcu_adv": 2}, "web": WEBSITE, **BATCH}
    found = advice_on(tmp_path, {"scheduler": "bvt"}, domains, asked(200))["waits-behind-equals"]
    assert found.finding.changes == {"domain.web.mcu_adv": 1}
    assert [c.verdict for c in found.main_effects() if c.address.name == "visitors.response_p99"] == ["improves"]
    others = {f"domain.batch{index}.mcu_adv": 30 for index in range(3)}
    assert found.finding.otherwise[0] == {"domain.web.mcu_adv": 1, **others}
    least = domains | {"web": WEBSITE | {"mcu_adv": 1}, **{name: HOG | {"mcu_adv": 1} for name in ("batch0", "batch1")}}
    del least["batch2"]
    found = advice_on(tmp_path, {"scheduler": "bvt"}, least, asked(250))["waits-behind-equals"]
    assert found.finding.changes["domain.web.mcu_adv"] == 1, "as small as it can be ..."
    assert found.finding.changes["domain.batch0.mcu_adv"] > 8, "... so theirs have to grow"
    assert found.helps
    found = advice_on(tmp_path, {"scheduler": "bvt", "ctx_allow": 100_000_000}, domains, asked(40))[
        "ratelimit-too-long"
    ]
    assert found.finding.changes == {"host.ctx_allow": 1_000_000}, "5 ms leave it late"


def test_services_that_wait_behind_a_crowd_are_mended_alike(tmp_path: Path) -> None:
    """Each of the crowd makes for a small part of the waits."""
    crowd = {f"batch{index}": HOG for index in range(14)}
    domains = {"dom0": DOM0 | {"weight": 2048}, "web1": WEBSITE, "web2": WEBSITE, **crowd}
    clients = {f"v{index}": asked(150, f"web{index}")["visitors"] for index in (1, 2)}
    found = advice_on(tmp_path, {"pcpus": 2}, domains, clients)
    assert set(found) == {"waits-behind-equals"}
    weights = found["waits-behind-equals"].finding.changes
    assert list(weights) == ["domain.web1.weight", "domain.web2.weight"]
    assert "(as v2)" in found["waits-behind-equals"].finding.reason


def test_what_harms_somebody_is_mended_otherwise(tmp_path: Path) -> None:
    """Extra time for the file server starves the driver domain beside it: a larger slice does not."""
    dom0 = DOM0 | {"period": 20_000_000, "slice": 8_000_000}
    nas = WEBSITE | {"period": 50_000_000, "slice": 5_000_000, "extratime": 0}
    domains = {"dom0": dom0, "web": nas, "conv": HOG, "other": HOG}
    found = advice_on(tmp_path, {"scheduler": "sedf", "pcpus": 2}, domains, asked(80))["reservation-too-small"]
    assert found.helps
    assert list(found.finding.changes) == ["domain.web.slice"]


@pytest.mark.parametrize("scheduler", ["credit", "credit2"])
def test_a_service_that_waits_behind_equals(tmp_path: Path, scheduler: str) -> None:
    domains = {"dom0": DOM0 | {"weight": 1024}, "web": WEBSITE, **BATCH}
    found = advice_on(tmp_path, {"scheduler": scheduler}, domains, asked(250))["waits-behind-equals"]
    assert found.finding.path == "domain.web.weight"
    assert "batch" in found.finding.reason
    assert [c.verdict for c in found.main_effects() if c.address.name == "visitors.response_p99"] == ["improves"]
    heavy = domains | {"web": WEBSITE | {"weight": 2048}, "dom0": DOM0 | {"weight": 4096}}
    assert advice_on(tmp_path, {"scheduler": scheduler}, heavy, asked(100)) == {}


def test_a_service_that_its_cap_throttles(tmp_path: Path) -> None:
    domains = {"dom0": DOM0, "web": WEBSITE | {"cap": 20}, "batch": HOG}
    found = advice_on(tmp_path, {"pcpus": 4, "scheduler": "credit2"}, domains, asked(150))
    assert found["cap-throttles"].finding.changes == {"domain.web.cap": 60}


def test_reservations_that_do_not_do(tmp_path: Path) -> None:
    job = {"app": [{"kind": "periodic", "run": "3ms", "period": "10ms"}]}
    small = {"job": job | {"budget_us": 2000, "period_us": 10000, "extratime": 0}}
    advice = advice_on(tmp_path, {"scheduler": "rtds", "pcpus": 2}, small)["reservation-too-small"]
    assert advice.finding.changes == {"domain.job.extratime": 1}
    wide = {"job": small["job"] | {"vcpus": 4}}
    advice = advice_on(tmp_path, {"scheduler": "rtds", "pcpus": 4}, wide)["reservation-too-small"]
    assert "(20 % of a pCPU for each vCPU) reserved, uses 20 %" in advice.finding.reason
    reserved = {"slice": 2_000_000, "period": 20_000_000, "extratime": 1}
    domains = {"dom0": DOM0 | reserved, "web": WEBSITE | reserved, "batch": HOG, "other": HOG}
    advice = advice_on(tmp_path, {"scheduler": "sedf"}, domains, asked(350))["reservation-too-small"]
    assert advice.finding.path == "domain.web.slice"
    gaps = WEBSITE | {"slice": 300_000_000, "period": 600_000_000, "extratime": 0}
    late = advice_on(tmp_path, {"scheduler": "sedf"}, domains | {"web": gaps}, asked(100))
    assert late["reservation-period-too-long"].finding.path == "domain.web.period"


def test_reservations_that_come_at_the_wrong_time(tmp_path: Path) -> None:
    """Dom0 uses a hundredth of what it has reserved. Who wakes up in the period in which he slept has nothing of it."""
    ms = 1_000_000
    reserved = {"period": 20 * ms, "slice": 8 * ms}
    quick = {"app": [{"kind": "web-server", "request_cpu": "500us"}], "slice": 5 * ms, "extratime": 1}
    bank: dict[str, Any] = HOG | {"period": 100 * ms, "slice": 20 * ms, "extratime": 0}
    domains: dict[str, Any] = {"dom0": DOM0 | reserved, "web": WEBSITE | reserved | quick, "bank": bank, "other": HOG}
    found = advice_on(tmp_path, {"scheduler": "sedf"}, domains, asked(100))
    assert set(found) == {"starved", "reservation-period-too-long"}
    assert found["reservation-period-too-long"].finding.changes == {"domain.dom0.extratime": 1}
    assert "or it has slept" in found["reservation-period-too-long"].finding.reason

    domains["dom0"] |= {"extratime": 1}
    domains["bank"] |= {"period": 600 * ms, "slice": 200 * ms}
    found = advice_on(tmp_path, {"scheduler": "sedf"}, domains, asked(100))
    shorter = {"period": 5 * ms, "slice": 2 * ms}
    assert found["late-in-its-period"].finding.changes == {
        f"domain.{domain}.{name}": value for domain in ("web", "dom0") for name, value in shorter.items()
    }
    assert found["late-in-its-period"].helps

    small = WEBSITE | {"period": 20 * ms, "slice": 2 * ms, "extratime": 1}
    batch = {f"b{index}": HOG | {"period": 20 * ms, "slice": index * ms} for index in (12, 14)}
    host, domains = (
        {"scheduler": "sedf", "pcpus": 2},
        {"dom0": DOM0 | reserved | {"extratime": 1}, "web": small, **batch},
    )
    found = advice_on(tmp_path, host, domains, asked(100))
    assert found["reservation-too-small"].finding.otherwise[-1] == {"domain.web.period": 5 * ms}


def test_more_vcpus_than_the_null_scheduler_has_pcpus_for(tmp_path: Path) -> None:
    domains = {"dom0": DOM0 | {"vcpus": 2}, "a": HOG, "web": WEBSITE}
    found = advice_on(tmp_path, {"scheduler": "null", "pcpus": 3}, domains, asked(50))["null-overcommitted"]
    assert "web never runs" in found.finding.reason
    assert found.finding.changes == {"domain.dom0.vcpus": 1}
    nobody_asks = advice_on(tmp_path, {"scheduler": "null", "pcpus": 1}, {"a": HOG, "b": HOG})
    assert set(nobody_asks) == {"starved", "null-overcommitted"}
    assert nobody_asks["null-overcommitted"].finding.changes == {"host.scheduler": "credit2"}


def test_a_pool_with_too_few_pcpus(tmp_path: Path) -> None:
    path = tmp_path / "pools.toml"
    inside = WEBSITE | {"pool": "web"}
    document = {
        "name": "pools",
        "run": {"duration": "1s"},
        "host": {"profile": "generic", "pcpus": 4, "scheduler": "credit"},
        "pool": {"web": {"pcpus": "3", "scheduler": "credit"}},
        "domain": {"dom0": DOM0, "web": inside, "intranet": inside},
        "client": asked(300) | {"staff": {"kind": "open-loop", "server": "intranet", "rate": 250, "file_size": "4KB"}},
    }
    path.write_text(tomli_w.dumps(document))
    (only,) = lint(path, effort=Effort(replications=3))[1]
    assert (only.finding.rule, only.finding.changes) == ("pool-too-small", {"pool.web.pcpus": "2,3"})


def test_limits_that_keep_those_who_wake_waiting(tmp_path: Path) -> None:
    phones = {"nic": {"driver_domain": "dom0"}, "app": [{"kind": "web-server", "request_cpu": "100us"}]}
    domains = {"dom0": DOM0 | {"weight": 2048}, "web": phones | {"weight": 1024}, **BATCH}
    found = advice_on(tmp_path, {"ratelimit_us": 28000, "tslice_ms": 30}, domains, asked(300))
    assert found["ratelimit-too-long"].finding.changes == {"host.ratelimit_us": 1000}
    assert advice_on(tmp_path, {}, domains, asked(300)) == {}


def test_slices_of_those_who_never_block(tmp_path: Path) -> None:
    stress = {"kind": "cpu-stress", "integer_cpu": "2ms", "float_cpu": "2ms"}
    world = {"nic": {"driver_domain": "dom0"}, "app": [{"kind": "web-server", "request_cpu": "100us"}, stress]}
    worlds = {f"w{index}": world for index in range(6)}
    players = {
        f"p{index}": {"kind": "open-loop", "server": f"w{index}", "app": "web-server", "rate": 40, "file_size": "1KB"}
        for index in range(6)
    }
    found = advice_on(tmp_path, {}, {"dom0": DOM0 | {"weight": 2048}, **worlds}, players)["slice-too-long"]
    assert found.finding.changes == {"host.tslice_ms": 2}, "5 ms leave them late"
    first = found.main_effects()[0]
    assert first.address.thing in players, "what those who are late gain comes first"
    assert first.verdict == "improves"


def test_a_guest_that_spins_on_preempted_holders(tmp_path: Path) -> None:
    spin = {"vcpus": 6, "app": [{"kind": "spin", "threads": 6, "section": "10us", "work": "50us"}]}
    found = advice_on(tmp_path, {"pcpus": 3}, {"solver": spin, "batch": HOG})["lock-holder-preemption"]
    assert found.finding.path == "domain.solver.vcpus"
    assert "lock-holder-preemption" not in advice_on(tmp_path, {"pcpus": 8}, {"solver": spin, "batch": HOG})


def test_what_no_scheduler_cures(tmp_path: Path) -> None:
    full = advice_on(tmp_path, {"pcpus": 2}, {"dom0": DOM0, "web": WEBSITE | {"vcpus": 2}}, asked(1500))
    assert full["capacity-exceeded"].finding.changes == {}
    files = {"nic": {"driver_domain": "dom0"}, "disk": {"driver_domain": "dom0"}, "memory": "64MiB"}
    reader = {"app": [{"kind": "web-server", "request_cpu": "200us", "workers": 16, "files_per_size": 1000}]}
    readers = {"readers": {"kind": "open-loop", "server": "web", "rate": 300, "mix": "specweb99"}}
    disk = advice_on(tmp_path, {"pcpus": 4}, {"dom0": DOM0, "web": files | reader}, readers)
    assert "outside the scheduler" in disk["outside-disk"].finding.reason
    link = {"branch": {"bits_per_s": 4_000_000}}
    path = tmp_path / "branch.toml"
    document = tomllib.loads((tmp_path / "planted.toml").read_text())
    document["domain"]["web"] = WEBSITE
    document |= {"client_machine": link, "client": {"v": asked(100)["visitors"] | {"machine": "branch"}}}
    document["client"]["v"] |= {"file_size": "20KB"}
    path.write_text(tomli_w.dumps(document))
    (only,) = lint(path, effort=Effort(replications=3))[1]
    assert (only.finding.rule, only.finding.changes) == ("outside-client", {})
    assert "link of branch" in only.finding.reason
    assert "100 % used" in only.finding.reason, "and not more than there is"


def test_more_users_than_connections(tmp_path: Path) -> None:
    """The first are answered at once and keep their connections; the host idles, and most requests fail."""
    web = {"nic": {"driver_domain": "dom0"}, "app": [{"kind": "web-server", "connections_max": 8}]}
    users = {"users": {"kind": "closed-loop", "server": "web", "users": 24, "think": "100ms"}}
    found = advice_on(tmp_path, {"pcpus": 2}, {"dom0": DOM0, "web": web}, users)["outside-client"].finding
    assert found.path == "domain.web.app"
    assert re.match(r"[67]\d % of the requests of users fail: the bottleneck of web is outside", found.reason)
    assert "connections of web (connections), 100 % used" in found.reason


def test_short_slices(tmp_path: Path) -> None:
    reserved = {"period_us": 60, "budget_us": 27}
    found = advice_on(tmp_path, {"scheduler": "rtds"}, {"a": HOG | reserved, "b": HOG | reserved})["short-slice"]
    changed = found.finding.changes
    assert changed["domain.b.budget_us"] / changed["domain.b.period_us"] == pytest.approx(0.45, abs=0.01)
    assert {c.address.name: c.verdict for c in found.main_effects()[:2]} == dict.fromkeys(
        ("a.throughput", "b.throughput"), "improves"
    )
    assert found.helps, "neither takes from the other"
    free = {"decision_ns": 0, "context_switch_ns": 0, "l2_miss_ps": 0, "l3_miss_ps": 0}
    host = {"scheduler": "rtds", "costs": free}
    assert "short-slice" not in advice_on(tmp_path, host, {"a": HOG | reserved, "b": HOG | reserved})


def test_parameters_of_another_scheduler(tmp_path: Path, command: Vcpulab) -> None:
    found = advice_on(tmp_path, {"scheduler": "credit2", "tslice_ms": 5}, {"a": HOG, "b": HOG})
    assert found["foreign-parameter"].finding.changes == {"host.scheduler": "credit", "host.tslice_ms": 5}
    assert "boot" in [step.how for step in found["foreign-parameter"].steps()]
    pooled = {"pool": "rt", "budget_us": 5000, **HOG}
    text = tomli_w.dumps(
        {
            "name": "pools",
            "run": {"duration": "200ms"},
            "host": {"profile": "exact", "pcpus": 2, "scheduler": "rtds"},
            "pool": {"rt": {"pcpus": "1", "scheduler": "credit"}},
            "domain": {"a": HOG, "b": pooled},
        }
    )
    (tmp_path / "pools.toml").write_text(text)
    result = command("lint", "pools.toml", "--format", "json")
    assert result.returncode == 1, result.stderr
    (only,) = json.loads(result.stdout)["files"]["pools.toml"]
    assert (only["rule"], only["field"]) == ("foreign-parameter", "domain.b.budget_us")
    assert only["changes"] == {"pool.rt.scheduler": "rtds", "domain.b.budget_us": 5000}
    wrong = text.replace('kind = "hog"', 'kind = "pig"', 1)
    (tmp_path / "pools.toml").write_text(wrong)
    result = command("lint", "pools.toml")
    assert result.returncode == 2
    assert "pig" in result.stderr


_SHOWN = {
    "kvm-web-beside-batch.toml": {("late-wake-ups", "host.base_slice_us")},
    "latency-beside-hogs.toml": {("more-vcpus-than-threads", "domain.batch.vcpus")},
    "desktop.toml": {("waits-behind-equals", "domain.game.weight")},
    "web-server.toml": {("capacity-exceeded", "domain.web.vcpus")},
}
"""What scenarios are there to show."""


def _is_short(path: Path) -> bool:
    scenario = vcpulab.Scenario.load(path)
    return scenario.duration_ns * scenario.replications <= 50_000_000_000


_SHORT = [path for path in sorted(ROOT.glob("scenarios/*.toml")) if _is_short(path)]


@pytest.mark.slow
@pytest.mark.parametrize("path", _SHORT, ids=lambda path: path.stem)
def test_shipped_scenarios_are_clean_but_for_what_they_show(path: Path) -> None:
    findings = {(result.finding.rule, result.finding.path) for result in lint(path, effort=Effort(replications=2))[1]}
    assert findings == _SHOWN.get(path.name, set())


def test_every_rule_has_a_whole_page() -> None:
    for rule in RULES.values():
        assert tuple(rule.parts()) == PARTS, rule.name
        assert all(rule.parts().values()), rule.name
        assert "{" not in rule.page(), rule.name
    assert "more than 80 % of its cap" in RULES["cap-throttles"].page(), "constants stand in it as values"


def test_rules_are_listed_explained_and_selected(command: Vcpulab, tmp_path: Path) -> None:
    listed = json.loads(command("lint", "--rules", "--format", "json").stdout)
    assert [one["rule"] for one in listed] == list(RULES)
    assert command("lint", "--explain", "cap-throttles").stdout == RULES["cap-throttles"].page()
    wrong = command("lint", "--explain", "cap-throtles")
    assert (wrong.returncode, "did you mean `cap-throttles`?" in wrong.stderr) == (2, True)
    domains = {"dom0": {}, "a": HOG | {"affinity": "0"}, "b": HOG | {"affinity": "0"}}
    assert set(advice_on(tmp_path, {"pcpus": 2}, domains)) == {"pinning-leaves-idle"}
    file = tmp_path / "planted.toml"
    assert {one.finding.rule for one in vcpulab.lint(file, ["pinn*"], replications=3)} == {"pinning-leaves-idle"}
    assert list(vcpulab.lint(file, ["starved", "cap-throttles"], replications=3)) == []
    with pytest.raises(vcpulab.RequestError, match="did you mean `starved`"):
        vcpulab.lint(file, ["starve"])
    assert command("lint").returncode == 2


def test_lint_on_the_command_line(command: Vcpulab, tmp_path: Path) -> None:
    clean = command("lint", "hogs.toml", "--replications", "2")
    assert (clean.returncode, clean.stdout) == (0, "hogs.toml: nothing found\n")
    for arguments, said in (
        (("missing.toml",), "missing.toml: no such file"),
        (("hogs.toml", "--replications", "1"), "--replications: found `1`; allowed: an integer from 2 to 10000"),
        (("hogs.toml", "--jobs", "-1"), "--jobs"),
    ):
        result = command("lint", *arguments)
        assert result.returncode == 2
        assert said in result.stderr
        assert "Traceback" not in result.stderr
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    assert command("lint", "binary.toml").returncode == 2


DAMAGED: tuple[Any, ...] = (0, -1, 10**18, 1.5, float("nan"), "", "x", True, [], {}, [[1]], {"a": 1})
"""Values that fields of other types have in damaged files."""


def test_a_damaged_file_is_refused_as_by_check(tmp_path: Path) -> None:
    """Whichever table or value is another one: also whole tables, of which `lint` looks for parameters."""
    host = {"profile": "exact", "scheduler": "credit", "pcpus": 2}
    pool = {"p": {"pcpus": "1", "scheduler": "credit2"}}
    domain = {"a": {"weight": 1, "app": [{"kind": "hog"}]}, "b": {"pool": "p", "cap": 1}}
    document: dict[str, Any] = {"host": host, "pool": pool, "domain": domain}
    path = tmp_path / "damaged.toml"
    for place in ("host", "host.scheduler", "pool", "pool.p", "domain", "domain.b", "domain.b.pool"):
        steps = place.split(".")
        for value in DAMAGED:
            damaged = json.loads(json.dumps(document))
            table = damaged
            for step in steps[:-1]:
                table = table[step]
            table[steps[-1]] = value
            path.write_text(tomli_w.dumps(damaged))
            with contextlib.suppress(ScenarioError):
                without_foreign(path)


def test_beside_equals_of_the_greatest_weight_theirs_are_lowered(tmp_path: Path) -> None:
    job = {"app": [{"kind": "periodic", "run": "6ms", "period": "10ms"}], "weight": 65535}
    domains = {"job": job, **{f"batch{n}": HOG | {"weight": 65535} for n in (1, 2)}}
    finding = advice_on(tmp_path, {"scheduler": "credit2"}, domains)["waits-behind-equals"].finding
    assert finding.changes.keys() == {"domain.batch1.weight", "domain.batch2.weight"}
    assert max(finding.changes.values()) < 65535
