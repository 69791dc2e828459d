"""`vcpulab lint`: each rule finds what was planted, says what mending it does, and how to mend it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import tomli_w

import vcpulab
from support import ROOT, Vcpulab
from vcpulab.advice.lint.lint import Advice, lint

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
    return {one.finding.rule: one for one in lint(file, replications=3)[1]}


def commands(advice: Advice) -> list[str]:
    return [step.text for step in advice.steps]


def test_inverted_weights(tmp_path: Path) -> None:
    domains = {"dom0": DOM0 | {"weight": 100}, "web": WEB | {"weight": 700}, "batch": HOG}
    found = advice_on(tmp_path, {"scheduler": "credit2"}, domains, USERS)
    assert list(found) == ["inverted-weights"]
    assert found["inverted-weights"].finding.changes == {"domain.dom0.weight": 1400}
    assert commands(found["inverted-weights"]) == ["xl sched-credit2 -d Domain-0 -w 1400"]
    assert advice_on(tmp_path, {"scheduler": "credit2"}, domains | {"dom0": DOM0 | {"weight": 700}}, USERS) == {}


def test_a_mend_that_costs_more_than_it_gains_is_called_so(tmp_path: Path) -> None:
    """On one pCPU a driver domain that waits takes more packets at a time: throughput grows (Cherkasova 2007)."""
    domains = {"dom0": DOM0 | {"weight": 64}, "web": WEB | {"weight": 1000}}
    users = {"users": {"kind": "closed-loop", "server": "web", "users": 100}}
    host = {"scheduler": "credit2", "ratelimit_us": 0}
    found = advice_on(tmp_path, host, domains, users)["inverted-weights"]
    assert found.told()[0].address.of == "app"
    assert found.makes_worse


def test_starving_caps(tmp_path: Path) -> None:
    found = advice_on(tmp_path, {}, {"dom0": DOM0 | {"cap": 5}, "web": WEB}, USERS)["starving-cap"]
    assert found.finding.path == "domain.dom0.cap"
    assert [c.verdict for c in found.told() if c.address.name == "users.throughput"] == ["improves"]
    assert commands(found) == ["xl sched-credit -d Domain-0 -c 0"]
    idle = advice_on(tmp_path, {"pcpus": 2}, {"dom0": {}, "batch": HOG | {"cap": 40}})["starving-cap"]
    assert "uses all of its 40 % while pCPUs idle" in idle.finding.reason
    with pytest.raises(vcpulab.ScenarioError, match="cap"):
        advice_on(tmp_path, {"pcpus": 2}, {"dom0": {}, "batch": HOG | {"cap": 150}})
    busy = {"dom0": {}, "batch": HOG | {"cap": 40}, "other": HOG}
    assert "starving-cap" not in advice_on(tmp_path, {}, busy), "a cap that shares what is scarce is what caps are for"


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
    domains = {"a": HOG | reserved, "b": HOG | reserved}
    found = advice_on(tmp_path, {"scheduler": scheduler}, domains)["overbooked-reservations"]
    assert "add up to 1.60 pCPUs (a 0.80, b 0.80); there are 1" in found.finding.reason
    assert found.finding.changes == {f"domain.{name}.{names[0]}": reservation[0] * 10 // 16 for name in "ab"}
    assert "overbooked-reservations" not in advice_on(tmp_path, {"scheduler": scheduler, "pcpus": 2}, domains)


def test_pinning(tmp_path: Path) -> None:
    host = {"pcpus": 4, "pcpus_per_socket": 2}
    unused = advice_on(tmp_path, host, {"a": HOG | {"affinity": "0-1"}, "b": HOG | {"affinity": "2"}})
    assert "no vCPU may run on pCPU 3" in unused["pinning-leaves-idle"].finding.reason
    crowded = {"a": HOG | {"affinity": "0"}, "b": HOG | {"affinity": "0"}, "c": {"affinity": "1-3", **HOG}}
    found = advice_on(tmp_path, host, crowded)["pinning-leaves-idle"]
    assert "waits there for" in found.finding.reason
    assert [c.verdict for c in found.told() if c.address.name.endswith("throughput")] == ["improves", "improves"]
    across = advice_on(tmp_path, host, {"a": HOG | {"vcpus": 2, "affinity": ["0", "2"]}, "b": HOG})
    assert across["pinning-crosses-sockets"].finding.changes == {"domain.a.affinity": "0-1"}
    assert commands(across["pinning-crosses-sockets"]) == ["xl vcpu-pin a all 0-1"]
    assert advice_on(tmp_path, host, {"a": HOG | {"vcpus": 2, "affinity": ["0", "1"]}, "b": HOG}) == {}


def test_few_driver_vcpus(tmp_path: Path) -> None:
    senders = {f"g{index}": SENDER for index in range(3)}
    host = {"pcpus": 6, "profile": "lp200r"}
    found = advice_on(tmp_path, host, {"dom0": DOM0, **senders})["few-driver-vcpus"]
    assert found.finding.changes == {
        "domain.dom0.vcpus": 2,
        "domain.g0.nic.driver_vcpu": 0,
        "domain.g1.nic.driver_vcpu": 1,
        "domain.g2.nic.driver_vcpu": 0,
    }
    assert commands(found) == ["dom0_max_vcpus=2"]


def test_short_slices(tmp_path: Path) -> None:
    reserved = {"period_us": 200, "budget_us": 90}
    found = advice_on(tmp_path, {"scheduler": "rtds"}, {"a": HOG | reserved, "b": HOG | reserved})["short-slice"]
    changed = found.finding.changes
    assert changed["domain.b.budget_us"] / changed["domain.b.period_us"] == pytest.approx(0.45, abs=0.01)
    assert [c.verdict for c in found.told() if c.address.name == "b.throughput"] == ["improves"]
    free = {"decision_ns": 0, "context_switch_ns": 0, "l2_miss_ps": 0, "l3_miss_ps": 0}
    host = {"scheduler": "rtds", "costs": free}
    assert "short-slice" not in advice_on(tmp_path, host, {"a": HOG | reserved, "b": HOG | reserved})


def test_parameters_of_another_scheduler(tmp_path: Path, command: Vcpulab) -> None:
    found = advice_on(tmp_path, {"scheduler": "credit2", "tslice_ms": 5}, {"a": HOG, "b": HOG})
    assert found["foreign-parameter"].finding.changes == {"host.scheduler": "credit", "host.tslice_ms": 5}
    assert "boot" in [step.how for step in found["foreign-parameter"].steps]
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
    (only,) = json.loads(result.stdout)["pools.toml"]
    assert (only["rule"], only["field"]) == ("foreign-parameter", "domain.b.budget_us")
    assert only["changes"] == {"pool.rt.scheduler": "rtds", "domain.b.budget_us": 5000}
    wrong = text.replace('kind = "hog"', 'kind = "pig"', 1)
    (tmp_path / "pools.toml").write_text(wrong)
    result = command("lint", "pools.toml")
    assert result.returncode == 2
    assert "pig" in result.stderr


def test_shipped_scenarios_are_clean() -> None:
    for path in sorted(ROOT.glob("scenarios/*.toml")):
        scenario = vcpulab.Scenario.load(path)
        if scenario.duration_ns * scenario.replications <= 50_000_000_000:
            assert [one.finding for one in lint(path, replications=2)[1]] == [], path


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
