"""Running a scenario, and its results."""

import functools
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from os import PathLike
from typing import TYPE_CHECKING, Self

import polars as pl

from vcpulab import _engine
from vcpulab._arguments import check
from vcpulab._work.progress import Progress
from vcpulab.errors import EngineError, Interrupted, RequestError
from vcpulab.results import accessors, store
from vcpulab.results import trace as traces
from vcpulab.results.addresses import Address, AddressError, find
from vcpulab.results.jtl import Jtl
from vcpulab.results.metrics import RUN_KINDS, ThingKind, measured
from vcpulab.results.statistics import Interval
from vcpulab.results.summary import long, means, wait_shares, wakeup_means
from vcpulab.results.tables import EngineTables, ResultTables
from vcpulab.scenario.scenario import Scenario, scenario_of

if TYPE_CHECKING:
    from vcpulab.show.plots import Plots


def run(
    scenario: Scenario | str | PathLike[str],
    *,
    jobs: int = 0,
    decisions: bool = False,
    waits: bool = True,
    trace: str | PathLike[str] | None = None,
    jtl: Jtl | None = None,
    live: "_engine.LiveSamples | None" = None,
    progress: Progress | None = None,
    keep_finished: bool = False,
) -> "Run":
    """Runs every replication of a scenario. The same scenario gives the same results, whatever `jobs` is.

    Under a policy in Python, replications run one after the other in this thread.

    Args:
        scenario: the scenario to run, or the path of its file.
        jobs: how many replications at a time; 0: as many as there are processors.
        decisions: keep every decision that changed what a pCPU runs (the first four million of each replication).
        waits: record the domains that each domain waited for, and waits by cause of the wake-up; without, these tables
            are empty, and runs are slightly quicker.
        trace: directory, new or empty, for all events, written during the run; see `vcpulab.Trace`. If the run fails,
            it is empty again.
        jtl: log the requests of clients, as JMeter would, while they are made.
        live: receives the samples during the run.
        progress: see `Progress`.
        keep_finished: when the run is cancelled, keep the first N replications, those that are finished: the same as a
            run with N replications.

    Raises:
        EngineError: the run failed; its cause is the exception of a policy, if a policy raised one.
        FileExistsError: the directory of the trace or the logs holds something else.
        Interrupted: the run was cancelled, and finished replications are kept.
        KeyboardInterrupt: the run was cancelled, and nothing is kept.

    Examples:
        >>> scenario = Scenario.starter().change({"run.duration": "50ms", "run.replications": 2})
        >>> run(scenario).df_pcpus().height
        2
    """
    check(jobs=jobs)
    scenario = scenario_of(scenario)
    if trace is not None:
        traces.prepare(trace)
    if not isinstance(jtl, Jtl | None):
        raise RequestError(field="jtl", found=type(jtl).__name__, allowed="a vcpulab.Jtl")
    logs = None if jtl is None else jtl.prepare()
    try:
        results = _engine.run(
            scenario._engine,
            jobs=jobs,
            trace=decisions,
            waits=waits,
            events=trace,
            jtl=logs,
            live=live,
            progress=progress,
        )
    except EngineError:
        if trace is not None:
            traces.discard(trace)
        raise
    except Interrupted as interrupted:
        if not keep_finished:
            raise KeyboardInterrupt from None
        (kept,), completed = finished([scenario], interrupted, decisions=decisions)
        if trace is not None:
            traces.complete(trace, kept)
        if jtl is not None:
            jtl.keep(kept.scenario.replications)
        raise Interrupted(kept, completed) from None
    done = ran(scenario, results, decisions=decisions)
    if trace is not None:
        traces.complete(trace, done)
    return done


def finished(
    scenarios: Sequence[Scenario], interrupted: Interrupted, *, decisions: bool = False
) -> "tuple[list[Run], str]":
    """Interrupted runs, each with its finished replications, and the number of these as text."""
    runs = [
        ran(scenario.with_run(replications=replications), results, decisions=decisions)
        for scenario, (replications, results) in zip(scenarios, interrupted.partial, strict=True)
    ]
    least, most = min(run.scenario.replications for run in runs), min(full.replications for full in scenarios)
    return runs, f"{least} of {most} replications"


