"""The kernel of a Linux host, and whose rules its scheduler of fair threads has here."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from vcpulab.formats.linux_host import Linux
from vcpulab.scenario.catalogue import schedulers

CFS, EEVDF = "linux-cfs", "linux-eevdf"
POLICIES = (CFS, EEVDF)
_EEVDF_SINCE = (6, 6)
_VERSION = re.compile(r"(\d{1,3})\.(\d{1,3})(?:\.\d{1,4})?")
_US_OF_NS = {
    "base_slice_ns": "base_slice_us",
    "latency_ns": "latency_us",
    "sched_latency_ns": "latency_us",
    "min_granularity_ns": "min_granularity_us",
    "sched_min_granularity_ns": "min_granularity_us",
    "wakeup_granularity_ns": "wakeup_granularity_us",
    "sched_wakeup_granularity_ns": "wakeup_granularity_us",
    "migration_cost_ns": "migration_cost_us",
    "sched_migration_cost_ns": "migration_cost_us",
}
"""The names of parameters in /sys/kernel/debug/sched, and in sysctl before Linux 5.13."""
_US = {"sched_cfs_bandwidth_slice_us": "bandwidth_slice_us"}
PARAMETERS = frozenset({*_US_OF_NS, *_US})
"""The parameters of a kernel's scheduler that a scenario says."""


@dataclass(frozen=True)
class Kernel:
    """A scheduler as a host's kernel has it."""

    scheduler: str
    generation: str
    """The release whose rules are taken."""
    explanation: str
    exact: bool
    """`True`: the rules are known to be those of this release."""


def kernel_of(linux: Linux) -> Kernel | None:
    """The scheduler of the kernel that a host says it runs; `None`: nothing says it.

    Examples:
        >>> print(kernel_of(Linux("6.1.0-18-amd64")).explanation)
        Linux 6.1.0-18-amd64: linux-cfs as in 6.1
        >>> print(kernel_of(Linux("6.8.12-4-pve")).explanation)
        Linux 6.8.12-4-pve: nothing is known of its linux-eevdf; as in 6.12
        >>> kernel_of(Linux(None, {"/sys/kernel/debug/sched/base_slice_ns": "2800000"})).scheduler
        'linux-eevdf'
    """
    match = _VERSION.match(linux.version or "")
    if match is None:
        if linux.setting("base_slice_ns") is not None:
            return _kernel_of_release(EEVDF, "a kernel with `base_slice_ns`", None)
        if any(linux.setting(name) is not None for name in ("latency_ns", "sched_latency_ns")):
            return _kernel_of_release(CFS, "a kernel with `latency_ns`", None)
        return None
    major, minor = int(match[1]), int(match[2])
    scheduler = EEVDF if (major, minor) >= _EEVDF_SINCE else CFS
    name = re.split(r"[,\s]", linux.version or "")[0]
    return _kernel_of_release(scheduler, f"Linux {name}", f"{major}.{minor}")


def _kernel_of_release(scheduler: str, kernel_name: str, release: str | None) -> Kernel:
    generations = [
        generation["name"]
        for policy in schedulers()
        if policy["name"] == scheduler
        for generation in policy["generations"]
    ]
    if release in generations:
        return Kernel(scheduler, str(release), f"{kernel_name}: {scheduler} as in {release}", exact=True)
    newest = generations[-1] if generations else ""
    explanation = f"{kernel_name}: nothing is known of its {scheduler}; as in {newest}"
    return Kernel(
        scheduler, newest, explanation if release else f"{kernel_name}: {scheduler}, as in {newest}", exact=False
    )


def params_of(linux: Linux, hz: int | None) -> dict[str, int]:
    """The parameters of the scheduler as a whole that a host says, as a scenario has them.

    Args:
        linux: the kernel, settings and control groups that the host reports.
        hz: ticks per second that a recording shows, for a host that does not report them.

    Examples:
        >>> params_of(Linux(None, {"/sys/kernel/debug/sched/base_slice_ns": "700000", "CONFIG_HZ": "1000"}), 250)
        {'hz': 1000, 'base_slice_us': 700}
    """
    params: dict[str, int] = {}
    built = linux.setting("CONFIG_HZ")
    if built is not None and built.isdecimal() and len(built) < 6:
        params["hz"] = int(built)
    elif hz is not None:
        params["hz"] = hz
    for names, unit in ((_US_OF_NS, 1000), (_US, 1)):
        for name, here in names.items():
            value = linux.setting(name)
            if value is not None and value.isdecimal() and len(value) < 13:
                params[here] = int(value) // unit
    return params


def halt_poll_us(settings: Mapping[str, str]) -> int | None:
    """Halt polling as the module kvm has it, µs; `None`: not said."""
    value = next((value for path, value in settings.items() if path.endswith("halt_poll_ns")), "")
    return int(value) // 1000 if value.isdecimal() and len(value) < 13 else None
