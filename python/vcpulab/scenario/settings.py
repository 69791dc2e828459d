"""Settings as people type them: `PATH=VALUE`, with paths as in a scenario file.

A path may begin with the name of a domain or client instead of `domain.` or `client.`. Who sets another scheduler need
not take away the old one's parameters: they are left out, and named.
"""

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from vcpulab import _engine
from vcpulab.errors import RequestError, ScenarioError
from vcpulab.scenario.catalogue import schedulers
from vcpulab.scenario.problems import Problem
from vcpulab.scenario.scenario import Scenario, join, split

NAMED = ("domain", "client", "pool", "nic", "disk", "client_machine")
"""The tables of a scenario whose entries have names of the user's."""


class Changed(NamedTuple):
    """A scenario with other settings."""

    scenario: Scenario
    changes: dict[str, Any]
    """Full path to value, as `Scenario.change` takes them; `None`: back to its default."""
    left_out: list[str]
    """Paths of parameters that the new scheduler does not have."""


def apply(scenario: Scenario, words: Iterable[str], option: str = "--set") -> Changed:
    """The scenario with these settings.

    Args:
        scenario: what to change.
        words: `PATH=VALUE`; a value is TOML, or the words as they stand; no value: back to the default.
        option: what they were given to, for messages.

    Raises:
        RequestError: a setting cannot be understood, or makes no valid scenario.

    Examples:
        >>> changed = apply(Scenario.starter(), ["web.weight=512", "host.scheduler=credit2"])
        >>> changed.changes
        {'domain.web.weight': 512, 'host.scheduler': 'credit2'}
    """
    changes: dict[str, Any] = {}
    words_by_path: dict[str, str] = {}
    document = scenario.to_dict()
    for word in words:
        given, equals, text = word.partition("=")
        if not equals or not given.strip():
            raise RequestError(f"{option}: found `{word}`; allowed: PATH=VALUE, such as domain.web.weight=512")
        path = resolve(scenario, given.strip(), f"{option} {word}", document)
        if path in changes:
            raise RequestError(f"{option} {word}: `{path}` is set twice")
        changes[path] = value_of(text.strip())
        words_by_path[path] = word
    return change(scenario, changes, {path: f"{option} {word}" for path, word in words_by_path.items()})


def change(scenario: Scenario, changes: Mapping[str, Any], words: Mapping[str, str] | None = None) -> Changed:
    """The scenario with these changes, and without parameters that its new schedulers do not have.

    Args:
        scenario: what to change.
        changes: full path to value, as for `Scenario.change`.
        words: path to how it was given, for messages.

    Raises:
        RequestError: the result is no valid scenario.
    """
    words = words or {}
    # A default need not be set back.
    there = _paths(scenario.written())
    changes = {path: value for path, value in changes.items() if value is not None or path in there}
    left_out = _foreign(scenario, changes)
    try:
        changed = scenario.change({**dict.fromkeys(left_out), **changes})
    except ScenarioError as error:
        raise RequestError("\n".join(_blamed(problem, words) for problem in error.problems)) from None
    except KeyError as error:
        given = ", ".join(words.values()) or ", ".join(changes)
        raise RequestError(f"{given}: {error.args[0]}") from None
    return Changed(changed, dict(changes), left_out)


def _blamed(problem: Problem, words: Mapping[str, str]) -> str:
    """What is wrong, with the setting that is at fault if one is."""
    field = problem["field"] or ""
    hint = f"\n  hint: {problem['hint']}" if problem["hint"] else ""
    given = [word for path, word in words.items() if path == field or field.startswith(f"{path}.")]
    return f"{given[0] if given else field}: {problem['message']}{hint}"


def value_of(text: str) -> Any:
    """The value that a word means.

    Examples:
        >>> value_of("512"), value_of("credit2"), value_of("[1, 2]"), value_of("5ms"), value_of("")
        (512, 'credit2', [1, 2], '5ms', None)
    """
    if not text:
        return None
    try:
        return json.loads(_engine.tables(f"value = {text}\n"))["value"]
    except ValueError:
        return text


