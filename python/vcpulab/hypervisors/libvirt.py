"""Commands for a KVM host of libvirt.

`virsh` holds at once (`--live`) and from the VM's next start on (`--config`); what it has no command for is in the VM's
XML, which `virt-xml` edits, or in files of its control groups, which are made anew at each start.

Sources: `virsh(1)` (`schedinfo`, `vcpupin`, `emulatorpin`, `iothreadpin`, `iothreadadd`, `setvcpus`, `numatune`);
libvirt's pages on the domain XML (`cputune`, `vcpusched`, `resource`) and on control groups (the hierarchy, and how a
partition becomes slices); `virt-xml(1)`; `chrt(1)`, `renice(1)`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from vcpulab.hypervisors import linux, systemd
from vcpulab.hypervisors.groups import NONE, Place, burst_files, is_none, of_whole, written
from vcpulab.hypervisors.scope_names import MACHINE_CHARS, SURE_CHARS, machine_chars
from vcpulab.hypervisors.settings import (
    DEFAULT_SLICES,
    DOM0,
    Affinity,
    Change,
    GuestThreads,
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
from vcpulab.scenario.cgroups import Version, shares_of_weight
from vcpulab.scenario.units import spans

_PROCESS = re.compile(r"qemu-\d+")
"""The name of a domain whose recording has only the number of its process."""
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
"""The most vCPUs that are pinned by a line each; more vCPUs with the same affinity are pinned in a loop."""


def steps(change: Change) -> list[Step]:
    """The steps, in order: after a restart, at once, to keep the settings, and settings without a command."""
    return [*linux.steps(change, _of_vm), *_unnamed(change)]


def _unnamed(change: Change) -> Iterator[Step]:
    names = dict.fromkeys(getattr(setting, "domain", None) for setting in change.settings)
    for domain in filter(None, names):
        if _PROCESS.fullmatch(domain):
            reason = f"domain {domain}: the recording says of which process it is, and not its name (`virsh list`)"
            yield Step("cannot", reason, domain=domain)
        if domain.isdecimal():
            reason = f"domain {domain}: virsh takes a number for the id of a VM that runs before it looks for the name"
            yield Step("cannot", reason, domain=domain)


def _of_vm(setting: Setting, change: Change) -> Way | None:
    domain = getattr(setting, "domain", None)
    if domain in (None, DOM0):
        return None
    way = next(_way(setting, change), None)
    return None if way is None else replace(way, domain=domain)


def _way(setting: Setting, change: Change) -> Iterator[Way]:
    """The ways of libvirt for a setting of a VM; none for other settings."""
    match setting:
        case Params(pool, str()) if pool.is_linux:
            where = place(change, setting.domain or "")
            way = linux.with_slices(_params(setting, where), setting, threads(where))
            lost = [lost_at_stop(setting.domain or "", "slice_us")] if "slice_us" in setting.values else []
            yield replace(way, cannot=[*way.cannot, *lost])
        case Affinity(_, domain, soft=False):
            yield _pinned(domain, linux.pins(setting, change), old_count=linux.old_vcpu_count(domain, change))
        case ThreadAffinity(_, domain, "emulator", pcpus):
            yield Way(run=[f"virsh emulatorpin {domain} {linux.pinned(change, pcpus)} {_BOTH}"])
        case ThreadAffinity(_, domain, _, pcpus):
            yield Way(run=[f"virsh iothreadpin {domain} 1 {linux.pinned(change, pcpus)} {_BOTH}"])
        case ThreadClass(_, domain, policy, priority):
            yield _classed(setting, place(change, domain), policy, priority)
        case Nice(_, domain, nice):
            yield niced(domain, nice, threads(place(change, domain)))
        case GuestThreads(_, domain, threads_per_core, vcpus):
            cores = vcpus // threads_per_core
            shape = f"vcpus={vcpus},sockets=1,cores={cores},threads={threads_per_core}"
            late = f"domain {domain}: {threads_per_core} threads per core from the VM's next start on"
            yield Way(keep=[f"virt-xml {domain} --edit --vcpus {shape}"], cannot=[late])
        case IoThreads(_, domain, count, old_count):
            yield _io_threads(domain, count, old_count)
        case InGroup(_, domain, path):
            yield _in_group(domain, path)
        case Vcpus(_, domain, count, old_count):
            yield _vcpus(domain, count, old_count)
        case MemoryNodes(_, domain, nodes):
            yield Way(keep=[f"virsh numatune {domain} --nodeset {spans(nodes)} --config"])
        case Life(_, domain, op) if op in _LIVES:
            yield Way(run=[f"virsh {_LIVES[op]} {domain}"])


def place(change: Change, domain: str) -> Place:
    """The scope of a VM, whose name has the VM's number."""
    around = change.groups.get(domain, DEFAULT_SLICES[False]).strip("/")
    return Place(around, scope_name(domain), change.cgroups, lasts=False)


