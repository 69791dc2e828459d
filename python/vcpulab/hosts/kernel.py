"""The kernel of a Linux host, and whose rules its scheduler of fair threads has here."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from vcpulab.formats.linux_host import Linux
from vcpulab.hosts.kernel_release import KernelRelease, release_of
from vcpulab.hosts.kernel_rules import (
    CGROUP_MODE,
    EEVDF,
    FEATURES,
    HRTICK_SINCE,
    Evidence,
    features_of,
    rules_of,
    signs_of,
)
from vcpulab.hosts.preemption import COMMAND as PREEMPT_COMMAND
from vcpulab.hosts.preemption import PREEMPT, preemption_of
from vcpulab.hypervisors.linux import by_cpus
from vcpulab.scenario.catalogue import generation_of, param_names

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
_US = {
    "sched_cfs_bandwidth_slice_us": "bandwidth_slice_us",
    "sched_rt_runtime_us": "rt_runtime_us",
    "sched_rt_period_us": "rt_period_us",
}
_FAIR_SERVER = re.compile(r".*/sched/fair_server/cpu\d{1,4}/(?P<name>runtime|period)")
"""The files of the fair servers, one for each CPU, in ns."""
PARAMETERS = frozenset({*_US_OF_NS, *_US})
"""The parameters of a kernel's scheduler that a scenario says."""
_SCHED_EXT = "sched_ext/state"
_SCHED_EXT_NAME = "sched_ext/root/ops"
_LLC_BALANCING = "sched/llc_balancing/enabled"
DECISIVE = (*FEATURES, CGROUP_MODE, *PREEMPT, _SCHED_EXT, _SCHED_EXT_NAME, _LLC_BALANCING)
"""The ends of the paths of files that tell which rules a kernel has."""
_SHORTENED = (6, 12, 117)
"""The first release of 6.12 that is known to have the shorter base slice of 6.15."""
_LAST_LONG = "6.14"
"""The last series with the longer base slice, which the first releases of 6.12 have, too."""
_CHANGED_FEATURES = frozenset(
    f"NO_{feature}"
    for feature in (
        *("PLACE_LAG", "PLACE_DEADLINE_INITIAL", "PLACE_REL_DEADLINE", "RUN_TO_PARITY", "PREEMPT_SHORT", "PICK_BUDDY"),
        *("DELAY_DEQUEUE", "DELAY_ZERO", "WAKEUP_PREEMPTION", "NI_RANDOM", "NI_RATE"),
        *("GENTLE_FAIR_SLEEPERS", "START_DEBIT", "LAST_BUDDY", "ALT_PERIOD", "BASE_SLICE"),
    )
) | {"NEXT_BUDDY"}
"""Features of EEVDF and CFS that decide which thread runs, as they are not by default."""
_IN_FORCE = re.compile(r".*\((\w+)\).*|(\w+)")
"""The contents of `cgroup_mode`: all modes, the one in force in parentheses, or that mode alone."""
_LAZY_SINCE = {"Debian": (6, 16), "Ubuntu": (7, 0)}
"""The series from which on the kernels of a distribution have the lazy preemption model."""
KERNEL_COMMAND = "uname -a > kernel.txt"
"""The command whose output names the kernel."""
_HZ_COMMAND = "grep CONFIG_HZ= /boot/config-$(uname -r)"
_FEATURES_COMMAND = "grep -s . /sys/kernel/debug/sched/{features,cgroup_mode,llc_balancing/enabled}"
"""The command whose output shows rules that a distribution took from a later release."""


def is_fair_server(path: str) -> bool:
    """Whether a setting is one of a CPU's fair server."""
    return _FAIR_SERVER.fullmatch(path) is not None


