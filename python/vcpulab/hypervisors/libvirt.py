"""What is typed on a KVM host of libvirt.

`virsh` holds at once (`--live`) and from the VM's next start on (`--config`); what it has no command for is in the VM's
XML, which `virt-xml` edits, or in files of its control groups, which are made anew at each start.

Sources: `virsh(1)` (`schedinfo`, `vcpupin`, `emulatorpin`, `iothreadpin`, `iothreadadd`, `setvcpus`, `numatune`);
libvirt's pages on the domain XML (`cputune`, `vcpusched`, `resource`) and on control groups (the hierarchy, and how a
partition becomes slices); `virt-xml(1)`; `chrt(1)`, `renice(1)`.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from vcpulab.hypervisors import linux
from vcpulab.hypervisors.linux import Place
from vcpulab.hypervisors.settings import (
    DEFAULT_SLICES,
    DOM0,
    Affinity,
    Change,
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
from vcpulab.hypervisors.steps import Step
from vcpulab.hypervisors.way import Way
from vcpulab.scenario.units import spans

_PROCESS = re.compile(r"qemu-\d+")
"""A domain of a recording that says no more of it."""
_LIVES = {
    "create": "start",
    "shutdown": "shutdown",
    "reboot": "reboot",
    "destroy": "destroy",
    "save": "managedsave",
    "restore": "start",
    "pause": "suspend",
    "unpause": "resume",
}
_BOTH = "--live --config"
_ONE_BY_ONE = 2
"""Up to so many vCPUs are pinned in a line each; more of the same affinity in a loop."""


def steps(change: Change) -> list[Step]:
    """What is typed, in order: what takes a restart, what holds at once, what keeps it, what cannot be typed."""
    return [*linux.steps(change, _of_vm), *_unnamed(change)]


def _unnamed(change: Change) -> Iterator[Step]:
    names = dict.fromkeys(getattr(setting, "domain", None) for setting in change.settings)
    for domain in filter(None, names):
        if _PROCESS.fullmatch(domain):
            reason = f"domain {domain}: the recording says of which process it is, and not its name (`virsh list`)"
            yield Step("cannot", reason, domain=domain)


def _of_vm(setting: Setting, change: Change) -> Way | None:
    domain = getattr(setting, "domain", None)
    if domain in (None, DOM0):
        return None
    found = next(way(setting, change), None)
    return None if found is None else replace(found, domain=domain)


def way(setting: Setting, change: Change) -> Iterator[Way]:
    """How libvirt takes a setting of a VM; `None`: it is no such."""
    match setting:
        case Params(pool, str()) if pool.is_linux:
            yield _params(setting, place(change, setting.domain or ""))
        case Affinity(_, domain, soft=False):
            yield Way(run=list(_pinned(domain, linux.pins(setting, change))))
        case ThreadAffinity(_, domain, "emulator", pcpus):
            yield Way(run=[f"virsh emulatorpin {domain} {linux.pinned(change, pcpus)} {_BOTH}"])
        case ThreadAffinity(_, domain, _, pcpus):
            yield Way(run=[f"virsh iothreadpin {domain} 1 {linux.pinned(change, pcpus)} {_BOTH}"])
        case ThreadClass(_, domain, policy, priority):
            yield _classed(setting, place(change, domain), policy, priority)
        case Nice(_, domain, nice):
            yield niced(domain, nice, threads(place(change, domain)))
        case IoThreads(_, domain, count, there):
            yield _io_threads(domain, count, there)
        case InGroup(_, domain, path):
            yield _in_group(domain, path)
        case Vcpus(_, domain, count):
            yield Way(run=[f"virsh setvcpus {domain} {count} {_BOTH}"])
        case MemoryNodes(_, domain, nodes):
            yield Way(keep=[f"virsh numatune {domain} --nodeset {spans(nodes)} --config"])
        case Life(_, domain, op) if op in _LIVES:
            yield Way(run=[f"virsh {_LIVES[op]} {domain}"])


def place(change: Change, domain: str) -> Place:
    """The scope of a VM: its name has the VM's number, and is escaped as systemd does it."""
    name = f"$(systemd-escape {domain})" if "-" in domain else domain
    path = change.groups.get(domain, DEFAULT_SLICES[False])
    return Place(f"{path}/machine-qemu\\x2d$(virsh domid {domain})\\x2d{name}.scope", lasts=False)


def threads(where: Place) -> str:
    """What prints the numbers of a VM's vCPU threads."""
    return f"cat {where.inside('libvirt/vcpu*', 'cgroup.threads')}"


