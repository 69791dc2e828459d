"""What is wrong with a scenario, as data."""

from typing import TypedDict


class Problem(TypedDict):
    """One thing wrong with a scenario; `None` where unknown."""

    file: str
    line: int | None
    column: int | None
    field: str | None
    found: str | None
    allowed: str | None
    hint: str | None
    message: str
