"""A page on a search: what is advised, what was tried, what is traded for what, and the gain as confirmed.

Needs the extra `report`.
"""

from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from vcpulab.advice.compare import frame_of_changes, in_words, table_of_differences
from vcpulab.advice.tuning.answer import Tuning
from vcpulab.advice.tuning.confirming import Confirmation
from vcpulab.advice.tuning.search import Candidate
from vcpulab.extras import require
from vcpulab.hypervisors.xl import new_steps
from vcpulab.show import charts as plots
from vcpulab.show import html
from vcpulab.show.table import Table

if TYPE_CHECKING:
    import altair as alt
else:
    alt = require("altair", "report")

_FRONT_MAX = 30
"""More lines than that are too many to read."""


def write_report(path: str | PathLike[str], answer: Tuning) -> None:
    """Writes the page.

    Args:
        path: the file; replaced if it is there.
        answer: what came out.
    """
    wanted = "; ".join(map(str, [*answer.search.goals, *answer.search.slos]))
    parts = [html.section("What to set", [_parameters(answer), *_commands(answer)])]
    if answer.confirmed is not None:
        parts.append(html.section("Improvements and regressions", _confirmed(answer.confirmed)))
    tried = [_history(answer)]
    if len(answer.search.goals) > 1:
        tried.append(_front(answer))
    if answer.found.importance:
        tried.append(_importance(answer))
    parts.append(html.section("Settings tried", map(html.chart, tried)))
    title = f"What to set: {answer.space.scenario.name}"
    html.write(path, title, parts, [answer.verdict, f"Wanted: {wanted}."])


def _confirmed(confirmed: Confirmation) -> list[Markup]:
    gains = [[name, str(gain)] for name, gain in confirmed.gains.items()]
    gains.append(["score: their mean", str(confirmed.score)])
    judged = [one for one in confirmed.comparisons if one.address.better and one.percent is not None]
    return [
        html.table(Table(f"On {confirmed.score.n} fresh replications", ["goal", "gain"], gains)),
        html.bullets(in_words(confirmed.comparisons)),
        html.chart(plots.differences(frame_of_changes(judged))),
        html.table(replace(table_of_differences(judged), title="Every metric with a good direction")),
    ]


def _parameters(answer: Tuning) -> Markup:
    rows = [[key, before, after, str(answer.found.costs.get(key, "–"))] for key, before, after in answer.changed()]
    if not rows:
        return html.paragraphs("Nothing: every parameter stays as it is.")
    return html.table(Table("", ["parameter", "now", "found", "changing it back costs of the score"], rows))


def _commands(answer: Tuning) -> list[Markup]:
    if not answer.advised:
        return []
    steps = new_steps(answer.space.scenario, answer.found.best.scenario)
    lines = [step.text if step.how == "run" else f"# {step.how}: {step.text}" for step in steps]
    return [html.preformatted("\n".join(lines))]


def _scheduler(candidate: Candidate) -> str:
    return str(candidate.scenario.to_dict()["host"]["scheduler"])


def _by_scheduler(answer: Tuning) -> "alt.Color":
    names = answer.space.schedulers
    scale = alt.Scale(domain=names, range=plots.COLOURS)
    return alt.Color("scheduler:N", sort=names, scale=scale, legend=alt.Legend(orient="bottom"))


def _history(answer: Tuning) -> "alt.TopLevelMixin":
    """The score of each candidate in the order in which they were tried, and the best so far."""
    standings = answer.found.standings
    rows: list[dict[str, Any]] = []
    best: float | None = None
    for position, candidate in enumerate(c for c in answer.found.candidates if c.number in standings):
        standing = standings[candidate.number]
        if candidate.dropped is None and standing.excess <= 0:
            best = standing.score if best is None else max(best, standing.score)
        end = "run to the end" if candidate.dropped is None else "given up early"
        rows.append(
            {
                "tried": position,
                "score": standing.score,
                "best": best,
                "scheduler": _scheduler(candidate),
                "end": end,
                "why": candidate.dropped or "",
                "changes": _changes(candidate),
            }
        )
    order = alt.X("tried:Q", title="setting, in the order tried", axis=alt.Axis(tickMinStep=1, format="d"))
    base = alt.Chart(plots.rows_of(rows)).encode(x=order)
    points = base.mark_point(size=50).encode(
        y=alt.Y("score:Q", title="score (mean gain)"),
        color=_by_scheduler(answer),
        shape=alt.Shape("end:N", title=None, legend=alt.Legend(orient="bottom")),
        tooltip=["tried:Q", "score:Q", "scheduler:N", "why:N", "changes:N"],
    )
    line = base.mark_line(interpolate="step-after", opacity=0.6, color="currentColor").encode(y="best:Q")
    title = "Settings tried, and the best so far"
    said = f"{len(rows)} settings; the best score is {best or 0:.3f}"
    chart = alt.layer(line, points).properties(
        width="container", height=260, title=title, description=f"{title}. {said}."
    )
    return plots.dressed(chart)


def _front(answer: Tuning) -> "alt.TopLevelMixin":
    """The gains of settings that no other beats in every goal: a line for each."""
    standings, goals = answer.found.standings, [goal.name for goal in answer.search.goals]
    best = answer.found.best
    front = sorted(answer.found.front, key=lambda one: standings[one.number].score, reverse=True)[:_FRONT_MAX]
    shown = {one.number: one for one in [*front, best]}
    rows = [
        {
            "setting": f"{number}: {_changes(candidate)}",
            "goal": goal,
            "gain": gain,
            "scheduler": _scheduler(candidate),
            "which": "advised" if candidate is best and answer.advised else "present" if not number else "other",
        }
        for number, candidate in shown.items()
        for goal, gain in zip(goals, standings[number].gains, strict=True)
    ]
    title = "What is traded for what: settings that none beats in every goal"
    chart = (
        alt.Chart(plots.rows_of(rows))
        .mark_line(point=True)
        .encode(
            x=alt.X("goal:N", sort=goals, title=None, axis=alt.Axis(labelAngle=0)),
            y=alt.Y("gain:Q", title="gain over the present setting"),
            detail="setting:N",
            color=_by_scheduler(answer),
            strokeWidth=alt.condition("datum.which == 'advised'", alt.value(4), alt.value(1.2)),
            opacity=alt.condition("datum.which == 'other'", alt.value(0.5), alt.value(1)),
            tooltip=["setting:N", "goal:N", "gain:Q", "which:N"],
        )
        .properties(width="container", height=260, title=title, description=f"{title}. {len(shown)} settings.")
    )
    return plots.dressed(chart)


def _importance(answer: Tuning) -> "alt.TopLevelMixin":
    rows = [{"parameter": key, "share": 100 * share} for key, share in answer.found.importance.items()]
    title = "Which parameters set the best quarter of settings apart"
    said = "; ".join(f"{row['parameter']}: {row['share']:.0f} %" for row in rows)
    chart = (
        alt.Chart(plots.rows_of(rows))
        .mark_bar(color=plots.COLOURS[0])
        .encode(
            x=alt.X("share:Q", title="importance, %"),
            y=alt.Y("parameter:N", sort=None, title=None, axis=alt.Axis(labelLimit=240)),
            tooltip=["parameter:N", "share:Q"],
        )
        .properties(width="container", height=alt.Step(20), title=title, description=f"{title}. {said}.")
    )
    return plots.dressed(chart)


def _changes(candidate: Candidate) -> str:
    return ", ".join(f"{path} = {value}" for path, value in candidate.changes.items()) or "as it is"
