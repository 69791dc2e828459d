"""The pCPUs of a Xen host by its listings, with a table of `xl info -n` or without."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from vcpulab.formats.kinds import Read
from vcpulab.formats.xl_info import Info
from vcpulab.hosts.pcpu_map import PcpuMap, flat, map_of
from vcpulab.hypervisors.settings import DOM0
from vcpulab.hypervisors.xen import called

_PCPUS_MOST = 512
"""The most that a scenario can have."""


def pcpu_map(info: Info, reads: Sequence[Read], notes: list[str]) -> PcpuMap:
    """The map of a host's CPUs, by `xl info` or else by the numbers that other listings name.

    Args:
        info: `xl info`, with what the log of booting says.
        reads: all listings.
        notes: receives a note on whatever is assumed.
    """
    placed = map_of(info, notes) or flat(_pcpus_named(reads, notes))
    return replace(placed, numbered=_are_numbered(info, reads, placed, notes))


def _pcpus_named(reads: Sequence[Read], notes: list[str]) -> int:
    """The number of pCPUs by other listings, where no `xl info` states it."""
    pools = [pool.size for read in reads if read.kind == "xl-cpupool-list" for pool in read.holds if pool.size]
    dom0 = [row.vcpus for read in reads if read.kind == "xl-list" for row in read.holds if row.number == 0]
    dom0 += [
        row.vcpus
        for read in reads
        if read.kind == "xentop"
        for row in read.holds
        if row.name == called(DOM0) and row.vcpus
    ]
    vcpus = [vcpu for read in reads if read.kind == "xl-vcpu-list" for vcpu in read.holds]
    dom0.append(sum(1 for vcpu in vcpus if vcpu.domain == 0 and vcpu.pcpu is not None))
    counts: dict[str, int] = {
        "the most that the other listings name": 1 + max((number for number, _ in _named(reads)), default=0),
        "the CPUs of the pools": sum(pools),
        "the vCPUs of Dom0, which has one for each CPU by default": max(dom0),
    }
    source = max(counts, key=lambda name: counts[name])
    pcpus = min(counts[source], _PCPUS_MOST)
    notes.append(f"pcpus = {pcpus}: no `xl info` says how many; {source}")
    return pcpus


def _are_numbered(info: Info, reads: Sequence[Read], placed: PcpuMap, notes: list[str]) -> bool:
    """`True`: CPU numbers in listings are those of the pCPUs; not so if unknown CPUs are offline."""
    last = info.settings.get("max_cpu_id", "")
    if info.cpus or not (last.isdecimal() and len(last) < 6 and int(last) >= placed.pcpus):
        return True
    named = list(_named(reads))
    beyond = next(((number, where) for number, where in named if placed.pcpus <= number <= int(last)), None)
    counts = f"nr_cpus = {placed.pcpus}, max_cpu_id = {last}"
    if beyond is not None:
        number, where = beyond
        notes.append(
            f"{where} names CPU {number}: which {placed.pcpus} of the CPUs 0 to {last} are online is not known "
            f"({counts}). No set of CPUs can be translated, and all are left out: add `xl info -n`, whose table "
            "cpu_topology lists the CPUs that are online"
        )
    elif named:
        notes.append(
            f"{counts}: the CPUs that are online are taken for 0 to {placed.pcpus - 1}, as no listing names another "
            "one; `xl info -n` says which they are"
        )
    return beyond is None


def _named(reads: Iterable[Read]) -> Iterator[tuple[int, str]]:
    """The numbers of CPUs that listings name, each with what names it."""
    for read in reads:
        if read.kind == "xl-vcpu-list":
            for vcpu in read.holds:
                sets = {"affinity": vcpu.hard, "soft affinity": vcpu.soft, "place": str(vcpu.pcpu or 0)}
                for field, text in sets.items():
                    yield from ((number, f"{read.path}: {field} of {vcpu.name}") for number in _numbers(text))
        elif read.kind == "xl-cpupool-list":
            for pool in read.holds:
                yield from ((number, f"{read.path}: pool {pool.name}") for number in _numbers(pool.cpus or ""))
        elif read.kind in ("xl-cfg", "xl-list-l", "xen-xml"):
            configs = [read.holds] if read.kind == "xl-cfg" else [config.settings for config in read.holds]
            for settings in configs:
                for setting in ("cpus", "cpus_soft"):
                    numbers = _numbers(str(settings.get(setting, "")))
                    yield from ((number, f"{read.path}: {setting}") for number in numbers)


def _numbers(text: str) -> list[int]:
    """The numbers in a set of CPUs; in a set of nodes there are none."""
    return [] if "node" in text else [int(number) for number in re.findall(r"\d+", text) if len(number) < 5]
