"""J. Devine: Credit and SEDF settings under a web site of three guests and under a Windows domain (2010)."""

from vcpulab_evidence.studies.definition import Study
from vcpulab_evidence.studies.devine2010 import cases, claims, estimates
from vcpulab_evidence.studies.devine2010.best_by_load import best_by_load

STUDY = Study(
    name="devine2010",
    title="Scheduler settings under a web site and a Windows domain",
    reference="J. Devine: Evaluating Xen CPU schedulers. Senior thesis CS10-01, Allegheny College, 2010.",
    cases=cases.cases,
    estimate=estimates.estimate,
    claims=claims.claim.all,
    experiments={
        cases.WEB: "Apache, file server and database by user load (sections 4.1 and 5.2, Tables 5.1 to 5.10)",
        cases.MOSS: "Portal of a Windows domain by user load (sections 4.3 and 5.4, Tables 5.11 to 5.19)",
        cases.EXCHANGE: "Mail server of that domain, whose results the author discarded (section 4.3)",
        cases.VPS: "Hosting of several sites, which the author planned and did not run (section 4.2)",
        cases.PLACEMENT: "Web application and MOSS with 50 users, by the order in which the guests were created (ours)",
    },
    seed=2010,
    doubtful=estimates.doubt,
    extra=best_by_load,
)
