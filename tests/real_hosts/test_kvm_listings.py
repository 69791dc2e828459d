"""Listings of KVM hosts as libvirt, Proxmox VE, `ps` and `lscpu` print them in other releases and situations."""

import time
import timeit
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import vcpulab
from kvm_imports import KERNEL, imported, vm
from support import Vcpulab
from vcpulab.errors import RecordingError
from vcpulab.formats import kind_of, read
from vcpulab.formats.unread import unread
from vcpulab.hypervisors.scope_names import machine_part

LSCPU_8 = "# CPU,Core,Socket,Node\n" + "".join(f"{cpu},{cpu},0,{cpu // 4}\n" for cpu in range(8))


def held(folder: Path, text: str, name: str = "listing.txt") -> Any:
    (folder / name).write_text(text)
    return read(folder / name).holds


# ---- libvirt ----


def test_capabilities_are_no_domains(tmp_path: Path) -> None:
    text = (
        "<capabilities>\n\n  <host>\n    <topology>\n      <cells num='1'>\n        <cell id='0'>\n"
        "          <memory unit='KiB'>1048576</memory>\n          <cpus num='2'>\n"
        "            <cpu id='0' socket_id='0' die_id='0' core_id='0' siblings='0'/>\n"
        "            <cpu id='1' socket_id='0' die_id='0' core_id='1' siblings='1'/>\n"
        "          </cpus>\n        </cell>\n      </cells>\n    </topology>\n  </host>\n\n"
        "  <guest>\n    <os_type>hvm</os_type>\n    <arch name='x86_64'>\n      <domain type='qemu'/>\n"
        "      <domain type='kvm'/>\n    </arch>\n  </guest>\n\n</capabilities>\n"
    )
    info = held(tmp_path, text)
    assert kind_of(tmp_path / "listing.txt") == "virsh-capabilities"
    assert [(cpu.cpu, cpu.core) for cpu in info.cpus] == [(0, 0), (1, 1)]
    feature = vm("web", 1, "<features><capabilities>\n<audit_write state='on'/></capabilities></features>\n")
    held(tmp_path, feature, "web.xml")
    assert kind_of(tmp_path / "web.xml") == "virsh-xml"


def test_vcpuinfo_of_a_vm_that_is_off_and_with_pretty_affinities(tmp_path: Path) -> None:
    off = "VCPU:           0\nCPU:            N/A\nState:          N/A\nCPU time        N/A\nCPU Affinity:   y-y\n\n"
    (web,) = held(tmp_path, off + off.replace("VCPU:           0", "VCPU:           1"), "vcpuinfo-web.txt")
    assert (web.vcpus, web.vcpu_pins) == (2, {0: "0,2", 1: "0,2"})
    pretty = "VCPU:           0\nCPU:            1\nState:          running\nCPU time:       1.2s\n"
    (db,) = held(tmp_path, f"{pretty}CPU Affinity:   0-1,4 (out of 8)\n", "vcpuinfo-db.txt")
    assert db.vcpu_pins == {0: "0-1,4"}
    with pytest.raises(RecordingError, match=r"vcpuinfo-db\.txt:5: found `CPU Affinity:   some`"):
        held(tmp_path, f"{pretty}CPU Affinity:   some\n", "vcpuinfo-db.txt")


def test_vcpupin_has_a_colon_in_older_releases(tmp_path: Path) -> None:
    newer = "== web ==\n VCPU   CPU Affinity\n----------------------\n 0      2-3,^3\n 1      0-7\n\n"
    older = "== web ==\nVCPU: CPU Affinity\n----------------------------------\n   0: 2-3,^3\n   1: 0-7\n\n"
    assert held(tmp_path, older) == held(tmp_path, newer)
    assert held(tmp_path, older)[0].vcpu_pins == {0: "2-3,^3", 1: "0-7"}


def test_shares_of_a_vm_that_is_off_are_its_default(tmp_path: Path) -> None:
    schedinfo = "== web ==\nScheduler      : posix\ncpu_shares     : 0\nvcpu_period    : 0\nvcpu_quota     : 0\n"
    scenario, _ = imported(tmp_path, kernel=KERNEL, machines=vm("web", 1), schedinfo=schedinfo)
    web = scenario["domain"]["web"]
    assert (web.get("weight", 100), web.get("vcpu_quota_us", -1)) == (100, -1)


