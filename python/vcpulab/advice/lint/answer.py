"""The answer of `vcpulab.lint`."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Self

import polars as pl

from vcpulab.advice.lint.catalogue import RULES
from vcpulab.advice.lint.document import of_findings
from vcpulab.advice.lint.lint import Advice, as_data, other_warnings
from vcpulab.advice.starvation import in_a_line
from vcpulab.advice.tuning.headline import losses_of_others
from vcpulab.hypervisors import Toolstack
from vcpulab.scenario.scenario import Scenario
from vcpulab.scenario.settings import in_short
from vcpulab.show.answer import Answer
from vcpulab.show.document import Document


@dataclass(frozen=True)
class Findings(Answer):
    """The probable faults of a scenario, and their fixes."""

    scenario: Scenario
    advice: tuple[Advice, ...]
    notes: tuple[Advice, ...] = ()
    """Settings that are no fault but worth knowing, each with the price of the other setting."""

    @classmethod
    def from_advice(cls, scenario: Scenario, advice: Iterable[Advice]) -> Self:
        """The advice on a scenario, faults and notes apart."""
        findings = list(advice)
        return cls(
            scenario,
            tuple(item for item in findings if not item.is_noted),
            tuple(item for item in findings if item.is_noted),
        )

    def __iter__(self) -> Iterator[Advice]:
        return iter(self.advice)

    def document(
        self,
        toolstack: Toolstack | None = None,
        *,
        full: bool = False,
        label: str | None = None,
        names: Collection[str] = RULES,
    ) -> Document:
        """The findings as a document.

        Args:
            toolstack: the toolstack of the commands; `None`: that of the scenario's host.
            full: whether to show all commands and each warning.
            label: the name of the scenario's file; `None`: the name of the scenario.
            names: the rules that were checked.
        """
        return of_findings(self, label or self.scenario.name, names, toolstack, full=full)

    def noted(self) -> list[str]:
        """A line for each note, with the setting that would prevent the effect, and its price."""
        return [f"note: {note.finding.reason}; {self._priced(note)}" for note in self.notes]

    def _priced(self, note: Advice) -> str:
        restart = ", after a restart of the host," if any(step.how == "boot" for step in note.steps()) else ""
        lost = [in_a_line(note.starves)] if note.starves else []
        price = [losses_of_others(self.scenario, {each.address.name: each for each in note.effect or ()}, set()), *lost]
        change = "; ".join(in_short(note.finding.changes))
        return f"{change}{restart} prevents that; its price: {'; '.join(price)}"

    def to_frame(self) -> pl.DataFrame:
        """A row for each finding: rule, field, reason and the commands that fix it."""
        rows = [(row["rule"], row["field"], row["reason"], row["commands"]) for row in as_data(self.advice)]
        rows += [
            ("warning", warning["field"], warning["message"], [])
            for warning in other_warnings(self.scenario, self.advice)
        ]
        texts = dict.fromkeys(("rule", "field", "reason"), pl.String())
        schema = pl.Schema([*texts.items(), ("commands", pl.List(pl.String))])
        return pl.DataFrame(rows, schema, orient="row")