def scope_name(domain: str) -> tuple[Part, ...]:
    r"""The name of a VM's scope: that of its machine, `qemu-NUMBER-NAME`, escaped as systemd does it.

    Of a VM's name libvirt takes letters, digits, `-` and `.`, of several `-` and `.` in a row the first, and as much
    as makes 64 characters with the number before it.

    Examples:
        >>> from vcpulab.hypervisors.shell import word
        >>> print(word(*scope_name("web_1")))
        "machine-qemu\x2d$(virsh domid web_1)\x2dweb1.scope"
        >>> print(word(*scope_name("a-_.-b-")))
        "machine-qemu\x2d$(virsh domid a-_.-b-)\x2da\x2db.scope"
    """
    number = Output(f"virsh domid {domain}")
    plain = machine_chars(domain)
    if len(plain) > SURE_CHARS:
        whole = f'printf %.{MACHINE_CHARS}s "qemu-$({number.command})-{plain}"'
        return ("machine-", Output(rf"{whole} | sed 's/[-.]*$//; s/-/\\x2d/g'"), ".scope")
    in_words = plain == domain and "-" in plain
    name: Part = Output(f"systemd-escape {plain}") if in_words else plain.replace("-", r"\x2d")
    return ("machine-qemu\\x2d", number, *(("\\x2d", name) if plain else ()), ".scope")


def threads(where: Place) -> str:
    """The command that prints the ids of a VM's vCPU threads."""
    return f"cat {where.threads(f'{inside(where)}vcpu*')}"


def inside(where: Place) -> str:
    """The directory in a VM's scope with the groups of its threads: none of version 1, as before libvirt 7.1."""
    return "libvirt/" if where.version == 2 else ""


def lost_at_stop(domain: str, setting: str) -> str:
    """The reason that a setting is lost when a VM stops."""
    return f"domain {domain}: {setting}: holds until the VM stops; type it again after each start"


def _params(setting: Params, where: Place) -> Way:
    """One command for the parameters that libvirt names; the others are set in files of the VM's control group."""
    domain = setting.domain or ""
    named = dict(_schedinfo(setting.values, where.version))
    before, after = burst_files(where.version, of_whole(setting.values))
    if "idle" in setting.values:
        after.append(("cpu.idle", str(int(setting.values["idle"]))))
    way = Way(run=[written(text, where.file(file)) for file, text in before])
    if named:
        words = " ".join(f"{name}={value}" for name, value in named.items())
        flags = "--live" if setting.moment == "action" else _BOTH
        way.run.append(f"virsh schedinfo {domain} --set {words} {flags}")
    way.run += [written(text, where.file(file)) for file, text in after]
    way.cannot = [lost_at_stop(domain, file) for file in dict.fromkeys(file for file, _ in (*before, *after))]
    return way


