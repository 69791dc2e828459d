"""The summary of a run in few rows: alike domains share a row, with the least and the most of their values."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from vcpulab.errors import RequestError
from vcpulab.results.addresses import app_rows, apps
from vcpulab.results.metrics import APP, DOMAIN, PCPU, Metric, Quantity, Width
from vcpulab.results.run import Run
from vcpulab.results.statistics import Interval, least_to_most
from vcpulab.scenario.alike import ROWS_MAX
from vcpulab.scenario.alike import rows as alike_rows
from vcpulab.scenario.names import did_you_mean, in_short, listed, matching
from vcpulab.scenario.scenario import Scenario, join
from vcpulab.scenario.threads import HOST, host_threads
from vcpulab.scenario.units import pcpu_set
from vcpulab.show.table import Table

_KINDS = (("domain", "Domains", DOMAIN), ("app", "Applications", APP), ("pcpu", "pCPUs", PCPU))


@dataclass(frozen=True)
class View:
    """The options of a summary: which things are shown, and in which order."""

    all: bool = False
    """`True`: every thing has its own row."""
    only: str | None = None
    """A pattern for the names of things or of their domains; `None`: all things."""
    sort: str | None = None
    """The metric that orders the rows, the highest value first."""


@dataclass(frozen=True)
class Things:
    """The things of a kind, as rows of a table."""

    heading: str
    title: str
    rows: "Rows"
    means: "Means"
    metrics: Sequence[Metric]
    folded: bool
    """Whether alike things share a row."""
    sort: str | None

    def table(self, width: Width = Width.FULL) -> Table:
        """The table of the things, with the metrics of a width and the metric that orders it."""
        wanted = [metric for metric in self.metrics if metric.shown_from <= width or metric.name == self.sort]
        shown = [metric for metric in wanted if metric.quantity is not Quantity.SPEED or self._has(metric.name)]
        cells = [
            [name, *(_cell(self.means, things, metric.name) for metric in shown)] for name, things in self.rows.items()
        ]
        return Table(
            self.title, [self.heading, *(f"{metric.name.replace('_', ' ')}, {metric.unit}" for metric in shown)], cells
        )

    def _has(self, metric: str) -> bool:
        """Whether a metric is defined for any of the things."""
        measured = (self.means.get((thing, metric)) for things in self.rows.values() for thing in things)
        return any(row is not None and row["mean"] is not None for row in measured)


def things(run: Run, view: View) -> Iterator[Things]:
    """The kinds of things in a summary that have any rows.

    Args:
        run: the run.
        view: the options of the summary.
    """
    kinds = {app.name: app.kind for app in apps(run.scenario)}
    for kind, title, metrics in _KINDS:
        rows, means, folded = _in_rows(run.scenario, run.summary().filter(of=kind), kind, view)
        number = sum(map(len, rows.values()))
        if kind == "app":
            rows = {f"{name} ({kinds[row[0]]})": row for name, row in rows.items()}
        rows = _cut(_sorted(rows, means, metrics, view.sort), means, metrics, folded=folded, sort=view.sort)
        if rows:
            full_title = f"{title}: {number}, alike ones in a row, least to most" if folded else title
            yield Things(kind, full_title, rows, means, metrics, folded, view.sort)


def folded_table(
    scenario: Scenario, frame: pl.DataFrame, title: str, metrics: Sequence[Metric], view: View, *, kind: str = "domain"
) -> Table:
    """A table of domains or applications; if there are many, alike ones share a row.

    Args:
        scenario: the scenario of the things.
        frame: columns `thing`, `metric`, `mean`, `half_width` and `n`.
        title: the title of the table.
        metrics: the columns of the table.
        view: the options of the summary.
        kind: `domain` or `app`.
    """
    rows, means, folded = _in_rows(scenario, frame, kind, view)
    title = f"{title}; alike ones in a row, least to most" if folded and title else title
    return Things(kind, title, rows, means, metrics, folded, None).table()


def check(scenario: Scenario, view: View) -> None:
    """Refuses a view of things or metrics that a scenario does not have.

    Raises:
        RequestError: nothing matches, or the metric does not exist.
    """
    metric_names = {metric.name for _, _, metrics in _KINDS for metric in metrics}
    if view.sort is not None and view.sort not in metric_names:
        hint = did_you_mean(view.sort, metric_names)
        raise RequestError(field="sort", found=view.sort, allowed=", ".join(sorted(metric_names)), hint=hint)
    names = list(dict.fromkeys(name for app in apps(scenario) for name in (app.domain, app.name, *app.aliases)))
    own = [HOST] if host_threads(scenario.model) else []
    names += [name for name in (*scenario.domains, *own) if name not in names]
    if view.only is not None and not matching(view.only, names):
        # pCPUs are also allowed.
        if matching(view.only, (f"pcpu.{pcpu}" for pcpu in range(scenario.host.pcpus))):
            return
        allowed, hint = ", ".join(listed(names)), did_you_mean(view.only, names)
        raise RequestError("nothing matches", field="only", found=view.only, allowed=allowed, hint=hint)


def chosen(things: Sequence[str], scenario: Scenario, only: str | None) -> list[str]:
    """The domains, applications and clients whose name, or domain's name, matches a pattern."""
    if only is None:
        return list(things)
    called = {app.name: (app.name, app.domain, *app.aliases) for app in apps(scenario)}
    return [thing for thing in things if matching(only, called.get(thing, (thing.strip('"'),)))]


