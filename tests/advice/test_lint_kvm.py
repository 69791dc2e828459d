"""Rules of lint on KVM hosts: each finds the problem of a scenario, is silent without one, and its fix helps."""

import re
from typing import Any

import pytest

import vcpulab
from vcpulab import Effort
from vcpulab.advice.capacity import stations
from vcpulab.advice.explanation import explain
from vcpulab.advice.lint.catalogue import findings, settings
from vcpulab.advice.lint.host import Finding, Host
from vcpulab.advice.lint.lint import advise
from vcpulab.advice.tuning.headline import needs_restart

WEB = {"kind": "web-server"}


def busy(vcpus: int = 1, **fields: Any) -> dict[str, Any]:
    return {"vcpus": vcpus, "app": [{"kind": "hog", "instance": vcpus}], **fields}


def web(vcpus: int = 1, request_cpu: str = "1ms", **fields: Any) -> dict[str, Any]:
    return {"vcpus": vcpus, "nic": {}, "app": [{**WEB, "workers": 8, "request_cpu": request_cpu}], **fields}


def asked(rate: float, server: str = "web") -> dict[str, Any]:
    return {"users": {"kind": "open-loop", "server": server, "rate": rate}}


def scenario(
    domains: dict[str, Any], clients: dict[str, Any] | None = None, groups: dict[str, Any] | None = None, **host: Any
) -> vcpulab.Scenario:
    document = {
        "name": "planted",
        "run": {"duration": "1s", "warmup": "200ms", "replications": 2},
        "host": {"hypervisor": "kvm", "profile": "generic", "pcpus": 2, "scheduler": "linux-eevdf", **host},
        "domain": domains,
        **({"client": clients} if clients else {}),
        **({"cgroup": groups} if groups else {}),
    }
    return vcpulab.Scenario.from_dict(document)


def on(host_scenario: vcpulab.Scenario) -> dict[str, Finding]:
    return {one.rule: one for one in findings(Host(host_scenario, vcpulab.run(host_scenario)))}


def fixed(host_scenario: vcpulab.Scenario, finding: Finding, which: int = 0) -> vcpulab.Run:
    return vcpulab.run(host_scenario.change([finding.changes, *finding.otherwise][which]))


# ---- quotas ----

LIMITED = {"global_quota_us": 100_000, "global_period_us": 100_000}


def test_a_quota_of_the_whole_vm_freezes_it() -> None:
    host_scenario = scenario({"vm": busy(8, **LIMITED)}, pcpus=8)
    finding = on(host_scenario)["vm-quota-freezes"]
    assert finding.path == "domain.vm.global_quota_us"
    assert "its 8 vCPUs share 100 ms in every 100 ms" in finding.reason
    assert "stands still for up to 87.5 ms" in finding.reason
    assert "it is used up in 100 % of the periods" in finding.reason
    assert finding.changes == {
        "domain.vm.vcpu_quota_us": 12_500,
        "domain.vm.global_quota_us": None,
        "domain.vm.global_period_us": None,
    }
    assert finding.otherwise == ({"domain.vm.global_period_us": 20_000, "domain.vm.global_quota_us": 20_000},)
    # The limit stays what it was.
    for which in (0, 1):
        assert fixed(host_scenario, finding, which)["vm.gotten"].mean == pytest.approx(100, rel=0.1)


def test_a_quota_smaller_than_a_slice_for_each_vcpu_is_told() -> None:
    host_scenario = scenario({"vm": busy(4, global_quota_us=10_000)}, pcpus=4)
    assert "10.0 ms are less than a slice for each of them" in on(host_scenario)["vm-quota-freezes"].reason


@pytest.mark.parametrize(
    "vm",
    [
        busy(1, global_quota_us=50_000),
        busy(4, global_quota_us=400_000),
        busy(4, vcpu_quota_us=25_000),
        {"vcpus": 4, **LIMITED},
    ],
)
def test_other_limits_freeze_nobody_else(vm: dict[str, Any]) -> None:
    assert "vm-quota-freezes" not in on(scenario({"vm": vm}, pcpus=4))


