"""Parameters stated by hand: `PATH=LOW..HIGH`, `PATH=a,b,c`, and patterns of names."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from vcpulab.advice.tuning.spaces import SCHEDULER, Option, Parameter
from vcpulab.errors import RequestError
from vcpulab.hypervisors.limits import takes
from vcpulab.scenario import settings
from vcpulab.scenario.catalogue import generation_of
from vcpulab.scenario.names import is_pattern, matching
from vcpulab.scenario.parameters import Scope
from vcpulab.scenario.scenario import Scenario, join, split
from vcpulab.scenario.table import value_at

OPTIONS_MAX = 32
"""Most values of a range stated by hand."""


class StatedParameter(NamedTuple):
    """A parameter and its values, as the user typed them."""

    path: str
    values: list[Any]
    word: str
    paths: tuple[str, ...]
    """All paths that match a pattern; empty: only `path`."""

    def whole(self, parameter: Parameter) -> Parameter:
        """The parameter for all paths that match the pattern."""
        name = self.word.partition("=")[0].strip()
        return replace(parameter, name=name, paths=self.paths) if self.paths else parameter


def parsed(scenario: Scenario, word: str) -> StatedParameter:
    """The parameter and the values of `PATH=LOW..HIGH` or `PATH=a,b,c`.

    Raises:
        RequestError: the text is malformed, or the matching fields have different values now.
    """
    given, equals, text = word.partition("=")
    if not equals or not given.strip() or not text.strip():
        allowed = "PATH=LOW..HIGH or PATH=a,b,c, such as domain.web.weight=64..1024"
        raise RequestError(field="vary", found=word, allowed=allowed)
    paths = tuple(settings.resolve_all(scenario, given.strip(), "vary"))
    path, several = paths[0], paths if len(paths) > 1 else ()
    present = list(dict.fromkeys(str(scenario.value(field_path)) for field_path in paths))
    if len(present) > 1:
        raise RequestError(f"they have different values, {', '.join(present)}", field="vary", found=word)
    low, dots, high = text.partition("..")
    if dots:
        return StatedParameter(path, _between(low.strip(), high.strip(), word), word, several)
    values = settings.value_of(f"[{text}]")
    if not isinstance(values, list) or any(isinstance(value, float) for value in values):
        values = [settings.value_of(part.strip(), path) for part in text.split(",")]
    if any(value is None for value in values):
        allowed = "PATH=a,b,c, with a value between each two commas"
        raise RequestError(field="vary", found=word, allowed=allowed)
    return StatedParameter(path, values, word, several)


def _between(low_text: str, high_text: str, word: str) -> list[Any]:
    low, high = settings.value_of(low_text), settings.value_of(high_text)
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (low, high))
    if not numbers or not (math.isfinite(low) and math.isfinite(high)) or low >= high:
        allowed = "PATH=LOW..HIGH, two numbers of which the second is greater"
        raise RequestError(field="vary", found=word, allowed=allowed)
    whole = isinstance(low, int) and isinstance(high, int)
    if whole and high - low < OPTIONS_MAX // 2:
        return list(range(low, high + 1))
    steps = OPTIONS_MAX // 2
    if low > 0 and high / low >= 10:
        values = [low * (high / low) ** (step / steps) for step in range(steps + 1)]
    else:
        values = [low + (high - low) * step / steps for step in range(steps + 1)]
    # Values are rounded so that they are easy to type.
    rounded = [low, *(float(f"{value:.2g}") for value in values[1:-1]), high]
    return sorted({min(max(round(value) if whole else value, low), high) for value in rounded})


def check_typed(scenario: Scenario, request: StatedParameter, names: Sequence[str]) -> None:
    """Refuses values that the scheduler's tool does not take.

    Raises:
        RequestError: the tool of a scheduler refuses a value.
    """
    host, (*where, name) = scenario.host, split(request.path)
    if where[:1] not in (["host"], ["domain"]):
        return
    beside = scenario.value(join(where)) or {}
    for scheduler in names:
        generation = generation_of(scheduler, host.generation if scheduler == host.scheduler else None)
        if generation is None or all(param.name != name for param in generation.params):
            continue
        for value in request.values:
            allowed = takes(scheduler, generation.tools, name, value, beside)
            if allowed is not None:
                tool = generation.tools.tool
                raise RequestError(field="vary", found=request.word, allowed=f"{allowed}; {tool} takes no other {name}")


def for_schedulers(
    scenario: Scenario, path: str, values: list[Any], word: str, names: Sequence[str]
) -> Iterator[Parameter]:
    """The parameter stated by hand, one for each scheduler that has it; one alone if no scheduler does."""
    *where, field = split(path)
    scope: Scope = "global" if where == ["host"] else "domain"
    owners: list[str | None] = [
        name
        for name in names
        for generation in [generation_of(name, None)]
        if generation and field in generation.of_scope(scope)
    ]
    present = value_at(scenario.written(), split(path))
    if present is None:
        present = scenario.value(path)
    if present is None and owners:
        generation = generation_of(scenario.host.scheduler, scenario.host.generation)
        defaults = generation.defaults if generation else {}
        if defaults.get(field) is not None:
            present = defaults[field]
    listed = list(dict.fromkeys(values))
    if present is not None and present not in listed:
        listed.append(present)
    if all(isinstance(value, int | float) for value in listed):
        listed.sort()
    # A field without a value now gets the option "as it is".
    options = [Option(str(value), value) for value in listed]
    if present is None:
        options.insert(0, Option("as it is", None))
    now = 0 if present is None else listed.index(present)
    ordered = all(isinstance(value, int | float) for value in listed)
    for option in options:
        _check(scenario, path, option, word, owners)
    for owner in owners or [None]:
        yield Parameter(path, tuple(options), now, ordered, owner)


def _check(scenario: Scenario, path: str, option: Option, word: str, owners: Sequence[str | None]) -> None:
    present = scenario.host.scheduler
    elsewhere = {SCHEDULER: owners[0]} if owners and present not in owners else {}
    settings.change(scenario, {**elsewhere, path: option.value}, {path: word}, "vary")


def pattern_of(scenario: Scenario, word: str) -> str:
    """The pattern of full paths that a path or a pattern stands for, such as `domain.batch*.weight`.

    Raises:
        RequestError: no such field.
    """
    word = word.strip()
    if word == SCHEDULER:
        return word
    if is_pattern(word):
        # `batch*.weight` is a pattern of domains; a pattern of whole paths stays.
        first = split(word)[0]
        return join(["domain", *split(word)]) if matching(first, scenario.domains) and first != "*" else word
    return settings.resolve(scenario, word, "only")
