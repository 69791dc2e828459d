r"""Control groups of a KVM host: which group is which part of which VM, and what a scenario says of them.

libvirt on systemd: `machine.slice/machine-qemu\x2d3\x2dweb.scope/libvirt/vcpu0`; before, without `libvirt`. libvirt
elsewhere: `machine/qemu-3-web.libvirt-qemu/vcpu0`; before, without `qemu-3-`, and up to 1.0 `libvirt/qemu/web/vcpu0`.
Proxmox: `qemu.slice/100.scope`. Elsewhere a VM's own group is the one that has its threads.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from vcpulab.formats.machine import quota_us
from vcpulab.scenario.cgroups import weight_most, weight_of_shares

MACHINES = "machine.slice"
ROOT = "/"
"""The root group, as a scenario says it."""
NONE_US = -1
_PARTS = re.compile(r"(?P<part>vcpu|iothread)(?P<number>\d{1,5})|emulator")
_SYSTEMD = re.compile(r"machine-qemu-(?P<id>\d{1,9})(-(?P<name>.+))?\.scope")
"""A scope; of a name without a letter or digit of ASCII, nothing is in it."""
_CGROUPFS = re.compile(r"(qemu-(?P<id>\d{1,9})-)?(?P<name>.+)\.libvirt-qemu")
_OLDEST = ["libvirt", "qemu"]
"""The groups around those of VMs, up to libvirt 1.0."""
_PROXMOX = re.compile(r"(?P<id>\d{1,9})\.scope")
_PLAIN_NICE = (
    *(88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916),
    *(9548, 7620, 6100, 4904, 3906, 3121, 2501, 1991, 1586, 1277),
    *(1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87, 70, 56, 45, 36, 29, 23, 18, 15),
)
"""Weights of threads by nice value, from -20 on."""
_NICE_0 = 1024
_WEIGHT = 100


@dataclass(frozen=True)
class Place:
    """A control group, as a part of a VM."""

    scope: str
    """The path of the VM's own group; empty: the root group, which is nobody's."""
    name: str | None = None
    """The VM's name, where the path tells it."""
    number: int | None = None
    """The libvirt id or VMID, if the path contains it."""
    part: str | None = None
    """`vcpu`, `iothread` or `emulator`; `None`: the VM as a whole."""
    index: int = 0
    """The number of the vCPU or I/O thread."""


def place_of(path: str) -> Place:
    r"""The place of a control group: the VM and the part of it that the group holds.

    Examples:
        >>> place_of(r"machine.slice/machine-qemu\x2d3\x2dweb.scope/libvirt/vcpu1")
        Place(scope='machine.slice/machine-qemu\\x2d3\\x2dweb.scope', name='web', number=3, part='vcpu', index=1)
        >>> place_of("qemu.slice/100.scope").number, place_of("a/libvirt/vcpu0").scope, place_of("").scope
        (100, 'a', '')
        >>> place_of("libvirt/qemu/web/vcpu0").name, place_of(r"machine.slice/machine-qemu\x2d3.scope").number
        ('web', 3)
        >>> place_of("machine/qemu-1-web.libvirt-qemu/vcpu0").name, place_of("machine/web.libvirt-qemu").name
        ('web', 'web')
    """
    parts = [part for part in path.split("/") if part]
    part = _PARTS.fullmatch(parts[-1]) if len(parts) > 1 else None
    inner = parts[:-1] if part else parts
    if len(inner) > 1 and inner[-1] == "libvirt":
        inner = inner[:-1]
    last = re.sub(r"\\x([0-9a-f]{2})", lambda match: chr(int(match[1], 16)), inner[-1]) if inner else ""
    systemd, cgroupfs = _SYSTEMD.fullmatch(last), _CGROUPFS.fullmatch(last)
    proxmox = _PROXMOX.fullmatch(last) if len(inner) > 1 and inner[-2] == "qemu.slice" else None
    numbered = systemd or proxmox or (cgroupfs if cgroupfs and cgroupfs["id"] else None)
    named = systemd or cgroupfs
    oldest = last if inner[-3:-1] == _OLDEST else None
    return Place(
        "/".join(inner),
        named["name"] if named else oldest,
        int(numbered["id"]) if numbered else None,
        (part["part"] or "emulator") if part else None,
        int(part["number"] or 0) if part else 0,
    )


def slice_of(partition: str) -> str:
    r"""The group of one of libvirt's resource partitions under systemd; empty: the default.

    Examples:
        >>> slice_of("/machine/gold"), slice_of("/machine"), slice_of("")
        ('machine.slice/machine-gold.slice', 'machine.slice', 'machine.slice')
        >>> print(slice_of("/machine/very-gold/a.partition"))
        machine.slice/machine-very\x2dgold.slice/machine-very\x2dgold-a.slice
    """
    parts = [re.sub(r"\.(slice|partition)$", "", part).replace("-", "\\x2d") for part in partition.split("/") if part]
    return "/".join(f"{'-'.join(parts[: end + 1])}.slice" for end in range(len(parts))) or MACHINES