def served(quota_us: int) -> vcpulab.Scenario:
    """A VM whose vCPUs are all busy, and whose vhost thread needs CPU time beside them."""
    vm = {"vcpus": 4, "nic": {}, "app": [{**WEB, "workers": 32}, {"kind": "hog", "instance": 4}]}
    return scenario({"vm": {**vm, "global_quota_us": quota_us}}, asked(1000, "vm"), pcpus=8)


def test_a_quota_that_leaves_nothing_for_the_threads_beside_its_vcpus() -> None:
    host_scenario = served(400_000)
    finding = on(host_scenario)["vm-quota-freezes"]
    assert "its quota of 4.00 pCPUs is no more than its 4 vCPUs use, and its vhost thread needs" in finding.reason
    assert finding.changes["domain.vm.vcpu_quota_us"] == 100_000
    explained = str(explain(host_scenario, "users.response_p99 < 1ms", effort=Effort(replications=2)))
    assert "quota-throttles" in explained
    assert "setvcpus" not in explained
    assert (
        fixed(host_scenario, finding)["users.response_p99"].mean
        < 0.9 * vcpulab.run(host_scenario)["users.response_p99"].mean
    )
    assert "vm-quota-freezes" not in on(served(500_000))


def test_a_service_that_its_quota_throttles() -> None:
    host_scenario = scenario({"web": web(vcpu_quota_us=20_000)}, asked(300))
    finding = on(host_scenario)["quota-throttles"]
    assert re.search(r"web is throttled in \d+ % of the periods by its quota of 0\.200 pCPUs", finding.reason)
    assert "(vcpu_quota_us), while the pCPUs idle" in finding.reason
    assert finding.changes == {"domain.web.vcpu_quota_us": 60_000}
    assert (
        fixed(host_scenario, finding)["users.response_p99"].mean
        < 0.2 * vcpulab.run(host_scenario)["users.response_p99"].mean
    )


def test_a_quota_of_each_vcpu_is_compared_with_the_vcpu_that_works() -> None:
    """A server of a single task keeps one of its four vCPUs at the quota, and the VM far below that of all four."""
    server = web(4, vcpu_quota_us=20_000)
    server["app"][0]["workers"] = 1
    host = scenario({"web": server, **{f"batch{n}": busy(1) for n in range(2)}}, asked(300))
    run = vcpulab.run(host)
    by_rule = {one.rule: one for one in findings(Host(host, run))}
    assert "its quota of 0.200 pCPUs for each vCPU (vcpu_quota_us)" in by_rule["quota-throttles"].reason
    assert "waits-behind-equals" not in by_rule
    assert stations(run, ["web"])[0].kind == "quota"
    explained = str(vcpulab.explain(host, "users.response_p99", replications=2))
    assert "waits for its quota or a pCPU" in explained
    assert "web waits for its quota or a pCPU, batch" in explained


# ---- weights ----


def test_a_large_vm_with_light_vcpus() -> None:
    domains = {"web": web(4, "2ms"), **{f"batch{n}": busy(1) for n in range(4)}}
    host_scenario = scenario(domains, asked(800))
    findings = on(host_scenario)
    light = next(one for one in findings.values() if one.path == "domain.web.weight")
    assert light.rule in ("light-vcpus", "waits-behind-equals")
    rules = [one for one in _every(host_scenario) if one.rule == "light-vcpus"]
    assert rules[0].changes == {"domain.web.weight": 400}
    assert "weight 100 for 4 vCPUs is 25.0 for each, beside 100 of batch0 to batch3" in rules[0].reason
    assert (
        fixed(host_scenario, rules[0])["users.throughput"].mean
        > 1.3 * vcpulab.run(host_scenario)["users.throughput"].mean
    )
    fair = scenario({**domains, "web": web(4, "2ms", weight=400)}, asked(800))
    assert not [one for one in _every(fair) if one.rule == "light-vcpus"]


