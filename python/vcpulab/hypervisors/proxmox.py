"""Commands for a host of Proxmox VE.

`qm set` holds at once for weights and limits, and is kept in the VM's file in `/etc/pve/qemu-server`. A VM is one
control group, without groups for its threads: one limit for all of them, and one set of CPUs. The rest is set of
threads, which QEMU names (`CPU 0/KVM`), and holds until the VM stops; a hook script (`hookscript:` of the VM, phase
`post-start`) sets it again.

Sources: `qm(1)` and the administration guide's chapter on virtual machines (`cpuunits`, `cpulimit`, `affinity`,
`cores`, hook scripts); `taskset(1)`, `chrt(1)`, `renice(1)`; Linux's `admin-guide/cgroup-v2`.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from vcpulab.hypervisors import groups, libvirt, linux
from vcpulab.hypervisors.groups import Place
from vcpulab.hypervisors.settings import (
    DEFAULT_SLICES,
    Affinity,
    Change,
    Group,
    InGroup,
    IoThreads,
    Life,
    MemoryNodes,
    Nice,
    Params,
    Setting,
    ThreadAffinity,
    ThreadClass,
    Vcpus,
)
from vcpulab.hypervisors.shell import Output, Part
from vcpulab.hypervisors.steps import Step
from vcpulab.hypervisors.way import Way
from vcpulab.scenario.cgroups import shares_of_weight
from vcpulab.scenario.units import spans

GROUP = "qemu.slice"
"""The control group that all VMs are in."""
_ID = re.compile(r"(?:(?:vm|qemu|kvm)[-_]?)?([1-9]\d{2,8})")
"""A domain name that holds the VM's number."""
_CPUS_MOST = 128
"""The greatest `--cpulimit`."""
_LIVES = {
    "create": "start",
    "shutdown": "shutdown",
    "reboot": "reboot",
    "destroy": "stop",
    "pause": "suspend",
    "unpause": "resume",
    "restore": "start",
}


def steps(change: Change) -> list[Step]:
    """The steps, in order: after a restart, at once, to keep the settings, and settings without a command."""
    return linux.steps(change, _of_vm)


def vmid(domain: str) -> str | None:
    """The number of a VM, if its name holds the number.

    Examples:
        >>> vmid("vm-101"), vmid("101"), vmid("web")
        ('101', '101', None)
    """
    match = _ID.fullmatch(domain)
    return match[1] if match else None


def _looked_up(domain: str) -> Output:
    return Output(f"qm list | awk -v n={domain} '$2 == n {{print $1}}'")


def _of_vm(setting: Setting, change: Change) -> Way | None:
    domain = getattr(setting, "domain", None)
    if isinstance(setting, Group) and setting.path == DEFAULT_SLICES[False]:
        return groups.shared(Place.from_path(GROUP, change.cgroups), setting.values, setting.table)
    if domain is None:
        return None
    number = vmid(domain)
    way = next(_way(setting, change, number or _looked_up(domain)), None)
    return None if way is None else replace(way, domain=domain, called=number if number != domain else None)


def _way(setting: Setting, change: Change, number: Part) -> Iterator[Way]:
    vm = number if isinstance(number, str) else f"$({number.command})"
    match setting:
        case Params(pool, str()) if pool.is_linux:
            way = _params(setting, vm, Place(GROUP, (number, ".scope"), change.cgroups, lasts=False))
            way = linux.with_slices(way, setting, _threads(vm, "CPU"))
            lost = [libvirt.lost_at_stop(setting.domain or "", "slice_us")] if "slice_us" in setting.values else []
            yield replace(way, cannot=[*way.cannot, *lost])
        case Affinity(soft=False):
            yield _pinned(setting, change, vm)
        case ThreadAffinity(_, domain, threads, pcpus):
            yield _threads_pinned(domain, vm, threads, linux.pinned(change, pcpus))
        case ThreadClass(_, domain, policy, priority):
            command = linux.scheduled(_threads(vm, "CPU"), policy, priority)
            yield Way(run=[command], cannot=[libvirt.lost_at_stop(domain, f"SCHED_{policy.upper()}")])
        case Nice(_, domain, nice):
            yield libvirt.niced(domain, nice, _threads(vm, "CPU"))
        case IoThreads(_, domain, count):
            how = "`iothread=1` of its disk, on a controller `virtio-scsi-single`, from the VM's next start on"
            yield Way.none(f"domain {domain}: iothreads = {count}: {how if count else how.replace('=1', '=0')}")
        case InGroup(path=path) if path == GROUP:
            yield Way()
        case InGroup(_, domain, path):
            yield Way.none(f"domain {domain}: in {path}: Proxmox VE has all VMs in {GROUP}")
        case Vcpus(_, domain, count):
            late = f"domain {domain}: {count} cores from the VM's next start on"
            yield Way(keep=[f"qm set {vm} --cores {count}"], cannot=[late])
        case MemoryNodes(_, domain, nodes):
            how = (
                "`qm set --numa0 …,hostnodes=…,policy=bind` with its memory and its cores, from the VM's next start on"
            )
            yield Way.none(f"domain {domain}: memory on nodes {spans(nodes)}: {how}")
        case Life(_, _, "save"):
            yield Way(run=[f"qm suspend {vm} --todisk 1"])
        case Life(_, _, op) if op in _LIVES:
            yield Way(run=[f"qm {_LIVES[op]} {vm}"])


