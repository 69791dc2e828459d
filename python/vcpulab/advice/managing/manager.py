"""The loop of a workload manager: measure, decide and set parameters in each interval."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from vcpulab import _engine
from vcpulab._work.progress import Progress
from vcpulab.advice.isolation import pcpus_of
from vcpulab.advice.managing.alert import NO_ERRORS, allocation_errors
from vcpulab.advice.managing.controller import Controller, Usage
from vcpulab.advice.managing.limits import LEAST, limits
from vcpulab.errors import Interrupted, RequestError
from vcpulab.hypervisors.settings import POOL_0
from vcpulab.results.metrics import CONTROLLER, summarise
from vcpulab.results.run import Run, finished, ran
from vcpulab.scenario.scenario import Scenario, join

LEAST_INTERVAL_S = 0.005
"""Shortest interval between two decisions of a manager."""

DECISIONS = {
    "replication": pl.UInt32,
    "time_s": pl.Float64,
    "domain": pl.String,
    "used": pl.Float64,
    "waited": pl.Float64,
    "allocated": pl.Float64,
    "next": pl.Float64,
}


@dataclass(frozen=True)
class Settings:
    """Settings of a workload manager."""

    controller: type[Controller]
    domains: Sequence[str]
    """Names of the managed domains."""
    interval_s: float = 5.0
    """Time between two decisions; about 5 s in Cherkasova, Gupta and Vahdat 2007, section 3."""
    target: float = 0.8
    """Fraction of its allocation that a domain should use."""
    start: float | None = None
    """Allocation in the first interval, % of a pCPU; `None`: as much as the domain's vCPUs can use."""


@dataclass(frozen=True)
class Managed:
    """A managed run and its decisions."""

    run: Run
    decisions: pl.DataFrame
    """A row for each replication, interval and managed domain: end of the interval, CPU time used, waited and
    allocated in it, and the next allocation; CPU time in % of a pCPU."""
    settings: Settings
    errors: pl.DataFrame
    """The scheduler's own allocation errors at the mean allocations, %, as `allocation_errors` measures them; no rows
    if that measurement was interrupted."""

    def stability(self) -> pl.DataFrame:
        """Metrics of the manager's stability, a row for each domain and metric; columns as in `Run.summary`."""
        steps = (pl.col("next") - pl.col("allocated")).abs()
        each = self.decisions.group_by("replication", "domain", maintain_order=True).agg(
            pl.col("allocated").mean().alias("allocated"),
            pl.col("used").mean().alias("used"),
            steps.mean().alias("step"),
            (pl.col("next").std() / pl.col("next").mean() * 100).alias("spread"),
            (pl.col("used") > 1.01 * pl.col("allocated")).mean().mul(100).alias("over"),
        )
        errors = self.errors.group_by("replication", "domain").agg(pl.col("error").abs().mean())
        joined = each.join(errors, on=["replication", "domain"], how="left", maintain_order="left")
        return summarise(joined.rename({"domain": "thing"}), "controller", CONTROLLER)


def manage(scenario: Scenario, settings: Settings, *, progress: Progress | None = None) -> Managed:
    """Runs every replication of a scenario, one after the other, under a workload manager.

    Args:
        scenario: the scenario to run; `run.sample` is replaced by the manager's interval.
        settings: the managed domains, the controller and its settings.
        progress: see `Progress`.

    Raises:
        RequestError: the settings do not fit the scenario.
        EngineError: the run failed; the exception of a controller is its cause.
        Interrupted: the run was cancelled; holds the finished replications.
        KeyboardInterrupt: the run was cancelled in the first replication.
    """
    _check(settings, scenario)
    interval_ns = round(settings.interval_s * 1e9)
    sampled = scenario.change({"run.sample": f"{interval_ns}ns"})
    loop = _Loop(scenario, settings)
    first = {
        join(["domain", name, param]): value
        for name in settings.domains
        for param, value in loop.params(name, loop.start(name)).items()
    }
    sampled = sampled.change(first)
    try:
        results = _engine.run_managed(sampled._engine, loop, progress=progress)
    except Interrupted as interrupted:
        (partial,), extent = finished([sampled], interrupted)
        decisions = loop.decisions().filter(pl.col("replication") < partial.scenario.replications)
        raise Interrupted(Managed(partial, decisions, settings, NO_ERRORS), extent) from None
    managed = Managed(ran(sampled, results), loop.decisions(), settings, NO_ERRORS)
    means = managed.decisions.group_by("domain", maintain_order=True).agg(pl.col("allocated").mean())
    try:
        errors = allocation_errors(scenario, dict(means.iter_rows()), settings.interval_s)
    except KeyboardInterrupt:
        raise Interrupted(managed, "all but the scheduler's allocation errors") from None
    return replace(managed, errors=errors)


