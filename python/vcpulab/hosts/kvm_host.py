"""A KVM host as its files describe it: its kernel, its VMs, their control groups and pinning."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, get_args

from vcpulab import formats as recordings
from vcpulab.formats import VcpuThread
from vcpulab.formats.linux_experiment import Experiment
from vcpulab.formats.linux_host import Linux
from vcpulab.formats.machine import Machine
from vcpulab.formats.ps import DEADLINE, Thread
from vcpulab.formats.virsh import numbers_of
from vcpulab.formats.xl_info import Info
from vcpulab.hosts import cgroups
from vcpulab.hosts.cgroup_version import TELLER, Evidence, version_of
from vcpulab.hosts.isolation import isolation_fields
from vcpulab.hosts.kernel import Kernel, halt_poll_us, kernel_of
from vcpulab.hosts.pcpu_map import PcpuMap
from vcpulab.hosts.unused_groups import rounded
from vcpulab.hypervisors import Toolstack
from vcpulab.hypervisors.scope_names import SURE_CHARS, machine_part
from vcpulab.scenario.cgroups import SHARES, WEIGHT, is_rounded, weight_of_shares
from vcpulab.scenario.names import plain_name

KINDS: tuple[recordings.Kind, ...] = get_args(recordings.KvmKind)
"""The kinds of files that are understood."""
LISTER = "lscpu -p"
"""The kinds of files that list CPUs one by one."""
_TAKEN = ("dom0", "host")
"""Names that no domain of a KVM host can have."""
_POLICIES = ("other", "batch", "idle", "fifo", "rr")


@dataclass(frozen=True)
class Vm:
    """A VM."""

    name: str
    machine: Machine
    scope: str | None = None
    """The path of its own group; `None`: not known; empty: it has none, and is in the root group."""
    groups: Mapping[int, str] = field(default_factory=dict)
    """The path of the control group of each vCPU's thread."""
    pins: Mapping[int, str] = field(default_factory=dict)
    """The CPUs that the thread of each vCPU may run on now, where a listing of threads has them."""
    nice: int = 0
    """The nice value of the vCPUs' threads."""
    realtime: int = 0
    """The priority of the threads under `SCHED_FIFO`; 0: none."""
    threads: int = 1
    """The number of competing threads, where they are not in a group of their own."""
    alone: bool = True
    """`True`: the VM has its own control group."""


