"""The problems of a scenario, as data."""

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from vcpulab.errors import ScenarioError
from vcpulab.scenario.names import grouped

_SIMILAR_SHOWN = 3
"""The number of problems with the same message from which on only the first is shown."""


class Problem(TypedDict):
    """A problem of a scenario; a field that is unknown is `None`."""

    file: str
    line: int | None
    column: int | None
    field: str | None
    found: str | None
    allowed: str | None
    hint: str | None
    message: str


def in_short(problems: Iterable[Problem], *, full: bool = False) -> Iterator[str]:
    """A line for each problem; unless `full`, a problem of many domains is shown once."""
    for first, *rest in grouped(problems, lambda problem: problem["message"]).values():
        if len(rest) >= _SIMILAR_SHOWN and not full:
            yield f"{line_of(first)}\n  and in {len(rest)} more places"
        else:
            yield from map(line_of, (first, *rest))


def line_of(problem: Problem) -> str:
    """A problem in one line: place, message, and the hint below."""
    place = problem["file"]
    if problem["line"] is not None:
        place += f":{problem['line']}:{problem['column']}"
    if problem["field"] is not None:
        place += f": {problem['field']}"
    hint = f"\n  hint: {problem['hint']}" if problem["hint"] else ""
    return f"{place}: {problem['message']}{hint}"


def without_lines(problems: Sequence[Problem], files: Mapping[str, Sequence[Path]]) -> ScenarioError:
    """The error for a generated scenario: each problem names its listings instead of a line.

    Args:
        problems: the problems.
        files: the listings by domain; the empty name has those of the host, and of domains that no listing names.
    """
    placed: list[Problem] = []
    texts = []
    for problem in problems:
        sources = files.get(_domain_of(problem["field"] or ""), files.get("", ()))
        file = ", ".join(dict.fromkeys(map(str, sources)))
        placed.append({**problem, "file": file, "line": None, "column": None})
        parts = [part for part in (file, problem["field"], problem["message"]) if part]
        texts.append(": ".join(parts) + (f"\n  hint: {problem['hint']}" if problem["hint"] else ""))
    error = ScenarioError("\n".join(texts))
    error.problems = placed
    return error


def _domain_of(field: str) -> str:
    """The domain of a field's path; empty: it is of no domain.

    Examples:
        >>> _domain_of("domain.web.cap"), _domain_of('domain."a.b".cap'), _domain_of("host.pcpus")
        ('web', 'a.b', '')
    """
    try:
        table = tomllib.loads(f"{field} = 0")
    except tomllib.TOMLDecodeError:
        return ""
    domains = table.get("domain")
    return next(iter(domains), "") if isinstance(domains, dict) else ""
