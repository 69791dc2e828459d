"""A scenario against a part of a recording: shares, switches, migrations, waits, and how long vCPUs wait after waking.

Recorded shares and rates are of the time of which a vCPU's runstate is known.

A recorded wait after waking ends when the hypervisor has decided and switched; a simulated one ends with the decision.
So a percentile of simulated waits is at least what deciding and switching took, which is seen in the waits for no other
vCPU: on Xen the least of the tenth percentiles of all vCPUs. On Linux it takes longer where a thread runs, which gives
way only on its way out of the kernel, and in some of ten waits: there it is the recorded percentile itself, up to twice
that least for the median and four times for the 90th percentile, which no wait for another thread is as short as.

The simulated percentile is the median of those of the replications: of few waits, a percentile is far longer in some
replications than in most.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from vcpulab._work.progress import Progress
from vcpulab.formats import Recording
from vcpulab.results.metrics import DOMAIN, PCPU, WAKEUP, Metric
from vcpulab.results.run import Run, run
from vcpulab.results.statistics import Interval
from vcpulab.scenario.scenario import Scenario
from vcpulab.twin.sources import Sources

_NAMED = {metric.name: metric for metrics in (PCPU, DOMAIN) for metric in metrics}

TOLERANCES: Mapping[str, tuple[float, str]] = {
    "gotten": (1.0, "points"),
    "switches": (10.0, "%"),
    "wake_p50": (20.0, "%"),
    "wake_p90": (20.0, "%"),
}
"""The tolerances of a good twin: points of a pCPU, or % of the recorded value."""
REPLICATIONS = 10
"""The number of replications of a score. Assumed."""
_SWITCHING: Mapping[str, float] = {"wake_p50": 2, "wake_p90": 4}
"""The largest ratio of a percentile of waits after waking to the shortest decision and switch of a Linux CPU."""


@dataclass(frozen=True)
class Pairing:
    """A metric as it was recorded, and as each replication of a simulation has it."""

    metric: Metric
    """The metric; switches are those of all pCPUs together."""
    place: str
    """Domain, or `host`."""
    recorded: float
    simulated: tuple[float, ...]
    count: int
    """Wake-ups behind a recorded percentile; 0 for others."""
    least: float = 0.0
    """The shortest simulated wait: what deciding and switching took."""

    @property
    def is_switching(self) -> bool:
        """`True`: a percentile of recorded waits is no longer than deciding and switching, which is not simulated."""
        return bool(self.count) and self.recorded <= self.least

    def row(self) -> "Row | None":
        """The mean of the replications, or the median of percentiles; `None`: no replication has the metric."""
        interval = Interval.of_median if self.count else Interval.from_values
        simulated = interval(self.simulated)
        return None if simulated is None else Row(self.metric, self.place, self.recorded, simulated, self.count)


@dataclass(frozen=True)
class Row:
    """A metric, recorded and simulated."""

    metric: Metric
    """The metric; switches are those of all pCPUs together."""
    place: str
    """Domain, or `host`."""
    recorded: float
    simulated: Interval
    count: int
    """Wake-ups behind a recorded percentile; 0 for others."""

    @property
    def off_unit(self) -> str:
        """Points for percentages, else % of what was recorded."""
        return "points" if self.metric.unit.whole == 100 else "%"

    @property
    def off(self) -> float:
        """The error of the simulation, in `off_unit`."""
        difference = self.simulated.mean - self.recorded
        if self.off_unit == "points":
            return difference
        return 100 * difference / self.recorded if self.recorded else float("inf" if difference else 0)

    @property
    def holds(self) -> bool | None:
        """`True`: the error is within the tolerance; `None`: no tolerance."""
        tolerance = TOLERANCES.get(self.metric.name)
        return None if tolerance is None else abs(self.off) <= tolerance[0]

    def row(self) -> dict[str, object]:
        """The row as flat data."""
        return {
            "what": self.metric.name,
            "of": self.place,
            "unit": self.metric.unit.text,
            "recorded": self.recorded,
            "simulated": self.simulated.mean,
            "half_width": self.simulated.half_width,
            "off": self.off,
            "off_unit": self.off_unit,
            "holds": self.holds,
            "wakes_recorded": self.count,
        }


def score(
    scenario: Scenario,
    sources: Sources,
    recording: Recording,
    *,
    replications: int = REPLICATIONS,
    progress: Progress | None = None,
) -> list[Row]:
    """Runs a scenario for as long as a part of a recording lasts, and sets both side by side.

    Args:
        scenario: a twin, or any scenario whose domains have the names of those recorded.
        sources: what is known of the recorded host.
        recording: the part to hold it against.
        replications: of the simulation.
        progress: see `Progress`.
    """
    lasts = {"run.duration": f"{span_ns(recording)}ns", "run.replications": replications}
    done = run(scenario.change(lasts), waits=True, progress=progress)
    return [row for pairing in pairings(sources, recording, done) if (row := pairing.row()) is not None]


def span_ns(recording: Recording) -> int:
    """The length of a simulation that a recording is compared with, ns."""
    return max(int(recording.summary["span_ns"]), 1_000_000)


def pairings(sources: Sources, recording: Recording, done: Run) -> list[Pairing]:
    """Every metric of the recorded domains that a simulation has, too.

    Args:
        sources: what is known of the recorded host.
        recording: the part to compare with.
        done: the simulation, as long as that part.
    """
    summary = recording.summary
    switching = _switching_us(summary, sources)
    compared = [_switches(summary, done)]
    for number in sorted({vcpu["domain"] for vcpu in summary["vcpus"]}):
        name = sources.name(number)
        if name in done.scenario.domains and not sources.is_daemon(number):
            vcpus = [vcpu for vcpu in summary["vcpus"] if vcpu["domain"] == number]
            compared += _of_domain(name, vcpus, summary["span_ns"], done, switching)
    return compared


def _switching_us(summary: Mapping[str, Any], sources: Sources) -> dict[str, float]:
    """The longest decision and switch, by percentile, µs."""
    # The host's own threads include real-time ones, which no other thread keeps waiting.
    woken = [vcpu for vcpu in summary["vcpus"] if vcpu["wakes"] and not sources.is_daemon(vcpu["domain"])]
    least = min((vcpu["wake_latency"]["p10_ns"] for vcpu in woken), default=0) / 1e3
    return {name: least * (times if sources.of_linux else 1) for name, times in _SWITCHING.items()}


def _switches(summary: Mapping[str, Any], done: Run) -> Pairing:
    recorded = sum(pcpu["switches_per_s"] for pcpu in summary["pcpus"])
    each = (
        done.df_pcpus()
        .group_by("replication", maintain_order=True)
        .agg((1e9 * pl.col("switches") / pl.col("elapsed_ns")).sum().alias("rate"))
    )
    return Pairing(_NAMED["switches"], "host", recorded, tuple(each["rate"]), 0)


def _of_domain(
    name: str, vcpus: list[Mapping[str, Any]], span_ns: int, done: Run, switching_us: Mapping[str, float]
) -> list[Pairing]:
    simulated = done.df_domains().filter(domain=name)
    percent, per_s = 100 / simulated["elapsed_ns"], 1e9 / simulated["elapsed_ns"]

    of_all: dict[str, tuple[float, pl.Series]] = {
        "gotten": (100 * rate(vcpus, "running_ns", span_ns), simulated["running_ns"] * percent),
        "waited": (100 * rate(vcpus, "runnable_ns", span_ns), simulated["runnable_ns"] * percent),
        "executions": (1e9 * rate(vcpus, "executions", span_ns), simulated["executions"] * per_s),
        "migrations": (1e9 * rate(vcpus, "migrations", span_ns), simulated["migrations"] * per_s),
    }
    compared = [
        Pairing(_NAMED[metric], name, recorded, tuple(values), 0) for metric, (recorded, values) in of_all.items()
    ]
    # A percentile of a domain with several vCPUs is not known from theirs.
    wakes = sum(vcpu["wake_latency"]["count"] for vcpu in vcpus)
    if len(vcpus) == 1 and wakes:
        for metric in WAKEUP:
            waits = simulated[f"{metric.name}_ns"].drop_nulls()
            recorded = vcpus[0]["wake_latency"][f"{metric.name.removeprefix('wake_')}_ns"] / 1e3
            least_us = min(recorded, switching_us[metric.name])
            simulated_us = tuple(max(least_us, wait / 1e3) for wait in waits)
            compared.append(Pairing(metric, name, recorded, simulated_us, wakes, least_us))
    return compared


def rate(vcpus: list[Mapping[str, Any]], column: str, span_ns: int) -> float:
    """A sum over vCPUs for each ns of the time of which the runstate of each is known.

    Examples:
        >>> rate([{"running_ns": 30, "unknown_ns": 40}, {"running_ns": 10, "unknown_ns": 0}], "running_ns", 100)
        0.6
    """
    return float(sum(vcpu[column] / max(span_ns - vcpu["unknown_ns"], 1) for vcpu in vcpus))
