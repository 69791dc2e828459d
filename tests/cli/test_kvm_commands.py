"""The commands that set up a KVM host, or a change of one: libvirt, Proxmox VE, control groups alone."""

import re
import shutil
import subprocess
from collections.abc import Mapping
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from support import ROOT, Vcpulab
from vcpulab import Scenario
from vcpulab.errors import RequestError
from vcpulab.hypervisors import TOOLSTACKS, Toolstack
from vcpulab.hypervisors.commands import commands, new_steps
from vcpulab.hypervisors.steps import Step, script

HOST = """\
[run]
duration = "100ms"
[host]
hypervisor = "kvm"
profile = "exact"
pcpus = 8
scheduler = "{scheduler}"
[nic.eth0]
[domain.web]
vcpus = 4
nic = {{}}
app = [{{ kind = "web-server" }}]
[domain.vm101]
vcpus = 2
app = [{{ kind = "hog" }}]
[domain.backup]
daemon = true
app = [{{ kind = "hog" }}]
"""
EEVDF, CFS = (Scenario.from_toml(HOST.format(scheduler=name)) for name in ("linux-eevdf", "linux-cfs"))
SCOPE = "/sys/fs/cgroup/machine.slice/machine-qemu\\x2d$(virsh domid web)\\x2dweb.scope"
THREADS = f'$(cat "{SCOPE}"/libvirt/vcpu*/cgroup.threads)'
PID = "/run/qemu-server/101.pid"
CPU_THREADS = f"$(ps -L -o tid= -o comm= -p $(cat {PID}) | awk '$2 == \"CPU\" {{print $1}}')"
QM = "$(qm list | awk -v n=web '$2 == n {print $1}')"


def typed(changes: Mapping[str, Any], toolstack: Toolstack, host: Scenario = EEVDF) -> list[str]:
    """The lines of the script, without its headings."""
    lines = script(new_steps(host, host.change(changes), toolstack))
    return [line for line in lines if not line.startswith("# ") or line.startswith("#   ")]


def texts(steps: list[Step], how: str) -> list[str]:
    return [step.text for step in steps if step.how == how]


