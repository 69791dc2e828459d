"""What the tools of KVM hosts say of a virtual machine, whichever of them it was."""

from dataclasses import dataclass, field, fields


@dataclass
class Machine:
    """A virtual machine; `None` or empty: not said."""

    name: str
    number: int | None = None
    """libvirt's id, or Proxmox's VMID."""
    process: int | None = None
    """QEMU's."""
    running: bool | None = None
    vcpus: int | None = None
    params: dict[str, int] = field(default_factory=dict)
    """As a scenario names them, in µs: `global_quota_us`, … (-1: none), and `weight` where it is one of cgroup v2."""
    shares: int | None = None
    """`cpu_shares`: on cgroup v2 the weight, on v1 shares of 1024."""
    vcpu_pins: dict[int, str] = field(default_factory=dict)
    """By vCPU: the CPUs it may run on."""
    emulator_pin: str | None = None
    iothread_pins: dict[int, str] = field(default_factory=dict)
    iothreads: int | None = None
    scheduling: dict[int, tuple[str, int]] = field(default_factory=dict)
    """By vCPU: another policy than `SCHED_OTHER`, and its priority."""
    cpu_ns: dict[float, int] = field(default_factory=dict)
    """By the time when it was looked at, s: CPU time since the machine began."""

    def add(self, more: "Machine") -> None:
        """Takes what another listing of the same machine says; what both say, it says."""
        for each in fields(self):
            mine, its = getattr(self, each.name), getattr(more, each.name)
            if isinstance(its, dict):
                mine.update(its)
            elif its is not None and each.name != "name":
                setattr(self, each.name, its)
