"""Sweeps: many scenarios, on as many machines as there are, in a store that keeps every run once."""

from vcpulab.sweep.executors import ClusterLostError, Dask, Executor, Local, executor
from vcpulab.sweep.plan import Plan
from vcpulab.sweep.runner import SweepFailedError, run
from vcpulab.sweep.store import Store
from vcpulab.sweep.tables import export, query, summary

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