@pytest.mark.parametrize("quota", ["17592186044415", "18446744073709551", "-1"])
def test_libvirts_greatest_quotas_are_none(tmp_path: Path, quota: str) -> None:
    tune = f"<cputune><quota>{quota}</quota><global_quota>{quota}</global_quota></cputune>\n"
    info = f"== web ==\nScheduler      : posix\nemulator_quota : {quota}\niothread_quota : {quota}\n"
    groups = (
        f"/sys/fs/cgroup/machine.slice/machine-qemu\\x2d1\\x2dweb.scope/cpu.max:{quota.replace('-1', 'max')} 100000\n"
    )
    scenario, notes = imported(tmp_path, kernel=KERNEL, machines=vm("web", 1, tune), schedinfo=info, groups=groups)
    web = scenario["domain"]["web"]
    quotas = [web.get(f"{of}_quota_us", -1) for of in ("vcpu", "global", "emulator", "iothread")]
    assert quotas == [-1] * 4
    assert "quota" not in notes


def test_numbers_of_vcpus_that_no_vm_has_are_reported(command: Vcpulab, tmp_path: Path) -> None:
    scenario, notes = imported(tmp_path, kernel=KERNEL, machines=vm("web", 1, vcpus=600))
    assert scenario["domain"]["web"]["vcpus"] == 512
    assert "web: 600 vCPUs; a scenario has at most 512" in notes
    (tmp_path / "machines.txt").write_text(vm("web", 1, vcpus=-5))
    refused = command("import", "kvm", "machines.txt")
    assert refused.returncode == 2
    assert "machines.txt: found `-5`; allowed: a number from 1 as vcpu of the domain web" in refused.stderr


def test_two_vms_with_one_id_are_two(tmp_path: Path) -> None:
    machines = vm("shop", 1) + vm("batch", 1, vcpus=4)
    scenario, notes = imported(tmp_path, kernel=KERNEL, machines=machines)
    assert {name: domain["vcpus"] for name, domain in scenario["domain"].items()} == {"shop": 2, "batch": 4}
    assert "shop and batch have the same id, 1: listings of different times or hosts?" in notes


def test_vms_that_are_off_are_left_out_aloud(command: Vcpulab, tmp_path: Path) -> None:
    scenario, notes = imported(tmp_path, kernel=KERNEL, machines=vm("web", 1) + vm("test"))
    assert list(scenario["domain"]) == ["web"]
    assert "test: off, and left out" in notes
    scenario, notes = imported(tmp_path, kernel=KERNEL, machines=vm("web") + vm("test"))
    assert list(scenario["domain"]) == ["web", "test"]
    assert "no listing tells which VMs run" in notes
    listed = " Id   Name   State\n----------------------\n -    web    shut off\n -    test   shut off\n"
    (tmp_path / "list.txt").write_text(listed)
    refused = command("import", "kvm", "machines.txt", "list.txt")
    assert refused.returncode == 2
    assert "all VMs are off: web, test" in refused.stderr


def test_lists_with_titles_are_read(tmp_path: Path) -> None:
    titled = " Id   Name    State      Title\n----------------\n"
    titled += " 2    web 1   running    The web, first\n -    db      shut off\n"
    web, db = held(tmp_path, titled)
    assert (web.name, web.number, web.running) == ("web 1", 2, True)
    assert (db.name, db.running) == ("db", False)


@pytest.mark.parametrize(
    ("name", "scope"),
    [
        ("web_1", "web1"),
        ("a--b..c", "a-b.c"),
        ("shop (prod)", "shopprod"),
        ("ümlaut", "mlaut"),
        ("x" * 80, "x" * 57),
    ],
)
def test_scopes_are_found_by_the_names_that_libvirt_gives_them(tmp_path: Path, name: str, scope: str) -> None:
    assert machine_part(name, 7) == scope
    escaped = scope.replace("-", "\\x2d")
    groups = f"/sys/fs/cgroup/machine.slice/machine-qemu\\x2d7\\x2d{escaped}.scope/cpu.weight:50\n"
    scenario, _ = imported(tmp_path, kernel=KERNEL, machines=vm(name, 7), groups=groups)
    (domain,) = scenario["domain"].values()
    assert domain["weight"] == 50


