"""Parameters of schedulers: their descriptions in the registry, and whether they take a value."""

from typing import Literal, NotRequired, TypedDict


class Role(TypedDict):
    """The meaning of a parameter's value for the CPU time of domains."""

    name: str
    """Such as `weight`, `cap-percent`, `reserved-time`, `extra-time`."""
    unit_ns: NotRequired[int]
    """Unit of a `reserved-time` and a `reserved-period`."""
    by_default: NotRequired[bool]
    """Whether a domain has `extra-time` where time and period are given and this is left out."""
    part: NotRequired[str]
    """The part of a domain that a `group-quota` or `group-period` limits."""


class Param(TypedDict):
    """A parameter of a scheduler's generation, as `vcpulab.schedulers` describes it."""

    name: str
    scope: Literal["global", "domain"]
    role: Role | None
    """Meaning of its value for the CPU time of domains; `None`: no meaning of its own."""
    unit: str
    """Unit of its values in words; empty: a plain number."""
    kind: Literal["int", "flag", "choice", "timetable"]
    """`flag`: 0 or 1; `choice`: one of its words."""
    min: NotRequired[int]
    """Least value in the range of an `int`."""
    max: NotRequired[int]
    """Greatest value in the range of an `int`."""
    also: NotRequired[list[int]]
    """Values outside the range that an `int` takes too."""
    choices: NotRequired[list[str]]
    """Words of a `choice`."""
    allowed: str
    """The values that it takes, in words for people."""
    default: int | str | None
    """The value that a file without it has; `None`: no value has the same meaning."""
    doc: str


def accepts(param: Param, value: int | str) -> bool:
    """Does a parameter take a value?

    Examples:
        >>> from vcpulab.scenario.catalogue import generation_of
        >>> params = {param["name"]: param for param in generation_of("credit2")["params"]}
        >>> [accepts(params["ratelimit_us"], value) for value in (0, 50, 100)]
        [True, False, True]
        >>> accepts(params["runqueue"], "core"), accepts(params["smt_power_savings"], 2)
        (True, False)
    """
    match param["kind"]:
        case "int":
            return isinstance(value, int) and (param["min"] <= value <= param["max"] or value in param["also"])
        case "flag":
            return value in (0, 1)
        case "choice":
            return value in param["choices"]
        case "timetable":
            return False


def has_role(param: Param, name: str) -> bool:
    """Does a parameter's value have a meaning for the CPU time of domains?

    Examples:
        >>> from vcpulab.scenario.catalogue import generation_of
        >>> [param["name"] for param in generation_of("credit")["params"] if has_role(param, "cap-percent")]
        ['cap']
    """
    return param["role"] is not None and param["role"]["name"] == name
