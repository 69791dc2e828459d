"""What is known of a KVM host, from whatever files there are of it: its kernel, its VMs, their groups and pinning."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from vcpulab import formats as recordings
from vcpulab.formats import VcpuThread
from vcpulab.formats.linux_experiment import Experiment
from vcpulab.formats.linux_host import Linux
from vcpulab.formats.machine import Machine
from vcpulab.formats.ps import Thread
from vcpulab.formats.xl_info import Info
from vcpulab.hypervisors import Toolstack
from vcpulab.twin import cgroups
from vcpulab.twin.imported import plain_name
from vcpulab.twin.kernel import halt_poll_us
from vcpulab.twin.placed import Map

KINDS: tuple[recordings.Kind, ...] = get_args(recordings.KvmKind)
"""What is understood."""
LISTER = "lscpu -p"
"""What lists CPUs one by one."""
_SHARES_V1 = 1024
"""What libvirt says of a VM of which nobody said anything, on control groups of version 1."""
_NAMED = re.compile(r"(?:^|\s)-name\s+(?:guest=)?(?P<name>[^\s,]+)")
_VMID = re.compile(r"(?:^|\s)-id\s+(?P<id>\d{1,9})(?:\s|$)")
_SMP = re.compile(r"(?:^|\s)-smp\s+(?:cpus=)?(?P<vcpus>\d{1,4})")
_TAKEN = ("dom0", "host")
"""Names that no domain of a KVM host can have."""
_POLICIES = ("other", "batch", "idle", "fifo", "rr")


@dataclass
class Vm:
    """A VM."""

    name: str
    machine: Machine
    scope: str | None = None
    """The path of its own group; `None`: not known; empty: it has none, and is in the root group."""
    groups: dict[int, str] = field(default_factory=dict)
    """By vCPU: the path of the group that its thread is in."""
    nice: int = 0
    """Of its vCPUs' threads."""
    realtime: int = 0
    """Their priority under `SCHED_FIFO`; 0: they have none."""
    threads: int = 1
    """How many of its threads compete where they are in no group of their own."""
    alone: bool = True
    """Has it its own group for itself?"""


