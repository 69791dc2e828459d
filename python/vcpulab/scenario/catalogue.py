"""The contents of this installation: schedulers, hardware profiles, the format of scenario files."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from vcpulab import _engine

# Listing them takes milliseconds, and they are asked for often. (As text: who asks may change what he is given.)
_schedulers = cache(_engine.schedulers)
_profiles = cache(_engine.profiles)


def build_info() -> dict[str, str]:
    """The build of the engine: version, profile, architecture, system.

    Examples:
        >>> sorted(build_info())
        ['architecture', 'profile', 'system', 'version']
    """
    return _engine.build_info()


def schedulers() -> list[dict[str, Any]]:
    """Every scheduler: name, doc and generations, each with the releases that have it and its parameters.

    Examples:
        >>> "credit" in [scheduler["name"] for scheduler in schedulers()]
        True
    """
    listed: list[dict[str, Any]] = json.loads(_schedulers())
    return listed


def generation_of(name: str, generation: str | None = None) -> Mapping[str, Any] | None:
    """A scheduler's generation with its parameters, as a release has it; `None`: there is none.

    Without a release the default. Policies that are not built in are there as soon as a scenario names them.

    Examples:
        >>> generation_of("credit")["name"]
        'xen4.17'
    """
    generation_name = _engine.generation_of(name, generation)
    for policy in schedulers():
        if policy["name"] == name:
            return next((entry for entry in policy["generations"] if entry["name"] == generation_name), None)
    declared = _engine.declared(name, generation)
    only: Mapping[str, Any] | None = None if declared is None else json.loads(declared)["generations"][0]
    return only


@cache
def param_names(scope: str) -> frozenset[str]:
    """The parameters that any built-in scheduler has, `global` or of a `domain`."""
    generations = [generation for policy in schedulers() for generation in policy["generations"]]
    params = [param for generation in generations for param in generation["params"]]
    return frozenset(param["name"] for param in params if param["scope"] == scope)


def profiles() -> list[dict[str, Any]]:
    """Every hardware profile: name, doc, and constants.

    Each constant has its value, how it is known (`kind`: measured, derived or assumed), and the source.

    Examples:
        >>> "exact" in [profile["name"] for profile in profiles()]
        True
    """
    listed: list[dict[str, Any]] = json.loads(_profiles())
    return listed


def schema() -> dict[str, Any]:
    """The JSON schema of scenario files.

    Examples:
        >>> schema()["title"]
        'vcpulab scenario'
    """
    document: dict[str, Any] = json.loads(_engine.schema())
    return document
