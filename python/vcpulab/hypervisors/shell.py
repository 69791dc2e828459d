"""Words of a POSIX shell, quoted so that every character reaches the command."""

import re
import shlex
from dataclasses import dataclass

_PLAIN_IN_QUOTES = re.compile(r"(?:[A-Za-z0-9_@%+=:,./-]|\\x[0-9a-f]{2})*")
"""Text that double quotes leave as it is; the escape is that of systemd, as in `machine-qemu\\x2d1.scope`."""
_QUOTED = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^'"\\]""", re.DOTALL)


@dataclass(frozen=True)
class Output:
    """The output of a command, as a part of a word."""

    command: str


Part = str | Output


def word(*parts: Part) -> str:
    r"""A word of a shell, from literal text and the output of commands.

    Examples:
        >>> print(word("machine.slice"), word("a b"), word(""))
        machine.slice 'a b' ''
        >>> print(word("vm\\x2d", Output("virsh domid web"), ".scope"))
        "vm\x2d$(virsh domid web).scope"
        >>> print(word("a;b/", Output("virsh domid web")))
        'a;b/'"$(virsh domid web)"
    """
    texts = [part for part in parts if isinstance(part, str)]
    if len(texts) == len(parts):
        return shlex.quote("".join(texts))
    if all(map(_PLAIN_IN_QUOTES.fullmatch, texts)):
        inside = (part if isinstance(part, str) else f"$({part.command})" for part in parts)
        return f'"{"".join(inside)}"'
    each = (shlex.quote(part) if isinstance(part, str) else f'"$({part.command})"' for part in parts if part)
    return "".join(each)


def in_single_quotes(script: str) -> str:
    """The text of a script that is in single quotes, where a shell replaces no variables.

    Examples:
        >>> in_single_quotes("echo 'a b' 'e'")
        'a be'
    """
    return "".join(part[1:-1] for part in _QUOTED.findall(script) if part.startswith("'"))
