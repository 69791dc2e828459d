"""The tables of thresholds in `concepts/twins.md`: names, values and reasons, from the modules that use them."""

import ast
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from validation_page import DOCS, filled, table

PAGE = DOCS / "concepts" / "twins.md"
_TWIN = DOCS.parent / "python" / "vcpulab" / "twin"

MODULES = {
    "links": ("links", "messages/partners"),
    "ticks": ("messages/ticks", "busy"),
    "attribution": ("messages/turns", "messages/attribution"),
    "costs": ("messages/costs",),
    "tasks": ("messages/exchange", "messages/tasks", "messages/softirq"),
    "waking": ("messages/wake_costs",),
    "hypervisor": ("decision_costs", "preemption_costs"),
    "demand": ("build", "demands", "sequences", "apps", "stretches"),
    "checks": ("scoring", "conservation"),
}
"""The modules whose thresholds each table holds."""


def pages() -> dict[Path, str]:
    """The page as it should be."""
    parts = {f"thresholds-{name}": partial(thresholds, *modules) for name, modules in MODULES.items()}
    return {PAGE: filled(PAGE.read_text(encoding="utf-8"), parts)}


def thresholds(*modules: str) -> str:
    """A table of the thresholds of some modules."""
    rows = [
        (f"`{name}`", value, f"`{module}`", meaning)
        for module in modules
        for name, value, meaning in constants((_TWIN / f"{module}.py").read_text(encoding="utf-8"))
    ]
    return table(("threshold", "value", "module", "meaning and reason"), rows)


def constants(source: str) -> Iterator[tuple[str, str, str]]:
    """The name, value and docstring of each number, or group of numbers, that a module defines.

    Raises:
        ValueError: one has no docstring.
    """
    statements = ast.parse(source).body
    for statement, following in zip(statements, [*statements[1:], None], strict=True):
        match statement:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=value)
            ):
                text = _text(value)
            case _:
                text = None
        if text is None:
            continue
        match following:
            case ast.Expr(value=ast.Constant(value=str(docstring))):
                yield name.lstrip("_"), text, " ".join(docstring.split())
            case _:
                raise ValueError(f"{name}: no docstring says what it means")


def _text(value: ast.expr | None) -> str | None:
    """The value of a constant; `None`: it is no number, and no group of numbers."""
    try:
        number = ast.literal_eval(value) if value is not None else None
    except ValueError:
        return None
    match number:
        case int() | float():
            return f"{number:_}" if isinstance(number, int) else f"{number:g}"
        case tuple():
            return ", ".join(f"{each:_}" for each in number)
        case dict() if not any(isinstance(each, str) for each in number.values()):
            groups = {key: each if isinstance(each, tuple) else (each,) for key, each in number.items()}
            return ", ".join(" ".join([key, *(str(part) for part in group)]) for key, group in groups.items())
    return None