AGAIN = "holds until the VM stops; type it again after each start"
CHANGES: list[tuple[str, dict[str, Any], dict[Toolstack, list[str]]]] = [
    (
        "own requests",
        {"domain.web.slice_us": 500},
        {
            "libvirt": [
                f"for t in {THREADS}; do chrt --other --sched-runtime 500000 -p 0 $t; done",
                f"#   domain web: slice_us: {AGAIN}",
            ],
            "cgroup": [
                f"for t in {THREADS}; do chrt --other --sched-runtime 500000 -p 0 $t; done",
                f"#   domain web: all of this: {AGAIN}",
            ],
        },
    ),
    (
        "own requests on Proxmox VE, of batch threads",
        {"domain.vm101.slice_us": 500, "domain.vm101.sched_policy": "batch"},
        {
            "proxmox": [
                f"for t in {CPU_THREADS}; do chrt --batch --sched-runtime 500000 -p 0 $t; done",
                f"for t in {CPU_THREADS}; do chrt --batch -p 0 $t; done",
                f"#   domain vm101: slice_us: {AGAIN}",
                f"#   domain vm101: SCHED_BATCH: {AGAIN}",
            ],
        },
    ),
    (
        "a weight",
        {"domain.vm101.weight": 200},
        {
            "libvirt": ["virsh schedinfo vm101 --set cpu_shares=200 --live --config"],
            "proxmox": ["qm set 101 --cpuunits 200"],
            "cgroup": [
                f'systemctl set-property --runtime "{SCOPE.rsplit("/", 1)[-1]}" CPUWeight=200'.replace("web", "vm101"),
                f"#   domain vm101: all of this: {AGAIN}",
            ],
        },
    ),
    (
        "limits of the VM and of each vCPU, in one command",
        {"domain.web.global_quota_us": 250_000, "domain.web.vcpu_quota_us": 80_000, "domain.web.weight": 50},
        {
            "libvirt": ["virsh schedinfo web --set cpu_shares=50 global_quota=250000 vcpu_quota=80000 --live --config"],
            "proxmox": [
                f"qm set {QM} --cpuunits 50 --cpulimit 2.5",
                "#   domain web: vcpu_quota_us: Proxmox VE has one limit for all threads of a VM (global_quota_us, "
                "--cpulimit)",
            ],
            "cgroup": [
                f'systemctl set-property --runtime "{SCOPE.rsplit("/", 1)[-1]}" CPUWeight=50 CPUQuota=250%',
                f"for f in \"{SCOPE}\"/libvirt/vcpu*/cpu.max; do echo '80000 100000' > $f; done",
                f"#   domain web: all of this: {AGAIN}",
            ],
        },
    ),
    (
        "a limit that has no whole hundredth of a percent: in the file",
        {"domain.web.global_quota_us": 10_000, "domain.web.global_period_us": 30_000},
        {
            "libvirt": ["virsh schedinfo web --set global_quota=10000 global_period=30000 --live --config"],
            "proxmox": [
                f"echo '10000 30000' > \"/sys/fs/cgroup/qemu.slice/{QM}.scope/cpu.max\"",
                f"#   domain web: cpu.max: {AGAIN}",
            ],
            "cgroup": [f"echo '10000 30000' > \"{SCOPE}/cpu.max\"", f"#   domain web: all of this: {AGAIN}"],
        },
    ),
    (
        "pinning of vCPUs and of the emulator",
        {"domain.vm101.affinity": "2-5", "domain.vm101.emulator_affinity": "0-1"},
        {
            "libvirt": [
                "virsh vcpupin vm101 0 2-5 --live --config",
                "virsh vcpupin vm101 1 2-5 --live --config",
                "virsh emulatorpin vm101 0-1 --live --config",
            ],
            "proxmox": [
                f"taskset -apc 2-5 $(cat {PID})",
                f"taskset -pc 0-1 $(cat {PID})",
                f"for t in $(ps -eL -o tid= -o comm= | awk -v n=vhost-$(cat {PID}) '$2 == n {{print $1}}'); do "
                "taskset -pc 0-1 $t; done",
                "qm set 101 --affinity 2-5",
                f"#   domain vm101: affinity of QEMU's own threads: {AGAIN}",
            ],
        },
    ),
    (
        "vCPUs of one affinity are pinned in a loop",
        {"domain.web.affinity": "2-5"},
        {
            "libvirt": ["for v in $(seq 0 3); do virsh vcpupin web $v 2-5 --live --config; done"],
            "cgroup": [
                f'for f in "{SCOPE}"/libvirt/vcpu*/cpuset.cpus; do echo 2-5 > $f; done',
                f"#   domain web: all of this: {AGAIN}",
            ],
        },
    ),
    (
        "each vCPU by itself",
        {"domain.vm101.affinity": ["2", "3"]},
        {
            "proxmox": [
                f"taskset -pc {cpu} $(ps -L -o tid= -o comm= -p $(cat {PID}) | "
                f'awk \'$2 == "CPU" && $3 == "{vcpu}/KVM" {{print $1}}\')'
                for vcpu, cpu in enumerate((2, 3))
            ]
            + [f"#   domain vm101: affinity of single vCPUs: {AGAIN}"],
        },
    ),
    (
        "a real-time class",
        {"domain.web.sched_policy": "fifo", "domain.web.sched_priority": 3},
        {
            "libvirt": [
                f"for t in {THREADS}; do chrt --fifo -p 3 $t; done",
                "virt-xml web --edit --cputune vcpusched0.vcpus=0-3,vcpusched0.scheduler=fifo,vcpusched0.priority=3",
            ],
        },
    ),
    (
        "batch threads",
        {"domain.vm101.sched_policy": "batch"},
        {
            "proxmox": [
                f"for t in {CPU_THREADS}; do chrt --batch -p 0 $t; done",
                f"#   domain vm101: SCHED_BATCH: {AGAIN}",
            ],
        },
    ),
    (
        "an I/O thread, and its pinning after it is there",
        {"domain.web.disk": {}, "domain.web.iothreads": 1, "domain.web.iothread_affinity": "7"},
        {
            "libvirt": [
                "virsh iothreadadd web 1 --live --config",
                "virsh iothreadpin web 1 7 --live --config",
                "virt-xml web --edit --disk driver.iothread=1",
                "#   domain web: its disk uses the I/O thread from the VM's next start on",
            ],
        },
    ),
    (
        "another slice",
        {"domain.web.cgroup": "machine.slice/machine-gold.slice", 'cgroup."machine.slice".weight': 300},
        {
            "libvirt": [
                "systemctl set-property machine.slice CPUWeight=300",
                "virt-xml web --edit --resource partition=/machine/gold",
                "#   domain web: it is in machine.slice/machine-gold.slice from the VM's next start on",
            ],
            "proxmox": [
                "systemctl set-property qemu.slice CPUWeight=300",
                "#   domain web: in machine.slice/machine-gold.slice: Proxmox VE has all VMs in qemu.slice",
            ],
        },
    ),
    (
        "the CPUs of all VMs, and of a group without a unit",
        {'cgroup."machine.slice".cpus': "2-7", 'cgroup."system.slice".cpus': "0-1", "cgroup.vms.cpus": "4-7"},
        {
            "libvirt": [
                "systemctl set-property machine.slice AllowedCPUs=2-7",
                "systemctl set-property system.slice AllowedCPUs=0-1",
                "echo 4-7 > /sys/fs/cgroup/vms/cpuset.cpus",
                "#   vms: cpuset.cpus: holds until the host restarts",
            ],
            "proxmox": [
                "systemctl set-property qemu.slice AllowedCPUs=2-7",
                "systemctl set-property system.slice AllowedCPUs=0-1",
                "echo 4-7 > /sys/fs/cgroup/vms/cpuset.cpus",
                "#   vms: cpuset.cpus: holds until the host restarts",
            ],
            "cgroup": [
                "systemctl set-property machine.slice AllowedCPUs=2-7",
                "systemctl set-property system.slice AllowedCPUs=0-1",
                "echo 4-7 > /sys/fs/cgroup/vms/cpuset.cpus",
                "#   vms: cpuset.cpus: holds until the host restarts",
            ],
        },
    ),
    (
        "halt polling, and what the kernel decides by",
        {"host.halt_poll_us": 0, "host.base_slice_us": 3000, "host.bandwidth_slice_us": 2000, "host.hz": 1000},
        {
            toolstack: [
                "sysctl -w kernel.sched_cfs_bandwidth_slice_us=2000",
                "echo 3000000 > /sys/kernel/debug/sched/base_slice_ns",
                "echo 0 > /sys/module/kvm/parameters/halt_poll_ns",
                "echo 'kernel.sched_cfs_bandwidth_slice_us = 2000' > "
                "/etc/sysctl.d/kernel.sched_cfs_bandwidth_slice_us.conf",
                "echo 'w /sys/kernel/debug/sched/base_slice_ns - - - - 3000000' > /etc/tmpfiles.d/base_slice_ns.conf",
                "echo 'options kvm halt_poll_ns=0' > /etc/modprobe.d/halt_poll_ns.conf",
                "#   linux-eevdf (6.12): hz = 1000: the kernel is built with it (CONFIG_HZ)",
            ]
            for toolstack in TOOLSTACKS["kvm"]
        },
    ),
    (
        "a daemon is a service",
        {"domain.backup.weight": 20, "domain.backup.affinity": "0"},
        {
            toolstack: [
                "systemctl set-property backup.service CPUWeight=20",
                "systemctl set-property backup.service AllowedCPUs=0",
            ]
            for toolstack in TOOLSTACKS["kvm"]
        },
    ),
    (
        "fewer CPUs, and the NIC's interrupts on one",
        {"host.pcpus": 6, "nic.eth0.pcpu": 5},
        {
            "libvirt": [
                "chcpu -d 6-7",
                "for i in $(grep -w eth0 /proc/interrupts | cut -d: -f1); do "
                "echo 5 > /proc/irq/$i/smp_affinity_list; done",
                "echo 'GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT maxcpus=6\"' >> "
                "/etc/default/grub.d/vcpulab.cfg && update-grub",
                "#   interrupts of nic eth0: on pCPU 5: holds until the host restarts, and while irqbalance does not "
                "move it",
            ],
        },
    ),
    (
        "more vCPUs than the VM has at most: from its next start on, each pinned when it is there",
        {"domain.web.vcpus": 6, "domain.web.affinity": ["0", "1", "2", "3", "4", "5"]},
        {
            "libvirt": [
                *(f"virsh vcpupin web {vcpu} {vcpu} --live --config" for vcpu in range(4)),
                "virsh setvcpus web 6 --maximum --config",
                "virsh setvcpus web 6 --config",
                *(f"virsh vcpupin web {vcpu} {vcpu} --config" for vcpu in (4, 5)),
                "#   domain web: 6 vCPUs from the VM's next start on",
            ],
        },
    ),
    (
        "fewer vCPUs: those that a VM was started with cannot be unplugged",
        {"domain.web.vcpus": 2},
        {
            "libvirt": [
                "virsh setvcpus web 2 --config",
                "#   domain web: 2 vCPUs from the VM's next start on",
            ],
        },
    ),
    (
        "a folder in a slice is no unit of its name",
        {'cgroup."machine.slice/gold.slice".weight': 300, 'cgroup."a.slice/a-b.slice/x.scope".weight': 30},
        {
            toolstack: [
                "echo 300 > /sys/fs/cgroup/machine.slice/gold.slice/cpu.weight",
                "systemctl set-property --runtime x.scope CPUWeight=30",
                "#   machine.slice/gold.slice: cpu.weight: holds until the host restarts",
            ]
            for toolstack in TOOLSTACKS["kvm"]
        },
    ),
    (
        "no limit has a number of its own, and so has a limit that `qm` does not take",
        {"domain.web.vcpu_quota_us": 17_592_186_044_415, "domain.vm101.global_quota_us": 12_900_000},
        {
            "libvirt": [
                "virsh schedinfo web --set vcpu_quota=-1 --live --config",
                "virsh schedinfo vm101 --set global_quota=12900000 --live --config",
            ],
            "proxmox": [
                "echo '12900000 100000' > /sys/fs/cgroup/qemu.slice/101.scope/cpu.max",
                "#   domain web: vcpu_quota_us: Proxmox VE has one limit for all threads of a VM (global_quota_us, "
                "--cpulimit)",
                f"#   domain vm101: cpu.max: {AGAIN}",
            ],
        },
    ),
    (
        "burst and idle have files only",
        {"domain.vm101.global_quota_us": 50_000, "domain.vm101.global_burst_us": 10_000, "domain.vm101.idle": True},
        {
            "proxmox": [
                "echo 0 > /sys/fs/cgroup/qemu.slice/101.scope/cpu.max.burst",
                "qm set 101 --cpulimit 0.5",
                "echo 10000 > /sys/fs/cgroup/qemu.slice/101.scope/cpu.max.burst",
                "echo 1 > /sys/fs/cgroup/qemu.slice/101.scope/cpu.idle",
                f"#   domain vm101: cpu.max.burst, cpu.idle: {AGAIN}",
            ],
        },
    ),
]


