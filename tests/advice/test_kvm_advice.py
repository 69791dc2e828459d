"""Advice on KVM hosts beside lint: compare with Xen, bounds, tune, capacity, place, explain."""

from pathlib import Path
from typing import Any

import pytest
import tomli_w

import vcpulab
from support import Vcpulab
from vcpulab.advice.bounds import bounds
from vcpulab.advice.bounds.checking import check
from vcpulab.advice.capacity.occupancy import stations
from vcpulab.advice.hypervisor_differences import not_comparable
from vcpulab.advice.tuning.parameters import space
from vcpulab.advice.tuning.prices import kind
from vcpulab.errors import RequestError
from vcpulab.hypervisors.counters import COUNTERS, counted
from vcpulab.results.addresses import find
from vcpulab.results.request_path import paths
from vcpulab.scenario.threads import host_threads

RUN = {"duration": "500ms", "warmup": "200ms", "replications": 2}
WEB = {"kind": "web-server", "request_cpu": "400us", "workers": 8}
HOG = [{"kind": "hog"}]
USERS = {"users": {"kind": "open-loop", "server": "web", "rate": 500}}


def kvm(web: dict[str, Any] | None = None, rest: dict[str, Any] | None = None, **host: Any) -> vcpulab.Scenario:
    document = {
        "name": "kvm",
        "run": RUN,
        "host": {"hypervisor": "kvm", "profile": "generic", "pcpus": 2, "scheduler": "linux-eevdf", **host},
        "domain": {"web": {"vcpus": 2, "nic": {}, "app": [WEB], **(web or {})}, "batch": {"app": HOG}},
        "client": USERS,
        **(rest or {}),
    }
    return vcpulab.Scenario.from_dict(document)


def xen() -> vcpulab.Scenario:
    document = {
        "name": "xen",
        "run": RUN,
        "host": {"profile": "generic", "pcpus": 2, "scheduler": "credit2"},
        "domain": {
            "dom0": {"driver_domain": True},
            "web": {"vcpus": 2, "nic": {"driver_domain": "dom0"}, "app": [WEB]},
            "batch": {"app": HOG},
        },
        "client": USERS,
    }
    return vcpulab.Scenario.from_dict(document)


# ---- beside Xen ----


def test_the_same_vms_under_credit2_and_eevdf(command: Vcpulab, tmp_path: Path) -> None:
    files = [tmp_path / "xen.toml", tmp_path / "kvm.toml"]
    for file, scenario in zip(files, (xen(), kvm({"vcpu_quota_us": 80_000})), strict=True):
        file.write_text(tomli_w.dumps(scenario.to_dict()))
    result = command("compare", *map(str, files), "--replications", "2", "--all")
    assert "users" in result.stdout
    said = [line for line in result.stderr.splitlines() if "not comparable" in line]
    starts = ("the way of packets", "costs: both of the profile generic", "weights: 256 under Xen and 100 under KVM")
    for one, start in zip(said, (*starts, "limits: a cap", "gotten: under KVM it holds"), strict=True):
        assert one.startswith(f"warning: not comparable: {start}"), one
    assert "only in the first, not compared: dom0" in result.stderr


def test_what_does_not_compare_is_about_two_hypervisors() -> None:
    assert not_comparable(kvm(), kvm(scheduler="linux-cfs")) == []
    assert not_comparable(xen(), xen()) == []
    plain = not_comparable(kvm(halt_poll_us=0), xen())
    assert [one.split(":")[0] for one in plain] == ["the way of packets and disk requests", "costs", "weights"]
    assert "100 under KVM and 256 under Xen" in plain[2]
    other = not_comparable(kvm(profile="xeon-gold-6240"), xen())
    assert any("of the profiles xeon-gold-6240 and generic, two machines" in one for one in other)


# ---- bounds ----


@pytest.mark.parametrize(
    ("web", "rest"),
    [
        ({}, {}),
        ({"vcpu_quota_us": 5_000}, {}),
        ({"global_quota_us": 10_000, "global_burst_us": 5_000}, {}),
        ({"disk": {}, "iothreads": 1}, {}),
        ({}, {"client": {"users": {"kind": "closed-loop", "server": "web", "users": 60}}}),
    ],
)
def test_no_schedule_does_better_than_the_bounds(web: dict[str, Any], rest: dict[str, Any]) -> None:
    scenario = kvm(web, rest)
    checked = check(bounds(scenario), vcpulab.run(scenario))
    assert checked
    assert [one for one in checked if not one.holds] == []


def test_a_vhost_thread_bounds_a_vm() -> None:
    many = {"client": {"users": {"kind": "open-loop", "server": "web", "rate": 400_000}}}
    light = {"vcpus": 8, "app": [{**WEB, "request_cpu": "1us", "workers": 64}]}
    scenario = kvm(light, many, pcpus=16)
    (one,) = [load for load in bounds(scenario).loads if load.name == "users"]
    assert one.bottleneck == "vhost thread of web"


# ---- tune ----


def test_parameters_of_a_kvm_host() -> None:
    limited = kvm({"vcpu_quota_us": 50_000, "affinity": "0"}, {}, pcpus=4)
    found = {parameter.name: parameter for parameter in space(limited).parameters}
    assert "host.scheduler" not in found, "another scheduler is another kernel"
    assert "host.hz" not in found
    assert "host.sched_gran" not in found
    labels = {name: [option.label for option in one.options] for name, one in found.items()}
    assert labels["domain.web.weight"] == ["25", "50", "100", "200", "400", "800", "1600", "3200"]
    assert labels["domain.web.vcpu_quota_us"][-3:] == ["80000", "90000", "none"]
    assert labels["host.halt_poll_us"] == ["0", "50", "100", "200", "400"]
    # What it has now is what the kernel has itself on four CPUs.
    slices = found["host.base_slice_us"]
    assert slices.options[slices.now].value == 2100
    assert labels["host.emulator_affinity"] == ["as they are", "on pCPU 1-3"]
    assert kind(found["domain.web.vcpu_quota_us"]) == "cap"
    assert kind(found["host.halt_poll_us"]) == "slice"
    assert kind(found["host.emulator_affinity"]) == "pinning"
    assert "domain.web.global_quota_us" not in found, "it is searched where there is one, or somebody asks"
    asked = {one.name for one in space(limited, only=["web.global_quota_us"]).parameters}
    assert asked == {"domain.web.global_quota_us"}


