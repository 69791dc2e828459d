"""The answer of `vcpulab_evidence.study`."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl

from vcpulab.show.answer import Answer
from vcpulab.show.document import Document, Part
from vcpulab.show.table import Table
from vcpulab_evidence.studies.claims import Claim, Verdict
from vcpulab_evidence.studies.definition import Study
from vcpulab_evidence.studies.predict import Prediction, Score, predictions, scores
from vcpulab_evidence.studies.results import Results
from vcpulab_evidence.studies.runner import StudyEffort

Judged = Sequence[tuple[Claim, Verdict]]
"""Claims with their verdicts."""


@dataclass(frozen=True)
class Agreement(Answer):
    """A study that was run again: published and simulated cells, and the claims with their verdicts."""

    study: Study
    results: Results
    effort: StudyEffort
    """The effort of the runs."""
    folder: Path
    """The folder of the results."""
    note: str | None = None
    """A note about damaged stored results; `None`: there are none."""

    @cached_property
    def predicted(self) -> Sequence[Prediction]:
        """Every cell of the study, with its simulated value."""
        return predictions(self.study, self.results)

    @cached_property
    def judged(self) -> Judged:
        """Every claim with its verdict."""
        return [(claim, claim.verdict(self.results)) for claim in self.study.claims]

    @property
    def scores(self) -> Sequence[Score]:
        """The agreement of each metric of each table."""
        return scores(self.predicted)

    def to_frame(self) -> pl.DataFrame:
        """A row for each published cell with a simulated value: both values, and the error in %."""
        rows = [
            (*row.cell[:9], row.cell.number, row.estimate.mean, row.estimate.half_width, row.error, row.role)
            for row in self.predicted
            if row.estimate is not None
        ]
        texts = ("study", "experiment", "scheduler", "generation", "config", "workload", "load", "metric", "unit")
        numbers = ("published", "simulated", "half_width", "error_percent")
        schema = dict.fromkeys(texts, pl.String) | dict.fromkeys(numbers, pl.Float64) | {"role": pl.String}
        return pl.DataFrame(rows, pl.Schema(schema), orient="row")

    def claims(self) -> pl.DataFrame:
        """A row for each claim, with its verdict and the evidence."""
        rows = [
            (claim.id, claim.text, verdict.outcome.value, verdict.evidence, verdict.p) for claim, verdict in self.judged
        ]
        columns = ("claim", "text", "outcome", "evidence")
        return pl.DataFrame(rows, pl.Schema(dict.fromkeys(columns, pl.String) | {"p": pl.Float64}), orient="row")

    def document(self) -> Document:
        """The agreement as a document: cells, scores, and claims with their verdicts."""
        cells = [_row(row) for row in self.predicted if row.estimate is not None]
        scores = [
            [f"{s.table}, {s.metric}", str(s.cells), _number(s.tau), _number(s.mape), s.within, s.role]
            for s in self.scores
        ]
        headings = ["table, metric", "cells", "tau", "mean error, %", "in intervals", "role"]
        claims = [[claim.id, verdict.outcome.value, _evidence(verdict), claim.text] for claim, verdict in self.judged]
        compared = Table(self.study.title, ["cell", "published", "simulated", "error", "role"], cells, together=True)
        return [
            Part.rows(compared, "cell", rank=2),
            Part.rows(Table("Agreement", headings, scores), "score"),
            Part.rows(Table("Claims", ["claim", "outcome", "evidence", "text"], claims, 4), "claim", rank=1),
        ]


def _row(row: Prediction) -> list[str]:
    cell = row.cell
    named = " ".join(part for part in (cell.scheduler, cell.config, cell.load, cell.metric, cell.stat) if part)
    error = "–" if row.error is None else f"{row.error:+.0f} %"
    return [named, cell.value, str(row.estimate), error, row.role]


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _evidence(verdict: Verdict) -> str:
    return verdict.evidence + ("" if verdict.p is None else f" (p = {verdict.p:.2g})")