def test_scopes_of_the_same_name_are_told_by_their_ids(tmp_path: Path) -> None:
    groups = "".join(
        f"/sys/fs/cgroup/machine.slice/machine-qemu\\x2d{number}\\x2dweb1.scope/cpu.weight:{weight}\n"
        for number, weight in ((7, 50), (8, 80))
    )
    machines = vm("web_1", 7) + vm("web1", 8)
    scenario, _ = imported(tmp_path, kernel=KERNEL, machines=machines, groups=groups)
    assert {name: domain["weight"] for name, domain in scenario["domain"].items()} == {"web_1": 50, "web1": 80}


def test_all_that_xml_says_is_taken_or_named(tmp_path: Path) -> None:
    more = (
        "<iothreads>3</iothreads>\n<cputune>\n<vcpupin vcpu='0' cpuset='2'/>\n<vcpupin vcpu='1' cpuset='6-9'/>\n"
        "<iothreadpin iothread='1' cpuset='0'/>\n<iothreadpin iothread='2' cpuset='1'/>\n"
        "<emulatorsched scheduler='rr' priority='5'/>\n</cputune>\n"
        "<numatune><memory mode='strict' nodeset='1'/><memnode cellid='0' mode='strict' nodeset='1'/></numatune>\n"
        "<resource><partition>/machine/gold</partition></resource>\n"
        "<cpu><topology sockets='1' cores='1' threads='2'/></cpu>\n"
        "<devices><disk type='file'><target dev='vda' bus='virtio'/></disk></devices>\n"
    )
    scenario, notes = imported(tmp_path, kernel=KERNEL, cpus=LSCPU_8, machines=vm("web", 1, more))
    web = scenario["domain"]["web"]
    assert (web["memory_nodes"], web["cgroup"]) == (1, "machine.slice/machine-gold.slice")
    assert web["affinity"] == ["2", "6-7"]
    assert web["threads_per_core"] == 2
    for note in (
        "web: 3 I/O threads; a scenario has one",
        "web: its I/O threads are pinned to different CPUs",
        "web: pinned to CPUs 8-9, which are not online here",
        "web: no field of a scenario says <emulatorsched>",
        "web: no field of a scenario says <numatune>: <memnode cellid='0'",
        "web: no field of a scenario says what its disks and network interfaces do",
    ):
        assert note in notes


# ---- Proxmox VE ----


def test_notes_of_proxmox_are_no_headings(command: Vcpulab, tmp_path: Path) -> None:
    config = "#Web server of the shop\n#\n# == 7 ==\n# 300\nboot: order=scsi0\ncores: 2\nmemory: 2048\nname: web\n"
    config += "numa: 1\nnuma0: cpus=0-1,hostnodes=1,memory=2048,policy=bind\n"
    groups = (
        "/sys/fs/cgroup/qemu.slice/100.scope/cpu.weight:50\n/sys/fs/cgroup/qemu.slice/100.scope/cpu.max:150000 100000\n"
    )
    (tmp_path / "100.conf").write_text(config)
    for name, text in (("kernel", "6.8.12-4-pve\n"), ("cpus", LSCPU_8), ("groups", groups)):
        (tmp_path / f"{name}.txt").write_text(text)
    made = command("import", "kvm", "100.conf", "kernel.txt", "groups.txt", "cpus.txt")
    assert made.returncode == 0, made.stderr
    web = vcpulab.Scenario.from_toml(made.stdout).to_dict()["domain"]["web"]
    assert (web["weight"], web["global_quota_us"], web["memory_nodes"]) == (50, 150_000, 1)


