"""The problems of a scenario, as data."""

from typing import TypedDict


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
