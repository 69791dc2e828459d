"""The report of a study: an HTML file, and the same content as Markdown and Parquet."""

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import polars as pl

from vcpulab._files import atomic
from vcpulab.results.statistics import number
from vcpulab.results.store import write_parquet
from vcpulab.show import html, markdown
from vcpulab.show.document import Block, Contents, Drawing, Heading, Prose
from vcpulab.show.table import Table
from vcpulab_evidence.studies.answer import Agreement, Judged
from vcpulab_evidence.studies.calibration import Calibration
from vcpulab_evidence.studies.charts import Chart
from vcpulab_evidence.studies.claims import Outcome
from vcpulab_evidence.studies.definition import Study
from vcpulab_evidence.studies.predict import ROLES, Prediction, scores
from vcpulab_evidence.studies.results import Results
from vcpulab_evidence.studies.runner import StudyEffort

if TYPE_CHECKING:
    import altair as alt

_COLUMNS_MAX = 12
"""Maximum number of columns of a table; wider tables get a row for each value."""


def write(agreement: Agreement) -> Path:
    """Writes `report.html`, `report.md` with its figures, and `cells`, `values` and `claims` as Parquet to its folder.

    Returns:
        The HTML file.

    Raises:
        OSError: a file cannot be written.
    """
    study, results, effort, folder = agreement.study, agreement.results, agreement.effort, agreement.folder
    predicted, judged = agreement.predicted, agreement.judged
    folder.mkdir(parents=True, exist_ok=True)
    parts = [
        Prose(_lead(study, predicted, judged, effort)),
        *_figures(study, results),
        *_claims(judged),
        *_tables(predicted),
        *_agreement(study, predicted),
        *_blind(study),
        *_limits(study),
        *_calibration(study.calibration),
        *_answers(study, results),
        *_method(study, results, predicted, effort),
    ]
    title = f"{study.title}: published and simulated"
    page = folder / "report.html"
    html.write(page, title, [Contents(), *parts])
    atomic.write(folder / "report.md", markdown.text(parts, title, folder))
    tables = {"cells": cells_table(predicted), "values": values_table(results), "claims": claims_table(judged)}
    for name, table in tables.items():
        with atomic.scratch(folder / f"{name}.parquet") as file:
            write_parquet(table, file)
    return page


def cells_table(predicted: Iterable[Prediction]) -> pl.DataFrame:
    """A row for each cell: its columns, `published`, `simulated`, `ci_lo`, `ci_hi`, `role`, `reason`, `foretold`."""
    rows = []
    for row in predicted:
        named = {key: value for key, value in row.cell._asdict().items() if key != "value"}
        half = row.estimate.half_width if row.estimate else None
        mean = row.estimate.mean if row.estimate else None
        ends = (None, None) if mean is None or half is None else (mean - half, mean + half)
        measured = {"simulated": mean, "ci_lo": ends[0], "ci_hi": ends[1], "role": row.role, "reason": row.reason}
        measured["foretold"] = row.foretold.value if row.foretold else None
        rows.append(named | {"published": row.cell.number} | measured)
    floats = dict.fromkeys(("published", "simulated", "ci_lo", "ci_hi", "foretold"), pl.Float64)
    return pl.DataFrame(rows, schema_overrides=floats)


def values_table(results: Results) -> pl.DataFrame:
    """A row for each metric of each replication: `case`, `metric`, `replication`, `value`."""
    rows = [
        (case, metric, replication, value)
        for case in results.cases()
        for metric in results.metrics(case)
        for replication, value in enumerate(results.values(case, metric))
    ]
    schema = {"case": pl.String, "metric": pl.String, "replication": pl.UInt32, "value": pl.Float64}
    return pl.DataFrame(rows, schema, orient="row")


def claims_table(judged: Judged) -> pl.DataFrame:
    """A row for each claim: `claim`, `text`, `standing`, `contradicted`, `undecided`, `outcome`, `evidence`, `p`."""
    rows = [
        (c.id, c.text, c.standing, c.contradicted, c.undecided, v.outcome.value, v.evidence, v.p) for c, v in judged
    ]
    columns = ("claim", "text", "standing", "contradicted", "undecided", "outcome", "evidence", "p")
    return pl.DataFrame(rows, columns, orient="row", schema_overrides={"p": pl.Float64})


def summary(predicted: Sequence[Prediction], judged: Judged) -> dict[str, float | int | None]:
    """Counts of claims by outcome, and for each role of cells the mean tau and mean error over tables."""
    totals: dict[str, float | int | None] = {
        outcome.name.lower(): sum(1 for _, verdict in judged if verdict.outcome is outcome) for outcome in Outcome
    }
    for role in ROLES:
        of_role = [score for score in scores(predicted) if score.role == role]
        totals[f"{role}_cells"] = sum(score.cells for score in of_role)
        totals[f"{role}_tau"] = _mean(score.tau for score in of_role)
        totals[f"{role}_mape"] = _mean(score.mape for score in of_role)
    return totals


