"""A scenario against a part of a recording: shares, switches, waits, and how long vCPUs wait after waking.

A recorded wait after waking ends when the hypervisor has decided and switched; a simulated one ends with the decision.
The waits of vCPUs that nobody was in the way of (of the tenth percentiles the least) are what that takes: no wait is
shorter.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from vcpulab.formats import Recording
from vcpulab.results.run import Run, run
from vcpulab.results.statistics import Interval
from vcpulab.scenario.scenario import Scenario
from vcpulab.twin.sources import Sources

What = Literal["share", "switches", "executions", "wake p50", "wake p90", "waited"]

LIMITS: Mapping[What, tuple[float, str]] = {
    "share": (1.0, "points"),
    "switches": (10.0, "%"),
    "wake p50": (20.0, "%"),
    "wake p90": (20.0, "%"),
}
"""How far a good twin may be off: points of a pCPU, or % of what was recorded."""
REPLICATIONS = 10


@dataclass(frozen=True)
class Row:
    """One figure, recorded and simulated."""

    what: What
    of: str
    """Domain, or `host`."""
    unit: str
    recorded: float
    simulated: Interval
    count: int
    """Wake-ups behind a recorded percentile; 0 for others."""

    @property
    def off(self) -> float:
        """How far the simulation is off: points for shares and waits, else % of what was recorded."""
        difference = self.simulated.mean - self.recorded
        if self.what in ("share", "waited"):
            return difference
        return 100 * difference / self.recorded if self.recorded else float("inf" if difference else 0)

    @property
    def holds(self) -> bool | None:
        """Is it within its limit? `None`: it has none."""
        limit = LIMITS.get(self.what)
        return None if limit is None else abs(self.off) <= limit[0]

    def row(self) -> dict[str, object]:
        """As flat data."""
        return {
            "what": self.what,
            "of": self.of,
            "unit": self.unit,
            "recorded": self.recorded,
            "simulated": self.simulated.mean,
            "half_width": self.simulated.half_width,
            "off": self.off,
            "off_unit": "points" if self.what in ("share", "waited") else "%",
            "holds": self.holds,
            "wakes_recorded": self.count,
        }


def score(
    scenario: Scenario,
    sources: Sources,
    recording: Recording,
    *,
    replications: int = REPLICATIONS,
    progress: Callable[[float], bool] | None = None,
) -> list[Row]:
    """Runs a scenario for as long as a part of a recording lasts, and sets both side by side.

    Args:
        scenario: a twin, or any scenario whose domains have the names of those recorded.
        sources: what is known of the recorded host.
        recording: the part to hold it against.
        replications: of the simulation.
        progress: called now and then with the fraction done; returning `False` cancels.
    """
    summary = recording.summary
    floor_us = min((v["wake_latency"]["p10_ns"] for v in summary["vcpus"] if v["wakes"]), default=0) / 1e3
    lasts = {"run.duration": f"{max(summary['span_ns'], 1_000_000)}ns", "run.replications": replications}
    done = run(scenario.change(lasts), waits=True, progress=progress)
    rows = [_switches(summary, done)]
    domains = scenario.to_dict()["domain"]
    for number in sorted({vcpu["domain"] for vcpu in summary["vcpus"]}):
        name = sources.name(number)
        if name in domains:
            vcpus = [vcpu for vcpu in summary["vcpus"] if vcpu["domain"] == number]
            rows += _of_domain(name, vcpus, summary["span_ns"], done, floor_us)
    return rows


def _switches(summary: Mapping[str, Any], done: Run) -> Row:
    recorded = sum(pcpu["switches_per_s"] for pcpu in summary["pcpus"])
    each = (
        done.df_pcpus()
        .group_by("replication", maintain_order=True)
        .agg((1e9 * pl.col("switches") / pl.col("elapsed_ns")).sum().alias("rate"))
    )
    simulated = Interval.of(each["rate"])
    assert simulated is not None
    return Row("switches", "host", "1/s", recorded, simulated, 0)


def _of_domain(name: str, vcpus: list[Mapping[str, Any]], span_ns: int, done: Run, floor_us: float) -> list[Row]:
    span = max(span_ns, 1)
    simulated = done.df_domains().filter(domain=name)
    percent = 100 / simulated["elapsed_ns"]

    def interval(values: pl.Series) -> Interval:
        found = Interval.of(values)
        assert found is not None
        return found

    rows = [
        Row(
            "share",
            name,
            "% of a pCPU",
            100 * _sum(vcpus, "running_ns") / span,
            interval(simulated["running_ns"] * percent),
            0,
        ),
        Row(
            "waited",
            name,
            "% of elapsed",
            100 * _sum(vcpus, "runnable_ns") / span,
            interval(simulated["runnable_ns"] * percent),
            0,
        ),
        Row(
            "executions",
            name,
            "1/s",
            _sum(vcpus, "executions_per_s"),
            interval(1e9 * simulated["executions"] / simulated["elapsed_ns"]),
            0,
        ),
    ]
    # A percentile of a domain with several vCPUs is not known from theirs.
    wakes = sum(vcpu["wake_latency"]["count"] for vcpu in vcpus)
    if len(vcpus) == 1 and wakes:
        for what, share in (("wake p50", 0.5), ("wake p90", 0.9)):
            waits = simulated[f"wake_p{round(100 * share)}_ns"].drop_nulls()
            found = Interval.of(max(floor_us, wait / 1e3) for wait in waits)
            if found is not None:
                recorded = vcpus[0]["wake_latency"][f"p{round(100 * share)}_ns"] / 1e3
                rows.append(Row(what, name, "µs", recorded, found, wakes))  # type: ignore[arg-type]
    return rows


def _sum(vcpus: list[Mapping[str, Any]], column: str) -> float:
    return float(sum(vcpu[column] for vcpu in vcpus))