def run_many(
    scenarios: Iterable[Scenario],
    *,
    jobs: int = 0,
    waits: bool = True,
    progress: Progress | None = None,
    keep_finished: bool = False,
) -> "list[Run]":
    """Runs every replication of several scenarios together: quicker than one `run` after another where there are many.

    Args:
        scenarios: the scenarios to run.
        jobs: how many replications, of whichever scenarios, at a time; 0: as many as there are processors.
        waits: as for `run`.
        progress: see `Progress`.
        keep_finished: as for `run`; the first replications of all scenarios come before the second.

    Returns:
        A run for each scenario, in their order, the same as from `run`.

    Raises:
        EngineError: a run failed; the error has its index, counted from 0.
        Interrupted: the runs were cancelled, and finished replications of every scenario are kept.
        KeyboardInterrupt: the runs were cancelled, and nothing is kept.

    Examples:
        >>> scenario = Scenario.starter().change({"run.duration": "50ms", "run.replications": 2})
        >>> runs = run_many(scenario.change({"domain.batch.weight": weight}) for weight in (256, 512))
        >>> [run.df_pcpus().height for run in runs]
        [2, 2]
    """
    check(jobs=jobs)
    if isinstance(scenarios, Scenario | Mapping) or not isinstance(scenarios, Iterable):
        raise RequestError(field="scenarios", found=type(scenarios).__name__, allowed="several scenarios")
    checked = [scenario_of(scenario, "scenarios") for scenario in scenarios]
    try:
        results = _engine.run_many(
            [scenario._engine for scenario in checked], jobs=jobs, waits=waits, progress=progress
        )
    except Interrupted as interrupted:
        raise (Interrupted(*finished(checked, interrupted)) if keep_finished else KeyboardInterrupt) from None
    return [ran(scenario, left) for scenario, left in zip(checked, results, strict=True)]


def ran(scenario: Scenario, results: _engine.Results, *, decisions: bool = False) -> "Run":
    """A run, made from the engine's results."""
    warnings = []
    if results.untraced:
        warnings.append(f"there was no room for {results.untraced} decisions; the last are not kept")
    if results.rejected_actions:
        warnings.append(refused_actions(results.rejected_actions, results.rejected))
    not_attributed = results.not_attributed
    tables = EngineTables(results)
    return Run(scenario, tables, has_decisions=decisions, warnings=warnings, not_attributed=not_attributed)


ACTIONS_SHOWN = 5
"""Maximum number of refused actions that a warning names."""


def refused_actions(count: int, first: Sequence[tuple[int, str, str | None]]) -> str:
    """The warning about refused actions: their number in all replications, and the first few."""
    shown = [
        f"`{action}`{f' of `{domain}`' if domain else ''} at {time_ns / 1e9:g} s"
        for time_ns, action, domain in first[:ACTIONS_SHOWN]
    ]
    more = ", …" if len(first) > ACTIONS_SHOWN else ""
    actions = "1 action was" if count == 1 else f"{count} actions were"
    return f"{actions} refused and changed nothing: {', '.join(shown)}{more}"


