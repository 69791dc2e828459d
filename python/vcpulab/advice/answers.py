"""The answers of `vcpulab.compare` and `vcpulab.whatif`."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from vcpulab.advice.compare import Comparison, in_words
from vcpulab.advice.comparison_document import document
from vcpulab.advice.deciding import Added
from vcpulab.advice.hypervisor_differences import not_comparable
from vcpulab.advice.starvation import Starving
from vcpulab.hypervisors import Toolstack
from vcpulab.hypervisors.commands import new_steps
from vcpulab.hypervisors.steps import Step
from vcpulab.results.run import Run
from vcpulab.scenario.scenario import Changed
from vcpulab.show.answer import Answer
from vcpulab.show.document import Document
from vcpulab.show.folded import View


@dataclass(frozen=True)
class Differences(Answer):
    """Comparisons of every metric that two runs have in common."""

    before: Run
    after: Run
    comparisons: tuple[Comparison, ...]
    added: Added | None = None
    """The replications that were added; `None`: the comparison is of two finished runs."""

    def __getitem__(self, address: str) -> Comparison:
        """The comparison of the metric at an address.

        Raises:
            KeyError: the metric was not compared.
        """
        for comparison in self:
            if comparison.address.name == address:
                return comparison
        raise KeyError(address)

    def __iter__(self) -> Iterator[Comparison]:
        return iter(self.comparisons)

    def to_frame(self) -> pl.DataFrame:
        """A row for each metric: before, after, difference, p and verdict; see `Comparison.row`."""
        return pl.DataFrame([comparison.row() for comparison in self.comparisons], infer_schema_length=None)

    @cached_property
    def starving(self) -> Starving:
        """The domains that starve in either run."""
        return Starving.between(self.before, self.after)

    @property
    def starved(self) -> list[dict[str, object]]:
        """The domains that starve in the second run: `domain`, `reason`, and `since` (`before` or `after`)."""
        return self.starving.rows()

    @property
    def not_comparable(self) -> list[str]:
        """Sentences on what is not comparable between two hypervisors; none, if both runs have the same."""
        return not_comparable(self.before.scenario, self.after.scenario)

    def document(self, labels: tuple[str, str] = ("before", "after"), view: View = View()) -> Document:
        """The comparison as a document.

        Args:
            labels: names of the runs; they differ.
            view: the things to show on a terminal, and the metric that comes first.
        """
        return document(self, labels, view, {}, [])

    def in_words(self) -> list[str]:
        """Lines on starving domains, gains, harms, possible harms, and replications that were added."""
        return [*in_words(self.comparisons, self.starving.lines()), *(self.added.lines() if self.added else ())]


@dataclass(frozen=True, kw_only=True)
class WhatIf(Differences):
    """The comparison of a scenario with the same scenario with other settings."""

    changed: Changed
    """The changed scenario, its changes, and the settings that the new scheduler does not have."""

    def document(
        self,
        labels: tuple[str, str] = ("now", "changed"),
        view: View = View(),
        toolstack: Toolstack | None = None,
    ) -> Document:
        """The comparison as a document, with the commands that apply the change.

        Args:
            labels: names of the runs; they differ.
            view: the things to show on a terminal, and the metric that comes first.
            toolstack: the toolstack of the commands; `None`: that of the scenario's host.
        """
        return document(self, labels, view, self.changed.changes, self.commands_for(toolstack))

    @property
    def commands(self) -> list[Step]:
        """The steps that apply the change on the scenario's host."""
        return self.commands_for()

    def commands_for(self, toolstack: Toolstack | None = None) -> list[Step]:
        """The steps that apply the change on a real host.

        Args:
            toolstack: the toolstack of the commands; `None`: that of the scenario's host.
        """
        return new_steps(self.before.scenario, self.after.scenario, toolstack)
