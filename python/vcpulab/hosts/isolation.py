"""The CPUs that the kernel of a Linux host leaves alone: `isolcpus=`, `nohz_full=`, isolated partitions of cpusets.

Lists of CPUs are those of the kernel's `admin-guide/kernel-parameters`; partitions those of `admin-guide/cgroup-v2`.
"""

import re
from collections.abc import Iterator

from vcpulab.formats.linux_host import Linux
from vcpulab.formats.virsh import numbers_of
from vcpulab.hosts.pcpu_map import PcpuMap
from vcpulab.scenario.units import spans

_CPUS_MOST = 4096
_OPTION = re.compile(r"(?:^|\s)(?P<name>isolcpus|nohz_full)=(?P<value>\S+)")
_FLAGS = ("domain", "nohz", "managed_irq")
"""What `isolcpus=` may isolate CPUs from, before its list of CPUs; without a word it is `domain`."""
_RANGE = re.compile(r"(?P<first>\d{1,4}|N)(?:-(?P<last>\d{1,4}|N)(?::(?P<used>\d{1,4})/(?P<group>\d{1,4}))?)?")
_PARTITION = "cpuset.cpus.partition"
_CPUS = ("cpuset.cpus.exclusive.effective", "cpuset.cpus.effective", "cpuset.cpus.exclusive", "cpuset.cpus")
"""The files of a partition that have its CPUs, the one that is in force first."""
_ISOLATED = "cpuset.cpus.isolated"
"""The file of the root group with the CPUs of all isolated partitions."""


def isolation_fields(linux: Linux, placed: PcpuMap, notes: list[str]) -> dict[str, str]:
    """The fields of a scenario's host for the CPUs that the kernel leaves alone.

    Args:
        linux: the kernel, settings and control groups that the host reports.
        placed: the host's CPUs.
        notes: where to say what was taken, and what a scenario cannot express.

    Examples:
        >>> from vcpulab.hosts.pcpu_map import flat
        >>> linux = Linux(None, {"/proc/cmdline": "ro isolcpus=domain,managed_irq,2-3 nohz_full=2-N"})
        >>> isolation_fields(linux, flat(4), [])
        {'isolated_cpus': '2-3', 'nohz_full': '2-3'}
    """
    isolated, sources = _isolated(linux, placed, notes)
    nohz_full, nohz_sources = _nohz_full(linux, placed)
    named_cpus = (("isolated_cpus", isolated, sources), ("nohz_full", nohz_full, nohz_sources))
    fields: dict[str, str] = {}
    for name, cpus, named_by in named_cpus:
        listed = spans(sorted(cpus))
        pcpus = placed.of_host(listed) if listed else None
        if pcpus is None:
            continue
        if pcpus == "all":
            notes.append(f"{name}: {', '.join(named_by)} names all CPUs that are online, and one must remain; left out")
            continue
        fields[name] = pcpus
        notes.append(f'{name} = "{pcpus}": from {", ".join(named_by)}')
    return fields


def _isolated(linux: Linux, placed: PcpuMap, notes: list[str]) -> tuple[set[int], list[str]]:
    """The CPUs in no scheduling domain, and the settings that name them."""
    cpus: set[int] = set()
    sources: list[str] = []
    listed = linux.setting("isolated")
    if listed is not None:
        cpus, sources = set(numbers_of(listed)), ["/sys/devices/system/cpu/isolated"]
    else:
        for value in _options(linux, "isolcpus"):
            flags, numbers = _isolcpus(value, placed)
            if not flags or "domain" in flags:
                cpus |= numbers
                sources.append(f"isolcpus={value}")
            else:
                notes.append(f"isolcpus={value}: isolates from {', '.join(flags)} only; here threads are balanced")
    of_root = linux.groups.get("", {}).get(_ISOLATED)
    if of_root:
        cpus |= set(numbers_of(of_root))
        sources.append(_ISOLATED)
    for path, files in linux.groups.items():
        partition = files.get(_PARTITION, "member")
        numbers = set(numbers_of(next((files[file] for file in _CPUS if files.get(file)), "")))
        if partition == "isolated" and numbers:
            cpus |= numbers
            sources.append(f"{_PARTITION} of /{path}")
        elif partition.startswith("isolated"):
            reason = "no listing has its CPUs" if partition == "isolated" else "it is not in force"
            notes.append(f"{_PARTITION} of /{path} is `{partition}`: {reason}; left out")
    return cpus, sources if cpus else []


def _nohz_full(linux: Linux, placed: PcpuMap) -> tuple[set[int], list[str]]:
    """The CPUs whose tick stops beside one thread, and the settings that name them."""
    listed = linux.setting("nohz_full")
    if listed is not None:
        return set(numbers_of(listed)), ["/sys/devices/system/cpu/nohz_full"]
    cpus: set[int] = set()
    sources: list[str] = []
    for value in _options(linux, "nohz_full"):
        cpus |= _cpus(value, placed)
        sources.append(f"nohz_full={value}")
    for value in _options(linux, "isolcpus"):
        flags, numbers = _isolcpus(value, placed)
        if "nohz" in flags:
            cpus |= numbers
            sources.append(f"isolcpus={value}")
    return cpus, sources


def _options(linux: Linux, name: str) -> Iterator[str]:
    """The values of an option on the kernel's command line."""
    for match in _OPTION.finditer(linux.setting("cmdline") or ""):
        if match["name"] == name:
            yield match["value"]


def _isolcpus(value: str, placed: PcpuMap) -> tuple[list[str], set[int]]:
    """The words and the CPUs of `isolcpus=`.

    Examples:
        >>> from vcpulab.hosts.pcpu_map import flat
        >>> _isolcpus("nohz,domain,1,3", flat(4)), _isolcpus("1-2", flat(4))
        ((['nohz', 'domain'], {1, 3}), ([], {1, 2}))
    """
    parts = value.split(",")
    flags = [part for part in parts if part in _FLAGS]
    return flags, _cpus(",".join(part for part in parts if part not in _FLAGS), placed)


def _cpus(listed: str, placed: PcpuMap) -> set[int]:
    """The CPUs of a list on the kernel's command line; `N` is the last CPU.

    Examples:
        >>> from vcpulab.hosts.pcpu_map import flat
        >>> sorted(_cpus("1,4-7", flat(8))), sorted(_cpus("0-7:1/4", flat(8))), sorted(_cpus("6-N", flat(8)))
        ([1, 4, 5, 6, 7], [0, 4], [6, 7])
    """
    if listed == "all":
        return set(placed.numbers)
    cpus: set[int] = set()
    for part in listed.split(",")[:_CPUS_MOST]:
        match = _RANGE.fullmatch(part)
        if match is None:
            return set()
        first, last = (
            max(placed.numbers) if number == "N" else int(number)
            for number in (match["first"], match["last"] or match["first"])
        )
        used, group = int(match["used"] or 1), int(match["group"] or 1)
        cpus.update(cpu for cpu in range(first, last + 1) if (cpu - first) % max(group, 1) < used)
    return cpus