def _params(setting: Params, vm: str, where: Place) -> Way:
    """One command for weight and limit of the VM; files of its control group where `qm` has no option."""
    domain, values, table, version = setting.domain or "", setting.values, setting.table, where.version
    quota, period = table.get("global_quota_us", groups.NONE), table.get("global_period_us", groups.PERIOD_US)
    options, files = list[str](), list[tuple[str, str]]()
    before, after = groups.burst_files(version, groups.of_whole(values))
    if "weight" in values:
        units = shares_of_weight(values["weight"]) if version == 1 else values["weight"]
        options.append(f"--cpuunits {units}")
    if values.keys() & {"global_quota_us", "global_period_us"}:
        cpus = _cpus(quota, period)
        if cpus is None:
            files += groups.limit_files(version, quota, period)
        else:
            options.append(f"--cpulimit {cpus}")
    files += after
    if "idle" in values:
        files.append(("cpu.idle", str(int(values["idle"]))))
    one_limit = f"domain {domain}: {{}}: Proxmox VE has one limit for all threads of a VM (global_quota_us, --cpulimit)"
    thread_limits = [name for name in values if name.startswith(("vcpu_", "emulator_", "iothread_"))]
    return Way(
        run=[
            *(groups.written(text, where.file(name)) for name, text in before),
            *([f"qm set {vm} {' '.join(options)}"] if options else []),
            *(groups.written(text, where.file(name)) for name, text in files),
        ],
        cannot=[
            *([libvirt.lost_at_stop(domain, ", ".join(dict.fromkeys(name for name, _ in files)))] if files else []),
            *([one_limit.format(", ".join(thread_limits))] if thread_limits else []),
        ],
    )


def _cpus(quota_us: int, period_us: int) -> str | None:
    """A limit as a number of CPUs, 0 for no limit; `None`: `--cpulimit` does not take this limit.

    `--cpulimit` uses the default period and takes two decimals and at most 128 CPUs.

    Examples:
        >>> _cpus(250_000, 100_000), _cpus(-1, 100_000), _cpus(25_000, 10_000), _cpus(12_900_000, 100_000)
        ('2.5', '0', None, None)
    """
    if groups.is_none(quota_us):
        return "0"
    if period_us != groups.PERIOD_US or quota_us % 1000 or quota_us > _CPUS_MOST * period_us:
        return None
    part = f"{quota_us % period_us // 1000:02}".rstrip("0")
    return f"{quota_us // period_us}{'.' if part else ''}{part}"


def _pinned(setting: Affinity, change: Change, vm: str) -> Way:
    pcpus, pid = setting.pcpus, f"$(cat {_pid(vm)})"
    alike = isinstance(pcpus, str) or len(set(pcpus)) == 1
    if alike and setting.vcpu is None:
        cpus = pcpus if isinstance(pcpus, str) else pcpus[0]
        option = "--delete affinity" if cpus == "all" else f"--affinity {cpus}"
        return Way(run=[f"taskset -apc {linux.pinned(change, cpus)} {pid}"], keep=[f"qm set {vm} {option}"])
    pins = linux.pins(setting, change)
    return Way(
        run=[f"taskset -pc {cpus} $({_threads(vm, 'CPU', f'{vcpu}/KVM')})" for vcpu, cpus in pins],
        cannot=[libvirt.lost_at_stop(setting.domain, "affinity of single vCPUs")],
    )


def _threads_pinned(domain: str, vm: str, threads: str, pcpus: str) -> Way:
    if threads == "iothread":
        each = f"for t in $({_threads(vm, 'IO')}); do taskset -pc {pcpus} $t; done"
        return Way(run=[each], cannot=[libvirt.lost_at_stop(domain, "affinity of its I/O thread")])
    main = f"taskset -pc {pcpus} $(cat {_pid(vm)})"
    vhosts = f"for t in $({_vhosts(vm)}); do taskset -pc {pcpus} $t; done"
    return Way(run=[main, vhosts], cannot=[libvirt.lost_at_stop(domain, "affinity of QEMU's own threads")])


def _pid(vm: str) -> str:
    return f"/run/qemu-server/{vm}.pid"


def _threads(vm: str, kind: str, name: str | None = None) -> str:
    """The command that prints the ids of a VM's threads of a kind, or of the thread with a name."""
    by_name = f' && $3 == "{name}"' if name else ""
    return f"ps -L -o tid= -o comm= -p $(cat {_pid(vm)}) | awk '$2 == \"{kind}\"{by_name} {{print $1}}'"


def _vhosts(vm: str) -> str:
    """The command that prints the ids of a VM's vhost threads, which until Linux 6.4 are the kernel's.

    They are named after the VM's process.
    """
    return f"ps -eL -o tid= -o comm= | awk -v n=vhost-$(cat {_pid(vm)}) '$2 == n {{print $1}}'"
