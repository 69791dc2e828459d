"""F. Benevenuto: what I/O costs in Xen, how to measure it, and how guests disturb each other (2006)."""

from vcpulab_evidence.studies.benevenuto2006 import cases, claims, estimates
from vcpulab_evidence.studies.definition import Study

STUDY = Study(
    name="benevenuto2006",
    title="The cost of I/O in Xen, and how to measure it",
    reference="F. Benevenuto. MSc dissertation, Universidade Federal de Minas Gerais, 2006.",
    cases=cases.cases,
    estimate=estimates.estimate,
    claims=claims.claim.all,
    experiments={
        "tcp-receive": "TCP receive by size of packets (sections 6.1 and 6.2, Figures 6.1, 6.4 and 6.5)",
        "web-server": "Web server by rate of connections (section 6.1, Figures 6.2 and 6.3; content of Table 5.1)",
        "xenoprof-example": "Profile of the web server's guest (Table 5.2)",
        "one-nic": "One network card, two vCPUs of the driver domain (section 6.3.1, Figure 6.7)",
        "two-nics": "Two cards and guests (section 6.3.2, Figure 6.9); one driver domain for each (future work)",
        "interference": "One to five kernel builds in one guest and in as many (section 6.4, Figures 6.10 and 6.11)",
        "profiler-overhead": "What the profiler itself costs (section 5.2.3.2, Figure 5.2)",
    },
    seed=2006,
)
