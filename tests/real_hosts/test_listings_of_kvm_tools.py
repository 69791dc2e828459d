"""Listings of KVM hosts as its tools print them: each value becomes that of the scenario, or a note names it."""

from pathlib import Path
from typing import Any

import pytest

import vcpulab
from kvm_imports import KERNEL, imported, vm
from vcpulab.errors import RecordingError, RequestError, ScenarioError
from vcpulab.formats import read_all
from vcpulab.imports.kvm import scenario_of

LSCPU = """\
Architecture:            x86_64
CPU(s):                  8
  On-line CPU(s) list:   {online}
  Model name:            A
    Thread(s) per core:  1
    Core(s) per socket:  4
    Socket(s):           1
NUMA node(s):            1
NUMA node0 CPU(s):       {online}
"""
SCOPE = r"machine.slice/machine-qemu\x2d3\x2dweb.scope"


def pasted(folder: Path, *texts: str) -> dict[str, Any]:
    """The VMs of texts in which several commands may have printed."""
    reads = []
    for number, text in enumerate(texts):
        (folder / f"{number}.txt").write_text(text)
        reads += read_all(folder / f"{number}.txt")[0]
    return dict(vcpulab.Scenario.from_toml(scenario_of(reads).text).to_dict()["domain"])


# ---- where CPUs are ----


@pytest.mark.parametrize(
    ("online", "pins", "affinity"),
    [("0-3", "2", "2"), ("0,2,4,6", "4", "2"), ("4-7", "4-5", "0-1")],
)
def test_cpus_that_lscpu_has_offline_are_not_there(online: str, pins: str, affinity: str, tmp_path: Path) -> None:
    pinned = f"<cputune><vcpupin vcpu='0' cpuset='{pins}'/></cputune>"
    scenario, notes = imported(tmp_path, kernel=KERNEL, lscpu=LSCPU.format(online=online), vms=vm("a", 1, pinned, 1))
    assert scenario["host"]["pcpus"] == 4
    assert scenario["domain"]["a"]["affinity"] == affinity
    assert "are offline, and no pCPUs here" in notes


def test_lines_of_lscpu_that_grep_left_are_read(tmp_path: Path) -> None:
    text = "CPU op-mode(s): 32-bit\nCPU(s): 8\nThread(s) per core: 1\nCore(s) per socket: 4\nSocket(s): 2\n"
    topology = imported(tmp_path, lscpu=text, vms=vm("a", 1))[0]["host"]["topology"]
    assert (topology["sockets"], topology["cores"]) == (2, 4)


def test_cores_of_several_kinds_are_named(tmp_path: Path) -> None:
    kinds = LSCPU.format(online="0-7").replace(
        "NUMA node(s)", "  Model name: B\n    Core(s) per socket: 2\nNUMA node(s)"
    )
    scenario, notes = imported(tmp_path, lscpu=kinds, vms=vm("a", 1))
    assert scenario["host"]["pcpus"] == 8
    assert "cores are of several kinds: each CPU is a core of its own here" in notes


@pytest.mark.parametrize(
    "table",
    [
        "# CPU,Core,Socket,Node,,L1d\n0,0,0,0,,0\n1,0,0,0,,0\n2,1,0,0,,1\n3,1,0,0,,1\n4,,,,,\n",
        "# CPU,Core,Socket\n0,0,0\n1,0,0\n2,1,0\n3,1,0\n",
        "# CPU,Node,Socket,Core,Online\n0,0,0,0,Y\n1,0,0,0,Y\n2,0,0,1,Y\n3,0,0,1,Y\n4,0,0,2,N\n",
    ],
)
def test_columns_of_lscpu_p_are_those_of_its_heading(table: str, tmp_path: Path) -> None:
    scenario, _ = imported(tmp_path, lscpu=table, vms=vm("a", 1))
    topology = scenario["host"]["topology"]
    assert (topology["sockets"], topology["cores"], topology["threads"]) == (1, 2, 2)


# ---- virsh ----


def test_rows_of_virsh_list(tmp_path: Path) -> None:
    table = """\
 Id   Name                 State
------------------------------------
 1    my web               running
 22   a-name-so-long-that-one-blank-follows paused
 -    off vm               shut off    Its title
 -    broken               crashed
"""
    scenario, notes = imported(tmp_path, list=table)
    assert list(scenario["domain"]) == ["my-web", "a-name-so-long-that-one-blank-follows"]
    assert "off vm, broken: off, and left out" in notes
    assert "a-name-so-long-that-one-blank-follows: no field of a scenario says that it is paused" in notes


