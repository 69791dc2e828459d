"""The overview page: the agreement of every study."""

from collections.abc import Iterable, Sequence
from statistics import fmean, median

from vcpulab.results.statistics import kendall_tau, number
from vcpulab.show import markdown
from vcpulab.show.table import Table
from vcpulab_evidence.studies.answer import Agreement
from vcpulab_evidence.studies.claims import SIGNIFICANT, Outcome
from vcpulab_evidence.studies.definition import Study
from vcpulab_evidence.studies.predict import Score, predictions
from vcpulab_evidence.studies.report import summary
from vcpulab_evidence.studies.results import Results

_HEADINGS = (
    "study",
    "claims hold",
    "fail",
    "cannot be tested",
    "cells predicted",
    "τ",
    "error, %",
    "fitted",
    "τ",
    "error, %",
)


def page(done: Iterable[Agreement], command: str) -> str:
    """The page, in Markdown."""
    done = list(done)
    parts = [
        "# Published and simulated",
        f"Written by `{command}`. τ is Kendall's rank agreement between published and simulated values (1: the same "
        "order), error the mean absolute difference in % of the published value; both are means over the metrics of "
        "the tables. *Predicted* cells are those that no constant was fitted on, but that were in sight; *blind* ones "
        "nobody had seen. A claim *holds* or *fails* where "
        f"chance is excluded (paired differences, p < {SIGNIFICANT} after Holm's correction); a claim whose direction "
        "the data do not settle *cannot be tested*.",
        _table(
            _HEADINGS,
            (_summary(each) for each in done),
        ),
        blind(each.study for each in done),
    ]
    for each in done:
        parts += [f"## {each.study.title} (`{each.study.name}`)", each.study.reference]
        if each.scores:
            headings = ["table: metric", "cells", "number", "τ", "error, %", "in published intervals"]
            parts.append(_table(headings, (_score(score) for score in each.scores if score.role != "blind")))
        not_holding = [
            [claim.id, verdict.outcome.value, claim.text, verdict.evidence, claim.in_paper]
            for claim, verdict in each.judged
            if verdict.outcome is not Outcome.HOLDS
        ]
        if not_holding:
            parts += ["Claims that do not hold, or cannot be tested:"]
            headings = ["claim", "outcome", "what is claimed", "what the simulation gives", "in the paper"]
            parts.append(_table(headings, not_holding))
        if each.study.limits:
            parts.append(each.study.limits.strip())
    return "\n\n".join(parts) + "\n"


BLIND = "Blind: neither fitted nor seen"
"""The heading of the section on predictions of unknown cells."""


def blind(studies: Iterable[Study]) -> str:
    """The section on cells that were predicted before anybody knew them. It needs no run."""
    parts = [
        f"## {BLIND}",
        "These cells were kept from everybody who worked on the model, until what it says of each was written down "
        "(`foretold.csv` in each study's folder, made by commit d459e8c). Nothing is fitted to them since; a report of "
        "`vcpulab study report` also has what the present version says of them. Error: mean and median of the absolute "
        "differences, in % of the published value.",
    ]
    for study in studies:
        rows = [
            [_named(group), str(len(pairs)), _number(kendall_tau(*pairs.columns)), *pairs.errors, pairs.within]
            for group, pairs in _blind_groups(study).items()
        ]
        headings = ["table: metric", "cells", "τ", "error, %", "median, %", "in published intervals"]
        parts += [f"### `{study.name}`", _table(headings, rows), study.blind_notes.strip()]
    return "\n\n".join(parts)


class _Pairs(list[tuple[float, float, float | None]]):
    """Pairs of published and predicted values, with half the width of the published interval, if any."""

    @property
    def columns(self) -> tuple[list[float], list[float]]:
        return [pair[0] for pair in self], [pair[1] for pair in self]

    @property
    def errors(self) -> list[str]:
        percents = [100 * abs(foretold / published - 1) for published, foretold, _ in self if published]
        return [_number(fmean(percents)), _number(median(percents))] if percents else ["–", "–"]

    @property
    def within(self) -> str:
        bounded = [(published, foretold, half) for published, foretold, half in self if half is not None]
        return f"{sum(abs(a - b) <= half for a, b, half in bounded)} of {len(bounded)}" if bounded else ""


def _blind_groups(study: Study) -> dict[tuple[str, str, str], _Pairs]:
    """Pairs of values by table, metric and load, in the order of the cells."""
    groups: dict[tuple[str, str, str], _Pairs] = {}
    for row in predictions(study, Results({})):
        number = row.cell.number
        counts = row.cell.stat in ("mean", "approx", "point") and number is not None and not row.doubt
        if row.foretold is not None and number is not None and counts:
            load = row.cell.load if row.cell.load.startswith("users=") else ""
            pairs = groups.setdefault((row.cell.source, row.cell.metric, load), _Pairs())
            pairs.append((number, row.foretold.value, row.half_width))
    return groups


def _named(group: tuple[str, str, str]) -> str:
    table, metric, load = group
    return f"{table}: {metric}" + (f", {load.removeprefix('users=')} users" if load else "")


def _summary(done: Agreement) -> list[str]:
    totals = summary(done.predicted, done.judged)
    cells = [f"`{done.study.name}`", str(totals["holds"]), str(totals["fails"]), str(totals["untestable"])]
    for role in ("predicted", "fitted"):
        cells += [str(totals[f"{role}_cells"]), _number(totals[f"{role}_tau"]), _number(totals[f"{role}_mape"])]
    return cells


def _score(score: Score) -> list[str]:
    return [
        f"{score.table}: {score.metric}",
        score.role,
        str(score.cells),
        _number(score.tau),
        _number(score.mape),
        score.within,
    ]


def _number(value: float | None) -> str:
    return "–" if value is None else number(value)


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return markdown.table(Table("", headings, list(rows)))
