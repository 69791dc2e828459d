"""What is typed on a KVM host of libvirt: pinning, numbers of vCPUs, and the life of domains.

Its scheduler is Linux's own; those that are simulated here are others, so their parameters have no counterpart.

Sources: `virsh(1)`; for threads Linux's `Documentation/ABI/testing/sysfs-devices-system-cpu` (`smt/control`) and
`kernel-parameters` (`nosmt`); `cpupower-frequency-set(1)`.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from vcpulab.hypervisors.settings import (
    DOM0,
    Affinity,
    Change,
    Governor,
    Life,
    MemoryNodes,
    MemoryStays,
    Params,
    Pcpus,
    Scheduler,
    Setting,
    Shape,
    Smt,
    Vcpus,
)
from vcpulab.hypervisors.steps import Step
from vcpulab.hypervisors.xen import smt_numbers
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


def steps(change: Change) -> list[Step]:
    """What is typed; it is kept at once (`--config`). Then what cannot be typed."""
    found = [step for setting in change.settings for step in _steps(setting, change)]
    refused = dict.fromkeys(step for step in found if step.how == "cannot")
    later = [replace(step, at=at) for at, setting in change.later for step in _steps(setting, change)]
    return [*(step for step in found if step.how != "cannot"), *refused, *later]


def _steps(setting: Setting, change: Change) -> Iterator[Step]:
    domain = getattr(setting, "domain", None)
    if isinstance(domain, str) and _PROCESS.fullmatch(domain):
        reason = f"domain {domain}: the recording says of which process it is, and not its name (`virsh list`)"
        yield Step("cannot", reason, domain=domain)
    match setting:
        case Params(pool) | Scheduler(pool):
            yield Step("cannot", f"{pool} is a scheduler of Xen: on a KVM host it cannot be had, nor its parameters")
        case Vcpus(_, domain, count) if domain != DOM0:
            yield Step("run", f"virsh setvcpus {domain} {count} --live --config", domain=domain)
        case Affinity(_, domain, pcpus, vcpu, soft=False) if domain != DOM0:
            each = {vcpu or 0: pcpus} if isinstance(pcpus, str) else dict(enumerate(pcpus))
            for number, ones in each.items():
                listed = f"0-{change.pcpus - 1}" if ones == "all" else ones
                yield Step("run", f"virsh vcpupin {domain} {number} {listed} --live --config", domain=domain)
        case MemoryNodes(_, domain, nodes) if domain != DOM0:
            yield Step("keep", f"virsh numatune {domain} --nodeset {spans(nodes)} --config", domain=domain)
        case MemoryStays():
            yield Step("cannot", str(setting))
        case Life(_, domain, op) if op in _LIVES:
            yield Step("run", f"virsh {_LIVES[op]} {domain}", domain=domain)
        case Smt() | Governor() | Shape():
            yield from _of_the_machine(setting)
        case Pcpus():
            yield Step("cannot", f"host.pcpus = {setting.count}: takes another machine")
        case _:
            what = "the host" if domain is None else f"domain {domain}"
            yield Step("cannot", f"{what}: no command of libvirt sets this", domain=domain)


def _of_the_machine(setting: Smt | Governor | Shape) -> Iterator[Step]:
    match setting:
        case Smt(on=on):
            yield Step("run", f"echo {'on' if on else 'off'} > /sys/devices/system/cpu/smt/control")
            if on:
                yield Step("cannot", "host.topology: to keep it, take `nosmt` out of the kernel's command line")
            else:
                line = 'GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT nosmt"'
                yield Step("keep", f"echo '{line}' >> /etc/default/grub.d/vcpulab.cfg && update-grub")
                numbered = smt_numbers(setting)
                yield from [Step("cannot", numbered)] if numbered else []
        case Governor(name=name):
            yield Step("run", f"cpupower frequency-set -g {name}")
            yield Step("cannot", f"governor {name}: holds until the host restarts; a service of cpupower's keeps it")
        case Shape(topology):
            yield Step("cannot", f"host.topology: takes a machine of {topology}")
