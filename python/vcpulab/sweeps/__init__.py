"""Sweeps: runs of many scenarios, on one or more machines, in a store that keeps every run once."""

from vcpulab.sweeps.executors import ClusterLostError, Dask, Executor, Local, executor
from vcpulab.sweeps.plan import Plan
from vcpulab.sweeps.runner import SweepFailedError, run
from vcpulab.sweeps.store import Store
from vcpulab.sweeps.tables import export, query, summary

__all__ = [
    "ClusterLostError",
    "Dask",
    "Executor",
    "Local",
    "Plan",
    "Store",
    "SweepFailedError",
    "executor",
    "export",
    "query",
    "run",
    "summary",
]
