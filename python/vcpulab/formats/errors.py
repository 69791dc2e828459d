"""The error for a faulty place of a file."""

from vcpulab.errors import RecordingError


def wrong(file: str, line: int | None, value: object, allowed: str) -> RecordingError:
    """The error for one place of a file; `line` counts from 1."""
    place = file if line is None else f"{file}:{line}"
    shown = str(value)
    shown = shown if len(shown) <= 80 else f"{shown[:80]}…"
    return RecordingError(f"{place}: found `{shown}`; allowed: {allowed}")