@dataclass(frozen=True)
class KvmHost:
    """A KVM host: its kernel, VMs, threads and control groups."""

    linux: Linux = field(default_factory=Linux)
    info: Info = field(default_factory=lambda: Info({}))
    machines: Mapping[str, Machine] = field(default_factory=dict)
    """The VMs by name."""
    numbered: Mapping[int, str] = field(default_factory=dict)
    """The names of VMs by their ids."""
    scoped: Mapping[str, Sequence[Machine]] = field(default_factory=dict)
    """VMs by the beginning of the name that libvirt gives to their scope."""
    listed: Mapping[int, Thread] = field(default_factory=dict)
    """Threads that `ps` lists."""
    experiment: Experiment = field(default_factory=Experiment)
    vcpu_threads: Sequence[VcpuThread] = ()
    """Threads that a file says to be vCPUs."""
    kinds: frozenset[recordings.Kind] = frozenset()
    """The kinds of the listings."""
    notes: tuple[str, ...] = ()
    """Notes on contradictions in the listings, and on their resolution."""

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
        if place.name is not None:
            return self._name_in_scope(place.name, place.number)
        return self.numbered.get(-1 if place.number is None else place.number) or (
            None if place.number is None else f"vm{place.number}"
        )

    def _name_in_scope(self, name: str, number: int | None) -> str:
        """The VM whose scope has that name and id: libvirt leaves some characters of a VM's name out."""
        begins = self.scoped.get(name[:SURE_CHARS], [])
        alike = [machine for machine in begins if number is None or machine_part(machine.name, number) == name]
        numbered = [machine for machine in alike if number is not None and machine.number == number]
        unnumbered = [machine for machine in alike if number is None or machine.number is None]
        for machines in (numbered, unnumbered):
            if len(machines) == 1:
                return machines[0].name
        return name

    def group_of(self, thread: int, process: int | None) -> str | None:
        """The control group that a thread is in."""
        for number in (thread, process):
            thread_in_groups, listed = self.linux.threads.get(number or 0), self.listed.get(number or 0)
            if thread_in_groups is not None and thread_in_groups.group is not None:
                return thread_in_groups.group
            if listed is not None and listed.group:
                return listed.group
        return None

    def scopes(self) -> dict[str, str]:
        """The path of each VM's own control group, by name of the VM.

        It is the one that a toolstack names after it, else that of its process, else the only group of its name.
        """
        thread_groups = [thread.group for thread in self.linux.threads.values() if thread.group]
        listed = [thread.group for thread in self.listed.values() if thread.group]
        scope_of_vm: dict[str, str] = {}
        same_name: dict[str, list[str]] = {}
        for path in dict.fromkeys([*self.linux.groups, *thread_groups, *listed]):
            same_name.setdefault(path.rpartition("/")[2], []).append(path)
            name = self.name_of_group(path)
            if name is not None:
                scope_of_vm.setdefault(name, cgroups.place_of(path).scope)
        for machine in self.machines.values():
            group = None if machine.process is None else self.group_of(machine.process, machine.process)
            if group:
                scope_of_vm.setdefault(machine.name, cgroups.place_of(group).scope)
        for name, paths in same_name.items():
            if len(paths) == 1:
                scope_of_vm.setdefault(name, paths[0])
        return scope_of_vm

    @property
    def toolstack(self) -> Toolstack:
        """The toolstack of the host, by the kinds of its files."""
        if any(kind.startswith("qm-") for kind in self.kinds) or any(
            path.startswith("qemu.slice") for path in self.linux.groups
        ):
            return "proxmox"
        if any(kind.startswith("virsh-") for kind in self.kinds) or any(
            "qemu" in path and path.startswith("machine") for path in self.linux.groups
        ):
            return "libvirt"
        return "cgroup" if self.linux.groups else "libvirt"

    @cached_property
    def kernel(self) -> Kernel | None:
        """The scheduler of its kernel; `None`: no listing tells it."""
        return kernel_of(self.linux)

    @cached_property
    def version(self) -> Evidence:
        """The version of its control groups."""
        return version_of(self.linux, self.machines.values(), self.listed.values())

    def version_fields(self, notes: list[str]) -> dict[str, int]:
        """The field of a scenario's host that has the version, if it is not the default.

        Args:
            notes: where to name a version that is assumed.
        """
        version, reason = self.version.version, self.version.reason
        shares = any(machine.shares or machine.shares_now for machine in self.machines.values())
        if not self.version.certain and (version == 1 or shares):
            notes.append(
                f"cgroups = {version}: control groups of version {version} are assumed ({reason}), whose default of "
                f"`cpu_shares` is {SHARES if version == 1 else WEIGHT}; `{TELLER}` tells (tmpfs: 1, cgroup2fs: 2)"
            )
        return {"cgroups": 1} if version == 1 else {}

    def isolation_fields(self, placed: PcpuMap, notes: list[str]) -> dict[str, str]:
        """The fields of a scenario's host for the CPUs that the kernel leaves alone."""
        return isolation_fields(self.linux, placed, notes)

    def deadline_threads(self) -> list[str]:
        """The names of listed threads under `SCHED_DEADLINE` that are no vCPUs of VMs."""
        processes = {machine.process for machine in self.machines.values()}
        return [
            thread.name or str(thread.thread)
            for thread in self.listed.values()
            if thread.policy == DEADLINE and thread.process not in processes
        ]

    def halt_poll_us(self) -> int | None:
        """Halt polling, as the module says it."""
        return halt_poll_us(self.linux.settings)

    # ---- what a scenario says of a VM ----

    def fields_of(self, vm: Vm, vcpus: int, placed: PcpuMap, notes: list[str]) -> dict[str, Any]:
        """The fields of a domain, but for what runs in it: where it is, what it may have, and where it may run.

        Args:
            vm: it.
            vcpus: their number.
            placed: the host's CPUs.
            notes: where to say what a scenario cannot express.
        """
        fields: dict[str, Any] = {"vcpus": vcpus}
        around = around_of(vm)
        if around != cgroups.MACHINES:
            fields["cgroup"] = around
        fields |= self._params(vm, notes)
        fields |= self._pins(vm, vcpus, placed, notes)
        machine = vm.machine
        bound = self.linux.groups.get(vm.scope or "", {}).get("cpuset.mems", "") if vm.alone else ""
        nodes = machine.memory_nodes
        if not nodes and len(numbers_of(bound)) < placed.topology.nodes:
            nodes = bound or None
        fields |= _memory(vm.name, nodes, placed, notes)
        if (machine.threads_per_core or 1) > 1:
            fields["threads_per_core"] = machine.threads_per_core
        if machine.iothreads:
            fields["iothreads"] = 1
        if machine.iothreads and machine.iothreads > 1:
            notes.append(f"{vm.name}: {machine.iothreads} I/O threads; a scenario has one, which does the work of all")
        policy, priority = ("fifo", vm.realtime) if vm.realtime else _policy(vm, vcpus, notes)
        if policy == DEADLINE:
            notes.append(
                f"{vm.name}: its vCPUs' threads are SCHED_DEADLINE, which is not modelled; here they are "
                "SCHED_OTHER, so their waits are not those of the real host"
            )
        if policy in _POLICIES and policy != "other":
            fields["sched_policy"] = policy
            if policy in ("fifo", "rr"):
                fields["sched_priority"] = max(1, priority)
        if vm.nice and "sched_policy" not in fields and vm.scope:
            fields["nice"] = vm.nice
        return fields

    def _params(self, vm: Vm, notes: list[str]) -> dict[str, int]:
        machine = vm.machine
        params = {name: value for name, value in machine.params.items() if not name.endswith("quota_us") or value > 0}
        quotas = {name.removesuffix("quota_us") for name in params if name.endswith("quota_us")}
        params = {
            name: value
            for name, value in params.items()
            if not name.endswith("period_us") or name.removesuffix("period_us") in quotas
        }
        shares = machine.shares_now or machine.shares
        if shares is not None:
            params["weight"] = weight_of_shares(shares) if self.version.version == 1 else shares
            if self.version.version == 1 and is_rounded(shares):
                notes.append(rounded(vm.name, shares))
        files = self.linux.groups.get(vm.scope or "", {}) if vm.alone else {}
        weight = cgroups.weight_of(files)
        if weight is not None:
            params["weight"] = weight
        if (not vm.scope and vm.scope is not None) or not vm.alone:
            params["weight"] = cgroups.weight_of_nice(vm.nice, vm.threads)
            if vm.nice or vm.threads > 1 or not vm.alone:
                where = "in the root group" if not vm.scope else f"with others in the group {vm.scope}"
                notes.append(
                    f"{vm.name}: its threads are {where}, and have no group of their own; here it has one, whose "
                    f"weight of {params['weight']} gets as much as {vm.threads} threads of nice {vm.nice}"
                )
        if cgroups.limit_of(files) is not None:
            # What is in force now counts, also that nothing is limited.
            params = {name: value for name, value in params.items() if not name.startswith("global_")}
        params |= cgroups.fields_of(files, "global_{}")
        if files.get("cpu.idle") == "1":
            params["idle"] = 1
        params |= self._limits(vm, notes)
        if params.get("weight") == 100:
            del params["weight"]
        return params

    def _limits(self, vm: Vm, notes: list[str]) -> dict[str, int]:
        """Limits of the groups below the VM's own."""
        if not vm.scope:
            return {}
        fields: dict[str, int] = {}
        for path, files in self.linux.groups.items():
            place = cgroups.place_of(path)
            if place.scope != vm.scope or path == vm.scope:
                continue
            limits = cgroups.fields_of(files, f"{place.part}_{{}}") if place.part else {}
            if place.part and cgroups.weight_of(files) not in (None, 100):
                notes.append(f"{vm.name}: {path} has a weight of its own, which a scenario does not say; left out")
            for name, value in limits.items():
                if name.endswith("burst_us"):
                    notes.append(f"{vm.name}: {path} has a burst, which a scenario has of whole VMs only; left out")
                elif fields.setdefault(name, value) != value:
                    notes.append(f"{vm.name}: its {place.part} groups have different limits; the first one's count")
        return fields

    def _pins(self, vm: Vm, vcpus: int, placed: PcpuMap, notes: list[str]) -> dict[str, Any]:
        machine = vm.machine
        pins: dict[str, Any] = {}
        # What the groups around the VM's own leave is said of these.
        around = self._cpuset(around_of(vm), placed)

        def here(listed: str) -> str:
            absent = placed.absent(listed)
            if absent:
                notes.append(f"{vm.name}: pinned to CPUs {absent}, which are not online here: left out")
            pcpus = placed.of_host(listed) or "all"
            return "all" if pcpus == around else pcpus

        cpuset = cgroups.cpuset_of(self.linux.groups.get(vm.scope, {})) if vm.scope and vm.alone else ""
        own = dict.fromkeys(("emulator", "iothread"), cpuset) | self._cpusets(vm)
        masks = [
            here(vm.pins.get(vcpu) or machine.vcpu_pins.get(vcpu) or own.get(f"vcpu{vcpu}") or cpuset or "all")
            for vcpu in range(vcpus)
        ]
        if set(masks) - {"all"}:
            pins["affinity"] = masks[0] if len(set(masks)) == 1 else masks
        if len(set(machine.iothread_pins.values())) > 1:
            notes.append(f"{vm.name}: its I/O threads are pinned to different CPUs; the first one's count")
        for name, listed in (
            ("emulator_affinity", machine.emulator_pin or own["emulator"]),
            (
                "iothread_affinity",
                next(iter(machine.iothread_pins.values()), _iothread_pin(machine) or own["iothread"]),
            ),
        ):
            if listed and here(listed) != "all":
                pins[name] = here(listed)
        return pins

    def _cpuset(self, path: str, placed: PcpuMap) -> str:
        """The pCPUs of the innermost group of a path of which any are said."""
        while path.strip("/"):
            listed = cgroups.cpuset_of(self.linux.groups.get(path, {}))
            if listed:
                return placed.of_host(listed) or "all"
            path = path.rpartition("/")[0]
        return "all"

    def _cpusets(self, vm: Vm) -> dict[str, str]:
        """CPUs of the groups of a VM's threads, by `vcpu0`, `emulator` or `iothread`."""
        cpusets: dict[str, str] = {}
        for path, files in self.linux.groups.items():
            place, listed = cgroups.place_of(path), cgroups.cpuset_of(files)
            if vm.scope and place.scope == vm.scope and place.part and listed:
                cpusets.setdefault(f"vcpu{place.index}" if place.part == "vcpu" else place.part, listed)
        return cpusets


