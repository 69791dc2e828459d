"""The answers of `vcpulab.compare`, `vcpulab.whatif` and `vcpulab.lint`."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import polars as pl

from vcpulab.advice.across import not_comparable
from vcpulab.advice.compare import Comparison, in_words
from vcpulab.advice.deciding import Added
from vcpulab.advice.lint.lint import Advice, as_data, other_warnings
from vcpulab.advice.starving import Starving, in_a_line
from vcpulab.advice.tuning.headline import paid
from vcpulab.hypervisors import Toolstack
from vcpulab.hypervisors.commands import new_steps
from vcpulab.hypervisors.steps import Step
from vcpulab.results.run import Run
from vcpulab.scenario.scenario import Scenario
from vcpulab.scenario.settings import Changed, in_short
from vcpulab.show.answer import Answer


@dataclass(frozen=True)
class Differences(Answer):
    """Two runs, and every metric that they have in common."""

    before: Run
    after: Run
    found: tuple[Comparison, ...]
    added: Added | None = None
    """The replications that were added, and why; `None`: of two runs, to which none are added."""

    def __getitem__(self, address: str) -> Comparison:
        """What became of the number at an address.

        Raises:
            KeyError: it was not compared.
        """
        for one in self:
            if one.address.name == address:
                return one
        raise KeyError(address)

    def __iter__(self) -> Iterator[Comparison]:
        return iter(self.found)

    def to_frame(self) -> pl.DataFrame:
        """A row for each metric: before, after, difference, p and verdict; see `Comparison.row`."""
        return pl.DataFrame([one.row() for one in self.found], infer_schema_length=None)

    @cached_property
    def starving(self) -> Starving:
        """Who starves in which of the runs."""
        return Starving.between(self.before, self.after)

    @property
    def starved(self) -> list[dict[str, object]]:
        """Who starves in the second run: `domain`, `reason`, and `since`: `after`, or `before` already."""
        return self.starving.rows()

    @property
    def not_comparable(self) -> list[str]:
        """What to know of runs under different hypervisors, in sentences; nothing, if they have the same."""
        return not_comparable(self.before.scenario, self.after.scenario)

    def in_words(self) -> list[str]:
        """Who starves; what improves and regresses, for whom; what may regress; why replications were added."""
        return [*in_words(self.found, self.starving.lines()), *(self.added.lines() if self.added else ())]

    def __str__(self) -> str:
        return "\n".join(self.in_words())


@dataclass(frozen=True, kw_only=True)
class WhatIf(Differences):
    """A scenario as it is, and with other settings."""

    changed: Changed
    """The changed scenario, what was changed in it, and what the new scheduler does not have."""

    @property
    def commands(self) -> list[Step]:
        """How to set it on the scenario's host."""
        return self.commands_for()

    def commands_for(self, toolstack: Toolstack | None = None) -> list[Step]:
        """How to set it on a real host.

        Args:
            toolstack: whose commands; `None`: those of the scenario's host.
        """
        return new_steps(self.before.scenario, self.after.scenario, toolstack)


@dataclass(frozen=True)
class Findings(Answer):
    """What is probably wrong with a scenario, and what mends it."""

    scenario: Scenario
    advice: tuple[Advice, ...]
    notes: tuple[Advice, ...] = ()
    """What is no fault, and good to know, with what the other setting costs."""

    @classmethod
    def of(cls, scenario: Scenario, advice: Iterable[Advice]) -> Self:
        """What was found in a scenario, with what is no fault apart."""
        found = list(advice)
        return cls(
            scenario,
            tuple(one for one in found if not one.is_noted),
            tuple(one for one in found if one.is_noted),
        )

    def __iter__(self) -> Iterator[Advice]:
        return iter(self.advice)

    def noted(self) -> list[str]:
        """What is no fault, a line each, with what would prevent it, and who would pay for that."""
        return [f"note: {one.finding.reason}; {self._priced(one)}" for one in self.notes]

    def _priced(self, one: Advice) -> str:
        restart = ", after a restart of the host," if any(step.how == "boot" for step in one.steps()) else ""
        lost = [in_a_line(one.starves)] if one.starves else []
        price = [paid(self.scenario, {each.address.name: each for each in one.effect or ()}, set()), *lost]
        change = "; ".join(in_short(one.finding.changes))
        return f"{change}{restart} prevents that; its price: {'; '.join(price)}"

    def to_frame(self) -> pl.DataFrame:
        """A row for each finding: its rule, the field, the reason, the commands that mend it."""
        rows = [(row["rule"], row["field"], row["reason"], row["commands"]) for row in as_data(self.advice)]
        rows += [("warning", one["field"], one["message"], []) for one in other_warnings(self.scenario, self.advice)]
        texts = dict.fromkeys(("rule", "field", "reason"), pl.String())
        schema = pl.Schema([*texts.items(), ("commands", pl.List(pl.String))])
        return pl.DataFrame(rows, schema, orient="row")

    def __str__(self) -> str:
        rows = self.to_frame().iter_rows(named=True)
        found = [f"{row['field']}: {row['rule']}: {row['reason']}" for row in rows] or ["nothing found"]
        return "\n".join([*found, *self.noted()])
