"""A laboratory for hypervisor CPU scheduling.

A *scenario* says what the host, its scheduler, the domains, their applications and the clients are; `run` runs it.

Examples:
    >>> import vcpulab
    >>> scenario = vcpulab.Scenario.starter().change({"run.duration": "100ms", "run.replications": 3})
    >>> run = vcpulab.run(scenario)
    >>> run.df_domains().get_column("domain").unique(maintain_order=True).to_list()
    ['dom0', 'web', 'batch']
"""

from vcpulab.errors import EngineError, MissingExtraError, ScenarioError
from vcpulab.policy import Context, Policy, Rejected
from vcpulab.results.figures import Interval
from vcpulab.results.jtl import Jtl
from vcpulab.results.run import Run, run, run_many
from vcpulab.results.trace import Trace
from vcpulab.scenario.catalogue import build_info, profiles, schedulers, schema
from vcpulab.scenario.problems import Problem
from vcpulab.scenario.scenario import Scenario

__version__ = build_info()["version"]

__all__ = [
    "Context",
    "EngineError",
    "Interval",
    "Jtl",
    "MissingExtraError",
    "Policy",
    "Problem",
    "Rejected",
    "Run",
    "Scenario",
    "ScenarioError",
    "Trace",
    "__version__",
    "build_info",
    "profiles",
    "run",
    "run_many",
    "schedulers",
    "schema",
]