def test_configurations_of_proxmox_are_numbered_by_any_heading(tmp_path: Path) -> None:
    config = "cores: {}\nmemory: 2048\n"
    for heading in ("== {} ==", "# {}", "==> /etc/pve/qemu-server/{}.conf <=="):
        text = "".join(
            f"{heading.format(number)}\n{'#a note' if heading[0] == '=' else ''}\n{config.format(number)}"
            for number in (1, 2)
        )
        machines = held(tmp_path, text, "all.conf")
        assert [(machine.number, machine.vcpus) for machine in machines] == [(1, 1), (2, 2)]


def test_qm_lists_vms_without_names(tmp_path: Path) -> None:
    heading = "      VMID NAME                 STATUS     MEM(MB)    BOOTDISK(GB) PID\n"
    rows = "       100 VM 100               running    2048              32.00 1234\n"
    rows += "       101 my web               stopped    2048              32.00 0\n"
    first, second = held(tmp_path, heading + rows)
    assert (first.name, first.number, first.running, first.process) == ("100", 100, True, 1234)
    assert (second.name, second.running, second.process) == ("my web", False, None)


# ---- ps ----

GROUP = "kubepods.slice/kubepods-podab12.slice/cri-containerd-d30a.scope"


def ps(*rows: tuple[int, int, str, str, str]) -> str:
    heading = f"{'PID':>7} {'TID':>7} {'CGROUP':90} {'COMMAND':20} COMMAND\n"
    return heading + "".join(
        f"{process:7} {thread:7} {'0::/' + group:90} {name:20} {args}\n" for process, thread, group, name, args in rows
    )


def test_the_control_group_of_a_process_is_its_vms(tmp_path: Path) -> None:
    args = "/usr/libexec/qemu-kvm -name guest=default_test,debug-threads=on -smp 4,maxcpus=4"
    threads = ps((3100, 3100, GROUP, "qemu-kvm", args), (3100, 3111, GROUP, "CPU 0/KVM", args))
    groups = (
        "/sys/fs/cgroup/kubepods.slice/cpu.weight:624\n"
        f"/sys/fs/cgroup/{GROUP}/cpu.weight:157\n/sys/fs/cgroup/{GROUP}/cpu.max:400000 100000\n"
        f"/sys/fs/cgroup/{GROUP}/cpuset.cpus:4-7\n"
    )
    scenario, _ = imported(tmp_path, kernel=KERNEL, ps=threads, groups=groups)
    vm = scenario["domain"]["default_test"]
    assert (vm["vcpus"], vm["cgroup"]) == (4, GROUP.rpartition("/")[0])
    assert (vm["weight"], vm["global_quota_us"], vm["affinity"]) == (157, 400_000, "4-7")
    assert scenario["cgroup"]["kubepods.slice"]["weight"] == 624


def test_vms_of_one_group_share_it(tmp_path: Path) -> None:
    args = "/usr/bin/qemu-system-x86_64 -name guest={} -smp 2"
    threads = ps(*((pid, pid, "a.slice/b.service", "qemu", args.format(f"v{pid}")) for pid in (7, 8)))
    groups = "/sys/fs/cgroup/a.slice/b.service/cpu.max:50000 100000\n"
    scenario, notes = imported(tmp_path, kernel=KERNEL, ps=threads, groups=groups)
    assert {vm["cgroup"] for vm in scenario["domain"].values()} == {"a.slice/b.service"}
    assert scenario["cgroup"]["a.slice/b.service"]["quota_us"] == 50_000
    assert "v7: its threads are with others in the group a.slice/b.service" in notes


def test_firecracker_and_cloud_hypervisor_run_vms(tmp_path: Path) -> None:
    fc = "/usr/bin/firecracker --api-sock /run/fc.sock --id vm1"
    ch = "/usr/bin/cloud-hypervisor --cpus boot=3 --memory size=1G"
    threads = ps(
        (41, 41, "system.slice/fc.service", "firecracker", fc),
        (41, 42, "system.slice/fc.service", "fc_vcpu 0", fc),
        (41, 43, "system.slice/fc.service", "fc_vcpu 1", fc),
        (51, 51, "system.slice/ch.service", "cloud-hyperviso", ch),
        (51, 52, "system.slice/ch.service", "vcpu0", ch),
    )
    scenario, _ = imported(tmp_path, kernel=KERNEL, ps=threads)
    vcpus = {name: (vm["vcpus"], vm["cgroup"]) for name, vm in scenario["domain"].items()}
    assert vcpus == {"vm1": (2, "system.slice"), "cloud-hypervisor-51": (3, "system.slice")}


