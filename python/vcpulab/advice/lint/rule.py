"""A rule of lint: a check, and the page that is written below it.

A rule is declared above its check, and the docstring of the check is its page, in the paragraphs of `PARTS`. Constants
of the check's module stand in it by name, as in `{WAITS:.0%}`, so that the page says what the check does.
"""

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Generic, TypeVar

from vcpulab.advice.lint.host import Finding

C = TypeVar("C", bound=Callable[..., Any])

PARTS = ("Mechanism", "Evidence", "Silent", "Mend", "Schedulers", "Sources")
"""What each page says, in this order: why it hurts, what is measured on the host at hand, when nothing is said, what
mends it, under which schedulers there is such a thing, and where the mechanism is described."""


class Stands(Enum):
    """When a finding stands whose mend improves nothing, or costs those who are served more than it gains them."""

    ALWAYS = "always"
    """Its evidence is enough."""
    ALONE = "alone"
    """Only where no other mend helps: then that one's mechanism is the one."""
    NEVER = "never"
    """What looks odd is no fault there."""
    NOTED = "noted"
    """It is no fault: it is said, with the price of the other setting."""


@dataclass(frozen=True)
class Rule(Generic[C]):
    """A rule, its check and its page."""

    name: str
    check: C
    stands: Stands

    def stamped(self, finding: Finding) -> Finding:
        """What the check found, with the rule's name."""
        return replace(finding, rule=self.name)

    @property
    def finds(self) -> str:
        """What it finds, in a sentence."""
        return self._paragraphs()[0]

    def parts(self) -> Mapping[str, str]:
        """The rest of its page: a paragraph for each of `PARTS`."""
        found = {}
        for paragraph in self._paragraphs()[1:]:
            heading, _, text = paragraph.partition(": ")
            found[heading] = text
        if self.stands is Stands.ALONE:
            found["Silent"] += " And where its mend improves nothing, and that of another finding does."
        return found

    def page(self, level: int = 1) -> str:
        """Its page, in Markdown."""
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
        """Starts without a rule; `stands` is that of a rule that declares none."""
        self.all: list[Rule[C]] = []
        self._stands = stands

    def __call__(self, name: str, *, stands: Stands | None = None) -> Callable[[C], C]:
        """Declares the rule that the function below checks; arguments as the fields of `Rule`."""

        def declare(check: C) -> C:
            self.all.append(Rule(name, check, stands or self._stands))
            return check

        return declare
