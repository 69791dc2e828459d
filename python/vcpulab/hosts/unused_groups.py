"""Control groups of a KVM host, and values in their files, that no field of a scenario says."""

import re
from collections.abc import Iterator, Mapping

from vcpulab.formats.linux_host import Linux
from vcpulab.hosts.cgroups import NONE_US as _NO_LIMIT
from vcpulab.hosts.cgroups import limit_of, place_of, weight_of
from vcpulab.scenario.cgroups import SHARES, WEIGHT, is_rounded, weight_of_shares
from vcpulab.scenario.names import in_short

_DEFAULTS = {
    "cpu.uclamp.min": ("0.00", "0"),
    "cpu.uclamp.max": ("max", "100.00"),
    "cpu.rt_runtime_us": ("0", "950000"),
    "cpuset.cpus.partition": ("member", "isolated"),
}
"""Files that no field says, each with the values that change nothing."""
_NUMBERS = {
    "cpu.weight": re.compile(r"\d{1,5}"),
    "cpu.shares": re.compile(r"\d{1,9}"),
    "cpu.max.burst": re.compile(r"\d{1,15}"),
    "cpu.idle": re.compile(r"[01]"),
}
"""Files that fields say, each with the values that are read."""


def unused_groups(scopes: Mapping[str, str], linux: Linux) -> Iterator[str]:
    """The notes on what is left out.

    Args:
        scopes: by VM: the path of its own group.
        linux: the kernel, settings and control groups that the host reports.

    Examples:
        >>> groups = {"qemu.slice/7.scope": {"cpu.weight": "-5"}, "qemu.slice/8.scope": {"cpu.weight": "100"}}
        >>> for note in unused_groups({"web": "qemu.slice/7.scope"}, Linux(groups=groups)):
        ...     print(note)
        web: cpu.weight of /qemu.slice/7.scope is `-5`, which no field of a scenario says; left out
        no listing has the VMs of the control groups /qemu.slice/8.scope; left out
    """
    of_threads = (thread.group for thread in linux.threads.values() if thread.group)
    places = {path: place_of(path) for path in [*linux.groups, *of_threads]}
    for name, scope in scopes.items():
        parts = scope.split("/")
        around = {"/".join(parts[: end + 1]) for end in range(len(parts))}
        for path, files in linux.groups.items():
            if path in around or places[path].scope == scope:
                for file in _unused(files):
                    yield f"{name}: {file} of /{path} is `{files[file]}`, which no field of a scenario says; left out"
                shares = files.get("cpu.shares", "")
                if path in around and _NUMBERS["cpu.shares"].fullmatch(shares) and is_rounded(int(shares)):
                    yield rounded(name, int(shares))
    scopes_of_vms = set(scopes.values())
    above = {"/".join(scope.split("/")[:end]) for scope in scopes_of_vms for end in range(1, scope.count("/") + 1)}
    competing = [
        f"/{path}"
        for path, files in linux.groups.items()
        if places[path].name is None and places[path].number is None and places[path].scope not in scopes_of_vms | above
        if weight_of(files) not in (None, WEIGHT) or (limit_of(files) or (_NO_LIMIT, 0))[0] != _NO_LIMIT
    ]
    if competing:
        yield f"weights and limits of control groups of others than VMs are left out: {in_short(competing)}"
    other_groups = {
        place.scope
        for place in places.values()
        if (place.name or place.number is not None) and place.scope not in scopes_of_vms
    }
    if other_groups:
        shown = in_short([f"/{scope}" for scope in sorted(other_groups)])
        yield f"no listing has the VMs of the control groups {shown}; left out"


def rounded(name: str, shares: int) -> str:
    """The note on shares of control groups of version 1 that no weight is equal to."""
    weight = weight_of_shares(shares)
    return f"{name}: {shares} shares are a weight of {shares * WEIGHT / SHARES:.3g}; {weight} is the nearest"


def _unused(files: Mapping[str, str]) -> Iterator[str]:
    """The files of a group whose values are left out."""
    for file, value in files.items():
        if file in _DEFAULTS:
            unused = value not in _DEFAULTS[file]
        elif file in _NUMBERS:
            unused = _NUMBERS[file].fullmatch(value) is None
        else:
            unused = file in ("cpu.max", "cpu.cfs_quota_us") and limit_of(files) is None
        if unused:
            yield file
