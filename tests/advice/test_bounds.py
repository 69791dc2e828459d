"""Bounds of scenarios: derived as documented, and never exceeded by a simulation."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import vcpulab
from random_scenarios import random_scenario
from support import ROOT, Vcpulab
from vcpulab.advice.bounds import Bounds, Checked, bounds, check
from vcpulab.advice.bounds.applications import REQUEST_BYTES, application
from vcpulab.advice.bounds.host import Host as XenHost
from vcpulab.advice.bounds.host import NotModelledError, Party
from vcpulab.advice.bounds.kvm import KvmHost
from vcpulab.advice.bounds.packets import EMPTY
from vcpulab.scenario.model import _APPS

STUDIES = ROOT / "evidence" / "vcpulab_evidence" / "studies"
FILES = [
    path
    for path in sorted([*(ROOT / "scenarios").glob("**/*.toml"), *STUDIES.glob("*/*.toml")])
    if path.name != "calibration.toml"
]
ASKED = [path for path in FILES if "\n[client" in path.read_text()]
WITHOUT_OVERHEAD = {
    f"host.costs.{cost}": 0
    for cost in (
        "decision_ns",
        "context_switch_ns",
        "interrupt_ns",
        "driver_upcall_ns",
        "guest_upcall_ns",
        "l2_miss_ps",
        "l3_miss_ps",
        "bounce_ns",
        "cost_spread_percent",
    )
}


def short(path: Path, duration: str = "1s", **changes: object) -> vcpulab.Scenario:
    it = vcpulab.Scenario.load(path)
    warmup = f"{min(it.warmup_ns, 500_000_000)}ns"
    return it.change({"run.duration": duration, "run.warmup": warmup, "run.replications": 2, **changes})


def checked(it: vcpulab.Scenario) -> tuple[Bounds, list[Checked]]:
    found = bounds(it)
    return found, check(found, vcpulab.run(it, waits=False))


def said(found: list[Checked]) -> list[str]:
    return [f"{one.name}: {one.what} {one.simulated} against {one.bound} + {one.slack}" for one in found]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_no_simulation_is_beyond_its_bounds(path: Path) -> None:
    found, rows = checked(short(path))
    assert not said([one for one in rows if not one.holds])
    if path in ASKED:
        clients = vcpulab.Scenario.load(path).to_dict()["client"]
        assert set(clients) <= {load.name for load in found.loads}, found.not_modelled


@pytest.mark.parametrize(
    ("path", "client", "reached"),
    [
        ("scenarios/web-server.toml", "httperf", 0.95),
        ("evidence/vcpulab_evidence/studies/devine2010/web.toml", "jmeter", 0.95),
        ("evidence/vcpulab_evidence/studies/devine2010/vps.toml", "users1", 0.9),
        ("evidence/vcpulab_evidence/studies/devine2010/moss.toml", "jmeter", 0.85),
        ("evidence/vcpulab_evidence/studies/venkatesh2015/disk.toml", "guest.0", 0.95),
        ("evidence/vcpulab_evidence/studies/cherkasova2007/iperf.toml", "dom1.0", 0.95),
        ("evidence/vcpulab_evidence/studies/benevenuto2006/cards.toml", "guest1.0", 0.99),
    ],
)
def test_without_overhead_a_simulation_comes_near_its_bound(path: str, client: str, reached: float) -> None:
    """So the demands are those of the simulator, and not just less."""
    _, rows = checked(short(ROOT / path, "4s", **{"run.warmup": "1s", **WITHOUT_OVERHEAD}))
    throughput = next(one for one in rows if one.name == client and one.what == "throughput")
    assert throughput.holds
    assert throughput.simulated.mean >= reached * throughput.bound


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.fixed_dictionaries(
        {
            "host.scheduler": st.sampled_from(["credit", "credit2", "rtds", "round-robin"]),
            "host.pcpus": st.integers(1, 4),
            "domain.dom0.vcpus": st.integers(1, 3),
            "domain.web.vcpus": st.integers(1, 3),
            "domain.web.nic.tso": st.booleans(),
            "domain.web.nic.checksum_offload": st.booleans(),
            "domain.web.nic.emulated": st.booleans(),
            "domain.dom0.forwarding": st.sampled_from(["bridge", "routing"]),
            "domain.web.app.0.workers": st.integers(1, 8),
            "domain.web.app.0.request_cpu": st.sampled_from(["20us", "500us"]),
            "domain.web.app.0.requests_max": st.sampled_from([0, 3]),
            "client.users.users": st.sampled_from([1, 5, 60]),
            "client.users.think": st.sampled_from(["0ns", "2ms", "50ms"]),
            "client.users.keep_alive": st.booleans(),
            "client.users.file_size": st.sampled_from(["1KB", "10KB", "200KB"]),
            "client_machine.e2180.request_cpu": st.sampled_from(["0ns", "500us"]),
        }
    )
)
def test_no_variation_is_beyond_its_bounds(changes: dict[str, object]) -> None:
    changes |= {"host.generation": None, "domain.beside": None, "run.duration": "300ms", "run.warmup": "100ms"}
    it = vcpulab.Scenario.load(ROOT / "scenarios" / "closed-loop.toml").change(
        {**changes, "client.users.ramp_up": None, "run.replications": 1}
    )
    _, rows = checked(it)
    assert not said([one for one in rows if not one.holds])


def test_a_simulation_that_is_beyond_its_bound_is_told_of() -> None:
    it = short(ROOT / "scenarios" / "closed-loop.toml")
    found = bounds(it)
    run = vcpulab.run(it, waits=False)
    loads = tuple(replace(load, throughput_max=load.throughput_max / 3) for load in found.loads)
    model = replace(found.model, loads=tuple(replace(load, alone=1.0, ahead=0) for load in found.model.loads))
    rows = check(replace(found, loads=loads, model=model), run)
    assert {one.what for one in rows if not one.holds} == {"throughput", "response"}


def test_sizes_of_requests_are_those_of_the_registry() -> None:
    """Its tables stand in the generated reference."""
    page = (ROOT / "docs" / "reference" / "applications.md").read_text()
    listed = {}
    for section in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        kind = re.match(r"`(\S+)`", section)
        assert kind is not None
        for name, request, answer in re.findall(r"^\| `([\w-]+)` \| (\d+) \| (\d+) \| \d+ \|", section, re.MULTILINE):
            if name != "stream":
                listed[kind[1], name] = (int(request), int(answer))
    assert listed == REQUEST_BYTES


def test_every_kind_of_application_is_known_or_said_not_to_be() -> None:
    page = (ROOT / "docs" / "reference" / "applications.md").read_text()
    kinds = set(re.findall(r"^## `(\S+)`", page, re.MULTILINE))
    known = {kind for kind, app in _APPS.items() if app in application.registry}
    assert kinds - known == {"spin"}, "threads at a lock: what they burn is no demand"
    found = bounds(vcpulab.Scenario.load(ROOT / "scenarios" / "phases.toml"))
    assert any("phases" in what for what in found.not_modelled)


def test_what_an_administrator_moves_is_bounded_by_the_host() -> None:
    found = bounds(vcpulab.Scenario.load(ROOT / "scenarios" / "caps-and-pinning.toml"))
    assert {one.name for one in found.stations if one.kind == "pool"} == {"host: pCPUs"}
    capped = next(one for one in found.loads if one.name == "capped.0")
    assert capped.throughput_max == pytest.approx(500), "half a pCPU, in milliseconds"


def test_pinned_vcpus_share_what_they_are_pinned_to() -> None:
    pinned = {"profile": "exact", "pcpus": 4, "scheduler": "credit"}
    hog = {"affinity": "0-1", "vcpus": 2, "app": [{"kind": "hog", "instance": 2}]}
    it = vcpulab.Scenario.from_dict({"host": pinned, "domain": {"a": hog, "b": hog}, "run": {"duration": "1s"}})
    station = next(one for one in bounds(it).stations if one.kind == "pcpus")
    assert (station.name, station.servers) == ("pCPUs 0,1", 2)
    assert station.asked == pytest.approx(2.0)


def test_vms_of_a_cpuset_share_its_cpus() -> None:
    host = {"profile": "exact", "pcpus": 4, "scheduler": "linux-eevdf", "hypervisor": "kvm"}
    vm = {"cgroup": "machine.slice/gold.slice", "vcpus": 2, "app": [{"kind": "hog", "instance": 2}]}
    groups = {"machine.slice": {"cpus": "0-2"}, "machine.slice/gold.slice": {"cpus": "1-3"}}
    data = {"host": host, "cgroup": groups, "domain": {"a": vm, "b": vm}, "run": {"duration": "1s"}}
    found = next(one for one in bounds(vcpulab.Scenario.from_dict(data)).stations if one.kind == "pcpus")
    assert (found.name, found.servers) == ("pCPUs 1,2", 2)
    assert found.asked == pytest.approx(2.0)


def fits_together(found: Bounds) -> None:
    """The throughputs of all loads together fit the stations, and nothing that is full serves all."""
    work: dict[str, float] = {}
    for load in found.loads:
        for name, demand in load.demands.items():
            work[name] = work.get(name, 0.0) + (load.together * demand if demand else 0.0)
        assert load.together <= load.throughput_max * (1 + 1e-9), load
        assert load.throughput <= load.throughput_max * (1 + 1e-9), load
        assert load.bottleneck != "rate" or load.together == load.throughput_max, load
    for station in found.stations:
        assert station.busy == pytest.approx(work.get(station.name, 0.0) / station.servers)
        assert station.busy <= 1 + 1e-6, station
    # Whatever has a definite amount of work and is not served fully names a full station that it needs.
    full = {station.name for station in found.stations if station.busy > 1 - 1e-6}
    for load in found.loads:
        assert load.together == load.throughput_max or (load.bottleneck in full and load.demands[load.bottleneck] > 0)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_loads_of_a_bundled_scenario_fit_the_host_together(path: Path) -> None:
    fits_together(bounds(vcpulab.Scenario.load(path)))


@pytest.mark.parametrize("seed", range(40))
def test_loads_of_any_scenario_fit_its_host_together(seed: int) -> None:
    fits_together(bounds(vcpulab.Scenario.from_toml(random_scenario(seed))))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.integers(1, 40),
    st.integers(1, 8),
    st.one_of(
        st.builds(lambda rate: {"kind": "open-loop", "rate": round(rate, 3)}, st.floats(1, 3000)),
        st.builds(lambda users: {"kind": "closed-loop", "users": users, "think": "100ms"}, st.integers(1, 3000)),
    ),
    st.booleans(),
    st.booleans(),
)
def test_alike_clients_are_bounded_together(
    count: int, pcpus: int, client: dict[str, object], hogs: bool, periodic: bool
) -> None:
    apps = [{"kind": "web-server"}, *([{"kind": "periodic", "run": "2ms", "period": "20ms"}] if periodic else [])]
    web = {"count": count, "nic": {"driver_domain": "dom0"}, "app": apps}
    beside = {"batch": {"count": 3, "app": [{"kind": "hog"}]}} if hogs else {}
    data = {
        "host": {"profile": "generic", "pcpus": pcpus, "scheduler": "credit"},
        "domain": {"dom0": {"driver_domain": True}, "web": web, **beside},
        "client": {"visitors": {"server": "web", **client}},
        "run": {"duration": "1s"},
    }
    fits_together(bounds(vcpulab.Scenario.from_dict(data)))


def test_clients_that_share_a_full_vcpu_are_limited_by_it(command: Vcpulab, tmp_path: Path) -> None:
    """By itself each of the 100 clients could be served; their driver domain's vCPU is asked for twice what it has."""
    file = tmp_path / "many.toml"
    file.write_text(
        """
        [host]
        profile = "generic"
        pcpus = 40
        scheduler = "credit"
        [domain.dom0]
        driver_domain = true
        [domain.vdi]
        count = 100
        nic = { driver_domain = "dom0" }
        app = [{ kind = "web-server" }]
        [client.users]
        kind = "open-loop"
        server = "vdi"
        rate = 500
        [run]
        duration = "1s"
        """
    )
    found = bounds(vcpulab.Scenario.load(file))
    assert {load.bottleneck for load in found.loads} == {"dom0: vCPUs"}
    assert found.stations[0].asked > 1.9
    assert sum(load.together for load in found.loads) < 0.55 * 100 * 500
    shown = command("bounds", "many.toml").stdout
    assert "can be served" not in shown
    assert "Asked for more than 100 % of what it can do: dom0: vCPUs" in shown


