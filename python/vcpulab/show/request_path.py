"""The path of a single request as a timeline: rows with a bar each, and a chart."""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from vcpulab.results.request_path import MEDIAN, Path
from vcpulab.results.statistics import number
from vcpulab.show.table import Table

if TYPE_CHECKING:
    import altair as alt

LINES_MAX = 15
_BAR_CHARS = 24
_WORDS_CHARS = 30
_SUMS_MAX = 8


def timeline(path: Path, most: int = LINES_MAX) -> Table:
    """A path in time in at most `most` lines: the state, a bar from begin to end, and the duration."""
    whole = path.response_ns / 1e6
    rows = []
    for line in path.lines(most):
        begin, end = (round(at / whole * _BAR_CHARS) for at in (line.begin_ms, line.end_ms))
        # A line that is too short for a bar has a stroke at its begin.
        bar = "█" * (end - begin) or "▏"
        lead = " " * min(begin, _BAR_CHARS - 1)
        rows.append([line.text, lead + bar, f"{line.begin_ms:.3f}", f"{line.end_ms - line.begin_ms:.3f}"])
    begun = f"begun at {path.begin_ns / 1e9:.6f} s of replication {path.replication}"
    title = f"The {path.title}: {number(whole)} ms, {begun}"
    headings = ["what happens", "when", "from, ms", "for, ms"]
    # In a narrow terminal, sentences wrap before the bars are left out.
    without_bars = Table(title, [headings[0], *headings[2:]], [[row[0], *row[2:]] for row in rows], together=True)
    wrapped = [[textwrap.fill(words, _WORDS_CHARS), *rest] for words, *rest in rows]
    narrower = Table(title, headings, wrapped, text_columns=2, together=True, narrower=without_bars)
    return Table(title, headings, rows, text_columns=2, together=True, narrower=narrower)


def beside(paths: Sequence[Path]) -> Table:
    """The time of several requests by state, side by side."""
    sums = [path.sums() for path in paths]
    maxima = pl.concat(sums).group_by("said", maintain_order=True).agg(pl.col("ms").max())
    shown = maxima.sort("ms", descending=True, maintain_order=True)["said"].head(_SUMS_MAX).to_list()
    times = [dict(table.iter_rows()) for table in sums]
    rows = [[words, *(_ms(time.get(words)) for time in times)] for words in shown]
    if maxima.height > _SUMS_MAX:
        rest = [sum(ms for words, ms in time.items() if words not in shown) for time in times]
        rows.append([f"{maxima.height - _SUMS_MAX} others", *map(_ms, rest)])
    rows.append(["together", *(_ms(path.response_ns / 1e6) for path in paths)])
    quantiles = ["median" if path.quantile == MEDIAN else f"p{100 * path.quantile:g}" for path in paths]
    return Table(
        f"Requests of {paths[0].client}", ["what happens", *(f"{quantile}, ms" for quantile in quantiles)], rows
    )


def _ms(ms: float | None) -> str:
    return "" if ms is None else f"{ms:.3f}"


def chart(path: Path) -> "alt.TopLevelMixin":
    """A path in time, a row for each place."""
    from vcpulab.show import charts

    # Consecutive legs with the same words share a bar.
    bars = path.legs.group_by(pl.struct("where", "said").rle_id().alias("bar"), maintain_order=True)
    frame = bars.agg(pl.first("where", "kind", "said"), pl.first("begin_ns"), pl.last("end_ns")).select(
        "where",
        "kind",
        "said",
        ((pl.col("begin_ns") - path.begin_ns) / 1e6).alias("begin_ms"),
        ((pl.col("end_ns") - path.begin_ns) / 1e6).alias("end_ms"),
    )
    lines = path.lines(LINES_MAX)
    words = "; ".join(f"from {number(line.begin_ms)} to {number(line.end_ms)} ms {line.text}" for line in lines)
    title = f"The {path.title}: {number(path.response_ns / 1e6)} ms"
    return charts.legs(frame, title, f"{title}. {words}.")