class Run(ResultTables):
    """The results of a scenario: metrics at their addresses, and tables with a row for each replication and thing.

    Examples:
        >>> import vcpulab
        >>> scenario = vcpulab.Scenario.starter().change({"run.duration": "50ms", "run.replications": 3})
        >>> run = vcpulab.run(scenario)
        >>> run["web.gotten"].n
        3
        >>> run["wbe.gotten"]
        Traceback (most recent call last):
        ...
        vcpulab.results.addresses.AddressError: wbe.gotten: there is no `wbe`; allowed: batch, dom0, ...
          hint: did you mean `web`?
    """

    def __init__(
        self,
        scenario: Scenario,
        tables: Mapping[str, pl.DataFrame],
        *,
        has_decisions: bool,
        warnings: Sequence[str] = (),
        not_attributed: str | None = None,
    ) -> None:
        super().__init__(scenario, tables)
        self.has_decisions = has_decisions
        """`True`: the decisions were kept."""
        self.not_attributed = not_attributed
        """The reason why waits are not attributed to domains; `None`: they are."""
        self._warnings = warnings
        self._measured: dict[ThingKind, pl.DataFrame] = {}
        self._by_thing: dict[ThingKind, dict[str, dict[str, list[float | None]]]] = {}
        self._summary: pl.DataFrame | None = None

    @property
    def plot(self) -> "Plots":
        """The charts of the run, a method for each chart."""
        # Charts are in a layer above this one, and take long to load.
        module, _, name = accessors["plot"].partition(":")
        plots: Plots = getattr(import_module(module), name)(self)
        return plots

    @property
    def warnings(self) -> list[str]:
        """Warnings about differences between the request and the run."""
        return list(self._warnings)

    def __getitem__(self, address: str) -> Interval:
        """The mean of the metric at an address, with its 95 % confidence interval over the replications.

        Args:
            address: such as `http.response_p99`, `web.wait_p99` or `host.idle`.

        Raises:
            AddressError: no number has the address, or it was not defined in any replication.
        """
        interval = self.get(address)
        if interval is None:
            meaning = find(self.scenario, address).metric.undefined_is
            raise AddressError(f"not defined in any replication: {meaning}", field=address)
        return interval

    def get(self, address: str) -> Interval | None:
        """The metric at an address, as `run[address]`; `None` if it was not defined in any replication.

        Raises:
            AddressError: no number has the address.
        """
        (values,) = self.values([find(self.scenario, address)]).values()
        return Interval.from_values(values)

    def values(self, addresses: "str | Iterable[Address | str]") -> dict[str, list[float | None]]:
        """The values of addresses, by name: a value for each replication; `None` where it is not defined.

        Args:
            addresses: an address such as `http.response_p99`, or several.

        Raises:
            AddressError: no number has the address.

        Examples:
            >>> run(Scenario.starter().change({"run.duration": "50ms"})).values("batch.gotten").keys()
            dict_keys(['batch.gotten'])
        """
        if not isinstance(addresses, Iterable):
            raise RequestError(field="addresses", found=type(addresses).__name__, allowed="one address or several")
        given = [addresses] if isinstance(addresses, str) else addresses
        resolved = [
            address if isinstance(address, Address) else find(self.scenario, address, "addresses") for address in given
        ]
        return {address.name: self._values_of(address).get(address.metric.name, []) for address in resolved}

    def metrics(self) -> pl.DataFrame:
        """Every metric in every replication.

        Columns:
            replication: from 0.
            address: as in `run[address]`.
            of: the kind of thing: `domain`, `app`, `pcpu`, `io` for the devices of a domain, `host`.
            thing: which one.
            metric: which metric.
            unit: its unit.
            value: its value; null where it is not defined.
        """
        return pl.concat([long(self._wide(kind), kind) for kind in RUN_KINDS])

    def summary(self) -> pl.DataFrame:
        """Every metric as mean ± half the width of its 95 % confidence interval over the replications.

        Columns:
            address: as in `run[address]`.
            of: the kind of thing: `domain`, `app`, `pcpu`, `io` for the devices of a domain, `host`.
            thing: which one.
            metric: which metric.
            unit: its unit.
            mean: its mean over the replications; null where it was never defined.
            half_width: half the width of the interval; null with fewer than two replications.
            n: number of replications in which it was defined.
        """
        if self._summary is None:
            self._summary = means({kind: self._wide(kind) for kind in RUN_KINDS})
        return self._summary

    def _wide(self, kind: ThingKind) -> pl.DataFrame:
        """The metrics of one kind of thing, a column for each."""
        if kind not in self._measured:
            # Only the tables that are needed: other tables may be long, and are not in memory.
            tables = {"apps": self.df_apps()} if kind == "app" else self._tables
            self._measured[kind] = measured(tables, kind).sort("replication", maintain_order=True)
        return self._measured[kind]

    def _values_of(self, address: Address) -> Mapping[str, list[float | None]]:
        """The metrics of the thing of an address, a value for each replication."""
        if address.kind not in self._by_thing:
            lists = self._wide(address.kind).group_by("thing", maintain_order=True).all()
            self._by_thing[address.kind] = {row["thing"]: row for row in lists.iter_rows(named=True)}
        return self._by_thing[address.kind].get(address.thing, {})

    def df_wait_shares(self) -> pl.DataFrame:
        """The waits of each domain by cause, as means over the replications.

        Columns:
            domain: the domain that waited.
            by: what it waited for, as in `df_waits`.
            of_elapsed: time waited for it, % of the time measured, over all its vCPUs.
            of_wait: the same, % of all its waits; null where it never waited.
            half_width: half the width of the 95 % confidence interval of `of_elapsed`; null with one replication.
        """
        return self._wait_shares

    @functools.cached_property
    def _wait_shares(self) -> pl.DataFrame:
        return wait_shares(self.df_domains(), self.df_waits())

    def df_wakeup_means(self) -> pl.DataFrame:
        """The waits of vCPUs for a pCPU after waking up, as means over the replications.

        Columns:
            domain: the domain's name.
            cause: why they woke, as in `df_wakeups`.
            per_s: wake-ups per second.
            mean_us: mean wait, µs.
            p50_us: median; like the other percentiles the mean of those of the replications.
            p90_us: 90th percentile.
            p95_us: 95th percentile.
            p99_us: 99th percentile.
            max_us: longest wait in any replication.
        """
        return wakeup_means(self.df_domains(), self.df_wakeups())

    def save(self, directory: str | PathLike[str]) -> None:
        """Writes the scenario as run and all tables (Parquet) to a directory, all or nothing.

        Raises:
            FileExistsError: the directory holds something else.
            OSError: a file cannot be written.
        """
        store.save(self, directory)

    @classmethod
    def load(cls, directory: str | PathLike[str]) -> Self:
        """Reads a run that `save` wrote.

        Raises:
            OSError: a file cannot be read.
        """
        scenario, tables, has_decisions = store.load(directory)
        return cls(scenario, tables, has_decisions=has_decisions)

    def __repr__(self) -> str:
        return f"<Run of {self.scenario!r}>"

    def _repr_html_(self) -> str:
        return self.plot.tables()
