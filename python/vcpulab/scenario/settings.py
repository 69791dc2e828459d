"""Settings as people type them: `PATH=VALUE`, with paths as in a scenario file.

A path may begin with the name of a domain or client instead of `domain.` or `client.`, and a pattern such as `batch*`
stands for every name that matches it. Who sets another scheduler need not take away the old one's parameters: they are
left out, and named.
"""

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import tomli_w

from vcpulab import _engine
from vcpulab.errors import RequestError, ScenarioError
from vcpulab.scenario.names import did_you_mean, is_pattern, listed, matching
from vcpulab.scenario.names import in_short as names_in_short
from vcpulab.scenario.problems import Problem
from vcpulab.scenario.scenario import ChangeError, Scenario, checked_path, join, split

NAMED = ("domain", "client", "pool", "nic", "disk", "client_machine")
"""The tables of a scenario whose entries have names of the user's."""


COUNT = "count"
"""The field of a domain that says how many like it there are."""


class Changed(NamedTuple):
    """A scenario with other settings."""

    scenario: Scenario
    changes: dict[str, Any]
    """Full path to value, as `Scenario.change` takes them; `None`: back to its default."""
    left_out: list[str]
    """Paths of parameters that the new scheduler does not have, and of what a reboot decides anew."""


def apply(scenario: Scenario, words: Iterable[str], field: str = "changes") -> Changed:
    """The scenario with these settings.

    Args:
        scenario: what to change.
        words: `PATH=VALUE`; a value is TOML, or the words as they stand; no value: back to the default. What a pattern
            sets, a later word may set otherwise.
        field: the argument that they were given to, for messages.

    Raises:
        RequestError: a setting cannot be understood, or makes no valid scenario.

    Examples:
        >>> changed = apply(Scenario.starter(), ["web.weight=512", "host.scheduler=credit2"])
        >>> changed.changes
        {'domain.web.weight': 512, 'host.scheduler': 'credit2'}
    """
    changes: dict[str, Any] = {}
    words_by_path: dict[str, str] = {}
    by_pattern: set[str] = set()
    document = scenario.to_dict()
    for word in words:
        given, equals, text = word.partition("=")
        if not equals or not given.strip():
            raise RequestError(field=field, found=word, allowed="PATH=VALUE, such as domain.web.weight=512")
        paths = resolve_all(scenario, given.strip(), field, document)
        for path in paths:
            if path in changes and path not in by_pattern:
                raise RequestError(f"`{path}` is set twice", field=field, found=word)
            if is_pattern(given) or len(paths) > 1:
                by_pattern.add(path)
            else:
                by_pattern.discard(path)
            changes[path] = _typed(path, value_of(text.strip()))
            words_by_path[path] = word
    return change(scenario, changes, words_by_path, field)


def change(
    scenario: Scenario,
    changes: Mapping[str, Any],
    words: Mapping[str, str] | None = None,
    field: str | None = None,
) -> Changed:
    """The scenario with these changes, and without parameters that its new schedulers do not have (`left_out`).

    Args:
        scenario: what to change.
        changes: full path to value, as for `Scenario.change`.
        words: path to how it was given, for messages.
        field: the argument that it was given to, for messages.

    Raises:
        RequestError: the result is no valid scenario.
    """
    words = words or {}
    # A default need not be set back.
    present_paths = _paths(scenario.written())
    changes = {path: value for path, value in changes.items() if value is not None or path in present_paths}
    left_out = scenario.left_over(changes)
    try:
        changed = scenario.change(changes)
    except ScenarioError as error:
        raise _refused(scenario, error.problems, words, field) from None
    except ChangeError as error:
        if error.reason is None:
            raise
        given = ", ".join(words.values()) or ", ".join(changes)
        raise RequestError(error.reason, field=field, found=given) from None
    return Changed(changed, dict(changes), left_out)


def _refused(
    scenario: Scenario, problems: Sequence[Problem], words: Mapping[str, str], field: str | None
) -> RequestError:
    """The settings at fault, or the fields where no setting is, each with its problem."""
    templates = {
        (kind, copy): name
        for kind, all_of in scenario.copies().items()
        for name, copies in all_of.items()
        for copy in copies
    }
    # A problem of all copies is one of the table that stands for them.
    in_text = {path: [path] for path in words}
    for path in words:
        kind, name, *rest = [*split(path), "", ""]
        if (kind, name) in templates:
            in_text[path].append(join([kind, templates[kind, name], *rest[:-2]]))
    errors = []
    for problem in problems:
        path = problem["field"] or ""
        given = [
            word
            for changed_path, word in words.items()
            if any(path == text_path or path.startswith(f"{text_path}.") for text_path in in_text[changed_path])
        ]
        setting = given[0] if given else path
        hint = problem["hint"] or _scheduler_meant(path, setting.partition("=")[2].strip())
        errors.append(RequestError(problem["message"], field=field if given else None, found=setting, hint=hint))
    # A pattern is at fault once, however many names match it.
    texts = list(dict.fromkeys(map(str, errors)))
    return errors[0] if len(texts) == 1 else RequestError("\n".join(texts))


