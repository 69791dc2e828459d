"""Settings as people type them: `PATH=VALUE`, with paths as in `Scenario.change`."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import tomli_w

from vcpulab import _engine
from vcpulab.errors import ChangeError, RequestError, ScenarioError
from vcpulab.scenario.catalogue import schema
from vcpulab.scenario.names import grouped
from vcpulab.scenario.names import in_short as names_in_short
from vcpulab.scenario.scenario import Changed, Scenario, join, split

COUNT = "count"
"""The field with the number of copies of a domain."""


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
    given = list(words)
    changes: list[tuple[str, Any]] = []
    for word in given:
        path, equals, text = word.partition("=")
        if not equals or not split(path.strip()):
            raise RequestError(field=field, found=word, allowed="PATH=VALUE, such as domain.web.weight=512")
        changes.append((path.strip(), value_of(text.strip(), path.strip())))
    return _changed(scenario, changes, given, field, new_names=False)


def change(
    scenario: Scenario,
    changes: Mapping[str, Any],
    words: Mapping[str, str] | None = None,
    field: str | None = None,
    *,
    new_names: bool = True,
) -> Changed:
    """The scenario with these changes, and without parameters that its new schedulers do not have (`left_out`).

    Args:
        scenario: what to change.
        changes: path to value, as for `Scenario.change`.
        words: path to how it was given, for messages.
        field: the argument that it was given to, for messages.
        new_names: whether a full path may add a table.

    Raises:
        RequestError: the result is no valid scenario.
    """
    given = [(words or {}).get(path) for path in changes]
    return _changed(scenario, list(changes.items()), given, field, new_names=new_names)


def _changed(
    scenario: Scenario,
    changes: Sequence[tuple[str, Any]],
    words: Sequence[str | None],
    field: str | None,
    *,
    new_names: bool,
) -> Changed:
    """The changed scenario; `words` are the changes as they were given, for messages."""
    try:
        return scenario.changed(changes, new_names=new_names)
    except ScenarioError as error:
        raise _refused(error, words, field) from None
    except ChangeError as error:
        if error.reason is not None:
            given = [path for path, _ in changes] if not any(words) else list(filter(None, words))
            error.set_value(", ".join(given) if error.edit is None else words[error.edit] or error.found)
            error.field = field
        raise


def _refused(error: ScenarioError, words: Sequence[str | None], field: str | None) -> RequestError:
    """The settings at fault, or the fields where no setting is, each with its problem."""
    errors = []
    for problem, edit in zip(error.problems, error.edits, strict=True):
        path = problem["field"] or ""
        word = None if edit is None else words[edit]
        hint = problem["hint"] or _scheduler_meant(path, (word or path).partition("=")[2].strip())
        given_to = field if word else None
        errors.append(RequestError(problem["message"], field=given_to, found=word or path, hint=hint))
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
    return f'did you mean `{meant}`? it is a scheduler of KVM hosts: host.hypervisor = "kvm"'


def value_of(text: str, path: str = "") -> Any:
    """The value that a word means for the setting at a path: of a text field such as a release, the word itself.

    Examples:
        >>> value_of("512"), value_of("credit2"), value_of("[1, 2]"), value_of("5ms"), value_of("nan"), value_of("")
        (512, 'credit2', [1, 2], '5ms', 'nan', None)
        >>> value_of("6.10", "host.generation"), value_of("6.10", "web.rate")
        ('6.10', 6.1)
    """
    if not text:
        return None
    try:
        value = json.loads(_engine.tables(f"value = {text}\n"))["value"]
    except ValueError:
        return text
    # A number that is not finite is none that a field takes.
    return text if value is None or (isinstance(value, float) and _is_text_field(path)) else value


def _is_text_field(path: str) -> bool:
    """Whether the last step of a path names a field that holds plain text wherever the schema has it."""
    name = path.rpartition(".")[2]
    tables = schema()["$defs"].values()
    fields = [table["properties"][name] for table in tables if name in table.get("properties", {})]
    return bool(fields) and all(field.get("type") == "string" and "format" not in field for field in fields)


def resolve_all(scenario: Scenario, path: str, field: str = "path") -> list[str]:
    """The full paths of the settings that a path means: one, or one for each name that a pattern matches.

    Args:
        scenario: the scenario that has the settings.
        path: the path. `web.weight` may stand for `domain.web.weight`, and `web.users` for `client.X.users` where one
            client, X, asks that domain; `batch*.weight` stands for that of every domain whose name matches, and
            `batch.weight` for that of every copy of a `batch` with a `count`.
        field: the argument that it was given to, for messages.

    Raises:
        RequestError: no or several things have that name.

    Examples:
        >>> resolve_all(Scenario.starter(), "*b*.weight")
        ['domain.web.weight', 'domain.batch.weight']
    """
    try:
        return scenario.addressed(path)
    except ChangeError as error:
        error.field = field
        raise


def resolve(scenario: Scenario, path: str, field: str = "path") -> str:
    """The full path of a single setting.

    Raises:
        RequestError: no or several things have that name.

    Examples:
        >>> resolve(Scenario.starter(), "web.weight")
        'domain.web.weight'
    """
    paths = resolve_all(scenario, path, field)
    if len(paths) > 1:
        raise RequestError("means several settings", field=field, found=path, allowed=f"one of {', '.join(paths)}")
    return paths[0]


def in_short(changes: Mapping[str, Any]) -> Iterator[str]:
    """Settings in words, those of the same value for several things as one.

    Examples:
        >>> list(in_short({f"domain.batch{number}.weight": 128 for number in (1, 2, 3)}))
        ['domain.batch1 to batch3: weight = 128']
        >>> list(in_short({"seed": 7, "host.scheduler": "credit2"}))
        ['seed = 7', 'host.scheduler = "credit2"']
        >>> list(in_short({"domain.web.affinity": ["3", "11"]}))
        ['domain.web.affinity = ["3", "11"]']
    """
    for (field, value), paths in grouped(changes, lambda path: (split(path)[-1], _toml(changes[path]))).items():
        things = [join(split(path)[:-1]) for path in paths]
        if len(things) == 1:
            yield f"{join(split(paths[0]))} = {value}"
            continue
        kinds = {thing.partition(".")[0] for thing in things}
        kind = f"{kinds.pop()}." if len(kinds) == 1 else ""
        yield f"{kind}{names_in_short([thing.removeprefix(kind) for thing in things])}: {field} = {value}"


def _toml(value: object) -> str:
    """A value as a scenario file has it."""
    if value is None:
        return "its default"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return tomli_w.dumps({"v": value}).removeprefix("v = ").rstrip("\n")
