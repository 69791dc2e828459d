"""The errors that this package raises for its callers to handle.

Subclasses of `VcpulabError` that only one module raises are defined in that module.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vcpulab.scenario.problems import Problem

__all__ = [
    "ChangeError",
    "EngineError",
    "Interrupted",
    "MissingExtraError",
    "RecordingError",
    "RequestError",
    "ScenarioError",
    "VcpulabError",
]


class VcpulabError(Exception):
    """The base of this package's errors; its text is for people to read."""


class RequestError(VcpulabError, ValueError):
    """An invalid request.

    Its text is ``field: found `FOUND`; allowed: ALLOWED``, or ``field found: REASON; allowed: ALLOWED`` with a reason,
    and a line with the hint; parts that are None are left out.

    Args:
        reason: what is wrong, where "found" does not say it.
        field: the argument, as the function that was called names it; the command line turns it into its option.
        found: the value that was given.
        allowed: the values that may be given.
        hint: what to do instead.

    Examples:
        >>> print(RequestError(field="budget", found="soon", allowed="a time such as 90s"))
        budget: found `soon`; allowed: a time such as 90s
        >>> print(RequestError("there is no domain `mail`", field="apart", found="web,mail", hint="two of `web`, `db`"))
        apart web,mail: there is no domain `mail`
          hint: two of `web`, `db`
    """

    def __init__(
        self,
        reason: str | None = None,
        *,
        field: str | None = None,
        found: object = None,
        allowed: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason, self.field, self.found, self.allowed, self.hint = reason, field, found, allowed, hint

    def set_value(self, value: object) -> None:
        """Sets the value that was given."""
        self.found = value

    def __str__(self) -> str:
        return self.text(self.field)

    def text(self, field: str | None) -> str:
        """The message, with another name for the field."""
        place = [part for part in (field, None if self.reason is None else self.found) if part is not None]
        if self.reason is not None:
            statement = self.reason
        elif self.found is not None:
            statement = f"found `{self.found}`"
        else:
            statement = ""
        allowed = "" if self.allowed is None else f"allowed: {self.allowed}"
        message = "; ".join(part for part in (statement, allowed) if part)
        hint = "" if self.hint is None else f"\n  hint: {self.hint}"
        return ": ".join(part for part in (" ".join(map(str, place)), message) if part) + hint


class ChangeError(RequestError, KeyError):
    """A change that cannot be made in a scenario's text."""

    edit: int | None = None
    """The number of the change, from 0; `None`: it is in the message."""
    unknown: str | None = None
    """The name that no table of the scenario has."""
    choices: Sequence[str] = ()
    """The names of its tables or, of a path with several meanings, the paths that have one."""


class ScenarioError(VcpulabError, ValueError):
    """A scenario that cannot run; its text lists everything that is wrong."""

    problems: "list[Problem]"
    edits: list[int | None]
    """Of a changed scenario: for each problem the number of the change that it is in, if any."""


class EngineError(VcpulabError, RuntimeError):
    """A run that failed."""


class RecordingError(VcpulabError, ValueError):
    """An invalid file of another tool; the text names the place and the allowed values."""


class Interrupted(KeyboardInterrupt):
    """Cancelled work that has a partial answer."""

    def __init__(self, partial: Any, extent: str = "") -> None:
        super().__init__("interrupted")
        self.partial = partial
        """The partial answer, of the same type as the complete one."""
        self.extent = extent
        """The extent of the partial answer, where the answer itself does not show it."""


class MissingExtraError(VcpulabError, ImportError):
    """An optional package is not installed; the text says which extra to install."""
