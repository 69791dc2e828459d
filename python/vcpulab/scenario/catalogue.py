"""The contents of this installation: schedulers, hardware profiles, the format of scenario files."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from vcpulab import _engine
from vcpulab.scenario.parameters import Generation, RegisteredScheduler, Scope


@dataclass(frozen=True)
class Constant:
    """A constant of a hardware profile."""

    name: str
    doc: str
    value: int
    kind: Literal["measured", "derived", "assumed"]
    """The kind of evidence for the value."""
    source: str
    """The source of the value."""
    min: int | None = None
    """Least value that a profile may have; `None`: not listed."""
    max: int | None = None
    """Greatest value that a profile may have; `None`: not listed."""


@dataclass(frozen=True)
class Profile:
    """A hardware profile: the costs of a machine."""

    name: str
    doc: str
    pcpus: Constant
    """The number of pCPUs of a host that states none."""
    constants: Mapping[str, Constant]
    """The constants, by name."""

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "Profile":
        """The profile as the engine lists it."""
        pcpus = Constant("pcpus", "Number of pCPUs.", **data["pcpus"])
        constants = {constant["name"]: Constant(**constant) for constant in data["constants"]}
        return cls(data["name"], data["doc"], pcpus, constants)


def build_info() -> dict[str, str]:
    """The build of the engine: version, profile, architecture, system.

    Examples:
        >>> sorted(build_info())
        ['architecture', 'profile', 'system', 'version']
    """
    return _engine.build_info()


@cache
def schedulers() -> tuple[RegisteredScheduler, ...]:
    """Every scheduler: name, doc and generations, each with the releases that have it and its parameters.

    Examples:
        >>> "credit" in [scheduler.name for scheduler in schedulers()]
        True
    """
    return tuple(map(RegisteredScheduler.from_data, json.loads(_engine.schedulers())))


def generation_of(name: str, generation: str | None = None) -> Generation | None:
    """A scheduler's generation with its parameters, as a release has it; `None`: there is none.

    Without a release the default. Policies that are not built in are there as soon as a scenario names them.

    Examples:
        >>> generation_of("credit").name
        'xen4.17'
    """
    generation_name = _engine.generation_of(name, generation)
    for scheduler in schedulers():
        if scheduler.name == name:
            return next((entry for entry in scheduler.generations if entry.name == generation_name), None)
    declared = _engine.declared(name, generation)
    return None if declared is None else RegisteredScheduler.from_data(json.loads(declared)).generations[0]


@cache
def param_names(scope: Scope) -> frozenset[str]:
    """The parameters that any built-in scheduler has, `global` or of a `domain`."""
    generations = (generation for scheduler in schedulers() for generation in scheduler.generations)
    return frozenset(name for generation in generations for name in generation.of_scope(scope))


@cache
def profiles() -> tuple[Profile, ...]:
    """Every hardware profile: name, doc, and constants with their values, kinds of evidence and sources.

    Examples:
        >>> "exact" in [profile.name for profile in profiles()]
        True
    """
    return tuple(map(Profile.from_data, json.loads(_engine.profiles())))


def schema() -> dict[str, Any]:
    """The JSON schema of scenario files.

    Examples:
        >>> schema()["title"]
        'vcpulab scenario'
    """
    document: dict[str, Any] = json.loads(_engine.schema())
    return document
