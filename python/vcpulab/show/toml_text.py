"""The text of TOML documents that people read: with comments, and with small tables in a line."""

import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from vcpulab.show.terminal_text import plain

_WIDTH = 100
"""The width of comments."""


def comment(text: str, mark: str = "") -> list[str]:
    r"""The lines of a comment; control characters, which TOML comments may not have, are escaped.

    Examples:
        >>> comment("a\x1b[2Jb")
        ['# a\\x1b[2Jb']
    """
    wrapped = textwrap.wrap(plain(text), _WIDTH, break_long_words=False, break_on_hyphens=False)
    return [f"# {mark if not number else ' ' * len(mark)}{line}" for number, line in enumerate(wrapped)]


def document(tables: Mapping[str, Any]) -> str:
    """A document. Tables within an array of tables are inline; an array of these has a line for each table.

    Examples:
        >>> phases = [{"event": [{"run": "1ms"}, {"sleep": "9ms"}]}, {"event": [{"done": True}]}]
        >>> host = {"pcpus": 2, "costs": {"context_switch_ns": 0}}
        >>> tables = {"host": host, "domain": {"a.b": {"app": [{"kind": "phases", "phase": phases}]}}, "name": "a"}
        >>> print(document(tables))
        name = "a"
        <BLANKLINE>
        [host]
        pcpus = 2
        <BLANKLINE>
        [host.costs]
        context_switch_ns = 0
        <BLANKLINE>
        [[domain."a.b".app]]
        kind = "phases"
        phase = [
            { event = [{ run = "1ms" }, { sleep = "9ms" }] },
            { event = [{ done = true }] },
        ]
        <BLANKLINE>
    """
    return "\n".join(_table((), tables)).removeprefix("\n") + "\n"


def _table(path: tuple[str, ...], table: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a table: its own fields, then its tables and arrays of tables."""
    inner = {name: value for name, value in table.items() if isinstance(value, Mapping) or _is_array(value)}
    own = {name: value for name, value in table.items() if name not in inner}
    if path and (own or not inner):
        yield from ("", f"[{_dotted(path)}]")
    yield from (f"{key(name)} = {toml(value)}" for name, value in own.items())
    for name, value in inner.items():
        if isinstance(value, Mapping):
            yield from _table((*path, name), value)
            continue
        for element in value:
            yield from ("", f"[[{_dotted((*path, name))}]]")
            yield from (f"{key(field)} = {_field(item)}" for field, item in element.items())


def _dotted(path: tuple[str, ...]) -> str:
    return ".".join(map(key, path))


def _is_array(value: Any) -> bool:
    """`True`: an array of tables."""
    return isinstance(value, list) and bool(value) and all(isinstance(element, Mapping) for element in value)


def _field(value: Any) -> str:
    """The value of a field of a table in an array of tables."""
    if not _is_array(value):
        return toml(value)
    return "\n".join(["[", *(f"    {toml(element)}," for element in value), "]"])


def inline(table: Mapping[str, Any]) -> str:
    """A table in one line."""
    return f"{{ {', '.join(f'{key(name)} = {toml(item)}' for name, item in table.items())} }}" if table else "{}"


def key(name: str) -> str:
    """A name as a key."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml(name)


def toml(value: Any) -> str:
    r"""A value as TOML has it, in one line: texts with any characters, numbers, lists and tables of them.

    Examples:
        >>> print(toml("a\x7f\"b\" \U0001f600"), toml([1, "0-3"]), toml(True))
        "a\u007f\"b\" \U0001f600" [1, "0-3"] true
    """
    if isinstance(value, str):
        # JSON's strings are TOML's, but for the character DEL, and pairs of surrogates, which TOML does not have.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, Mapping):
        return inline(value)
    return json.dumps(value)