@pytest.mark.parametrize(
    ("changes", "toolstack", "expected"),
    [
        pytest.param(changes, toolstack, lines, id=f"{name}: {toolstack}")
        for name, changes, by_toolstack in CHANGES
        for toolstack, lines in by_toolstack.items()
    ],
)
def test_a_change_is_typed(changes: Mapping[str, Any], toolstack: Toolstack, expected: list[str]) -> None:
    assert typed(changes, toolstack) == expected


LIMIT = {
    r"global_quota=(-?\d+)": 1,
    r"--cpulimit ([\d.]+)": 100_000,
    r"CPUQuota=([\d.]+)%": 1000,
    r"echo (-?\d+) > .*cfs_quota_us": 1,
    r"echo '(\d+) \d+' > .*cpu\.max": 1,
}
"""How commands say a quota, and how many microseconds of a period of 100 ms each unit of it is."""


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("toolstack", TOOLSTACKS["kvm"])
def test_the_kernel_takes_each_step_to_another_quota_and_burst(toolstack: Toolstack, version: int) -> None:
    """It refuses a quota below the burst that there is, and a burst above the quota."""
    kinds = [(50_000, 0), (50_000, 20_000), (50_000, 50_000), (10_000, 10_000), (200_000, 80_000), (-1, 0)]
    hosts = {
        kind: EEVDF.change(
            {"host.cgroups": version, "domain.web.global_quota_us": kind[0], "domain.web.global_burst_us": kind[1]}
        )
        for kind in kinds
    }
    for before, after in permutations(kinds, 2):
        quota, burst = before
        for step in new_steps(hosts[before], hosts[after], toolstack):
            written = re.search(r"echo (\d+) > .*burst", step.text)
            burst = int(written[1]) if written else burst
            for pattern, unit in LIMIT.items():
                match = re.search(pattern, step.text)
                quota = round(float(match[1]) * unit) if match else quota
            if re.search(r"CPUQuota=(?!\d)|echo 'max|--cpulimit 0\b(?!\.)", step.text):
                quota = -1
            assert quota < 0 or burst <= quota, (before, after, step.text)
        assert (quota, burst) == after


