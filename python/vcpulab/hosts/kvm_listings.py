"""The listings of a KVM host, read one after another."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from vcpulab import formats as recordings
from vcpulab.formats import VcpuThread
from vcpulab.formats.kinds import Read
from vcpulab.formats.linux_experiment import Experiment
from vcpulab.formats.linux_host import Linux
from vcpulab.formats.machine import Machine
from vcpulab.formats.ps import Thread
from vcpulab.formats.vmms import machines_of
from vcpulab.formats.xl_info import Info
from vcpulab.hosts.kvm_host import KvmHost
from vcpulab.hypervisors.scope_names import SURE_CHARS, machine_chars


def read_host(listings: Iterable[Read], vcpu_threads: Sequence[VcpuThread] = ()) -> KvmHost:
    """The host that listings describe; of two that say the same the later one counts.

    Args:
        listings: the results of `formats.read`.
        vcpu_threads: the threads that a file says to be vCPUs.
    """
    reader = _Reader()
    for listing in listings:
        reader.take(listing.kind, listing.holds)
    return reader.host(vcpu_threads)


class _Reader:
    def __init__(self) -> None:
        self._linux = Linux()
        self._info = Info({})
        self._machines: dict[str, Machine] = {}
        self._numbered: dict[int, str] = {}
        self._scoped: dict[str, list[str]] = {}
        self._listed: dict[int, Thread] = {}
        self._experiment = Experiment()
        self._kinds: set[recordings.Kind] = set()
        self._notes: list[str] = []

    def host(self, vcpu_threads: Sequence[VcpuThread]) -> KvmHost:
        """The host by all listings that were taken."""
        return KvmHost(
            linux=self._linux,
            info=self._info,
            machines=self._machines,
            numbered=self._numbered,
            scoped={begin: [self._machines[name] for name in names] for begin, names in self._scoped.items()},
            listed=self._listed,
            experiment=self._experiment,
            vcpu_threads=vcpu_threads,
            kinds=frozenset(self._kinds),
            notes=tuple(self._notes),
        )

    def take(self, kind: recordings.Kind, holds: Any) -> None:
        """Takes a listing."""
        self._kinds.add(kind)
        if kind in ("linux", "systemd-cgls"):
            self._linux = self._linux.updated(holds)
        elif kind == "linux-experiment":
            self._experiment = holds
            self._linux = replace(self._linux, groups={**self._linux.groups, **holds.groups})
        elif kind == "ps-threads":
            self._listed.update((thread.thread, thread) for thread in holds)
            self._take_commands(holds)
        elif kind in ("virsh-nodeinfo", "virsh-capabilities", "lscpu"):
            # What counts CPUs one by one says more.
            if holds.cpus or not self._info.cpus:
                self._info = Info(
                    {**self._info.settings, **holds.settings}, holds.cpus, holds.nodes or self._info.nodes
                )
        else:
            for machine in holds:
                self._add(machine, by_number=kind.startswith("qm-"))

    def _add(self, machine: Machine, *, by_number: bool = False) -> None:
        """Takes a listing of a machine. `by_number`: machines of one name may be several, with a number each."""
        named = self._machines.get(machine.name)
        if by_number and named is not None and machine.number not in (None, named.number) and named.number is not None:
            same = self._machines.get(self._numbered.get(machine.number or 0, ""))
            self._notes.append(
                f"VMs {named.number} and {machine.number} are both called `{machine.name}`: {machine.number} has its "
                "number in its name here"
            )
            machine = replace(machine, name=f"{machine.name}-{machine.number}")
        else:
            same = self._same(machine)
        if same is None:
            self._machines[machine.name] = same = machine
            self._add_scope(machine.name)
        else:
            if same.differs(machine):
                self._notes.append(
                    f"two listings have configurations of {same.name} that differ: the later one is taken"
                )
            self._machines[same.name] = same = same.updated(machine)
        if same.number is not None:
            self._numbered[same.number] = same.name

    def _same(self, machine: Machine) -> Machine | None:
        """The machine of an earlier listing: of the same name, or of the same number if one listing has that alone."""
        named = self._machines.get(machine.name)
        if named is not None or machine.number is None:
            return named
        numbered = self._machines.get(self._numbered.get(machine.number, ""))
        number = str(machine.number)
        if numbered is None or machine.name == number:
            return numbered
        if numbered.name != number:
            self._notes.append(
                f"{numbered.name} and {machine.name} have the same id, {number}: listings of different times or hosts? "
                "Each is a VM here"
            )
            return None
        del self._machines[number]
        self._machines[machine.name] = numbered = replace(numbered, name=machine.name)
        for names in self._scoped.values():
            names[:] = [machine.name if name == number else name for name in names]
        self._add_scope(machine.name)
        return numbered

    def _add_scope(self, name: str) -> None:
        """Notes the beginning of the names of scopes of a machine."""
        self._scoped.setdefault(machine_chars(name)[:SURE_CHARS], []).append(name)

    def _take_commands(self, threads: list[Thread]) -> None:
        """VMs by the command lines of QEMU and its like."""
        for machine in machines_of(threads):
            earlier = self._machines.get(machine.name)
            # A command line is from when the VM was started.
            is_old = earlier is not None and earlier.vcpus is not None
            self._add(replace(machine, vcpus=None) if is_old else machine, by_number=True)
