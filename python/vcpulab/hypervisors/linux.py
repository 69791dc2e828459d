"""Settings of a KVM host as a whole: the kernel's parameters, its CPUs, control groups.

The commands are the same whichever toolstack has the VMs. Kept are options of the kernel in `/etc/default/grub.d`,
parameters of modules in `/etc/modprobe.d`, sysctls in `/etc/sysctl.d`, files of `/sys` in `/etc/tmpfiles.d`, one file
for each, so that what is typed again replaces what was there.

Sources: Linux's `Documentation/scheduler/sched-debug` (`/sys/kernel/debug/sched`), `virt/kvm/halt-polling`,
`admin-guide/kernel-parameters` (`maxcpus`, `nosmt`), `kernel-command-line(7)` of systemd
(`systemd.unified_cgroup_hierarchy`), `ABI/testing/sysfs-devices-system-cpu` (`smt/control`);
`tmpfiles.d(5)`, `sysctl.d(5)`, `modprobe.d(5)`; `chcpu(8)`; `cpupower-frequency-set(1)`. Control groups are in
`groups`. That systemd 258 removed version 1 of control groups is in its release notes.
"""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from vcpulab.hypervisors import dom0, systemd
from vcpulab.hypervisors.groups import NONE, Place, of_whole, shared
from vcpulab.hypervisors.settings import (
    DEFAULT_SLICES,
    Affinity,
    AnotherHypervisor,
    CgroupVersion,
    Change,
    Governor,
    Group,
    GuestThreads,
    HaltPolling,
    HostInterrupts,
    InGroup,
    Isolation,
    Life,
    Machine,
    MemoryStays,
    Nice,
    Online,
    Params,
    Pcpus,
    Pool,
    Scheduler,
    Setting,
    Shape,
    Smt,
    ThreadClass,
    Vcpus,
)
from vcpulab.hypervisors.steps import Step
from vcpulab.hypervisors.way import Way, cannot, run
from vcpulab.hypervisors.xen import smt_numbers
from vcpulab.scenario.units import spans

_SYSCTL = "sysctl "
"""The prefix that marks a sysctl in the registry; for a file the registry has the path."""
BUILT_IN = {
    "hz": "the kernel is built with it (CONFIG_HZ)",
    "resched_ns": "how soon the machine takes a request to decide again",
    "preempt": "the kernel is built with it (CONFIG_PREEMPT_NONE, CONFIG_PREEMPT_VOLUNTARY or CONFIG_PREEMPT)",
}
"""Parameters that no command sets, and the reasons."""
_ON_ONE_CPU_US = {"base_slice_us": 700, "latency_us": 6000, "min_granularity_us": 750, "wakeup_granularity_us": 1000}
"""The kernel's own defaults on one CPU."""
_LONG_BASE_SLICE_US = 750
_LONG_BASE_SLICES = re.compile(r"6\.(6|7|8|9|10|11|13|14)(\.|$)")
"""The releases whose base slice is longer. (The first of 6.12 had it, too; later stable releases of 6.12 do not.)"""
_FULL_AT = 8
"""The number of CPUs from which the defaults no longer grow."""

_IN_NS = ("_ns", "/fair_server/cpu*/runtime", "/fair_server/cpu*/period")
"""The ends of names of files and sysctls with values in ns."""

REAL_TIME = ("fifo", "rr")
"""Scheduling classes with a priority, above all others."""

OfVm = Callable[[Setting, Change], Way | None]
"""A toolstack's way for a setting of a VM; `None`: the setting does not concern a VM."""


def steps(change: Change, of_vm: OfVm) -> list[Step]:
    """The steps, in order: after a restart, at once, to keep the settings, and settings without a command.

    Args:
        change: the change to make.
        of_vm: how the toolstack takes a setting of a VM.
    """
    ways = [_way(setting, change, of_vm) for setting in change.settings]
    later = ((at, _way(setting, change, of_vm)) for at, setting in change.later)
    return [
        *(Step("boot", _at_boot(option)) for way in ways for option in way.boot),
        *run(ways),
        *(Step("keep", _at_boot(option)) for way in ways for option in way.options),
        *(Step("keep", text, domain=way.domain, called=way.called) for way in ways for text in way.keep),
        *dict.fromkeys(cannot(ways)),
        *(replace(step, at=at) for at, way in later for step in (*run([way]), *cannot([way]))),
    ]


