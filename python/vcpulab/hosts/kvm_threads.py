"""Threads of a recorded KVM host: which are vCPUs of which VM, which serve VMs, and which are the host's own.

By what is known best first: a file that says it, the control group, the name of the thread and its process.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from vcpulab.formats import VcpuThread
from vcpulab.formats.machine import Machine
from vcpulab.hosts.cgroups import ROOT, place_of
from vcpulab.hosts.kvm_host import KvmHost, Vm, allowed_name, around_of

_NICE_0 = 120
_REALTIME = 100
"""The kernel's priorities below this are real-time ones (99 less theirs); those from here on are nice values."""
_VHOST = re.compile(r"(?:vhost|kvm-pit|kvm-nx-lpage-re\w*)[-/](?P<process>\d{1,10})")
_KERNEL = re.compile(
    r"(kworker|ksoftirqd|migration|cpuhp|idle_inject|irq_work|kthreadd|rcu\w*|kcompactd\d*|khugepaged|ksmd|kswapd\d*|"
    r"kauditd|kdevtmpfs|jbd2|xfs\w*|dm\w*|md\d+\w*|scsi_eh_\d+|watchdog\w*|irq|nvme\S*|writeback|oom_reaper|kblockd|"
    r"btrfs\S*|zfs\S*|z_\w+|txg_\w+|spl_\w+|hwrng|khungtaskd|pr/\S*|psimon)([/:-].*)?"
)
_RECORDER = re.compile(r"perf(-exec|_[\d.]+)?|trace-cmd")
OTHERS = "kernel"
"""The domain of the kernel's own threads."""
SMALL = "short-lived"
"""The domain of the host's threads that ran too little each for a domain of their own."""
SHARE_LEAST = 0.0005
"""The least CPU use, as a fraction of a CPU, of threads of the host that are kept, …"""
EXECUTIONS_LEAST_PER_S = 2.0
"""… unless they ran so often."""
DAEMONS_MOST = 64
"""Domains for the host's own threads, those that ran for longest."""


@dataclass(frozen=True)
class Daemon:
    """Threads of the host that are no vCPUs, as a domain."""

    name: str
    cgroup: str
    """The group around theirs."""
    serves: str | None = None
    """The VM that they serve, if they do."""


@dataclass(frozen=True)
class Roles:
    """The roles of a recording's threads."""

    vms: Mapping[str, Vm] = field(default_factory=dict)
    daemons: Mapping[str, Daemon] = field(default_factory=dict)
    threads: Sequence[VcpuThread] = ()
    """All of them, vCPUs and others; a domain is a VM or a daemon."""
    left_out: int = 0
    """Threads of the host that hardly ran."""
    left_out_ns: int = 0
    """CPU time of all of these together, in the whole recording."""
    left_out_executions: int = 0
    """Times that these ran."""
    recorder_ns: int = 0
    """CPU time of the threads that recorded."""
    span_ns: int = 1
    """The length of the whole recording."""

    def names(self) -> dict[int, str]:
        """Names by the number of the domain."""
        return {thread.domain: thread.name for thread in self.threads}

    def by_thread(self) -> "Roles":
        """The same threads, each vCPU of a VM with several as a domain `VM.vCPU` in the group of the VM.

        In the order of the threads' numbers: that is the order in which a VM starts its vCPUs.
        """
        vcpus = Counter(thread.name for thread in self.threads)
        free = count(max((thread.domain for thread in self.threads), default=0) + 1)
        vms: dict[str, Vm] = {}
        threads: list[VcpuThread] = []
        for thread in sorted(self.threads, key=lambda thread: thread.thread):
            vm = self.vms.get(thread.name)
            if vm is None or vcpus[thread.name] == 1:
                threads.append(thread)
            else:
                vm = _of_vcpu(vm, thread.vcpu)
                threads.append(replace(thread, domain=next(free), name=vm.name, vcpu=0))
            if vm is not None:
                vms[vm.name] = vm
        return replace(self, vms=vms, threads=threads)


