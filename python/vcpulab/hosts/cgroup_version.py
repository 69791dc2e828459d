"""The version of control groups of a KVM host, by its listings.

It decides what `cpu_shares` mean: a weight of 100 is 1024 shares on version 1 and 100 on version 2.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from vcpulab.formats.linux_host import Linux
from vcpulab.formats.machine import Machine
from vcpulab.formats.ps import Thread
from vcpulab.hosts.kernel_release import release_of
from vcpulab.scenario.cgroups import SHARES, WEIGHT, Version, weight_most

TELLER = "stat -fc %T /sys/fs/cgroup"
"""The command whose output tells it: `cgroup2fs` for version 2, `tmpfs` for version 1."""
_VERSIONS: tuple[Version, ...] = (2, 1)
_FILES: Mapping[str, Version] = {
    "cpu.shares": 1,
    "cpu.cfs_quota_us": 1,
    "cpu.weight": 2,
    "cpu.weight.nice": 2,
    "cpu.max": 2,
}
"""Files of groups that only one version has."""
_BOOT_OPTION = re.compile(r"systemd\.unified_cgroup_hierarchy=(?P<value>\w+)")
_V2_SINCE = (5, 0)
"""Distributions with older kernels have version 1."""
_V1_RELEASES = re.compile(r"\.el[678]([._]|uek|\b)|\.amzn[12]\.|(deb|bpo)10\b|~(14|16|18|20)\.04\b")
"""Releases of kernels 5.0 and later whose distribution has version 1: RHEL 8, Amazon Linux 2, Debian 10, Ubuntu 20."""
_V1_FAMILIES = ((re.compile(r"-generic\b|-Ubuntu\b"), (5, 5)), (re.compile(r"-pve\b"), (5, 5)))
"""Distributions, each with the release from which on it has version 2: Ubuntu 20.04 has 5.4, Proxmox VE 6 5.4."""


@dataclass(frozen=True)
class Evidence:
    """The version, and what shows it."""

    version: Version
    reason: str
    certain: bool
    """`False`: it is what such hosts usually have."""


def version_of(linux: Linux, machines: Iterable[Machine], threads: Iterable[Thread]) -> Evidence:
    """The version of a host's control groups, by the strongest evidence.

    Args:
        linux: the kernel, settings and control groups that the host reports.
        machines: its VMs.
        threads: those that `ps` lists.

    Examples:
        >>> version_of(Linux("3.10.0-1062.el7.x86_64"), [], [])
        Evidence(version=1, reason='Linux 3.10.0-1062.el7.x86_64', certain=False)
        >>> version_of(Linux("6.8.0-40-generic"), [Machine("a", configured=True, shares_now=1024)], []).version
        1
    """
    return (
        _by_files(linux)
        or _by_threads(threads)
        or _by_shares(list(machines))
        or _by_release(linux)
        or Evidence(2, "no listing tells which", certain=False)
    )


def _by_files(linux: Linux) -> Evidence | None:
    shown: dict[Version, str] = {}
    for path, files in linux.groups.items():
        for name in files:
            if name in _FILES:
                shown.setdefault(_FILES[name], f"{name} of /{path}")
    # Where both versions are mounted, the files of the CPU are those of one of them.
    for version in _VERSIONS:
        evidence = shown.get(version) or linux.cgroups.get(version)
        if evidence is not None:
            return Evidence(version, evidence, certain=True)
    option = _BOOT_OPTION.search(linux.setting("cmdline") or "")
    if option is not None:
        evidence = f"the kernel was booted with {option[0]}"
        return Evidence(1 if option["value"] in ("0", "no", "false") else 2, evidence, certain=True)
    return None


def _by_threads(threads: Iterable[Thread]) -> Evidence | None:
    for thread in threads:
        if thread.cgroups == 1:
            return Evidence(1, f"thread {thread.thread} has a group of the controller `cpu`", certain=True)
        if thread.cgroups == 2 and thread.group:
            return Evidence(2, f"thread {thread.thread} has a group of version 2 only", certain=True)
    return None


def _by_shares(machines: list[Machine]) -> Evidence | None:
    """The version, by shares that are out of range, or in force where none are configured: those are the default."""
    for machine in machines:
        shares = max(machine.shares or 0, machine.shares_now or 0)
        if shares > weight_most(2):
            reason = f"{machine.name} has {shares} shares, and version 2 takes {weight_most(2)} at most"
            return Evidence(1, reason, certain=True)
    for machine in machines:
        if machine.configured and machine.shares is None and machine.shares_now in (SHARES, WEIGHT):
            reason = f"{machine.name} has {machine.shares_now} shares and none configured"
            return Evidence(1 if machine.shares_now == SHARES else 2, reason, certain=True)
    defaults = {machine.shares_now for machine in machines if machine.shares is None} & {SHARES, WEIGHT}
    if len(defaults) == 1:
        default = defaults.pop()
        return Evidence(1 if default == SHARES else 2, f"a VM has {default} shares, the default", certain=False)
    return None


def _by_release(linux: Linux) -> Evidence | None:
    release, text = release_of(linux.kernel), linux.kernel or ""
    if release is None:
        return None
    old = release.series < _V2_SINCE or _V1_RELEASES.search(text) is not None
    old = old or any(release.series < since and family.search(text) for family, since in _V1_FAMILIES)
    return Evidence(1 if old else 2, f"Linux {release.name}", certain=False)
