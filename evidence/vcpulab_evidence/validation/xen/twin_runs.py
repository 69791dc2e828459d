"""Runs of the twin of a recording in the setting of another: the values of each metric, in each replication."""

from collections.abc import Mapping, Sequence

import polars as pl

from vcpulab._work.progress import Progress
from vcpulab.results.cache import RunCache, key, maker
from vcpulab.results.run import run
from vcpulab.scenario.scenario import Scenario
from vcpulab.twin.decision_costs import takes_ns
from vcpulab_evidence.validation.xen.recording import Recorded

REPLICATIONS = 10
_ROUND_NS = 100_000_000
"""Rounding of durations: recordings of one setting and about the same length share a run."""

Replications = Sequence[Mapping[str, float]]
"""Values by `THING METRIC` for each replication; replications with the same index have the same random numbers."""


class Unit:
    """A run: the demands of a recording, in the setting of another."""

    def __init__(self, demands: Recorded, held_against: Recorded) -> None:
        setting = held_against.setting
        # Runs charge the decision to the woken vCPU; a recorded wait ends after the decision.
        self._shortest_us = takes_ns(demands.twin.scenario.host.costs, setting.scheduler) / 1e3
        self._demands = demands
        self._setting = setting
        self._rebooted = demands.boot != held_against.boot
        self._duration_ns = max(round(held_against.span_ns / _ROUND_NS) * _ROUND_NS, _ROUND_NS)
        made_by = maker("vcpulab_evidence.validation.xen.twin_runs")
        # The scenario is made when it is run: a replaying scenario may be long.
        depends = (demands.twin.text, setting.key, str(self._duration_ns), str(self._rebooted))
        self.name = demands.name
        self.key = key(made_by, *depends)

    @property
    def _scenario(self) -> Scenario:
        lasts = {"run.duration": f"{self._duration_ns}ns", "run.replications": REPLICATIONS}
        return Scenario.from_dict(
            self._setting.on(self._demands.twin.scenario.to_dict(), rebooted=self._rebooted)
        ).change(lasts)

    def done(self, store: RunCache) -> Replications | None:
        """The stored results of the run; `None`: it was not run."""
        kept = [store.get(f"{self.key}:{number}") for number in range(REPLICATIONS)]
        return [values for values in kept if values is not None] if all(values is not None for values in kept) else None

    def measure(self, progress: Progress) -> list[dict[str, float]]:
        """Runs the scenario and returns the results.

        Raises:
            KeyboardInterrupt: `progress` returned false.
            EngineError: the run failed.
        """
        done = run(self._scenario, waits=True, progress=progress)
        replications: list[dict[str, float]] = [{} for _ in range(REPLICATIONS)]
        rate = (1e9 * pl.col("switches") / pl.col("elapsed_ns")).sum()
        for row in done.df_pcpus().group_by("replication").agg(rate.alias("rate")).iter_rows(named=True):
            replications[row["replication"]]["host switches"] = row["rate"]
        for row in done.df_domains().iter_rows(named=True):
            values, name = replications[row["replication"]], row["domain"]
            values[f"{name} share"] = 100 * row["running_ns"] / row["elapsed_ns"]
            lost_ns = self._demands.resume_ns * row["preemptions"]
            values[f"{name} computed"] = 100 * (row["running_ns"] - lost_ns) / row["elapsed_ns"]
            for metric, column in (("wait_median", "wake_p50_ns"), ("wait_p90", "wake_p90_ns")):
                if row[column] is not None:
                    values[f"{name} {metric}"] = max(self._shortest_us, row[column] / 1e3)
        for row in done.df_apps().iter_rows(named=True):
            replications[row["replication"]][f"{row['domain']} rounds {row['app']}"] = row["throughput_per_s"]
        return replications

    def keep(self, store: RunCache, measured: Replications) -> None:
        """Stores the results."""
        for number, values in enumerate(measured):
            store.add(f"{self.key}:{number}", self.name, number, dict(values))
