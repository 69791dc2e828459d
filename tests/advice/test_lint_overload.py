"""What lint says of hosts and VMs with too much to do, and of work that no client asks for."""

from collections.abc import Mapping
from typing import Any

import pytest

import vcpulab
from support import Vcpulab
from vcpulab import Effort
from vcpulab.advice.lint.lint import Advice, advise

SHORT = {"duration": "2s", "warmup": "500ms"}
HOG = {"app": [{"kind": "hog"}]}


def kvm(domains: Mapping[str, Any], clients: Mapping[str, Any] | None = None, pcpus: int = 4) -> vcpulab.Scenario:
    host = {"hypervisor": "kvm", "scheduler": "linux-eevdf", "profile": "generic", "pcpus": pcpus}
    return vcpulab.Scenario.from_dict({"run": SHORT, "host": host, "domain": domains, "client": clients or {}})


def xen(domains: Mapping[str, Any], clients: Mapping[str, Any] | None = None, **host: Any) -> vcpulab.Scenario:
    pcpus = {} if "topology" in host else {"pcpus": 4}
    table = {"profile": "generic", "scheduler": "credit2", **pcpus, **host}
    disks = {"disk": {"ssd": {"driver_domain": "dom0", "kind": "ssd"}}} if "dom0" in domains else {}
    document = {"run": SHORT, "host": table, "domain": domains, "client": clients or {}, **disks}
    return vcpulab.Scenario.from_dict(document)


def periodic(run: str, period: str, instances: int = 1) -> dict[str, Any]:
    return {"kind": "periodic", "run": run, "period": period, "instance": instances}


def found(scenario: vcpulab.Scenario) -> dict[str, Advice]:
    return {one.finding.rule: one for one in advise(scenario, effort=Effort(replications=3))}


# ---- vCPUs that are full, and vCPUs that idle ----


def test_tasks_that_fill_some_vcpus_do_not_exceed_the_capacity_of_all() -> None:
    small = {"count": 6, "app": [periodic("5ms", "20ms")]}
    web = {"vcpus": 4, "app": [periodic("9500us", "10ms", 2)]}
    rules = found(kvm({"web": web, "small": small}))
    assert not rules.keys() & {"capacity-exceeded", "too-few-vcpus"}
    reason = rules["tasks-fill-vcpus"].finding.reason
    assert "2 of the 4 vCPUs of web" in reason
    assert "2 tasks want 95 % of a vCPU each" in reason
    assert "the other 2 idle for 100 %" in reason
    # The same demand in four tasks is no problem.
    spread = {"vcpus": 4, "app": [periodic("4750us", "10ms", 4)]}
    assert not found(kvm({"web": spread, "small": small})).keys() & {"capacity-exceeded", "tasks-fill-vcpus"}


def test_the_capacity_of_a_vm_is_exceeded_where_each_vcpu_is_full() -> None:
    web = {"vcpus": 2, "nic": {}, "app": [{"kind": "web-server", "request_cpu": "10ms", "workers": 8}]}
    crowd = {"crowd": {"kind": "open-loop", "server": "web", "rate": 300}}
    advice = found(kvm({"web": web}, crowd, pcpus=2))
    reason = advice["capacity-exceeded"].finding.reason
    # The words have their proof: queueing analysis.
    assert "no setting of the scheduler changes that: at most" in reason
    assert "of 300 requests/s can be served by host: pCPUs" in reason


def test_no_setting_is_only_said_with_a_bound() -> None:
    """Without a rate that nothing can serve, the sentence does not speak of settings."""
    users = {"http": {"kind": "closed-loop", "server": "web", "users": 60, "think": "200ms"}}
    web = {"vcpus": 1, "nic": {}, "app": [{"kind": "web-server", "request_cpu": "2ms", "workers": 2}]}
    for one in advise(kvm({"web": web}, users, pcpus=1), effort=Effort(replications=3)):
        limit = next(load.limit for load in vcpulab.bounds(kvm({"web": web}, users, pcpus=1)).loads)
        assert ("no setting" in one.finding.reason) == (limit not in ("rate", "customers"))


# ---- a full host ----


def test_a_full_host_is_named_before_a_weight() -> None:
    bench = {"vcpus": 4, "nic": {}, "app": [{"kind": "web-server", "request_cpu": "2ms", "workers": 8}]}
    filler = {"count": 20, "vcpus": 4, "app": [periodic("2ms", "20ms", 4)]}
    http = {"http": {"kind": "open-loop", "server": "bench", "rate": 400}}
    rules = found(kvm({"bench": bench, "filler": filler}, http, pcpus=4))
    assert "waits-behind-equals" not in rules
    reason = rules["host-full"].finding.reason
    assert "4 pCPUs that are 100 % busy: the 21 domains whose work has an end use 4.0 of them" in reason


