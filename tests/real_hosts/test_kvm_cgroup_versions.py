"""Control groups of version 1 on KVM hosts: `cpu_shares` are in other units there, and limits in other files."""

from pathlib import Path
from typing import Any

import pytest

from kvm_imports import imported
from vcpulab.formats import read
from vcpulab.formats.linux_host import Linux
from vcpulab.formats.machine import Machine
from vcpulab.formats.ps import Thread
from vcpulab.hosts.cgroup_version import version_of

OLD = "Linux host 3.10.0-1062.el7.x86_64 #1 SMP Wed Aug 7 18:08:02 UTC 2019 x86_64 x86_64 x86_64 GNU/Linux\n"
NEW = "Linux host 6.12.57+deb13-amd64 #1 SMP PREEMPT_DYNAMIC Debian x86_64 GNU/Linux\n"
NODEINFO = "CPU model:           x86_64\nCPU(s):              8\n"
SCOPE = "machine.slice/machine-qemu\\x2d3\\x2ddb1.scope"


def vm(number: int, shares: int | None) -> str:
    tune = "" if shares is None else f"<cputune><shares>{shares}</shares></cputune>"
    return f"<domain type='kvm' id='{number}'><name>vm{number}</name><vcpu>2</vcpu>{tune}</domain>\n"


def weights(scenario: dict[str, Any]) -> list[int]:
    return [domain.get("weight", 100) for domain in scenario["domain"].values()]


def test_vms_with_fewer_shares_than_the_default_of_version_1_weigh_less(tmp_path: Path) -> None:
    machines = "".join([*(vm(number, 500) for number in (1, 2)), *(vm(number, None) for number in (3, 4))])
    scenario, notes = imported(tmp_path, kernel=OLD, nodeinfo=NODEINFO, machines=machines)
    assert scenario["host"]["cgroups"] == 1
    assert weights(scenario) == [49, 49, 100, 100]
    assert "control groups of version 1 are assumed (Linux 3.10.0-1062.el7.x86_64)" in notes
    assert "`stat -fc %T /sys/fs/cgroup` tells" in notes
    scenario, notes = imported(tmp_path, kernel=NEW, nodeinfo=NODEINFO, machines=machines)
    assert scenario["host"].get("cgroups", 2) == 2
    assert weights(scenario) == [500, 500, 100, 100]
    assert "control groups of version 2 are assumed (Linux 6.12.57+deb13-amd64)" in notes


def test_shares_that_only_version_1_takes_are_read(tmp_path: Path) -> None:
    scenario, notes = imported(tmp_path, kernel=NEW, machines=vm(1, 12_000) + vm(2, 262_144) + vm(3, 2))
    assert (scenario["host"]["cgroups"], weights(scenario)) == (1, [1172, 25_600, 1])
    assert "assumed" not in notes.partition("cgroups")[2]


def test_groups_of_version_1_are_read(tmp_path: Path) -> None:
    groups = (
        f"/sys/fs/cgroup/cpu,cpuacct/{SCOPE}/cpu.shares:2048\n"
        f"/sys/fs/cgroup/cpu,cpuacct/{SCOPE}/cpu.cfs_quota_us:150000\n"
        f"/sys/fs/cgroup/cpu,cpuacct/{SCOPE}/cpu.cfs_period_us:50000\n"
        f"/sys/fs/cgroup/cpu,cpuacct/{SCOPE}/vcpu0/cpu.cfs_quota_us:20000\n"
        f"/sys/fs/cgroup/cpu,cpuacct/{SCOPE}/vcpu0/cpu.cfs_period_us:100000\n"
        f"/sys/fs/cgroup/cpuset/{SCOPE}/vcpu0/cpuset.cpus:0-3\n"
    )
    machines = vm(3, None).replace("vm3", "db1")
    scenario, notes = imported(tmp_path, kernel=NEW, nodeinfo=NODEINFO, machines=machines, groups=groups)
    db = scenario["domain"]["db1"]
    assert (scenario["host"]["cgroups"], db["weight"]) == (1, 200)
    assert (db["global_quota_us"], db["global_period_us"], db["vcpu_quota_us"]) == (150_000, 50_000, 20_000)
    assert db["affinity"] == ["0-3", "all"]
    assert "version" not in notes


@pytest.mark.parametrize("mount", ["/sys/fs/cgroup/cpu", "/cgroup/cpu", "/mnt/groups/cpu,cpuacct", "/dev/cpuctl"])
@pytest.mark.parametrize(
    ("group", "parent"),
    [(SCOPE, "machine.slice"), ("machine/db1.libvirt-qemu", "machine"), ("libvirt/qemu/db1", "libvirt/qemu")],
)
def test_groups_are_the_same_at_any_mount_point(mount: str, group: str, parent: str, tmp_path: Path) -> None:
    groups = (
        f"{mount}/cpu.shares:1024\n{mount}/{group}/cpu.shares:512\n{mount}/{group}/cpu.cfs_quota_us:150000\n"
        f"{mount}/{group}/cpu.cfs_period_us:100000\n{mount}/{group}/vcpu0/cpu.cfs_quota_us:20000\n"
    )
    machines = vm(3, None).replace("vm3", "db1")
    scenario, notes = imported(tmp_path, kernel=NEW, nodeinfo=NODEINFO, machines=machines, groups=groups)
    db = scenario["domain"]["db1"]
    assert (scenario["host"]["cgroups"], db["weight"], db.get("cgroup")) == (1, 50, parent)
    assert (db["global_quota_us"], db["vcpu_quota_us"]) == (150_000, 20_000)
    assert "left out" not in notes
    note = f"control groups are mounted on {mount}: in commands type that instead of /sys/fs/cgroup"
    assert (note in notes) != mount.startswith("/sys/fs/cgroup")


