"""The import of a KVM host's listings: a scenario of VMs, their weights, limits and pinning, and work of equal load."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from vcpulab.errors import RequestError
from vcpulab.formats.kinds import Read, Unused, files_by_name, hypervisor_of
from vcpulab.formats.linux_cpus import L3_CACHES
from vcpulab.formats.machine import Machine
from vcpulab.hosts.cgroups import cpuset_of
from vcpulab.hosts.kernel import (
    KERNEL_COMMAND,
    assumed_params,
    params_of,
    scheduler_warnings,
    supported_params,
    without_missing_params,
)
from vcpulab.hosts.kernel_rules import EEVDF
from vcpulab.hosts.kvm_host import KINDS, LISTER, KvmHost, Vm, allowed_name, tables_around
from vcpulab.hosts.kvm_listings import read_host
from vcpulab.hosts.kvm_use import Use, use_of
from vcpulab.hosts.pcpu_map import PcpuMap, flat, map_of
from vcpulab.hosts.unused_groups import unused_groups
from vcpulab.hosts.unused_settings import unused_settings
from vcpulab.hypervisors import Toolstack
from vcpulab.hypervisors.groups import CGROUP
from vcpulab.imports.contradictions import contradictions
from vcpulab.imports.prices import cautions
from vcpulab.imports.result import Made, made
from vcpulab.imports.work import VCPUS_MAX, work
from vcpulab.scenario.catalogue import generation_of
from vcpulab.scenario.names import free_name, in_short
from vcpulab.show.toml_text import comment, inline, key, toml

_OF_HOST = ("linux", "lscpu", "virsh-capabilities", "virsh-nodeinfo")
"""Kinds that the fields of the host and of its control groups are of."""
_TWICE = "for n in 1 2; do date +%s.%N; {}; sleep 10; done > use.txt"
_CPU_STAT = "grep -H . /sys/fs/cgroup/{}/cpu.stat"
_USE_LISTERS: Mapping[Toolstack, str] = {
    "libvirt": _TWICE.format("virsh domstats --cpu-total --vcpu"),
    "proxmox": _TWICE.format(_CPU_STAT.format("qemu.slice/*.scope")),
    "cgroup": _TWICE.format("grep -rs . /sys/fs/cgroup --include=cpu.stat"),
}
"""The commands that list CPU use, by toolstack."""


def scenario_of(
    listings: Iterable[Read],
    profile: str | None = None,
    toolstack: Toolstack | None = None,
    folder: Path | None = None,
    unused: Iterable[Unused] = (),
) -> Made:
    """The scenario of the KVM host that listings describe.

    Args:
        listings: the results of `formats.read`; of two listings of the same thing the later one counts.
        profile: the hardware profile; `None`: `generic`.
        toolstack: the toolstack whose commands advice uses; `None`: the one whose listings are given.
        folder: where the scenario will be, for a profile that is a file.
        unused: the files that are left out; each becomes a note.

    Raises:
        RequestError: no listing names a VM, or a listing is not of a KVM host.
        ScenarioError: there is no such profile.
    """
    reads = list(listings)
    for read in reads:
        if read.kind not in KINDS:
            xen = "; `vcpulab.imports.xen` reads listings of a Xen host" if hypervisor_of(read.kind) == "xen" else ""
            raise RequestError(f"{read.path}: found {read.kind}", allowed=f"listings of a KVM host{xen}")
    host = read_host(reads)
    notes: list[str] = [*map(str, unused), *host.notes]
    machines = _running(host, notes)
    placed = map_of(host.info, notes, LISTER) or _pinned(host, notes)
    vms = _vms(machines, host, notes)
    named = files_by_name(reads)
    files = {
        name: [
            *named.get(vm.machine.name, []),
            *(read.path for read in reads if read.kind == "linux" and vm.scope in read.holds.groups),
        ]
        for name, vm in vms.items()
    }
    files[""] = [read.path for read in reads if read.kind in _OF_HOST]
    lines = list(_host_lines(host, profile, toolstack, placed, notes))
    for path, table in tables_around(vms, (), host, placed).items():
        lines += [
            "",
            f"[cgroup.{toml(path)}]",
            *(f"{name} = {toml(value)}" for name, value in table.items()),
        ]
    unknown = [name for name, vm in vms.items() if vm.machine.vcpus is None]
    if unknown:
        notes.append(f"{in_short(unknown)}: number of vCPUs not listed; assumed 1")
    uses = {name: use_of(vm, host) for name, vm in vms.items()}
    unmeasured = [name for name, use in uses.items() if use is None]
    lister = _USE_LISTERS.get(host.toolstack, _USE_LISTERS["cgroup"])
    hint = None
    if len(unmeasured) == len(vms):
        notes.append(f"nothing runs in the VMs, as no listing tells their CPU use: {lister}")
        hint = f"CPU use first: {lister}"
    elif unmeasured:
        notes.append(f"{in_short(unmeasured)}: no listing has their CPU use; they get no work")
    measured = ((name, use) for name, use in uses.items() if use is not None)
    notes += contradictions(
        ((name, use.percent, vms[name].machine.vcpus or 1, use.measured_by) for name, use in measured), placed.pcpus
    )
    measured_by = next((use.measured_by for use in uses.values() if use is not None), None)
    notes += cautions(profile, placed.topology, measured_by)
    for name, vm in vms.items():
        lines += ["", *_table(vm, uses[name], host, placed, notes)]
    notes += [*_omitted(vms), *unused_settings(host.linux), *_deadline_threads(host)]
    if host.linux.mounts:
        mounts = in_short(sorted(host.linux.mounts))
        notes.append(f"control groups are mounted on {mounts}: in commands type that instead of {CGROUP}")
    notes += unused_groups({name: vm.scope for name, vm in vms.items() if vm.scope}, host.linux)
    result = made("vcpulab import kvm", "a KVM host as it is listed", lines, notes, folder=folder, files=files)
    return replace(result, hint=hint)


def _vms(machines: Sequence[Machine], host: KvmHost, notes: list[str]) -> dict[str, Vm]:
    """The VMs by their names in the scenario."""
    listed = host.scopes()
    scopes = {machine.name: listed.get(machine.name, _usual_scope(machine, host)) for machine in machines}
    owners = Counter(scopes.values())
    vms: dict[str, Vm] = {}
    for machine in machines:
        name = free_name(allowed_name(machine.name), vms)
        if name != machine.name:
            notes.append(f"`{machine.name}` is {name}: in commands type the host's own name")
        scope = scopes[machine.name]
        alone = scope is None or owners[scope] == 1
        vms[name] = Vm(name, machine, scope, nice=machine.nice or 0, threads=machine.vcpus or 1, alone=alone)
    return vms


def _usual_scope(machine: Machine, host: KvmHost) -> str | None:
    """The control group of a VM by its toolstack's naming; `None`: it does not tell."""
    if host.toolstack == "proxmox" and machine.number is not None:
        return f"qemu.slice/{machine.number}.scope"
    return None


