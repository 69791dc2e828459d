"""What the host model does for physical reasons: scenarios/mechanisms, and the figures they must show."""

from typing import Any

import pytest

import vcpulab
from support import ROOT

MECHANISMS = ROOT / "scenarios" / "mechanisms"
FREE = {
    f"host.costs.{constant}": 0
    for constant in ("decision_ns", "context_switch_ns", "interrupt_ns", "l2_bytes", "l3_bytes")
}


def run(name: str, changes: dict[str, Any] | None = None) -> vcpulab.Run:
    """Runs one of the scenarios, or a change of it."""
    return vcpulab.run(vcpulab.Scenario.load(MECHANISMS / f"{name}.toml").change(changes or {}))


def used(result: vcpulab.Run, domain: str) -> float:
    """CPU time that a domain got, % of a pCPU."""
    return result[f"{domain}.gotten"].mean


def test_a_small_allowance_makes_dom0_run_often_for_little_and_costs_throughput() -> None:
    web = vcpulab.Scenario.load(ROOT / "scenarios" / "web-server.toml")

    def bvt(allowance_ms: int, costs: dict[str, Any]) -> tuple[float, float, float]:
        changes = {"run.duration": "5s", "run.replications": 1, "host.scheduler": "bvt", "host.generation": "xen3.0"}
        result = vcpulab.run(web.change({**changes, "host.ctx_allow": allowance_ms * 1_000_000, **costs}))
        throughput = result["web.throughput"].mean
        return throughput, result["dom0.executions"].mean, result["dom0.io_per_execution"].mean

    throughput, executions, io = zip(*(bvt(ms, {}) for ms in (50, 5, 1)), strict=True)
    assert throughput[0] > 1.1 * throughput[1] > 1.5 * throughput[2]
    assert 2 * executions[0] < executions[1] < executions[2] / 1.5
    assert io[0] > 2 * io[1] > 4 * io[2]
    free = [bvt(ms, FREE)[0] for ms in (50, 5, 1)]
    assert free[0] < 1.12 * free[2], "without costs of switches and cold caches the fall vanishes"


def test_cpu_time_of_the_driver_domain_goes_by_packets_that_of_the_guest_by_bytes_too() -> None:
    # Dearer bytes show what they do beside the packets.
    sizes = {
        size: run("driver-packets", {"client.sender.packet": size, "host.costs.network_byte_ps": 5000})
        for size in ("500B", "1000B", "1448B")
    }
    per_packet = {
        domain: [
            used(result, domain) / (float(packets.sum()) / 1e6)
            for result in sizes.values()
            for packets in [result.df_domains().filter(domain=domain).get_column("io_count")]
        ]
        for domain in ("dom0", "guest")
    }
    small, _, large = per_packet["dom0"]
    assert large == pytest.approx(small, rel=0.05)
    small, middle, large = per_packet["guest"]
    assert small < middle < large
    assert large > 1.15 * small
    by_packet = [used(result, "dom0") for result in sizes.values()]
    per_byte = [cpu / size for cpu, size in zip(by_packet, (500, 1000, 1448), strict=True)]
    assert per_byte[0] > 1.8 * per_byte[1] > 2 * per_byte[2]


def test_receiving_costs_several_times_the_cpu_of_bare_metal() -> None:
    xen, bare = run("driver-packets"), run("bare-metal-receiver")
    assert xen["guest.throughput"].mean == bare["linux.throughput"].mean
    assert used(xen, "dom0") + used(xen, "guest") > 2 * used(bare, "linux")


def test_a_second_vcpu_and_split_interrupts_do_not_raise_one_cards_throughput() -> None:
    default, split = run("smp-driver-domain"), run("smp-driver-domain", {"nic.eth0.vcpu": 1})
    rates = [result["guest.throughput"].mean for result in (default, split)]
    assert 0.8 * rates[0] < rates[1] < rates[0]
    assert used(split, "dom0") > 1.03 * used(default, "dom0"), "it costs more"
    busy = [[100 - result[f"pcpu.{pcpu}.idle"].mean for pcpu in "01"] for result in (default, split)]
    assert busy[0][1] < 1, "both are used only where the interrupts are split"
    assert min(busy[1]) > 20


