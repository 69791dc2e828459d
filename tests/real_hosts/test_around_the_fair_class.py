"""Imports of what surrounds fair threads: isolated CPUs, limits of real-time threads, the topology that guests know."""

from pathlib import Path
from typing import Any

import pytest

from kvm_imports import imported, vm
from vcpulab import Scenario, run
from vcpulab.hypervisors.commands import commands

LSCPU = "# CPU,Core,Socket,Node\n" + "".join(f"{cpu},{cpu},0,0\n" for cpu in range(8))
SLICE = "/sys/fs/cgroup/machine.slice"
OLD, NEW = ("Linux version 6.1.0-18-amd64\n", "Linux version 6.12.48+deb13-amd64\n")


# ---- isolated CPUs ----


@pytest.mark.parametrize(
    ("listing", "isolated", "nohz_full", "source"),
    [
        ("/proc/cmdline:ro isolcpus=2-3 quiet\n", "2-3", None, "isolcpus=2-3"),
        ("/proc/cmdline:ro isolcpus=domain,managed_irq,1,4-5\n", "1,4-5", None, "isolcpus=domain,managed_irq,1,4-5"),
        ("/proc/cmdline:isolcpus=nohz,domain,6-N\n", "6-7", "6-7", "isolcpus=nohz,domain,6-N"),
        ("/proc/cmdline:ro nohz_full=2-7\n", None, "2-7", "nohz_full=2-7"),
        ("/proc/cmdline:ro isolcpus=0-7:1/4\n", "0,4", None, "isolcpus=0-7:1/4"),
        ("/sys/devices/system/cpu/isolated:4-7\n", "4-7", None, "/sys/devices/system/cpu/isolated"),
        ("/sys/devices/system/cpu/nohz_full:4-7\n", None, "4-7", "/sys/devices/system/cpu/nohz_full"),
        (
            "/proc/cmdline:ro isolcpus=1\n/sys/devices/system/cpu/isolated:2\n",
            "2",
            None,
            "/sys/devices/system/cpu/isolated",
        ),
        (
            f"{SLICE}/cpuset.cpus:3-4\n{SLICE}/cpuset.cpus.partition:isolated\n",
            "3-4",
            None,
            "cpuset.cpus.partition of /machine.slice",
        ),
        ("/sys/fs/cgroup/cpuset.cpus.isolated:5\n", "5", None, "cpuset.cpus.isolated"),
    ],
)
def test_isolated_cpus_are_those_of_the_host(
    listing: str, isolated: str | None, nohz_full: str | None, source: str, tmp_path: Path
) -> None:
    scenario, notes = imported(tmp_path, linux=listing, lscpu=LSCPU, vms=vm("web", 3))
    assert (scenario["host"].get("isolated_cpus"), scenario["host"].get("nohz_full")) == (isolated, nohz_full)
    assert f"from {source}" in notes


def test_unpinned_vms_keep_off_isolated_cpus(tmp_path: Path) -> None:
    pinned = vm("rt", 4, "<cputune><vcpupin vcpu='0' cpuset='6-7'/></cputune>", 1)
    scenario, _ = imported(tmp_path, linux="/proc/cmdline:isolcpus=4-7\n", lscpu=LSCPU, web=vm("web", 3), pinned=pinned)
    assert {name: domain["affinity"] for name, domain in scenario["domain"].items()} == {"web": "0-3", "rt": "6-7"}


@pytest.mark.parametrize(
    ("listing", "note"),
    [
        ("/proc/cmdline:isolcpus=managed_irq,2-3\n", "isolcpus=managed_irq,2-3: isolates from managed_irq only"),
        (f"{SLICE}/cpuset.cpus.partition:isolated\n", "of /machine.slice is `isolated`: no listing has its CPUs"),
        (
            f"{SLICE}/cpuset.cpus:2\n{SLICE}/cpuset.cpus.partition:isolated invalid (Cpu list not exclusive)\n",
            "is `isolated invalid (Cpu list not exclusive)`: it is not in force; left out",
        ),
        ("/sys/devices/system/cpu/isolated:0-7\n", "names all CPUs that are online, and one must remain; left out"),
    ],
)
def test_isolation_that_does_not_hold_is_a_note(listing: str, note: str, tmp_path: Path) -> None:
    scenario, notes = imported(tmp_path, linux=listing, lscpu=LSCPU, vms=vm("web", 3))
    assert "isolated_cpus" not in scenario["host"]
    assert note in notes


@pytest.mark.parametrize("toolstack", ["libvirt", "proxmox", "cgroup"])
def test_a_host_with_isolated_cpus_is_set_up_from_the_beginning(toolstack: Any) -> None:
    """VMs on the CPUs that are left need no pinning; one that is pinned elsewhere does."""
    text = """
        host = { hypervisor = "kvm", profile = "generic", pcpus = 4, scheduler = "linux-eevdf", isolated_cpus = "2-3" }
        domain.web = { app = [{ kind = "hog" }] }
        domain.rt = { affinity = "3", app = [{ kind = "hog" }] }
    """
    typed = "\n".join(step.text for step in commands(Scenario.from_toml(text), toolstack))
    assert "isolcpus=2-3" in typed
    assert "rt" in typed
    assert "web" not in typed


# ---- real-time threads ----


