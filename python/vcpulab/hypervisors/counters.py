"""Counters of other tools, with their names and units: the table `COUNTERS`."""

from typing import Literal, get_args

import polars as pl

from vcpulab.results.metrics import PERCENT, Metric, Unit
from vcpulab.results.run import Run

Tool = Literal["esx", "kvm", "xapi", "hyperv"]
TOOLS: tuple[Tool, ...] = get_args(Tool)

_ELAPSED = pl.col("elapsed_ns")
_OF_VM_NS = pl.col("running_ns") + pl.col("threads_ns")
# The interval of ESX's real-time charts.
_ESX_WINDOW_MS = 20_000


def _alone(share: pl.Expr) -> pl.Expr:
    """Only for a domain with one vCPU: XAPI counts states of the domain, which are those of its vCPU then."""
    return pl.when(pl.col("vcpus") == 1).then(share)


COUNTERS: dict[Tool, tuple[Metric, ...]] = {
    "esx": (
        Metric("%RUN", PERCENT, "running, summed over the vCPUs (esxtop)", 100 * pl.col("running_ns") / _ELAPSED),
        Metric("%RDY", PERCENT, "runnable, summed over the vCPUs (esxtop)", 100 * pl.col("runnable_ns") / _ELAPSED),
        Metric(
            "%RDY per vCPU",
            PERCENT,
            "the same, divided by the vCPUs: what thresholds are for",
            100 * pl.col("runnable_ns") / _ELAPSED / pl.col("vcpus"),
        ),
        Metric(
            "cpu.ready.summation",
            Unit("ms in 20 s"),
            "runnable, summed over the vCPUs; of 20 s, the interval of real-time charts, so 200 ms are 1 %",
            _ESX_WINDOW_MS * pl.col("runnable_ns") / _ELAPSED,
        ),
        Metric("%WAIT", PERCENT, "blocked, summed over the vCPUs (esxtop)", 100 * pl.col("blocked_ns") / _ELAPSED),
    ),
    "kvm": (
        Metric(
            "cpu.time",
            Unit("s/s"),
            "running, halt polling too: vCPUs and the threads that serve them (virsh domstats)",
            _OF_VM_NS / _ELAPSED,
        ),
        Metric(
            "vcpu.N.time",
            Unit("s/s"),
            "running, summed over the vCPUs (virsh domstats)",
            pl.col("running_ns") / _ELAPSED,
        ),
        Metric(
            "vcpu.N.wait",
            Unit("s/s"),
            "runnable, summed over the vCPUs (virsh domstats: wait_sum of /proc/PID/task/TID/sched)",
            pl.col("runnable_ns") / _ELAPSED,
        ),
        Metric(
            "vcpu.N.delay",
            Unit("s/s"),
            "runnable, summed over the vCPUs (virsh domstats; rate of kubevirt_vmi_vcpu_delay_seconds_total)",
            pl.col("runnable_ns") / _ELAPSED,
        ),
        Metric(
            "run_delay",
            Unit("ns/s"),
            "runnable, summed over the vCPUs (second number of /proc/PID/task/TID/schedstat)",
            1e9 * pl.col("runnable_ns") / _ELAPSED,
        ),
        Metric(
            "usage_usec",
            Unit("µs/s"),
            "the same as cpu.time (cpu.stat of the VM's scope)",
            1e6 * _OF_VM_NS / _ELAPSED,
        ),
        Metric(
            "nr_throttled",
            Unit("1/s"),
            "periods at whose end a quota was used up (cpu.stat, summed over the groups of the VM)",
            1e9 * pl.col("throttled_periods") / _ELAPSED,
        ),
        Metric(
            "throttled_usec",
            Unit("µs/s"),
            "time for which quotas were used up, summed over pCPUs (cpu.stat, summed over the groups of the VM)",
            1e6 * pl.col("throttled_ns") / _ELAPSED,
        ),
        Metric(
            "steal",
            PERCENT,
            "runnable, throttled or not, of the time of all vCPUs (top and /proc/stat in the guest)",
            100 * pl.col("runnable_ns") / _ELAPSED / pl.col("vcpus"),
        ),
        Metric(
            "cpu some avg",
            PERCENT,
            "an estimate: part of the time in which a vCPU or more is runnable, as if each waited by itself and all "
            "alike (cpu.pressure of their groups)",
            100 * (1 - (1 - pl.col("runnable_ns") / _ELAPSED / pl.col("vcpus")).clip(0, 1).pow(pl.col("vcpus"))),
        ),
    ),
    "xapi": (
        Metric(
            "cpu_usage",
            Unit("fraction"),
            "running, of the time of all vCPUs",
            pl.col("running_ns") / _ELAPSED / pl.col("vcpus"),
        ),
        Metric(
            "runstate_fullrun",
            Unit("fraction"),
            "all vCPUs running; here for one vCPU only",
            _alone(pl.col("running_ns") / _ELAPSED),
        ),
        Metric(
            "runstate_full_contention",
            Unit("fraction"),
            "all vCPUs runnable; here for one vCPU only",
            _alone(pl.col("runnable_ns") / _ELAPSED),
        ),
        Metric(
            "runstate_blocked",
            Unit("fraction"),
            "all vCPUs blocked; here for one vCPU only",
            _alone(pl.col("blocked_ns") / _ELAPSED),
        ),
    ),
    "hyperv": (
        Metric(
            "% Total Run Time",
            PERCENT,
            "running, mean over the vCPUs (Hyper-V Hypervisor Virtual Processor)",
            100 * pl.col("running_ns") / _ELAPSED / pl.col("vcpus"),
        ),
        Metric(
            "CPU Wait Time Per Dispatch",
            Unit("ns"),
            "runnable, mean over the executions: a time, not a share",
            pl.when(pl.col("executions") > 0).then(pl.col("runnable_ns") / pl.col("executions")),
        ),
    ),
}


def counted(run: Run) -> pl.DataFrame:
    """A row for each domain and replication: the columns that the expressions of counters use.

    Columns:
        threads_ns: see `Run.df_vms`; 0 under Xen.
        throttled_periods: see `Run.df_vms`; 0 under Xen.
        throttled_ns: see `Run.df_vms`; 0 under Xen.
        others: see `Run.df_domains`.
    """
    of_vms = ("threads_ns", "throttled_periods", "throttled_ns")
    vms = run.df_vms().select("replication", "domain", *of_vms)
    every = run.df_domains().join(vms, on=["replication", "domain"], how="left", maintain_order="left")
    return every.with_columns(pl.col(of_vms).fill_null(0))


def markdown() -> str:
    """The table of counters for the documentation."""
    rows = [
        f"| {tool} | {counter.name} | {counter.unit} | {counter.doc} |" for tool in TOOLS for counter in COUNTERS[tool]
    ]
    return "\n".join(["| `--counters` | counter | unit | what it is here |", "|---|---|---|---|", *rows])
