"""Differences between two runs of many domains in few rows: one row for alike domains, the largest changes first."""

from collections import Counter
from collections.abc import Collection, Sequence

import polars as pl

from vcpulab._engine import p_text, verdict_text
from vcpulab.advice.compare import (
    Comparison,
    beside,
    frame_of_changes,
    table_of_differences,
)
from vcpulab.results.addresses import apps, judged, row_of_things
from vcpulab.results.metrics import Quantity
from vcpulab.results.statistics import least_to_most, number
from vcpulab.scenario import names
from vcpulab.scenario.names import grouped
from vcpulab.scenario.scenario import Scenario
from vcpulab.show.table import Table

ROWS_FULL = 16
"""Up to this number of differences, each has its own row."""
ROWS_MAX = 12
"""The most rows where there are more differences ..."""
ROWS_NARROW = 6
"""... and in a terminal so narrow that each row takes several lines."""
_GROUPS_MAX = 4
_HEADLINE_MAX = {"improves": 2, "regresses": 2}
"""The most metrics of a verdict in the headline. Harms are each of another owner, so that it names who pays."""
_IDLE_SMALL = 1.0
"""The least change of a host's idle time that is told, % of the host."""
_SURE = ("improve", "regress")


def in_short(
    candidates: Sequence[Comparison],
    scenarios: tuple[Scenario, Scenario],
    labels: tuple[str, str],
    most: int = ROWS_MAX,
    first: str | None = None,
) -> tuple[Table, list[str]]:
    """A table of the differences that matter, one row for alike domains, and lines on the other differences.

    Args:
        candidates: the comparisons that may be shown.
        scenarios: before and after.
        labels: names of the scenarios.
        most: the largest number of rows of the table.
        first: the name of the metric that comes first, the largest difference before smaller ones.
    """
    order = _order(candidates, scenarios, first)
    # At most half of the rows are kept for metrics that clients see, whatever else changes.
    seen = [row for row, goal in order.items() if goal][: most // 2]
    rest = [row for row in order if row not in seen][: most - len(seen)]
    visible = [row for row in order if row in seen or row in rest]
    title = "Differences, paired, 95 % intervals; alike domains in a row, least to most"
    table = beside(title, labels, [_cells(row, labels) for row in visible])
    hidden = len(candidates) - sum(map(len, visible))
    untold = [row for row in order if row not in visible]
    if not any(_verb(comparison) for row in order for comparison in row):
        lines = ["nothing improves or regresses significantly"]
    else:
        lines = _lines(untold)
    if hidden:
        lines.append(f"not shown: {hidden} metrics{_of_which(untold)} (--all shows every one)")
    return table, lines


def words(candidates: Sequence[Comparison], scenarios: tuple[Scenario, Scenario]) -> list[str]:
    """A line for each verdict (improves, regresses, may regress), with its metrics and domains."""
    return _lines(list(_order(candidates, scenarios))) or ["nothing improves or regresses significantly"]


def _order(
    candidates: Sequence[Comparison], scenarios: tuple[Scenario, Scenario], first: str | None = None
) -> dict[tuple[Comparison, ...], bool]:
    """The rows that matter in the order of reading, and whether each is the metric `first` or judges a client.

    Metrics that owners judge by come before the rest; in both groups domains whose settings were changed come first,
    then clients, then the largest changes.
    """
    changed = {domain for domain in scenarios[0].domains if _settings(scenarios, domain)}
    clients = {app.name for app in apps(scenarios[0]) if app.client is not None}
    owned = {address.name for address in judged(scenarios[0])}
    assumed = _assumed(scenarios)

    def goal(row: Sequence[Comparison]) -> bool:
        if row[0].address.metric.name == first:
            return True
        return row[0].address.thing in clients and row[0].address.metric.judged

    def place(row: Sequence[Comparison]) -> tuple[bool | float, ...]:
        address = row[0].address
        if address.metric.name == first:
            return (False, -max(comparison.size for comparison in row))
        return (
            True,
            address.thing in assumed,
            address.name not in owned,
            address.domain not in changed,
            address.thing not in clients,
            not any(_verb(comparison) in _SURE for comparison in row),
            -max((comparison.size for comparison in row if _verb(comparison) or len(row) == 1), default=0.0),
        )

    rows = map(tuple, _alike_rows(candidates, scenarios).values())
    return {row: goal(row) for row in sorted((row for row in rows if goal(row) or any(map(_verb, row))), key=place)}


def alike_changes(
    comparisons: Sequence[Comparison], scenarios: tuple[Scenario, Scenario], goals: Collection[str] = ()
) -> pl.DataFrame:
    """Changes in the columns of `frame_of_changes`, one row for alike domains: their mean and their extreme ends."""
    rows = _alike_rows(
        [comparison for comparison in comparisons if comparison.ends is not None and comparison.verdict != "same"],
        scenarios,
    )
    summaries = []
    for (_, metric), row in rows.items():
        changes = frame_of_changes(row, goals)
        verdicts = Counter(changes["verdict"])
        summaries.append(
            {
                "metric": f"{names.in_short([comparison.address.thing for comparison in row])}.{metric}",
                "percent": changes["percent"].mean(),
                "low": changes["low"].min(),
                "high": changes["high"].max(),
                # A harm to some domains is shown even if most of the alike domains have another verdict.
                "verdict": max(changes["verdict"], key=lambda verdict: (verdict == "regresses", verdicts[verdict])),
                "size": changes["size"].mean(),
                "told": changes["told"].any(),
            }
        )
    return pl.DataFrame(summaries, infer_schema_length=None)


def headline(comparisons: Sequence[Comparison], scenarios: tuple[Scenario, Scenario]) -> str:
    """A line on the largest gains and harms among the metrics that owners judge by; alike domains together."""
    owned = {address.name for address in judged(scenarios[0])}
    rows = _alike_rows(
        [comparison for comparison in comparisons if comparison.address.name in owned and comparison.of_consequence],
        scenarios,
    )

    assumed = _assumed(scenarios)

    def rank(row: Sequence[Comparison]) -> tuple[bool, tuple[int, bool, float]]:
        return row[0].address.thing in assumed, min(comparison.rank for comparison in row)

    picked = []
    # Changes of jobs that an import assumed are reported only where no other metric changes.
    real = {key: row for key, row in rows.items() if row[0].address.thing not in assumed}
    for verdict, most in _HEADLINE_MAX.items():
        of_verdict = [
            (owner, [comparison for comparison in row if comparison.verdict == verdict])
            for (owner, _), row in (real or rows).items()
        ]
        ordered = sorted((pair for pair in of_verdict if pair[1]), key=lambda pair: rank(pair[1]))
        if verdict == "regresses":
            ordered = list({owner: (owner, row) for owner, row in reversed(ordered)}.values())
            ordered.sort(key=lambda pair: rank(pair[1]))
        picked += [row for _, row in ordered[:most]]
    of_jobs = [
        f"{'assumed jobs of ' * (row[0].address.thing in assumed)}{_change_in_words(row)}"
        for row in sorted(picked, key=rank)
    ]
    words = [*of_jobs, *_freed(comparisons, scenarios[0])]
    return "; ".join(words) or "nothing that owners judge by changes significantly"


def _assumed(scenarios: tuple[Scenario, Scenario]) -> set[str]:
    """The applications whose work an import assumed."""
    return {app.name for scenario in scenarios for app in apps(scenario) if app.assumed}


def _freed(comparisons: Sequence[Comparison], scenario: Scenario) -> list[str]:
    """The CPU time that becomes free, or is used up, where applications do the same work as before."""
    idle = next((comparison for comparison in comparisons if comparison.address.name == "host.idle"), None)
    if idle is None or idle.difference is None or idle.verdict not in ("higher", "lower"):
        return []
    work = [
        comparison
        for comparison in comparisons
        if comparison.address.metric.quantity in (Quantity.THROUGHPUT, Quantity.FAILURES)
    ]
    if abs(idle.difference.mean) < _IDLE_SMALL or any(
        comparison.of_consequence or comparison.may_regress for comparison in work
    ):
        return []
    percent = abs(idle.difference.mean) * scenario.host.pcpus
    state = "free (improves)" if idle.verdict == "higher" else "busy (regresses)"
    return [f"{number(percent)} % of a pCPU more is {state}, for the same work"]


def _change_in_words(row: Sequence[Comparison]) -> str:
    first = row[0]
    name = f"{names.in_short([each.address.thing for each in row])}.{first.address.metric.name}"
    percents = [each.percent for each in row if each.percent is not None]
    if len(row) > 1:
        most = max(row, key=lambda each: each.size).address.thing
        largest = f" (most: {most})" if len(set(map(round, percents))) > 1 else ""
        return f"{name} {_percents(percents)} %{largest}" if percents else f"{name} {verdict_text(first.verdict)}"
    before, after = ("undefined" if side is None else number(side.mean) for side in (first.before, first.after))
    return f"{name} {before} → {after} {first.judged.unit}{f' ({percents[0]:+.0f} %)' if percents else ''}"


_Rows = dict[tuple[tuple[str, ...], str], list[Comparison]]
"""The things of a row and their metric, to the comparisons of the row."""


def _alike_rows(comparisons: Sequence[Comparison], scenarios: tuple[Scenario, Scenario]) -> _Rows:
    row_of = row_of_things(*scenarios)

    def key(comparison: Comparison) -> tuple[tuple[str, ...], str]:
        address = comparison.address
        return row_of.get(address.thing, (address.thing,)), address.metric.name

    return grouped(comparisons, key)


def _settings(scenarios: tuple[Scenario, Scenario], domain: str) -> bool:
    """`True`: the settings of a domain differ."""
    before, after = (scenario.domains.get(domain) for scenario in scenarios)
    return before != after


_VERBS = {"improves": "improve", "regresses": "regress", "may regress": "may regress"}
"""Verdicts on a metric, as the engine words them, to the same on several metrics."""


def _verb(comparison: Comparison) -> str:
    """The verdict on several metrics; empty if the change is of no consequence."""
    matters = comparison.of_consequence or comparison.may_regress
    return _VERBS[comparison.judged.verdict_text] if matters else ""


def _of_which(rows: Sequence[Sequence[Comparison]]) -> str:
    changes = sum(_verb(comparison) in _SURE for row in rows for comparison in row)
    return f", {changes} of which change" if changes else ""


def _cells(row: Sequence[Comparison], labels: tuple[str, str]) -> list[str]:
    if len(row) == 1:
        return list(table_of_differences(row, labels).rows[0])
    percents = [comparison.percent for comparison in row if comparison.percent is not None]
    pairs = [(comparison.before, comparison.after) for comparison in row]
    return [
        f"{names.in_short([comparison.address.thing for comparison in row])}.{row[0].address.metric.name}",
        row[0].address.unit,
        *(_range([side.mean for side in sides if side is not None]) for sides in zip(*pairs, strict=True)),
        _range([comparison.difference.mean for comparison in row if comparison.difference is not None], signed=True),
        _percents(percents),
        least_to_most([comparison.p for comparison in row if comparison.p is not None], p_text),
        _verdict(row),
    ]


def _verdict(row: Sequence[Comparison]) -> str:
    """The common verdict of alike things, or the number of things with each verdict."""
    verbs = Counter(_verb(comparison) for comparison in row)
    if len(verbs) == 1:
        return row[0].judged.verdict_text
    return ", ".join(
        f"{verbs[verb]}/{len(row)} {verb}" for verb in ("regress", "may regress", "improve") if verbs[verb]
    )


def _range(values: Sequence[float], *, signed: bool = False) -> str:
    return least_to_most(values, lambda value: f"{'+' if signed and value > 0 else ''}{number(value)}")


def _percents(values: Sequence[float]) -> str:
    """A range in whole percent, or with one decimal below 10 %."""
    digits = 0 if max(map(abs, values), default=0) >= 10 else 1
    return least_to_most(values, lambda value: f"{value:+.{digits}f}")


def _lines(rows: Sequence[Sequence[Comparison]]) -> list[str]:
    """A line for each verb, with its metrics and domains; domains with the same metrics are named together."""
    lines = []
    for verb in ("regress", "improve", "may regress"):
        changes = [comparison.address for row in rows for comparison in row if _verb(comparison) == verb]
        of_domain = grouped(changes, lambda address: address.domain or "host")
        metrics = {domain: tuple(sorted({address.metric.name for address in row})) for domain, row in of_domain.items()}
        alike = grouped(metrics, metrics.__getitem__)
        groups = [
            f"{', '.join(metric_names)} of {names.in_short(sorted(domains))}" for metric_names, domains in alike.items()
        ]
        more = sum(map(len, list(alike.values())[_GROUPS_MAX:]))
        groups = [*groups[:_GROUPS_MAX], *([f"{more} other{'' if more == 1 else 's'}"] if more else [])]
        lines += [f"{verb}: {'; '.join(groups)}"] if groups else []
    return lines