def test_the_limit_of_real_time_threads_is_that_of_the_host(tmp_path: Path) -> None:
    throttling = "kernel.sched_rt_runtime_us = -1\nkernel.sched_rt_period_us = 500000\n"
    server = "/sys/kernel/debug/sched/fair_server/cpu0/runtime:20000000\n"
    old = imported(tmp_path, linux=OLD + throttling + server, vms=vm("web", 3))[0]["host"]
    assert (old["rt_runtime_us"], old["rt_period_us"]) == (-1, 500_000)
    assert "fair_server_runtime_us" not in old
    new = imported(tmp_path, linux=NEW + throttling + server, vms=vm("web", 3))[0]["host"]
    assert new["fair_server_runtime_us"] == 20_000
    assert "rt_runtime_us" not in new


def test_cache_aware_balancing_is_the_hosts(tmp_path: Path) -> None:
    def host(release: str, line: str) -> Any:
        return imported(tmp_path, linux=f"Linux version {release}\n{line}", vms=vm("web", 3))[0]["host"]

    off = "/sys/kernel/debug/sched/llc_balancing/enabled:0\n"
    assert host("7.2.13+deb14-amd64", off)["llc_balancing"] == 0
    assert host("7.2.13+deb14-amd64", off.replace("0", "Y"))["llc_balancing"] == 1
    assert "llc_balancing" not in host("7.2.13+deb14-amd64", "")
    assert "llc_balancing" not in host("7.1.13+deb13-amd64", off)


@pytest.mark.parametrize(
    ("release", "caches", "noted"),
    [("7.2.13+deb14-amd64", 2, True), ("7.2.13+deb14-amd64", 1, False), ("7.1.13+deb13-amd64", 2, False)],
)
def test_several_caches_of_a_socket_are_a_note(tmp_path: Path, release: str, caches: int, *, noted: bool) -> None:
    rows = "".join(f"{cpu},{cpu},0,0,,{cpu},{cpu},{cpu},{cpu * caches // 8}\n" for cpu in range(8))
    counts = f"CPU(s): 8\nThread(s) per core: 1\nSocket(s): 1\nL3: 64 MiB ({caches} instances)\n"
    for lscpu in (f"# CPU,Core,Socket,Node,,L1d,L1i,L2,L3\n{rows}", counts):
        notes = imported(tmp_path, linux=f"Linux version {release}\n", lscpu=lscpu, vms=vm("web", 3))[1]
        assert ("the host has 2 L3 caches" in str(notes)) == noted


@pytest.mark.parametrize("column", ["CLS", "POL", "SCH"])
def test_deadline_threads_are_a_note(column: str, tmp_path: Path) -> None:
    policy = "6" if column == "SCH" else "DLN"
    threads = (
        f"PID TID {column} RTPRIO COMMAND COMMAND\n"
        "7 7 TS - qemu-system-x86  /usr/bin/qemu-system-x86_64 -name guest=web -smp 1\n"
        f"7 8 {policy} - CPU 0/KVM       /usr/bin/qemu-system-x86_64 -name guest=web -smp 1\n"
        f"9 9 {policy} - radio           /usr/bin/radio\n"
    )
    scenario, notes = imported(tmp_path, ps=threads)
    assert "sched_policy" not in scenario["domain"]["web"] or scenario["domain"]["web"]["sched_policy"] == "other"
    assert "web: its vCPUs' threads are SCHED_DEADLINE, which is not modelled" in notes
    assert "radio: threads under SCHED_DEADLINE, which is not modelled" in notes


# ---- the topology that guests know ----


@pytest.mark.parametrize(
    ("smp", "threads"),
    [
        ("4,sockets=1,cores=2,threads=2", 2),
        ("4,sockets=1,cores=2", 2),
        ("4,cores=4", 1),
        ("4", 1),
        ("2,maxcpus=8,sockets=1,cores=4", 2),
    ],
)
def test_threads_per_core_are_those_of_qemus_command_line(smp: str, threads: int, tmp_path: Path) -> None:
    listing = (
        "PID TID COMMAND COMMAND\n"
        f"7 7 qemu-system-x86  /usr/bin/qemu-system-x86_64 -name guest=web,debug-threads=on -smp {smp}\n"
    )
    scenario, _ = imported(tmp_path, ps=listing)
    assert scenario["domain"]["web"].get("threads_per_core", 1) == threads


def test_threads_per_core_are_those_of_libvirt(tmp_path: Path) -> None:
    topology = "<cpu mode='host-passthrough'><topology sockets='1' dies='1' cores='2' threads='2'/></cpu>"
    scenario, _ = imported(tmp_path, web=vm("web", 3, topology, 4), other=vm("other", 4))
    assert {name: domain["threads_per_core"] for name, domain in scenario["domain"].items()} == {"web": 2, "other": 1}


def test_a_guest_that_is_told_of_threads_loads_a_core_only_once() -> None:
    """Four busy tasks in a VM of eight vCPUs, each pinned to a thread of its own, on four cores of two threads."""
    pins = ", ".join(f'"{thread}"' for thread in range(8))
    host = 'hypervisor = "kvm"\nprofile = "xeon-gold-6240"\ntopology = { sockets = 1, cores = 4, threads = 2 }\n'
    guest = f'vcpus = 8\naffinity = [{pins}]\napp = [{{ kind = "hog", instance = 4 }}]\n'
    scenario = Scenario.from_toml(
        f'[run]\nduration = "500ms"\n[host]\n{host}scheduler = "linux-eevdf"\n[domain.vm]\n{guest}'
    )

    def jobs(threads_per_core: int) -> float:
        apps = run(scenario.change({"vm.threads_per_core": threads_per_core})).df_apps()
        return float(apps["throughput_per_s"].sum())

    # A thread beside a busy one runs at 60 to 70 % of its speed.
    assert 1.4 < jobs(2) / jobs(1) < 1.7
