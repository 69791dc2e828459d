"""The hypervisor's command line, as `xl info` shows it (`xen_commandline`), in a scenario's terms.

Sources: Xen's page on its command line (`docs/misc/xen-command-line`), for the options and for what booleans may look
like; the registry (`Toolstack` in `crates/sched`) for those of the schedulers.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from vcpulab.hypervisors.xen import KEPT_AT_BOOT
from vcpulab.scenario.catalogue import generation_of
from vcpulab.scenario.parameters import Param, Setter

_TRUE = ("", "1", "yes", "on", "true", "enable")
_FALSE = ("0", "no", "off", "false", "disable")
GOVERNORS = ("performance", "powersave", "ondemand")
"""The governors that a scenario can name."""
_GRANULARITIES = ("cpu", "core", "socket")
_OF_CPUS = ("smt", "maxcpus", "nosmp", "numa", "dom0_max_vcpus", "dom0_vcpus_pin", "dom0_nodes", "cpufreq")
"""Other options that decide where and how fast vCPUs run; listings show their effect, or no field has it."""


@dataclass(frozen=True)
class Options:
    """The options of a command line that concern scheduling."""

    params: dict[str, tuple[int | str, str]] = field(default_factory=dict)
    """The scheduler's global parameters, each with the option that sets it."""
    granularity: str | None = None
    """`sched-gran`."""
    other_cpu_options: dict[str, str] = field(default_factory=dict)
    """Other options that concern CPUs, by name, as written."""
    ignored: list[str] = field(default_factory=list)
    """Options of the scheduler with values out of range, and the values allowed."""


def read_options(line: str, scheduler: str, generation: str | None = None) -> Options:
    """The options of a command line; the last value counts where an option is repeated.

    Args:
        line: the command line.
        scheduler: the scheduler whose options are read.
        generation: the release of the scheduler; `None`: the default.

    Examples:
        >>> read_options("sched=credit2 credit2_runqueue=core smt=0 loglvl=all", "credit2").params
        {'runqueue': ('core', 'credit2_runqueue=core')}
        >>> read_options("no-smt sched-gran=core", "credit").other_cpu_options
        {'smt': 'no-smt'}
    """
    given = _given(line)
    options = Options(granularity=_granularity(given))
    registered = generation_of(scheduler, generation)
    if registered is not None:
        params = registered.of_scope("global")
        for name, option in _names(registered.tools.setters).items():
            if name in params and option in given:
                text, word = given[option]
                value = _value(text, params[name])
                if value is None:
                    options.ignored.append(f"{word}: allowed: {params[name].allowed}")
                else:
                    options.params[name] = value, word
    options.other_cpu_options.update({option: given[option][1] for option in _OF_CPUS if option in given})
    return options


def _given(line: str) -> dict[str, tuple[str, str]]:
    """The value and the spelling of each option, by name."""
    by_name: dict[str, tuple[str, str]] = {}
    for word in line.split():
        name, sign, value = word.partition("=")
        if not sign and name.startswith("no-"):
            name, value = name.removeprefix("no-"), "0"
        by_name[name] = value, word
    return by_name


def _names(ways: Mapping[str, Setter]) -> dict[str, str]:
    """The option of the command line that sets each parameter, by parameter."""
    at_boot = {name: way.name for name, way in ways.items() if way.by == "boot"}
    return at_boot | {name: option for name, option in KEPT_AT_BOOT.items() if name in ways}


def _value(text: str, param: Param) -> int | str | None:
    """A value in a scenario's terms; `None`: the parameter does not take the value.

    Examples:
        >>> params = generation_of("credit2").of_scope("global")
        >>> _value("on", params["smt_power_savings"]), _value("core", params["runqueue"])
        (1, 'core')
        >>> _value("9", params["ratelimit_us"])
    """
    if param.kind == "choice":
        return text if param.accepts(text) else None
    if text in _TRUE or text in _FALSE:
        number = int(text in _TRUE)
    elif re.fullmatch(r"-?(0x[0-9a-fA-F]{1,8}|[1-9]\d{0,9})", text):
        number = int(text, 0)
    else:
        return None
    return number if param.accepts(number) else None


def _granularity(given: Mapping[str, tuple[str, str]]) -> str | None:
    value, _ = given.get("sched-gran", ("", ""))
    return value if value in _GRANULARITIES else None


def dom0_vcpus(options: Options, pcpus: int) -> int:
    """The number of vCPUs that Dom0 starts with: `dom0_max_vcpus=N` or `MIN-MAX`, else one for each pCPU.

    Examples:
        >>> dom0_vcpus(read_options("dom0_max_vcpus=4-8", "credit2"), 6), dom0_vcpus(Options(), 6)
        (6, 6)
        >>> dom0_vcpus(read_options("dom0_max_vcpus=-4", "credit2"), 64)
        4
    """
    match = re.fullmatch(r"dom0_max_vcpus=(\d{0,4})(-?)(\d{0,4})", options.other_cpu_options.get("dom0_max_vcpus", ""))
    if match is None or not (match[1] or match[3]):
        return pcpus
    if not match[2]:
        return max(1, int(match[1]))
    return max(int(match[1] or 1), min(pcpus, int(match[3] or pcpus)))


def is_pinned(options: Options) -> bool:
    """`True`: each of Dom0's vCPUs is pinned to the pCPU of its number (`dom0_vcpus_pin`)."""
    text = options.other_cpu_options.get("dom0_vcpus_pin")
    return text is not None and not text.startswith("no-") and text.partition("=")[2] not in _FALSE


def governor(options: Options) -> str | None:
    """The frequency governor: `cpufreq=xen:GOVERNOR`, before 4.8 `xen,GOVERNOR`; `None`: the option is absent.

    Examples:
        >>> governor(read_options("cpufreq=xen:performance,verbose", "credit2"))
        'performance'
    """
    words = re.split(r"[=:,]", options.other_cpu_options.get("cpufreq", ""))
    return next((word for word in words if word in GOVERNORS), None)