def test_a_raised_weight_counts_for_each_vcpu_from_7_3_on() -> None:
    domains = {"web": web(1, "1ms"), "large": busy(4, weight=400)}
    rule = "weight-per-busy-vcpu"
    host_scenario = scenario(domains, asked(400), generation="7.3")
    raised = on(host_scenario)[rule]
    assert raised.changes == {"domain.large.weight": 100}
    assert "weight 400 counts for each of its busy vCPUs, of 4, beside 100 of web" in raised.reason
    assert (
        fixed(host_scenario, raised)["users.throughput"].mean
        > 1.1 * vcpulab.run(host_scenario)["users.throughput"].mean
    )
    before = scenario(domains, asked(400), generation="7.2")
    assert rule not in [finding.rule for finding in _every(before)]
    lowered = scenario({**domains, "large": busy(4, weight=100)}, asked(400), generation="7.3")
    assert rule not in [finding.rule for finding in _every(lowered)]


def _every(host_scenario: vcpulab.Scenario) -> list[Finding]:
    return list(settings(Host(host_scenario, vcpulab.run(host_scenario))))


def test_a_mended_weight_is_one_that_linux_takes() -> None:
    domains = {"web": web(1, "1ms"), **{f"batch{n}": busy(2, weight=9000) for n in range(2)}}
    every = [one for one in on(scenario(domains, asked(300))).values() if one.path == "domain.web.weight"]
    assert every
    for one in every:
        assert all(value <= 10_000 for value in one.changes.values())


def test_all_vms_weigh_as_one_beside_services() -> None:
    domains = {**{f"vm{n}": busy(1) for n in range(6)}, "backup": busy(2, daemon=True)}
    host_scenario = scenario(domains)
    finding = on(host_scenario)["machines-weigh-as-one"]
    assert finding.path == 'cgroup."machine.slice".weight'
    assert finding.changes == {'cgroup."machine.slice".weight': 600}
    assert "all 6 VMs in it weigh 100 together, beside the slice of backup" in finding.reason
    before, after = vcpulab.run(host_scenario), fixed(host_scenario, finding)
    assert before["vm0.gotten"].mean == pytest.approx(100 / 6, rel=0.25)
    assert after["vm0.gotten"].mean == pytest.approx(200 * 6 / 7 / 6, rel=0.25)
    weighted = scenario(domains, groups={"machine.slice": {"weight": 600}})
    assert "machines-weigh-as-one" not in on(weighted)
    quiet = scenario({**domains, "backup": {"daemon": True}})
    assert "machines-weigh-as-one" not in on(quiet)


def test_bounds_know_cpusets() -> None:
    """What is in a group with two pCPUs has no more than these."""
    vm = {**busy(4), "cgroup": "machine.slice"}
    of = {"a": vm, "b": vm, "d": {**busy(2), "daemon": True}}
    host_scenario = scenario(of, groups={"machine.slice": {"cpus": "0-1"}}, pcpus=4)
    run = vcpulab.run(host_scenario)
    assert [run[f"{name}.gotten"].mean for name in of] == pytest.approx([100, 100, 200], abs=2)
    assert Host(host_scenario, run).affinity("a") == [[0, 1]] * 4


# ---- threads ----


def test_emulator_threads_on_the_vcpus_pcpus() -> None:
    domains = {"web": web(1, "100us", affinity="0"), "batch": busy(3)}
    host_scenario = scenario(domains, asked(4000), pcpus=4)
    findings = on(host_scenario)
    assert findings["emulator-beside-vcpus"].changes == {"domain.web.emulator_affinity": "1-3"}
    assert "its vCPUs are pinned to pCPU 0" in findings["emulator-beside-vcpus"].reason
    apart = scenario({**domains, "web": {**domains["web"], "emulator_affinity": "1-3"}}, asked(4000), pcpus=4)
    assert "emulator-beside-vcpus" not in on(apart)
    everywhere = scenario({**domains, "batch": busy(3, affinity="1-3")}, asked(4000), pcpus=4)
    assert "emulator-beside-vcpus" not in on(everywhere), "there is no other place"


