"""`vcpulab import kvm`: what libvirt's, Proxmox VE's and Linux's own tools print of a host, as a scenario."""

from pathlib import Path

import pytest

import vcpulab
from support import ROOT, Vcpulab
from vcpulab import formats as recordings
from vcpulab.errors import RecordingError, RequestError
from vcpulab.hosts.kvm_listings import read_host
from vcpulab.imports.kvm import scenario_of

HOST = ROOT / "examples" / "kvm-host"
FOLDERS = ROOT / "crates" / "conformance" / "tests" / "linux"
XML = """\
<?xml version='1.0'?>
<domain type='kvm' id='3'>
  <name>web</name>
  <vcpu placement='static' cpuset='0-5' current='2'>4</vcpu>
  <iothreads>1</iothreads>
  <cputune>
    <shares>200</shares>
    <period>100000</period>
    <quota>50000</quota>
    <global_period>50000</global_period>
    <global_quota>150000</global_quota>
    <emulator_quota>-1</emulator_quota>
    <vcpupin vcpu='0' cpuset='2-3'/>
    <emulatorpin cpuset='0-1'/>
    <iothreadpin iothread='1' cpuset='1'/>
    <vcpusched vcpus='0-1,^1' scheduler='fifo' priority='5'/>
    <vcpusched vcpus='1' scheduler='fifo' priority='5'/>
  </cputune>
</domain>
"""
DOMAINS = """\
== web ==
Scheduler      : posix
cpu_shares     : 200
vcpu_period    : 100000
vcpu_quota     : 50000
emulator_period: 100000
emulator_quota : 18446744073709551
global_period  : 100000
global_quota   : -1

== mail ==
 VCPU   CPU Affinity
----------------------
 0      0-7
 1      0-3

 emulator: CPU Affinity
----------------------------------
       *: 0-1

 IOThread ID     CPU Affinity
---------------------------------------------------
 1               2
"""
DOMSTATS = """\
1764000000.5
Domain: 'web'
  cpu.time=100000000000
  vcpu.current=2
Domain: 'mail'
  cpu.time=5000000000

1764000010.5
Domain: 'web'
  cpu.time=112000000000
  vcpu.current=2
Domain: 'mail'
  cpu.time=5500000000
"""
VCPUINFO = """\
VCPU:           0
CPU:            2
State:          running
CPU time:       12.3s
CPU Affinity:   --yy----

VCPU:           1
CPU:            1
State:          idle
CPU time:       2.3s
CPU Affinity:   yyyyyyyy
"""
LSCPU = "# CPU,Core,Socket,Node,,L1d,L1i,L2,L3\n" + "".join(
    f"{cpu},{cpu % 4},0,0,,{cpu % 4},{cpu % 4},{cpu % 4},0\n" for cpu in range(8)
)
QM_LIST = """\
      VMID NAME                 STATUS     MEM(MB)    BOOTDISK(GB) PID
       100 web                  running    2048              32.00 1234
       101 mail                 stopped    2048              32.00 0
"""
QM_CONFIG = """\
agent: 1
affinity: 0-3
boot: order=scsi0
cores: 2
cpulimit: 1.5
cpuunits: 300
memory: 2048
name: web
net0: virtio=BC:24:11:00:00:01,bridge=vmbr0
scsi0: local-lvm:vm-100-disk-0,iothread=1,size=32G
scsihw: virtio-scsi-single
sockets: 2

[before-upgrade]
cores: 1
"""
CGLS = """\
Control group /:
-.slice
├─user.slice (#1234)
│ → user.invocation_id: 0123
│ └─user-0.slice
│   └─99 bash
├─init.scope
│ └─1 /sbin/init
└─machine.slice …
  └─machine-qemu\\x2d3\\x2dweb.scope …
    └─libvirt
      └─emulator
        └─2345 /usr/bin/qemu-system-x86_64 -name guest=web
"""


