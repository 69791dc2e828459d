"""Twins of KVM hosts under their own scheduler: who is who, groups and weights, and how good they are."""

import gzip
import json
import lzma
import shutil
from pathlib import Path
from typing import Any

import pytest

import vcpulab
from support import ROOT, Vcpulab
from vcpulab import formats, twin
from vcpulab.errors import RecordingError, RequestError
from vcpulab.twin.twin import Twin

FOLDERS = ROOT / "python" / "vcpulab" / "data" / "linux"
HOST = ROOT / "examples" / "kvm-host"
KVM = ROOT / "tests" / "recordings" / "kvm6.1"


def kvm_host(folder: Path) -> Path:
    """The host of the guide: its listings, and its recording."""
    shutil.copytree(HOST, folder / "kvm-host")
    shutil.copy(FOLDERS / "6.12-eevdf-nested" / "trace.txt.gz", folder / "kvm-host")
    return folder / "kvm-host"


# What is beyond its tolerance, and why, is in the guide.
@pytest.mark.parametrize(
    ("name", "within"),
    [
        ("6.1-cfs-nested", "3 of 3"),
        ("6.1-cfs-quota40", "6 of 6"),
        ("6.1-cfs-sleepers", "11 of 11"),
        ("6.1-cfs-weights", "3 of 4"),
        ("6.12-eevdf-nested", "3 of 3"),
        ("6.12-eevdf-quota40", "5 of 6"),
        ("6.12-eevdf-sleepers", "10 of 11"),
        ("6.12-eevdf-weights", "4 of 4"),
    ],
)
def test_twins_share_switch_and_wait_as_the_recorded_host_did(name: str, within: str) -> None:
    """Made of the first half, held against the second."""
    scored = Twin(FOLDERS / name).score(replications=5)
    off = {(row.place, row.metric.name): row.off for row in scored.judged if not row.holds}
    least, of = map(int, within.split(" of "))
    assert len(scored.judged) == of
    assert of - len(off) >= least - 1, off
    assert all(abs(row.off) <= 1 for row in scored.judged if row.metric.name == "gotten"), off
    # The pattern of hogs with different weights hangs on their phase.
    assert all(abs(row.off) <= 15 for row in scored.judged if row.metric.name == "switches"), off


def test_a_thread_that_yields_is_no_twin_of_itself() -> None:
    """Calls of sched_yield are no demand: shares are right, switches are not."""
    scored = Twin(FOLDERS / "6.12-eevdf-yield").score(replications=3)
    off = {row.metric.name: row.off for row in scored.judged if not row.holds}
    assert set(off) == {"switches"}
    assert off["switches"] < -40


def test_the_host_is_as_its_files_say(tmp_path: Path) -> None:
    made = Twin(kvm_host(tmp_path))
    document = made.scenario.to_dict()
    host = document["host"]
    assert (host["hypervisor"], host["scheduler"], host["generation"]) == ("kvm", "linux-eevdf", "6.12")
    assert (host["toolstack"], host["hz"], host["base_slice_us"], host["polls_recorded"]) == ("libvirt", 250, 700, True)
    assert {name: (one["vcpus"], one.get("weight")) for name, one in document["domain"].items()} == {
        "shop": (2, 200),
        "batch": (2, None),
        "kernel": (1, None),
    }
    assert document["domain"]["kernel"]["daemon"]
    assert "# Linux 6.12.117+deb12-cloud-amd64: linux-eevdf as in 6.12\n" in made.text


SETUP = """\
* VM a: shares=1024 quota=- period=- cpus=0 100000 100000
* VM b: shares=1024 quota=60000 period=100000 cpus=- 100000 100000
"""


def pinned(folder: Path, **files: str) -> dict[str, Any]:
    """The domains of a twin of a host of two CPUs, with other files beside its recording."""
    copied = Path(
        shutil.copytree(ROOT / "evidence" / "recordings" / "hosts" / "linux6.18-2cpus-hogs-1", folder / "host")
    )
    for name, text in files.items():
        next(copied.glob(f"{name}.*"), copied / f"{name}.txt").write_text(text)
    domains: dict[str, Any] = Twin(copied).scenario.written()["domain"]
    return domains


def test_the_setup_of_make_real_host_has_pins_and_groups_the_limit_in_force(tmp_path: Path) -> None:
    """The quota of b was removed: its group has none."""
    domains = pinned(tmp_path, setup=SETUP)
    assert domains["a"]["affinity"] == "0"
    assert domains["b"].get("affinity", "all") == "all"
    assert "global_quota_us" not in domains["b"]


