"""A laboratory for hypervisor CPU scheduling.

A *scenario* describes a host, its scheduler, the domains, their applications and the clients. A call takes scenarios or
their files, runs what it needs, and returns an answer:

| question | call | answer |
|---|---|---|
| What happens? | `run`, `run_many` | `Run` |
| What differs between two scenarios or runs? | `compare` | `Differences` |
| What do other settings do, and how are they set? | `whatif` | `WhatIf` |
| What is wrong, and what fixes it? | `lint` | `Findings` |
| Why is a service slow? | `explain` | `Explanation` |
| How much can the host carry at most? | `bounds` | `Bounds` |
| Which load keeps the SLOs? | `capacity` | `Capacity` |
| Which setting is best? | `tune` | `Tuning` |
| How few hosts are enough? | `place` | `Placement` |
| How does it depend on parameters? | `sweep` | `Sweep` |
| What would a recorded host do? | `Twin`, `Twin.score` | `Twin`, `Score` |

Scenarios: `Scenario`, `Problem`; the tables of a scenario are of the types in `vcpulab.scenario.model`; `schedulers`,
`profiles`, `schema` and `build_info` list what there is, schedulers as types in `vcpulab.scenario.parameters`, profiles
as `vcpulab.scenario.catalogue.Profile`.
Runs: `run`, `run_many`, `Run`, `Trace`, `Jtl`.
Questions: `compare`, `whatif`, `lint`, `explain`, `bounds`, `capacity`, `tune`, `place`, `sweep`; the `Effort` of
each is a parameter, and it reports its `Progress`.
Answers: those of the table, `Interval`, and `Comparison`, an item of `Differences`; each is an `Answer`.
Hosts: `Twin` is a scenario made of a host's recording.
Policies: `Policy`, `Context`, `Param`, `Rejected` are for a scheduler of your own.
Evidence: the package `vcpulab_evidence`, if installed, runs published studies again, and predicts recorded hosts.
Errors: `VcpulabError` and its subclasses; `Interrupted` holds what is known of an answer.

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
    from vcpulab._api import bounds, capacity, compare, explain, lint, place, sweep, tune, whatif
    from vcpulab._work.budget import StoppedError
    from vcpulab._work.effort import Effort
    from vcpulab._work.progress import Progress
    from vcpulab.advice.answers import Differences, WhatIf
    from vcpulab.advice.bounds.answers import Bounds
    from vcpulab.advice.capacity.growing import Capacity
    from vcpulab.advice.compare import Comparison
    from vcpulab.advice.explanation import Explanation
    from vcpulab.advice.lint.answer import Findings
    from vcpulab.advice.placing.placing import Placement, UnplaceableError
    from vcpulab.advice.tuning.answer import Tuning
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
    from vcpulab.show.answer import Answer
    from vcpulab.sweeps.answer import Sweep
    from vcpulab.sweeps.executors import ClusterLostError
    from vcpulab.sweeps.runner import SweepFailedError
    from vcpulab.twin.twin import Score, Twin

    __version__: str

_DEFINED = {
    "_work.effort": ("Effort",),
    "_work.progress": ("Progress",),
    "advice.answers": ("Differences", "WhatIf"),
    "advice.bounds.answers": ("Bounds",),
    "advice.capacity.growing": ("Capacity",),
    "advice.compare": ("Comparison",),
    "advice.explanation": ("Explanation",),
    "advice.lint.answer": ("Findings",),
    "advice.placing.placing": ("Placement", "UnplaceableError"),
    "advice.tuning.answer": ("Tuning",),
    "_work.budget": ("StoppedError",),
    "errors": (
        "EngineError",
        "Interrupted",
        "MissingExtraError",
        "RecordingError",
        "RequestError",
        "ScenarioError",
        "VcpulabError",
    ),
    "policy": ("Context", "Param", "Policy", "Rejected"),
    "results.jtl": ("Jtl",),
    "results.run": ("Run", "run", "run_many"),
    "results.statistics": ("Interval",),
    "results.trace": ("Trace",),
    "scenario.catalogue": ("build_info", "profiles", "schedulers", "schema"),
    "scenario.problems": ("Problem",),
    "scenario.scenario": ("Scenario",),
    "show.answer": ("Answer",),
    "sweeps.answer": ("Sweep",),
    "sweeps.executors": ("ClusterLostError",),
    "sweeps.runner": ("SweepFailedError",),
    "twin.twin": ("Score", "Twin"),
    "_api": ("bounds", "capacity", "compare", "explain", "lint", "place", "sweep", "tune", "whatif"),
}
_HOMES = {name: f"vcpulab.{module}" for module, names in _DEFINED.items() for name in names}
"""Public name to its module, which is imported when the name is first used."""

__all__ = [  # noqa: RUF022 (by topic, as in the docstring)
    # scenarios
    "Scenario",
    "Problem",
    "build_info",
    "profiles",
    "schedulers",
    "schema",
    # runs
    "run",
    "run_many",
    "Run",
    "Trace",
    "Jtl",
    # questions
    "compare",
    "whatif",
    "lint",
    "explain",
    "bounds",
    "capacity",
    "tune",
    "place",
    "sweep",
    "Effort",
    "Progress",
    # answers
    "Answer",
    "Differences",
    "Comparison",
    "WhatIf",
    "Findings",
    "Explanation",
    "Bounds",
    "Capacity",
    "Tuning",
    "Placement",
    "Sweep",
    "Score",
    "Interval",
    # hosts
    "Twin",
    # policies
    "Policy",
    "Context",
    "Param",
    "Rejected",
    # errors
    "VcpulabError",
    "ScenarioError",
    "RequestError",
    "RecordingError",
    "EngineError",
    "MissingExtraError",
    "UnplaceableError",
    "StoppedError",
    "SweepFailedError",
    "ClusterLostError",
    "Interrupted",
    "__version__",
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
