"""Placement of the threads and interrupts that serve guests' devices in Dom0 on Dom0's CPUs.

Sources: `drivers/net/xen-netback/interface.c` of Linux 4.x (threads `vif1.0-q0-guest-rx` and `-dealloc`; event channels
`vif1.0-q0`, or `-tx` and `-rx`, whose CPU also runs the receive path), `drivers/block/xen-blkback/xenbus.c` (threads
`1.xvda-0`, before 3.19 `blkback.1.xvda`); `proc(5)` for `smp_affinity_list`.
"""

import shlex

from vcpulab.hypervisors.settings import DOM0, Backend, Interrupts


def placed(setting: Backend | Interrupts) -> tuple[list[str], str]:
    """The commands that place a backend or interrupts, and a note: how long they hold, or why no command exists.

    Examples:
        >>> from vcpulab.hypervisors.settings import set_up
        >>> from vcpulab import Scenario
        >>> nic = Interrupts(set_up(Scenario.starter()).first, "eth0", "nic", "dom0", 1)
        >>> placed(nic)[0]
        ['for i in $(grep -w eth0 /proc/interrupts | cut -d: -f1); do echo 1 > /proc/irq/$i/smp_affinity_list; done']
    """
    subject = str(setting) if isinstance(setting, Backend) else f"interrupts of {setting.kind} {setting.name}"
    where = f"{subject}: on vCPU {setting.vcpu} of {setting.driver}"
    why_not = _why_not(setting)
    if why_not is not None:
        return [], f"{where}: {why_not}"
    if isinstance(setting, Interrupts):
        command, until = to_cpu(f"-w {shlex.quote(setting.name)}", setting.vcpu), "Dom0"
    else:
        command, until = _served(setting), "the domain"
    return [command], f"{where}: holds until {until} restarts, and while irqbalance does not move it"


def to_cpu(name: str, cpu: int) -> str:
    """The command that puts interrupts on a CPU: those whose line in `/proc/interrupts` matches, as `grep` takes it."""
    numbers = f"grep {name} /proc/interrupts | cut -d: -f1"
    return f"for i in $({numbers}); do echo {cpu} > /proc/irq/$i/smp_affinity_list; done"


def _why_not(setting: Backend | Interrupts) -> str | None:
    """The reason that no command in Dom0 makes the setting; `None`: a command exists."""
    if setting.driver != DOM0:
        return "the affinity of its threads and interrupts inside that domain"
    if setting.pool.tools.tool != "xl":
        return "one tasklet serves all; only its interrupts move (/proc/irq/*/smp_affinity)"
    if isinstance(setting, Interrupts):
        disk = "/proc/irq/*/smp_affinity_list of its controller, which the scenario does not name"
        return disk if setting.kind == "disk" else None
    return "a thread of its device model (`taskset`), anew at each start" if setting.emulated else None


def _served(setting: Backend) -> str:
    domid = f"$(xl domid {setting.domain})"
    if setting.kind == "disk":
        return _threads(f'pgrep "^(blkback\\.)?{domid}\\.[a-z]"', setting.vcpu)
    vif = f'"vif{domid}\\.0\\b"'
    return f"{_threads(f'pgrep {vif}', setting.vcpu)}; {to_cpu(vif, setting.vcpu)}"


def _threads(pgrep: str, cpu: int) -> str:
    return f"for p in $({pgrep}); do taskset -pc {cpu} $p; done"