def test_an_xml_that_is_cut_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r"vms\.txt:5: found `<domain type='kvm' id='4'>`; allowed: `<domain>`"):
        imported(tmp_path, vms=vm("a", 3) + vm("b", 4).removesuffix("</domain>\n"))


def test_pins_are_of_the_vcpus_that_are_online(tmp_path: Path) -> None:
    pins = "".join(f"<vcpupin vcpu='{vcpu}' cpuset='{vcpu}'/>" for vcpu in range(6))
    plugged = "".join(f"<vcpu id='{vcpu}' enabled='{'yes' if vcpu in (0, 4) else 'no'}'/>" for vcpu in range(6))
    xml = vm("a", 1, f"<cputune>{pins}</cputune><vcpus>{plugged}</vcpus>").replace("<vcpu>", "<vcpu current='2'>")
    scenario, notes = imported(tmp_path, vms=xml)
    assert scenario["domain"]["a"]["affinity"] == ["0", "4"]
    assert "a: no field of a scenario says what vCPUs 1-3,5 may do, which are offline" in notes
    scenario, notes = imported(tmp_path, vms=vm("a", 1, f"<cputune>{pins}</cputune>"))
    assert scenario["domain"]["a"]["affinity"] == ["0", "1"]
    assert "what vCPUs 2-5 may do, which are offline" in notes


def test_policies_of_some_vcpus_are_not_silently_those_of_all(tmp_path: Path) -> None:
    some = "<cputune><vcpusched vcpus='0' scheduler='fifo' priority='1'/></cputune>"
    scenario, notes = imported(tmp_path, vms=vm("a", 1, some, 3))
    assert scenario["domain"]["a"]["sched_policy"] == "other"
    assert "a: its vCPUs have different policies or priorities (1 fifo 1, 2 other)" in notes


def test_a_cpuset_of_all_vcpus_holds_for_io_threads(tmp_path: Path) -> None:
    more = "<iothreads>1</iothreads><cputune><vcpupin vcpu='0' cpuset='0'/></cputune>"
    xml = vm("a", 1, more, 1).replace("<vcpu>", "<vcpu cpuset='2-3'>")
    assert imported(tmp_path, vms=xml)[0]["domain"]["a"]["iothread_affinity"] == "2-3"


def test_a_domain_of_another_driver_is_named(tmp_path: Path) -> None:
    assert "no VM of KVM (type='lxc')" in imported(tmp_path, vms=vm("a", 1).replace("'kvm'", "'lxc'"))[1]


# ---- Proxmox, ps ----


def test_vms_of_one_name_are_told_apart_by_their_numbers(tmp_path: Path) -> None:
    table = "VMID NAME STATUS MEM(MB) BOOTDISK(GB) PID\n100 web running 1 1.00 10\n101 web running 1 1.00 11\n"
    (tmp_path / "100.conf").write_text("cores: 2\nname: web\n")
    (tmp_path / "101.conf").write_text("cores: 4\nname: web\n")
    scenario, notes = imported(
        tmp_path, "100.conf", "101.conf", list=table, groups="/sys/fs/cgroup/qemu.slice/101.scope/cpu.weight:300\n"
    )
    assert {name: domain["vcpus"] for name, domain in scenario["domain"].items()} == {"web": 2, "web-101": 4}
    assert scenario["domain"]["web-101"]["weight"] == 300
    assert "VMs 100 and 101 are both called `web`" in notes


def test_a_container_is_no_vm(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r"`pct config`: a container"):
        imported(tmp_path, container="arch: amd64\ncores: 2\nhostname: ct\nmemory: 1\nrootfs: a:b,size=8G\n")


@pytest.mark.parametrize(
    ("args", "name", "vcpus"),
    [
        ("/usr/bin/qemu-system-x86_64 -name guest=my web,debug-threads=on -smp 4,maxcpus=8", "my-web", 4),
        ("/usr/libexec/qemu-kvm -name web -smp sockets=2,cores=4,threads=1", "web", 8),
        ("/usr/bin/kvm -id 100 -name web,debug-threads=on -smp cpus=3", "web", 3),
        ("qemu-system-aarch64 -machine virt -smp 2", "qemu-system-aarch64-7", 2),
    ],
)
def test_command_lines_of_qemu(args: str, name: str, vcpus: int, tmp_path: Path) -> None:
    heading, other = "  PID   TID COMMAND         COMMAND", "    8     8 qemu-nbd        qemu-nbd -c"
    table = f"{heading}\n    7     7 qemu-system-x86 {args}\n{other}\n"
    scenario, _ = imported(tmp_path, ps=table)
    assert {name: domain["vcpus"] for name, domain in scenario["domain"].items()} == {name: vcpus}


