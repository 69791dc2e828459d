"""What is typed on a KVM host without a toolstack's own commands: files of control groups, systemd, threads.

VMs are where libvirt puts them. All of it holds until a VM stops: its groups are made anew at each start.

Sources: Linux's `admin-guide/cgroup-v2`; libvirt's page on control groups (the hierarchy); `systemctl(1)`
(`set-property`), `systemd.resource-control(5)`; `chrt(1)`, `renice(1)`, `taskset(1)`.
"""

from collections.abc import Iterator
from dataclasses import replace

from vcpulab.hypervisors import libvirt, linux
from vcpulab.hypervisors.linux import Place
from vcpulab.hypervisors.settings import (
    Affinity,
    Change,
    InGroup,
    IoThreads,
    Nice,
    Params,
    Setting,
    ThreadAffinity,
    ThreadClass,
)
from vcpulab.hypervisors.steps import Step
from vcpulab.hypervisors.way import Way

_PARTS = {"vcpu": "vcpu*", "emulator": "emulator", "iothread": "iothread*"}
"""The groups of a VM's threads, and the names of libvirt's directories."""


def steps(change: Change) -> list[Step]:
    """What is typed, in order: what takes a restart, what holds at once, what keeps it, what cannot be typed."""
    return linux.steps(change, _of_vm)


def _of_vm(setting: Setting, change: Change) -> Way | None:
    domain = getattr(setting, "domain", None)
    if domain is None:
        return None
    found = next(_way(setting, change, libvirt.place(change, domain)), None)
    if found is not None and found.run:
        found.cannot.append(libvirt.again(domain, "all of this"))
    return None if found is None else replace(found, domain=domain)


def _way(setting: Setting, change: Change, where: Place) -> Iterator[Way]:
    match setting:
        case Params(pool, str(domain)) if pool.is_linux:
            yield _params(setting, where)
        case Affinity(_, _, pcpus, soft=False):
            pins = linux.pins(setting, change)
            all_alike = isinstance(pcpus, str) and setting.vcpu is None
            groups = [("vcpu*", pins[0][1])] if all_alike else [(f"vcpu{vcpu}", ones) for vcpu, ones in pins]
            yield Way(run=[_each(where, group, "cpuset.cpus", ones) for group, ones in groups])
        case ThreadAffinity(_, _, part, pcpus):
            yield Way(run=[_each(where, _PARTS[part], "cpuset.cpus", linux.pinned(change, pcpus))])
        case ThreadClass(_, _, policy, priority):
            yield Way(run=[linux.scheduled(libvirt.threads(where), policy, priority)])
        case Nice(_, domain, nice):
            yield replace(libvirt.niced(domain, nice, libvirt.threads(where)), cannot=[])
        case InGroup(_, domain, path):
            yield Way.none(f"domain {domain}: in {path}: where it is put when it starts the next time")
        case IoThreads(_, domain, count):
            yield Way.none(f"domain {domain}: iothreads = {count}: options of QEMU's, at the VM's next start")


def _params(setting: Params, where: Place) -> Way:
    found = linux.shared(where, linux.of_whole(setting.values), linux.of_whole(setting.table))
    for part, group in _PARTS.items():
        quota, period = f"{part}_quota_us", f"{part}_period_us"
        if setting.values.keys() & {quota, period}:
            given = (setting.table.get(quota, linux.NONE), setting.table.get(period, linux.PERIOD_US))
            found.run.append(_each(where, group, "cpu.max", linux.limit(*given)))
    return found


def _each(where: Place, group: str, file: str, text: str) -> str:
    """Writes to a file of each group below a VM's that matches."""
    said = f"'{text}'" if " " in text else text
    if "*" not in group:
        return f"echo {said} > {where.file(f'libvirt/{group}/{file}')}"
    return f"for f in {where.inside(f'libvirt/{group}', file)}; do echo {said} > $f; done"