def _running(host: KvmHost, notes: list[str]) -> list[Machine]:
    """The running VMs. If no listing shows a running VM: all VMs not listed as off.

    Raises:
        RequestError: no VM is listed, or all are off.
    """
    machines = list(host.machines.values())
    if not machines:
        allowed = "among them what `virsh list`, `virsh dumpxml` or `qm list` prints, or QEMU's command lines by `ps`"
        raise RequestError("no file says which VMs there are", allowed=allowed)
    some_run = any(machine.running for machine in machines)
    # The configuration of a VM that runs has its id, or another listing shows that it runs.
    off = {
        machine.name
        for machine in machines
        if machine.running is False or (some_run and machine.running is None and machine.configured)
    }
    names = in_short([machine.name for machine in machines if machine.name in off])
    if len(off) == len(machines):
        raise RequestError(f"all VMs are off: {names}", allowed="listings of a host with VMs that run")
    if off:
        notes.append(f"{names}: off, and left out")
    elif not some_run and any(machine.configured for machine in machines):
        notes.append("no listing tells which VMs run (`virsh list`, `qm list`); all are assumed to run")
    return [machine for machine in machines if machine.name not in off]


def _pinned(host: KvmHost, notes: list[str]) -> PcpuMap:
    """The map of as many CPUs as pinning names."""
    machines = host.machines.values()
    pins = [pin for machine in machines for pin in (*machine.vcpu_pins.values(), machine.emulator_pin or "")]
    pins += [cpuset_of(files) for files in host.linux.groups.values()]
    named = [int(number) for pin in pins for number in re.findall(r"\d{1,4}", pin)]
    pcpus = min(max([0, *named]) + 1, 512)
    notes.append(f"pcpus = {pcpus}: no `lscpu -p` or `virsh capabilities` says how many; the most that pinning names")
    return flat(pcpus)