# ---- lscpu ----


def lscpu(sockets: int, cores: int, threads: int, *nodes: str) -> str:
    counts = {"CPU(s)": sockets * cores * threads, "Thread(s) per core": threads, "Core(s) per socket": cores}
    rows = {"Architecture": "x86_64", **counts, "Socket(s)": sockets, "NUMA node(s)": len(nodes)}
    rows |= {f"NUMA node{number} CPU(s)": text for number, text in enumerate(nodes)}
    return "".join(f"{name + ':':25}{value}\n" for name, value in rows.items())


@pytest.mark.parametrize(
    ("text", "numbering", "note"),
    [
        (lscpu(2, 8, 2, "0-7,16-23", "8-15,24-31"), "spread", "CPUs 0,16 are the threads of a core"),
        (lscpu(4, 8, 2, *(f"{8 * n}-{8 * n + 7},{32 + 8 * n}-{39 + 8 * n}" for n in range(4))), "spread", "CPUs 0,32"),
        (lscpu(1, 4, 2, "0-7"), "adjacent", "are assumed to have numbers beside each other"),
        (lscpu(2, 8, 2, "0-15", "16-31"), "adjacent", "are assumed to have numbers beside each other"),
    ],
)
def test_the_cpus_of_nodes_tell_where_threads_are(tmp_path: Path, text: str, numbering: str, note: str) -> None:
    scenario, notes = imported(tmp_path, cpus=text, machines=vm("web", 1))
    topology = scenario["host"]["topology"]
    assert topology.get("numbering", "adjacent") == numbering
    assert note in notes


def test_cpus_that_are_in_nodes_in_turn_are_numbered_anew(tmp_path: Path) -> None:
    nodes = [",".join(str(cpu) for cpu in range(node, 32, 2)) for node in (0, 1)]
    pinned = vm("web", 1, "<cputune><vcpupin vcpu='0' cpuset='0,2'/></cputune>\n")
    scenario, notes = imported(tmp_path, cpus=lscpu(2, 8, 2, *nodes), machines=pinned)
    assert {name: scenario["host"]["topology"][name] for name in ("sockets", "cores", "threads", "nodes")} == {
        "sockets": 2,
        "cores": 8,
        "threads": 2,
        "nodes": 2,
    }
    assert "pCPUs are renumbered" in notes
    assert "CPUs 0,16 are the threads of a core" in notes
    # CPUs 0 and 2 are the first threads of the first two cores of node 0.
    first = scenario["domain"]["web"]["affinity"][0]
    assert first in ("0,2", "0-1")


