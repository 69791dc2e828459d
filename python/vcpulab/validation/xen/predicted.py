"""What the twin of one recording does in the setting of another: each metric, in each replication."""

from collections.abc import Callable, Mapping, Sequence

import polars as pl

from vcpulab.results.cache import RunCache, key, maker
from vcpulab.results.run import run
from vcpulab.scenario.scenario import Scenario
from vcpulab.twin.deciding import takes_ns
from vcpulab.validation.xen.recorded import Recorded

REPLICATIONS = 10
_ROUND_NS = 100_000_000
"""Runs last as long as recordings, to this: recordings of one setting then are predicted by the same run."""

Replications = Sequence[Mapping[str, float]]
"""`OF METRIC` to value, for each replication; replications of one index had the same random numbers."""


class Unit:
    """One run: whose demands, in which setting."""

    def __init__(self, demands: Recorded, held_against: Recorded) -> None:
        setting = held_against.setting
        # Runs charge the decision to who is woken; a recorded wait ends after it.
        self._shortest_us = takes_ns(demands.document["host"]["costs"], setting.scheduler) / 1e3
        self._demands = demands
        self._setting = setting
        self._rebooted = demands.boot != held_against.boot
        self._duration_ns = max(round(held_against.span_ns / _ROUND_NS) * _ROUND_NS, _ROUND_NS)
        made_by = maker("vcpulab.validation.xen.predicted")
        # The scenario itself is made when it is run: one that replays may be long.
        depends = (demands.twin.text, setting.key, str(self._duration_ns), str(self._rebooted))
        self.name = demands.name
        self.key = key(made_by, *depends)

    @property
    def _scenario(self) -> Scenario:
        lasts = {"run.duration": f"{self._duration_ns}ns", "run.replications": REPLICATIONS}
        return Scenario.from_dict(self._setting.on(self._demands.document, rebooted=self._rebooted)).change(lasts)

    def done(self, store: RunCache) -> Replications | None:
        """What it measured before, if it was run."""
        found = [store.get(f"{self.key}:{number}") for number in range(REPLICATIONS)]
        return [one for one in found if one is not None] if all(one is not None for one in found) else None

    def measure(self, progress: Callable[[float], bool | None]) -> list[dict[str, float]]:
        """Runs it.

        Raises:
            KeyboardInterrupt: `progress` returned false.
            EngineError: it failed.
        """
        done = run(self._scenario, waits=True, progress=progress)
        found: list[dict[str, float]] = [{} for _ in range(REPLICATIONS)]
        rate = (1e9 * pl.col("switches") / pl.col("elapsed_ns")).sum()
        for row in done.df_pcpus().group_by("replication").agg(rate.alias("rate")).iter_rows(named=True):
            found[row["replication"]]["host switches"] = row["rate"]
        for row in done.df_domains().iter_rows(named=True):
            values, name = found[row["replication"]], row["domain"]
            values[f"{name} share"] = 100 * row["running_ns"] / row["elapsed_ns"]
            lost_ns = self._demands.resume_ns * row["preemptions"]
            values[f"{name} computed"] = 100 * (row["running_ns"] - lost_ns) / row["elapsed_ns"]
            for metric, column in (("wait_median", "wake_p50_ns"), ("wait_p90", "wake_p90_ns")):
                if row[column] is not None:
                    values[f"{name} {metric}"] = max(self._shortest_us, row[column] / 1e3)
        for row in done.df_apps().iter_rows(named=True):
            found[row["replication"]][f"{row['domain']} rounds {row['app']}"] = row["throughput_per_s"]
        return found

    def keep(self, store: RunCache, measured: Replications) -> None:
        """Keeps what it measured."""
        for number, values in enumerate(measured):
            store.add(f"{self.key}:{number}", self.name, number, dict(values))