def test_a_vhost_thread_that_wakes_late_is_helped_by_a_weight() -> None:
    """It waits for a small part of the time, and yet for several times as long as it works."""
    step = {"event": [{"run": "6ms"}, {"sleep": "2ms"}]}
    batch = {"vcpus": 1, "app": [{"kind": "phases", "phase": [step]}]}
    domains = {"web": web(2, "50us"), "batch": {**batch, "count": 10}}
    host_scenario = scenario(domains, asked(200), pcpus=4, base_slice_us=700, hz=100)
    explanation = explain(host_scenario, "users.response_p95 < 2ms", effort=Effort(replications=6))
    assert not explanation.explained[0].met
    (advice,) = [one for one in explanation.advice if one.finding.rule == "late-wake-ups"]
    assert "the vhost thread of web waits for" in advice.finding.reason
    assert advice.finding.changes == {"domain.web.weight": 400}
    assert advice.helps
    assert not advice.misses
    assert explanation.outlook() == []


def test_a_vcpu_that_is_hardly_used_is_not_said_to_be_too_few() -> None:
    host_scenario = scenario({"web": web(1, "200us"), "other": busy(1)}, asked(300), pcpus=4)
    explanation = explain(host_scenario, "users.response_p99 < 0.1ms", effort=Effort(replications=3))
    assert not explanation.explained[0].met
    assert {one.finding.rule for one in explanation.advice}.isdisjoint({"too-few-vcpus", "capacity-exceeded"})
    full = explain(
        scenario({"web": web(1, "2ms")}, asked(470), pcpus=4), "users.response_p99 < 5ms", effort=Effort(replications=3)
    )
    assert [one.finding.rule for one in full.advice] == ["too-few-vcpus"]
    assert "saturates its vCPUs" in full.advice[0].finding.reason


def test_real_time_vcpus_on_shared_pcpus() -> None:
    domains = {"rt": busy(1, sched_policy="fifo", affinity="0"), "other": busy(1, affinity="0-1"), "third": busy(1)}
    host_scenario = scenario(domains)
    finding = on(host_scenario)["real-time-vcpus"]
    assert finding.changes == {"domain.rt.sched_policy": None}
    assert "SCHED_FIFO on pCPU 0, which are not theirs alone" in finding.reason
    assert vcpulab.run(host_scenario)["rt.gotten"].mean > 94 > fixed(host_scenario, finding)["rt.gotten"].mean + 5
    alone = {**domains, "other": busy(1, affinity="1"), "third": busy(1, affinity="1")}
    assert "real-time-vcpus" not in on(scenario(alone))


def test_a_starved_vhost_thread_is_told_of_its_vm() -> None:
    domains = {"rt": busy(2, sched_policy="fifo"), "web": web(1, "100us")}
    findings = on(scenario(domains, asked(500), fair_server_runtime_us=0))
    assert "web" in findings["starved"].path


def test_sixteen_vcpus_for_each_pcpu() -> None:
    domains = {"wide": {"vcpus": 12, "app": [{"kind": "hog"}]}, **{f"vm{n}": busy(2) for n in range(12)}}
    host_scenario = scenario(domains)
    finding = on(host_scenario)["many-vcpus-per-pcpu"]
    assert "36 vCPUs on 2 pCPUs, 18.0 for each" in finding.reason
    assert finding.changes == {"domain.wide.vcpus": 1}
    assert "many-vcpus-per-pcpu" not in on(scenario(domains, pcpus=4))
    asleep = {name: {"vcpus": table["vcpus"]} for name, table in domains.items()}
    assert "many-vcpus-per-pcpu" not in on(scenario(asleep))


