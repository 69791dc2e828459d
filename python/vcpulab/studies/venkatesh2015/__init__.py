"""V. Venkatesh: Credit, SEDF, Credit2 and an enhanced credit scheduler beside each other, on Xen 4.4.1 (2015)."""

from vcpulab.studies.definition import Chart, Study
from vcpulab.studies.results import Results
from vcpulab.studies.venkatesh2015.cases import cases
from vcpulab.studies.venkatesh2015.claims import CLAIMS
from vcpulab.studies.venkatesh2015.estimates import estimate


def _charts(results: Results) -> list[Chart]:
    """The figures of the thesis."""
    from vcpulab.studies.venkatesh2015.charts import charts as draw  # Altair is an extra

    return draw(results, STUDY.cells)


_LIMITS = """
* **Not reproduced**: Credit's netperf with Dom0 at its disk (71.63 Mbit/s; simulated as with an idle Dom0), Credit2's
  losses of network (13 and 7 %), the 4 to 6 % of the disk that Credit, Credit2 and Enhanced lose beside CPU stress.
  Neither hardware threads nor the scheduler inside Dom0 explain them (see the notes); what does, we do not know.
* **SEDF's defaults and Enhanced's pseudo-code are readings.** The notes say which were tried; experiments
  `sedf-readings` and `enhanced-readings` show what each gives.
* **SEDF's netperf in the consolidated test** comes out a third too slow, and Dom0's disk half as fast
  again as published.
* **SEDF's database at a fifth of Dom0's rate beside an idle Dom0** fits no reading that leaves the disk at 97 %.
* Most of the thesis's values survive as plots only; these cannot be compared.
"""

STUDY = Study(
    name="venkatesh2015",
    title="Credit, SEDF, Credit2 and an enhanced credit scheduler",
    reference="V. Venkatesh. MASc thesis, University of Ottawa, 2015.",
    cases=cases,
    estimate=estimate,
    claims=CLAIMS,
    charts=_charts,
    experiments={
        "disk-iozone": "IOzone in Dom0, and in a guest beside an idle or a CPU-bound Dom0 (section 3.3.1, Table 4)",
        "network-netperf": "Netperf in a guest beside an idle, a CPU-bound or a writing Dom0 (section 3.3.2, Table 5)",
        "database-sysbench": "Sysbench's OLTP test in Dom0, and in a guest by size of table (section 3.3.3)",
        "consolidated": "Three domains with a workload each (section 3.4, Table 7)",
        "sedf-readings": "What SEDF's defaults may have been (not stated)",
        "enhanced-readings": "What the pseudo-code of Enhanced may mean (section 4.3)",
        "assumptions": "Stress threads and send buffers other than assumed",
        "slices": "Credit's time slice (section 4.2; not measured there)",
        "cpu-bound": "What is left for computing beside a guest's I/O (section 4.2; not measured there)",
    },
    seed=2015,
    limits=_LIMITS,
)