def _at_boot(option: str) -> str:
    line = f'GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT {option}"'
    return f"echo '{line}' >> /etc/default/grub.d/vcpulab.cfg && update-grub"


def _way(setting: Setting, change: Change, of_vm: OfVm) -> Way:
    domain = getattr(setting, "domain", None)
    if domain in change.daemons:
        return _of_a_daemon(setting, change, domain)
    way = of_vm(setting, change)
    return next(_of_the_host(setting, change)) if way is None else way


def _of_a_daemon(setting: Setting, change: Change, domain: str) -> Way:
    """The way for a daemon's setting: a daemon is a service of its name."""
    where = Place.from_path(f"{change.groups.get(domain, DEFAULT_SLICES[True])}/{domain}.service", change.cgroups)
    in_unit = f"{domain}: {{}} in its unit (systemctl edit {domain}.service), from its next start on"
    match setting:
        case Params(pool) if pool.is_linux:
            way = shared(where, of_whole(setting.values), of_whole(setting.table))
            if "slice_us" in setting.values:
                way.cannot.append(in_unit.format("slice_us: `chrt --sched-runtime` as ExecStartPost= for its threads"))
        case Affinity(_, _, str(pcpus), soft=False):
            way = shared(where, {"cpus": pcpus}, {})
        case ThreadClass(_, _, policy):
            priority = f" and CPUSchedulingPriority={setting.priority}" if policy in REAL_TIME else ""
            way = Way.none(in_unit.format(f"CPUSchedulingPolicy={policy}{priority}"))
        case Nice(_, _, nice):
            way = Way.none(in_unit.format(f"Nice={nice}"))
        case InGroup(_, _, path):
            inside = path.rsplit("/", 1)[-1] if systemd.slices(path) else None
            none = f"{domain}: in {path}: systemd puts services into its slices only, and this is none"
            way = Way.none(none if inside is None else in_unit.format(f"Slice={inside}"))
        case _:
            way = Way.none(f"{domain}: a daemon of the host's: its own configuration sets this")
    return replace(way, domain=domain)


def _of_the_host(setting: Setting, change: Change) -> Iterator[Way]:
    match setting:
        case Scheduler(pool) | Params(pool) if not pool.is_linux:
            yield Way.none(f"`{pool.scheduler}` is a Xen scheduler and does not exist on a KVM host")
        case Scheduler(pool, new_kernel):
            # Of a host as it was installed nothing is to be typed: the kernel has one scheduler.
            yield Way.none(f"{pool}: install a kernel of {pool.generation}, and boot it") if new_kernel else Way()
        case Params(pool, None, values):
            yield _tunables(pool, values, while_running=setting.moment == "action")
        case HaltPolling() | CgroupVersion() | Isolation():
            yield _kernel_option(setting)
        case Group(_, path, values, table):
            yield shared(Place.from_path(path, change.cgroups), values, table)
        case HostInterrupts():
            yield _interrupts(setting)
        case Smt() | Governor() | Shape() | Pcpus():
            yield _cpus(setting)
        case Machine(fields):
            yield Way.none(f"host.{', host.'.join(fields)}: requires another machine")
        case MemoryStays() | AnotherHypervisor():
            yield Way.none(str(setting))
        case GuestThreads(_, vm, threads):
            smp = f"threads_per_core = {threads}: `threads={threads}` in QEMU's option -smp, at the VM's next start"
            yield Way.none(f"domain {vm}: {smp}", vm)
        case Affinity() | Online() | Life():
            yield Way.none(f"domain {setting.domain}: {_why_not(setting)}", setting.domain)
        case _:
            domain = getattr(setting, "domain", None)
            owner = "the host" if domain is None else f"domain {domain}"
            yield Way.none(f"{owner}: no command of a KVM host sets this", domain)