def _host_lines(
    host: KvmHost, profile: str | None, toolstack: Toolstack | None, placed: PcpuMap, notes: list[str]
) -> Iterator[str]:
    kernel = host.kernel
    yield "[host]"
    yield 'hypervisor = "kvm"'
    if profile is not None:
        yield f"profile = {toml(profile)}"
    else:
        yield 'profile = "generic"       # assumed: no listing says what things cost on this machine'
    yield f"toolstack = {toml(toolstack or host.toolstack)}"
    for name, value in placed.fields().items():
        yield f"{name} = {value if isinstance(value, int) else inline(value)}"
    generation = generation_of(EEVDF if kernel is None else kernel.scheduler, kernel.generation if kernel else None)
    if kernel is None:
        usual = "" if generation is None else f", as in {generation.name}"
        notes.append(
            f"scheduler = {EEVDF}: no listing says which kernel (`{KERNEL_COMMAND}` does); that of Linux 6.6 and later"
            f"{usual}, is assumed"
        )
        yield f'scheduler = "{EEVDF}"'
    else:
        if kernel.exact:
            yield from comment(kernel.explanation)
        else:
            notes.append(kernel.explanation)
        yield f"scheduler = {toml(kernel.scheduler)}"
        yield f"generation = {toml(kernel.generation)}"
    notes += scheduler_warnings(host.linux, kernel)
    if generation is not None and "llc_balancing" in generation.defaults:
        notes += _caches(host, placed)
    yield from _param_lines(host, placed, notes)
    for name, value in host.version_fields(notes).items():
        yield from comment(f"{name}: {host.version.reason}")
        yield f"{name} = {value}"
    for name, listed in host.isolation_fields(placed, notes).items():
        yield f"{name} = {toml(listed)}"
    poll = host.halt_poll_us()
    if poll is not None:
        yield f"halt_poll_us = {poll}"


def _param_lines(host: KvmHost, placed: PcpuMap, notes: list[str]) -> Iterator[str]:
    """The lines of the scheduler's own parameters."""
    kernel = host.kernel
    params = params_of(host.linux, None)
    for assumed in assumed_params(kernel, params, placed.pcpus):
        params[assumed.name] = assumed.value
        notes.append(assumed.note)
    scheduler, release = (EEVDF, None) if kernel is None else (kernel.scheduler, kernel.generation)
    for name, value in supported_params(params, scheduler, release, notes).items():
        yield f"{name} = {toml(value)}"


def _caches(host: KvmHost, placed: PcpuMap) -> Iterator[str]:
    """The note on sockets or nodes with several last-level caches, for kernels that keep a VM in one cache."""
    counted, here = host.info.settings.get(L3_CACHES, ""), max(placed.topology.sockets, placed.topology.nodes)
    if counted.isdecimal() and int(counted) > here:
        yield (
            f"the host has {counted} L3 caches, and one for each socket or node here: cache-aware balancing of Linux "
            "7.2 and later, which keeps the vCPUs of a VM in one cache, is not simulated among the caches of a socket"
        )


def _deadline_threads(host: KvmHost) -> Iterator[str]:
    """The note on threads under `SCHED_DEADLINE`, other than vCPUs."""
    names = host.deadline_threads()
    if names:
        yield f"{in_short(names)}: threads under SCHED_DEADLINE, which is not modelled; their CPU time is left out"


def _omitted(vms: Mapping[str, Vm]) -> Iterator[str]:
    """Notes on settings of VMs without a field in scenarios: each setting once, with its VMs."""
    names: dict[str, list[str]] = {}
    for name, vm in vms.items():
        for setting in vm.machine.omitted:
            names.setdefault(setting, []).append(name)
    for setting, machines in names.items():
        yield f"{in_short(machines)}: no field of a scenario says {setting}; left out"


def _table(vm: Vm, use: Use | None, host: KvmHost, placed: PcpuMap, notes: list[str]) -> Iterator[str]:
    listed = vm.machine.vcpus or 1
    vcpus = min(listed, VCPUS_MAX)
    if vcpus < listed:
        notes.append(f"{vm.name}: {listed} vCPUs; a scenario has at most {VCPUS_MAX} in a domain, and these are taken")
    yield f"[domain.{key(vm.name)}]"
    fields = host.fields_of(vm, vcpus, placed, notes)
    scheduler = EEVDF if host.kernel is None else host.kernel.scheduler
    for field, value in without_missing_params(fields, vm.name, scheduler, host.kernel, notes).items():
        yield f"{field} = {toml(value)}"
    if use is not None:
        yield from work(vm.name, use.percent, vcpus, use.measured_by, use.vcpus)
