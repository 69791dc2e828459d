"""The summary of a run in few rows: alike domains in one, with the least and the most of their values."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from vcpulab.errors import RequestError
from vcpulab.results.addresses import app_rows, apps
from vcpulab.results.metrics import APP, DOMAIN, PCPU, SPEED, Metric
from vcpulab.results.run import Run
from vcpulab.results.statistics import Interval, number
from vcpulab.scenario.alike import ROWS_MAX
from vcpulab.scenario.alike import rows as alike_rows
from vcpulab.scenario.names import did_you_mean, in_short, listed, matching
from vcpulab.scenario.scenario import Scenario, join
from vcpulab.scenario.threads import HOST, host_threads
from vcpulab.scenario.units import pcpu_set
from vcpulab.show.table import Table

_KINDS = (("domain", "Domains", DOMAIN), ("app", "Applications", APP), ("pcpu", "pCPUs", PCPU))
NARROW = {"gotten", "work", "waited", "wait_p99", "throughput", "failed", "response_p99", "run", "idle", "overhead"}
"""The metrics that most people look at, for where there is no room for all ..."""
NARROWEST = {"waited", "wait_p99", "throughput", "response_p99", "run", "idle"}
"""... and for where there is hardly any."""


@dataclass(frozen=True)
class View:
    """What of a run is shown."""

    all: bool = False
    """Every thing in a row of its own?"""
    only: str | None = None
    """Only things whose name, or domain's name, matches this pattern."""
    sort: str | None = None
    """By this metric, the most first."""


@dataclass(frozen=True)
class Things:
    """The things of a kind, as rows of a table."""

    heading: str
    title: str
    rows: "Rows"
    means: "Means"
    metrics: Sequence[Metric]
    folded: bool
    """Whether alike ones share a row."""
    sort: str | None

    def table(self, names: Collection[str] | None = None) -> Table:
        """The table of them.

        Args:
            names: the metrics that it has besides the one that it is sorted by; all if left out.
        """
        wanted = [one for one in self.metrics if names is None or one.name in names or one.name == self.sort]
        shown = [one for one in wanted if one.name not in SPEED or self._has(one.name)]
        cells = [[name, *(_cell(self.means, those, one.name) for one in shown)] for name, those in self.rows.items()]
        return Table(self.title, [self.heading, *(f"{one.name.replace('_', ' ')}, {one.unit}" for one in shown)], cells)

    def _has(self, metric: str) -> bool:
        """Is that metric defined for one of them?"""
        found = (self.means.get((thing, metric)) for those in self.rows.values() for thing in those)
        return any(row is not None and row["mean"] is not None for row in found)


def things(run: Run, view: View) -> Iterator[Things]:
    """The kinds of things of a summary that has any.

    Args:
        run: the run.
        view: what is shown of it.
    """
    kinds = {app.name: app.kind for app in apps(run.scenario)}
    rows_of = {"domain": _domains, "app": _apps, "pcpu": _pcpus}
    for of, title, metrics in _KINDS:
        frame = run.summary().filter(of=of)
        those = chosen(frame["thing"].unique(maintain_order=True).to_list(), run.scenario, view.only)
        folded = not view.all and len(those) > ROWS_MAX
        rows = rows_of[of](run.scenario, those) if folded else {thing: [thing] for thing in those}
        if of == "app":
            rows = {f"{name} ({kinds[row[0]]})": row for name, row in rows.items()}
        means = {(row["thing"], row["metric"]): row for row in frame.iter_rows(named=True)}
        rows = _cut(_sorted(rows, means, metrics, view.sort), means, metrics, folded=folded, sort=view.sort)
        if rows:
            said = f"{title}: {len(those)}, alike ones in a row, least to most" if folded else title
            yield Things(of, said, rows, means, metrics, folded, view.sort)


def folded_table(
    scenario: Scenario, frame: pl.DataFrame, title: str, metrics: Sequence[Metric], view: View, *, of: str = "domain"
) -> Table:
    """A table of domains or applications: of many, alike ones in a row, least to most.

    Args:
        scenario: what they are of.
        frame: columns `thing`, `metric`, `mean`, `half_width` and `n`.
        title: its title.
        metrics: its columns.
        view: what is shown.
        of: domain, or app.
    """
    those = chosen(frame["thing"].unique(maintain_order=True).to_list(), scenario, view.only)
    folded = not view.all and len(those) > ROWS_MAX
    rows = {"domain": _domains, "app": _apps}[of](scenario, those) if folded else {thing: [thing] for thing in those}
    means = {(row["thing"], row["metric"]): row for row in frame.iter_rows(named=True)}
    title = f"{title}; alike ones in a row, least to most" if folded and title else title
    return Things(of, title, rows, means, metrics, folded, None).table()