def test_a_sender_without_a_network_interface_is_not_modelled() -> None:
    """`Host` is asked directly: a scenario that `check` refuses must not reach it, and the model is total."""
    for hypervisor, module in (("kvm", KvmHost), ("xen", XenHost)):
        scheduler = "linux-cfs" if hypervisor == "kvm" else "credit"
        host = {"hypervisor": hypervisor, "scheduler": scheduler, "pcpus": 1}
        lone = vcpulab.Scenario.from_dict({"host": host, "domain": {"a": {"app": [{"kind": "hog"}]}}})
        for sender, receiver in ((Party("a"), Party()), (Party(), Party("a"))):
            with pytest.raises(NotModelledError, match="no network interface"):
                module(lone).path(sender, receiver, EMPTY)


# ---- the command line ----


def test_bounds_on_the_command_line(command: Vcpulab) -> None:
    assert command("init", "web.toml").returncode == 0
    result = command("bounds", "web.toml", "--check", "--replications", "2")
    assert result.returncode == 0, result.stderr
    for word in ("limited by", "dom0: vCPUs", "Simulated", "holds", "not modelled"):
        assert word in result.stdout
    assert result.stderr == ""


def test_bounds_as_json(command: Vcpulab) -> None:
    document = json.loads(command("bounds", "hogs.toml", "--format", "json").stdout)
    assert [load["name"] for load in document["loads"]] == ["a.0", "b.0"]
    assert document["stations"][0]["asked"] == pytest.approx(2.0), "two loops on one pCPU"
    assert "check" not in document


def test_bad_input_to_bounds(command: Vcpulab) -> None:
    missing = command("bounds", "nothing.toml")
    assert (missing.returncode, "nothing.toml: no such file" in missing.stderr) == (2, True)
    assert command("bounds", "hogs.toml", "--check", "--replications", "0").returncode == 2
    assert command("bounds", "hogs.toml", "--jobs", "-1").returncode == 2
