"""A laboratory for hypervisor CPU scheduling.

A *scenario* says what the host, its scheduler, the domains, their applications and the clients are; `run` runs it.

Examples:
    >>> import vcpulab
    >>> scenario = vcpulab.Scenario.starter().change({"run.duration": "100ms", "run.replications": 3})
    >>> run = vcpulab.run(scenario)
    >>> run.df_domains().get_column("domain").unique(maintain_order=True).to_list()
    ['dom0', 'web', 'batch']
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vcpulab.errors import (
        EngineError,
        Interrupted,
        MissingExtraError,
        RecordingError,
        RequestError,
        ScenarioError,
        VcpulabError,
    )
    from vcpulab.policy import Context, Param, Policy, Rejected
    from vcpulab.results.jtl import Jtl
    from vcpulab.results.run import Run, run, run_many
    from vcpulab.results.statistics import Interval
    from vcpulab.results.trace import Trace
    from vcpulab.scenario.catalogue import build_info, profiles, schedulers, schema
    from vcpulab.scenario.problems import Problem
    from vcpulab.scenario.scenario import Scenario
    from vcpulab.twin.twin import Twin
    from vcpulab.verbs import bounds, capacity, compare, explain, lint, place, study, sweep, tune, whatif

    __version__: str

_HOMES = {
    "Context": "vcpulab.policy",
    "EngineError": "vcpulab.errors",
    "Interrupted": "vcpulab.errors",
    "Interval": "vcpulab.results.statistics",
    "Jtl": "vcpulab.results.jtl",
    "MissingExtraError": "vcpulab.errors",
    "Param": "vcpulab.policy",
    "Policy": "vcpulab.policy",
    "Problem": "vcpulab.scenario.problems",
    "RecordingError": "vcpulab.errors",
    "Rejected": "vcpulab.policy",
    "RequestError": "vcpulab.errors",
    "Run": "vcpulab.results.run",
    "Scenario": "vcpulab.scenario.scenario",
    "ScenarioError": "vcpulab.errors",
    "Trace": "vcpulab.results.trace",
    "Twin": "vcpulab.twin.twin",
    "VcpulabError": "vcpulab.errors",
    "build_info": "vcpulab.scenario.catalogue",
    "profiles": "vcpulab.scenario.catalogue",
    "bounds": "vcpulab.verbs",
    "capacity": "vcpulab.verbs",
    "compare": "vcpulab.verbs",
    "explain": "vcpulab.verbs",
    "lint": "vcpulab.verbs",
    "place": "vcpulab.verbs",
    "study": "vcpulab.verbs",
    "sweep": "vcpulab.verbs",
    "tune": "vcpulab.verbs",
    "whatif": "vcpulab.verbs",
    "run": "vcpulab.results.run",
    "run_many": "vcpulab.results.run",
    "schedulers": "vcpulab.scenario.catalogue",
    "schema": "vcpulab.scenario.catalogue",
}
"""Public name to its module, which is imported when the name is first used."""

__all__ = [
    "Context",
    "EngineError",
    "Interrupted",
    "Interval",
    "Jtl",
    "MissingExtraError",
    "Param",
    "Policy",
    "Problem",
    "RecordingError",
    "Rejected",
    "RequestError",
    "Run",
    "Scenario",
    "ScenarioError",
    "Trace",
    "Twin",
    "VcpulabError",
    "__version__",
    "bounds",
    "build_info",
    "capacity",
    "compare",
    "explain",
    "lint",
    "place",
    "profiles",
    "run",
    "run_many",
    "schedulers",
    "schema",
    "study",
    "sweep",
    "tune",
    "whatif",
]


if not TYPE_CHECKING:  # a checker sees the imports above, and knows what is not there

    def __getattr__(name: str) -> object:
        if name == "__version__":
            value = __getattr__("build_info")()["version"]
        elif name in _HOMES:
            value = getattr(import_module(_HOMES[name]), name)
        else:
            raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return __all__