def test_a_scope_without_a_name_is_found_by_its_number(tmp_path: Path) -> None:
    groups = "/sys/fs/cgroup/machine.slice/machine-qemu\\x2d3.scope/cpu.weight:50\n"
    scenario, notes = imported(tmp_path, kernel=NEW, machines=vm(3, None).replace("vm3", "шоп"), groups=groups)
    assert weights(scenario) == [50]
    assert "left out" not in notes


SCHEDINFO = "== vm1 ==\nScheduler      : posix\ncpu_shares     : {}\n"


@pytest.mark.parametrize(
    ("listing", "version"),
    [
        (f"/sys/fs/cgroup/cpu/{SCOPE}/cpuacct.usage:1234\n", 1),
        ("/sys/fs/cgroup/machine.slice/cpu.max:max 100000\n", 2),
        ("cgroup2fs\n", 2),
        ("tmpfs\n" + NEW, 1),
        ("cgroup2 on /sys/fs/cgroup type cgroup2 (rw,nosuid,nodev,noexec,relatime,nsdelegate)\n", 2),
        (
            "sysfs on /sys type sysfs (rw,nosuid)\n"
            "cgroup2 on /sys/fs/cgroup/unified type cgroup2 (rw,nsdelegate)\n"
            "cgroup on /sys/fs/cgroup/cpu,cpuacct type cgroup (rw,nosuid,cpu,cpuacct)\n",
            1,
        ),
        (NEW + "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,nosuid,cpu,cpuacct 0 0\n", 1),
        ("/proc/77/cgroup:11:cpu,cpuacct:/machine\n/proc/77/cgroup:1:name=systemd:/x\n", 1),
        ("/proc/cmdline:BOOT_IMAGE=/vmlinuz systemd.unified_cgroup_hierarchy=0 quiet\n", 1),
        (SCHEDINFO.format(1024), 1),
        (SCHEDINFO.format(100), 2),
    ],
)
def test_what_listings_show_is_stronger_than_the_kernel(tmp_path: Path, listing: str, version: int) -> None:
    for kernel in (OLD, NEW):
        scenario, notes = imported(tmp_path, kernel=kernel, machines=vm(1, None) + vm(2, 500), x=listing)
        assert scenario["host"].get("cgroups", 2) == version
        assert weights(scenario)[1] == (49 if version == 1 else 500)
        assert "are assumed" not in notes


def test_the_group_of_a_listed_thread_tells_the_version(tmp_path: Path) -> None:
    heading = "PID TID CGROUP COMMAND\n"
    (tmp_path / "v1.txt").write_text(f"{heading}7 7 11:cpu,cpuacct:/machine/a,2:pids:/b,1:name=systemd:/c qemu\n")
    (tmp_path / "v2.txt").write_text(f"{heading}7 7 0::/machine/a qemu\n")
    (tmp_path / "cut.txt").write_text(f"{heading}7 7 12:pids:/b,11:memory qemu\n")
    versions = {}
    for name in ("v1", "v2", "cut"):
        (thread,) = read(tmp_path / f"{name}.txt").holds
        versions[name] = thread.group, thread.cgroups
    assert versions == {"v1": ("machine/a", 1), "v2": ("machine/a", 2), "cut": ("", None)}
    assert version_of(Linux(), [], [Thread(7, 7, cgroups=1)]).version == 1


@pytest.mark.parametrize(
    ("release", "version"),
    [
        ("3.10.0-1160.el7.x86_64", 1),
        ("4.18.0-553.el8_10.x86_64", 1),
        ("4.19.0-27-amd64", 1),
        ("5.4.0-150-generic", 1),
        ("5.15.0-67-generic #74~20.04.1-Ubuntu SMP", 1),
        ("5.4.17-2136.el8uek.x86_64", 1),
        ("5.4.203-1-pve", 1),
        ("5.10.0-0.deb10.16-amd64", 1),
        ("5.10.234-225.amzn2.x86_64", 1),
        ("5.10.0-32-amd64", 2),
        ("5.14.0-503.el9.x86_64", 2),
        ("5.15.0-113-generic #123-Ubuntu SMP", 2),
        ("5.15.158-2-pve", 2),
        ("6.8.12-4-pve", 2),
        ("6.18.44", 2),
    ],
)
def test_distributions_are_known_by_their_kernels(release: str, version: int) -> None:
    found = version_of(Linux(release), [], [])
    assert (found.version, found.certain) == (version, False)


def test_a_default_of_both_versions_tells_nothing() -> None:
    machines = [Machine("a", shares_now=1024), Machine("b", shares_now=100)]
    assert version_of(Linux("3.10.0"), machines, []).version == 1
    assert version_of(Linux("6.12.0"), machines, []).version == 2
    assert version_of(Linux(), machines, []).certain is False


def test_cpuunits_of_proxmox_are_shares_on_version_1(tmp_path: Path) -> None:
    config = "boot: order=scsi0\ncores: 2\ncpuunits: 2048\nmemory: 2048\nname: web\n"
    scenario, _ = imported(tmp_path, kernel="5.4.203-1-pve\n", config=config)
    assert (scenario["host"]["cgroups"], weights(scenario)) == (1, [200])
    scenario, _ = imported(tmp_path, kernel="6.8.12-4-pve\n", config=config)
    assert weights(scenario) == [2048]
