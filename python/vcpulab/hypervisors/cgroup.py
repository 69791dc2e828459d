"""Commands for a KVM host without a toolstack: files of control groups, systemd, threads.

VMs are in libvirt's groups. Every setting holds until the VM stops: its groups are created again at each start.

Sources: those of `groups`; libvirt's page on control groups (the hierarchy); `chrt(1)`, `renice(1)`, `taskset(1)`.
"""

from collections.abc import Iterator
from dataclasses import replace

from vcpulab.hypervisors import groups, libvirt, linux
from vcpulab.hypervisors.groups import Place
from vcpulab.hypervisors.settings import (
    Affinity,
    Change,
    InGroup,
    IoThreads,
    MemoryNodes,
    Nice,
    Params,
    Setting,
    ThreadAffinity,
    ThreadClass,
    Vcpus,
)
from vcpulab.hypervisors.steps import Step
from vcpulab.hypervisors.way import Way
from vcpulab.scenario.units import spans

_PARTS = {"vcpu": "vcpu*", "emulator": "emulator", "iothread": "iothread*"}
"""The groups of a VM's threads, and the names of libvirt's directories."""


def steps(change: Change) -> list[Step]:
    """The steps, in order: after a restart, at once, to keep the settings, and settings without a command."""
    return linux.steps(change, _of_vm)


def _of_vm(setting: Setting, change: Change) -> Way | None:
    domain = getattr(setting, "domain", None)
    if domain is None:
        return None
    way = next(_way(setting, change, libvirt.place(change, domain)), None)
    if way is not None and way.run:
        way.cannot.append(libvirt.lost_at_stop(domain, "all of this"))
    return None if way is None else replace(way, domain=domain)


def _way(setting: Setting, change: Change, where: Place) -> Iterator[Way]:
    match setting:
        case Params(pool, str(domain)) if pool.is_linux:
            yield linux.with_slices(_params(setting, where), setting, libvirt.threads(where))
        case Affinity(_, _, pcpus, soft=False):
            pins = linux.pins(setting, change)
            all_alike = isinstance(pcpus, str) and setting.vcpu is None
            by_group = [("vcpu*", pins[0][1])] if all_alike else [(f"vcpu{vcpu}", cpus) for vcpu, cpus in pins]
            yield Way(run=[_each(where, group, "cpuset.cpus", cpus) for group, cpus in by_group])
        case ThreadAffinity(_, _, part, pcpus):
            yield Way(run=[_each(where, _PARTS[part], "cpuset.cpus", linux.pinned(change, pcpus))])
        case ThreadClass(_, _, policy, priority):
            yield Way(run=[linux.scheduled(libvirt.threads(where), policy, priority)])
        case Nice(_, domain, nice):
            yield replace(libvirt.niced(domain, nice, libvirt.threads(where)), cannot=[])
        case InGroup(_, domain, path):
            yield Way.none(f"domain {domain}: in {path}: where it is put when it starts the next time")
        case IoThreads(_, domain, count):
            yield Way.none(_by_qemu(domain, f"iothreads = {count}"))
        case Vcpus(_, domain, count):
            yield Way.none(_by_qemu(domain, f"vcpus = {count}"))
        case MemoryNodes(_, domain, nodes):
            yield Way.none(_by_qemu(domain, f"memory_nodes = {spans(nodes)}"))


def _by_qemu(domain: str, assignment: str) -> str:
    return f"domain {domain}: {assignment}: options of QEMU's, at the VM's next start"


def _params(setting: Params, where: Place) -> Way:
    way = groups.shared(where, groups.of_whole(setting.values), groups.of_whole(setting.table))
    for part, group in _PARTS.items():
        quota, period = f"{part}_quota_us", f"{part}_period_us"
        if setting.values.keys() & {quota, period}:
            given = (setting.table.get(quota, groups.NONE), setting.table.get(period, groups.PERIOD_US))
            files = groups.limit_files(where.version, *given)
            way.run += [_each(where, group, file, text) for file, text in files]
    return way


def _each(where: Place, group: str, file: str, text: str) -> str:
    """The command that writes to a file of each matching group below a VM's."""
    if "*" not in group:
        return groups.written(text, where.file(f"{libvirt.inside(where)}{group}/{file}"))
    files = where.inside(f"{libvirt.inside(where)}{group}", file)
    return f"for f in {files}; do {groups.written(text, '$f')}; done"
