"""What must hold of the results of every run, and of every scenario as it is written and read."""

from itertools import pairwise

import polars as pl

import vcpulab
from vcpulab import Run, Scenario

SIGNED = {
    "df_vcpus": ("slowed_frequency_ns",),
    "df_domains": ("slowed_frequency_ns",),
    "df_decisions": ("from_domain", "to_domain"),
}
"""Columns that may be below 0: turbo frequencies make time of slow ones negative, and idle vCPUs have no domain."""

SUMMARIES = ("df_wait_shares", "df_wakeup_means")
"""Tables that are computed of others."""


def tables(run: Run) -> dict[str, pl.DataFrame]:
    """The tables of a run by the names of their methods."""
    names = (name for name in dir(run) if name.startswith("df_") and name not in SUMMARIES)
    return {name: getattr(run, name)() for name in names}


def same_tables(left: Run, right: Run) -> bool:
    """Do two runs have the same results?"""
    others = tables(right)
    return all(table.equals(others[name]) for name, table in tables(left).items())


def broken(run: Run) -> list[str]:
    """The invariants that the results of a run break."""
    faults = [f"{name}.{fault}" for name, table in tables(run).items() for fault in _impossible_values(name, table)]
    return faults + _times(run) + _quantiles(run)


def unlike_when_written(scenario: Scenario) -> list[str]:
    """What is lost when a scenario is written as text or as a dict, and read."""
    faults = []
    text, table = scenario.to_toml(), scenario.to_dict()
    read = Scenario.from_toml(text)
    if read.to_toml() != text:
        faults.append("to_toml is not stable")
    if read.to_dict() != table:
        faults.append("to_toml reads back with other values")
    if Scenario.from_dict(table).to_dict() != table:
        faults.append("to_dict reads back with other values")
    return faults


def _impossible_values(name: str, table: pl.DataFrame) -> list[str]:
    numbers = table.select(pl.selectors.numeric())
    floats = table.select(pl.selectors.float())
    bad = [f"{column} is not finite" for column in floats.columns if not table[column].drop_nulls().is_finite().all()]
    for column in numbers.columns:
        least = table[column].min()
        if column not in SIGNED.get(name, ()) and isinstance(least, int | float) and least < 0:
            bad.append(f"{column} is {least}")
    return bad


def _times(run: Run) -> list[str]:
    vcpus, pcpus, domains = run.df_vcpus(), run.df_pcpus(), run.df_domains()
    states = pl.sum_horizontal("running_ns", "runnable_ns", "blocked_ns", "offline_ns")
    progress = pl.sum_horizontal("run_ns", "idle_ns", "overhead_ns")
    faults = []
    if not vcpus.filter(states != pl.col("elapsed_ns")).is_empty():
        faults.append("runstates do not sum to the elapsed time")
    if not pcpus.filter(progress != pl.col("elapsed_ns")).is_empty():
        faults.append("a pCPU's times do not sum to the elapsed time")
    own = vcpus.group_by("replication", "number").agg(pl.sum("running_ns", "runnable_ns"))
    joined = domains.join(own, on=["replication", "number"], suffix="_of_vcpus")
    faults += [
        f"{state} of a domain is not that of its vCPUs"
        for state in ("running_ns", "runnable_ns")
        if not joined.filter(pl.col(state) != pl.col(f"{state}_of_vcpus")).is_empty()
    ]
    waits = run.df_waits().group_by("replication", "domain").agg(pl.sum("wait_ns"))
    if not waits.is_empty():
        charged = domains.join(waits, on=["replication", "domain"], how="left").fill_null(0)
        if not charged.filter(pl.col("wait_ns") != pl.col("runnable_ns")).is_empty():
            faults.append("the waits of a domain do not sum to its time runnable")
    slowed = pl.sum_horizontal("work_ns", "slowed_threads_ns", "slowed_memory_ns", "slowed_frequency_ns")
    if not vcpus.filter(slowed > pl.col("running_ns") + 64).is_empty():
        faults.append("more work was done than there was time for")
    return faults


def _quantiles(run: Run) -> list[str]:
    ascending = {
        "df_wakeups": ("p50_ns", "p90_ns", "p95_ns", "p99_ns", "max_ns"),
        "df_domains": ("wait_p50_ns", "wait_p95_ns", "wait_p99_ns", "wait_max_ns"),
        "df_apps": ("response_p50_ns", "response_p95_ns", "response_p99_ns", "response_max_ns"),
    }
    faults = []
    for name, columns in ascending.items():
        table = getattr(run, name)()
        for lower, higher in pairwise(columns):
            if not table.filter(pl.col(lower) > pl.col(higher)).is_empty():
                faults.append(f"{name}: {lower} is above {higher}")
    return faults


def faults_of(scenario: Scenario) -> list[str]:
    """All that is wrong with a scenario as it is written, read and run, with one process and with two."""
    run = vcpulab.run(scenario, jobs=1)
    faults = broken(run) + unlike_when_written(scenario)
    if not same_tables(run, vcpulab.run(scenario, jobs=2)):
        faults.append("the number of jobs changes results")
    if not same_tables(run, vcpulab.run(Scenario.from_toml(scenario.to_toml()), jobs=1)):
        faults.append("the scenario as it is written has other results")
    return faults
