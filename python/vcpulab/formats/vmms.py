"""VMs by the command lines and threads of the programs that run them: QEMU, Firecracker, cloud-hypervisor."""

import math
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
    """The pattern of the VM's name on the command line."""
    vcpus: re.Pattern[str] | None = None
    """The pattern of the number of vCPUs on the command line, or of the factors of that number."""
    number: re.Pattern[str] | None = None
    """The pattern of the VM's number on the command line."""


_VMMS = (
    _Vmm(
        re.compile(r"(.*/)?(qemu-system-[^/]*|qemu-kvm|qemu|kvm)"),
        re.compile(r"CPU (?P<vcpu>\d{1,4})/(KVM|TCG)"),
        re.compile(r"(?:^|\s)-name\s+(?:guest=)?(?P<value>[^,]+?)(?=,|\s+-|\s*$)"),
        re.compile(r"(?:^|\s)-smp\s+(?P<value>\S+)"),
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


def vcpu_of(thread_name: str) -> int | None:
    """The number of the vCPU that a thread with such a name is; `None`: no virtual machine monitor names vCPUs so.

    Examples:
        >>> vcpu_of("CPU 3/KVM"), vcpu_of("fc_vcpu 0"), vcpu_of("vhost-1234")
        (3, 0, None)
    """
    matches = (vmm.vcpu.fullmatch(thread_name) for vmm in _VMMS)
    return next((int(match["vcpu"]) for match in matches if match), None)


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
        if _NO_MACHINE.search(main.args):
            continue
        name, number = _value(vmm.name, main.args), _value(vmm.number, main.args)
        seen = {int(match["vcpu"]): thread for thread in own if (match := vmm.vcpu.fullmatch(thread.name))}
        yield Machine(
            name or f"{program.rpartition('/')[2]}-{process}",
            None if number is None else int(number),
            process,
            running=True,
            vcpus=_vcpus(_value(vmm.vcpus, main.args)) or (max(seen) + 1 if seen else None),
            threads_per_core=_threads(_value(vmm.vcpus, main.args)),
            nice=next((thread.nice for thread in seen.values()), None),
            scheduling={
                vcpu: (thread.policy, thread.priority) for vcpu, thread in seen.items() if thread.policy != "other"
            },
        )


_NO_MACHINE = re.compile(r"(?:^|\s)-(machine|M)\s+none\b")
"""libvirt asks QEMU for its abilities so."""
_PARTS = ("drawers", "books", "sockets", "dies", "clusters", "modules", "cores", "threads")
"""Parts of a topology, of which each is in one of the part before."""


def _vcpus(given: str | None) -> int | None:
    """The number of vCPUs: a number, or the product of the parts of a topology; `None`: not given.

    Examples:
        >>> _vcpus("4,maxcpus=8,sockets=8"), _vcpus("cpus=3"), _vcpus("sockets=2,cores=4"), _vcpus(None)
        (4, 3, 8, None)
    """
    numbers = _counts(given)
    count = numbers.get("") or numbers.get("cpus")
    product = math.prod(numbers[name] for name in _PARTS if name in numbers)
    return count or (product if numbers.keys() & set(_PARTS) and product < 10_000 else None)


def _threads(given: str | None) -> int | None:
    """The threads of each core: given, or what sockets and cores leave; `None`: not given.

    Examples:
        >>> _threads("8,sockets=1,cores=4,threads=2"), _threads("8,sockets=1,cores=2"), _threads("8,cores=8")
        (2, 4, None)
    """
    numbers = _counts(given)
    cpus = numbers.get("maxcpus") or _vcpus(given)
    if "threads" in numbers or cpus is None or not {"sockets", "cores"} <= numbers.keys():
        return numbers.get("threads") or None
    parts = math.prod(numbers[name] for name in _PARTS if name in numbers)
    return max(1, cpus // max(parts, 1))


def _counts(given: str | None) -> dict[str, int]:
    """The numbers on the command line by name; that of vCPUs may have none."""
    counts = dict(part.rpartition("=")[::2] for part in (given or "").split(","))
    return {name: int(count) for name, count in counts.items() if count.isdecimal() and len(count) < 5}


def _value(pattern: re.Pattern[str] | None, args: str) -> str | None:
    match = None if pattern is None else pattern.search(args)
    return None if match is None else match["value"]