def test_affinity_of_threads_is_that_of_vcpus_before_what_is_configured(tmp_path: Path) -> None:
    """By taskset, and by /proc; thread 9620 is a's first vCPU, 9622 its second, 9623 b's second."""
    listed = """\
pid 9620's current affinity list: 1
/proc/9622/task/9622/status:Name:\tCPU 1/KVM
/proc/9622/task/9622/status:Cpus_allowed_list:\t0-1
/proc/9497/task/9623/status:Cpus_allowed_list:\t0
"""
    domains = pinned(tmp_path, setup=SETUP, affinity=listed)
    assert domains["a"]["affinity"] == ["1", "all"]
    assert domains["b"]["affinity"] == ["all", "0"]


def test_a_setup_with_something_else_names_the_line(tmp_path: Path) -> None:
    (tmp_path / "setup.md").write_text(SETUP + "* VM c: 100000\n")
    with pytest.raises(RecordingError, match=r"setup.md:3: found .*allowed: .*cpus=CPUS"):
        formats.read(tmp_path / "setup.md")


def test_vcpus_that_did_not_run_are_there(tmp_path: Path) -> None:
    xml = kvm_host(tmp_path) / "machines.xml"
    before, shop = xml.read_text().split("<name>shop")
    xml.write_text(f"{before}<name>shop{shop.replace('>2</vcpu>', '>4</vcpu>')}")
    document = Twin(tmp_path / "kvm-host").scenario.to_dict()
    assert [document["domain"][name]["vcpus"] for name in ("shop", "batch")] == [4, 2]


def test_vms_beside_slices_stay_there(tmp_path: Path) -> None:
    """A VM in a group of the root group competes with slices, not with the VMs in them."""
    shutil.copytree(FOLDERS / "6.12-eevdf-nested", tmp_path / "host")
    (tmp_path / "host/experiment.txt").write_text(
        "cg machine.slice\ncg machine.slice/A\nvm A machine.slice/A\nth\nth\ncg B weight=200\nvm B B\nth\nth\n"
    )
    document = Twin(tmp_path / "host").scenario.to_dict()
    assert {name: document["domain"][name].get("cgroup") for name in "AB"} == {"A": "machine.slice", "B": "/"}
    assert document["domain"]["B"]["weight"] == 200


def test_groups_of_a_recorded_experiment(tmp_path: Path) -> None:
    """Deep groups, limits, bursts, idle, groups that are shared, and threads in none."""
    shutil.copytree(FOLDERS / "6.12-eevdf-nested", tmp_path / "host")
    (tmp_path / "host/experiment.txt").write_text(
        "cg machine.slice\ncg machine.slice/gold weight=300 max=50000,100000 burst=5000\n"
        "cg machine.slice/gold/A weight=50 idle=1\ncg machine.slice/gold/A/vcpu0 max=20000,50000 threaded\n"
        "cg machine.slice/gold/A/vcpu1 max=20000,50000 threaded\n"
        "vm A machine.slice/gold/A\nth cg=machine.slice/gold/A/vcpu0\nth cg=machine.slice/gold/A/vcpu1\n"
        "vm B\nth nice=5\nth nice=5\n"
    )
    document = Twin(tmp_path / "host").scenario.to_dict()
    gold = document["cgroup"]["machine.slice/gold"]
    assert (gold["weight"], gold["quota_us"], gold["period_us"], gold["burst_us"]) == (300, 50_000, 100_000, 5_000)
    one = document["domain"]["A"]
    assert (one["cgroup"], one["weight"], one["idle"]) == ("machine.slice/gold", 50, 1)
    assert (one["vcpu_quota_us"], one["vcpu_period_us"]) == (20_000, 50_000)
    # The recorded priority is that of nice 0; two threads beside others are as a group of weight 200.
    assert document["domain"]["B"]["weight"] == 200


@pytest.mark.parametrize("policy", ["batch", "idle"])
def test_policies_of_a_recorded_experiment(tmp_path: Path, policy: str) -> None:
    shutil.copytree(FOLDERS / "6.12-eevdf-nested", tmp_path / "host")
    file = tmp_path / "host/experiment.txt"
    file.write_text(file.read_text().replace("\nth", f"\nth policy={policy}"))
    domains = Twin(tmp_path / "host").scenario.to_dict()["domain"]
    assert {name: domains[name]["sched_policy"] for name in "AB"} == {"A": policy, "B": policy}


