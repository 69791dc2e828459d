"""Arguments that take one text or several."""

import reprlib
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from vcpulab.errors import RequestError

Texts: TypeAlias = str | Iterable[str]
"""One text, or several."""


def several(given: Texts, field: str) -> list[str]:
    """The texts of an argument that takes one or several.

    Args:
        given: a text, which counts as one, or several.
        field: the argument, for messages.

    Raises:
        RequestError: the argument has another type.

    Examples:
        >>> several("http.response_p99 < 50ms", "slo"), several(["web.cap=30", "web.weight=512"], "changes")
        (['http.response_p99 < 50ms'], ['web.cap=30', 'web.weight=512'])
    """
    if isinstance(given, str):
        return [given]
    if isinstance(given, Iterable) and not isinstance(given, Mapping | bytes):
        texts = list(given)
        wrong = [text for text in texts if not isinstance(text, str)]
        if not wrong:
            return texts
        raise _no_text(wrong[0], field, "one text or several")
    raise _no_text(given, field, "one text or several")


def single(given: str, field: str) -> str:
    """The text of an argument that takes a single one.

    Raises:
        RequestError: the argument has another type.
    """
    if not isinstance(given, str):
        raise _no_text(given, field, "one text")
    return given


def groups(given: Texts | Iterable[Iterable[str]], field: str) -> list[list[str]]:
    """Groups of names: `"web,batch"`, or several such texts, or sequences of names.

    Raises:
        RequestError: the argument has another type.

    Examples:
        >>> groups("web,batch", "apart"), groups([("web", "batch"), "dom0, db"], "apart")
        ([['web', 'batch']], [['web', 'batch'], ['dom0', 'db']])
    """
    listed = [given] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
    return [
        [name.strip() for name in group.split(",")] if isinstance(group, str) else several(group, field)
        for group in listed
    ]


def _no_text(given: object, field: str, allowed: str) -> RequestError:
    return RequestError(field=field, found=reprlib.repr(given), allowed=allowed)