V1 = EEVDF.change({"host.cgroups": 1})
SCOPE_V1 = SCOPE.replace("/sys/fs/cgroup/", "/sys/fs/cgroup/cpu/")
OF_VERSION_1: list[tuple[dict[str, Any], dict[Toolstack, list[str]]]] = [
    (
        {"domain.web.weight": 400},
        {
            "libvirt": ["virsh schedinfo web --set cpu_shares=4096 --live --config"],
            "proxmox": [f"qm set {QM} --cpuunits 4096"],
            "cgroup": [
                f'systemctl set-property --runtime "{SCOPE.rsplit("/", 1)[-1]}" CPUShares=4096',
                f"#   domain web: all of this: {AGAIN}",
            ],
        },
    ),
    (
        {
            "domain.web.global_quota_us": 50_000,
            "domain.web.global_burst_us": 10_000,
            "domain.web.vcpu_quota_us": 20_000,
        },
        {
            "libvirt": [
                f'echo 0 > "{SCOPE_V1}/cpu.cfs_burst_us"',
                "virsh schedinfo web --set global_quota=50000 vcpu_quota=20000 --live --config",
                f'echo 10000 > "{SCOPE_V1}/cpu.cfs_burst_us"',
                f"#   domain web: cpu.cfs_burst_us: {AGAIN}",
            ],
            "cgroup": [
                f'echo 0 > "{SCOPE_V1}/cpu.cfs_burst_us"',
                f'systemctl set-property --runtime "{SCOPE.rsplit("/", 1)[-1]}" CPUQuota=50%',
                f'echo 10000 > "{SCOPE_V1}/cpu.cfs_burst_us"',
                f'for f in "{SCOPE_V1}"/vcpu*/cpu.cfs_period_us; do echo 100000 > $f; done',
                f'for f in "{SCOPE_V1}"/vcpu*/cpu.cfs_quota_us; do echo 20000 > $f; done',
                f"#   domain web: all of this: {AGAIN}",
            ],
        },
    ),
    (
        {"cgroup.vms.weight": 25_600, "cgroup.vms.quota_us": 50_000, "cgroup.vms.cpus": "2-3", "cgroup.vms.idle": True},
        {
            toolstack: [
                "echo 1 > /sys/fs/cgroup/cpu/vms/cpu.idle",
                "echo 100000 > /sys/fs/cgroup/cpu/vms/cpu.cfs_period_us",
                "echo 50000 > /sys/fs/cgroup/cpu/vms/cpu.cfs_quota_us",
                "echo 2-3 > /sys/fs/cgroup/cpuset/vms/cpuset.cpus",
                "#   vms: cpu.idle, cpu.cfs_period_us, cpu.cfs_quota_us, cpuset.cpus: holds until the host restarts",
                "#   vms: cpu.idle: kernels have it from 5.15 on",
            ]
            for toolstack in TOOLSTACKS["kvm"]
        },
    ),
    (
        {'cgroup."machine.slice".weight': 25_600, 'cgroup."machine.slice".cpus': "2-3"},
        {
            "libvirt": [
                "systemctl set-property machine.slice CPUShares=262144",
                "echo 2-3 > /sys/fs/cgroup/cpuset/machine.slice/cpuset.cpus",
                "#   machine.slice: cpuset.cpus: holds until the host restarts",
            ],
        },
    ),
    (
        {"domain.web.nice": 5},
        {
            "libvirt": [
                f'renice -n 5 -p $(cat "{SCOPE_V1}"/vcpu*/tasks)',
                f"#   domain web: nice 5: {AGAIN}",
            ],
        },
    ),
]