def test_halt_polling_on_a_full_host() -> None:
    domains = {f"vm{n}": {"vcpus": 1, "app": [{"kind": "periodic", "run": "300us", "period": "1ms"}]} for n in range(6)}
    host_scenario = scenario(domains)
    finding = on(host_scenario)["halt-polling-when-full"]
    assert finding.changes == {"host.halt_poll_us": 0}
    assert "keep their pCPU for up to 200 µs after a halt" in finding.reason
    assert "halt-polling-when-full" not in on(scenario(domains, halt_poll_us=0))
    assert "halt-polling-when-full" not in on(scenario(domains, pcpus=8))
    never_asleep = {f"vm{n}": busy(1) for n in range(6)}
    assert "halt-polling-when-full" not in on(scenario(never_asleep)), "who never halts does not poll"


# ---- what is said of a KVM host ----


@pytest.mark.parametrize("scheduler", ["linux-cfs", "linux-eevdf"])
def test_no_finding_speaks_of_xen(scheduler: str) -> None:
    domains = {
        "web": web(4, "1ms"),
        **{f"batch{n}": busy(2) for n in range(4)},
        "backup": busy(1, daemon=True),
    }
    host_scenario = scenario(domains, asked(900), scheduler=scheduler)
    found = findings(Host(host_scenario, vcpulab.run(host_scenario)))
    assert found
    for one in found:
        assert not [word for word in ("dom0", "Dom0", "Pool-0", "netback", " cap ", "Xen") if word in one.reason]


# ---- pins ----


def overlapping(*masks: str, rate: float = 300) -> vcpulab.Scenario:
    """Services on a host that idles, each with a vCPU for each of the pCPUs that it is pinned to."""
    domains = {f"vm{n}": web(len(mask), affinity=list(mask)) for n, mask in enumerate(masks)}
    clients = {f"u{n}": {"kind": "open-loop", "server": f"vm{n}", "rate": rate} for n in range(len(masks))}
    return scenario(domains, clients, pcpus=8)


def test_pins_that_overlap_are_found_where_they_cost_something() -> None:
    host = overlapping("01", "12", "23", "30")
    finding = on(host)["pins-overlap"]
    assert finding.changes == {f"domain.vm{n}.affinity": "all" for n in (0, 1, 2, 3)}
    before = vcpulab.run(host)["u0.response_p99"].mean
    assert fixed(host, finding)["u0.response_p99"].mean < 0.8 * before
    (advice,) = [one for one in advise(host, effort=Effort(replications=4)) if one.finding.rule == "pins-overlap"]
    assert advice.improves
    assert not advice.against
    assert "pins-overlap" not in on(overlapping("0", "1", "2", "3")), "nobody shares a pCPU"
    assert "pins-overlap" not in on(overlapping("01", "12", rate=20)), "they hardly wait"


# ---- weights of either version of control groups ----


@pytest.mark.parametrize(("cgroups", "most"), [(1, 25_600), (2, 10_000)])
def test_weights_are_offered_up_to_the_greatest_that_the_host_takes(cgroups: int, most: int) -> None:
    host_scenario = scenario({"web": web(4, weight=9000), "batch": busy(1, weight=9000)}, asked(900), cgroups=cgroups)
    host = Host(host_scenario, vcpulab.run(host_scenario))
    assert host.weight_most == most
    weights = [
        value
        for finding in settings(host)
        for changes in (finding.changes, *finding.otherwise)
        for path, value in changes.items()
        if path.endswith("weight")
    ]
    assert max(weights) == most
    for weight in weights:
        host_scenario.change({"domain.web.weight": weight})


# ---- causes beside the late VM ----


