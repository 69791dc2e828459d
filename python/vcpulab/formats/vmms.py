"""VMs by the command lines and threads of the programs that run them: QEMU, Firecracker, cloud-hypervisor."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from vcpulab.formats.machine import Machine
from vcpulab.formats.ps import Thread


@dataclass(frozen=True)
class _Vmm:
    """A program that runs a VM."""

    program: re.Pattern[str]
    """The path of it, or its name."""
    vcpu: re.Pattern[str]
    """The name of a vCPU's thread, with its number."""
    name: re.Pattern[str] | None
    """Where its command line names the VM."""
    vcpus: re.Pattern[str] | None = None
    """Where its command line tells the number of vCPUs."""
    number: re.Pattern[str] | None = None
    """Where its command line numbers the VM."""


_VMMS = (
    _Vmm(
        re.compile(r"(.*/)?(qemu|kvm)[^/]*"),
        re.compile(r"CPU (?P<vcpu>\d{1,4})/KVM"),
        re.compile(r"(?:^|\s)-name\s+(?:guest=)?(?P<value>[^\s,]+)"),
        re.compile(r"(?:^|\s)-smp\s+(?:cpus=)?(?P<value>\d{1,4})"),
        re.compile(r"(?:^|\s)-id\s+(?P<value>\d{1,9})(?:\s|$)"),
    ),
    _Vmm(
        re.compile(r"(.*/)?firecracker[^/]*"),
        re.compile(r"fc_vcpu (?P<vcpu>\d{1,4})"),
        re.compile(r"(?:^|\s)--id[ =](?P<value>[^\s,]+)"),
    ),
    _Vmm(
        re.compile(r"(.*/)?cloud-hypervisor[^/]*"),
        re.compile(r"vcpu(?P<vcpu>\d{1,4})"),
        None,
        re.compile(r"(?:^|\s)--cpus[ =](?:\S*,)?boot=(?P<value>\d{1,4})"),
    ),
)


def machines_of(threads: Iterable[Thread]) -> Iterator[Machine]:
    """The VMs whose programs a list of threads has; one without a name is called like its program and process."""
    processes: dict[int, list[Thread]] = {}
    for thread in threads:
        processes.setdefault(thread.process, []).append(thread)
    for process, own in processes.items():
        main = next((thread for thread in own if thread.thread == process), None)
        if main is None or not main.args:
            continue
        program = main.args.split(" ")[0]
        vmm = next((vmm for vmm in _VMMS if vmm.program.fullmatch(program)), None)
        if vmm is None:
            continue
        name = _value(vmm.name, main.args)
        if name is None and vmm.name is not None:
            continue
        number, vcpus = _value(vmm.number, main.args), _value(vmm.vcpus, main.args)
        seen = [int(match["vcpu"]) + 1 for thread in own if (match := vmm.vcpu.fullmatch(thread.name))]
        yield Machine(
            name or f"{program.rpartition('/')[2]}-{process}",
            None if number is None else int(number),
            process,
            running=True,
            vcpus=int(vcpus) if vcpus is not None else max(seen, default=None),
        )


def _value(pattern: re.Pattern[str] | None, args: str) -> str | None:
    match = None if pattern is None else pattern.search(args)
    return None if match is None else match["value"]
