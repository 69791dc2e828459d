"""The versions of control groups: weights are in units of `cpu.weight`, whichever version a host has.

Sources: Linux's `admin-guide/cgroup-v2` (`cpu.weight`, 1 to 10000), `scheduler/sched-design-CFS` (`cpu.shares`, 1024
for a new group); the kernel takes shares from 2 to 262144.
"""

from collections.abc import Mapping
from typing import Literal

from vcpulab.scenario.model import Host

Version = Literal[1, 2]
"""1 has `cpu.shares` and `cpu.cfs_quota_us`, 2 has `cpu.weight` and `cpu.max`."""
WEIGHT = 100
"""The weight of a new group."""
SHARES = 1024
"""The shares of a new group."""
_ROUNDED = 20
_SHARES_LEAST, _SHARES_MOST = 2, 262_144
_WEIGHT_MOST: Mapping[Version, int] = {1: _SHARES_MOST * WEIGHT // SHARES, 2: 10_000}


def version_of(host: Host) -> Version:
    """The version of a host; 2 for a host without control groups."""
    return 1 if host.cgroups == 1 else 2


def weight_most(version: Version) -> int:
    """The greatest weight of a group.

    Examples:
        >>> weight_most(1), weight_most(2)
        (25600, 10000)
    """
    return _WEIGHT_MOST[version]


def shares_of_weight(weight: int) -> int:
    """`cpu.shares` of version 1 for a weight.

    Examples:
        >>> shares_of_weight(400), shares_of_weight(49), shares_of_weight(1), shares_of_weight(25_600)
        (4096, 502, 10, 262144)
    """
    return min(max((weight * SHARES + WEIGHT // 2) // WEIGHT, _SHARES_LEAST), _SHARES_MOST)


def is_rounded(shares: int) -> bool:
    """`True`: the weight for `cpu.shares` of version 1 gives another share of the CPU, by more than 5 %.

    Examples:
        >>> is_rounded(2), is_rounded(1024), is_rounded(50)
        (True, False, False)
    """
    return abs(weight_of_shares(shares) * SHARES / WEIGHT - shares) > shares / _ROUNDED


def weight_of_shares(shares: int) -> int:
    """The weight for `cpu.shares` of version 1, at least 1.

    Examples:
        >>> weight_of_shares(1024), weight_of_shares(500), weight_of_shares(2), weight_of_shares(262_144)
        (100, 49, 1, 25600)
    """
    return min(max((shares * WEIGHT + SHARES // 2) // SHARES, 1), weight_most(1))
