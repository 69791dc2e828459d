"""From listings of a KVM host to a scenario: its VMs, their weights, limits and pinning, and work of the same load."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from vcpulab._engine import NAME_CHARS_MAX
from vcpulab.errors import RequestError
from vcpulab.formats.kinds import Read, Unused, files_by_name
from vcpulab.formats.machine import Machine
from vcpulab.hypervisors import Toolstack
from vcpulab.scenario.catalogue import generation_of
from vcpulab.scenario.names import in_short
from vcpulab.twin.imported import Made, made
from vcpulab.twin.kernel import EEVDF, kernel_of, params_of
from vcpulab.twin.kvm_host import LISTER, KvmHost, Vm, allowed_name, tables_around
from vcpulab.twin.placed import Map, flat, map_of
from vcpulab.twin.written import comment, inline, key, toml, work


def scenario_of(
    found: Iterable[Read],
    profile: str | None = None,
    toolstack: Toolstack | None = None,
    folder: Path | None = None,
    unused: Iterable[Unused] = (),
) -> Made:
    """The KVM host that listings are of.

    Args:
        found: what `recordings.read` made of them; of two that say the same the later one counts.
        profile: the hardware profile; `None`: `generic`.
        toolstack: in whose commands advice is given; `None`: that whose listings there are.
        folder: where the scenario will be, for a profile that is a file.
        unused: the files that are left out, each a note.

    Raises:
        RequestError: no listing names a VM.
        ScenarioError: there is no such profile.
    """
    host = KvmHost()
    reads = list(found)
    for one in reads:
        host.take(one.kind, one.holds)
    machines = [machine for machine in host.machines.values() if machine.running is not False]
    if not machines:
        allowed = "among them what `virsh list`, `virsh dumpxml` or `qm list` prints, or QEMU's command lines by `ps`"
        raise RequestError("no file says which VMs there are", allowed=allowed)
    notes: list[str] = [*map(str, unused)]
    placed = map_of(host.info, notes, LISTER) or _pinned(machines, notes)
    vms: dict[str, Vm] = {}
    for machine in machines:
        name = _once(machine.name, vms)
        if name != machine.name:
            notes.append(f"`{machine.name}` is {name}: in commands type the host's own name")
        vms[name] = Vm(name, machine, host.scope_of(machine.name), threads=machine.vcpus or 1)
    if host.toolstack == "proxmox":
        for vm in vms.values():
            vm.scope = vm.scope or f"qemu.slice/{vm.machine.number}.scope"
    named = files_by_name(reads)
    files = {name: named.get(vm.machine.name, []) for name, vm in vms.items()}
    lines = list(_host_lines(host, profile, toolstack, placed, notes))
    for path, table in tables_around(vms, (), host, placed).items():
        lines += [
            "",
            f"[cgroup.{toml(path)}]",
            *(f"{name} = {toml(value)}" for name, value in table.items()),
        ]
    unknown = [name for name, vm in vms.items() if vm.machine.vcpus is None]
    if unknown:
        notes.append(f"{in_short(unknown)}: no listing says how many vCPUs; one")
    idle = [name for name, vm in vms.items() if _used(vm.machine) is None]
    if len(idle) == len(vms):
        notes.append("nothing runs in the VMs: no `virsh domstats`, twice, with `date +%s.%N` before each")
    for name, vm in vms.items():
        lines += ["", *_table(name, vm, host, placed, notes)]
    return made("vcpulab import kvm", "a KVM host as it is listed", lines, notes, folder=folder, files=files)


def _once(name: str, taken: Mapping[str, object]) -> str:
    """A name as a scenario takes it, each once."""
    plain = here = allowed_name(name)
    number = 2
    while here in taken:
        here, number = f"{plain[: NAME_CHARS_MAX - 5]}-{number}", number + 1
    return here


def _pinned(machines: Iterable[Machine], notes: list[str]) -> Map:
    """As many CPUs as pinning names."""
    pins = [pin for one in machines for pin in (*one.vcpu_pins.values(), one.emulator_pin or "")]
    named = [int(number) for pin in pins for number in re.findall(r"\d{1,4}", pin)]
    pcpus = min(max([0, *named]) + 1, 512)
    notes.append(f"pcpus = {pcpus}: no `lscpu -p` or `virsh capabilities` says how many; the most that pinning names")
    return flat(pcpus)


def _host_lines(
    host: KvmHost, profile: str | None, toolstack: Toolstack | None, placed: Map, notes: list[str]
) -> Iterator[str]:
    kernel = kernel_of(host.said)
    yield "[host]"
    yield 'hypervisor = "kvm"'
    if profile is not None:
        yield f"profile = {toml(profile)}"
    else:
        yield 'profile = "generic"       # assumed: no listing says what things cost on this machine'
    yield f"toolstack = {toml(toolstack or host.toolstack)}"
    for name, value in placed.fields().items():
        yield f"{name} = {value if isinstance(value, int) else inline(value)}"
    if kernel is None:
        notes.append(
            f"scheduler = {EEVDF}: no listing says which kernel (`uname -a` does); that of Linux 6.6 and later"
        )
        yield f'scheduler = "{EEVDF}"'
    else:
        if kernel.exact:
            yield from comment(kernel.why)
        else:
            notes.append(kernel.why)
        yield f"scheduler = {toml(kernel.scheduler)}"
        yield f"generation = {toml(kernel.generation)}"
    generation = generation_of(EEVDF if kernel is None else kernel.scheduler, kernel.generation if kernel else None)
    known = {param["name"] for param in generation["params"]} if generation is not None else set()
    params = params_of(host.said, None)
    if "hz" not in params:
        notes.append("hz: no listing says how many ticks a second the kernel has (CONFIG_HZ in /boot/config-…)")
    yield from (f"{name} = {value}" for name, value in params.items() if name in known)
    poll = host.halt_poll_us()
    if poll is not None:
        yield f"halt_poll_us = {poll}"


def _used(machine: Machine) -> float | None:
    """% of a pCPU between the first and the last look."""
    if len(machine.cpu_ns) < 2:
        return None
    first, last = min(machine.cpu_ns), max(machine.cpu_ns)
    return (machine.cpu_ns[last] - machine.cpu_ns[first]) / 1e9 / (last - first) * 100


def _table(name: str, vm: Vm, host: KvmHost, placed: Map, notes: list[str]) -> Iterator[str]:
    vcpus = min(max(vm.machine.vcpus or 1, 1), 512)
    yield f"[domain.{key(name)}]"
    for field, value in host.fields_of(vm, vcpus, placed, notes).items():
        yield f"{field} = {toml(value)}"
    yield from work(name, _used(vm.machine), vcpus, "virsh domstats")