def test_a_hog_in_dom0_hurts_a_disk_reader_far_more_under_sedf() -> None:
    def loss(scheduler: str, generation: str) -> float:
        of = {"host.scheduler": scheduler, "host.generation": generation}
        beside = run("disk-beside-hog", of)
        alone = run("disk-beside-hog", {**of, "domain.dom0.app": []})
        rates = [result["guest.throughput"].mean for result in (beside, alone)]
        return 1 - rates[0] / rates[1]

    # By default Dom0 has 15 ms reserved in each 20 ms there.
    assert loss("sedf", "xen3.3.0") > 0.25
    assert loss("credit", "xen4.4.1") < 0.05
    assert loss("credit2", "xen4.4.1") < 0.05


def test_arinc653_wastes_idle_windows_and_credit_does_not() -> None:
    windows = {"host.major_frame_ns": None, "host.entries": None}
    assert used(run("idle-windows"), "busy") == pytest.approx(50)
    for scheduler in ("credit", "credit2"):
        assert used(run("idle-windows", {"host.scheduler": scheduler, **windows}), "busy") > 99.5


def test_kernel_builds_in_guests_slow_each_other_by_their_caches() -> None:
    base = vcpulab.Scenario.load(MECHANISMS / "kernel-builds.toml").change({"run.duration": "30s"})
    bare = vcpulab.Scenario.load(MECHANISMS / "kernel-build-bare-metal.toml").change({"run.duration": "30s"})

    def files(scenario: vcpulab.Scenario) -> tuple[float, float]:
        result = vcpulab.run(scenario)
        misses = float(result.df_domains().get_column("l3_misses").sum())
        return float(result.df_apps().get_column("completed").sum()) / 30, misses

    def guests(count: int) -> tuple[float, float]:
        domain = base.to_dict()["domain"]["a"]
        extra = {f"domain.{name}": domain for name in "cde"[: count - 2]}
        return files(base.change(extra))

    two, five = guests(2), guests(5)
    one_guest, bare_metal = files(base.change({"domain.a.app.0.jobs": 5, "domain.b": None})), files(bare)
    assert two[0] > 1.05 * five[0], "the more guests, the colder"
    assert five[1] > 1.1 * two[1]
    assert one_guest[0] > 1.15 * five[0], "in one guest the builds share the kernel, the compiler and the page cache"
    assert bare_metal[0] > one_guest[0], "and virtualisation costs something by itself"
    warm = {f"host.costs.{level}_bytes": 0 for level in ("l2", "l3")}
    cold_free = files(base.change(warm))
    assert cold_free[0] > 1.1 * two[0], "without the caches the difference is gone"


def test_processes_that_take_the_memory_of_files_stop_a_web_server() -> None:
    def served(changes: dict[str, Any]) -> tuple[float, float, float]:
        result = run("web-server-memory", changes)
        (read,) = result.df_io().filter(domain="web").get_column("disk_read_bytes")
        throughput = result["web.throughput"].mean
        return throughput, used(result, "web"), float(read) / (6e3 * throughput)

    thrown, fewer, larger = (
        served(changes) for changes in ({}, {"domain.web.app.0.connections_max": 100}, {"domain.web.memory": "512MiB"})
    )
    for fits in (fewer, larger):
        assert fits[0] > 5 * thrown[0], "requests"
        assert fits[1] > 3 * thrown[1], "CPU time"
        assert fits[2] < thrown[2] / 3, "KB from the disk for each request"
    below = served({"client.httperf.rate": 1000})
    assert below[0] == pytest.approx(1000, rel=0.05), "few processes leave room for files"
    never = served({"domain.web.app.0.files_per_size": 0})
    assert never[2] == 0
    assert never[0] == pytest.approx(larger[0], rel=0.05)


def test_routing_costs_the_driver_domain_and_offloads_spare_the_guest() -> None:
    bridged, routed = run("driver-packets"), run("driver-packets", {"domain.dom0.forwarding": "routing"})
    assert used(routed, "dom0") > 1.03 * used(bridged, "dom0")
    assert used(routed, "guest") == pytest.approx(used(bridged, "guest"), rel=0.02)
    by_hand = run("driver-packets", {"domain.guest.nic.checksum_offload": False})
    assert used(by_hand, "guest") > 1.03 * used(bridged, "guest")
    assert used(by_hand, "dom0") == pytest.approx(used(bridged, "dom0"), rel=0.02)
    whole = {"domain.guest.app": [{"kind": "netperf"}]}
    cut, large = run("smp-driver-domain", whole), run("smp-driver-domain", {**whole, "domain.guest.nic.tso": True})

    def per_message(result: vcpulab.Run) -> float:
        return used(result, "guest") / result["guest.throughput"].mean

    assert per_message(large) < 0.7 * per_message(cut), "a packet of 64 KB costs the guest little more than a segment"