def test_threads_that_serve_vms_are_found_and_kept_as_those_who_wake(tmp_path: Path) -> None:
    """QEMU's main loop wakes its vCPU in a recording of a real KVM host."""
    shutil.copy(KVM / "ftrace.txt.xz", tmp_path)
    (tmp_path / "kernel.txt").write_text("Linux version 6.1.0-56-cloud-amd64\nCONFIG_HZ=250\n")
    made = Twin(tmp_path)
    domains = made.scenario.to_dict()["domain"]
    emulators = [name for name in domains if name.endswith(".emulator")]
    assert len(emulators) == 3
    assert all(domains[name]["daemon"] for name in emulators)
    assert '{ await = "qemu-109.emulator-wakes-qemu-109" }' in made.text
    rows = Twin(tmp_path).score(replications=2).rows
    assert {row.place for row in rows} == {"host", "qemu-91", "qemu-109", "qemu-127"}, "of VMs alone"


@pytest.mark.parametrize(
    ("listing", "text", "name"),
    [
        (
            "ps.txt",
            "PID TID COMMAND COMMAND\n{p} {p} x  /usr/bin/kvm -id 7 -name shop,debug-threads=on -smp 1\n",
            "shop",
        ),
        ("qm.txt", " VMID NAME STATUS MEM(MB) BOOTDISK(GB) PID\n7 shop running 9 1.0 {p}\n", "shop"),
        ("proc.txt", "/proc/{p}/cgroup:0::/machine.slice/machine-qemu\\x2d7\\x2dshop.scope/libvirt\n", "shop"),
        ("proc.txt", "/proc/{p}/cgroup:4:cpu,cpuacct:/machine/shop.libvirt-qemu\n", "shop"),
        ("proc.txt", "/proc/{p}/cgroup:0::/qemu.slice/7.scope\n", "vm7"),
        ("procs.txt", "/sys/fs/cgroup/qemu.slice/7.scope/cgroup.procs:{p}\n", "vm7"),
    ],
)
def test_processes_are_vms_by_whatever_tells_them(listing: str, text: str, name: str, tmp_path: Path) -> None:
    shutil.copy(KVM / "ftrace.txt.xz", tmp_path)
    (tmp_path / listing).write_text(text.replace("{p}", "91"))
    sources = twin.gather([tmp_path]).with_threads()
    assert name in sources.roles.vms
    assert sorted(sources.roles.vms) == sorted(["qemu-109", "qemu-127", name])


def test_other_threads_of_the_host(tmp_path: Path) -> None:
    """Vhost threads serve the VM of their process; real-time threads and nice values are known by their priority."""
    vhost, vcpu, other = ("vhost-500", 520, 500, 120), ("CPU 0/KVM", 510, 500, 115), ("CPU 0/KVM", 610, 600, 98)

    def begins(who: tuple[str, int, int, int], at: float) -> str:
        return f" {who[0]}-{who[1]} ({who[2]}) [000] d..2. {at:.6f}: "

    def switch(one: tuple[str, int, int, int], next_: tuple[str, int, int, int], at: float) -> str:
        before = f"prev_comm={one[0]} prev_pid={one[1]} prev_prio={one[3]} prev_state=S"
        after = f"next_comm={next_[0]} next_pid={next_[1]} next_prio={next_[3]}"
        return f"{begins(one, at)}sched_switch: {before} ==> {after}"

    def waking(one: tuple[str, int, int, int], woken: tuple[str, int, int, int], at: float) -> str:
        return f"{begins(one, at)}sched_waking: comm={woken[0]} pid={woken[1]} prio={woken[3]} target_cpu=000"

    lines = []
    for number in range(40):
        at = 1 + number * 0.05
        lines += [waking(vhost, vcpu, at), switch(vhost, vcpu, at + 0.001), waking(vcpu, vhost, at + 0.02)]
        lines += [waking(vcpu, other, at + 0.021), switch(vcpu, other, at + 0.022), switch(other, vhost, at + 0.048)]
    (tmp_path / "trace.txt").write_text("\n".join(lines) + "\n")
    (tmp_path / "kernel.txt").write_text("Linux version 6.12.5\n")
    made = Twin(tmp_path)
    domains = made.scenario.to_dict()["domain"]
    assert set(domains) == {"qemu-500", "qemu-600", "qemu-500.vhost"}
    assert (domains["qemu-600"]["sched_policy"], domains["qemu-600"]["sched_priority"]) == ("fifo", 1)
    assert made.sources.roles.vms["qemu-500"].nice == -5
    assert "qemu-500.vhost-wakes-qemu-500" in made.text
    assert any(note.startswith("hz = 250 is assumed: no listing has") for note in made.notes)


