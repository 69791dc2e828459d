"""The display of a validation: the verdicts, predictions outside their limits, and all predictions and recordings."""

from collections.abc import Iterator, Sequence

from vcpulab.results.statistics import number
from vcpulab.show.document import Lines, Part
from vcpulab.show.table import Table
from vcpulab_evidence.validation import Agreement, Cell, Comparison, Report, Verdict
from vcpulab_evidence.validation.xen.tables import by_change, in_words, signs, verdicts, worst

_NAMES = {
    "share": "shares",
    "switches": "switches",
    "wait_median": "median waits",
    "wait_p90": "90th percentiles of waits",
    "on_main_cpu": "time on the main CPU",
    "beside": "threads beside",
}
_HEADINGS = ["of", "metric", "unit", "verdict", "recorded", "predicted", "range", "off by", "limit"]


def parts(report: Report) -> list[Part]:
    """The answer, the most important first."""
    summary = [
        *_summed(report.verdicts),
        *(f"{folder}: skipped: {reason}" for folder, reason in report.skipped.items()),
    ]
    xen_parts = [] if report.xen is None else _of_xen(report.xen)
    if not report.comparisons:
        return [Part.always(Lines(summary)), *xen_parts] if summary else xen_parts
    overview = Table(
        "What was compared", _OVERVIEW, [_row(comparison) for comparison in report.comparisons], 4, together=True
    )
    worst_first = sorted(
        report.comparisons, key=lambda comparison: (not comparison.beyond, not comparison.from_own_demands)
    )
    details = [
        [Table(_title(comparison), _HEADINGS, [_cell(cell) for cell in comparison.cells], 4, together=True)]
        for comparison in worst_first
    ]
    return [
        Part.always(Lines(summary)),
        *xen_parts,
        Part.rows(overview, "comparison", rounds=(0, 12)),
        Part.items(details, "table of predictions", rank=1),
    ]


def _of_xen(agreement: Agreement) -> list[Part]:
    """The parts for recordings of Xen."""
    return [
        Part.always(Lines(in_words(agreement))),
        Part.always(verdicts(agreement)),
        Part.always(signs(agreement)),
        Part.rows(worst(agreement), "what-if beyond its limit", rounds=(0, 10)),
        Part.rows(by_change(agreement), "kind of change", rank=1),
    ]


def _summed(verdicts: Sequence[Verdict]) -> Iterator[str]:
    for kind in dict.fromkeys(verdict.kind for verdict in verdicts):
        mine = [verdict for verdict in verdicts if verdict.kind == kind]
        metrics = [
            f"{_NAMES.get(verdict.metric, verdict.metric)} {verdict.within} of {verdict.total}"
            + (f" and {verdict.chance} that chance explains" if verdict.chance else "")
            + (f" ({verdict.needed} needed)" if verdict.needed < verdict.total else "")
            for verdict in mine
        ]
        passed = "passed" if all(verdict.passed for verdict in mine) else "failed"
        yield f"{kind}: {passed}; within their limits: {', '.join(metrics)}"


_OVERVIEW = ["recording", "demands", "scheduler", "verdict", "switches, %", "largest share, points", "waits within"]


def _row(comparison: Comparison) -> list[str]:
    switches = [cell.off for cell in comparison.cells if cell.metric == "switches"]
    shares = [cell.off for cell in comparison.cells if cell.metric == "share"]
    waits = [cell for cell in comparison.cells if cell.metric.startswith("wait")]
    return [
        comparison.setting.name,
        "its own" if comparison.from_own_demands else comparison.demands.name,
        comparison.scheduler,
        f"{len(comparison.beyond)} beyond" if comparison.beyond else "within",
        f"{switches[0]:+.1f}" if switches else "",
        f"{max(shares, key=abs):+.2f}" if shares else "",
        f"{sum(cell.holds for cell in waits)} of {len(waits)}" if waits else "",
    ]


def _title(comparison: Comparison) -> str:
    source = "" if comparison.from_own_demands else f", from the demands of {comparison.demands.name}"
    return f"{comparison.setting.name} ({comparison.scheduler}{source})"


def _cell(cell: Cell) -> list[str]:
    off = f"{cell.off:+.{1 if cell.off_unit == '%' else 2}f} {cell.off_unit}"
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