def _kernel_option(setting: HaltPolling | CgroupVersion | Isolation) -> Way:
    match setting:
        case HaltPolling(_, us):
            file = "/sys/module/kvm/parameters/halt_poll_ns"
            return _written(file, us * 1000, "modprobe.d", "options kvm halt_poll_ns={}")
        case CgroupVersion(_, version):
            late = "host.cgroups = 1: systemd has version 1 up to release 257"
            return Way(
                boot=[f"systemd.unified_cgroup_hierarchy={int(version == 2)}"], cannot=[late] if version == 1 else []
            )
        case Isolation(_, option, cpus) if cpus:
            return Way(boot=[f"{option}={cpus}"])
        case Isolation(_, option):
            return Way.none(f"{option}: take `{option}=` out of the kernel's command line, and restart the host")


def _interrupts(setting: HostInterrupts) -> Way:
    where = f"interrupts of {setting.kind} {setting.name}: on pCPU {setting.pcpu}"
    if setting.kind == "disk":
        controller = "/proc/irq/*/smp_affinity_list of its controller, which the scenario does not name"
        return Way.none(f"{where}: {controller}")
    command = dom0.to_cpu(f"-w {shlex.quote(setting.name)}", setting.pcpu)
    return Way(run=[command], cannot=[f"{where}: holds until the host restarts, and while irqbalance does not move it"])


def _why_not(setting: Affinity | Online | Life) -> str:
    match setting:
        case Affinity():
            return "soft_affinity: Linux has no soft affinity"
        case Online(_, _, vcpu, on):
            inside = f"echo {int(on)} > /sys/devices/system/cpu/cpu{vcpu}/online"
            return f"vCPU {vcpu} {'on' if on else 'off'}line: in the guest: {inside}"
        case Life(_, _, op):
            return f"{op}: done by the service manager"


def _tunables(pool: Pool, values: Mapping[str, Any], *, while_running: bool) -> Way:
    combined = Way()
    for name, value in values.items():
        setter = pool.tools.setters.get(name)
        target = "" if setter is None else setter.name
        by_default = value == NONE and name in _ON_ONE_CPU_US
        us = by_cpus(name, len(pool.pcpus), pool.generation) if by_default else value
        kept = None
        if target.startswith(_SYSCTL):
            sysctl = target.removeprefix(_SYSCTL).rstrip("=")
            way, kept = _sysctl(sysctl, _in_units(sysctl, us)), _sysctl_kept_in(sysctl)
        elif target.startswith("/"):
            way = _written(target, _in_units(target, us), "tmpfiles.d", f"w {target} - - - - {{}}")
            kept = _kept_in(target, "tmpfiles.d")
        else:
            way = Way.none(f"{pool}: {name} = {value}: {BUILT_IN.get(name, 'no command sets it')}")
        if by_default and kept is not None:
            way.keep = [f"rm -f {kept}"]
        combined.run += way.run
        combined.keep += [] if while_running else way.keep
        combined.cannot += way.cannot
    return combined


def _in_units(target: str, us: int | str) -> int | str:
    """A value in µs in the unit of a file or sysctl, whose name ends with the unit; a word or `NONE` stays as it is."""
    in_ns = target.endswith(_IN_NS) and isinstance(us, int) and us != NONE
    return us * 1000 if in_ns else us


def by_cpus(name: str, cpus: int, release: str) -> int:
    """The kernel's own default of a parameter, µs, which grows with the number of CPUs.

    Args:
        name: the parameter.
        cpus: the number of CPUs.
        release: the release of the kernel, or a generation of its scheduler.

    Examples:
        >>> by_cpus("base_slice_us", 4, "6.12"), by_cpus("base_slice_us", 64, "7.3"), by_cpus("latency_us", 1, "6.1")
        (2100, 2800, 6000)
        >>> by_cpus("base_slice_us", 1, "6.8.12"), by_cpus("base_slice_us", 16, "6.14")
        (750, 3000)
    """
    long = name == "base_slice_us" and _LONG_BASE_SLICES.match(release) is not None
    on_one_cpu = _LONG_BASE_SLICE_US if long else _ON_ONE_CPU_US[name]
    return on_one_cpu * min(cpus, _FULL_AT).bit_length()