_SCHEDULER_SYNONYMS = {"eevdf": "linux-eevdf", "cfs": "linux-cfs", "kvm": "linux-eevdf"}
"""Names by which people call schedulers of a KVM host."""


def _scheduler_meant(path: str, word: str) -> str | None:
    """A hint where a scheduler is given by another name."""
    meant = _SCHEDULER_SYNONYMS.get(word.strip('"').lower())
    if meant is None or split(path)[-1:] != ["scheduler"]:
        return None
    return f'did you mean `{meant}`? it is one of a KVM host: host.hypervisor = "kvm"'


def value_of(text: str) -> Any:
    """The value that a word means.

    Examples:
        >>> value_of("512"), value_of("credit2"), value_of("[1, 2]"), value_of("5ms"), value_of("nan"), value_of("")
        (512, 'credit2', [1, 2], '5ms', 'nan', None)
    """
    if not text:
        return None
    try:
        value = json.loads(_engine.tables(f"value = {text}\n"))["value"]
    except ValueError:
        return text
    # A number that is not finite is none that a field takes.
    return text if value is None else value


def _typed(path: str, value: Any) -> Any:
    """The value as its field wants it: pCPUs are text, though one of them, or a list, looks like numbers."""
    steps = split(path)
    if steps[-1] not in _pcpu_sets() and (steps[0], steps[-1]) != ("pool", "pcpus"):
        return value
    if isinstance(value, list):
        return [_typed(path, item) for item in value]
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def expand(scenario: Scenario, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Full path to value: what `apply` makes of words, of a mapping.

    Raises:
        RequestError: nothing has such a name.

    Examples:
        >>> expand(Scenario.starter(), {"*b*.weight": 5})
        {'domain.web.weight': 5, 'domain.batch.weight': 5}
    """
    document = scenario.to_dict()
    return {
        path: value
        for given, value in changes.items()
        for path in resolve_all(scenario, checked_path(given), given, document)
    }


def resolve_all(
    scenario: Scenario, given: str, field: str = "path", document: Mapping[str, Any] | None = None
) -> list[str]:
    """The full paths of the settings that a path with patterns of names stands for; without one, the one of `resolve`.

    Args:
        scenario: what they are settings of.
        given: the path; `batch*.weight` stands for that of every domain whose name matches, and `batch.weight` for
            that of every copy of a `batch` with a `count`.
        field: the argument that it was given to, for messages.
        document: the complete scenario, if it is at hand.

    Raises:
        RequestError: nothing matches.

    Examples:
        >>> resolve_all(Scenario.starter(), "domain.*b*.weight")
        ['domain.web.weight', 'domain.batch.weight']
    """
    document = scenario.to_dict() if document is None else document
    steps = split(given)
    kinds = [steps.pop(0)] if steps and steps[0] in NAMED else list(NAMED)
    pattern, rest = (steps[0], steps[1:]) if steps else ("", [])
    copies = {} if rest == [COUNT] else scenario.copies()
    alike = any(pattern in copies.get(kind, {}) for kind in kinds)
    if not (is_pattern(pattern) or alike) or any(pattern in document.get(kind, {}) for kind in kinds):
        return [resolve(scenario, given, field, document)]
    for kind in kinds:
        names = copies.get(kind, {}).get(pattern) or matching(pattern, document.get(kind, {}))
        # The users of a web server are its client's.
        full = len(kinds) == 1 or kind != "domain" or not rest or rest[0] not in _fields("Client") - _fields("Domain")
        if names:
            return [
                join([kind, name, *rest]) if full else resolve(scenario, join([name, *rest]), field, document)
                for name in names
            ]
    candidates = [name for kind in kinds for name in document.get(kind, {})]
    raise RequestError(
        f"nothing matches `{pattern}`",
        field=field,
        found=given,
        allowed=", ".join(listed(candidates)) or "none, the scenario has none",
        hint=did_you_mean(pattern, candidates),
    )


def resolve(scenario: Scenario, given: str, field: str = "path", document: Mapping[str, Any] | None = None) -> str:
    """The full path of a setting.

    Args:
        scenario: what it is a setting of.
        given: the path; `web.weight` may stand for `domain.web.weight`, and `web.users` for `client.X.users` where one
            client, X, asks that domain.
        field: the argument that it was given to, for messages.
        document: the complete scenario, if it is at hand.

    Raises:
        RequestError: nothing or more than one thing has that name.

    Examples:
        >>> resolve(Scenario.starter(), "web.weight")
        'domain.web.weight'
    """
    document = scenario.to_dict() if document is None else document
    steps = split(given)
    if not steps:
        raise RequestError(field=field, found=given, allowed="a path such as domain.web.weight")
    if steps[-1] == COUNT and steps[-2:-1] and steps[-2] in scenario.copies().get("domain", {}):
        return join(["domain", *steps[-2:]])
    first, rest = steps[0], steps[1:]
    if first in NAMED:
        names = list(document.get(first, {}))
        if not rest or rest[0] not in names:
            name = rest[0] if rest else ""
            allowed = _listed(name, names) or "none, the scenario has none"
            hint = did_you_mean(name, names)
            if first == "pool" and len(rest) == len(("name", "field")) and hint is None:
                # The setting makes a new pool; the checks name the fields that it lacks.
                return join(steps)
            raise RequestError(f"there is no {first} `{name}`", field=field, found=given, allowed=allowed, hint=hint)
        return join(steps)
    if first in _engine_fields():
        return join(steps)
    matching_kinds = [kind for kind in NAMED if first in document.get(kind, {})]
    if "domain" in matching_kinds and rest and rest[0] in _fields("Client") - _fields("Domain"):
        asking = [name for name, client in document.get("client", {}).items() if client.get("server") == first]
        if len(asking) == 1:
            return join(["client", asking[0], *rest])
        if len(asking) > 1:
            allowed = f"one of {', '.join(asking)}"
            raise RequestError(f"`{first}` has several clients", field=field, found=given, allowed=allowed)
    if not matching_kinds:
        candidates = [*(name for kind in NAMED for name in document.get(kind, {})), *_engine_fields()]
        allowed, hint = _listed(first, candidates), did_you_mean(first, candidates)
        raise RequestError(f"there is no `{first}`", field=field, found=given, allowed=allowed, hint=hint)
    if len(matching_kinds) > 1:
        allowed = f"one of {', '.join(join([kind, *steps]) for kind in matching_kinds)}"
        raise RequestError("could mean several paths", field=field, found=given, allowed=allowed)
    return join([matching_kinds[0], *steps])


def _listed(word: str, names: Sequence[str]) -> str:
    """The names, numbered ones in short; the nearest ones and the first if there are many."""
    rows = listed(names)
    if len(rows) <= _LISTED_MAX:
        return ", ".join(rows)
    near = difflib.get_close_matches(word, names, n=3, cutoff=0.7)
    first = [name for name in rows if name not in near][: _LISTED_MAX - len(near)]
    return ", ".join([*near, *first, "…"])


_LISTED_MAX = 8


@cache
def _engine_fields() -> list[str]:
    return [name for name in json.loads(_engine.schema())["properties"] if name not in NAMED]


@cache
def _pcpu_sets() -> set[str]:
    """The fields that hold sets of pCPUs; the number of pCPUs of a host is none."""
    fields = json.loads(_engine.schema())["$defs"]["Domain"]["properties"]
    return {name for name, field in fields.items() if "pcpu-set" in json.dumps(field)}


@cache
def _fields(thing: str) -> set[str]:
    """The fields of a kind of table, whichever of its forms it has."""
    definition = json.loads(_engine.schema())["$defs"][thing]
    forms = [definition, *definition.get("oneOf", ()), *definition.get("anyOf", ())]
    return {field for form in forms for field in form.get("properties", ())}


def _paths(document: Mapping[str, Any], before: Sequence[str] = ()) -> set[str]:
    """The paths of all values in a document."""
    paths: set[str] = set()
    for name, value in document.items():
        steps = [*before, name]
        paths.add(join(steps))
        if isinstance(value, Mapping):
            paths |= _paths(value, steps)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                paths.add(join([*steps, str(index)]))
                if isinstance(item, Mapping):
                    paths |= _paths(item, [*steps, str(index)])
    return paths


def in_short(changes: Mapping[str, Any]) -> Iterator[str]:
    """Settings in words, those of the same value for several things as one.

    Examples:
        >>> list(in_short({f"domain.batch{number}.weight": 128 for number in (1, 2, 3)}))
        ['domain.batch1 to batch3: weight = 128']
    """
    by_value: dict[tuple[str, str], list[str]] = {}
    for path, value in changes.items():
        *where, field = split(path)
        by_value.setdefault((field, _toml(value)), []).append(join(where))
    for (field, value), things in by_value.items():
        if len(things) == 1:
            yield f"{things[0]}.{field} = {value}"
            continue
        kinds = {thing.partition(".")[0] for thing in things}
        kind = f"{kinds.pop()}." if len(kinds) == 1 else ""
        yield f"{kind}{names_in_short([thing.removeprefix(kind) for thing in things])}: {field} = {value}"


def _toml(value: object) -> str:
    """A value as a scenario file has it."""
    return "its default" if value is None else tomli_w.dumps({"v": value}).removeprefix("v = ").rstrip("\n")
