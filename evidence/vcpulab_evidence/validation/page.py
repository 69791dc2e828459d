"""The page of a validation: verdicts, charts of predicted against recorded, and every prediction. Needs `report`."""

from collections.abc import Iterator
from os import PathLike
from typing import TYPE_CHECKING

from vcpulab.show import html
from vcpulab.show.document import Block, Contents, Drawing, Heading, Prose
from vcpulab.show.table import Table
from vcpulab_evidence.validation.report import Report
from vcpulab_evidence.validation.xen import tables
from vcpulab_evidence.validation.xen.agreement import BARS, OWN, UNITS, WHAT_IF, Agreement

if TYPE_CHECKING:
    import altair as alt

CELLS_MAX = 20_000
"""Maximum number of rows of a table, for browsers; the CSV has all predictions."""
_COMMAND = "vcpulab validate DIR --report PAGE"


def write(path: str | PathLike[str], report: Report) -> None:
    """Writes the page; an existing file is replaced.

    Raises:
        OSError: the file cannot be written.
    """
    parts = [*_of_xen(report.xen)] if report.xen is not None else []
    parts += [*_of_linux(report)]
    if report.skipped:
        rows = [[str(folder), reason] for folder, reason in report.skipped.items()]
        parts += [Heading("Not compared"), Table("", ["recording", "why"], rows, 2)]
    html.write(path, "Predicted and recorded", [Contents(), *parts])


def _of_xen(agreement: Agreement) -> Iterator[Block]:
    yield Heading("Xen")
    yield Prose(
        "\n".join(f"* {line}" for line in tables.in_words(agreement))
        + "\n\nThe twin of each recording is run in the setting of every other recording of the same guests. It has "
        "seen nothing of the recording that it is held against but its setting, and where that is of another boot, "
        "ticks of its guests are drawn at random. A prediction is the median of ten replications. *Chance* is how far "
        "recordings of one setting are apart that differ by their seed, or else the halves of each recording; *bias* "
        "the median of the errors with their signs."
    )
    yield tables.verdicts(agreement)
    yield tables.signs(agreement)
    yield Heading("Predicted against recorded")
    for metric, bar in BARS.items():
        if any(cell.metric == metric for cell in agreement.cells):
            text = f"Each mark is one prediction; on the line it equals what was recorded. The bar: {bar}."
            yield Drawing(bar.name.capitalize(), scatter(agreement, metric).to_dict(), text, _COMMAND)
    yield Heading("By what was changed")
    yield tables.by_change(agreement)
    yield Heading("Farthest off")
    yield tables.worst(agreement)
    yield Heading("Every prediction")
    for metric, bar in BARS.items():
        for kind in agreement.kinds:
            held = agreement.cells_of(kind, metric)[:CELLS_MAX]
            if held:
                yield tables.cells(f"{bar.name}, {kind}: {len(held)}", held, folded=True)


def scatter(agreement: Agreement, metric: str) -> "alt.TopLevelMixin":
    """Predicted against recorded values of a metric, on the line where they are equal."""
    from vcpulab._extras import require
    from vcpulab.show import charts as plots

    alt = require("altair", "report")
    logarithmic = metric.startswith("wait")
    rows = [
        {
            "recorded": cell.recorded,
            "predicted": cell.predicted,
            "kind": cell.kind,
            "cell": f"{cell.thing}: twin of {cell.demands}, in the setting of {cell.setting}",
            "off": f"{cell.off:+.3g} {cell.bar.unit}",
        }
        for cell in agreement.cells
        if cell.metric == metric and (not logarithmic or (cell.recorded > 0 and cell.predicted > 0))
    ]
    ends = [value for row in rows for value in (float(str(row["recorded"])), float(str(row["predicted"])))]
    scale = alt.Scale(type="log" if logarithmic else "linear", domain=[min(ends), max(ends)], nice=True)
    line = [{"recorded": end, "predicted": end} for end in (min(ends), max(ends))]
    x = alt.X("recorded:Q", title=f"recorded, {UNITS[metric]}", scale=scale)
    y = alt.Y("predicted:Q", title=f"predicted, {UNITS[metric]}", scale=scale)
    marks = (
        alt.Chart(plots.rows_of(rows))
        .mark_point(size=36, strokeWidth=1.2, opacity=0.7)
        .encode(
            x=x,
            y=y,
            color=alt.Color("kind:N", title=None, scale=alt.Scale(domain=[WHAT_IF, OWN], range=plots.COLORS[:2])),
            shape=alt.Shape("kind:N", title=None, scale=alt.Scale(domain=[WHAT_IF, OWN], range=["circle", "cross"])),
            tooltip=["cell:N", "recorded:Q", "predicted:Q", "off:N"],
        )
    )
    equal = alt.Chart(plots.rows_of(line)).mark_line(strokeWidth=1, color="#888888").encode(x=x, y=y)
    description = f"{BARS[metric].name}: predicted against recorded, {len(rows)} predictions"
    return plots.dressed((equal + marks).properties(width="container", height=380, description=description))


def _of_linux(report: Report) -> Iterator[Block]:
    if not report.comparisons:
        return
    yield Heading("Linux")
    rows = [
        [
            verdict.kind,
            verdict.metric,
            "passed" if verdict.passed else "failed",
            str(verdict.within),
            str(verdict.total),
            str(verdict.chance),
        ]
        for verdict in report.verdicts
    ]
    headings = ["kind", "metric", "verdict", "within", "of", "that chance explains"]
    yield Table("Predictions within their limits", headings, rows, 3)
    headings = ["of", "metric", "recorded", "predicted", "range", "off by", "limit", "within"]
    for comparison in report.comparisons:
        lines = [
            [
                cell.thing,
                f"{cell.metric}, {cell.unit}",
                f"{cell.recorded:.4g}",
                f"{cell.predicted:.4g}",
                f"{cell.range[0]:.4g} to {cell.range[1]:.4g}",
                f"{cell.off:+.3g} {cell.off_unit}",
                cell.limit,
                "yes" if cell.holds else "chance" if cell.chance else "no",
            ]
            for cell in comparison.cells
        ]
        title = f"{comparison.kind}: {comparison.setting.name}, from the demands of {comparison.demands.name}"
        yield Table(title, headings, lines, 2, folded=True)
