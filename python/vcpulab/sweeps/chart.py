"""Pictures of a metric over the axes of a sweep."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vcpulab._extras import require
from vcpulab._files import atomic
from vcpulab.errors import RequestError
from vcpulab.results.addresses import Address
from vcpulab.show import charts as plots
from vcpulab.show import drawing, html
from vcpulab.show.charts import palette
from vcpulab.show.document import Chart
from vcpulab.sweeps.plan import Plan
from vcpulab.sweeps.tables import Row

if TYPE_CHECKING:
    import altair as alt
else:
    alt = require("altair", "report")

_KINDS = (".html", ".svg", ".png")


def check(plan: Plan, file: Path) -> None:
    """Makes sure that a picture can be drawn.

    Raises:
        RequestError: the file or the sweep is not supported.
    """
    if file.suffix not in _KINDS:
        raise RequestError(field="plot", found=file, allowed=f"a file {', '.join(f'*{kind}' for kind in _KINDS)}")
    if len(plan.groups) > 2:
        reason, hint = f"{len(plan.groups)} parameters vary", "vcpulab query, and a plot of your own"
        raise RequestError(reason, field="plot", allowed="one or two", hint=hint)


def _line(plan: Plan) -> int | None:
    """The index of the path that has a line for each of its values; `None`: there is a single line.

    It is the first path of the second group. Where all paths vary together: the second, if values of the first repeat.
    """
    if len(plan.groups) == 2:
        return plan.groups[1][0]
    across = [str(point[0]) for point in plan.points]
    return 1 if len(plan.paths) > 1 and len(set(across)) < len(across) else None


_NARROW_PX = 290
"""The width of a chart on a telephone."""


def draw(plan: Plan, rows: Sequence[Row], address: Address) -> "alt.TopLevelMixin":
    """The metric over the first axis, a line for each value of the second, with 95 % confidence intervals."""
    first = plan.paths[0]
    line = _line(plan)
    second = None if line is None else plan.paths[line]
    across = all(isinstance(row.values[0], (int, float)) for row in rows)
    data = [
        {
            "x": row.values[0] if across else str(row.values[0]),
            "line": "" if line is None else str(row.values[line]),
            "mean": interval.mean,
            "low": address.metric.possible(interval.mean - (interval.half_width or 0)),
            "high": address.metric.possible(interval.mean + (interval.half_width or 0)),
        }
        for row in rows
        if (interval := row.intervals[0]) is not None
    ]
    lines = list(dict.fromkeys(str(each["line"]) for each in data))
    legend = None if second is None else alt.Legend(title=second, orient="top", columns=4)
    colour = alt.Color("line:N", legend=legend, scale=alt.Scale(domain=lines, range=palette(lines)))
    shape = alt.Shape("line:N", legend=legend, scale=alt.Scale(domain=lines))
    y = alt.Y("mean:Q", title=address.title)
    base = alt.Chart(plots.rows_of(data)).encode(color=colour)
    if across:
        base = base.encode(x=alt.X("x:Q", title=first, scale=alt.Scale(zero=False)))
    else:
        # Points are side by side: values without an order have no line between them.
        # Labels are slanted if they would touch on a telephone.
        needed = plots.CHAR_PX * sum(len(name) + 2 for name in {str(each["x"]) for each in data})
        x = alt.X("x:N", title=first, sort=None, axis=alt.Axis(labelAngle=0 if needed < _NARROW_PX else -40))
        base = base.encode(x=x, xOffset=alt.XOffset("line:N", sort=lines))
    marks = [
        base.mark_rule(strokeWidth=1.5).encode(y="low:Q", y2="high:Q"),
        base.mark_point(filled=True, size=45, opacity=1).encode(y=y, shape=shape),
    ]
    if across:
        marks.insert(0, base.mark_line().encode(y=y))
    title = f"{address} over {first}"
    values = "; ".join(
        f"{plan.values_text(row.point)}: {row.intervals[0]}" for row in rows if row.intervals[0] is not None
    )
    chart = alt.layer(*marks).properties(
        width=560, height=320, title=title, description=f"{title}, {address.unit}. {values}."
    )
    return plots.dressed(chart)


def write(plan: Plan, rows: Sequence[Row], address: Address, file: Path) -> None:
    """Writes the picture; a page is self-contained.

    Raises:
        OSError: the file cannot be written.
        DrawingError: the chart cannot be drawn.
    """
    chart = draw(plan, rows, address)
    if file.suffix == ".html":
        html.write(file, f"{plan.name}: {address}", [Chart(lambda: chart.properties(width="container"))])
    else:
        (picture,) = drawing.pictures("svg" if file.suffix == ".svg" else "png", [chart.to_dict()])
        atomic.write(file, picture)