@dataclass(frozen=True)
class Kernel:
    """A scheduler as a host's kernel has it."""

    scheduler: str
    generation: str
    """The release whose rules are taken."""
    explanation: str
    """The rules, and what they are taken from."""
    exact: bool
    """`True`: the rules are known to be those of this kernel."""
    release: KernelRelease | None = None
    """The release; `None`: nothing names it, and files of the scheduler show which rules it may have."""


def kernel_of(linux: Linux) -> Kernel | None:
    """The scheduler of a host's kernel; `None`: nothing listed tells it.

    Files of the scheduler count more than the kernel's name: a distribution may have taken them from a later release.

    Examples:
        >>> print(kernel_of(Linux("6.1.0-18-amd64")).explanation)
        Linux 6.1.0-18-amd64: linux-cfs as in 6.1
        >>> print(kernel_of(Linux("6.1.112-122.189.amzn2023")).explanation)
        Linux 6.1.112-122.189.amzn2023: linux-cfs as in 6.1 is assumed: kernels of Amazon Linux carry later changes
        >>> kernel_of(Linux(None, {"/sys/kernel/debug/sched/base_slice_ns": "2800000"})).scheduler
        'linux-eevdf'
    """
    release, signs = release_of(linux.kernel), list(signs_of(linux))
    if release is None and not signs:
        return None
    rules = rules_of(None if release is None else (*release.series, release.point), signs)
    taken = f"{rules.scheduler} as in {rules.generation}"
    if release is None:
        shown = "; ".join(sign.text for sign in signs)
        explanation = f"{shown}: {taken} is assumed: no listing names the kernel ({KERNEL_COMMAND})"
        return Kernel(rules.scheduler, rules.generation, explanation, exact=False)
    doubts = [*(sign.text for sign in rules.decisive), _DOUBTS.get(rules.evidence, "").format(release.text)]
    reasons = "; ".join(filter(None, [*doubts, release.doubt]))
    if reasons and rules.scheduler == EEVDF and not features_of(linux):
        reasons += f" (`{_FEATURES_COMMAND}` tells more)"
    explanation = f"Linux {release.name}: {taken}" + (f" is assumed: {reasons}" if reasons else "")
    return Kernel(rules.scheduler, rules.generation, explanation, exact=not reasons, release=release)


_DOUBTS = {
    Evidence.BETWEEN: "nothing is known of {}, and this is the nearest release",
    Evidence.NEWER: "{} is newer than every release that vcpulab knows, and this is the newest",
    Evidence.OLDER: "{} is older than every release that vcpulab knows, and this is the oldest",
}
"""Why the rules may not be those of the kernel, where its release is not one that is known."""


def scheduler_warnings(linux: Linux, kernel: Kernel | None) -> Iterator[str]:
    """Notes on files of a host's scheduler by which it may decide otherwise than any rules that are known.

    Examples:
        >>> for note in scheduler_warnings(Linux("6.12.48", {"/sys/kernel/sched_ext/state": "enabled"}), None):
        ...     print(note.partition(":")[0])
        sched_ext is enabled
    """
    if linux.ends_with(_SCHED_EXT) == "enabled":
        name = linux.ends_with(_SCHED_EXT_NAME)
        yield (
            f"sched_ext is enabled: a BPF scheduler{f' ({name})' if name else ''} decides which thread runs, and none "
            "of the rules here are the host's. Predictions hold only for the host without it"
        )
    newer = kernel is not None and kernel.release is not None and kernel.release.series >= HRTICK_SINCE
    features = features_of(linux)
    if newer and "NO_HRTICK" in features:
        yield (
            "NO_HRTICK is among the scheduler's features: on the host a thread's request ends at a tick, and here when "
            "it is used up"
        )
    changed = sorted(features & _CHANGED_FEATURES)
    if changed:
        yield f"no field of a scenario says {', '.join(changed)} (/sys/kernel/debug/sched): here they are as by default"
    preemption = preemption_of(linux)
    if preemption is not None and preemption.real_time:
        yield (
            f"{preemption.reason}: preempt = {preemption.model} is taken; nothing else of PREEMPT_RT is modelled "
            "(interrupts as threads, sleeping locks)"
        )