def weight_of(files: Mapping[str, str]) -> int | None:
    """A group's weight; that of version 1 in shares of 1024, turned into one of version 2.

    Examples:
        >>> weight_of({"cpu.weight": "200"}), weight_of({"cpu.shares": "2048"}), weight_of({})
        (200, 200, None)
    """
    weight, shares = files.get("cpu.weight", ""), files.get("cpu.shares", "")
    if weight.isdecimal() and len(weight) < 6:
        return int(weight)
    return weight_of_shares(int(shares)) if shares.isdecimal() and len(shares) < 10 else None


def weight_of_nice(nice: int, threads: int) -> int:
    """The weight of a group that gets what so many threads of a nice value get beside it.

    Examples:
        >>> weight_of_nice(0, 1), weight_of_nice(5, 1), weight_of_nice(0, 3)
        (100, 33, 300)
    """
    return min(max(round(_PLAIN_NICE[nice + 20] * threads * _WEIGHT / _NICE_0), 1), weight_most(2))


def limit_of(files: Mapping[str, str]) -> tuple[int, int] | None:
    """Quota and period of a group, µs, the quota -1 if there is none; `None`: not said.

    Examples:
        >>> limit_of({"cpu.max": "40000 100000"}), limit_of({"cpu.max": "max 100000"}), limit_of({})
        ((40000, 100000), (-1, 100000), None)
        >>> limit_of({"cpu.cfs_quota_us": "-1", "cpu.cfs_period_us": "100000"})
        (-1, 100000)
    """
    if "cpu.max" in files:
        quota, _, period = files["cpu.max"].partition(" ")
    else:
        quota, period = files.get("cpu.cfs_quota_us", ""), files.get("cpu.cfs_period_us", "")
    quota = str(NONE_US) if quota == "max" else quota
    if not re.fullmatch(r"-1|\d{1,15}", quota) or not re.fullmatch(r"\d{1,9}|", period):
        return None
    return quota_us(int(quota)), int(period or 100_000)


def fields_of(files: Mapping[str, str], names: str) -> dict[str, int]:
    """Limits of a group that are not the default, under such names: `global_{}`, `vcpu_{}`, `{}`."""
    fields: dict[str, int] = {}
    limit = limit_of(files)
    if limit is not None and limit[0] != NONE_US:
        fields |= {names.format("quota_us"): limit[0], names.format("period_us"): limit[1]}
        burst = files.get("cpu.max.burst", "0")
        if burst.isdecimal() and int(burst) > 0:
            fields[names.format("burst_us")] = int(burst)
    return fields


def cpuset_of(files: Mapping[str, str]) -> str:
    """The CPUs that a group's threads may run on, as the host numbers them; empty: not said, or as the group around it.

    Examples:
        >>> cpuset_of({"cpuset.cpus": "", "cpuset.cpus.effective": "0-3"}), cpuset_of({"cpuset.cpus": "0,2"})
        ('0-3', '0,2')
    """
    return files.get("cpuset.cpus", "") or files.get("cpuset.cpus.effective", "")


def tables(
    paths: Iterable[str], groups: Mapping[str, Mapping[str, str]], pcpus_of: Callable[[str], str | None]
) -> dict[str, dict[str, Any]]:
    """The tables of a scenario for groups around VMs, and those around these, where they are not as new ones are.

    Args:
        paths: of the groups directly around VMs and daemons.
        groups: the files of each.
        pcpus_of: a set of the host's CPUs as the scenario has it; `None`: it has none of them.
    """
    around = {
        path[:at] for path in paths if path != ROOT for at in [*(m.start() for m in re.finditer("/", path)), len(path)]
    }
    nondefault: dict[str, dict[str, Any]] = {}
    cpus_of: dict[str, str] = {}
    for path in sorted(around):
        files = groups.get(path, {})
        table: dict[str, Any] = dict(fields_of(files, "{}"))
        if weight_of(files) not in (None, _WEIGHT):
            table["weight"] = weight_of(files)
        if files.get("cpu.idle") == "1":
            table["idle"] = True
        outside = cpus_of.get(path.rpartition("/")[0], "all")
        cpus_of[path] = pcpus_of(cpuset_of(files)) or outside
        if cpus_of[path] not in ("all", outside):
            table["cpus"] = cpus_of[path]
        if table:
            nondefault[path] = table
    return nondefault