def _mean(values: Iterable[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return fmean(present) if present else None


def _lead(study: Study, predicted: Sequence[Prediction], judged: Judged, effort: StudyEffort) -> str:
    totals = summary(predicted, judged)
    lines = [study.reference, ""]
    if judged:
        lines.append(
            f"* Of {len(judged)} claims {totals['holds']} hold in the simulation, {totals['fails']} fail and "
            f"{totals['untestable']} cannot be tested."
        )
    for role, words in _IN_WORDS:
        if totals[f"{role}_cells"]:
            lines.append(
                f"* Over the {totals[f'{role}_cells']} cells {words}: rank agreement τ = "
                f"{_number(totals[f'{role}_tau'])}, mean error {_number(totals[f'{role}_mape'])} % (means over tables)."
            )
    if effort.fast:
        lines.append(
            "* **A short look**: short runs, two of each. Intervals are wide; values differ from a full run's."
        )
    return "\n".join(lines)


_IN_WORDS = (
    ("predicted", "that no constant was fitted on, but that were in sight"),
    ("fitted", "that constants were fitted on"),
    ("blind", "that nobody had seen when this was said of them"),
    ("blind, since", "that nobody had seen then, by this version"),
)


def _number(value: float | None) -> str:
    return "–" if value is None else number(value)


def _figures(study: Study, results: Results) -> Iterator[Block]:
    charts = list(study.charts(results))
    if charts:
        yield Heading("Figures")
        yield Prose("Simulated values with 95 % confidence intervals; hollow marks are published numbers.")
    for chart in charts:
        yield Drawing(chart.title, chart.spec, chart.text, _command(study, chart))


def _command(study: Study, chart: Chart) -> str:
    only = f" --only {chart.experiment}" if chart.experiment else ""
    return f"vcpulab study run {study.name}{only}"


def _claims(judged: Judged) -> Iterator[Block]:
    if judged:
        yield Heading("Claims")
        rows = [
            [
                claim.id,
                verdict.outcome.value,
                claim.text,
                verdict.evidence,
                "–" if verdict.p is None else f"{verdict.p:.2g}",
                claim.in_paper,
            ]
            for claim, verdict in judged
        ]
        headings = ["claim", "outcome", "what is claimed", "what the simulation gives", "p", "in the paper"]
        caption = "p: probability that chance alone would give the values, after Holm's correction."
        yield Table(caption, headings, rows, text_columns=len(headings))


def _tables(predicted: Sequence[Prediction]) -> Iterator[Block]:
    yield Heading("Tables")
    yield Prose(
        "Published → simulated ± half the width of the 95 % confidence interval. *f*: a constant was fitted on it; "
        "*b*: blind: nobody had seen it when the model was made, nor was anything fitted to it since."
    )
    sources: dict[str, list[Prediction]] = {}
    for row in predicted:
        sources.setdefault(row.cell.source, []).append(row)
    for source, rows in sources.items():
        yield _table(source, rows)


def _table(source: str, predicted: Sequence[Prediction]) -> Table:
    """A published table: a row for each configuration, a column for each metric under each load."""
    columns: dict[tuple[str, str], None] = {}
    cells: dict[tuple[str, str], dict[tuple[str, str], str]] = {}
    several = len({row.cell.load for row in predicted}) > 1
    for row in predicted:
        cell = row.cell
        stat = "" if cell.stat == "mean" else f" ({cell.stat})"
        column = (f"{cell.metric}{stat}, {cell.unit}", cell.load if several else "")
        columns[column] = None
        cells.setdefault((cell.scheduler, cell.config), {})[column] = _pair(row)
    if len(columns) > _COLUMNS_MAX:
        rows = [
            [f"{scheduler} {config}", *column, values[column]]
            for (scheduler, config), values in cells.items()
            for column in columns
            if column in values
        ]
        return Table(source, ["configuration", "metric", "load", "published → simulated"], rows, folded=True)
    headings = ["configuration", *(" ".join(part for part in column if part) for column in columns)]
    rows = [
        [f"{scheduler} {config}", *(values.get(column, "") for column in columns)]
        for (scheduler, config), values in cells.items()
    ]
    return Table(source, headings, rows, folded=len(rows) * len(columns) > 60)


def _pair(row: Prediction) -> str:
    simulated = "–" if row.estimate is None else str(row.estimate)
    return f"{row.cell.value} → {simulated}{_MARKS.get(row.role, '')}"


_MARKS = {"fitted": " f", "blind": " b"}


def _agreement(study: Study, predicted: Sequence[Prediction]) -> Iterator[Block]:
    agreed = scores(predicted)
    if not agreed:
        return
    yield Heading("Agreement and residuals")
    rows = [[f"{s.table}: {s.metric}", s.role, str(s.cells), _number(s.tau), _number(s.mape), s.within] for s in agreed]
    yield Table(
        "τ: Kendall's rank agreement, 1 is the same order.",
        ["table: metric", "cells", "number", "τ", "mean error, %", "in published intervals"],
        rows,
    )
    yield Drawing(
        "Published and simulated",
        residuals(predicted).to_dict(),
        "At 0 they are equal.",
        f"vcpulab study report {study.name}",
    )


def _blind(study: Study) -> Iterator[Block]:
    if study.blind:
        yield Heading("Blind: neither fitted nor seen")
        yield Prose(study.blind_notes.strip())


def _limits(study: Study) -> Iterator[Block]:
    if study.limits:
        yield Heading("What does not agree, and why")
        yield Prose(study.limits.strip())


def residuals(predicted: Sequence[Prediction]) -> "alt.TopLevelMixin":
    """A chart of the error of each cell by metric."""
    from vcpulab._extras import require
    from vcpulab.show import charts as plots

    alt = require("altair", "report")
    rows = [
        {
            "what": f"{row.cell.metric}",
            "cell": f"{row.cell.scheduler} {row.cell.config} {row.cell.load}",
            "error": round(row.error, 2),
            "role": row.role,
            "published": row.cell.number,
            "simulated": row.estimate.mean,
        }
        for row in predicted
        if row.cell.stat == "mean" and row.estimate is not None and row.error is not None and math.isfinite(row.error)
    ]
    chart = (
        alt.Chart(plots.rows_of(rows))
        .mark_point(size=45, strokeWidth=1.5)
        .encode(
            x=alt.X("error:Q", title="simulated over published, % more", scale=alt.Scale(type="symlog", constant=10)),
            y=alt.Y("what:N", title=None, axis=alt.Axis(labelLimit=220)),
            yOffset="role:N",
            color=alt.Color("role:N", scale=alt.Scale(range=plots.COLORS)),
            shape="role:N",
            tooltip=["cell:N", "what:N", "published:Q", "simulated:Q", "error:Q", "role:N"],
        )
        .properties(width="container", height=alt.Step(24), description="Error of every cell.")
    )
    return plots.dressed(chart)


def _calibration(calibration: Calibration) -> Iterator[Block]:
    yield Heading("Calibration")
    if not calibration.constants:
        yield Prose("No constant was fitted: everything is predicted.")
        return
    rows = [[c.name, f"{c.value:.6g} {c.unit}", f"{c.low:g} to {c.high:g}", c.meaning] for c in calibration.constants]
    yield Table("Fitted constants", ["constant", "value", "between", "what it is"], rows, text_columns=4)
    fit = calibration.fit
    if not fit:
        yield Prose("They have not been fitted yet: these are the values to start from.")
        return
    yield Prose(
        f"Fitted by `vcpulab study fit`: {fit['samples']} points of a Sobol sequence (seed {calibration.seed}), least "
        f"squares on logarithms from the best {fit['descents']} of them, {fit['replications']} replications of a case, "
        f"{fit['evaluations']} evaluations in all; root mean square error {100 * fit['rms_log_error']:.1f} %."
    )
    left_out = {_named(row): row for row in fit["left_out"]}
    rows = [
        [_named(row), f"{row['published']:g}", number(row["simulated"]), number(left_out[_named(row)]["simulated"])]
        for row in fit["cells"]
    ]
    yield Table(
        "The cells it was fitted on",
        ["cell", "published", "fitted", "predicted when it is left out"],
        rows,
        folded=True,
    )


def _named(row: dict[str, str]) -> str:
    return " ".join(row[name] for name in ("scheduler", "config", "load", "metric") if row[name])


def _answers(study: Study, results: Results) -> Iterator[Block]:
    if study.extra is not None:
        yield Heading("Open questions")
        yield Prose(study.extra(results))


def _method(study: Study, results: Results, predicted: Sequence[Prediction], effort: StudyEffort) -> Iterator[Block]:
    yield Heading("Method")
    runs = sum(results.replications(case) for case in results.cases())
    least = "two replications of short runs" if effort.fast else f"at least {study.replications} replications"
    yield Prose(
        f"{len(results.cases())} cases, {runs} runs: {least} of each case that is random, more until half the width of "
        f"every interval that decides is {100 * effort.precision:g} % of its mean, {effort.replications_max} at most. "
        f"Replication k of every case runs with seed {study.seed} + k: common random numbers, so that differences "
        "between cases are paired. The warm-up is cut off by MSER-5. Intervals are Student's."
    )
    reasons = sorted({(row.cell.experiment, row.reason) for row in predicted if row.reason})
    if reasons:
        yield Table(
            "Cells without a simulated value", ["experiment", "why"], [list(row) for row in reasons], text_columns=2
        )
    doubts = sorted({(row.cell.source, row.doubt) for row in predicted if row.doubt})
    if doubts:
        rows = [list(row) for row in doubts]
        yield Table("Published cells that do not count in scores", ["table", "why"], rows, text_columns=2)
    notes = study.folder.joinpath("notes.md")
    if notes.is_file():
        yield Heading("The study")
        yield Prose(_below(notes.read_text(encoding="utf-8")))


def _below(markdown: str) -> str:
    """The text with its headings two levels lower, below the section's heading."""
    return "\n".join(f"##{line}" if line.startswith("#") else line for line in markdown.splitlines())
