"""Credit, SEDF, Credit2 and an enhanced credit scheduler."""

from vcpulab.figures import Interval
from vcpulab.studies.results import Results
from vcpulab.studies.study import Cell, Chart, Study
from vcpulab.studies.venkatesh2015.cases import cases


def estimate(_cell: Cell, _results: Results) -> Interval | str:
    """What the simulation says in place of a published cell."""
    return "not simulated"


def charts(_results: Results) -> list[Chart]:
    """The figures of the paper."""
    return []


STUDY = Study(
    name="venkatesh2015",
    title="Credit, SEDF, Credit2 and an enhanced credit scheduler",
    reference="V. Venkatesh. MASc thesis, University of Ottawa, 2015.",
    cases=cases,
    estimate=estimate,
    claims=(),
    charts=charts,
    experiments={},
    seed=2015,
)
