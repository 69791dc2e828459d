"""The problems of a scenario, as data."""

from collections.abc import Iterable, Iterator
from typing import TypedDict

from vcpulab.scenario.names import grouped

_ALIKE_MOST = 3
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
        if len(rest) >= _ALIKE_MOST and not full:
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
