"""Jobs that an import assumed come after clients and applications that somebody gave, and are called so."""

import vcpulab
from vcpulab import Effort
from vcpulab.advice.capacity.slos import default_slos, on_assumed
from vcpulab.advice.compare import compare
from vcpulab.advice.in_short import headline, in_short
from vcpulab.advice.lint.host import Finding
from vcpulab.advice.lint.lint import Advice, _is_real, advise


def host(assumed: bool) -> vcpulab.Scenario:
    job = {"kind": "periodic", "run": "5ms", "period": "10ms", **({"assumed": True} if assumed else {})}
    web = {"nic": {"driver_domain": "dom0"}, "app": [{"kind": "web-server", "request_cpu": "2ms"}]}
    return vcpulab.Scenario.from_dict(
        {
            "run": {"duration": "1s", "warmup": "100ms", "replications": 4},
            "host": {"profile": "generic", "pcpus": 1, "scheduler": "credit2"},
            "domain": {
                "dom0": {"driver_domain": True},
                "db": {"app": [job]},
                "web": web,
                "batch": {"count": 2, "app": [{"kind": "hog"}]},
            },
            "client": {"http": {"kind": "open-loop", "server": "web", "rate": 200}},
        }
    )


def test_findings_on_assumed_jobs_come_last_and_are_named() -> None:
    given, assumed = (advise(host(one), effort=Effort(replications=3)) for one in (False, True))
    assert any("db" in one.finding.concerned for one in given)
    real = [_is_real(one, vcpulab.run(host(True))) for one in assumed]
    assert real == sorted(real, reverse=True)
    assert real[0]
    for one in assumed:
        if one.finding.concerned and not _is_real(one, vcpulab.run(host(True))):
            assert "assumed jobs" in one.finding.reason


def test_a_fix_for_assumed_jobs_is_not_worth_what_clients_lose() -> None:
    scenario = host(True)
    changed = scenario.change({"domain.db.weight": 4096, "domain.web.weight": 16})
    before, after = vcpulab.run_many([scenario, changed])
    advice = Advice(Finding("domain.db.weight", "", concerned=("db",)), compare(before, after), None, after)
    assert any(one.verdict == "regresses" and one.address.thing == "http" for one in advice.effect or ())
    assert advice.makes_worse


def test_clients_come_first_in_comparisons() -> None:
    scenario = host(True)
    changed = scenario.change({"domain.db.weight": 4096, "domain.web.weight": 4096})
    before, after = vcpulab.run_many([scenario, changed])
    found = compare(before, after)
    first = headline(found, (scenario, changed)).split(";")[0]
    assert first.startswith(("http.", "batch"))
    table, _ = in_short([one for one in found if one.address.better], (scenario, changed), ("now", "then"))
    rows = [row[0] for row in table.rows]
    assert min(place for place, name in enumerate(rows) if name.startswith("http")) < min(
        (place for place, name in enumerate(rows) if name.startswith("db")), default=len(rows)
    )
    # Where there is nothing else, they are news, and called what they are.
    alone = vcpulab.Scenario.from_dict(
        {
            "run": {"duration": "1s", "warmup": "100ms", "replications": 4},
            "host": {"profile": "generic", "pcpus": 1, "scheduler": "credit2"},
            "domain": {
                "db": {"app": [{"kind": "periodic", "run": "5ms", "period": "10ms", "assumed": True}]},
                "mail": {"count": 3, "app": [{"kind": "periodic", "run": "5ms", "period": "10ms", "assumed": True}]},
            },
        }
    )
    heavy = alone.change({"domain.db.weight": 4096})
    before, after = vcpulab.run_many([alone, heavy])
    assert "assumed jobs of db" in headline(compare(before, after), (alone, heavy))


def test_slos_by_default_are_on_what_somebody_gave() -> None:
    run = vcpulab.run(host(True))
    assert not any(one.address.domain == "db" for one in default_slos(run))
    assert not on_assumed(run.scenario, default_slos(run))
    assert any(one.address.domain == "db" for one in default_slos(vcpulab.run(host(False))))
    lone = vcpulab.Scenario.from_dict(
        {
            "run": {"duration": "200ms"},
            "host": {"profile": "generic", "pcpus": 1, "scheduler": "credit2"},
            "domain": {"db": {"app": [{"kind": "periodic", "run": "5ms", "period": "50ms", "assumed": True}]}},
        }
    )
    (line,) = on_assumed(lone, default_slos(vcpulab.run(lone)))
    assert line == "assumed jobs: an import assumed the work of db, whose SLOs count"
