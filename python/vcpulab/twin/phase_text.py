"""The text of a twin, with each phase of its scripts in a line."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vcpulab.show.toml_text import inline

_MARK_WIDTH = 100
"""So long a text keeps the writer of TOML from an inline table."""


def inline_phases(dumps: Callable[[Mapping[str, Any]], str], document: Mapping[str, Any]) -> str:
    """A scenario as text, with each phase of its scripts in a line.

    Args:
        dumps: the writer of the rest of the TOML.
        document: the scenario.
    """
    lines: dict[str, str] = {}

    def held(phases: list[dict[str, Any]]) -> str:
        # The mark is so long that an application is not written as an inline table.
        mark = f"phases {len(lines)}".ljust(_MARK_WIDTH)
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