@dataclass
class KvmHost:
    """All that is known."""

    said: Linux = field(default_factory=Linux)
    info: Info = field(default_factory=lambda: Info({}))
    machines: dict[str, Machine] = field(default_factory=dict)
    """By name."""
    listed: dict[int, Thread] = field(default_factory=dict)
    """Threads that `ps` lists."""
    experiment: Experiment = field(default_factory=Experiment)
    told: list[VcpuThread] = field(default_factory=list)
    """Threads that a file says to be vCPUs."""
    kinds: set[str] = field(default_factory=set)
    """Kinds of files that there are."""
    _numbered: dict[int, str] = field(default_factory=dict)

    def take(self, kind: recordings.Kind, holds: Any) -> None:
        """Takes what a file says; of two that say the same the later one counts."""
        self.kinds.add(kind)
        if kind in ("linux", "systemd-cgls"):
            self._take_linux(holds)
        elif kind == "linux-experiment":
            self.experiment = holds
            self.said.groups.update(holds.groups)
        elif kind == "ps-threads":
            self.listed.update((thread.thread, thread) for thread in holds)
            self._take_commands(holds)
        elif kind in ("virsh-nodeinfo", "virsh-capabilities", "lscpu"):
            # What counts CPUs one by one says more.
            if holds.cpus or not self.info.cpus:
                self.info = Info({**self.info.said, **holds.said}, holds.cpus, holds.nodes or self.info.nodes)
        else:
            for machine in holds:
                self._add(machine)

    def _take_linux(self, holds: Linux) -> None:
        self.said.version = holds.version or self.said.version
        self.said.settings.update(holds.settings)
        for path, files in holds.groups.items():
            self.said.groups.setdefault(path, {}).update(files)
        self.said.threads.update(holds.threads)

    def _add(self, machine: Machine) -> None:
        """Listings name a VM, or have its number only."""
        known = self.machines.get(machine.name)
        if known is None and machine.number is not None:
            known = self.machines.get(self._numbered.get(machine.number, ""))
            if known is not None and known.name.isdecimal():
                del self.machines[known.name]
                known.name = machine.name
                self.machines[machine.name] = known
        if known is None:
            self.machines[machine.name] = known = machine
        else:
            known.add(machine)
        if known.number is not None:
            self._numbered[known.number] = known.name

    def _take_commands(self, threads: list[Thread]) -> None:
        """VMs by QEMU's command lines."""
        for thread in threads:
            named = _NAMED.search(thread.args) if thread.thread == thread.process else None
            if named is None or not re.search(r"(^|/)(qemu|kvm)", thread.args.split(" ")[0]):
                continue
            vmid, smp = _VMID.search(thread.args), _SMP.search(thread.args)
            known = self.machines.get(named["name"])
            if known is not None and known.vcpus is not None:
                smp = None  # It is from when QEMU was started.
            self._add(
                Machine(
                    named["name"],
                    int(vmid["id"]) if vmid else None,
                    thread.process,
                    running=True,
                    vcpus=int(smp["vcpus"]) if smp else None,
                )
            )

    # ---- names ----

    def name_of_process(self, process: int) -> str | None:
        """The VM whose QEMU is that process."""
        for machine in self.machines.values():
            if machine.process == process:
                return machine.name
        group = self.group_of(process, process)
        return None if group is None else self.name_of_group(group)

    def name_of_group(self, path: str) -> str | None:
        """The VM whose group that is, or is below."""
        place = cgroups.place_of(path)
        return (
            place.name
            or self._numbered.get(-1 if place.number is None else place.number)
            or (None if place.number is None else f"vm{place.number}")
        )

    def group_of(self, thread: int, process: int | None) -> str | None:
        """The control group that a thread is in."""
        for number in (thread, process):
            told, listed = self.said.threads.get(number or 0), self.listed.get(number or 0)
            if told is not None and told.group is not None:
                return told.group
            if listed is not None and listed.group:
                return listed.group
        return None

    def scope_of(self, name: str) -> str | None:
        """The path of a VM's own group: one that a toolstack names after it, else the only group that has its name."""
        paths = dict.fromkeys([*self.said.groups, *(told.group for told in self.said.threads.values() if told.group)])
        scopes = [cgroups.place_of(path).scope for path in paths if self.name_of_group(path) == name]
        same_name = [path for path in paths if path.rpartition("/")[2] == name]
        return scopes[0] if scopes else same_name[0] if len(same_name) == 1 else None

    @property
    def toolstack(self) -> Toolstack:
        """What sets up this host, by what its files are of."""
        if any(kind.startswith("qm-") for kind in self.kinds) or any(
            path.startswith("qemu.slice") for path in self.said.groups
        ):
            return "proxmox"
        if any(kind.startswith("virsh-") for kind in self.kinds) or any(
            "qemu" in path and path.startswith("machine") for path in self.said.groups
        ):
            return "libvirt"
        return "cgroup" if self.said.groups else "libvirt"

    @property
    def shares_are_weights(self) -> bool:
        """Is `cpu_shares` a weight of cgroup v2? Of version 1 are shares where some VM has its default of 1024."""
        if any("cpu.weight" in files for files in self.said.groups.values()):
            return True
        if any("cpu.shares" in files for files in self.said.groups.values()):
            return False
        return all(machine.shares != _SHARES_V1 for machine in self.machines.values())

    def halt_poll_us(self) -> int | None:
        """Halt polling, as the module says it."""
        return halt_poll_us(self.said.settings)

    # ---- what a scenario says of a VM ----

    def fields_of(self, vm: Vm, vcpus: int, placed: Map, notes: list[str]) -> dict[str, Any]:
        """The fields of a domain, but for what runs in it: where it is, what it may have, and where it may run.

        Args:
            vm: it.
            vcpus: their number.
            placed: the host's CPUs.
            notes: where to say what a scenario cannot express.
        """
        found: dict[str, Any] = {"vcpus": vcpus}
        around = around_of(vm)
        if around != cgroups.MACHINES:
            found["cgroup"] = around
        found |= self._params(vm, notes)
        found |= self._pins(vm, vcpus, placed)
        machine = vm.machine
        if machine.iothreads:
            found["iothreads"] = 1
        told = set(machine.scheduling.values())
        if vm.realtime:
            told = {("fifo", vm.realtime)}
        if len(told) > 1:
            notes.append(f"{vm.name}: its vCPUs have different policies or priorities; the first one's count for all")
        for policy, priority in sorted(told)[:1]:
            if policy in _POLICIES and policy != "other":
                found["sched_policy"] = policy
                if policy in ("fifo", "rr"):
                    found["sched_priority"] = max(1, priority)
        if vm.nice and "sched_policy" not in found and vm.scope:
            found["nice"] = vm.nice
        return found

    def _params(self, vm: Vm, notes: list[str]) -> dict[str, int]:
        machine = vm.machine
        found = {name: value for name, value in machine.params.items() if not name.endswith("quota_us") or value > 0}
        quotas = {name.removesuffix("quota_us") for name in found if name.endswith("quota_us")}
        found = {
            name: value
            for name, value in found.items()
            if not name.endswith("period_us") or name.removesuffix("period_us") in quotas
        }
        if machine.shares is not None:
            shares = machine.shares
            found["weight"] = shares if self.shares_are_weights else cgroups.weight_of_shares(shares)
        files = self.said.groups.get(vm.scope or "", {}) if vm.alone else {}
        weight = cgroups.weight_of(files)
        if weight is not None:
            found["weight"] = weight
        if (not vm.scope and vm.scope is not None) or not vm.alone:
            found["weight"] = cgroups.weight_of_nice(vm.nice, vm.threads)
            if vm.nice or vm.threads > 1 or not vm.alone:
                where = "in the root group" if not vm.scope else f"with others in the group {vm.scope}"
                notes.append(
                    f"{vm.name}: its threads are {where}, and have no group of their own; here it has one, whose "
                    f"weight of {found['weight']} gets as much as {vm.threads} threads of nice {vm.nice}"
                )
        found |= cgroups.fields_of(files, "global_{}")
        if files.get("cpu.idle") == "1":
            found["idle"] = 1
        found |= self._limits(vm, notes)
        if found.get("weight") == 100:
            del found["weight"]
        return found

    def _limits(self, vm: Vm, notes: list[str]) -> dict[str, int]:
        """Limits of the groups below the VM's own."""
        if not vm.scope:
            return {}
        found: dict[str, int] = {}
        for path, files in self.said.groups.items():
            place = cgroups.place_of(path)
            if place.scope != vm.scope or path == vm.scope:
                continue
            limits = cgroups.fields_of(files, f"{place.part}_{{}}") if place.part else {}
            if place.part and cgroups.weight_of(files) not in (None, 100):
                notes.append(f"{vm.name}: {path} has a weight of its own, which a scenario does not say; left out")
            for name, value in limits.items():
                if name.endswith("burst_us"):
                    notes.append(f"{vm.name}: {path} has a burst, which a scenario has of whole VMs only; left out")
                elif found.setdefault(name, value) != value:
                    notes.append(f"{vm.name}: its {place.part} groups have different limits; the first one's count")
        return found

    def _pins(self, vm: Vm, vcpus: int, placed: Map) -> dict[str, Any]:
        machine = vm.machine
        found: dict[str, Any] = {}
        # What the groups around the VM's own leave is said of these.
        around = self._cpuset(around_of(vm), placed)

        def here(listed: str) -> str:
            pcpus = placed.of_host(listed) or "all"
            return "all" if pcpus == around else pcpus

        cpuset = cgroups.cpuset_of(self.said.groups.get(vm.scope, {})) if vm.scope and vm.alone else ""
        own = dict.fromkeys(("emulator", "iothread"), cpuset) | self._cpusets(vm)
        masks = [
            here(machine.vcpu_pins.get(vcpu) or own.get(f"vcpu{vcpu}") or cpuset or "all") for vcpu in range(vcpus)
        ]
        if set(masks) - {"all"}:
            found["affinity"] = masks[0] if len(set(masks)) == 1 else masks
        for name, listed in (
            ("emulator_affinity", machine.emulator_pin or own["emulator"]),
            ("iothread_affinity", next(iter(machine.iothread_pins.values()), own["iothread"])),
        ):
            if listed and here(listed) != "all":
                found[name] = here(listed)
        return found

    def _cpuset(self, path: str, placed: Map) -> str:
        """The pCPUs of the innermost group of a path of which any are said."""
        while path.strip("/"):
            listed = cgroups.cpuset_of(self.said.groups.get(path, {}))
            if listed:
                return placed.of_host(listed) or "all"
            path = path.rpartition("/")[0]
        return "all"

    def _cpusets(self, vm: Vm) -> dict[str, str]:
        """CPUs of the groups of a VM's threads, by `vcpu0`, `emulator` or `iothread`."""
        found: dict[str, str] = {}
        for path, files in self.said.groups.items():
            place, listed = cgroups.place_of(path), cgroups.cpuset_of(files)
            if vm.scope and place.scope == vm.scope and place.part and listed:
                found.setdefault(f"vcpu{place.of}" if place.part == "vcpu" else place.part, listed)
        return found


def allowed_name(name: str) -> str:
    """A name as a scenario of a KVM host takes it.

    Examples:
        >>> allowed_name("web"), allowed_name("my shop (2)"), allowed_name("host")
        ('web', 'my-shop--2-', 'host-vm')
    """
    plain = plain_name(name)
    return f"{plain}-vm" if plain in _TAKEN else plain


def around_of(vm: Vm) -> str:
    """The group around a VM's own, as a scenario says it."""
    if vm.scope is None:
        return cgroups.MACHINES
    if not vm.alone and vm.scope:
        return vm.scope
    return vm.scope.rpartition("/")[0] or cgroups.ROOT


def tables_around(
    vms: Mapping[str, Vm], others: Iterable[str], host: KvmHost, placed: Map
) -> dict[str, dict[str, Any]]:
    """The tables of control groups of a scenario: those around VMs, and around others."""
    return cgroups.tables({around_of(vm) for vm in vms.values()}.union(others), host.said.groups, placed.of_host)
