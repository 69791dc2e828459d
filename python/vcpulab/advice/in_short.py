"""What differs between two runs of many domains, in few rows: alike domains in one, what changes before the rest."""

from collections.abc import Mapping, Sequence

from vcpulab.advice.compare import Comparison, shown, table_of_differences
from vcpulab.results.addresses import JUDGED_BY, apps
from vcpulab.results.statistics import number
from vcpulab.scenario import names
from vcpulab.scenario.alike import groups
from vcpulab.scenario.scenario import Scenario
from vcpulab.show.folded import app_rows
from vcpulab.show.table import Table

ROWS_FULL = 40
"""Up to so many differences are shown each in a row of its own."""
ROWS_MAX = 12
_LINES_MAX = 4


def in_short(
    candidates: Sequence[Comparison],
    scenarios: tuple[Scenario, Scenario],
    labels: tuple[str, str],
) -> tuple[Table, list[str]]:
    """The differences that matter, alike domains in one row, and what they come to in words.

    Args:
        candidates: those that may be shown.
        scenarios: before and after.
        labels: what they are called.
    """
    alike = groups(*scenarios)
    changed = {one for row in alike for one in row if _settings(scenarios, one)}
    clients = {app.name for app in apps(scenarios[0]) if app.client is not None}
    row_of = {thing: tuple(row) for row in [*alike, *app_rows(scenarios[0], alike)] for thing in row}
    rows: dict[tuple[tuple[str, ...], str, str], list[Comparison]] = {}
    for one in candidates:
        goal = one.address.thing in clients and one.address.metric.name in JUDGED_BY
        if _verb(one) or goal:
            those = row_of.get(one.address.thing, (one.address.thing,))
            rows.setdefault((those, one.address.metric.name, _verb(one)), []).append(one)
    # What was changed first, then what clients see, then what changes most.
    order = sorted(
        rows.values(),
        key=lambda row: (
            row[0].address.domain not in changed,
            row[0].address.thing not in clients,
            row[0].may_regress,
            -max(abs(one.percent or 0) for one in row),
        ),
    )
    table = table_of_differences([], labels)
    cells = [_cells(row, labels) for row in order[:ROWS_MAX]]
    lines = _lines(order)
    hidden = len(candidates) - sum(map(len, order[:ROWS_MAX]))
    if hidden:
        lines.append(f"not shown: {hidden} metrics{_of_which(order[ROWS_MAX:])} (--all shows every one)")
    return Table(f"{table.title}; alike domains in a row, least to most", table.headings, cells, 2), lines


def _settings(scenarios: tuple[Scenario, Scenario], domain: str) -> bool:
    """Do the settings of a domain differ?"""
    before, after = (scenario.to_dict()["domain"].get(domain) for scenario in scenarios)
    return bool(before != after)


def _verb(one: Comparison) -> str:
    """What happens, in words; nothing if that is of no consequence."""
    if one.may_regress:
        return "may regress"
    return one.verdict.removesuffix("s" if one.verdict == "improves" else "es") if one.of_consequence else ""


def _of_which(rows: Sequence[Sequence[Comparison]]) -> str:
    changes = sum(len(row) for row in rows if row[0].verdict in ("improves", "regresses"))
    return f", {changes} of which change" if changes else ""


def _cells(row: Sequence[Comparison], labels: tuple[str, str]) -> list[str]:
    if len(row) == 1:
        return list(table_of_differences(row, labels).rows[0])
    percents = [one.percent for one in row if one.percent is not None]
    both = [(one.before, one.after) for one in row]
    p = max(one.p or 0 for one in row)
    return [
        f"{names.in_short([one.address.thing for one in row])}.{row[0].address.metric.name}",
        row[0].address.unit,
        *(_range([side.mean for side in sides if side is not None]) for sides in zip(*both, strict=True)),
        _range([one.difference.mean for one in row if one.difference is not None], signed=True),
        _range(percents, signed=True),
        "< 0.001" if p < 0.001 else f"{p:.3f}",
        "may regress" if row[0].may_regress else shown(row[0].verdict),
    ]


def _range(values: Sequence[float], *, signed: bool = False) -> str:
    if not values:
        return "–"
    least, most = (f"{'+' if signed and value > 0 else ''}{number(value)}" for value in (min(values), max(values)))
    return least if least == most else f"{least} to {most}"


def _lines(rows: Sequence[Sequence[Comparison]]) -> list[str]:
    """Who improves and who regresses, by how many metrics."""
    lines = []
    for verb in ("regress", "improve", "may regress"):
        metrics: dict[str, dict[str, None]] = {}
        for row in rows:
            for one in row:
                if _verb(one) == verb:
                    metrics.setdefault(one.address.domain or "host", {})[one.address.metric.name] = None
        alike: dict[tuple[str, ...], list[str]] = {}
        for domain, those in metrics.items():
            alike.setdefault(tuple(sorted(those)), []).append(domain)
        told = [f"{verb}: {', '.join(sorted(those))} of {names.in_short(sorted(who))}" for those, who in alike.items()]
        lines += told if len(told) <= _LINES_MAX else _summed(verb, metrics, told)
    return lines or ["nothing improves or regresses significantly"]


def _summed(verb: str, metrics: Mapping[str, object], told: Sequence[str]) -> list[str]:
    return [*told[: _LINES_MAX - 1], f"{verb}: {len(metrics)} domains in all, in {len(told)} ways"]