@pytest.mark.parametrize(
    ("changes", "toolstack", "expected"),
    [
        pytest.param(changes, toolstack, lines, id=f"{', '.join(changes)}: {toolstack}")
        for changes, by_toolstack in OF_VERSION_1
        for toolstack, lines in by_toolstack.items()
    ],
)
def test_a_host_of_version_1_has_its_own_files_and_units(
    changes: Mapping[str, Any], toolstack: Toolstack, expected: list[str]
) -> None:
    assert typed(changes, toolstack, V1) == expected


def test_version_1_takes_an_older_systemd() -> None:
    steps = new_steps(EEVDF, V1)
    assert "systemd.unified_cgroup_hierarchy=0" in texts(steps, "boot")[0]
    assert texts(steps, "cannot") == ["host.cgroups = 1: systemd has version 1 up to release 257"]
    assert texts(new_steps(V1, EEVDF), "cannot") == []


@pytest.mark.parametrize(
    ("name", "scope"),
    [
        ("web_1", r"machine-qemu\x2d$(virsh domid web_1)\x2dweb1.scope"),
        ("a--b", r"machine-qemu\x2d$(virsh domid a--b)\x2da\x2db.scope"),
        ("a_-_b.", r"machine-qemu\x2d$(virsh domid a_-_b.)\x2da\x2db.scope"),
        ("__", r"machine-qemu\x2d$(virsh domid __).scope"),
    ],
)
def test_the_scope_of_a_vm_has_the_name_that_libvirt_gives_it(name: str, scope: str) -> None:
    host = Scenario.from_toml(HOST.format(scheduler="linux-eevdf").replace("[domain.web]", f'[domain."{name}"]'))
    (line, _) = typed({f'domain."{name}".idle': True}, "libvirt", host)
    assert line == f'echo 1 > "/sys/fs/cgroup/machine.slice/{scope}/cpu.idle"'