def test_the_weight_of_a_slice_decides_beside_other_slices() -> None:
    """The VM has a hundred times the weight of the others, and is alone in a light slice."""
    gold, batch = "machine.slice/machine-gold.slice", "machine.slice/machine-batch.slice"
    domains = {
        "erp": web(request_cpu="4ms", weight=10_000, cgroup=gold),
        **{f"batch{number}": busy(cgroup=batch) for number in range(3)},
    }
    late = scenario(domains, asked(150, "erp"), {batch: {"weight": 400}}, pcpus=1)
    found = on(late)["slice-outweighed"]
    path = f'cgroup."{gold}".weight'
    assert found.path == path
    assert f"outside of the slice {gold}: it weighs 100 beside {batch} (400)" in found.reason
    explained = explain(late, "users.response_p95 < 80ms", effort=Effort(replications=2))
    assert explained.verdict is None
    assert [fix.finding.rule for fix in explained.advice if fix.keeps] == ["slice-outweighed"]
    answer = vcpulab.tune(late, minimise="users.response_p95", trials=16, replications=2)
    assert answer.advised
    assert path in answer.result.best.changes


def test_the_quota_of_a_slice_is_found() -> None:
    office = "machine.slice/machine-office.slice"
    domains = {name: web(2, "4ms", cgroup=office) for name in ("web", "mail")}
    clients = {name: {"kind": "open-loop", "server": name, "rate": 200} for name in domains}
    late = scenario(domains, clients, {office: {"quota_us": 100_000}}, pcpus=8)
    finding = on(late)["slice-quota-throttles"]
    path = f'cgroup."{office}".quota_us'
    assert [finding.changes, *finding.otherwise] == [{path: 200_000}, {path: 300_000}, {path: -1}]
    assert f"the quota of the slice {office} is 1.00 pCPUs, of which the VMs in it (web, mail) get" in finding.reason
    explained = explain(late, "web.response_p95 < 60ms", effort=Effort(replications=2))
    assert explained.verdict is None
    assert "slice-quota-throttles" not in on(scenario(domains, clients, {office: {"quota_us": 600_000}}, pcpus=1))


def test_the_weight_of_a_slice_is_no_cause_inside_of_it() -> None:
    domains = {"web": web(request_cpu="4ms"), **{f"batch{number}": busy() for number in range(3)}}
    findings = on(scenario(domains, asked(150), pcpus=1))
    assert "slice-outweighed" not in findings
    assert "waits-behind-equals" in findings


def test_a_host_thread_that_is_pinned_to_a_busy_pcpu_is_found() -> None:
    domains = {"web": web(2, "200us", emulator_affinity="0"), "batch": busy(affinity="0", weight=10_000)}
    late = scenario(domains, asked(800), pcpus=4)
    finding = on(late)["host-thread-pinned"]
    assert finding.changes == {"domain.web.emulator_affinity": "all"}
    assert "the vhost thread of web waits" in finding.reason
    assert "it is pinned to pCPU 0, while 3 other pCPUs idle" in finding.reason
    p99 = [one["users.response_p99"].mean for one in (vcpulab.run(late), fixed(late, finding), fixed(late, finding, 1))]
    assert max(p99[1:]) < 10 < p99[0]
    assert "host-thread-pinned" not in on(scenario({**domains, "all": busy(4, weight=10_000)}, asked(800), pcpus=4))


def test_isolated_cpus_that_idle_are_named_as_the_cause() -> None:
    domains = {"web": web(2), **{f"batch{number}": busy() for number in range(4)}}
    late = scenario(domains, asked(600), pcpus=8, isolated_cpus="2-7")
    finding = on(late)["isolated-cpus-idle"]
    assert finding.changes == {"host.isolated_cpus": None}
    assert "while pCPU 2-7, which the kernel isolates (isolcpus), idle for 100 %" in finding.reason
    p99 = [one["users.response_p99"].mean for one in (vcpulab.run(late), fixed(late, finding), fixed(late, finding, 1))]
    assert max(p99[1:]) < 20 < p99[0]
    answer = vcpulab.tune(late, minimise="users.response_p99", trials=8, replications=2)
    (restarted,) = [each for each in answer.result.tried if each.changes == finding.changes]
    assert needs_restart(late, restarted.scenario)
    assert not needs_restart(late, late.change({"domain.web.weight": 200}))
    crowded = {**domains, **{f"rt{number}": busy(affinity=str(number)) for number in range(2, 8)}}
    assert "isolated-cpus-idle" not in on(scenario(crowded, asked(600), pcpus=8, isolated_cpus="2-7"))


