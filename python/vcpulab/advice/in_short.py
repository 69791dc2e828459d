"""What differs between two runs of many domains, in few rows: alike domains in one, what changes before the rest."""

from collections import Counter
from collections.abc import Collection, Sequence

import polars as pl

from vcpulab.advice.compare import (
    SMALL,
    Comparison,
    beside,
    frame_of_changes,
    p_in_words,
    shown,
    table_of_differences,
    unit_of,
)
from vcpulab.results.addresses import JUDGED_BY, app_rows, apps, judged
from vcpulab.results.statistics import least_to_most, number
from vcpulab.scenario import names
from vcpulab.scenario.alike import rows as alike_rows
from vcpulab.scenario.scenario import Scenario
from vcpulab.show.table import Table

ROWS_FULL = 16
"""Up to so many differences are shown each in a row of its own."""
ROWS_MAX = 12
"""The most rows where there are more ..."""
ROWS_NARROW = 6
"""... and in a terminal so narrow that each takes several lines."""
_GROUPS_MAX = 4
_HEADLINE_MAX = {"improves": 2, "regresses": 1}
_SURE = ("improve", "regress")


def in_short(
    candidates: Sequence[Comparison],
    scenarios: tuple[Scenario, Scenario],
    labels: tuple[str, str],
    most: int = ROWS_MAX,
    first: str | None = None,
) -> tuple[Table, list[str]]:
    """The differences that matter, alike domains in one row; what else differs, in words.

    Args:
        candidates: those that may be shown.
        scenarios: before and after.
        labels: what they are called.
        most: how many rows the table may have.
        first: the name of the metric that comes first, the largest difference before the others.
    """
    order = _order(candidates, scenarios, first)
    # What clients see has its place, however much else changes.
    seen = [row for row, goal in order.items() if goal][: most // 2]
    others = [row for row in order if row not in seen][: most - len(seen)]
    told = [row for row in order if row in seen or row in others]
    title = "Differences, paired, 95 % intervals; alike domains in a row, least to most"
    table = beside(title, labels, [_cells(row, labels) for row in told])
    hidden = len(candidates) - sum(map(len, told))
    untold = [row for row in order if row not in told]
    if not any(_verb(one) for row in order for one in row):
        lines = ["nothing improves or regresses significantly"]
    else:
        lines = _lines(untold)
    if hidden:
        lines.append(f"not shown: {hidden} metrics{_of_which(untold)} (--all shows every one)")
    return table, lines


def words(candidates: Sequence[Comparison], scenarios: tuple[Scenario, Scenario]) -> list[str]:
    """Who improves, regresses and may regress in what, a line for each."""
    return _lines(list(_order(candidates, scenarios))) or ["nothing improves or regresses significantly"]


def _order(
    candidates: Sequence[Comparison], scenarios: tuple[Scenario, Scenario], first: str | None = None
) -> dict[tuple[Comparison, ...], bool]:
    """The rows that tell something, the first to be read first, and whether each was asked for or judges a client.

    What owners judge by comes before the rest; of both first what was changed, then what clients see, then what changes
    most.
    """
    changed = {one for one in scenarios[0].to_dict()["domain"] if _settings(scenarios, one)}
    clients = {app.name for app in apps(scenarios[0]) if app.client is not None}
    owned = {address.name for address in judged(scenarios[0])}
    assumed = _assumed(scenarios)

    def goal(row: Sequence[Comparison]) -> bool:
        if row[0].address.metric.name == first:
            return True
        return row[0].address.thing in clients and row[0].address.metric.name in JUDGED_BY

    def place(row: Sequence[Comparison]) -> tuple[bool | float, ...]:
        address = row[0].address
        if address.metric.name == first:
            return (False, -max(one.size for one in row))
        return (
            True,
            address.thing in assumed,
            address.name not in owned,
            address.domain not in changed,
            address.thing not in clients,
            not any(_verb(one) in _SURE for one in row),
            -max((one.size for one in row if _verb(one) or len(row) == 1), default=0.0),
        )

    rows = map(tuple, _alike_rows(candidates, scenarios).values())
    return {row: goal(row) for row in sorted((row for row in rows if goal(row) or any(map(_verb, row))), key=place)}


def alike_changes(
    found: Sequence[Comparison], scenarios: tuple[Scenario, Scenario], goals: Collection[str] = ()
) -> pl.DataFrame:
    """Changes as `frame_of_changes` has them, those of alike domains as one: their mean, and the ends of all."""
    rows = _alike_rows([one for one in found if one.ends is not None and one.verdict != "same"], scenarios)
    told = []
    for (_, metric), row in rows.items():
        changes = frame_of_changes(row, goals)
        verdicts = Counter(changes["verdict"])
        told.append(
            {
                "metric": f"{names.in_short([one.address.thing for one in row])}.{metric}",
                "percent": changes["percent"].mean(),
                "low": changes["low"].min(),
                "high": changes["high"].max(),
                # A harm to some is not hidden behind most.
                "verdict": max(changes["verdict"], key=lambda verdict: (verdict == "regresses", verdicts[verdict])),
                "size": changes["size"].mean(),
                "told": changes["told"].any(),
            }
        )
    return pl.DataFrame(told, infer_schema_length=None)


def headline(found: Sequence[Comparison], scenarios: tuple[Scenario, Scenario]) -> str:
    """What owners judge by and changes most, for better and for worse, in a line; alike domains together."""
    asked = {address.name for address in judged(scenarios[0])}
    rows = _alike_rows([one for one in found if one.address.name in asked and one.of_consequence], scenarios)

    assumed = _assumed(scenarios)

    def rank(row: Sequence[Comparison]) -> tuple[bool, tuple[int, bool, float]]:
        return row[0].address.thing in assumed, min(one.rank for one in row)

    told = []
    # Jobs that an import assumed are news where nothing else is.
    real = {key: row for key, row in rows.items() if row[0].address.thing not in assumed}
    for verdict, most in _HEADLINE_MAX.items():
        those = [[one for one in row if one.verdict == verdict] for row in (real or rows).values()]
        told += sorted(filter(None, those), key=rank)[:most]
    of_jobs = [
        f"{'assumed jobs of ' * (row[0].address.thing in assumed)}{_said(row)}" for row in sorted(told, key=rank)
    ]
    words = [*of_jobs, *_freed(found, scenarios[0])]
    return "; ".join(words) or "nothing that owners judge by changes significantly"


def _assumed(scenarios: tuple[Scenario, Scenario]) -> set[str]:
    """The applications whose work an import assumed."""
    return {app.name for scenario in scenarios for app in apps(scenario) if app.assumed}


def _freed(found: Sequence[Comparison], scenario: Scenario) -> list[str]:
    """The CPU time that becomes free, or is used up, where applications do the same work as before."""
    idle = next((comparison for comparison in found if comparison.address.name == "host.idle"), None)
    if idle is None or idle.difference is None or idle.verdict not in ("higher", "lower"):
        return []
    work = [
        comparison
        for comparison in found
        if comparison.address.kind == "app" and comparison.address.metric.name in ("throughput", "failed")
    ]
    if abs(idle.difference.mean) < SMALL or any(
        comparison.of_consequence or comparison.may_regress for comparison in work
    ):
        return []
    percent = abs(idle.difference.mean) * int(scenario.to_dict()["host"]["pcpus"])
    what = "free (improves)" if idle.verdict == "higher" else "busy (regresses)"
    return [f"{number(percent)} % of a pCPU more is {what}, for the same work"]


def _said(row: Sequence[Comparison]) -> str:
    one = row[0]
    of = f"{names.in_short([each.address.thing for each in row])}.{one.address.metric.name}"
    percents = [each.percent for each in row if each.percent is not None]
    if len(row) > 1:
        most = max(row, key=lambda each: each.size).address.thing
        whose = f" (most: {most})" if len(set(map(round, percents))) > 1 else ""
        return f"{of} {_percents(percents)} %{whose}" if percents else f"{of} {shown(one.verdict)}"
    before, after = ("undefined" if side is None else number(side.mean) for side in (one.before, one.after))
    return f"{of} {before} → {after} {unit_of(one)}{f' ({percents[0]:+.0f} %)' if percents else ''}"


_Rows = dict[tuple[tuple[str, ...], str], list[Comparison]]
"""The things of a row, and the metric, to its comparisons."""


def _alike_rows(found: Sequence[Comparison], scenarios: tuple[Scenario, Scenario]) -> _Rows:
    alike = alike_rows(*scenarios)
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
    return [
        f"{names.in_short([one.address.thing for one in row])}.{row[0].address.metric.name}",
        row[0].address.unit,
        *(_range([side.mean for side in sides if side is not None]) for sides in zip(*both, strict=True)),
        _range([one.difference.mean for one in row if one.difference is not None], signed=True),
        _percents(percents),
        least_to_most([one.p for one in row if one.p is not None], p_in_words),
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
    return least_to_most(values, lambda value: f"{'+' if signed and value > 0 else ''}{number(value)}")


def _percents(values: Sequence[float]) -> str:
    """A range in whole percent, unless it is of a few."""
    digits = 0 if max(map(abs, values), default=0) >= 10 else 1
    return least_to_most(values, lambda value: f"{value:+.{digits}f}")


def _lines(rows: Sequence[Sequence[Comparison]]) -> list[str]:
    """Who improves and who regresses in what, those who do in the same together."""
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
        told = [f"{', '.join(those)} of {names.in_short(sorted(who))}" for those, who in alike.items()]
        more = sum(map(len, list(alike.values())[_GROUPS_MAX:]))
        told = [*told[:_GROUPS_MAX], *([f"{more} other{'' if more == 1 else 's'}"] if more else [])]
        lines += [f"{verb}: {'; '.join(told)}"] if told else []
    return lines
