"""The best configuration at a load, with its significance."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from vcpulab.results.statistics import holm
from vcpulab_evidence.studies.claims import SIGNIFICANT
from vcpulab_evidence.studies.devine2010 import cases as c
from vcpulab_evidence.studies.results import Results

WEB_CONFIGS = tuple(f"credit-{weight}" for weight in c.WEB_WEIGHTS) + tuple(c.WEB_SLICES)
WINDOWS_CONFIGS = tuple(f"credit-{weight}" for weight in c.WINDOWS_WEIGHTS) + tuple(c.WINDOWS_SLICES)


class Best(NamedTuple):
    """The best configuration at a load."""

    config: str
    mean: float
    ties: tuple[str, ...]
    """The configurations without a significant difference to the best (paired, Holm's correction), and the best."""
    worst: float
    """Mean of the worst configuration."""

    @property
    def range_percent(self) -> float:
        """The difference between the best and the worst configuration, % of the worst."""
        return 100 * (self.mean / self.worst - 1)


def configs(experiment: str) -> tuple[str, ...]:
    """The configurations of an experiment."""
    return WEB_CONFIGS if experiment in (c.WEB, c.VPS) else WINDOWS_CONFIGS


def best(results: Results, experiment: str, users: int, metric: str = "throughput") -> Best:
    """The configuration with the highest metric at a load.

    Raises:
        Missing: a case was not run.
    """
    named = {config: c.name(experiment, config, users) for config in configs(experiment)}
    means = {config: results.mean(case, metric) for config, case in named.items()}
    winner = max(means, key=lambda config: means[config])
    losers = [config for config in named if config != winner]
    ps = holm([results.difference(metric, named[winner], named[config]).p or 0.0 for config in losers])
    ties = [winner, *(config for config, p in zip(losers, ps, strict=True) if p >= SIGNIFICANT)]
    return Best(winner, means[winner], tuple(ties), min(means.values()))


def mean_over(results: Results, metric: str, cases: Iterable[str]) -> float:
    """The mean of a metric over several cases."""
    values = [results.mean(case, metric) for case in cases]
    return sum(values) / len(values)


def mean_by_replication(results: Results, metric: str, cases: Sequence[str]) -> list[float]:
    """The mean of a metric over several cases, for each replication that all cases have."""
    values = [results.values(case, metric) for case in cases]
    return [sum(row) / len(values) for row in zip(*values, strict=False)]
