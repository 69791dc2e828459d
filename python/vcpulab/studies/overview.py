"""How well every study agrees, on one page."""

from collections.abc import Iterable, Sequence

from vcpulab.results.statistics import number
from vcpulab.show import markdown
from vcpulab.show.table import Table
from vcpulab.studies.answer import Agreement
from vcpulab.studies.claims import SIGNIFICANT, Outcome
from vcpulab.studies.predict import Score
from vcpulab.studies.report import summary

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
        "the tables. *Predicted* cells are those that no constant was fitted on. A claim *holds* or *fails* where "
        f"chance is excluded (paired differences, p < {SIGNIFICANT} after Holm's correction); a claim whose direction "
        "the data do not settle *cannot be tested*.",
        _table(
            _HEADINGS,
            (_summary(each) for each in done),
        ),
    ]
    for each in done:
        parts += [f"## {each.study.title} (`{each.study.name}`)", each.study.reference]
        if each.scores:
            headings = ["table: metric", "cells", "number", "τ", "error, %", "in published intervals"]
            parts.append(_table(headings, (_score(score) for score in each.scores)))
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


def _summary(done: Agreement) -> list[str]:
    said = summary(done.predicted, done.judged)
    cells = [f"`{done.study.name}`", str(said["holds"]), str(said["fails"]), str(said["untestable"])]
    for role in ("predicted", "fitted"):
        cells += [str(said[f"{role}_cells"]), _number(said[f"{role}_tau"]), _number(said[f"{role}_mape"])]
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
