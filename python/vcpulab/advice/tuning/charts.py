"""The charts of a search: the settings tried, the front, and the importance of parameters. Needs the extra `report`."""

from typing import TYPE_CHECKING, Any

from vcpulab._extras import require
from vcpulab.advice.tuning.candidates import Candidate
from vcpulab.advice.tuning.headline import in_words
from vcpulab.show import charts

if TYPE_CHECKING:
    import altair as alt

    from vcpulab.advice.tuning.answer import Tuning
else:
    alt = require("altair", "report")


def _by_scheduler(answer: "Tuning") -> "alt.Color":
    names = answer.space.schedulers
    scale = alt.Scale(domain=names, range=charts.COLORS)
    return alt.Color("scheduler:N", sort=names, scale=scale, legend=alt.Legend(orient="bottom"))


def history(answer: "Tuning") -> "alt.TopLevelMixin":
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
    base = alt.Chart(charts.rows_of(rows)).encode(x=order)
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
    return charts.dressed(chart)


def front(answer: "Tuning") -> "alt.TopLevelMixin":
    """A chart of the front: gain against the losses of other services."""
    rows = [
        {
            "setting": in_words(answer.space, offer.candidate),
            "gain": offer.gain.mean,
            "loss": offer.loss,
            "pays most": "nobody significantly" if offer.harm is None else str(offer.harm),
            "price": offer.price,
            "which": "recommended" if offer.recommended else "other",
        }
        for offer in answer.offers
    ]
    title = "What is traded for what: gain against harm, of settings that none beats"
    base = alt.Chart(charts.rows_of(rows)).encode(
        x=alt.X("loss:Q", title="what others lose most (score)"), y=alt.Y("gain:Q", title="gain (score)")
    )
    points = base.mark_point(size=90, filled=True).encode(
        color=alt.Color(
            "which:N",
            scale=alt.Scale(domain=["recommended", "other"], range=charts.COLORS[:2]),
            legend=alt.Legend(orient="bottom", title=None),
        ),
        tooltip=["setting:N", "gain:Q", "loss:Q", "pays most:N", "price:Q"],
    )
    labels = base.mark_text(align="left", dx=8, color="currentColor", limit=360).encode(text="setting:N")
    description = "; ".join(f"{row['setting']}: gain {row['gain']:.2f}, loss {row['loss']:.2f}" for row in rows)
    chart = alt.layer(points, labels).properties(
        width="container", height=260, title=title, description=f"{title}. {description}."
    )
    return charts.dressed(chart)


def importance(answer: "Tuning") -> "alt.TopLevelMixin":
    """A chart of the importance of each parameter."""
    rows = [{"parameter": key, "share": 100 * share} for key, share in answer.result.importance.items()]
    title = "Which parameters set the best quarter of settings apart"
    description = "; ".join(f"{row['parameter']}: {row['share']:.0f} %" for row in rows)
    chart = (
        alt.Chart(charts.rows_of(rows))
        .mark_bar(color=charts.COLORS[0])
        .encode(
            x=alt.X("share:Q", title="importance, %", axis=alt.Axis(tickCount=8)),
            y=alt.Y("parameter:N", sort=None, title=None, axis=alt.Axis(labelLimit=charts.LONG_LABEL_PX)),
            tooltip=["parameter:N", "share:Q"],
        )
        .properties(width="container", height=alt.Step(20), title=title, description=f"{title}. {description}.")
    )
    return charts.dressed(chart)


def _changes(candidate: Candidate) -> str:
    return ", ".join(f"{path} = {value}" for path, value in candidate.changes.items()) or "as it is"