def test_the_scope_of_a_vm_with_a_long_name_is_cut() -> None:
    name = "x" * 52 + "-" + "y" * 11
    host = Scenario.from_toml(HOST.format(scheduler="linux-eevdf").replace("[domain.web]", f'[domain."{name}"]'))
    (line, _) = typed({f'domain."{name}".idle': True}, "libvirt", host)
    word = line.removeprefix("echo 1 > ").removesuffix('/cpu.idle"') + '"'
    stub = "virsh() { echo NUMBER; }\n"
    for number, kept in (("12345", "x" * 52), ("1", "x" * 52 + r"\x2d" + "yyyy")):
        done = subprocess.run(
            ["sh"],
            input=f"{stub.replace('NUMBER', number)}printf %s {word}",
            text=True,
            capture_output=True,
            check=True,
        )
        scope = rf"machine-qemu\x2d{number}\x2d{kept}.scope"
        assert done.stdout == f"/sys/fs/cgroup/machine.slice/{scope}"


def test_back_to_what_the_kernel_has() -> None:
    changed = CFS.change({"host.latency_us": 10_000, "domain.web.vcpu_quota_us": 50_000, "domain.web.weight": 300})
    steps = new_steps(changed, CFS)
    assert texts(steps, "run") == [
        # 6 ms on one CPU, four times as much on eight.
        "echo 24000000 > /sys/kernel/debug/sched/latency_ns",
        "virsh schedinfo web --set cpu_shares=100 vcpu_quota=-1 --live --config",
    ]
    assert texts(steps, "keep") == ["rm -f /etc/tmpfiles.d/latency_ns.conf"]


def test_sysctls_of_older_kernels_are_in_the_unit_of_their_names() -> None:
    """Before 5.13 tunables are sysctls, in ns but for the bandwidth slice."""
    before = Scenario.from_toml(HOST.format(scheduler='linux-cfs"\ngeneration = "5.10'))
    changed = before.change({"host.latency_us": 10_000, "host.bandwidth_slice_us": 2_000})
    assert sorted(texts(new_steps(before, changed), "run")) == [
        "sysctl -w kernel.sched_cfs_bandwidth_slice_us=2000",
        "sysctl -w kernel.sched_latency_ns=10000000",
    ]
    back = new_steps(changed, changed.change({"host.latency_us": -1}))
    assert texts(back, "run") == ["sysctl -w kernel.sched_latency_ns=24000000"]
    assert texts(back, "keep") == ["rm -f /etc/sysctl.d/kernel.sched_latency_ns.conf"]


