"""L. Cherkasova, D. Gupta, A. Vahdat: one CPU shared by Dom0 and one guest, under three schedulers (2007)."""

from vcpulab_evidence.studies.cherkasova2007 import cases, claims, estimates
from vcpulab_evidence.studies.definition import Study

STUDY = Study(
    name="cherkasova2007",
    title="Three CPU schedulers in Xen",
    reference="L. Cherkasova, D. Gupta, A. Vahdat: Comparison of the Three CPU Schedulers in Xen. HP Laboratories "
    "report HPL-2007-25; ACM SIGMETRICS Performance Evaluation Review 35(2), 2007.",
    cases=cases.cases,
    estimate=estimates.estimate,
    claims=claims.claim.all,
    experiments={
        "dom0-weight-sweep": "Web server by weight of Dom0 (section 5.1, Figures 1 to 3, Tables 1 and 2)",
        "comparison": "Web server, iperf and disk read under three schedulers (Figures 4 and 5)",
        "alert": "ALERT: how much of the CPU a guest gets under a limit (Figures 6 to 8)",
        "switch-cost": "The same web server where switches cost nothing (claim C-10; not in the paper)",
        "sedf-reservations": "SEDF where the reservations do not fill the CPU (not in the paper)",
        "saturated": "The rows of Table 1 where more is offered than is served (not in the paper)",
        "several-guests": "Three different guests by weight of Dom0 (claim C-15; not in the paper)",
        "bvt-error": "Two loops under BVT (claim C-20; not in the paper)",
        "smp": "Two CPUs and two loops (claim C-21; not in the paper)",
    },
    seed=2007,
)
