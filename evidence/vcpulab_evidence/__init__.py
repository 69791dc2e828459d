"""The evidence for vcpulab's predictions: published studies that are run again, and recorded hosts that are predicted.

| question | call | answer |
|---|---|---|
| Does vcpulab agree with a published study? | `study` | `Agreement` |
| How far are predictions of recorded hosts off? | `validate` | `Report` |

The commands `vcpulab study`, `vcpulab demo` and `vcpulab validate` come with this package.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vcpulab_evidence._api import study
    from vcpulab_evidence.studies.answer import Agreement
    from vcpulab_evidence.validation import Report, validate

_HOMES = {"Agreement": "studies.answer", "Report": "validation", "study": "_api", "validate": "validation"}
"""Public name to its module, which is imported when the name is first used: a command loads only what it needs."""

__all__ = ["Agreement", "Report", "study", "validate"]

if not TYPE_CHECKING:  # a checker sees the imports above

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
        globals()[name] = value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        return value


def __dir__() -> list[str]:
    return __all__
