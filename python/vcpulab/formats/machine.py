"""A virtual machine as tools of KVM hosts describe it, whichever tool it was."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

DEVICES = "what its disks and network interfaces do: add `disk`, `nic` and the work that uses them"
"""The setting of a configuration that has disks or network interfaces, in words."""
NO_QUOTA_US = 10**10
"""A greater quota is none: it is more than 10,000 CPUs in the longest period, 1 s. libvirt prints several of them."""


def quota_us(us: int) -> int:
    """A quota as a scenario has it, µs; -1: none.

    Examples:
        >>> quota_us(50_000), quota_us(-1), quota_us(0), quota_us(17_592_186_044_415), quota_us(18_446_744_073_709_551)
        (50000, -1, -1, -1, -1)
    """
    return us if 0 < us <= NO_QUOTA_US else -1


_CONFIGURATION = (
    *("vcpus", "params", "shares", "vcpu_pins", "emulator_pin", "iothread_pins", "iothread_pin", "iothreads"),
    *("scheduling", "memory_nodes", "partition", "threads_per_core", "omitted"),
)
"""The fields that come from the configuration of a machine, not from its state."""


@dataclass(frozen=True)
class Machine:
    """A virtual machine; `None` or empty: not said."""

    name: str
    number: int | None = None
    """libvirt's id, or Proxmox's VMID."""
    process: int | None = None
    """QEMU's."""
    running: bool | None = None
    vcpus: int | None = None
    params: Mapping[str, int] = field(default_factory=dict)
    """Parameters under their names in scenarios, in µs: `global_quota_us`, … (-1: none), and `weight` of cgroup v2."""
    configured: Literal[True] | None = None
    """`True`: a listing has the whole configuration, so that settings it does not contain have their defaults."""
    shares: int | None = None
    """The configured `cpu_shares`: on control groups of version 2 the weight, of version 1 shares of 1024."""
    shares_now: int | None = None
    """The `cpu_shares` in force, by `virsh schedinfo`."""
    vcpu_pins: Mapping[int, str] = field(default_factory=dict)
    """The CPUs that each vCPU may run on."""
    emulator_pin: str | None = None
    iothread_pins: Mapping[int, str] = field(default_factory=dict)
    iothread_pin: str | None = None
    """The CPUs of I/O threads that have no pin of their own."""
    iothreads: int | None = None
    scheduling: Mapping[int, tuple[str, int]] = field(default_factory=dict)
    """Policies other than `SCHED_OTHER` with their priorities, by vCPU."""
    nice: int | None = None
    """The nice value of the vCPUs' threads."""
    memory_nodes: str | None = None
    """The host's nodes that its memory is bound to."""
    partition: str | None = None
    """libvirt's resource partition: `/machine/gold`."""
    threads_per_core: int | None = None
    """The number of threads of each core, as the guest is told."""
    cpu_ns: Mapping[float, int] = field(default_factory=dict)
    """The CPU time since the machine began, by the time of reading, s."""
    vcpu_ns: Mapping[tuple[float, int], int] = field(default_factory=dict)
    """The CPU time of each vCPU, by the time of reading and vCPU."""
    omitted: Mapping[str, None] = field(default_factory=dict)
    """Settings without a field in scenarios, in words."""

    def differs(self, more: "Machine") -> bool:
        """`True`: another listing has the whole configuration, too, and a different one."""
        if not (self.configured and more.configured):
            return False
        return any(getattr(self, name) != getattr(more, name) for name in _CONFIGURATION)

    def updated(self, *more: "Machine") -> "Machine":
        """The machine with what other listings of it say; where several say something, the last one counts.

        A listing with the whole configuration replaces an earlier one.
        """
        values: dict[str, Any] = {
            name: dict(value) if isinstance(value, Mapping) else value for name, value in vars(self).items()
        }
        for listing in more:
            if values["configured"] and listing.configured:
                fresh = Machine(self.name)
                values |= {name: getattr(fresh, name) for name in _CONFIGURATION}
            for name, value in vars(listing).items():
                if isinstance(value, Mapping):
                    values[name].update(value)
                elif value is not None and name != "name":
                    values[name] = value
        return Machine(**values)