def written(folder: Path, **texts: str) -> list[str]:
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text)
    return [f"{name}.txt" for name in texts]


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("web.xml", XML, "virsh-xml"),
        ("domains.txt", DOMAINS, "virsh-domain"),
        ("vcpuinfo-web.txt", VCPUINFO, "virsh-domain"),
        ("use.txt", DOMSTATS, "virsh-domstats"),
        ("use.txt", DOMSTATS.partition("\n")[2], "virsh-domstats"),
        ("list.txt", (HOST / "machines.txt").read_text(), "virsh-list"),
        ("node.txt", "CPU model:           x86_64\nCPU(s):              8\n", "virsh-nodeinfo"),
        ("node.txt", "Architecture:        x86_64\nCPU(s):              8\n", "virsh-nodeinfo"),
        ("capabilities.xml", "<capabilities>\n</capabilities>\n", "virsh-capabilities"),
        ("cpus.txt", LSCPU, "lscpu"),
        ("qm.txt", QM_LIST, "qm-list"),
        ("100.conf", QM_CONFIG, "qm-config"),
        ("ps.txt", (HOST / "ps.txt").read_text(), "ps-threads"),
        ("ps.txt", "    PID     LWP TTY          TIME CMD\n      1       1 ?        00:00:00 systemd\n", "ps-threads"),
        ("kernel.txt", "6.8.12-4-pve\n", "linux"),
        ("kernel.txt", "Linux kvm1 6.1.0-18-amd64 #1 SMP x86_64 GNU/Linux\n", "linux"),
        ("groups.txt", (HOST / "groups.txt").read_text(), "linux"),
        ("cgroups.txt", "[a]\ncpu.weight: 100\ncpu.stat:\nusage_usec 4\n", "linux"),
        ("tree.txt", CGLS, "systemd-cgls"),
        ("experiment.txt", "cg a weight=200\nvm x a\nth\n", "linux-experiment"),
        ("setup.md", "* VM a: weight=200 quota=- period=- cpus=- 100000\n", "host-setup"),
        ("affinity.txt", "pid 12's current affinity list: 0,2\n", "linux"),
        ("status.txt", "/proc/12/task/13/status:Cpus_allowed_list:\t0-3\n", "linux"),
    ],
)
def test_each_listing_is_known_by_how_it_begins(name: str, text: str, kind: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    assert recordings.kind_of(tmp_path / name) == kind
    if kind != "virsh-capabilities":
        assert recordings.read(tmp_path / name).as_data()["holds"]


def test_what_xml_says_of_a_machine(tmp_path: Path) -> None:
    (tmp_path / "web.xml").write_text(XML + XML.replace("web", "db").replace(" id='3'", ""))
    web, db = recordings.read(tmp_path / "web.xml").holds
    assert (web.name, web.number, web.running, web.vcpus, web.iothreads, web.shares) == ("web", 3, True, 2, 1, 200)
    assert web.params == {
        "vcpu_period_us": 100_000,
        "vcpu_quota_us": 50_000,
        "global_period_us": 50_000,
        "global_quota_us": 150_000,
        "emulator_quota_us": -1,
    }
    assert (web.vcpu_pins, web.emulator_pin, web.iothread_pins) == ({0: "2-3", 1: "0-5"}, "0-1", {1: "1"})
    assert web.scheduling == {0: ("fifo", 5), 1: ("fifo", 5)}
    assert (db.name, db.running) == ("db", None), "its XML has no id: it is off, or the next start's"


def test_listings_without_names_are_of_the_heading_or_the_file(tmp_path: Path) -> None:
    (tmp_path / "domains.txt").write_text(DOMAINS)
    web, mail = recordings.read(tmp_path / "domains.txt").holds
    assert (web.name, web.shares_now, web.params["emulator_quota_us"]) == ("web", 200, -1)
    assert (mail.vcpus, mail.vcpu_pins, mail.emulator_pin) == (2, {0: "0-7", 1: "0-3"}, "0-1")
    assert mail.iothread_pins == {1: "2"}
    (tmp_path / "vcpuinfo-shop.txt").write_text(VCPUINFO)
    (shop,) = recordings.read(tmp_path / "vcpuinfo-shop.txt").holds
    assert (shop.name, shop.vcpus, shop.vcpu_pins[0]) == ("shop", 2, "2,3")


def test_a_scenario_of_libvirt(command: Vcpulab, tmp_path: Path) -> None:
    kernel = "Linux kvm1 6.8.0-40-generic #40-Ubuntu SMP x86_64 GNU/Linux\nCONFIG_HZ=1000\n"
    kernel += "/sys/module/kvm/parameters/halt_poll_ns:50000\n/sys/kernel/debug/sched/base_slice_ns:3000000\n"
    listed = written(tmp_path, web=XML, domains=DOMAINS, use=DOMSTATS, cpus=LSCPU, kernel=kernel)
    made = command("import", "kvm", *listed, "--out", "host.toml")
    assert made.returncode == 0, made.stderr
    assert "Linux 6.8.0-40-generic: linux-eevdf as in 6." in made.stderr
    scenario = vcpulab.Scenario.load(tmp_path / "host.toml").to_dict()
    host = scenario["host"]
    assert (host["hypervisor"], host["scheduler"], host["toolstack"]) == ("kvm", "linux-eevdf", "libvirt")
    assert (host["hz"], host["halt_poll_us"], host["base_slice_us"]) == (1000, 50, 3000)
    assert (host["topology"]["cores"], host["topology"]["threads"], host["topology"]["numbering"]) == (4, 2, "spread")
    web, mail = scenario["domain"]["web"], scenario["domain"]["mail"]
    assert (web["vcpus"], web["weight"], web["vcpu_quota_us"]) == (2, 200, 50_000)
    assert web["affinity"] == ["2-3", "0-5"]
    assert (web["emulator_affinity"], web["iothread_affinity"], web["iothreads"]) == ("0-1", "1", 1)
    assert (web["sched_policy"], web["sched_priority"]) == ("fifo", 5)
    assert [app["run"] for app in web["app"]] == ["6ms"], "120 % of a CPU, by two instances"
    assert (mail.get("weight"), mail["affinity"]) == (None, ["all", "0-3"])


def test_a_scenario_of_proxmox(command: Vcpulab, tmp_path: Path) -> None:
    (tmp_path / "100.conf").write_text(QM_CONFIG)
    listed = written(tmp_path, qm=QM_LIST, cpus=LSCPU, kernel="6.1.10-1-pve\n")
    made = command("import", "kvm", *listed, "100.conf")
    assert made.returncode == 0, made.stderr
    scenario = vcpulab.Scenario.from_toml(made.stdout).to_dict()
    assert (scenario["host"]["toolstack"], scenario["host"]["scheduler"]) == ("proxmox", "linux-cfs")
    (web,) = scenario["domain"].values()
    assert (web["vcpus"], web["cgroup"], web["weight"]) == (4, "qemu.slice", 300)
    assert (web["global_quota_us"], web["global_period_us"]) == (150_000, 100_000)
    assert (web["affinity"], web["emulator_affinity"], web["iothreads"]) == ("0-3", "0-3", 1)


def test_control_groups_say_what_holds_now(command: Vcpulab, tmp_path: Path) -> None:
    """Of both versions; those around VMs become tables."""
    scope = "/sys/fs/cgroup/machine.slice/gold.slice/machine-qemu\\x2d3\\x2dweb.scope"
    groups = (
        "/sys/fs/cgroup/machine.slice/gold.slice/cpu.weight:300\n"
        "/sys/fs/cgroup/machine.slice/gold.slice/cpu.max:200000 100000\n"
        f"{scope}/cpu.weight:400\n{scope}/cpu.max:250000 50000\n{scope}/cpu.max.burst:7000\n"
        f"{scope}/libvirt/vcpu0/cpu.max:20000 100000\n{scope}/libvirt/vcpu1/cpu.max:20000 100000\n"
        f"{scope}/libvirt/emulator/cpu.max:30000 100000\n{scope}/cpuset.cpus:0-3\n"
        "/sys/fs/cgroup/machine.slice/cpuset.cpus.effective:0-7\n"
        "/sys/fs/cgroup/machine.slice/gold.slice/cpuset.cpus:0-5\n"
    )
    made = command("import", "kvm", *written(tmp_path, web=XML, groups=groups, cpus=LSCPU))
    assert made.returncode == 0, made.stderr
    assert "scheduler = linux-eevdf: no listing says which kernel (`uname -a > kernel.txt` does)" in made.stderr
    scenario = vcpulab.Scenario.from_toml(made.stdout).to_dict()
    gold = scenario["cgroup"]["machine.slice/gold.slice"]
    assert (gold["weight"], gold["quota_us"], gold["cpus"]) == (300, 200_000, "0-5")
    assert "machine.slice" not in scenario["cgroup"], "it may run everywhere"
    web = scenario["domain"]["web"]
    assert (web["cgroup"], web["weight"]) == ("machine.slice/gold.slice", 400)
    assert (web["global_quota_us"], web["global_period_us"], web["global_burst_us"]) == (250_000, 50_000, 7_000)
    assert (web["vcpu_quota_us"], web["emulator_quota_us"]) == (20_000, 30_000)
    (tmp_path / "v1.txt").write_text(
        "/sys/fs/cgroup/cpu,cpuacct/machine.slice/machine-qemu\\x2d3\\x2dweb.scope/cpu.shares:2048\n"
        "/sys/fs/cgroup/cpu,cpuacct/machine.slice/machine-qemu\\x2d3\\x2dweb.scope/cpu.cfs_quota_us:-1\n"
    )
    first = vcpulab.Scenario.from_toml(command("import", "kvm", "web.txt", "v1.txt").stdout).to_dict()
    assert first["domain"]["web"]["weight"] == 200


def test_the_example_host(command: Vcpulab) -> None:
    made = command("import", "kvm", *(str(path) for path in sorted(HOST.glob("*.[tx][xm][tl]"))))
    assert made.returncode == 0, made.stderr
    scenario = vcpulab.Scenario.from_toml(made.stdout).to_dict()
    assert {name: domain.get("weight") for name, domain in scenario["domain"].items()} == {"batch": None, "shop": 200}
    assert (scenario["host"]["generation"], scenario["host"]["hz"], scenario["host"]["pcpus"]) == ("6.12", 250, 1)


def test_vms_have_the_names_of_command_lines_and_groups(tmp_path: Path) -> None:
    files = [HOST / name for name in ("ps.txt", "groups.txt")]
    host = read_host(map(recordings.read, files))
    assert host.name_of_process(128) == "batch"
    assert host.name_of_group(r"machine.slice/machine-qemu\x2d2\x2dshop.scope/libvirt/vcpu1") == "shop"
    assert host.machines["shop"].vcpus == 2
    (tmp_path / "tree.txt").write_text(CGLS)
    tree = recordings.read(tmp_path / "tree.txt")
    host = read_host([*map(recordings.read, files), tree])
    assert host.name_of_process(2345) == "web"
    assert {number: told.group for number, told in tree.holds.threads.items()}[99] == "user.slice/user-0.slice"
    texts = {tmp_path / "100.conf": QM_CONFIG, tmp_path / "qm.txt": QM_LIST}
    for file, text in texts.items():
        file.write_text(text)
    numbered = read_host(map(recordings.read, texts))
    assert numbered.name_of_group("qemu.slice/100.scope") == "web"
    assert numbered.name_of_group("qemu.slice/7.scope") == "vm7"
    assert numbered.name_of_process(1234) == "web"
    assert sorted(numbered.machines) == ["mail", "web"]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("list.txt", " Id   Name   State\n----\n what\n", "list.txt:3: found ` what`; allowed: an id or `-`, a name"),
        ("domains.txt", "== a ==\nScheduler      : posix\nwhat\n", "domains.txt:3: found `what`; allowed: a line of"),
        ("web.xml", "<domain type='kvm'>\n<name>a</nome>\n</domain>\n", "web.xml:2: found `<name>a</nome>`"),
        ("web.xml", "<!DOCTYPE x>\n<domain type='kvm'></domain>\n", "web.xml: found `<!DOCTYPE`"),
        (
            "web.xml",
            "<domain type='kvm'>\n<name>a</name><vcpu>x</vcpu></domain>\n",
            "found `x`; allowed: a number from 1 as vcpu",
        ),
        ("ps.txt", "PID TID COMMAND\n1 x a\n", "ps.txt:2: found `1 x a`; allowed: PID TID COMMAND"),
        ("cpus.txt", "# CPU,Core,Socket,Node\n0,0\n", "cpus.txt:2: found `0,0`; allowed: `CPU,CORE,SOCKET,NODE"),
        ("100.conf", "cores: 2\nmemory: 1\ncpulimit: lots\n", "100.conf: found `lots`; allowed: a number of CPUs"),
        ("qm.txt", "VMID NAME STATUS MEM(MB)\nx\n", "qm.txt:2: found `x`; allowed: VMID, name, status"),
        ("kernel.txt", "Linux version 6.1.0\nwhat is this\n", "kernel.txt:2: found `what is this`"),
        ("experiment.txt", "cg a\nth\n", "experiment.txt:2: found `th`; allowed: `th cg=GROUP"),
        ("use.txt", "Domain: 'a'\nwhat\n", "use.txt:2: found `what`; allowed: seconds, `Domain: 'NAME'`"),
        ("tree.txt", "Control group /:\nwhat\n", "tree.txt:2: found `what`; allowed: a line of the tree"),
        ("tree.txt", "Control group /:\n│ └─a\n", "tree.txt:2: found `│ └─a`; allowed: a group or a process one level"),
        ("qm.txt", QM_LIST.replace("running", "stopped"), "all VMs are off: web, mail"),
        ("trace.txt", "# tracer: nop\n", "trace.txt: found sched-text; allowed: virsh-list, "),
    ],
)
def test_what_is_wrong_is_said(command: Vcpulab, tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text)
    refused = command("import", "kvm", name)
    assert (refused.returncode, refused.stdout) == (2, ""), refused.stderr
    assert said in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Name ID Mem VCPUs State Time(s)\nDomain-0 0 1024 2 r----- 9.0\n", "xl-list; allowed: .*vcpulab.imports.xen"),
        ("timeStamp,elapsed,label,success\n1,2,a,true\n", "jtl; allowed: listings of a KVM host"),
    ],
)
def test_listings_of_other_hosts_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "list.txt").write_text(text)
    with pytest.raises(RequestError, match=f"list.txt: found {message}"):
        scenario_of([recordings.read(tmp_path / "list.txt")])


@pytest.mark.parametrize("policy", ["batch", "idle", "other"])
def test_the_policy_of_an_experiments_thread_is_read(tmp_path: Path, policy: str) -> None:
    (tmp_path / "experiment.txt").write_text(f"vm a\nth policy={policy}\n")
    [thread] = recordings.read(tmp_path / "experiment.txt").holds.machines["a"]
    assert thread.policy == policy


def test_an_experiment_with_another_policy_is_refused(tmp_path: Path) -> None:
    (tmp_path / "experiment.txt").write_text("vm a\nth policy=fifo\n")
    with pytest.raises(RecordingError, match=r"experiment.txt:2: found `th policy=fifo`.*policy=other\|batch\|idle"):
        recordings.read(tmp_path / "experiment.txt")
