"""Devices, netbacks and blkbacks in turn on the vCPUs of their driver domain."""

from typing import Any

from vcpulab import Scenario, run
from vcpulab.advice.io_spreading import spread


def host(profile: str, vcpus: int = 2, **more: Any) -> Scenario:
    guest = {"nic": {"driver_domain": "dom0"}, "disk": {"driver_domain": "dom0"}, "app": [{"kind": "hog"}]}
    return Scenario.from_dict(
        {
            "host": {"scheduler": "credit", "profile": profile, "pcpus": 8},
            "domain": {"dom0": {"driver_domain": True, "vcpus": vcpus}} | dict.fromkeys("abc", guest),
            **more,
        }
    )


def backs(scenario: Scenario, kind: str) -> list[int]:
    return [scenario.to_dict()["domain"][name][kind]["driver_vcpu"] for name in "abc"]


def test_the_default_is_that_of_the_machines_time() -> None:
    today, old = host("generic"), host("dl360")
    assert (backs(today, "nic"), backs(today, "disk")) == ([0, 1, 0], [0, 1, 0])
    assert (backs(old, "nic"), backs(old, "disk")) == ([0, 0, 0], [0, 0, 0])
    assert backs(today.change({"domain.b.nic.driver_vcpu": 0}), "nic") == [0, 0, 0], "the others stay"
    assert backs(today.change({"domain.dom0.vcpus": 3}), "nic") == [0, 1, 2]
    assert today.warnings == []
    assert "nothing is ever to be done on vCPU 1" in old.warnings[0]["message"]


def test_what_is_on_one_vcpu_is_spread() -> None:
    old = host("dl360", nic={"eth0": {"driver_domain": "dom0"}, "eth1": {"driver_domain": "dom0"}})
    changes = spread(old.model, "dom0", 3)
    assert changes == {
        "nic.eth1.vcpu": 1,
        **{
            f"domain.{name}.{kind}.driver_vcpu": index
            for kind in ("nic", "disk")
            for index, name in ((1, "b"), (2, "c"))
        },
    }
    spread_out = old.change({"domain.dom0.vcpus": 3, **changes})
    assert backs(spread_out, "nic") == [0, 1, 2]


def test_where_all_are_in_turn_netbacks_leave_the_vcpu_of_the_interrupts() -> None:
    away = spread(host("generic", 3).model, "dom0", 3)
    assert away == {f"domain.{name}.nic.driver_vcpu": vcpu for name, vcpu in (("a", 1), ("b", 2), ("c", 1))}
    assert spread(host("generic", 1).model, "dom0", 1) == {}


def test_received_packets_are_the_work_of_the_netbacks_vcpu() -> None:
    received = {
        "host": {"scheduler": "credit", "profile": "generic", "pcpus": 4},
        "run": {"duration": "100ms"},
        "domain": {
            "dom0": {"driver_domain": True, "vcpus": 2},
            "web": {"nic": {"driver_domain": "dom0"}, "app": [{"kind": "tcp-receiver"}]},
        },
        "client": {"users": {"kind": "stream", "server": "web"}},
    }
    on_first, on_second = (
        run(Scenario.from_dict(received).change({"domain.web.nic.driver_vcpu": vcpu}))
        .df_vcpus()
        .filter(domain="dom0")
        .sort("vcpu")["running_ns"]
        .to_list()
        for vcpu in (0, 1)
    )
    assert on_first[1] == 0 < on_first[0]
    # The interrupts stay, the netback's part goes: more than half.
    assert on_second[1] > on_second[0] > 0