def roles_of(threads: Iterable[Mapping[str, Any]], span_ns: int, host: KvmHost) -> Roles:
    """The roles of the threads that a recording names.

    Args:
        threads: as `Recording.report` has them.
        span_ns: how long the recording is.
        host: what is known of it.
    """
    return _Reader(host, max(span_ns, 1)).read(list(threads))


class _Reader:
    def __init__(self, host: KvmHost, span_ns: int) -> None:
        self._host, self._span_ns = host, span_ns
        self._vms: dict[str, Vm] = {}
        self._daemons: dict[str, Daemon] = {}
        self._threads: list[VcpuThread] = []
        self._left_out: list[Mapping[str, Any]] = []
        self._recorder_ns = 0
        self._numbers: dict[str, int] = {}
        self._taken: set[tuple[int, int]] = set()

    def read(self, threads: list[Mapping[str, Any]]) -> Roles:
        vcpu_threads = {vcpu_thread.thread: vcpu_thread for vcpu_thread in self._host.vcpu_threads}
        processes: dict[int, str] = {}
        host_threads = []
        for thread in threads:
            number, process = thread["thread"], thread["process"]
            place = self._vcpu_of(thread, vcpu_threads)
            if place is None:
                host_threads.append(thread)
                continue
            called, vcpu = place
            name = allowed_name(called)
            if process is not None:
                processes.setdefault(process, name)
            self._add_vcpu(name, called, vcpu, thread)
            self._add(name, vcpu, number)
        self._settle()
        self._add_others(host_threads, processes)
        return Roles(
            self._vms,
            self._daemons,
            self._threads,
            left_out=len(self._left_out),
            left_out_ns=sum(thread["running_ns"] for thread in self._left_out),
            left_out_executions=sum(thread["executions"] for thread in self._left_out),
            recorder_ns=self._recorder_ns,
            span_ns=self._span_ns,
        )

    def _vcpu_of(self, thread: Mapping[str, Any], vcpu_threads: Mapping[int, VcpuThread]) -> tuple[str, int] | None:
        """The VM and the number of the vCPU that a thread is."""
        number, process = thread["thread"], thread["process"]
        if vcpu_threads:
            vcpu_thread = vcpu_threads.get(number)
            return None if vcpu_thread is None else (vcpu_thread.name, vcpu_thread.vcpu)
        group = self._host.group_of(number, process)
        place = None if group is None else place_of(group)
        name = None if group is None else self._host.name_of_group(group)
        if place is not None and name is not None and place.part == "vcpu":
            return name, place.index
        if thread["vcpu"] is None:
            return None
        if name is None:
            listed = self._host.listed.get(number)
            process = process if process is not None or listed is None else listed.process
            name = None if process is None else self._host.name_of_process(process) or f"qemu-{process}"
        return name or f"thread-{number}", thread["vcpu"]

    def _add_vcpu(self, name: str, called: str, vcpu: int, thread: Mapping[str, Any]) -> None:
        host = self._host
        vm = self._vms.get(name) or Vm(name, host.machines.get(called) or Machine(called))
        experiment = host.experiment.machines.get(called, [])
        if vcpu < len(experiment):
            group: str | None = experiment[vcpu].group
            if experiment[vcpu].policy != "other":
                scheduling = {**vm.machine.scheduling, vcpu: (experiment[vcpu].policy, 0)}
                vm = replace(vm, machine=replace(vm.machine, scheduling=scheduling))
        else:
            group = host.group_of(thread["thread"], thread["process"])
        if group is not None:
            vm = replace(vm, groups={**vm.groups, vcpu: group})
        listed = host.linux.threads.get(thread["thread"])
        if listed is not None and listed.cpus is not None:
            vm = replace(vm, pins={**vm.pins, vcpu: listed.cpus})
        priority = thread["priority"]
        if priority is not None and priority >= _REALTIME:
            vm = replace(vm, nice=priority - _NICE_0)
        elif priority is not None:
            vm = replace(vm, realtime=_REALTIME - 1 - priority)
        self._vms[name] = vm

    def _add(self, name: str, vcpu: int, thread: int) -> None:
        domain = self._numbers.setdefault(name, len(self._numbers) + 1)
        while (domain, vcpu) in self._taken:
            vcpu += 1
        self._taken.add((domain, vcpu))
        self._threads.append(VcpuThread(thread, domain, name, vcpu))

    def _settle(self) -> None:
        """The own group of each VM."""
        listed = self._host.scopes()
        scopes: dict[str, str | None] = {}
        for name, vm in self._vms.items():
            scopes_of_vcpus = {place_of(group).scope for group in vm.groups.values()}
            scopes[name] = _common(scopes_of_vcpus) if scopes_of_vcpus else listed.get(vm.machine.name)
        owners = Counter(scopes.values())
        for name, vm in self._vms.items():
            scope = scopes[name]
            alone = not scope or owners[scope] == 1
            self._vms[name] = replace(vm, scope=scope, threads=max(1, len(vm.groups)), alone=alone)

    def _add_others(self, host_threads: list[Mapping[str, Any]], processes: Mapping[int, str]) -> None:
        """Threads of the host, those that ran for longest first."""
        for thread in sorted(host_threads, key=lambda entry: (-entry["running_ns"], entry["thread"])):
            if _RECORDER.fullmatch(thread["name"]):
                self._recorder_ns += thread["running_ns"]
                continue
            often = thread["executions"] * 1e9 / self._span_ns
            if thread["running_ns"] < SHARE_LEAST * self._span_ns and often < EXECUTIONS_LEAST_PER_S:
                self._left_out.append(thread)
                continue
            daemon = self._daemon_of(thread, processes)
            if daemon.name in self._vms:
                free = (f"threads-{number}" for number in count(1))
                daemon = replace(daemon, name=next(name for name in free if name not in self._vms))
            if daemon.name not in self._daemons and len(self._daemons) == DAEMONS_MOST:
                self._left_out.append(thread)
                continue
            self._daemons.setdefault(daemon.name, daemon)
            self._add(daemon.name, 0, thread["thread"])

    def _daemon_of(self, thread: Mapping[str, Any], processes: Mapping[int, str]) -> Daemon:
        number, process, called = thread["thread"], thread["process"], thread["name"]
        serves = _VHOST.fullmatch(called)
        vm = processes.get(int(serves["process"]) if serves else process or 0)
        if vm is None and process is not None:
            vm = allowed_name(self._host.name_of_process(process) or "")
        if vm in self._vms:
            kind = "vhost" if called.startswith("vhost") else "iothread" if called.startswith("IO ") else "emulator"
            return Daemon(allowed_name(f"{vm}.{kind}"), serving(self._vms[vm]), vm)
        group = self._host.group_of(number, process)
        if _KERNEL.fullmatch(called) or group == "":
            return Daemon(OTHERS, ROOT)
        around = "system.slice" if group is None else group.rpartition("/")[0] or ROOT
        return Daemon(allowed_name(called), around)