def check(scenario: Scenario, view: View) -> None:
    """Refuses a view of what a scenario does not have.

    Raises:
        RequestError: nothing matches, or there is no such metric.
    """
    names = {metric.name for _, _, metrics in _KINDS for metric in metrics}
    if view.sort is not None and view.sort not in names:
        hint = did_you_mean(view.sort, names)
        raise RequestError(field="sort", found=view.sort, allowed=", ".join(sorted(names)), hint=hint)
    known = list(dict.fromkeys(name for app in apps(scenario) for name in (app.domain, app.name, *app.aliases)))
    document = scenario.to_dict()
    own = [HOST] if host_threads(document) else []
    known += [name for name in (*document["domain"], *own) if name not in known]
    if view.only is not None and not matching(view.only, known):
        # pCPUs may be asked for, too.
        if matching(view.only, (f"pcpu.{pcpu}" for pcpu in range(document["host"]["pcpus"]))):
            return
        allowed, hint = ", ".join(listed(known)), did_you_mean(view.only, known)
        raise RequestError("nothing matches", field="only", found=view.only, allowed=allowed, hint=hint)


def chosen(things: Sequence[str], scenario: Scenario, only: str | None) -> list[str]:
    """Of domains, applications and clients those whose name, or domain's name, matches a pattern."""
    if only is None:
        return list(things)
    called = {app.name: (app.name, app.domain, *app.aliases) for app in apps(scenario)}
    return [thing for thing in things if matching(only, called.get(thing, (thing.strip('"'),)))]


Rows = Mapping[str, Sequence[str]]
"""Heading of a row to the things in it."""


def _domains(scenario: Scenario, things: Sequence[str]) -> Rows:
    left = dict.fromkeys(things)
    groups = ([join([one]) for one in group] for group in alike_rows(scenario))
    rows = [[name for name in group if left.pop(name, name) is None] for group in groups]
    # The domain of a KVM host's threads stands in no scenario.
    return {in_short(row): row for row in (*rows, [*left]) if row}


def _apps(scenario: Scenario, things: Sequence[str]) -> Rows:
    there = set(things)
    rows = ([name for name in row if name in there] for row in app_rows(scenario, alike_rows(scenario)))
    return {in_short(row): row for row in rows if row}


def _pcpus(scenario: Scenario, things: Sequence[str]) -> Rows:
    """Those of a pool in a row, and those of none."""
    host = scenario.to_dict()["host"]
    left = dict.fromkeys(things)
    rows: dict[str, list[str]] = {}
    for name, pool in scenario.to_dict().get("pool", {}).items():
        of_pool = [f"pcpu.{pcpu}" for pcpu in sorted(pcpu_set(pool["pcpus"], host["pcpus"]))]
        rows[f"pool {name}"] = [thing for thing in of_pool if thing in left]
        for thing in rows[f"pool {name}"]:
            del left[thing]
    return {name: row for name, row in ((in_short(list(left)), list(left)), *rows.items()) if row}


Means = Mapping[tuple[str, str], Mapping[str, object]]


def _values(means: Means, things: Sequence[str], metric: str) -> list[float]:
    found = (means.get((thing, metric), {}).get("mean") for thing in things)
    return [value for value in found if isinstance(value, float)]


def _sorted(rows: Rows, means: Means, metrics: Sequence[Metric], sort: str | None) -> Rows:
    if sort is None or sort not in {metric.name for metric in metrics}:
        return rows
    most = {name: max(_values(means, those, sort), default=float("-inf")) for name, those in rows.items()}
    return {name: rows[name] for name in sorted(rows, key=lambda name: -most[name])}


def _cut(rows: Rows, means: Means, metrics: Sequence[Metric], *, folded: bool, sort: str | None) -> Rows:
    """At most so many rows: those with most of the first metric, if none was asked for, and all others in one."""
    if not folded or len(rows) <= ROWS_MAX:
        return rows
    if sort not in {metric.name for metric in metrics}:
        rows = _sorted(rows, means, metrics, metrics[0].name)
    kept = list(rows)[: ROWS_MAX - 1]
    rest = [thing for name, those in rows.items() if name not in kept for thing in those]
    return {name: rows[name] for name in kept} | {f"{len(rest)} others": rest}


def _cell(means: Means, things: Sequence[str], metric: str) -> str:
    """A value with its interval; of several things the least and the most."""
    if len(things) == 1:
        row = means.get((things[0], metric))
        if row is None or row["mean"] is None:
            return "–"
        return str(Interval(row["mean"], row["half_width"], row["n"]))  # type: ignore[arg-type]
    values = _values(means, things, metric)
    if not values:
        return "–"
    least, most = number(min(values)), number(max(values))
    return least if least == most else f"{least} to {most}"
