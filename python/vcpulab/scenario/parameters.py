"""The registry of schedulers as types: generations, their parameters, and the tools that set these on a real host."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Scope = Literal["global", "domain"]
"""The owner of a parameter's value: the scheduler as a whole, or each domain."""


@dataclass(frozen=True)
class Role:
    """The meaning of a parameter's value for the CPU time of domains."""

    name: str
    """Such as `weight`, `cap-percent`, `reserved-time`, `extra-time`."""
    unit_ns: int | None = None
    """Unit of a `reserved-time` and a `reserved-period`; `None`: another role."""
    by_default: bool | None = None
    """Whether a domain has `extra-time` where time and period are given and this is left out; `None`: another role."""
    part: str | None = None
    """The part of a domain that a `group-quota` or `group-period` limits; `None`: another role."""


@dataclass(frozen=True)
class Param:
    """A parameter of a scheduler's generation."""

    name: str
    scope: Scope
    role: Role | None
    """Meaning of its value for the CPU time of domains; `None`: no meaning of its own."""
    unit: str
    """Unit of its values in words; empty: a plain number."""
    kind: Literal["int", "flag", "choice", "timetable"]
    """`flag`: 0 or 1; `choice`: one of its words."""
    allowed: str
    """The values that it takes, in words for people."""
    default: int | str | None
    """The value that a file without it has; `None`: no value has the same meaning."""
    doc: str
    min: int = 0
    """Least value in the range of an `int`."""
    max: int = 0
    """Greatest value in the range of an `int`."""
    also: tuple[int, ...] = ()
    """Values outside the range that an `int` takes too."""
    choices: tuple[str, ...] = ()
    """Words of a `choice`."""

    def accepts(self, value: int | str) -> bool:
        """Does the parameter take a value?

        Examples:
            >>> from vcpulab.scenario.catalogue import generation_of
            >>> params = generation_of("credit2").of_scope("global")
            >>> [params["ratelimit_us"].accepts(value) for value in (0, 50, 100)]
            [True, False, True]
            >>> params["runqueue"].accepts("core"), params["smt_power_savings"].accepts(2)
            (True, False)
        """
        match self.kind:
            case "int":
                return isinstance(value, int) and (self.min <= value <= self.max or value in self.also)
            case "flag":
                return value in (0, 1)
            case "choice":
                return value in self.choices
            case "timetable":
                return False

    def has_role(self, name: str) -> bool:
        """Does the parameter's value have a meaning for the CPU time of domains?

        Examples:
            >>> from vcpulab.scenario.catalogue import generation_of
            >>> [param.name for param in generation_of("credit").params if param.has_role("cap-percent")]
            ['cap']
        """
        return self.role is not None and self.role.name == name


@dataclass(frozen=True)
class Setter:
    """The way in which a parameter is set on a real host."""

    by: Literal["option", "place", "boot", "host"]
    """By an option of a command, by its place there, by an option at boot, or by a file of the host."""
    name: str = ""
    """The option, or the file; empty: by its place."""
    unit: int = 1
    """The number of the parameter's units in a unit of the command."""
    always: bool = False
    """Whether the command always takes the parameter, also where it does not change."""


@dataclass(frozen=True)
class Tools:
    """The tools that set the parameters of a scheduler's generation on a real host."""

    tool: str
    """The command of the toolstack, such as `xl`; empty: no hypervisor has the generation."""
    sched: str = ""
    """The scheduler's name for the option `sched` at boot; empty: it cannot be chosen there."""
    domain: str = ""
    """The words of the command that sets parameters of a domain `DOM`; empty: none does."""
    whole: str = ""
    """The words of the command that sets global parameters; empty: none does."""
    setters: Mapping[str, Setter] = field(default_factory=dict)
    """Parameter to the way in which it is set; parameters that cannot be set are absent."""

    def unit_of(self, name: str) -> int:
        """The number of a parameter's units in a unit of its command."""
        return self.setters[name].unit if name in self.setters else 1


@dataclass(frozen=True)
class Generation:
    """A scheduler as some releases have it."""

    name: str
    releases: tuple[str, ...]
    """The releases that have it, in words."""
    default: bool
    """Whether it is the generation of a scenario that names none."""
    work_conserving: bool
    tools: Tools
    params: tuple[Param, ...]

    def of_scope(self, scope: Scope) -> dict[str, Param]:
        """The parameters of a scope, by name."""
        return {param.name: param for param in self.params if param.scope == scope}

    @property
    def defaults(self) -> dict[str, int | str | None]:
        """The defaults of all parameters, by name."""
        return {param.name: param.default for param in self.params}


@dataclass(frozen=True)
class RegisteredScheduler:
    """A scheduler with its generations."""

    name: str
    doc: str
    generations: tuple[Generation, ...]

    @property
    def default(self) -> Generation:
        """The generation of a scenario that names none."""
        return next(generation for generation in self.generations if generation.default)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "RegisteredScheduler":
        """The scheduler as the engine lists it."""
        return cls(data["name"], data["doc"], tuple(map(_generation, data["generations"])))


def _generation(data: Mapping[str, Any]) -> Generation:
    fields = {**data, "releases": tuple(data["releases"]), "params": tuple(map(_param, data["params"]))}
    tools = fields.pop("toolstack")
    setters = {name: Setter(**way) for name, way in tools["set"].items()}
    return Generation(**fields, tools=Tools(tools["tool"], tools["sched"], tools["domain"], tools["global"], setters))


def _param(data: Mapping[str, Any]) -> Param:
    lists = {name: tuple(data[name]) for name in ("also", "choices") if name in data}
    role = None if data["role"] is None else Role(**data["role"])
    return Param(**{**data, **lists, "role": role})