def params_of(linux: Linux, hz: int | None) -> dict[str, int | str]:
    """The parameters of the scheduler as a whole that a host says, as a scenario has them.

    Args:
        linux: the kernel, settings and control groups that the host reports.
        hz: ticks per second that a recording shows, for a host that does not report them.

    Examples:
        >>> params_of(Linux(None, {"/sys/kernel/debug/sched/base_slice_ns": "700000", "CONFIG_HZ": "1000"}), 250)
        {'hz': 1000, 'base_slice_us': 700}
        >>> params_of(Linux(None, {"kernel.sched_rt_runtime_us": "-1"}), None)
        {'rt_runtime_us': -1}
        >>> params_of(Linux(None, {"/sys/kernel/debug/sched/fair_server/cpu0/runtime": "50000000"}), None)
        {'fair_server_runtime_us': 50000}
        >>> params_of(Linux(None, {"/sys/kernel/debug/sched/preempt": "none (voluntary) full"}), None)
        {'preempt': 'voluntary'}
    """
    params: dict[str, int | str] = {}
    built = linux.option("CONFIG_HZ")
    if built is not None and built.isdecimal() and len(built) < 6:
        params["hz"] = int(built)
    elif hz is not None:
        params["hz"] = hz
    for names, unit in ((_US_OF_NS, 1000), (_US, 1)):
        for name, here in names.items():
            value = linux.setting(name)
            if value is not None and value.removeprefix("-").isdecimal() and len(value) < 13:
                params[here] = max(int(value) // unit, -1)
    for path, value in linux.settings.items():
        match = _FAIR_SERVER.fullmatch(path)
        if match is not None and value.isdecimal() and len(value) < 13:
            # The servers of all CPUs are alike here.
            params.setdefault(f"fair_server_{match['name']}_us", int(value) // 1000)
    llc_balancing = linux.ends_with(_LLC_BALANCING)
    if llc_balancing in ("0", "1", "N", "Y"):
        params["llc_balancing"] = int(llc_balancing in ("1", "Y"))
    preemption = preemption_of(linux)
    if preemption is not None:
        params["preempt"] = preemption.model
    mode = _IN_FORCE.fullmatch(linux.ends_with(CGROUP_MODE) or "")
    if mode is not None:
        params["cgroup_mode"] = mode[1] or mode[2]
    return params


@dataclass(frozen=True)
class Assumed:
    """A parameter that no listing of a host has, as its kernel usually has it."""

    name: str
    value: int | str
    note: str


def assumed_params(kernel: Kernel | None, listed: Collection[str], pcpus: int) -> Iterator[Assumed]:
    """The parameters that a host does not say and that depend on its kernel.

    Args:
        kernel: the kernel; `None`: not known.
        listed: the parameters that the host says.
        pcpus: the number of its CPUs.

    Examples:
        >>> for param in assumed_params(kernel_of(Linux("6.14.8-2-pve")), ["hz"], 16):
        ...     print(param.name, param.value)
        base_slice_us 3000
        preempt voluntary
    """
    rules = generation_of(EEVDF) if kernel is None else generation_of(kernel.scheduler, kernel.generation)
    defaults = {} if rules is None else rules.defaults
    release = None if kernel is None else kernel.release
    if "hz" not in listed:
        usual = None if release is None else release.hz
        value = int(defaults.get("hz") or 0) if usual is None else usual
        origin = "" if usual is None or release is None else f"{release.origin} usually have that many ticks a second; "
        yield Assumed(
            "hz",
            value,
            f"hz = {value} is assumed: {origin}no listing has its CONFIG_HZ (`{_HZ_COMMAND}`)",
        )
    if "base_slice_us" in defaults and "base_slice_us" not in listed and kernel is not None and release is not None:
        own, default = (by_cpus("base_slice_us", pcpus, text) for text in (release.text, kernel.generation))
        early = release.series == _SHORTENED[:2] and (release.point or 0) < _SHORTENED[2]
        if own != default or early:
            longer = f" (its first ones have {by_cpus('base_slice_us', pcpus, _LAST_LONG)})" if early else ""
            cpus = "one CPU" if pcpus == 1 else f"{pcpus} CPUs"
            yield Assumed(
                "base_slice_us",
                own,
                f"base_slice_us = {own} is assumed, the default of Linux {release.text} on {cpus}{longer}: no "
                "listing has base_slice_ns (`grep -s . /sys/kernel/debug/sched/*_ns`)",
            )
    models = () if rules is None else next((param.choices for param in rules.params if param.name == "preempt"), ())
    if "lazy" in models and "preempt" not in listed and release is not None:
        lazy_since = _LAZY_SINCE.get("" if release.distribution is None else release.distribution.name)
        is_lazy = lazy_since is not None and release.series >= lazy_since
        model = "lazy" if is_lazy else str(defaults["preempt"])
        origin = f"{release.origin} usually have it; " if is_lazy else ""
        yield Assumed(
            "preempt", model, f"preempt = {model} is assumed: {origin}no listing has it (`{PREEMPT_COMMAND}`)"
        )


def supported_params(
    params: Mapping[str, int | str], scheduler: str, generation: str | None, notes: list[str]
) -> dict[str, int | str]:
    """The parameters of the scheduler as a whole that a generation has, with values that it takes.

    Args:
        params: the parameters.
        scheduler: the scheduler.
        generation: `None`: the default one.
        notes: where to name values that are left out.

    Examples:
        >>> notes = []
        >>> supported_params({"hz": 1000, "preempt": "voluntary", "latency_us": 6000}, EEVDF, "7.0", notes)
        {'hz': 1000}
        >>> notes
        ['preempt = voluntary is left out: linux-eevdf as in 7.0 takes one of full, lazy']
    """
    rules = generation_of(scheduler, generation)
    specs = {} if rules is None else rules.of_scope("global")
    supported = {}
    for name, value in params.items():
        if name not in specs:
            continue
        if specs[name].kind == "choice" and not specs[name].accepts(value):
            notes.append(f"{name} = {value} is left out: {scheduler} as in {generation} takes {specs[name].allowed}")
        else:
            supported[name] = value
    return supported


def without_missing_params(
    fields: Mapping[str, Any], name: str, scheduler: str, kernel: Kernel | None, notes: list[str]
) -> dict[str, Any]:
    """The fields of a domain, but for parameters that the scheduler of such a kernel does not have.

    Args:
        fields: the fields.
        name: the domain's name.
        scheduler: the scheduler.
        kernel: the kernel that has it; `None`: not known, the default generation.
        notes: where to name what is left out.
    """
    generation, params = _params(scheduler, None if kernel is None else kernel.generation)
    missing = [field for field in fields if field in param_names("domain") and field not in params]
    if missing:
        values = ", ".join(f"{field} = {fields[field]}" for field in missing)
        notes.append(f"{name}: {values} is left out: {scheduler} as in {generation} does not have it")
    return {field: value for field, value in fields.items() if field not in missing}


@cache
def _params(scheduler: str, generation: str | None) -> tuple[str, frozenset[str]]:
    """The name of a generation of Linux's schedulers, and its parameters."""
    rules = generation_of(scheduler, generation)
    assert rules is not None
    return rules.name, frozenset(rules.defaults)


def halt_poll_us(settings: Mapping[str, str]) -> int | None:
    """Halt polling as the module kvm has it, µs; `None`: not said."""
    value = next((value for path, value in settings.items() if path.endswith("halt_poll_ns")), "")
    return int(value) // 1000 if value.isdecimal() and len(value) < 13 else None
