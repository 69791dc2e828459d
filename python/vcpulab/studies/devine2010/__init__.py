"""Scheduler settings under a web site and a Windows domain."""

from vcpulab.figures import Interval
from vcpulab.studies.devine2010.cases import cases
from vcpulab.studies.results import Results
from vcpulab.studies.study import Cell, Chart, Study


def estimate(_cell: Cell, _results: Results) -> Interval | str:
    """What the simulation says in place of a published cell."""
    return "not simulated"


def charts(_results: Results) -> list[Chart]:
    """The figures of the paper."""
    return []


STUDY = Study(
    name="devine2010",
    title="Scheduler settings under a web site and a Windows domain",
    reference="J. Devine: Evaluating Xen CPU schedulers. Senior thesis CS10-01, Allegheny College, 2010.",
    cases=cases,
    estimate=estimate,
    claims=(),
    charts=charts,
    experiments={},
    seed=2010,
)