def test_several_driver_domains_carry_their_own_guests() -> None:
    one = vcpulab.Scenario.load(MECHANISMS / "driver-packets.toml")
    second = {
        "host.pcpus": 3,
        "domain.net2": {"driver_domain": True, "affinity": "2"},
        "domain.guest2": {**one.to_dict()["domain"]["guest"], "nic": {"driver_domain": "net2"}},
        "client.sender2": {**one.to_dict()["client"]["sender"], "server": "guest2"},
    }
    result = vcpulab.run(one.change(second))
    assert used(result, "net2") == pytest.approx(used(result, "dom0"), rel=0.05)
    assert used(result, "dom0") == pytest.approx(used(vcpulab.run(one), "dom0"), rel=0.05)


def test_an_emulated_card_costs_its_stub_domain() -> None:
    emulated = {"domain.guest.nic.emulated": True}
    assert used(run("driver-packets", emulated), "dom0") > 1.3 * used(run("driver-packets"), "dom0")
    stub = {
        **emulated,
        "host.pcpus": 3,
        "domain.stub": {"driver_domain": True, "affinity": "2", "nic": {"driver_domain": "dom0"}},
        "domain.guest.nic.driver_domain": "stub",
    }
    behind = run("driver-packets", stub)
    assert used(behind, "stub") > used(run("driver-packets"), "dom0"), "it receives, hands on, and emulates"
    assert used(behind, "dom0") == pytest.approx(used(run("driver-packets"), "dom0"), rel=0.05)
    assert behind["guest.throughput"].mean == pytest.approx(10_000, rel=0.01)
    # A domain without a NIC before the stub domain, which numbers interfaces and domains apart, changes nothing.
    hog = {"host.pcpus": 4, "domain.hog": {"affinity": "3", "app": [{"kind": "hog"}]}}
    beside = run("driver-packets", {**emulated, **hog, **stub, "host.pcpus": 4})
    assert used(beside, "stub") == pytest.approx(used(behind, "stub"), rel=0.01)
    received = dict(behind.df_io().select("domain", "nic_received").iter_rows())
    assert received["dom0"] == pytest.approx(20_000, rel=0.01), "the card is Dom0's, in both directions"
    assert not received["stub"]


def test_an_emulated_disk_costs_who_emulates_it() -> None:
    own = {"domain.guest.disk.emulated": False}
    stub = {"domain.guest.disk.driver_domain": "stub"}
    split, emulated, stubbed = (run("emulated-disk", change) for change in (own, {}, stub))

    def requests(result: vcpulab.Run, domain: str) -> int:
        samples = result.df_samples().filter(domain=domain)
        return int(samples["disk_reads"].sum()) + int(samples["disk_writes"].sum())

    def per_request_ns(result: vcpulab.Run, domain: str) -> float:
        return used(result, domain) / 100 * 10e9 / requests(result, "guest")

    [profile] = (profile for profile in vcpulab.profiles() if profile.name == "i3-370m")
    cost = {name: constant.value for name, constant in profile.constants.items()}
    # Dom0 pays for emulation, request by request, and pays nothing for it where a stub domain does.
    extra_ns = per_request_ns(emulated, "dom0") - per_request_ns(split, "dom0")
    assert extra_ns == pytest.approx(cost["emulation_ns"], rel=0.05)
    assert per_request_ns(stubbed, "dom0") == pytest.approx(per_request_ns(split, "dom0"), rel=0.02)
    assert used(emulated, "stub") == 0
    # The stub domain pays: for emulation, the guest's pages and the answer, and for its own front end.
    samples = stubbed.df_samples().filter(domain="guest")
    pages = float(samples["disk_read_bytes"].sum()) / 4096 / requests(stubbed, "guest")
    own_ns = cost["block_request_ns"] + cost["block_response_ns"]
    expected_ns = cost["emulation_ns"] + pages * cost["grant_ns"] + cost["blockback_response_ns"] + own_ns
    assert per_request_ns(stubbed, "stub") == pytest.approx(expected_ns, rel=0.05)
    assert requests(stubbed, "stub") == pytest.approx(requests(stubbed, "guest"), abs=64), "each goes on once"
    assert requests(emulated, "stub") == 0


