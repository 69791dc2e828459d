"""The text of scenarios made of listings: comments, keys, inline tables, and work of a measured load."""

import json
import math
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from vcpulab.show.terminal_text import plain

PERIOD_MS = 10
"""The period of the jobs that CPU use becomes; no listing shows how it was spread."""
IDLE_PERCENT = 0.1
"""The largest CPU use, % of a pCPU, of a domain without work."""
PERCENT = "% of a pCPU"
RUN = ("[run]", 'duration = "2s"', 'warmup = "500ms"', "replications = 5")
_MOST = 0.99
"""The largest fraction of a period that a job takes."""
_LEAST_PERCENT = 1.0
"""The least CPU use of a task, % of a pCPU, where the use of each vCPU is unknown."""
_ALIKE, _ALIKE_PERCENT = 0.25, 5.0
"""vCPUs have the same task if they differ by no more than this fraction of the greater use, or this % of a pCPU."""
VCPUS_MAX = 512
"""The largest number of vCPUs of a domain."""
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


def inline_phases(dumps: Callable[[Mapping[str, Any]], str], document: Mapping[str, Any]) -> str:
    """A scenario as text, with each phase of its scripts in a line.

    Args:
        dumps: the writer of the rest of the TOML.
        document: the scenario.
    """
    lines: dict[str, str] = {}

    def held(phases: list[dict[str, Any]]) -> str:
        # The mark is so long that an application is not written as an inline table.
        mark = f"phases {len(lines)}".ljust(_WIDTH)
        lines[f'"{mark}"'] = (
            "[\n" + "".join(f"    {{ event = {_events(phase['event'])} }},\n" for phase in phases) + "]"
        )
        return mark

    domains = {
        name: domain
        | {"app": [app | {"phase": held(app["phase"])} if "phase" in app else app for app in domain["app"]]}
        if "app" in domain
        else domain
        for name, domain in document["domain"].items()
    }
    text = dumps({**document, "domain": domains})
    for mark, phases in lines.items():
        text = text.replace(mark, phases, 1)
    return text


def _events(events: Sequence[Mapping[str, Any]]) -> str:
    return f"[{', '.join(inline(event) for event in events)}]"


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


def work(domain: str, used: float | None, vcpus: int, measured_by: str, each: Sequence[float] = ()) -> Iterator[str]:
    """Applications that use as much CPU: a task for each vCPU.

    Args:
        domain: the domain's name.
        used: % of a pCPU; `None`: not known.
        vcpus: how many it has.
        measured_by: what says so.
        each: the same of each vCPU; empty: not known.
    """
    if used is None or used <= IDLE_PERCENT:
        return
    how = "of each vCPU" if any(each) else "of all vCPUs alike"
    yield f"# assumed: {used:.4g} {PERCENT}, as {measured_by} measured, {how}, in periods of {PERIOD_MS} ms"
    for tasks, percent in spread(used, vcpus, each):
        yield f"[[domain.{key(domain)}.app]]"
        yield 'kind = "periodic"'
        yield "assumed = true"
        if tasks > 1:
            yield f"instance = {tasks}"
        yield f'run = "{min(round(10 * PERIOD_MS * percent), round(1000 * PERIOD_MS * _MOST))}us"'
        yield f'period = "{PERIOD_MS}ms"'


def spread(used: float, vcpus: int, each: Sequence[float] = ()) -> list[tuple[int, float]]:
    """Tasks that use as much CPU together, at most one for each vCPU: how many of each demand, in % of a pCPU.

    Args:
        used: % of a pCPU.
        vcpus: how many there are.
        each: the use of each of them; empty: not known.

    Examples:
        >>> spread(190, 4), spread(1.5, 8), spread(120, 2)
        ([(4, 47.5)], [(1, 1.5)], [(2, 60.0)])
        >>> spread(130, 4, [95, 10, 10, 15])
        [(1, 95.0), (3, 11.666666666666666)]
    """
    total = math.fsum(each)
    if total <= 0:
        tasks = min(vcpus, max(1, int(used / _LEAST_PERCENT)))
        return [(tasks, used / tasks)]
    alike: list[list[float]] = []
    for percent in sorted((part * used / total for part in each), reverse=True):
        if alike and alike[-1][0] - percent <= max(_ALIKE * alike[-1][0], _ALIKE_PERCENT):
            alike[-1].append(percent)
        elif percent > IDLE_PERCENT or not alike:
            alike.append([percent])
    return [(len(row), math.fsum(row) / len(row)) for row in alike]