def _written(file: str, value: int | str, directory: str, line: str) -> Way:
    # A pattern is that of several files, one for each CPU.
    command = f"echo {value} | tee {file} > /dev/null" if "*" in file else f"echo {value} > {file}"
    return Way(run=[command], keep=[f"echo '{line.format(value)}' > {_kept_in(file, directory)}"])


def _kept_in(file: str, directory: str) -> str:
    name = file.replace("/cpu*/", "-").rsplit("/", 1)[-1]
    return f"/etc/{directory}/{name}.conf"


def _sysctl(name: str, value: int | str) -> Way:
    return Way(run=[f"sysctl -w {name}={value}"], keep=[f"echo '{name} = {value}' > {_sysctl_kept_in(name)}"])


def _sysctl_kept_in(name: str) -> str:
    return f"/etc/sysctl.d/{name}.conf"


# ---- CPUs ----


def _cpus(setting: Smt | Governor | Shape | Pcpus) -> Way:
    match setting:
        case Smt(on=on):
            way = Way(run=[f"echo {'on' if on else 'off'} > /sys/devices/system/cpu/smt/control"])
            if on:
                way.cannot = ["host.topology: to keep it, take `nosmt` out of the kernel's command line"]
            else:
                way.options = ["nosmt"]
                numbered = smt_numbers(setting)
                way.cannot = [numbered] if numbered else []
            return way
        case Governor(name=name):
            lost = f"governor {name}: holds until the host restarts; a service of cpupower's keeps it"
            return Way(run=[f"cpupower frequency-set -g {name}"], cannot=[lost])
        case Shape(topology):
            return Way.none(f"host.topology: takes a machine of {topology}")
        case Pcpus(count, old_count):
            if old_count is not None and count < old_count:
                return Way(run=[f"chcpu -d {spans(range(count, old_count))}"], options=[f"maxcpus={count}"])
            required = "with that number of CPUs" if old_count is None else f"with more CPUs than {old_count}"
            return Way.none(f"host.pcpus = {count}: takes a machine {required}")


# ---- threads ----


def scheduled(threads: str, policy: str, priority: int) -> str:
    """The command that gives threads a scheduling class.

    Args:
        threads: the command that prints the threads' ids.
        policy: the scheduling class.
        priority: the priority in `fifo` and `rr`.
    """
    level = priority if policy in REAL_TIME else 0
    return f"for t in $({threads}); do chrt --{policy} -p {level} $t; done"


def with_slices(way: Way, setting: Params, threads: str) -> Way:
    """A way that also gives vCPU threads requests of their own length, if the setting has `slice_us`.

    Args:
        way: the way for the domain's other parameters.
        setting: the change of the domain's parameters.
        threads: the command that prints the threads' ids.
    """
    us = setting.values.get("slice_us")
    if us is None:
        return way
    policy = setting.table.get("sched_policy", "other")
    if policy not in ("other", "batch"):
        none = f"domain {setting.domain}: slice_us = {us}: threads of SCHED_{policy.upper()} have no requests"
        return replace(way, cannot=[*way.cannot, none])
    option = "" if us == NONE else f" --sched-runtime {us * 1000}"
    return replace(way, run=[*way.run, f"for t in $({threads}); do chrt --{policy}{option} -p 0 $t; done"])


def pinned(change: Change, pcpus: str) -> str:
    """A list of CPUs, with `all` written out."""
    return f"0-{change.pcpus - 1}" if pcpus == "all" else pcpus


def old_vcpu_count(domain: str, change: Change) -> int | None:
    """The number of vCPUs that a VM has before a change of that number; `None`: the number does not change."""
    counts = (setting for setting in change.settings if isinstance(setting, Vcpus) and setting.domain == domain)
    return next((setting.old_count for setting in counts), None)


def pins(setting: Affinity, change: Change) -> list[tuple[str, str]]:
    """The number of each vCPU that a setting pins, and its list of CPUs."""
    pcpus = setting.pcpus
    if not isinstance(pcpus, str):
        return [(str(vcpu), pinned(change, cpus)) for vcpu, cpus in enumerate(pcpus)]
    vcpus = range(setting.vcpus) if setting.vcpu is None else [setting.vcpu]
    return [(str(vcpu), pinned(change, pcpus)) for vcpu in vcpus]
