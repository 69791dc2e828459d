"""The answer of `vcpulab.study`."""

from collections import Counter
from dataclasses import dataclass

import polars as pl

from vcpulab.show.answer import Answer
from vcpulab.studies.definition import Study
from vcpulab.studies.predict import predictions
from vcpulab.studies.results import Results


@dataclass(frozen=True)
class Agreement(Answer):
    """A study that was run again: published and simulated cells, and the claims as they stand."""

    study: Study
    results: Results

    def to_frame(self) -> pl.DataFrame:
        """A row for each published cell that the simulation has an estimate of: both values, and the error in %."""
        rows = [
            (*row.cell[:9], row.cell.number, row.estimate.mean, row.estimate.half_width, row.error, row.role)
            for row in predictions(self.study, self.results)
            if row.estimate is not None
        ]
        texts = ("study", "experiment", "scheduler", "generation", "config", "workload", "load", "metric", "unit")
        numbers = ("published", "simulated", "half_width", "error_percent")
        schema = dict.fromkeys(texts, pl.String) | dict.fromkeys(numbers, pl.Float64) | {"role": pl.String}
        return pl.DataFrame(rows, pl.Schema(schema), orient="row")

    def claims(self) -> pl.DataFrame:
        """A row for each claim: what the simulation says of it, and the evidence."""
        rows = []
        for claim in self.study.claims:
            verdict = claim.verdict(self.results)
            rows.append((claim.id, claim.text, verdict.outcome.value, verdict.evidence, verdict.p))
        columns = ("claim", "text", "outcome", "evidence")
        return pl.DataFrame(rows, pl.Schema(dict.fromkeys(columns, pl.String) | {"p": pl.Float64}), orient="row")

    def __str__(self) -> str:
        outcomes = Counter(self.claims()["outcome"])
        said = ", ".join(f"{number} {outcome}" for outcome, number in outcomes.items())
        return f"{self.study.title}: {len(self.study.claims)} claims: {said}"