def test_a_hog_delays_an_emulated_disk_where_it_is_emulated() -> None:
    def rate(through: str, beside: str) -> float:
        """Throughput of the guest, its disk emulated there, with a hog on that domain's pCPU."""
        changes: dict[str, Any] = {"domain.guest.disk.driver_domain": through, "host.scheduler": "round-robin"}
        changes |= {"host.generation": None}
        if beside:
            affinity = {"dom0": "0", "stub": "1"}[beside]
            changes["domain.hog"] = {"affinity": affinity, "app": [{"kind": "hog"}]}
        return run("emulated-disk", changes)["guest.throughput"].mean

    dom0, stub = ({beside: rate(through, beside) for beside in ("", "dom0", "stub")} for through in ("dom0", "stub"))
    assert dom0["stub"] == pytest.approx(dom0[""], rel=0.02), "nothing passes through the stub domain"
    assert dom0["dom0"] < 0.8 * dom0[""]
    assert stub["stub"] < 0.8 * stub[""], "a hog beside the stub domain hurts only the guest behind it"
    assert stub["dom0"] < 0.8 * stub[""], "Dom0 still has the disk"


def test_io_is_counted_at_both_ends_of_a_ring() -> None:
    nic = {"driver_domain": "dom0"}
    guests = {
        "sender": {"nic": nic, "app": [{"kind": "tcp-sender", "to": "receiver", "delay": "100us"}]},
        "receiver": {"nic": nic, "app": [{"kind": "tcp-receiver"}]},
        "reader": {"disk": nic, "app": [{"kind": "dd", "count": 100_000, "direct": True}]},
    }
    result = vcpulab.run(
        vcpulab.Scenario.from_dict(
            {
                "run": {"duration": "1s"},
                "host": {"profile": "generic", "scheduler": "credit", "pcpus": 4},
                "domain": {"dom0": {"driver_domain": True}, **guests},
            }
        )
    )
    count = dict(result.df_domains().select("domain", "io_count").iter_rows())
    assert min(count.values()) > 100
    assert count["dom0"] == pytest.approx(sum(count[guest] for guest in guests), abs=10)
    io = {row["domain"]: row for row in result.df_io().iter_rows(named=True)}
    assert io["receiver"]["bytes_received"] == pytest.approx(io["sender"]["bytes_sent"], rel=0.001)
    blocks = result.df_apps().filter(kind="dd")["completed"].sum()
    assert io["reader"]["disk_read_bytes"] == pytest.approx(1024 * blocks, rel=0.01)


def test_the_way_from_an_interface_must_end_at_a_card() -> None:
    packets = vcpulab.Scenario.load(MECHANISMS / "driver-packets.toml")
    with pytest.raises(vcpulab.ScenarioError, match="driver domain `dom0` owns no NIC"):
        packets.change({"domain.net": {"driver_domain": True}, "nic.eth0": {"driver_domain": "net"}})
    with pytest.raises(vcpulab.ScenarioError, match="lead in a circle"):
        packets.change(
            {
                "domain.dom0.nic": {"driver_domain": "net"},
                "domain.net": {"driver_domain": True, "nic": {"driver_domain": "dom0"}},
            }
        )


def test_connections_wait_in_the_backlog_until_one_of_those_served_ends() -> None:
    def web(**app: Any) -> vcpulab.Run:
        return vcpulab.run(
            vcpulab.Scenario.from_dict(
                {
                    "run": {"duration": "4s", "warmup": "0s"},
                    "host": {"profile": "generic", "scheduler": "credit", "pcpus": 2},
                    "domain": {
                        "dom0": {"driver_domain": True},
                        "web": {
                            "nic": {"driver_domain": "dom0"},
                            "app": [{"kind": "web-server", "request_cpu": "1ms", "connections_max": 4, **app}],
                        },
                    },
                    "client": {"users": {"kind": "closed-loop", "server": "web", "users": 8}},
                }
            )
        )

    def responses(result: vcpulab.Run) -> tuple[float, float, float]:
        row = result.df_apps().row(1, named=True)
        return row["response_p50_ns"] / 1e6, row["response_max_ns"] / 1e6, row["failed"]

    # Four users keep their connections, and the others never have an answer.
    median, longest, failed = responses(web(backlog=4))
    assert median == pytest.approx(4, rel=0.1)
    assert longest == pytest.approx(5, abs=2)
    assert failed == 0
    # When each is closed after 100 requests, all have their turn, after some 400 of the others.
    median, longest, failed = responses(web(backlog=4, requests_max=100))
    assert median == pytest.approx(4, rel=0.1)
    assert failed == 0
    assert longest == pytest.approx(400, rel=0.15)
    assert responses(web(backlog=0))[2] > 1000, "refused, again and again"
    # Calls that find the SYN queue full are made again after three seconds.
    median, longest, _ = responses(web(connections_max=256, syn_queue=1))
    assert median < 10
    assert 3000 < longest < 4000