def test_values_have_the_unit_of_their_files() -> None:
    """Runtimes of fair servers are in ns; a word and "no limit" have no unit."""
    newest = Scenario.from_toml(HOST.format(scheduler='linux-eevdf"\ngeneration = "7.3'))
    changed = newest.change({"host.fair_server_runtime_us": 20_000, "host.preempt": "full", "host.cgroup_mode": "smp"})
    assert sorted(texts(new_steps(newest, changed), "run")) == [
        "echo 20000000 | tee /sys/kernel/debug/sched/fair_server/cpu*/runtime > /dev/null",
        "echo full > /sys/kernel/debug/sched/preempt",
        "echo smp > /sys/kernel/debug/sched/cgroup_mode",
    ]
    unlimited = new_steps(CFS, CFS.change({"host.rt_runtime_us": -1}))
    assert texts(unlimited, "run") == ["sysctl -w kernel.sched_rt_runtime_us=-1"]
    assert texts(unlimited, "keep") == [
        "echo 'kernel.sched_rt_runtime_us = -1' > /etc/sysctl.d/kernel.sched_rt_runtime_us.conf"
    ]


def test_a_kernel_without_the_file_is_built_with_its_preemption_model() -> None:
    before = Scenario.from_toml(HOST.format(scheduler='linux-cfs"\ngeneration = "5.10'))
    steps = new_steps(before, before.change({"host.preempt": "full"}))
    assert [step.how for step in steps] == ["cannot"]
    assert "the kernel is built with it" in steps[0].text


def test_back_to_the_cpus_of_the_group_around() -> None:
    changed = EEVDF.change({'cgroup."machine.slice".cpus': "2-7", "cgroup.vms.cpus": "4-7"})
    assert texts(new_steps(changed, EEVDF), "run") == [
        "systemctl set-property machine.slice AllowedCPUs=",
        "echo '' > /sys/fs/cgroup/vms/cpuset.cpus",
    ]


def test_many_vms_are_set_in_a_loop() -> None:
    names = {f"domain.vm{number}": {"vcpus": 2} for number in (201, 202, 203)}
    host = EEVDF.change(names)
    after = host.change({f"{name}.weight": 200 for name in names})
    # Values that look like a VM's number are not taken for it.
    (line,) = texts(new_steps(host, after, "proxmox"), "run")[:1]
    assert line == "qm set 201 --cpuunits 200"
    assert list(script(new_steps(host, after, "proxmox"))) == [
        "# at run time",
        "for d in 201 202 203; do qm set $d --cpuunits 200; done",
    ]
    assert list(script(new_steps(host, after, "cgroup")))[1] == (
        "for d in vm201 vm202 vm203; do systemctl set-property --runtime "
        '"machine-qemu\\x2d$(virsh domid $d)\\x2d$d.scope" CPUWeight=200; done'
    )


def test_another_kernel_or_hypervisor_is_no_command() -> None:
    assert "linux-cfs (6.1): install a kernel of 6.1, and boot it" in texts(
        new_steps(EEVDF, EEVDF.change({"host.scheduler": "linux-cfs"})), "cannot"
    )
    xen = Scenario.from_toml('[host]\nprofile = "exact"\npcpus = 8\nscheduler = "credit2"\n[domain.web]\nvcpus = 4\n')
    assert "host.hypervisor = kvm: requires another host" in texts(new_steps(xen, EEVDF), "cannot")
    polling = EEVDF.change({"host.halt_poll_us": 0, 'cgroup."machine.slice".weight': 50})
    for toolstack in TOOLSTACKS["xen"]:
        back = new_steps(polling, xen.change({"domain.web.weight": 512}), toolstack)
        assert "host.hypervisor = xen: requires another host" in texts(back, "cannot")


