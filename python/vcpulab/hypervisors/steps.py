"""Steps of a change, one line each, and loops over steps that differ only in a domain's number."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

from vcpulab.hypervisors.shell import in_single_quotes
from vcpulab.scenario.names import in_short

LEAST = 3
"""The least number of commands that become a loop, if they differ only in the number of a domain."""
_NUMBERED = re.compile(r"(?P<stem>(?:[A-Za-z_][\w.-]*?)?)(?P<number>\d+)")


@dataclass(frozen=True)
class Step:
    """A command to type, or a setting without a command."""

    how: Literal["boot", "run", "keep", "cannot"]
    """`boot`: a command after which the host must be restarted; `run`: one that holds at once; `keep`: one after which
    it holds after a restart, too; `cannot`: there is no way on a real host."""
    text: str
    """The command, or the reason."""
    at: str | None = None
    """The time, as in the scenario's action; `None`: before everything else."""
    domain: str | None = None
    """The domain that the step concerns, if it concerns a single one."""
    called: str | None = None
    """The domain's name in the command, where it differs."""


def in_loops(steps: Iterable[Step]) -> list[Step]:
    """The steps, with a shell loop in place of equal commands for numbered domains.

    A loop takes the place of its first step: the steps of each domain keep their order.

    Examples:
        >>> print(in_loops([Step("run", f"xl unpause vm{n}", domain=f"vm{n}") for n in (1, 2, 3)])[0].text)
        for d in vm1 vm2 vm3; do xl unpause $d; done
    """
    rows: dict[object, list[Step]] = {}
    for number, step in enumerate(steps):
        match = _NUMBERED.fullmatch(_name(step))
        fits = match and not _occurs(step, in_single_quotes(step.text))
        kind = (match["stem"], _of_each(step)) if match and fits else number
        rows.setdefault((step.how, step.at, kind), []).append(step)
    return [step for row in rows.values() for step in _loop(row)]


def _name(step: Step) -> str:
    return step.called or step.domain or ""


def _of_each(step: Step) -> str:
    r"""The command with `$d` for the domain; `\x2d` is a dash in the name of a unit of systemd."""
    return _occurrences(step).sub(r"\1$d", step.text)


def _occurs(step: Step, text: str) -> bool:
    return step.how != "cannot" and _occurrences(step).search(text) is not None


def _occurrences(step: Step) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.-])(\\x2d)?{re.escape(_name(step))}(?![\w-])")


def _loop(row: list[Step]) -> list[Step]:
    if len(row) < LEAST:
        return row
    names, each = [_name(step) for step in row], _of_each(row[0])
    if row[0].how == "cannot":
        return [replace(row[0], text=each.replace("$d", in_short(names)), domain=None, called=None)]
    return [replace(row[0], text=f"for d in {' '.join(names)}; do {each}; done", domain=None, called=None)]


HEADINGS = {
    "boot": "takes a restart of the host",
    "run": "at run time",
    "keep": "to keep it after a restart",
    "cannot": "what no command does or keeps",
}


def script(steps: Iterable[Step], *, headed: bool = False) -> Iterator[str]:
    """The lines of a shell script: whatever is no command is a comment.

    Args:
        steps: the steps.
        headed: a heading above announces commands, so the first ones need no heading of their own.
    """
    for number, ((at, how), group) in enumerate(groupby(in_loops(steps), key=lambda step: (step.at, step.how))):
        if number or how != "run" or not headed:
            yield f"# {HEADINGS[how]}" if at is None else f"# {HEADINGS[how]}, {at} after the start"
        for step in group:
            yield f"#   {' '.join(step.text.splitlines())}" if how == "cannot" else step.text