def allowed_name(name: str) -> str:
    """A name as a scenario of a KVM host takes it.

    Examples:
        >>> allowed_name("web"), allowed_name("my shop (2)"), allowed_name("host")
        ('web', 'my-shop--2-', 'host-vm')
    """
    plain = plain_name(name)
    return f"{plain}-vm" if plain in _TAKEN else plain


def _policy(vm: Vm, vcpus: int, notes: list[str]) -> tuple[str, int]:
    """The policy of its vCPUs' threads, and their priority; of different ones that which most have."""
    of_vcpus = Counter(vm.machine.scheduling.get(vcpu, ("other", 0)) for vcpu in range(vcpus))
    [(taken, _), *rest] = of_vcpus.most_common()
    if rest:
        shown = ", ".join(
            f"{count} {name} {priority}".removesuffix(" 0") for (name, priority), count in of_vcpus.items()
        )
        notes.append(
            f"{vm.name}: its vCPUs have different policies or priorities ({shown}); a scenario has one of each VM: "
            f"{taken[0]} counts for all"
        )
    return taken


def _iothread_pin(machine: Machine) -> str | None:
    return machine.iothread_pin if machine.iothreads else None


def _memory(name: str, listed: str | None, placed: PcpuMap, notes: list[str]) -> dict[str, list[int]]:
    """The nodes that the memory of a VM is bound to, as the scenario numbers them."""
    if listed is None:
        return {}
    nodes = {node: placed.node_of_host(node) for node in numbers_of(listed)}
    absent = [node for node, here in nodes.items() if here is None]
    if absent or not nodes:
        notes.append(f"{name}: its memory is bound to nodes `{listed}`, which are not all here; left out")
        return {}
    if placed.topology.nodes == 1:
        return {}
    return {"memory_nodes": [here for here in nodes.values() if here is not None]}


def around_of(vm: Vm) -> str:
    """The group around a VM's own, as a scenario says it."""
    if vm.scope is None:
        return cgroups.slice_of(vm.machine.partition or "")
    if not vm.alone and vm.scope:
        return vm.scope
    return vm.scope.rpartition("/")[0] or cgroups.ROOT


def tables_around(
    vms: Mapping[str, Vm], daemon_groups: Iterable[str], host: KvmHost, placed: PcpuMap
) -> dict[str, dict[str, Any]]:
    """The tables of control groups of a scenario: those around VMs, and around others."""
    return cgroups.tables(
        {around_of(vm) for vm in vms.values()}.union(daemon_groups), host.linux.groups, placed.of_host
    )