def again(domain: str, what: str) -> str:
    """What is lost when a VM stops, in words."""
    return f"domain {domain}: {what}: holds until the VM stops; type it again after each start"


def _params(setting: Params, where: Place) -> Way:
    """One command for all that libvirt has a name for; the rest in files of the VM's control group."""
    domain = setting.domain or ""
    named = {
        "cpu_shares" if name == "weight" else name.removesuffix("_us"): value
        for name, value in setting.values.items()
        if name == "weight" or name.endswith(("_quota_us", "_period_us"))
    }
    found = Way()
    if named:
        words = " ".join(f"{name}={value}" for name, value in named.items())
        flags = "--live" if setting.moment == "action" else _BOTH
        found.run.append(f"virsh schedinfo {domain} --set {words} {flags}")
    in_files = {name: setting.values[name] for name in ("global_burst_us", "idle") if name in setting.values}
    for name, value in in_files.items():
        file = "cpu.idle" if name == "idle" else "cpu.max.burst"
        found.run.append(f"echo {int(value)} > {where.file(file)}")
        found.cannot.append(again(domain, file))
    return found


def _pinned(domain: str, pins: list[tuple[str, str]]) -> Iterator[str]:
    lists = {pcpus for _, pcpus in pins}
    if len(lists) == 1 and len(pins) > _ONE_BY_ONE:
        each = f"virsh vcpupin {domain} $v {lists.pop()} {_BOTH}"
        yield f"for v in $(seq {pins[0][0]} {pins[-1][0]}); do {each}; done"
    else:
        yield from (f"virsh vcpupin {domain} {vcpu} {pcpus} {_BOTH}" for vcpu, pcpus in pins)


def _classed(setting: ThreadClass, where: Place, policy: str, priority: int) -> Way:
    domain = setting.domain
    found = Way(run=[linux.scheduled(threads(where), policy, priority)])
    if policy == "other":
        found.cannot = [f"domain {domain}: to keep it, take `vcpusched` out of its XML (virsh edit {domain})"]
        return found
    words = {"vcpus": f"0-{setting.vcpus - 1}" if setting.vcpus > 1 else "0", "scheduler": policy}
    words |= {"priority": str(priority)} if policy in linux.REAL_TIME else {}
    listed = ",".join(f"vcpusched0.{name}={value}" for name, value in words.items())
    found.keep = [f"virt-xml {domain} --edit --cputune {listed}"]
    return found


def niced(domain: str, nice: int, ids: str) -> Way:
    """Nice values of vCPU threads, whose numbers a command prints."""
    return Way(run=[f"renice -n {nice} -p $({ids})"], cannot=[again(domain, f"nice {nice}")])


def _io_threads(domain: str, count: int, there: int) -> Way:
    if count < there:
        return Way(
            keep=[f"virt-xml {domain} --edit --disk driver.iothread="],
            run=[f"virsh iothreaddel {domain} {number} --config" for number in range(there, count, -1)],
            cannot=[f"domain {domain}: its disk does without an I/O thread from the VM's next start on"],
        )
    return Way(
        run=[f"virsh iothreadadd {domain} {number} {_BOTH}" for number in range(there + 1, count + 1)],
        keep=[f"virt-xml {domain} --edit --disk driver.iothread=1"],
        cannot=[f"domain {domain}: its disk uses the I/O thread from the VM's next start on"],
    )


def _in_group(domain: str, path: str) -> Way:
    partition = _partition(path)
    if partition is None:
        return Way.none(f"domain {domain}: in {path}: libvirt puts VMs into slices of systemd only")
    return Way(
        keep=[f"virt-xml {domain} --edit --resource partition={partition}"],
        cannot=[f"domain {domain}: it is in {path} from the VM's next start on"],
    )


def _partition(path: str) -> str | None:
    """A group as libvirt's XML names it; `None`: it is no path of slices.

    Examples:
        >>> _partition("machine.slice/machine-gold.slice"), _partition("machine.slice"), _partition("vms/gold")
        ('/machine/gold', '/machine', None)
    """
    parts = list[str]()
    before = ""
    for name in path.split("/"):
        own = name.removesuffix(".slice").removeprefix(before)
        if not name.endswith(".slice") or not name.startswith(before) or not own or "-" in own:
            return None
        parts.append(own)
        before = f"{name.removesuffix('.slice')}-"
    return "/" + "/".join(parts)