def resolve(scenario: Scenario, given: str, blame: str, document: Mapping[str, Any] | None = None) -> str:
    """The full path of a setting.

    Args:
        scenario: what it is a setting of.
        given: the path; `web.weight` may stand for `domain.web.weight`, and `web.users` for `client.X.users` where one
            client, X, asks that domain.
        blame: how it was given, for messages.
        document: the complete scenario, if it is at hand.

    Raises:
        RequestError: nothing or more than one thing has that name.

    Examples:
        >>> resolve(Scenario.starter(), "web.weight", "--set")
        'domain.web.weight'
    """
    document = scenario.to_dict() if document is None else document
    steps = split(given)
    if not steps:
        raise RequestError(f"{blame}: found `{given}`; allowed: a path such as domain.web.weight")
    first, rest = steps[0], steps[1:]
    if first in NAMED:
        names = list(document.get(first, {}))
        if not rest or rest[0] not in names:
            raise RequestError(
                f"{blame}: there is no {first} `{rest[0] if rest else ''}`; "
                f"allowed: {_listed(rest[0] if rest else '', names) or 'none, the scenario has none'}"
            )
        return join(steps)
    if first in _engine_fields():
        return join(steps)
    found = [kind for kind in NAMED if first in document.get(kind, {})]
    if "domain" in found and rest and rest[0] in _fields("Client") - _fields("Domain"):
        asking = [name for name, client in document.get("client", {}).items() if client.get("server") == first]
        if len(asking) == 1:
            return join(["client", asking[0], *rest])
        if len(asking) > 1:
            raise RequestError(f"{blame}: `{first}` has several clients; allowed: one of {', '.join(asking)}")
    if not found:
        known = [*_engine_fields(), *(name for kind in NAMED for name in document.get(kind, {}))]
        raise RequestError(f"{blame}: there is no `{first}`; allowed: {_listed(first, known)}")
    if len(found) > 1:
        paths = ", ".join(join([kind, *steps]) for kind in found)
        raise RequestError(f"{blame}: `{given}` could mean {paths}; allowed: one of these")
    return join([found[0], *steps])


def _listed(found: str, names: Sequence[str]) -> str:
    """The names, the nearest ones alone if there are many."""
    if len(names) <= 8:
        return ", ".join(names)
    near = difflib.get_close_matches(found, names, n=3, cutoff=0.5)
    return ", ".join(near or [*names[:8], "…"])


@cache
def _engine_fields() -> list[str]:
    return [name for name in json.loads(_engine.schema())["properties"] if name not in NAMED]


@cache
def _fields(thing: str) -> set[str]:
    """The fields of a kind of table, whichever of its forms it has."""
    definition = json.loads(_engine.schema())["$defs"][thing]
    forms = [definition, *definition.get("oneOf", ()), *definition.get("anyOf", ())]
    return {field for form in forms for field in form.get("properties", ())}


@cache
def _param_names(scope: str) -> set[str]:
    return {
        param["name"]
        for policy in schedulers()
        for generation in policy["generations"]
        for param in generation["params"]
        if param["scope"] == scope
    }


def generation_of(name: str, generation: str | None = None) -> Mapping[str, Any] | None:
    """A scheduler's generation with its parameters, the newest if none is named; `None`: there is none."""
    for policy in schedulers():
        if policy["name"] == name:
            for found in reversed(policy["generations"]):
                if generation in (None, found["name"]):
                    result: Mapping[str, Any] = found
                    return result
    return None


def _foreign(scenario: Scenario, changes: Mapping[str, Any]) -> list[str]:
    """What is written in the scenario for schedulers that it has no more."""
    written = scenario.written()
    left_out: list[str] = []
    pools = {"host": written.get("host", {})}
    pools |= {f"pool.{name}": table for name, table in written.get("pool", {}).items()}
    for where, table in pools.items():
        if not {f"{where}.scheduler", f"{where}.generation"} & set(changes):
            continue
        name = changes.get(f"{where}.scheduler", table.get("scheduler"))
        asked = changes.get(f"{where}.generation")
        if asked is None and name == table.get("scheduler"):
            asked = table.get("generation")
        if asked is None and "generation" in table and name != table.get("scheduler"):
            left_out.append(f"{where}.generation")
        new = generation_of(name, asked)
        if new is None:
            continue
        has = {param["name"] for param in new["params"]}
        gone = {scope: _param_names(scope) - has for scope in ("global", "domain")}
        left_out += [join([*split(where), field]) for field in table if field in gone["global"]]
        pool = None if where == "host" else where.removeprefix("pool.")
        for domain, fields in written.get("domain", {}).items():
            if fields.get("pool") == pool:
                left_out += [join(["domain", domain, field]) for field in fields if field in gone["domain"]]
    return [path for path in left_out if path not in changes]


def _paths(document: Mapping[str, Any], before: Sequence[str] = ()) -> set[str]:
    """Every path that leads to something in a document."""
    found: set[str] = set()
    for name, value in document.items():
        steps = [*before, name]
        found.add(join(steps))
        if isinstance(value, Mapping):
            found |= _paths(value, steps)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                found.add(join([*steps, str(index)]))
                if isinstance(item, Mapping):
                    found |= _paths(item, [*steps, str(index)])
    return found