def test_the_whole_scenario() -> None:
    steps = commands(EEVDF.change({"domain.web.weight": 300, 'cgroup."system.slice".quota_us': 100_000}))
    assert texts(steps, "run") == [
        "systemctl set-property system.slice CPUQuota=100%",
        "virsh schedinfo web --set cpu_shares=300 --live --config",
    ]
    assert texts(steps, "cannot") == ["host.pcpus = 8: takes a machine with that number of CPUs"]


def test_actions_hold_for_now() -> None:
    action = {"at": "50ms", "op": "adjust", "domain": "web", "weight": 900}
    steps = commands(EEVDF.change({"action": [action, {"at": "60ms", "op": "pause", "domain": "vm101"}]}))
    assert [(step.at, step.text) for step in steps if step.at] == [
        ("50ms", "virsh schedinfo web --set cpu_shares=900 --live"),
        ("60ms", "virsh suspend vm101"),
    ]


def test_each_hypervisor_has_its_own_toolstacks(command: Vcpulab, tmp_path: Path) -> None:
    file = tmp_path / "kvm.toml"
    file.write_text(HOST.format(scheduler="linux-eevdf"))
    with pytest.raises(RequestError, match="allowed: libvirt, proxmox, cgroup"):
        commands(EEVDF, "xl")
    refused = command("xl", "commands", str(file)).stderr
    assert f"hint: vcpulab virsh commands {file}" in refused
    xen = str(ROOT / "scenarios" / "web-server.toml")
    assert f"hint: vcpulab xl list {xen}" in command("virsh", "list", xen).stderr
    early = command("whatif", xen, "--set", "host.pcpus=2", "--toolstack", "proxmox").stderr
    assert "--toolstack proxmox: the scenario's host is a Xen host" in early


def test_lists_vms(command: Vcpulab, tmp_path: Path) -> None:
    file = tmp_path / "kvm.toml"
    file.write_text(HOST.format(scheduler="linux-eevdf"))
    heading, _, *rows = command("virsh", "list", str(file)).stdout.splitlines()
    assert heading.split() == ["Id", "Name", "State"]
    assert [row.split() for row in rows] == [["1", "web", "running"], ["2", "vm101", "running"]], "no daemon"
    shown = command("virsh", "list", str(file), "--vcpus").stdout
    assert shown.count("CPU Affinity:   yyyyyyyy") == 6


@pytest.mark.skipif(shutil.which("sh") is None, reason="needs a shell")
def test_a_shell_can_read_everything() -> None:
    lines = [line for _, changes, _ in CHANGES for tool in TOOLSTACKS["kvm"] for line in typed(changes, tool)]
    subprocess.run(["sh", "-n"], input="\n".join(lines), text=True, check=True)


def test_monitors_of_xen_are_refused_with_what_shows_a_kvm_host(command: Vcpulab, tmp_path: Path) -> None:
    file = tmp_path / "kvm.toml"
    file.write_text(HOST.format(scheduler="linux-eevdf"))
    for asked in (
        ("top", str(file), "--batch"),
        ("top", str(file)),
        ("monitor", "xencpu", str(file)),
        ("monitor", "xenoprof", str(file)),
        ("monitor", "xenmon", str(file), "--out", str(tmp_path / "logs")),
    ):
        refused = command(*asked)
        assert refused.returncode == 2, asked
        assert "the host is a KVM host (host.hypervisor)" in refused.stderr
        assert f"hint: vcpulab run {file} --counters kvm" in refused.stderr
    assert command("run", str(file), "--counters", "kvm").returncode == 0


def test_a_wrong_toolstack_is_refused_before_anything_runs(command: Vcpulab, tmp_path: Path) -> None:
    file = tmp_path / "kvm.toml"
    # A day of simulated time, which nobody waits for.
    file.write_text(HOST.format(scheduler="linux-eevdf").replace("100ms", "86400s"))
    refused = command("lint", str(file), "--toolstack", "xl")
    assert refused.returncode == 2
    assert "the scenario's host is a KVM host (host.hypervisor)" in refused.stderr


def test_what_polled_while_it_was_recorded_is_no_setting() -> None:
    twin = EEVDF.change({"host.polls_recorded": True})
    assert not any("halt_poll" in step.text for step in commands(twin))
    real = twin.change({"host.halt_poll_us": 50})
    assert "echo 50000 > /sys/module/kvm/parameters/halt_poll_ns" in texts(commands(real), "run")