@pytest.mark.parametrize("columns", [("cpu", "core", "socket", "node"), ("socket", "node", "core", "cpu")])
def test_the_columns_of_lscpu_are_in_any_order(columns: tuple[str, ...], tmp_path: Path) -> None:
    names = {"cpu": "CPU", "core": "Core", "socket": "Socket", "node": "Node"}
    rows = [{"cpu": cpu, "core": cpu % 4, "socket": cpu % 4 // 2, "node": cpu % 4 // 2} for cpu in range(8)]
    lines = ["# The following is the parsable format", "# " + ",".join(names[column] for column in columns)]
    lines += [",".join(str(row[column]) for column in columns) for row in rows]
    scenario, _ = imported(tmp_path, cpus="\n".join(lines) + "\n", machines=vm("web", 1))
    topology = scenario["host"]["topology"]
    assert [topology[name] for name in ("sockets", "cores", "threads", "nodes")] == [2, 2, 2, 2]


def test_cpus_after_offline_ones_are_numbered_anew(tmp_path: Path) -> None:
    """Also where cores are not told, or not alike: commands need the host's own numbers."""
    pinned = vm("web", 1, "<cputune><vcpupin vcpu='0' cpuset='5'/></cputune>")
    counts = "CPU(s): 6\nOn-line CPU(s) list: 0-2,5\nOff-line CPU(s) list: 3-4\nThread(s) per core: 1\n"
    uneven = "# CPU,Core,Socket,Node\n0,0,0,0\n1,0,0,0\n2,1,0,0\n5,2,0,0\n"
    for cpus in (counts, uneven):
        scenario, notes = imported(tmp_path, cpus=cpus, machines=pinned)
        assert scenario["domain"]["web"]["affinity"] == ["3", "all"], cpus
        assert "CPUs 3-4 are offline" in notes
        assert notes.count("pCPUs are renumbered: 0 to 2 are CPUs 0, 1, … 2; 3 is CPU 5") == 1


def test_nodes_in_no_usual_order_are_contradicted_aloud(tmp_path: Path) -> None:
    scenario, notes = imported(tmp_path, cpus=lscpu(2, 2, 2, "0,3,5,6", "1,2,4,7"), machines=vm("web", 1))
    assert scenario["host"]["pcpus"] == 8
    assert "in none of the usual orders of 2 sockets of 2 cores of 2 threads" in notes


# ---- what is not read ----


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (
            "CPU NODE SOCKET CORE L1d:L1i:L2:L3 ONLINE    MAXMHZ   MINMHZ      MHZ\n  0 0 0 0 0:0:0:0 yes 4 8 4\n",
            "lscpu -p",
        ),
        ("CPU SOCKET CORE ONLINE\n0 0 0 yes\n", "lscpu -p"),
        ('{\n   "lscpu": [\n', "lscpu -p"),
        ("available: 2 nodes (0-1)\nnode 0 cpus: 0 1 2 3\n", "lscpu -p"),
        ("processor\t: 0\nvendor_id\t: GenuineIntel\n", "lscpu -p"),
        ("Id:             2\nName:           web1\nUUID:           a943\nState:          running\n", "virsh dumpxml"),
        ("maximum      config         4\nmaximum      live           4\n", "virsh dumpxml"),
        ("/sys/fs/cgroup/a.slice$ cat cpu.stat\nusage_usec 8099091679\nuser_usec 8089018953\n", "cpu.stat"),
        ("988930037123 395384834000 119723\n", "virsh domstats"),
        ('architecture: x86_64\nconfig:\n  limits.cpu: "4"\nname: a\ntype: virtual-machine\n', "ps -eLo"),
        ("apiVersion: kubevirt.io/v1\nkind: VirtualMachineInstance\nspec:\n", "ps -eLo"),
    ],
)
def test_what_is_not_read_is_answered_with_what_is(tmp_path: Path, text: str, hint: str) -> None:
    (tmp_path / "pasted.txt").write_text(text)
    with pytest.raises(RecordingError, match=r"not read, but this is\n  hint: .*" + hint.replace(".", r"\.")):
        kind_of(tmp_path / "pasted.txt")


def test_texts_of_perf_are_known_by_any_of_their_lines(tmp_path: Path) -> None:
    (tmp_path / "trace.txt").write_text(" perf     0/0     [000]     0.000000: PERF_RECORD_COMM: perf:77/77\n" * 400)
    assert kind_of(tmp_path / "trace.txt") == "sched-text"
    for columns in ("task name  wait time", "0123  task name  wait time"):
        (tmp_path / "table.txt").write_text(f"           time    cpu  {columns}\n")
        with pytest.raises(RecordingError, match="a table of `perf sched`"):
            kind_of(tmp_path / "table.txt")


def test_what_is_not_read_is_found_out_in_linear_time() -> None:
    for fragment in ("\n", " ", "A  ", "CPU ", "CPU A ", "Id: x\n", "  .", "*A0 ", "1", "\t\n", "processor\t: "):
        took = {
            size: min(
                timeit.repeat(
                    partial(unread, fragment * (size // len(fragment))), timer=time.process_time, number=1, repeat=3
                )
            )
            for size in (1 << 13, 1 << 15)
        }
        assert took[1 << 15] < 8 * took[1 << 13] + 0.05, f"{fragment!r}: {took} s of CPU time by bytes"