def test_a_job_that_needs_more_than_the_quota_of_a_period_is_found() -> None:
    late = scenario({"web": web(request_cpu="75ms", global_quota_us=40_000)}, asked(2.3), pcpus=4)
    late = late.change({"client.users.regular": True, "run.duration": "4s"})
    limit = "users.response_p95 < 105ms"
    explained = explain(late, limit, effort=Effort(replications=2))
    (fix,) = [fix for fix in explained.advice if fix.finding.rule == "quota-period"]
    assert fix.keeps
    assert fix.finding.changes == {"domain.web.global_burst_us": 40_000}
    assert "it uses up the 40.0 ms of a period of 100 ms in" in fix.finding.reason


def test_the_cpuset_of_a_slice_that_is_too_small_is_found() -> None:
    office = "machine.slice/machine-office.slice"
    domains = {name: web(2, "4ms", cgroup=office) for name in ("web", "mail")}
    clients = {name: {"kind": "open-loop", "server": name, "rate": 200} for name in domains}
    late = scenario(domains, clients, {office: {"cpus": "0"}}, pcpus=6)
    finding = on(late)["cpuset-too-small"]
    path = f'cgroup."{office}".cpus'
    assert [finding.changes, *finding.otherwise] == [{path: "0-1"}, {path: "0-2"}, {path: "all"}]
    assert (
        f"the cpuset of its control group {office} has 1 pCPU (0) for web, mail, while the other 5 idle"
        in finding.reason
    )
    assert "pinned-together" not in on(late)
    explained = explain(late, "web.response_p95 < 60ms", effort=Effort(replications=2))
    assert explained.verdict is None
    busy_outside = {**domains, "batch": busy(5, weight=10_000)}
    assert "cpuset-too-small" not in on(scenario(busy_outside, clients, {office: {"cpus": "0"}}, pcpus=6))


@pytest.mark.parametrize(
    ("fields", "groups", "path"),
    [
        ({"idle": 1, "weight": 5000}, {}, "domain.web.idle"),
        (
            {"cgroup": "machine.slice/machine-web.slice"},
            {"machine.slice/machine-web.slice": {"idle": True}},
            'cgroup."machine.slice/machine-web.slice".idle',
        ),
    ],
)
def test_a_service_in_the_idle_class_is_found(fields: dict[str, Any], groups: dict[str, Any], path: str) -> None:
    late = scenario({"web": web(**fields), "batch1": busy(), "batch2": busy(2)}, asked(150), groups)
    finding = on(late)["idle-class"]
    assert list(finding.changes) == [path]
    assert "only when nothing else wants it" in finding.reason
    before, after = vcpulab.run(late)["users.throughput"].mean, fixed(late, finding)["users.throughput"].mean
    assert after > 140 > 3 * before


def test_the_fix_that_keeps_the_slo_comes_first() -> None:
    """A weight of the VM helps; only the class of its neighbor is enough."""
    spin = {"vcpus": 2, "sched_policy": "rr", "app": [{"kind": "spin", "instance": 2}]}
    domains = {"plc": spin, "web": web(2, "2ms"), "log": busy(2)}
    late = scenario(domains, asked(200), pcpus=4, scheduler="linux-cfs").change({"run.duration": "2s"})
    explained = explain(late, "users.response_p95 < 10ms", effort=Effort(replications=2))
    rules = [fix.finding.rule for fix in explained.advice if fix.finding.changes]
    assert rules[:2] == ["real-time-vcpus", "waits-behind-equals"]
    assert explained.verdict is None