def test_policies_of_ps(tmp_path: Path) -> None:
    table = """\
    PID     TID CLS RTPRIO  NI COMMAND         COMMAND
      7       7  TS      -   0 qemu-system-x86 /usr/bin/qemu-system-x86_64 -name a -smp 2
      7       8  FF      2   - CPU 0/KVM       /usr/bin/qemu-system-x86_64 -name a -smp 2
      7       9  FF      2   - CPU 1/KVM       /usr/bin/qemu-system-x86_64 -name a -smp 2
"""
    domain = imported(tmp_path, ps=table)[0]["domain"]["a"]
    assert (domain["sched_policy"], domain["sched_priority"]) == ("fifo", 2)


# ---- control groups, and what the host says ----


@pytest.mark.parametrize(
    "text",
    [
        f"==> /sys/fs/cgroup/{SCOPE}/cpu.weight <==\n200\n\n==> /sys/fs/cgroup/{SCOPE}/cpu.max <==\n150000 100000\n",
        f"# cat '/sys/fs/cgroup/{SCOPE}/cpu.weight'\n200\n# cat '/sys/fs/cgroup/{SCOPE}/cpu.max'\n150000 100000\n",
    ],
)
def test_files_of_groups_as_tail_and_cat_print_them(text: str, tmp_path: Path) -> None:
    web = pasted(tmp_path, text, vm("web", 3))["web"]
    assert (web["weight"], web["global_quota_us"]) == (200, 150_000)


def test_values_of_groups_that_no_field_says_are_named(tmp_path: Path) -> None:
    files = {"cpu.weight": "-5", "cpu.max": "-7 1", "cpu.uclamp.max": "50.00", "cpuset.cpus.partition": "root"}
    text = "".join(f"/sys/fs/cgroup/{SCOPE}/{name}:{value}\n" for name, value in files.items())
    _, notes = imported(tmp_path, groups=text, vms=vm("web", 3))
    assert all(f"web: {name} of /{SCOPE} is `{value}`" in notes for name, value in files.items())


def test_groups_of_vms_that_no_listing_has_are_named(tmp_path: Path) -> None:
    second = SCOPE.replace("web", "other")
    _, notes = imported(tmp_path, groups=f"/sys/fs/cgroup/{second}/cpu.weight:50\n", vms=vm("web", 3))
    assert f"no listing has the VMs of the control groups /{second}; left out" in notes
    tree = f"Unit machine.slice (/machine.slice):\n`-{second.split('/')[1]}\n  `-23 /usr/bin/qemu-system-x86_64\n"
    assert f"/{second}; left out" in imported(tmp_path, tree=tree, vms=vm("web", 3))[1]


def test_settings_without_a_field_are_named(tmp_path: Path) -> None:
    listing = "/proc/sys/kernel/sched_rr_timeslice_ms:100\n/proc/7/task/8/schedstat:1 2 3\n"
    _, notes = imported(tmp_path, linux=listing, vms=vm("web", 3))
    assert "/proc/sys/kernel/sched_rr_timeslice_ms = 100, /proc/7/task/8/schedstat = 1 2 3; left out" in notes


def test_values_that_a_scenario_refuses_are_in_the_file_that_has_them(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"groups\.txt: domain\.web\.global_period_us: found `5`"):
        imported(tmp_path, groups=f"/sys/fs/cgroup/{SCOPE}/cpu.max:50000 5\n", vms=vm("web", 3))


def test_a_text_in_json_is_no_control_group(tmp_path: Path) -> None:
    with pytest.raises((RecordingError, RequestError), match="qm config"):
        imported(tmp_path, vms='[{"cpus":4,"name":"web","status":"running","vmid":100}]\n')