def _of_vcpu(vm: Vm, vcpu: int) -> Vm:
    """A vCPU as a VM of its own, in the group that its thread is in, and with its pinning and policy."""
    name = f"{vm.name}.{vcpu}"
    machine = Machine(
        name,
        partition=vm.machine.partition,
        vcpu_pins={0: vm.machine.vcpu_pins[vcpu]} if vcpu in vm.machine.vcpu_pins else {},
        scheduling={0: vm.machine.scheduling[vcpu]} if vcpu in vm.machine.scheduling else {},
    )
    group = vm.groups.get(vcpu, vm.scope)
    scope = None if group is None else f"{group}/{name}".lstrip("/")
    pins = {0: vm.pins[vcpu]} if vcpu in vm.pins else {}
    return Vm(name, machine, scope=scope, pins=pins, nice=vm.nice, realtime=vm.realtime)


def serving(vm: Vm) -> str:
    """The group around that of the threads that serve a VM: its emulator's."""
    return f"{around_of(vm)}/{vm.name}/libvirt/emulator".lstrip("/")


def _common(paths: set[str]) -> str:
    """The path that some paths begin with."""
    if len(paths) == 1:
        return next(iter(paths))
    rows = [path.split("/") for path in paths]
    common = []
    for parts in zip(*rows, strict=False):
        if len(set(parts)) > 1:
            break
        common.append(parts[0])
    return "/".join(common)
