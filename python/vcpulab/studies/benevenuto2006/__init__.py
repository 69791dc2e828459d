"""The cost of I/O in Xen, and how to measure it."""

from vcpulab.figures import Interval
from vcpulab.studies.benevenuto2006.cases import cases
from vcpulab.studies.results import Results
from vcpulab.studies.study import Cell, Chart, Study


def estimate(_cell: Cell, _results: Results) -> Interval | str:
    """What the simulation says in place of a published cell."""
    return "not simulated"


def charts(_results: Results) -> list[Chart]:
    """The figures of the paper."""
    return []


STUDY = Study(
    name="benevenuto2006",
    title="The cost of I/O in Xen, and how to measure it",
    reference="F. Benevenuto. MSc dissertation, Universidade Federal de Minas Gerais, 2006.",
    cases=cases,
    estimate=estimate,
    claims=(),
    charts=charts,
    experiments={},
    seed=2006,
)
