"""A page on a search: the advice, the settings tried, the front, and the confirmed gain.

Needs the extra `report`.
"""

from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from vcpulab.advice.comparison_report import verdict
from vcpulab.advice.tuning.answer import Tuning
from vcpulab.advice.tuning.candidates import Candidate
from vcpulab.advice.tuning.confirming import Confirmation
from vcpulab.advice.tuning.headline import in_words as words_of
from vcpulab.extras import require
from vcpulab.hypervisors import Toolstack
from vcpulab.hypervisors.steps import script
from vcpulab.show import charts as plots
from vcpulab.show import html
from vcpulab.show.table import Table

if TYPE_CHECKING:
    import altair as alt
else:
    alt = require("altair", "report")


def write_report(path: str | PathLike[str], answer: Tuning, toolstack: Toolstack | None = None) -> None:
    """Writes the page.

    Args:
        path: the file; an existing file is replaced.
        answer: the answer of the search.
        toolstack: toolstack of the commands; `None`: that of the scenario's host.
    """
    wanted = "; ".join(map(str, [*answer.search.goals, *answer.search.slos]))
    typed = "\n".join(script(answer.commands(toolstack)))
    # The answer in words and in a picture, and then the commands.
    parts = []
    if answer.confirmed is not None:
        parts.append(html.section("Improvements and regressions", _confirmed(answer.confirmed)))
    parts.append(html.section(_heading(answer), [_parameters(answer), *([html.preformatted(typed)] if typed else [])]))
    if len(answer.offers) > 1:
        # Without losses, no trade-off is drawn.
        drawn = [html.chart(_front(answer))] if any(offer.loss for offer in answer.offers) else []
        parts.append(html.section("The front", [*drawn, html.table(replace(answer.offered(), title=""))]))
    tried = [_history(answer)]
    if answer.result.importance:
        tried.append(_importance(answer))
    parts.append(html.section("Settings tried", [html.paragraphs(*answer.reasons()), *map(html.chart, tried)]))
    title = f"{_heading(answer)}: {answer.space.scenario.name}"
    html.write(path, title, parts, [answer.headline, f"Wanted: {wanted}."])


def _heading(answer: Tuning) -> str:
    """Heading of the best setting's parameters: advice, or only the nearest of the settings tried."""
    changes_something = any(True for _ in answer.changed())
    return (
        "What to set" if answer.advised or not changes_something else "The nearest setting tried, which is not advised"
    )


def _confirmed(confirmed: Confirmation) -> list[Markup]:
    gains = [[name, str(gain)] for name, gain in confirmed.gains.items()]
    gains.append(["score: their mean", str(confirmed.score)])
    runs = (confirmed.before, confirmed.after)
    return [
        *verdict(runs, ("now", "found"), confirmed.comparisons),
        html.table(Table(f"On {confirmed.score.n} fresh replications", ["goal", "gain"], gains)),
    ]


def _parameters(answer: Tuning) -> Markup:
    rows = [[key, before, after, str(answer.result.costs.get(key, "–"))] for key, before, after in answer.changed()]
    if not rows:
        return html.paragraphs("Nothing: every parameter stays as it is.")
    return html.table(Table("", ["parameter", "now", "found", "changing it back costs of the score"], rows))


def _by_scheduler(answer: Tuning) -> "alt.Color":
    names = answer.space.schedulers
    scale = alt.Scale(domain=names, range=plots.COLOURS)
    return alt.Color("scheduler:N", sort=names, scale=scale, legend=alt.Legend(orient="bottom"))


def _history(answer: Tuning) -> "alt.TopLevelMixin":
    """A chart of each candidate's score in the order tried, and the best so far."""
    standings = answer.result.standings
    rows: list[dict[str, Any]] = []
    best: float | None = None
    for position, candidate in enumerate(c for c in answer.result.candidates if c.number in standings):
        standing = standings[candidate.number]
        if candidate.dropped is None and standing.excess <= 0:
            best = standing.score if best is None else max(best, standing.score)
        end = "run to the end" if candidate.dropped is None else "given up early"
        rows.append(
            {
                "tried": position,
                "score": standing.score,
                "best": best,
                "scheduler": candidate.scheduler,
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
    description = f"{len(rows)} settings; the best score is {best or 0:.3f}"
    chart = alt.layer(line, points).properties(
        width="container", height=260, title=title, description=f"{title}. {description}."
    )
    return plots.dressed(chart)


def _front(answer: Tuning) -> "alt.TopLevelMixin":
    """A chart of the front: gain against the losses of other services."""
    rows = [
        {
            "setting": words_of(answer.space, offer.candidate),
            "gain": offer.gain.mean,
            "loss": offer.loss,
            "pays most": "nobody significantly" if offer.harm is None else str(offer.harm),
            "price": offer.price,
            "which": "recommended" if offer.recommended else "other",
        }
        for offer in answer.offers
    ]
    title = "What is traded for what: gain against harm, of settings that none beats"
    base = alt.Chart(plots.rows_of(rows)).encode(
        x=alt.X("loss:Q", title="what others lose most (score)"), y=alt.Y("gain:Q", title="gain (score)")
    )
    points = base.mark_point(size=90, filled=True).encode(
        color=alt.Color(
            "which:N",
            scale=alt.Scale(domain=["recommended", "other"], range=plots.COLOURS[:2]),
            legend=alt.Legend(orient="bottom", title=None),
        ),
        tooltip=["setting:N", "gain:Q", "loss:Q", "pays most:N", "price:Q"],
    )
    labels = base.mark_text(align="left", dx=8, color="currentColor", limit=360).encode(text="setting:N")
    description = "; ".join(f"{row['setting']}: gain {row['gain']:.2f}, loss {row['loss']:.2f}" for row in rows)
    chart = alt.layer(points, labels).properties(
        width="container", height=260, title=title, description=f"{title}. {description}."
    )
    return plots.dressed(chart)


def _importance(answer: Tuning) -> "alt.TopLevelMixin":
    rows = [{"parameter": key, "share": 100 * share} for key, share in answer.result.importance.items()]
    title = "Which parameters set the best quarter of settings apart"
    description = "; ".join(f"{row['parameter']}: {row['share']:.0f} %" for row in rows)
    chart = (
        alt.Chart(plots.rows_of(rows))
        .mark_bar(color=plots.COLOURS[0])
        .encode(
            x=alt.X("share:Q", title="importance, %", axis=alt.Axis(tickCount=8)),
            y=alt.Y("parameter:N", sort=None, title=None, axis=alt.Axis(labelLimit=plots.LONG_LABEL_PX)),
            tooltip=["parameter:N", "share:Q"],
        )
        .properties(width="container", height=alt.Step(20), title=title, description=f"{title}. {description}.")
    )
    return plots.dressed(chart)


def _changes(candidate: Candidate) -> str:
    return ", ".join(f"{path} = {value}" for path, value in candidate.changes.items()) or "as it is"