def test_hogs_do_not_make_a_host_full() -> None:
    bench = {"vcpus": 2, "nic": {}, "app": [{"kind": "web-server", "request_cpu": "2ms", "workers": 8}]}
    http = {"http": {"kind": "open-loop", "server": "bench", "rate": 600}}
    rules = found(kvm({"bench": bench, "batch": {"count": 8, **HOG}}, http, pcpus=2))
    assert "host-full" not in rules
    assert "waits-behind-equals" in rules
    assert "on pCPUs that are 100 % busy" in rules["waits-behind-equals"].finding.reason


# ---- nobody is a client ----


def test_the_control_domain_s_own_work_at_a_part_of_what_it_wants_is_found() -> None:
    dom0 = {"driver_domain": True, "vcpus": 4, "app": [{"kind": "hog", "instance": 4}]}
    rules = found(xen({"dom0": dom0, "qube": {"count": 20, **HOG}}))
    advice = rules["waits-behind-equals"]
    assert advice.finding.path == "domain.dom0.weight"
    assert "of the CPU time that its own work wants" in advice.finding.reason
    # Where it gets most of that, it is left alone.
    assert not found(xen({"dom0": dom0, "qube": {"count": 2, **HOG}}))


def test_a_batch_vm_that_waits_is_left_alone() -> None:
    assert not found(xen({"dom0": {"driver_domain": True}, "batch": {"count": 20, **HOG}}))


@pytest.mark.parametrize("tick", [{}, {"idle_tick": "4ms", "idle_tick_cpu": "20us"}])
def test_a_vcpu_that_waits_for_the_rate_limit_is_found_without_a_client(tick: Mapping[str, str]) -> None:
    read = {
        "kind": "iozone",
        "operation": "random-read",
        "record_size": "4KiB",
        "direct": True,
        "file_size": "64MiB",
    }
    dom0 = {"driver_domain": True, "vcpus": 2, "app": [{"kind": "hog"}, read], **tick}
    rules = found(xen({"dom0": dom0}, pcpus=1, costs={"ssd_latency_ns": 500_000}))
    assert rules["late-wake-ups"].finding.changes == {"host.ratelimit_us": 100}
    assert rules["late-wake-ups"].improves


def test_a_vm_that_its_soft_affinity_packs_is_found() -> None:
    topology = {"sockets": 2, "cores": 4, "threads": 2, "nodes": 2}
    host: dict[str, Any] = {"profile": "xeon-gold-6240", "topology": topology, "scheduler": "credit"}
    big = {"vcpus": 8, "app": [{"kind": "hog", "instance": 8}]}
    packed = xen({"dom0": {"driver_domain": True}, "big": {**big, "soft_affinity": "0-7"}}, **host)
    advice = found(packed)["packed-by-soft-affinity"]
    assert advice.finding.changes == {"domain.big.soft_affinity": None}
    assert advice.helps
    assert "8 busy vCPUs share 4 cores" in advice.finding.reason
    few = {"vcpus": 4, "app": [{"kind": "hog", "instance": 4}], "soft_affinity": "0-7"}
    assert "packed-by-soft-affinity" not in found(xen({"dom0": {"driver_domain": True}, "few": few}, **host))


# ---- weights of driver domains: lint and check say the same ----


def test_a_weight_that_check_warns_of_is_in_lint_too(command: Vcpulab, tmp_path: Any) -> None:
    (tmp_path / "host.toml").write_text(
        """
        [run]
        duration = "1s"
        [host]
        profile = "generic"
        pcpus = 4
        scheduler = "credit"
        [domain.dom0]
        driver_domain = true
        weight = 512
        [domain.net]
        weight = 1000
        nic = { driver_domain = "dom0" }
        app = [{ kind = "web-server" }]
        [client.http]
        kind = "open-loop"
        server = "net"
        rate = 100
        """
    )
    warned = command("check", "host.toml").stderr
    assert "weight 1000 is above 512, that of its driver domain `dom0`" in warned
    for select in ([], ["--select", "inverted-weights"], ["--select", "inv*,starved"]):
        result = command("lint", "host.toml", "--replications", "2", *select)
        assert "weight 1000 is above 512, that of its driver domain `dom0`" in result.stdout
        assert result.returncode == 1
    assert "is above 512" not in command("lint", "host.toml", "--replications", "2", "--select", "starved").stdout
