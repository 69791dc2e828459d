"""Placement: the CPUs that threads are on, in a recording and in a simulation.

A thread is on the CPU on which it ran last, also while it waits or sleeps. CPUs are interchangeable: a placement has
no CPU's number.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from vcpulab.results.run import Run
from vcpulab.twin.links import Vcpu

Move = tuple[int, int, Vcpu]
"""Time, ns, CPU, and the vCPU that begins to run there."""


@dataclass(frozen=True)
class Placement:
    """The placement of a thread."""

    on_main_cpu: float
    """The time that it is on the CPU on which it is longest, % of all time."""
    beside: float
    """The number of other threads on its CPU, the mean over time."""


def recorded(events: Path, vcpus: Iterable[Vcpu]) -> dict[Vcpu, Placement]:
    """The placement of vCPUs in a recording.

    Args:
        events: what `formats.read_trace` wrote there.
        vcpus: the vCPUs that count; others are beside nobody.
    """
    switches = pl.scan_ipc(events).filter(pl.col("kind") == "switch", pl.col("domain") >= 0)
    rows = switches.select("time_ns", "pcpu", "domain", "vcpu").collect()
    span: int = pl.scan_ipc(events).select(pl.col("time_ns").max()).collect().item()
    return _placements(_moves(rows), set(vcpus), 0, span)


def simulated(done: Run, domains: Iterable[str]) -> list[dict[str, Placement]]:
    """The placement of domains with one vCPU in each replication of a run with its decisions.

    Args:
        done: the run.
        domains: the domains that count.
    """
    numbers = dict(done.df_domains().select("domain", "number").unique().iter_rows())
    places = {(numbers[name], 0): name for name in domains}
    begin = done.scenario.warmup_ns
    decisions = done.df_decisions().rename({"to_domain": "domain", "to_vcpu": "vcpu"}).filter(pl.col("domain") >= 0)
    placements = []
    for replication in range(done.scenario.replications):
        rows = decisions.filter(replication=replication).select("time_ns", "pcpu", "domain", "vcpu")
        of_vcpus = _placements(_moves(rows), set(places), begin, begin + done.scenario.duration_ns)
        placements.append({places[vcpu]: placement for vcpu, placement in of_vcpus.items()})
    return placements


def _moves(rows: pl.DataFrame) -> Sequence[Move]:
    return [(time, cpu, (domain, vcpu)) for time, cpu, domain, vcpu in rows.iter_rows()]


def _placements(moves: Sequence[Move], vcpus: set[Vcpu], begin_ns: int, end_ns: int) -> dict[Vcpu, Placement]:
    """The placements of those vCPUs that ran.

    Examples:
        >>> moves = [(0, 0, (1, 0)), (0, 1, (2, 0)), (60, 1, (1, 0))]
        >>> placements = _placements(moves, {(1, 0), (2, 0)}, 0, 100)
        >>> placements[1, 0], placements[2, 0]
        (Placement(on_main_cpu=60.0, beside=0.4), Placement(on_main_cpu=100.0, beside=0.4))
    """
    cpus: dict[Vcpu, int] = {}
    for _, cpu, vcpu in moves:
        if vcpu in vcpus:
            cpus.setdefault(vcpu, cpu)
    on_cpu: dict[Vcpu, dict[int, int]] = {vcpu: {} for vcpu in cpus}
    beside: dict[Vcpu, int] = dict.fromkeys(cpus, 0)
    since = begin_ns

    def account(until: int) -> None:
        for vcpu, cpu in cpus.items():
            on_cpu[vcpu][cpu] = on_cpu[vcpu].get(cpu, 0) + until - since
            beside[vcpu] += (until - since) * (_count(cpus, cpu) - 1)

    for time, cpu, vcpu in moves:
        if vcpu in cpus and cpus[vcpu] != cpu:
            account(time)
            since = time
            cpus[vcpu] = cpu
    account(end_ns)
    span = max(end_ns - begin_ns, 1)
    return {vcpu: Placement(100 * max(on_cpu[vcpu].values()) / span, beside[vcpu] / span) for vcpu in cpus}


def _count(cpus: Mapping[Vcpu, int], cpu: int) -> int:
    return sum(assigned == cpu for assigned in cpus.values())