def _check(settings: Settings, scenario: Scenario) -> None:
    for name in settings.domains:
        if name not in scenario.domains:
            allowed = ", ".join(scenario.domains)
            raise RequestError(f"there is no domain `{name}` to manage", field="domain", allowed=allowed)
    if not settings.domains:
        raise RequestError("no domain to manage", field="domain")
    if not 0 < settings.target <= 1:
        raise RequestError(field="target", found=f"{settings.target:g}", allowed="above 0, at most 1")
    if not LEAST_INTERVAL_S <= settings.interval_s <= scenario.duration_ns / 2e9:
        longest = scenario.duration_ns / 2e9
        if longest < LEAST_INTERVAL_S:
            reason = f"the run of {2 * longest:g} s is too short: a manager looks at least twice"
            hint = f"set run.duration to {2 * LEAST_INTERVAL_S:g} s or more"
            raise RequestError(reason, field="interval", found=f"{settings.interval_s:g} s", hint=hint)
        allowed = f"{LEAST_INTERVAL_S:g} to {longest:g} s, half of the run"
        raise RequestError(f"found `{settings.interval_s:g}` s", field="interval", allowed=allowed)
    if settings.start is not None and not settings.start >= LEAST:
        raise RequestError(field="start", found=f"{settings.start:g}", allowed=f"at least {LEAST:g} % of a pCPU")


class _Loop:
    """The callback of the engine at each sample."""

    def __init__(self, scenario: Scenario, settings: Settings) -> None:
        self.scenario = scenario
        self.settings = settings
        self.begin_ns = scenario.warmup_ns
        self.vcpus = {name: scenario.domains[name].vcpus for name in settings.domains}
        self.pool = {name: scenario.domains[name].pool for name in settings.domains}
        self.capacity = {pool: 100.0 * len(pcpus_of(scenario.model, pool)) for pool in (POOL_0, *scenario.pools)}
        self.rows: list[tuple[object, ...]] = []
        self.replication: int | None = None
        self.controllers: dict[str, Controller] = {}
        self.allocated: dict[str, float] = {}

    def decisions(self) -> pl.DataFrame:
        """The decisions, as in `Managed`."""
        return pl.DataFrame(self.rows, DECISIONS, orient="row")

    def start(self, name: str) -> float:
        """The first allocation, % of a pCPU."""
        most = 100.0 * self.vcpus[name]
        return most if self.settings.start is None else min(self.settings.start, most)

    def params(self, name: str, share: float) -> dict[str, int]:
        """The parameters that limit a domain to a share."""
        return limits(self.scenario, name, share)

    def __call__(self, replication: int, sample: _engine.Table) -> dict[str, dict[str, int]]:
        """Decides after an interval; returns the parameters of each managed domain for the next one."""
        if replication != self.replication:
            self.replication = replication
            self.controllers = {name: self.settings.controller(self.settings.target) for name in self.settings.domains}
            self.allocated = {name: self.start(name) for name in self.settings.domains}
        usages: dict[str, Usage] = {}
        for row in pl.DataFrame(sample).iter_rows(named=True):
            name = row["domain"]
            if name in self.controllers:
                percent = 100 / row["elapsed_ns"]
                usages[name] = Usage(
                    (row["time_ns"] - self.begin_ns) / 1e9,
                    row["running_ns"] * percent,
                    self.allocated[name],
                    (row["runnable_ns"] + row["offline_ns"]) * percent,
                )
        shares = self._shared({name: self._requested(name, usage) for name, usage in usages.items()})
        for name, share in shares.items():
            usage = usages[name]
            self.rows.append((replication, usage.time_s, name, usage.used, usage.waited, usage.allocated, share))
        self.allocated |= shares
        return {name: self.params(name, share) for name, share in shares.items()}

    def _requested(self, name: str, usage: Usage) -> float:
        """The allocation that a controller requests, limited to the domain's vCPUs."""
        answer = float(self.controllers[name].allocate(usage))
        if not math.isfinite(answer):
            raise ValueError(f"the controller of `{name}` allocated {answer}")
        return min(max(answer, LEAST), 100.0 * self.vcpus[name])

    def _shared(self, requests: Mapping[str, float]) -> dict[str, float]:
        """The requested allocations, reduced by one factor for each pool that has less CPU time."""
        sums: dict[str, float] = {}
        for name, share in requests.items():
            sums[self.pool[name]] = sums.get(self.pool[name], 0.0) + share
        factors = {pool: min(1.0, self.capacity[pool] / total) for pool, total in sums.items()}
        return {name: max(LEAST, share * factors[self.pool[name]]) for name, share in requests.items()}