@pytest.mark.parametrize(
    "text",
    [
        "Architektur:       x86_64\nCPU(s):            8\n",
        "Architecture :      x86_64\nProcesseur(s) :     8\n",
        " Id   Name   Status\n-----------------------\n 1    web    laufend\n",
    ],
)
def test_listings_in_other_languages_have_the_command_that_is_read(text: str, tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r"in another language than English: not read(.|\n)*(lscpu -p|LC_ALL=C)"):
        imported(tmp_path, listing=text)


# ---- pastes ----

VIRSH_LIST = " Id   Name   State\n----------------------\n 1    web    running\n"
PINS = " VCPU   CPU Affinity\n----------------------\n 0      0-3\n 1      2\n"
SHARES = "Scheduler      : posix\ncpu_shares     : 200\n"


@pytest.mark.parametrize(
    "text",
    [
        f"virsh # list\n{VIRSH_LIST}\nvirsh # vcpupin web\n{PINS}\nvirsh # schedinfo web\n{SHARES}\n",
        f"$ ssh root@kvm1 virsh list\n{VIRSH_LIST}$ ssh -p 22 root@kvm1 sudo virsh vcpupin web\n{PINS}"
        f"PS C:\\Users\\me> ssh root@kvm1 virsh schedinfo web\n{SHARES}",
        f"{VIRSH_LIST}\nvirsh vcpupin web\n{PINS}\nsudo virsh schedinfo web\n{SHARES}",
    ],
)
def test_commands_name_the_vm_that_a_listing_is_of(text: str, tmp_path: Path) -> None:
    vms = pasted(tmp_path, text)
    assert list(vms) == ["web"]
    assert (vms["web"]["weight"], vms["web"]["affinity"]) == (200, ["all", "2"])


def test_a_configuration_that_cat_prints_has_the_number_of_its_file(tmp_path: Path) -> None:
    weight = "# cat /sys/fs/cgroup/qemu.slice/100.scope/cpu.weight\n50\n"
    text = f"root@pve:~# cat /etc/pve/qemu-server/100.conf\ncores: 2\nname: web\nmemory: 1\n{weight}"
    assert pasted(tmp_path, text)["web"]["weight"] == 50


def test_the_version_of_control_groups_may_be_below_a_prompt(tmp_path: Path) -> None:
    shares = vm("web", 3, "<cputune><shares>512</shares></cputune>")
    version = "$ stat -fc %T /sys/fs/cgroup\ntmpfs\n"
    text = f"{version}$ sysctl kernel.sched_rt_runtime_us\nkernel.sched_rt_runtime_us = 950000\n"
    assert pasted(tmp_path, text, shares)["web"]["weight"] == 50


@pytest.mark.parametrize("table", [SHARES, PINS, "VCPU:           0\nCPU Affinity:   yy\n"])
def test_two_tables_of_a_kind_need_the_names_of_their_vms(table: str, tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="a heading `== NAME ==` above what is of another machine"):
        imported(tmp_path, web=f"{table}\n{table}")


def test_of_two_configurations_the_later_one_counts_as_a_whole(tmp_path: Path) -> None:
    first = "<cputune><shares>200</shares><vcpupin vcpu='0' cpuset='1'/></cputune>"
    scenario, notes = imported(tmp_path, a=vm("web", 1, first), b=vm("web", 5, vcpus=4))
    assert "weight" not in scenario["domain"]["web"]
    assert scenario["domain"]["web"]["affinity"] == "all"
    assert "two listings have configurations of web that differ: the later one is taken" in notes


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("  <vcpu placement='static'>4</vcpu>\n", "virsh dumpxml NAME"),
        ("    PID PSR COMMAND\n      7   1 qemu-system-x86\n", "ps -eLo"),
        ("USER   PID %CPU COMMAND\nroot   7   1.0 qemu\n", "ps -eLo"),
        ("Machine (16GB total)\n  Package L#0\n", "lscpu -p"),
        ("CPUs present:        8\nCPUs online:         8\n", "lscpu -p"),
        ("numa_mode      : strict\nnuma_nodeset   : 0\n", "virsh dumpxml NAME"),
        ("BOOT_IMAGE=/vmlinuz ro isolcpus=2\n", "grep -H . /proc/cmdline"),
        ("cpu.weight: 200\n", "grep -rs . /sys/fs/cgroup"),
        ("cur cores: 4\nnew cores: 2\n", "qm config VMID"),
        ("\u250c\u2500\u2500\u2510\n\u2502 vmid \u2502\n", "qm config VMID"),
        ("VMID       Status     Lock         Name\n200        running                 ct\n", "qm list"),
        ("balloon: 1\nballooninfo:\n\tactual: 1\n", "qm config VMID"),
        ("Control Group       Tasks   %CPU\n/     512  123.4\n", "cpu.stat"),
        ("Slice=machine.slice\nCPUWeight=200\n", "grep -rs . /sys/fs/cgroup"),
    ],
)
def test_what_is_not_read_has_the_command_whose_output_is(text: str, command: str, tmp_path: Path) -> None:
    with pytest.raises(RecordingError) as refused:
        imported(tmp_path, listing=text)
    assert "not read, but this is" in str(refused.value)
    assert command in str(refused.value)


