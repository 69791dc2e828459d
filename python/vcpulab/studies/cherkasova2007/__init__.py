"""L. Cherkasova, D. Gupta, A. Vahdat: one CPU shared by Dom0 and one guest, under three schedulers (2007)."""

import re

from vcpulab.figures import Interval
from vcpulab.studies.cherkasova2007.cases import cases
from vcpulab.studies.results import Results
from vcpulab.studies.study import Cell, Chart, Study


def estimate(cell: Cell, results: Results) -> Interval | str:
    """What the simulation says in place of a published cell."""
    if cell.experiment == "dom0-weight-sweep" and cell.stat == "mean":
        return results.interval(case_of(cell), cell.metric)
    return "not simulated"


def case_of(cell: Cell) -> str:
    """The case that gives a cell of Tables 1 and 2. SEDF: the generation that the study's notes argue for."""
    found = re.fullmatch(r"(?:C_ms|period_ms)=(\d+);dom0_to_dom1=([\d.]+)", cell.config)
    if found is None:
        raise ValueError(f"found config `{cell.config}`")
    value, ratio = found.groups()
    kind = f"bvt C={value}" if cell.scheduler == "bvt" else f"{cell.scheduler} xen3.0.2 P={value}"
    return f"{cell.experiment}: {kind} {ratio}"


def charts(_results: Results) -> list[Chart]:
    """The figures of the paper."""
    return []


STUDY = Study(
    name="cherkasova2007",
    title="Three CPU schedulers in Xen",
    reference="L. Cherkasova, D. Gupta, A. Vahdat: Comparison of the Three CPU Schedulers in Xen. HP Laboratories "
    "report HPL-2007-25; ACM SIGMETRICS Performance Evaluation Review 35(2), 2007.",
    cases=cases,
    estimate=estimate,
    claims=(),
    charts=charts,
    experiments={"dom0-weight-sweep": "x","comparison":"x","alert":"x","switch-cost":"x","sedf-reservations":"x","several-guests":"x","bvt-error":"x","smp":"x"},
    seed=2007,
)
