"""What differs between two runs of many domains, in few rows: alike domains in one, what changes before the rest."""

from collections import Counter
from collections.abc import Sequence

import polars as pl

from vcpulab.advice.compare import Comparison, beside, frame_of_changes, shown, table_of_differences
from vcpulab.results.addresses import JUDGED_BY, app_rows, apps, judged
from vcpulab.results.statistics import number
from vcpulab.scenario import names
from vcpulab.scenario.alike import groups
from vcpulab.scenario.scenario import Scenario
from vcpulab.show.table import Table

ROWS_FULL = 16
"""Up to so many differences are shown each in a row of its own."""
ROWS_MAX = 6
_LINES_MAX = 2
_HEADLINE_MAX = {"improves": 2, "regresses": 1}
_SURE = ("improve", "regress")


def in_short(
    candidates: Sequence[Comparison],
    scenarios: tuple[Scenario, Scenario],
    labels: tuple[str, str],
) -> tuple[Table, list[str], str]:
    """The differences that matter, alike domains in one row; what they come to in words; how much else there is.

    Args:
        candidates: those that may be shown.
        scenarios: before and after.
        labels: what they are called.
    """
    changed = {one for one in scenarios[0].to_dict()["domain"] if _settings(scenarios, one)}
    clients = {app.name for app in apps(scenarios[0]) if app.client is not None}
    rows = _alike_rows(candidates, scenarios)

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
    hidden = len(candidates) - sum(map(len, told))
    untold = [row for row in order if row not in told]
    rest = f"{hidden} metrics{_of_which(untold)}" if hidden else ""
    return beside(title, labels, cells), _lines(order), rest


def alike_changes(found: Sequence[Comparison], scenarios: tuple[Scenario, Scenario]) -> pl.DataFrame:
    """Changes as `frame_of_changes` has them, those of alike domains as one: their mean, and the ends of all."""
    rows = _alike_rows([one for one in found if one.ends is not None and one.verdict != "same"], scenarios)
    told = []
    for (_, metric), row in rows.items():
        changes = frame_of_changes(row)
        verdicts = Counter(changes["verdict"])
        told.append(
            {
                "metric": f"{names.in_short([one.address.thing for one in row])}.{metric}",
                "percent": changes["percent"].mean(),
                "low": changes["low"].min(),
                "high": changes["high"].max(),
                # A harm to some is not hidden behind most.
                "verdict": max(changes["verdict"], key=lambda verdict: (verdict == "regresses", verdicts[verdict])),
            }
        )
    return pl.DataFrame(told, infer_schema_length=None)


def headline(found: Sequence[Comparison], scenarios: tuple[Scenario, Scenario]) -> str:
    """What owners judge by and changes most, for better and for worse, in a line; alike domains together."""
    asked = {address.name for address in judged(scenarios[0])}
    rows = _alike_rows([one for one in found if one.address.name in asked and one.of_consequence], scenarios)
    told = []
    for verdict, most in _HEADLINE_MAX.items():
        those = [[one for one in row if one.verdict == verdict] for row in rows.values()]
        told += sorted(filter(None, those), key=lambda row: min(one.rank for one in row))[:most]
    return "; ".join(map(_said, told)) or "nothing that owners judge by changes significantly"


def _said(row: Sequence[Comparison]) -> str:
    one = row[0]
    of = f"{one.address.metric.name} of {names.in_short([each.address.thing for each in row])}"
    percents = [each.percent for each in row if each.percent is not None]
    if len(row) > 1:
        return f"{of} {_percents(percents)} %" if percents else f"{of} {shown(one.verdict)}"
    before, after = ("undefined" if side is None else number(side.mean) for side in (one.before, one.after))
    return f"{of} {before} → {after} {one.address.unit}{f' ({percents[0]:+.0f} %)' if percents else ''}"


_Rows = dict[tuple[tuple[str, ...], str], list[Comparison]]
"""The things of a row, and the metric, to its comparisons."""


def _alike_rows(found: Sequence[Comparison], scenarios: tuple[Scenario, Scenario]) -> _Rows:
    alike = groups(*scenarios)
    row_of = {thing: tuple(row) for row in [*alike, *app_rows(scenarios[0], alike)] for thing in row}
    rows: _Rows = {}
    for one in found:
        those = row_of.get(one.address.thing, (one.address.thing,))
        rows.setdefault((those, one.address.metric.name), []).append(one)
    return rows


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
        lines += told if len(told) <= _LINES_MAX else _summed(verb, list(metrics), told)
    return lines or ["nothing improves or regresses significantly"]


def _summed(verb: str, domains: Sequence[str], told: Sequence[str]) -> list[str]:
    """The first way in which domains fare, and the names of all."""
    return [*told[: _LINES_MAX - 1], f"{verb}: {', '.join(names.listed(domains))}, in {len(told)} ways"]