Rows = Mapping[str, Sequence[str]]
"""The things of each row, by the heading of the row."""


def _domains(scenario: Scenario, things: Sequence[str]) -> Rows:
    left = dict.fromkeys(things)
    groups = ([join([name]) for name in group] for group in alike_rows(scenario))
    rows = [[name for name in group if left.pop(name, name) is None] for group in groups]
    # The domain of a KVM host's threads is in no scenario.
    return {in_short(row): row for row in (*rows, [*left]) if row}


def _apps(scenario: Scenario, things: Sequence[str]) -> Rows:
    present = set(things)
    rows = ([name for name in row if name in present] for row in app_rows(scenario, alike_rows(scenario)))
    return {in_short(row): row for row in rows if row}


def _pcpus(scenario: Scenario, things: Sequence[str]) -> Rows:
    """A row for the pCPUs of each pool, and a row for pCPUs outside pools."""
    left = dict.fromkeys(things)
    rows: dict[str, list[str]] = {}
    for name, pool in scenario.pools.items():
        of_pool = [f"pcpu.{pcpu}" for pcpu in sorted(pcpu_set(pool.pcpus, scenario.host.pcpus))]
        rows[f"pool {name}"] = [thing for thing in of_pool if thing in left]
        for thing in rows[f"pool {name}"]:
            del left[thing]
    return {name: row for name, row in ((in_short(list(left)), list(left)), *rows.items()) if row}


Means = Mapping[tuple[str, str], Mapping[str, object]]
_ROWS_OF = {"domain": _domains, "app": _apps, "pcpu": _pcpus}


def _in_rows(scenario: Scenario, frame: pl.DataFrame, kind: str, view: View) -> "tuple[Rows, Means, bool]":
    """The things of a kind in rows, their values, and whether alike things share a row: if there are many."""
    shown = chosen(frame["thing"].unique(maintain_order=True).to_list(), scenario, view.only)
    folded = not view.all and len(shown) > ROWS_MAX
    rows = _ROWS_OF[kind](scenario, shown) if folded else {thing: [thing] for thing in shown}
    return rows, {(row["thing"], row["metric"]): row for row in frame.iter_rows(named=True)}, folded


def _values(means: Means, things: Sequence[str], metric: str) -> list[float]:
    measured = (means.get((thing, metric), {}).get("mean") for thing in things)
    return [value for value in measured if isinstance(value, float)]


def _sorted(rows: Rows, means: Means, metrics: Sequence[Metric], sort: str | None) -> Rows:
    if sort is None or sort not in {metric.name for metric in metrics}:
        return rows
    most = {name: max(_values(means, things, sort), default=float("-inf")) for name, things in rows.items()}
    return {name: rows[name] for name in sorted(rows, key=lambda name: -most[name])}


def _cut(rows: Rows, means: Means, metrics: Sequence[Metric], *, folded: bool, sort: str | None) -> Rows:
    """At most `ROWS_MAX` rows: the highest by the sort metric (default: the first), and one row for the rest."""
    if not folded or len(rows) <= ROWS_MAX:
        return rows
    if sort not in {metric.name for metric in metrics}:
        rows = _sorted(rows, means, metrics, metrics[0].name)
    kept = list(rows)[: ROWS_MAX - 1]
    rest = [thing for name, things in rows.items() if name not in kept for thing in things]
    return {name: rows[name] for name in kept} | {f"{len(rest)} others": rest}


def _cell(means: Means, things: Sequence[str], metric: str) -> str:
    """A value with its interval; of several things the least and the most."""
    if len(things) == 1:
        row = means.get((things[0], metric))
        if row is None or row["mean"] is None:
            return "–"
        return str(Interval(row["mean"], row["half_width"], row["n"]))  # type: ignore[arg-type]
    return least_to_most(_values(means, things, metric))
