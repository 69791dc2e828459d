"""A rule of lint: a check, and the page that is its docstring.

A decorator declares a rule, and the docstring of the check is its page, with a paragraph for each of `PARTS`. The page
names constants of the check's module, as in `{WAITS:.0%}`, so that it always shows the check's own thresholds.
"""

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Generic, TypeVar

from vcpulab.advice.lint.host import Finding

C = TypeVar("C", bound=Callable[..., Any])

PARTS = ("Mechanism", "Evidence", "Silent", "Fix", "Schedulers", "Sources")
"""The paragraphs of each page, in order: the reason why the problem hurts, the measured evidence, the cases without a
finding, the fix, the schedulers under which the problem exists, and the sources of the mechanism."""


class Stands(Enum):
    """The condition under which a finding is kept although its fix improves nothing or costs more than it gains."""

    ALWAYS = "always"
    """Kept: the evidence is enough."""
    ALONE = "alone"
    """Kept only if no other fix helps."""
    NEVER = "never"
    """Dropped: the odd setting is no problem."""
    NOTED = "noted"
    """Shown as a note with the cost of the other setting: it is no problem."""


@dataclass(frozen=True)
class Rule(Generic[C]):
    """A rule, its check and its page."""

    name: str
    check: C
    stands: Stands

    def stamped(self, finding: Finding) -> Finding:
        """A finding of the check with the rule's name."""
        return replace(finding, rule=self.name)

    @property
    def finds(self) -> str:
        """The problem that the rule finds, in a sentence."""
        return self._paragraphs()[0]

    def parts(self) -> Mapping[str, str]:
        """Heading to text of the page's paragraphs: one for each of `PARTS`."""
        by_heading = {}
        for paragraph in self._paragraphs()[1:]:
            heading, _, text = paragraph.partition(": ")
            by_heading[heading] = text
        if self.stands is Stands.ALONE:
            by_heading["Silent"] += (
                " No finding either if its fix improves nothing, and the fix of another finding helps."
            )
        return by_heading

    def page(self, level: int = 1) -> str:
        """The page in Markdown."""
        lines = [f"{'#' * level} {self.name}", self.finds]
        for heading, text in self.parts().items():
            lines += [f"{'#' * (level + 1)} {heading}", text]
        return "\n\n".join(lines) + "\n"

    def _paragraphs(self) -> list[str]:
        text = inspect.getdoc(self.check) or ""
        paragraphs = text.format_map(vars(sys.modules[self.check.__module__])).split("\n\n")
        return [" ".join(paragraph.replace("%", " %").split()) for paragraph in paragraphs]


class Rules(Generic[C]):
    """The rules of one kind, each declared above its check."""

    def __init__(self, stands: Stands) -> None:
        """Starts without a rule; `stands` is the default for rules that declare none."""
        self.all: list[Rule[C]] = []
        self._stands = stands

    def __call__(self, name: str, *, stands: Stands | None = None) -> Callable[[C], C]:
        """Declares the decorated function as the check of a rule; the arguments are fields of `Rule`."""

        def declare(check: C) -> C:
            self.all.append(Rule(name, check, stands or self._stands))
            return check

        return declare