def test_a_slice_beside_daemons_is_a_parameter() -> None:
    with_daemon = kvm({}, {"domain": {"vm": {"app": HOG}, "backup": {"daemon": True, "app": HOG}}, "client": {}})
    found = {parameter.name: parameter for parameter in space(with_daemon).parameters}
    weights = found['cgroup."machine.slice".weight']
    assert weights.options[weights.now].value == 100
    assert kind(weights) == "weight"
    assert not [name for name in (one.name for one in space(kvm()).parameters) if name.startswith("cgroup")]


def test_tune_types_the_toolstacks_commands(command: Vcpulab, tmp_path: Path) -> None:
    file = tmp_path / "kvm.toml"
    busy = {"batch": {"vcpus": 2, "app": [{"kind": "hog", "instance": 2}]}}
    document = kvm().to_dict()
    document["domain"] |= busy
    document["client"]["users"]["rate"] = 1800
    file.write_text(tomli_w.dumps(document))
    options = ("--vary", "web.weight=100,800", "--minimise", "users.response_p99")
    said = command("tune", str(file), *options, "--toolstack", "proxmox").stdout
    assert "--cpuunits 800" in said
    assert not [word for word in ("dom0", "xl ", "Pool-0", "cap of") if word in said]


# ---- where the time goes ----


def test_threads_of_the_host_are_stations_and_legs() -> None:
    scenario = kvm({"disk": {}, "iothreads": 1}, pcpus=6)
    assert [str(thread) for thread in host_threads(scenario.model)] == ["vhost thread of web", "I/O thread of web"]
    run = vcpulab.run(scenario)
    found = {one.name: one for one in stations(run, ["web"])}
    assert found["vhost thread of web"].kind == "host thread"
    assert "I/O thread of web" in found
    (slow, _) = paths(scenario, find(scenario, "users.response_p99"))
    said = set(slow.legs["said"])
    assert any(one.startswith("vhost thread of web") for one in said)
    assert not [one for one in said if "netback" in one or "netfront" in one or one.startswith("host ")]


def test_a_quota_that_is_used_up_is_the_bottleneck() -> None:
    run = vcpulab.run(kvm({"vcpu_quota_us": 8_000}))
    (full,) = [one for one in stations(run, ["web"]) if one.kind == "quota"]
    assert full.name == "quota of web"
    assert "its quota is 16 %" in full.reason


def test_explain_speaks_of_kvm(command: Vcpulab, tmp_path: Path) -> None:
    file = tmp_path / "kvm.toml"
    file.write_text(tomli_w.dumps(kvm({"vcpu_quota_us": 8_000}).to_dict()))
    said = command("explain", str(file), "--toolstack", "cgroup").stdout
    assert "quota-throttles" in said
    assert "systemctl" not in said, "a limit of each vCPU has no unit"
    assert "/libvirt/vcpu*/cpu.max; do echo '24000 100000' > $f; done" in said
    assert not [word for word in ("dom0", "xl ", "Pool-0", " cap ", "netback") if word in said]


# ---- place ----


def test_daemons_are_on_every_host_and_vms_are_placed() -> None:
    domains = {
        "backup": {"daemon": True, "app": [{"kind": "periodic", "run": "1ms", "period": "10ms"}]},
        **{f"vm{n}": {"app": [{"kind": "periodic", "run": "6ms", "period": "10ms"}]} for n in range(3)},
    }
    scenario = kvm({}, {"domain": domains, "client": {}})
    placed = vcpulab.place([scenario], slo=["failed <= 0"])
    tables = [one.scenario.to_dict()["domain"] for one in placed.hosts]
    assert len(tables) == 2
    assert sorted(name for one in tables for name in one if name != "backup") == ["vm0", "vm1", "vm2"]
    assert all("backup" in one for one in tables)
    with pytest.raises(RequestError, match="its host is a Xen host, and the hosts to place it on are KVM hosts"):
        vcpulab.place([scenario, xen()], slo=["failed <= 0"])


def test_counters_of_kvm() -> None:
    scenario = kvm({"vcpu_quota_us": 8_000, "disk": {}})
    run = vcpulab.run(scenario)
    rows = {row["domain"]: row for row in counted(run).filter(replication=0).iter_rows(named=True)}
    found = {
        one.name: counted(run).filter(replication=0, domain="web").select(one.expression).item()
        for one in COUNTERS["kvm"]
    }
    web, threads = rows["web"], run.df_threads().filter(replication=0)["running_ns"].sum()
    assert found["cpu.time"] == pytest.approx((web["running_ns"] + threads) / web["elapsed_ns"])
    assert found["usage_usec"] == pytest.approx(1e6 * found["cpu.time"])
    assert found["run_delay"] == pytest.approx(1e9 * found["vcpu.N.delay"])
    # Of ten periods a second each ends with the quota used up, in each of two vCPUs' groups that have work.
    assert 8 <= found["nr_throttled"] <= 20
    assert 0 < found["throttled_usec"] < 2e6
    assert found["steal"] < found["cpu some avg"] <= 100
    assert rows["batch"]["throttled_ns"] == rows["host"]["threads_ns"] == 0
