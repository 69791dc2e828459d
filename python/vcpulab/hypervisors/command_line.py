"""The hypervisor's command line, as `xl info` shows it (`xen_commandline`), read as what a scenario says.

Sources: Xen's page on its command line (`docs/misc/xen-command-line`), for the options and for what booleans may look
like; the registry (`Toolstack` in `crates/sched`) for those of the schedulers.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from vcpulab.hypervisors.xen import KEPT_AT_BOOT
from vcpulab.scenario.catalogue import generation_of

_TRUE = ("", "1", "yes", "on", "true", "enable")
_FALSE = ("0", "no", "off", "false", "disable")
_RANGE = re.compile(r"an integer from (-?\d+) to (-?\d+)")
GOVERNORS = ("performance", "powersave", "ondemand")
"""Those that a scenario knows."""
_GRANULARITIES = ("cpu", "core", "socket")
_OF_CPUS = ("smt", "maxcpus", "nosmp", "numa", "dom0_max_vcpus", "dom0_vcpus_pin", "dom0_nodes", "cpufreq")
"""What else decides where and how fast vCPUs run, and shows in listings or in no field of a scenario."""


@dataclass(frozen=True)
class Options:
    """What a command line says of scheduling."""

    params: dict[str, tuple[int | str, str]] = field(default_factory=dict)
    """The scheduler's global parameters, each with the option that sets it."""
    granularity: str | None = None
    """`sched-gran`."""
    others: dict[str, str] = field(default_factory=dict)
    """What it says besides of CPUs, by option, as written."""
    ignored: list[str] = field(default_factory=list)
    """Options of the scheduler with values that it does not take, and what it takes."""


def read_options(line: str, scheduler: str, generation: str | None = None) -> Options:
    """What a command line says, of an option that is given twice the last.

    Args:
        line: it.
        scheduler: whose options are looked for.
        generation: its release; `None`: the default.

    Examples:
        >>> read_options("sched=credit2 credit2_runqueue=core smt=0 loglvl=all", "credit2").params
        {'runqueue': ('core', 'credit2_runqueue=core')}
        >>> read_options("no-smt sched-gran=core", "credit").others
        {'smt': 'no-smt'}
    """
    given = _given(line)
    found = Options(granularity=_granularity(given))
    known = generation_of(scheduler, generation)
    if known is not None:
        allowed = {param["name"]: param["allowed"] for param in known["params"] if param["scope"] == "global"}
        for name, option in _names(known["toolstack"]["set"]).items():
            if name in allowed and option in given:
                text, word = given[option]
                value = _value(text, allowed[name])
                if value is None:
                    found.ignored.append(f"{word}: allowed: {allowed[name]}")
                else:
                    found.params[name] = value, word
    found.others.update({option: given[option][1] for option in _OF_CPUS if option in given})
    return found


def _given(line: str) -> dict[str, tuple[str, str]]:
    """By option: its value and how it is written."""
    found: dict[str, tuple[str, str]] = {}
    for word in line.split():
        name, sign, value = word.partition("=")
        if not sign and name.startswith("no-"):
            name, value = name.removeprefix("no-"), "0"
        found[name] = value, word
    return found


def _names(ways: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """By parameter: the option of the command line that sets it."""
    at_boot = {name: way["name"] for name, way in ways.items() if way["by"] == "boot"}
    return at_boot | {name: option for name, option in KEPT_AT_BOOT.items() if name in ways}


def _value(text: str, allowed: str) -> int | str | None:
    """A value as a scenario has it, if the parameter takes it.

    Examples:
        >>> _value("on", "0 or 1"), _value("core", "one of core, all"), _value("9", "0 or an integer from 10 to 20")
        (1, 'core', None)
    """
    if allowed.startswith("one of "):
        return text if text in allowed.removeprefix("one of ").split(", ") else None
    if text in _TRUE or text in _FALSE:
        number = int(text in _TRUE)
    elif re.fullmatch(r"-?(0x[0-9a-fA-F]{1,8}|[1-9]\d{0,9})", text):
        number = int(text, 0)
    else:
        return None
    return number if takes(number, allowed) else None


def takes(number: int, allowed: str) -> bool:
    """Does a parameter take a number? `allowed`: as the registry describes it.

    Examples:
        >>> takes(0, "0 or an integer from 10 to 20"), takes(9, "an integer from 10 to 20"), takes(1, "0 or 1")
        (True, False, True)
    """
    low, high = (int(one) for one in match.groups()) if (match := _RANGE.search(allowed)) else (0, 1)
    return low <= number <= high or (number == 0 and allowed.startswith("0 or "))


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
    match = re.fullmatch(r"dom0_max_vcpus=(\d{0,4})(-?)(\d{0,4})", options.others.get("dom0_max_vcpus", ""))
    if match is None or not (match[1] or match[3]):
        return pcpus
    if not match[2]:
        return max(1, int(match[1]))
    return max(int(match[1] or 1), min(pcpus, int(match[3] or pcpus)))


def is_pinned(options: Options) -> bool:
    """Is each of Dom0's vCPUs pinned to the pCPU of its number (`dom0_vcpus_pin`)?"""
    text = options.others.get("dom0_vcpus_pin")
    return text is not None and not text.startswith("no-") and text.partition("=")[2] not in _FALSE


def governor(options: Options) -> str | None:
    """Who chooses frequencies: `cpufreq=xen:GOVERNOR`, before 4.8 `xen,GOVERNOR`; `None`: not said.

    Examples:
        >>> governor(read_options("cpufreq=xen:performance,verbose", "credit2"))
        'performance'
    """
    words = re.split(r"[=:,]", options.others.get("cpufreq", ""))
    return next((word for word in words if word in GOVERNORS), None)
