"""The text of TOML with comments, and tables in a line, which no writer of TOML makes."""

import json
import re
import textwrap
from collections.abc import Mapping
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


def inline(table: Mapping[str, Any]) -> str:
    """A table in one line."""
    return f"{{ {', '.join(f'{key(name)} = {toml(item)}' for name, item in table.items())} }}"


def key(name: str) -> str:
    """A name as a key."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml(name)


def toml(value: Any) -> str:
    r"""A value as TOML has it, in one line: texts with any characters, numbers, lists of them.

    Examples:
        >>> print(toml("a\x7f\"b\" \U0001f600"), toml([1, "0-3"]), toml(True))
        "a\u007f\"b\" \U0001f600" [1, "0-3"] true
    """
    if isinstance(value, str):
        # JSON's strings are TOML's, but for the character DEL, and pairs of surrogates, which TOML does not have.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml, value))}]"
    return json.dumps(value)
