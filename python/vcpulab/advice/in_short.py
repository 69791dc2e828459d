"""What differs between two runs of many domains, in few rows: alike domains in one, what changes before the rest."""

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import polars as pl

from vcpulab.advice.compare import Comparison, beside, frame_of_changes, shown, table_of_differences
from vcpulab.results.addresses import JUDGED_BY, app_rows, apps
from vcpulab.results.statistics import number
from vcpulab.scenario import names
from vcpulab.scenario.alike import groups
from vcpulab.scenario.scenario import Scenario
from vcpulab.show.table import Table

ROWS_FULL = 16
"""Up to so many differences are shown each in a row of its own."""
ROWS_MAX = 6
_LINES_MAX = 2
_HEADLINE_MAX = 3
_SURE = ("improve", "regress")


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
    rows: dict[tuple[tuple[str, ...], str], list[Comparison]] = {}
    for one in candidates:
        those = row_of.get(one.address.thing, (one.address.thing,))
        rows.setdefault((those, one.address.metric.name), []).append(one)

    def goal(row: Sequence[Comparison]) -> bool:
        return row[0].address.thing in clients and row[0].address.metric.name in JUDGED_BY

    def tells(row: Sequence[Comparison]) -> bool:
        return goal(row) or any(map(_verb, row))

    # What was changed first, then what clients see, then what changes most.
    order = sorted(
        filter(tells, rows.values()),
        key=lambda row: (
            row[0].address.domain not in changed,
            row[0].address.thing not in clients,
            not any(_verb(one) in _SURE for one in row),
            -max((abs(one.percent or 0) for one in row if _verb(one) or len(row) == 1), default=0),
        ),
    )
    title = "Differences, paired, 95 % intervals; alike domains in a row, least to most"
    # What clients see has its place, however much else changes.
    seen = list(filter(goal, order))[: ROWS_MAX // 2]
    others = [row for row in order if row not in seen][: ROWS_MAX - len(seen)]
    told = [row for row in order if row in seen or row in others]
    cells = [_cells(row, labels) for row in told]
    lines = _lines(order)
    hidden = len(candidates) - sum(map(len, told))
    if hidden:
        untold = [row for row in order if row not in told]
        lines.append(f"not shown: {hidden} metrics{_of_which(untold)} (--all shows every one)")
    return beside(title, labels, cells), lines


def alike_changes(found: Sequence[Comparison], scenarios: tuple[Scenario, Scenario]) -> pl.DataFrame:
    """Changes as `frame_of_changes` has them, those of alike domains as one: their mean, and the ends of all."""
    alike = [row for row in groups(*scenarios) if len(row) > 1]
    row_of = {thing: tuple(row) for row in [*alike, *app_rows(scenarios[0], alike)] for thing in row}
    rows: dict[tuple[tuple[str, ...], str], list[dict[str, Any]]] = {}
    for change in frame_of_changes(found).iter_rows(named=True):
        thing, _, name = change["metric"].rpartition(".")
        rows.setdefault((row_of.get(thing, (thing,)), name), []).append(change)
    return pl.DataFrame(
        [
            {
                "metric": f"{names.in_short([one['metric'].rpartition('.')[0] for one in row])}.{name}",
                "percent": fmean(one["percent"] for one in row),
                "low": min(one["low"] for one in row),
                "high": max(one["high"] for one in row),
                "verdict": Counter(one["verdict"] for one in row).most_common(1)[0][0],
            }
            for (_, name), row in rows.items()
        ],
        infer_schema_length=None,
    )


def headline(found: Sequence[Comparison]) -> str:
    """What clients see change most, in a line; nothing if that is of no consequence."""
    seen = [
        one for one in found if one.address.metric.name in JUDGED_BY and one.of_consequence and one.percent is not None
    ]
    told = [
        f"{one.address.metric.name} of {one.address.thing} {number(one.before.mean)} → {number(one.after.mean)} "
        f"{one.address.unit} ({one.percent:+.0f} %)"
        for one in sorted(seen, key=lambda one: one.rank)[:_HEADLINE_MAX]
        if one.before is not None and one.after is not None and one.percent is not None
    ]
    return "; ".join(told)


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
    changes = sum(_verb(one) in _SURE for row in rows for one in row)
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
        _percents(percents),
        "< 0.001" if p < 0.001 else f"{p:.3f}",
        _verdict(row),
    ]


def _verdict(row: Sequence[Comparison]) -> str:
    """Of alike things that fare differently, how many do what."""
    verbs = Counter(_verb(one) for one in row)
    if len(verbs) == 1:
        return "may regress" if row[0].may_regress else shown(row[0].verdict)
    return ", ".join(
        f"{verbs[verb]}/{len(row)} {verb}" for verb in ("regress", "may regress", "improve") if verbs[verb]
    )


def _range(values: Sequence[float], *, signed: bool = False) -> str:
    if not values:
        return "–"
    least, most = (f"{'+' if signed and value > 0 else ''}{number(value)}" for value in (min(values), max(values)))
    return least if least == most else f"{least} to {most}"


def _percents(values: Sequence[float]) -> str:
    """A range in whole percent, unless it is of a few."""
    if not values:
        return "–"
    digits = 0 if max(map(abs, values)) >= 10 else 1
    least, most = (f"{value:+.{digits}f}" for value in (min(values), max(values)))
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