# ---- what is not exact, or not there ----


def test_shares_below_the_least_weight_are_named(tmp_path: Path) -> None:
    groups = rf"/sys/fs/cgroup/cpu/{SCOPE}/cpu.shares:2" + "\n"
    scenario, notes = imported(tmp_path, groups=groups, vms=vm("web", 3))
    assert scenario["domain"]["web"]["weight"] == 1
    assert "web: 2 shares are a weight of 0.195; 1 is the nearest" in notes
    old = "Linux n 3.10.0-1160.el7.x86_64 #1 SMP x86_64 GNU/Linux\n"
    shares = vm("web", 3, "<cputune><shares>3</shares></cputune>")
    (tmp_path / "groups.txt").unlink()
    assert "web: 3 shares are a weight of 0.293; 1 is the nearest" in imported(tmp_path, kernel=old, vms=shares)[1]


def test_groups_that_compete_with_vms_are_named(tmp_path: Path) -> None:
    weights = {"system.slice/docker-7.scope": 500, "user.slice": 100, "machine.slice": 300, SCOPE: 50}
    text = "".join(f"/sys/fs/cgroup/{path}/cpu.weight:{weight}\n" for path, weight in weights.items())
    _, notes = imported(tmp_path, groups=text, vms=vm("web", 3))
    assert "control groups of others than VMs are left out: /system.slice/docker-7.scope" in notes.split("\n")[-1]


def test_memory_is_on_the_nodes_of_the_group(tmp_path: Path) -> None:
    cpus = "# CPU,Core,Socket,Node\n0,0,0,0\n1,1,0,0\n2,2,1,1\n3,3,1,1\n"
    groups = f"/sys/fs/cgroup/{SCOPE}/cpuset.mems:1\n"
    assert imported(tmp_path, cpus=cpus, groups=groups, vms=vm("web", 3))[0]["domain"]["web"]["memory_nodes"] == 1


def test_io_threads_and_waits_of_virsh(tmp_path: Path) -> None:
    table = " IOThread ID   CPU Affinity\n-----------------------------\n 1             0-1\n 2             2\n"
    use = "1700000000\nDomain: 'web'\n  vcpu.current=1\n  vcpu.0.wait=0\n  vcpu.0.delay=12345\n"
    scenario, notes = imported(tmp_path, web=table, use=use)
    assert scenario["domain"]["web"]["iothreads"] == 1
    assert "web: 2 I/O threads; a scenario has one" in notes
    assert "web: no field of a scenario says how long its vCPUs waited" in notes


def test_parameters_of_another_hypervisor_are_named(tmp_path: Path) -> None:
    _, notes = imported(tmp_path, web="Scheduler      : credit\nweight         : 512\ncap            : 50\n")
    assert "web: no field of a scenario says weight = 512, which `virsh schedinfo` has of another hypervisor" in notes
    assert "cap = 50" in notes


def test_the_name_of_a_thread_may_be_inside_a_row(tmp_path: Path) -> None:
    """By `ps -eLo tid,pid,comm,ni,cgroup:60,args`."""
    heading = f"{'TID':>7} {'PID':>7} {'COMMAND':15} {'NI':>3} {'CGROUP':60} COMMAND\n"
    row = f"{{:7d}} {7:7d} {{:15}} {-20:3d} {'0::/machine.slice/a.scope':60} /usr/bin/qemu-system-x86_64 -name web_1\n"
    threads = row.format(7, "qemu-kvm") + row.format(8, "CPU 0/KVM") + row.format(9, "CPU 1/KVM")
    scenario, _ = imported(tmp_path, threads=heading + threads)
    web = scenario["domain"]["web_1"]
    assert (web["vcpus"], web["nice"]) == (2, -20)
