"""How a validation is shown: the verdicts, what is beyond its limits, and all predictions beside what was recorded."""

from collections.abc import Iterator, Sequence

from vcpulab.cli import page
from vcpulab.cli.page import Lines, Part
from vcpulab.results.statistics import number
from vcpulab.show.table import Table
from vcpulab.validation import Agreement, Cell, Comparison, Report, Verdict
from vcpulab.validation.xen.tables import by_change, in_words, signs, verdicts, worst

_NAMES = {
    "share": "shares",
    "switches": "switches",
    "wait_median": "median waits",
    "wait_p90": "90th percentiles of waits",
}
_HEADINGS = ["of", "metric", "unit", "verdict", "recorded", "predicted", "range", "off by", "limit"]


def parts(report: Report) -> list[Part]:
    """The answer, the most important first."""
    said = [*_summed(report.verdicts), *(f"{folder}: skipped: {why}" for folder, why in report.skipped.items())]
    found = [] if report.xen is None else _of_xen(report.xen)
    if not report.comparisons:
        return [page.always(Lines(said)), *found] if said else found
    overview = Table("What was compared", _OVERVIEW, [_row(one) for one in report.comparisons], 4, together=True)
    worst_first = sorted(report.comparisons, key=lambda one: (not one.beyond, one.kind != "free run"))
    details = [
        [Table(_title(one), _HEADINGS, [_cell(cell) for cell in one.cells], 4, together=True)] for one in worst_first
    ]
    return [
        page.always(Lines(said)),
        *found,
        page.rows(overview, "comparison", soon=12),
        page.items(details, "table of predictions", rank=1),
    ]


def _of_xen(found: Agreement) -> list[Part]:
    """The same of recordings of Xen."""
    return [
        page.always(Lines(in_words(found))),
        page.always(verdicts(found)),
        page.always(signs(found)),
        page.rows(worst(found), "what-if beyond its limit", soon=10),
        page.rows(by_change(found), "kind of change", rank=1),
    ]


def _summed(verdicts: Sequence[Verdict]) -> Iterator[str]:
    for kind in dict.fromkeys(verdict.kind for verdict in verdicts):
        mine = [verdict for verdict in verdicts if verdict.kind == kind]
        said = [
            f"{_NAMES.get(one.metric, one.metric)} {one.within} of {one.total}"
            + (f" and {one.chance} that chance explains" if one.chance else "")
            + (f" ({one.needed} needed)" if one.needed < one.total else "")
            for one in mine
        ]
        passed = "passed" if all(one.passed for one in mine) else "failed"
        yield f"{kind}: {passed}; within their limits: {', '.join(said)}"


_OVERVIEW = ["recording", "demands", "scheduler", "verdict", "switches, %", "largest share, points", "waits within"]


def _row(one: Comparison) -> list[str]:
    switches = [cell.off for cell in one.cells if cell.metric == "switches"]
    shares = [cell.off for cell in one.cells if cell.metric == "share"]
    waits = [cell for cell in one.cells if cell.metric.startswith("wait")]
    return [
        one.setting.name,
        "its own" if one.demands == one.setting else one.demands.name,
        one.scheduler,
        f"{len(one.beyond)} beyond" if one.beyond else "within",
        f"{switches[0]:+.1f}" if switches else "",
        f"{max(shares, key=abs):+.2f}" if shares else "",
        f"{sum(cell.holds for cell in waits)} of {len(waits)}" if waits else "",
    ]


def _title(one: Comparison) -> str:
    of = "" if one.demands == one.setting else f", from the demands of {one.demands.name}"
    return f"{one.setting.name} ({one.scheduler}{of})"


def _cell(cell: Cell) -> list[str]:
    off = f"{cell.off:+.2f} points" if cell.off_unit == "points" else f"{cell.off:+.1f} %"
    verdict = "within" if cell.holds else "chance" if cell.chance else "beyond"
    low, high = (number(value) for value in cell.range)
    return [
        cell.thing,
        cell.metric,
        cell.unit,
        verdict,
        number(cell.recorded),
        number(cell.predicted),
        f"{low} to {high}",
        off,
        cell.limit,
    ]