def _schedinfo(values: Mapping[str, Any], version: Version) -> Iterator[tuple[str, int]]:
    """Names and values of the parameters that `virsh schedinfo` sets."""
    for name, value in values.items():
        if name == "weight":
            yield "cpu_shares", shares_of_weight(value) if version == 1 else value
        elif name.endswith("_quota_us"):
            yield name.removesuffix("_us"), NONE if is_none(value) else value
        elif name.endswith("_period_us"):
            yield name.removesuffix("_us"), value


def _vcpus(domain: str, count: int, old_count: int | None) -> Way:
    """Another number of vCPUs: those that a VM was started with cannot be unplugged, and more are above its maximum."""
    more = old_count is not None and count > old_count
    return Way(
        keep=[
            *([f"virsh setvcpus {domain} {count} --maximum --config"] if more else []),
            f"virsh setvcpus {domain} {count} --config",
        ],
        cannot=[f"domain {domain}: {count} vCPUs from the VM's next start on"],
    )


def _pinned(domain: str, pins: list[tuple[str, str]], old_count: int | None) -> Way:
    """Commands that pin vCPUs; a vCPU that the change adds is pinned from the VM's next start on."""
    now = [(vcpu, pcpus) for vcpu, pcpus in pins if old_count is None or int(vcpu) < old_count]
    return Way(
        run=list(_pin_commands(domain, now, _BOTH)),
        keep=list(_pin_commands(domain, [pin for pin in pins if pin not in now], "--config")),
    )


def _pin_commands(domain: str, pins: list[tuple[str, str]], flags: str) -> Iterator[str]:
    lists = {pcpus for _, pcpus in pins}
    if len(lists) == 1 and len(pins) > _ONE_BY_ONE:
        each = f"virsh vcpupin {domain} $v {lists.pop()} {flags}"
        yield f"for v in $(seq {pins[0][0]} {pins[-1][0]}); do {each}; done"
    else:
        yield from (f"virsh vcpupin {domain} {vcpu} {pcpus} {flags}" for vcpu, pcpus in pins)


def _classed(setting: ThreadClass, where: Place, policy: str, priority: int) -> Way:
    domain = setting.domain
    way = Way(run=[linux.scheduled(threads(where), policy, priority)])
    if policy == "other":
        way.cannot = [f"domain {domain}: to keep it, take `vcpusched` out of its XML (virsh edit {domain})"]
        return way
    words = {"vcpus": f"0-{setting.vcpus - 1}" if setting.vcpus > 1 else "0", "scheduler": policy}
    words |= {"priority": str(priority)} if policy in linux.REAL_TIME else {}
    listed = ",".join(f"vcpusched0.{name}={value}" for name, value in words.items())
    way.keep = [f"virt-xml {domain} --edit --cputune {listed}"]
    return way


def niced(domain: str, nice: int, ids: str) -> Way:
    """The command that sets the nice value of vCPU threads; `ids` is the command that prints their ids."""
    return Way(run=[f"renice -n {nice} -p $({ids})"], cannot=[lost_at_stop(domain, f"nice {nice}")])


def _io_threads(domain: str, count: int, old_count: int) -> Way:
    if count < old_count:
        return Way(
            keep=[f"virt-xml {domain} --edit --disk driver.iothread="],
            run=[f"virsh iothreaddel {domain} {number} --config" for number in range(old_count, count, -1)],
            cannot=[f"domain {domain}: its disk does without an I/O thread from the VM's next start on"],
        )
    return Way(
        run=[f"virsh iothreadadd {domain} {number} {_BOTH}" for number in range(old_count + 1, count + 1)],
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
    """The name of a group in libvirt's XML; `None`: the path is not a path of slices.

    Examples:
        >>> _partition("machine.slice/machine-gold.slice"), _partition("machine.slice"), _partition("vms/gold")
        ('/machine/gold', '/machine', None)
    """
    parts = systemd.slices(path)
    return None if not parts or "\\" in path else "/" + "/".join(parts)
