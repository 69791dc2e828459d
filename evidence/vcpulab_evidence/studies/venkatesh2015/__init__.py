"""V. Venkatesh: Credit, SEDF, Credit2 and an enhanced credit scheduler beside each other, on Xen 4.4.1 (2015)."""

from vcpulab_evidence.studies.definition import Study
from vcpulab_evidence.studies.venkatesh2015 import cases, claims, estimates

STUDY = Study(
    name="venkatesh2015",
    title="Credit, SEDF, Credit2 and an enhanced credit scheduler",
    reference="V. Venkatesh. MASc thesis, University of Ottawa, 2015.",
    cases=cases.cases,
    estimate=estimates.estimate,
    claims=claims.claim.all,
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
)
