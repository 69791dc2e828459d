"""CPU use of a KVM host's VMs, by counters that were read at least twice."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from vcpulab.formats.vmms import vcpu_of
from vcpulab.hosts.cgroups import place_of
from vcpulab.hosts.kvm_host import KvmHost, Vm

DOMSTATS = "virsh domstats"
CPU_STAT = "cpu.stat of its control group"
SCHEDSTAT = "schedstat of its threads"


@dataclass(frozen=True)
class Use:
    """CPU use of a VM."""

    percent: float
    """% of a pCPU."""
    measured_by: str
    vcpus: tuple[float, ...] = ()
    """The CPU use of each vCPU, % of a pCPU; empty: not known."""


def use_of(vm: Vm, host: KvmHost) -> Use | None:
    """The CPU use of a VM; `None`: no counter of it was read twice."""
    percent = _percent(vm.machine.cpu_ns)
    if percent is not None:
        return Use(percent, DOMSTATS, _of_vcpus(_by_vcpu(vm.machine.vcpu_ns)))
    threads = _threads(vm, host)
    if vm.scope is not None and vm.alone:
        percent = _percent(host.linux.used_ns.get(vm.scope, {}))
        if percent is not None:
            return Use(percent, CPU_STAT, _of_vcpus(_below(vm.scope, host.linux.used_ns) or threads))
    vcpus = _of_vcpus(threads)
    return Use(math.fsum(vcpus), SCHEDSTAT, vcpus) if vcpus else None


def _threads(vm: Vm, host: KvmHost) -> dict[int, Mapping[float, int]]:
    """The counters of the threads of a VM's vCPUs."""
    return {
        vcpu: host.linux.thread_ns[thread.thread]
        for thread in host.listed.values()
        if (vcpu := vcpu_of(thread.name)) is not None
        and thread.thread in host.linux.thread_ns
        and host.name_of_process(thread.process) == vm.machine.name
    }


def _by_vcpu(counters: Mapping[tuple[float, int], int]) -> dict[int, dict[float, int]]:
    by_vcpu: dict[int, dict[float, int]] = {}
    for (at, vcpu), ns in counters.items():
        by_vcpu.setdefault(vcpu, {})[at] = ns
    return by_vcpu


def _below(scope: str, used_ns: Mapping[str, Mapping[float, int]]) -> dict[int, Mapping[float, int]]:
    """The counters of the groups of a VM's vCPUs."""
    places = {path: place_of(path) for path in used_ns if path.startswith(f"{scope}/")}
    return {
        place.index: used_ns[path] for path, place in places.items() if place.part == "vcpu" and place.scope == scope
    }


def _of_vcpus(counters: Mapping[int, Mapping[float, int]]) -> tuple[float, ...]:
    """% of a pCPU of each vCPU; empty unless it is known of all."""
    percents = [_percent(counters.get(vcpu, {})) for vcpu in range(max(counters, default=-1) + 1)]
    return tuple(percent for percent in percents if percent is not None) if None not in percents else ()


def _percent(counter_ns: Mapping[float, int]) -> float | None:
    """% of a pCPU between the first and the last reading; a counter that went back began anew with its VM."""
    readings = sorted(counter_ns.items())
    for earlier, later in pairwise(readings):
        if later[1] < earlier[1]:
            readings = [reading for reading in readings if reading[0] >= later[0]]
    if len(readings) < 2:
        return None
    (begin, first), (end, last) = readings[0], readings[-1]
    return (last - first) / 1e9 / (end - begin) * 100