def test_a_vm_with_the_name_of_the_kernels_threads(tmp_path: Path) -> None:
    host = kvm_host(tmp_path)
    (host / "threads.txt").write_text("130 kernel 0\n131 kernel 1\n132 host 0\n133 host 1\n")
    made = Twin(host)
    assert set(made.scenario.to_dict()["domain"]) == {"kernel", "host-vm", "threads-1"}
    assert any("`host` is host-vm here" in note for note in made.notes)


def test_what_is_too_short_is_refused_with_the_length_needed(tmp_path: Path) -> None:
    shutil.copy(ROOT / "examples/perf-sched.txt", tmp_path / "trace.txt")
    short = Twin(tmp_path / "trace.txt", scheduler="linux-cfs")
    with pytest.raises(RequestError, match=r"4.11 ms with 1 wake-up is too short .* allowed: at least 1 s"):
        _ = short.text
    with pytest.raises(
        RequestError, match=r"long, in which chance decides; allowed: at least 1 s, of a recording of 10 s"
    ):
        Twin(FOLDERS / "6.1-cfs-weights").score(split=0.9)


def test_another_scheduler_is_simulated_but_not_scored(tmp_path: Path) -> None:
    host = kvm_host(tmp_path)
    under_credit2 = Twin(host, scheduler="credit2")
    document = under_credit2.scenario.to_dict()
    assert (document["host"]["hypervisor"], document["host"]["scheduler"]) == ("xen", "credit2")
    assert set(document["domain"]) == {"shop", "batch"}, "Xen has no threads of a host"
    with pytest.raises(RequestError, match="recorded under linux-eevdf: what a twin does under credit2"):
        under_credit2.score()
    under_cfs = Twin(host, scheduler="linux-cfs").scenario.to_dict()
    assert (under_cfs["host"]["hypervisor"], under_cfs["host"]["scheduler"]) == ("kvm", "linux-cfs")
    assert under_cfs["domain"]["shop"]["weight"] == 200


def test_from_a_recording_to_commands(command: Vcpulab, tmp_path: Path) -> None:
    kvm_host(tmp_path)
    made = command("twin", "kvm-host", "--out", "host.toml")
    assert made.returncode == 0, made.stderr
    assert "hint: vcpulab twin score kvm-host" in made.stdout + made.stderr
    scored = command("twin", "score", "kvm-host", "--replications", "2", "--format", "json")
    assert {row["of"] for row in json.loads(scored.stdout)} == {"host", "shop", "batch"}
    whatif = command("whatif", "host.toml", "--set", "shop.weight=400", "--set", "run.duration=1s")
    assert whatif.returncode == 0, whatif.stderr
    assert "virsh schedinfo shop " in whatif.stdout
    assert "cpu_shares=400" in whatif.stdout
    for name in ("explain", "lint"):
        found = command(name, "host.toml", "--replications", "2")
        assert found.returncode in (0, 1), found.stderr
    tuned = command("tune", "host.toml", "--trials", "3", "--only", "domain.*.weight")
    assert tuned.returncode == 0, tuned.stderr


def test_folders_of_either_compression_are_read(tmp_path: Path) -> None:
    """`make real-kvm` compresses with xz, the project with gzip."""
    folder = FOLDERS / "6.1-cfs-weights"
    shutil.copytree(folder, tmp_path / "host")
    text = gzip.decompress((tmp_path / "host/trace.txt.gz").read_bytes())
    (tmp_path / "host/trace.txt.gz").unlink()
    (tmp_path / "host/trace.txt.xz").write_bytes(lzma.compress(text))
    assert Twin(tmp_path / "host").text.split("\n", 1)[1] == Twin(folder).text.split("\n", 1)[1].replace(
        "twin of 6.1-cfs-weights", "twin of host"
    )
    assert vcpulab.Scenario.from_toml(Twin(folder).text).to_dict()["domain"]["c"]["weight"] == 400