def test_a_host_thread_that_waits_for_a_real_time_vcpu_is_found() -> None:
    """The vCPUs of the VM hardly wait; nothing reaches them."""
    spin = {"vcpus": 2, "sched_policy": "rr", "app": [{"kind": "spin", "instance": 2}]}
    late = scenario({"plc": spin, "web": web(2, "2ms"), "log": busy(2)}, asked(200), pcpus=4)
    finding = on(late.change({"run.duration": "2s"}))["real-time-vcpus"]
    assert finding.path == "domain.plc.sched_policy"
    assert "vhost thread of web waits for them" in finding.reason


def test_faults_of_the_host_are_no_matter_where_the_slo_is_met() -> None:
    domains = {"web": web(2), "log": busy(4)}
    host_scenario = scenario(domains, asked(300), pcpus=4, base_slice_us=40_000, governor="powersave")
    host_scenario = host_scenario.change(
        {"host.profile": "xeon-gold-6240", "host.topology": {"sockets": 1, "cores": 4, "threads": 1}}
    )
    assert explain(host_scenario, "log.0.throughput > 1", effort=Effort(replications=2)).advice == ()


def test_batch_vms_are_in_the_idle_class_on_purpose() -> None:
    host_scenario = scenario({"web": web(2), "sim": busy(2, idle=1), "batch": busy(2)}, asked(1200))
    assert "idle-class" not in on(host_scenario)


def test_polls_that_never_end_in_a_block_count_against_a_quota() -> None:
    """Each nap is shorter than the polling, so the vCPU has no wake-ups to count them by."""
    naps = {"kind": "periodic", "run": "20us", "period": "200us"}
    gateway = web(request_cpu="300us", vcpu_quota_us=60_000)
    gateway["app"].append(naps)
    late = scenario({"gateway": gateway}, asked(150, "gateway"), halt_poll_us=200)
    finding = on(late)["halt-polling-when-full"]
    assert "gateway uses up its quota" in finding.reason
    assert fixed(late, finding)["users.response_p95"].mean < 2 < vcpulab.run(late)["users.response_p95"].mean
    assert "halt-polling-when-full" not in on(late.change({"host.halt_poll_us": 10}))


@pytest.mark.parametrize(
    ("domains", "groups", "rule", "path"),
    [
        (
            {"web": web(2, "2ms"), "capture": busy(4, sched_policy="fifo")},
            {},
            "real-time-vcpus",
            "domain.capture.sched_policy",
        ),
        (
            {
                **{name: web(1, "2ms", cgroup="machine.slice") for name in ("web", "mail", "wiki", "shop")},
                "backup": busy(4, daemon=True, cgroup="system.slice"),
                "reports": busy(4, cgroup="machine.slice"),
            },
            {"system.slice": {"weight": 1000}},
            "machines-weigh-as-one",
            'cgroup."machine.slice".weight',
        ),
    ],
)
def test_a_cause_in_a_neighbor_or_the_host_is_explained_and_tuned(
    domains: dict[str, Any], groups: dict[str, Any], rule: str, path: str
) -> None:
    """The fix is of a neighbor, or of a control group; `explain`, `lint` and `tune` all know it."""
    late = scenario(domains, asked(150), groups, pcpus=4)
    assert on(late)[rule].path == path
    explained = explain(late, "users.response_p99", effort=Effort(replications=2))
    (fix,) = [fix for fix in explained.advice if fix.finding.rule == rule]
    assert fix.helps
    answer = vcpulab.tune(late, minimise="users.response_p99", trials=16, replications=2)
    (parameter,) = [each for each in answer.space.parameters if each.name == path]
    assert any(trial.picks[parameter.key] != parameter.now for trial in answer.result.tried)
    assert answer.advised
