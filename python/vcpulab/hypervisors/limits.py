"""Values that the simulator allows and Xen's tools refuse.

Sources: the manual pages `xl(1)` of Xen 4.4 and 4.17 (weights, time slice, rate limit), and the messages of libxl 4.12,
`libxl_sched.c` ("Cpu weight out of range, valid values are within range from 1 to 65535", "Cpu cap out of range, valid
range is from 0 to %d for specified number of vcpus", "Ratelimit cannot be greater than timeslice", "VCPU budget must be
smaller than or equal to period"); that a weight of SEDF stands alone is from the help of `xl sched-sedf` ("do not set
with --period/--slice").
"""

from collections.abc import Mapping
from typing import Any

from vcpulab.scenario.parameters import Tools

_SHARED = ("credit", "credit2")
_WHOLE = {
    "weight": (1, 65535),
    "tslice_ms": (1, 1000),
    "ratelimit_us": (100, 500_000),
    "migration_delay_us": (0, 100_000),
}
_ZERO = ("ratelimit_us",)
"""Parameters that may also be 0."""


def takes(scheduler: str, tools: Tools, name: str, value: object, beside: Mapping[str, Any]) -> str | None:
    """The values that a tool allows, for a value that it refuses.

    Args:
        scheduler: the scheduler that has the parameter.
        tools: the tools of its release.
        name: the parameter's name.
        value: the parameter's value.
        beside: the other parameters, and the number of vCPUs if it is given.

    Returns:
        The values allowed, in words; `None`: the tool takes the value, or there is no tool.

    Examples:
        >>> takes("credit", Tools("xl"), "weight", 0, {})
        '1 to 65535'
        >>> takes("credit", Tools("xl"), "cap", 250, {"vcpus": 2})
        '0 to 200 for 2 vCPUs'
    """
    if not tools.tool or not isinstance(value, int):
        return None
    if scheduler in _SHARED:
        return _of_shares(name, value, beside)
    if name == "budget_us" and value > beside.get("period_us", value):
        return f"no more than the period, {beside['period_us']}"
    if scheduler == "sedf" and name == "weight" and any(beside.get(timing) for timing in ("period", "slice")):
        return "a weight without period and slice"
    unit = tools.unit_of(name)
    return f"whole multiples of {unit}" if value % unit else None


def _of_shares(name: str, value: int, beside: Mapping[str, Any]) -> str | None:
    low, high = _WHOLE.get(name, (value, value))
    if name == "cap" and "vcpus" in beside:
        low, high = 0, 100 * beside["vcpus"]
    if name == "tslice_ms":
        # It is not shorter than the rate limit that holds.
        low = max(low, -(-beside.get("ratelimit_us", 0) // 1000))
    allowed = f"{low} to {high}"
    if name == "cap":
        allowed += f" for {beside.get('vcpus')} vCPU{'' if beside.get('vcpus') == 1 else 's'}"
    if name in _ZERO:
        high = min(high, 1000 * beside.get("tslice_ms", high))
        allowed = f"0, or {low} to {high}"
    return None if low <= value <= high or (value == 0 and name in _ZERO) else allowed
