"""The tables of a validation of Xen's recordings, as the terminal, its page and the documentation show them."""

from collections.abc import Sequence
from dataclasses import replace

from vcpulab.results.statistics import number
from vcpulab.show.table import Table
from vcpulab_evidence.validation.xen.agreement import BARS, SIGNS_NEEDED, UNITS, WHAT_IF, Agreement, Held, Verdict

WORST = 40
"""Number of the worst what-ifs that are listed."""
_SIGNS = {1: "rises", -1: "falls", 0: "open", None: "–"}


def in_words(agreement: Agreement) -> list[str]:
    """The number of comparisons, and the verdict, in two lines."""
    whats = [verdict for verdict in agreement.verdicts if verdict.kind == WHAT_IF]
    cells = agreement.cells_of(WHAT_IF)
    pairs = {(cell.demands, cell.setting) for cell in cells}
    lines = [
        f"Xen: {len(agreement.recordings)} recordings, {len(pairs)} what-ifs with {len(cells)} predictions",
    ]
    if whats:
        failed = [BARS[verdict.metric].name for verdict in whats if not verdict.passed]
        failed += [] if all(row.passed for row in agreement.signs if row.metric == "all") else ["signs of changes"]
        lines.append("what-if: " + (f"failed: {', '.join(failed)}" if failed else "passed: all bars are reached"))
    return lines


def verdicts(agreement: Agreement) -> Table:
    """The verdict on each metric, for what-ifs and for twins in their own setting."""
    headings = [
        "predictions",
        "metric",
        "verdict",
        "bar",
        "cells",
        "within, %",
        "off, median",
        "off, p90",
        "off, mean",
        "bias",
        "no more than chance",
        "chance, median",
        "chance, p90",
        "chance from",
    ]
    rows = [
        [
            verdict.kind,
            BARS[verdict.metric].name,
            "–" if verdict.kind != WHAT_IF else "passed" if verdict.passed else "failed",
            verdict.bar,
            str(verdict.cells),
            " / ".join(f"{part:.0f}" for part in verdict.reached),
            *_errors(verdict),
            str(verdict.by_chance),
            _number(verdict.chance_median),
            _number(verdict.chance_p90),
            verdict.evidence,
        ]
        for verdict in agreement.verdicts
    ]
    title = "Predicted and recorded: errors without their signs, points or %"
    table = Table(title, headings, rows, 4, together=True)
    return replace(
        table, narrower=_only(table, ["predictions", "metric", "verdict", "within, %", "off, median", "off, p90"])
    )


def _only(table: Table, headings: Sequence[str]) -> Table:
    """Some columns of a table, for narrow terminals."""
    kept = [table.headings.index(heading) for heading in headings]
    text_columns = sum(index < table.text_columns for index in kept)
    rows = [[row[index] for index in kept] for row in table.rows]
    return replace(table, headings=headings, rows=rows, text_columns=text_columns)


def _errors(verdict: Verdict) -> list[str]:
    errors = (verdict.off_median, verdict.off_p90, verdict.off_mean)
    return [*(number(error) for error in errors), f"{verdict.bias:+.2g}"]


def _number(value: float | None) -> str:
    return "–" if value is None else number(value)


def signs(agreement: Agreement) -> Table:
    """Signs of changes from one recorded setting to another: right and wrong predictions."""
    rows = [
        [
            BARS[row.metric].name if row.metric in BARS else "all",
            "–" if row.metric != "all" else "passed" if row.passed else "failed",
            str(row.changes),
            str(row.recorded),
            str(row.right),
            str(row.wrong),
            str(row.undecided),
            "–" if row.part_right is None else f"{100 * row.part_right:.1f}",
        ]
        for row in agreement.signs
    ]
    needed = f"right, % ({100 * SIGNS_NEEDED:g} needed)"
    headings = ["metric", "verdict", "changes", "beyond chance", "right", "wrong", "predicted as none", needed]
    return Table("Signs of changes from setting to setting", headings, rows, 2, together=True)


def worst(agreement: Agreement) -> Table:
    """The what-ifs with the largest errors outside their limits."""
    return cells("Farthest beyond their limits", agreement.worst(WORST))


CELL_HEADINGS = [
    "twin of",
    "in the setting of",
    "changed",
    "of",
    "metric",
    "recorded",
    "predicted",
    "mean",
    "off by",
    "interval",
    "chance",
    "recorded change",
    "predicted change",
]


def cells(title: str, held: Sequence[Held], *, folded: bool = False) -> Table:
    """Predictions beside the recorded values."""
    table = Table(title, CELL_HEADINGS, [_cell(cell) for cell in held], 5, together=True, folded=folded)
    kept = ["twin of", "in the setting of", "of", "metric", "recorded", "predicted", "off by"]
    return replace(table, narrower=_only(table, kept))


def _cell(cell: Held) -> list[str]:
    unit = cell.bar.unit
    return [
        cell.demands,
        cell.setting,
        cell.changed or "nothing",
        cell.thing,
        f"{cell.metric}, {UNITS[cell.metric]}",
        number(cell.recorded),
        number(cell.predicted),
        f"{number(cell.predicted_mean)} ± {number(cell.half_width)}",
        f"{cell.off:+.3g} {unit}",
        f"{cell.off_low:+.3g} to {cell.off_high:+.3g}",
        "–" if cell.chance is None else f"{number(cell.chance)} ({cell.evidence})",
        _change(cell.change_recorded, cell.sign_recorded, unit),
        _change(cell.change_predicted, cell.sign_predicted, unit),
    ]


def _change(by: float | None, sign: int | None, unit: str) -> str:
    return "–" if by is None else f"{by:+.3g} {unit}, {_SIGNS[sign]}"


def by_change(agreement: Agreement) -> Table:
    """The errors of what-ifs by changed parameter."""
    rows = [
        [changed, BARS[metric].name, str(verdict.cells), *_errors(verdict), str(verdict.by_chance)]
        for changed, metric, verdict in agreement.by_change
    ]
    headings = ["changed", "metric", "cells", "off, median", "off, p90", "off, mean", "bias", "no more than chance"]
    return Table("What-ifs by what was changed", headings, rows, 2, together=True)
