"""Advice claims no more than was tried: what is said to be impossible is impossible, and what was tried is named."""

from pathlib import Path
from random import Random
from typing import Any

import pytest

import vcpulab
from vcpulab.advice.capacity.service_alone import alone
from vcpulab.advice.isolation import isolations
from vcpulab.advice.tuning import space
from vcpulab.advice.tuning.goals import default_goals
from vcpulab.advice.tuning.leads import leads
from vcpulab.advice.tuning.widening import shared, widened
from vcpulab.advice.verdicts import Costly, NotFound, Proven, in_words
from vcpulab.errors import RequestError
from vcpulab.results.addresses import slo
from vcpulab.scenario.settings import apply, change
from vcpulab.show import html
from vcpulab.show.document import on_page

HOGS = {"app": [{"kind": "hog"}]}


def host(domain: dict[str, Any], *, pcpus: int = 4, client: dict[str, Any] | None = None, **more: Any) -> Any:
    frame = {"profile": "generic", "pcpus": pcpus, "scheduler": "credit2", **more}
    run = {"duration": "500ms", "warmup": "100ms", "replications": 2}
    return vcpulab.Scenario.from_dict({"run": run, "host": frame, "domain": domain, "client": client or {}})


def reader() -> Any:
    """A reader of a disk waits for a task that computes, in the same domain, which is alone on its only pCPU."""
    read = {"kind": "iozone", "operation": "random-read", "record_size": "4KiB", "direct": True, "file_size": "1MiB"}
    dom0 = {"driver_domain": True, "vcpus": 2, "app": [{"kind": "hog"}, read]}
    disk = {"ssd": {"driver_domain": "dom0", "kind": "ssd"}}
    frame = {"profile": "generic", "pcpus": 1, "scheduler": "credit2", "costs": {"ssd_latency_ns": 500_000}}
    run = {"duration": "500ms", "warmup": "100ms", "replications": 2}
    return vcpulab.Scenario.from_dict({"run": run, "host": frame, "disk": disk, "domain": {"dom0": dom0}})


def real_time() -> Any:
    """A real-time domain has two pCPUs by pinning, and everybody else may run there, too."""
    rt = {"vcpus": 2, "affinity": "2-3", "app": [{"kind": "periodic", "run": "20us", "period": "1ms", "instance": 2}]}
    win = {"vcpus": 4, "app": [{"kind": "periodic", "run": "8ms", "period": "20ms", "instance": 4}]}
    return host({"rt": rt, "win1": win, "win2": win}, pcpus=6, scheduler="credit")


def test_a_host_wide_setting_is_tried_where_the_goals_domain_fills_the_host() -> None:
    """The domain uses all pCPUs, and its own task is what the reader waits for: that was taken for the end of it."""
    answer = vcpulab.tune(reader(), maximise=["dom0.1.throughput"], trials=24, replications=2)
    assert answer.result.proof is None
    assert answer.advised
    assert list(answer.result.best.changes) == ["host.ratelimit_us"]


def test_what_is_varied_by_hand_is_tried_though_nobody_feels_it() -> None:
    word = "host.ratelimit_us=100,1000"
    answer = vcpulab.tune(reader(), minimise=["dom0.1.response_p99"], vary=[word], replications=2)
    assert len(answer.result.candidates) == 2
    assert answer.result.best.changes == {"host.ratelimit_us": 100}


def test_a_pattern_shares_parameters_among_alike_domains() -> None:
    batch = dict.fromkeys(("b1", "b2", "b3"), HOGS)
    both = host({"web1": {**HOGS, "vcpus": 2}, "web2": {**HOGS, "vcpus": 2}, **batch})
    searched = shared(space(both, only=["domain.*.weight"]), ["web1", "web2"])
    assert [one.name for one in searched.parameters] == ["domain.web1 to web2.weight", "domain.b1 to b3.weight"]
    one = shared(space(both, only=["domain.web1.weight"]), ["web1"])
    assert [parameter.name for parameter in one.parameters] == ["domain.web1.weight"]
    typed = shared(space(both, ["b*.weight=100,200", "web1.weight=300,400"]), ["web1"])
    assert [parameter.name for parameter in typed.parameters] == ["b*.weight", "domain.web1.weight"]


def test_isolation_is_tried_and_found() -> None:
    wanted = {"domain.win1.affinity": "0-1,4-5", "domain.win2.affinity": "0-1,4-5"}
    scenario = real_time()
    limit = "rt.0.response_p99 < 0.03ms"
    answer = vcpulab.tune(scenario, slo=[limit], trials=16, replications=2)
    assert answer.result.best.changes == wanted
    explained = vcpulab.explain(scenario, limit, replications=2)
    assert explained.verdict is None
    assert explained.nearest is not None
    assert explained.nearest.finding.changes == wanted


def roaming(**more: Any) -> Any:
    """A real-time domain that is pinned nowhere, beside two that are busy most of the time."""
    rt = {"app": [{"kind": "periodic", "run": "20us", "period": "1ms"}]}
    win = {"vcpus": 4, "app": [{"kind": "periodic", "run": "8ms", "period": "20ms", "instance": 4}]}
    return host({"rt": rt, "win1": win, "win2": win}, pcpus=4, **more)


KVM: dict[str, Any] = {"scheduler": "linux-eevdf", "hypervisor": "kvm"}


@pytest.mark.parametrize("frame", [{}, KVM])
def test_a_domain_that_is_not_pinned_is_isolated_too(frame: dict[str, Any]) -> None:
    """Explain and tune find the same setting, and both say what it costs the others."""
    scenario, limit = roaming(**frame), "rt.0.response_p99 < 0.03ms"
    wanted = {"domain.rt.affinity": "3", "domain.win1.affinity": "0-2", "domain.win2.affinity": "0-2"}
    answer = vcpulab.tune(scenario, slo=[limit], trials=16, replications=2)
    assert answer.result.best.changes == wanted
    explained = vcpulab.explain(scenario, limit, replications=2)
    assert explained.costly is not None
    assert explained.costly.finding.changes == wanted
    assert isinstance(explained.verdict, Costly)
    assert "none of the" not in explained.outlook()[0]
    assert "late" in explained.outlook()[0]


def test_pcpus_are_taken_from_others_only_for_an_slo_that_is_missed() -> None:
    names = [
        [parameter.name for parameter in widened(space(roaming()), ["rt"], missing).parameters]
        for missing in ([], ["rt"])
    ]
    assert "domain.rt.isolation" not in names[0]
    assert "domain.rt.isolation" in names[1]


def test_a_pool_isolates_where_the_toolstack_has_pools() -> None:
    (*_, pooled) = isolations(roaming().model, ["rt"])
    assert pooled.pool == "only-rt"
    change(roaming(), pooled.changes)
    assert all(isolation.pool is None for isolation in isolations(roaming(**KVM).model, ["rt"]))
    assert in_words([pooled.changes]) == ("pcpus of only-rt 3", "pool of rt only-rt")


def test_pcpus_are_isolated_by_whole_cores_and_leave_some_for_others() -> None:
    topology = {"sockets": 2, "cores": 2, "threads": 2, "nodes": 2}
    wide = host({"rt": {**HOGS, "vcpus": 3, "memory_nodes": 0}, "win": HOGS}, pcpus=8, topology=topology)
    assert [isolation.pcpus for isolation in isolations(wide.model, ["rt"]) if isolation.pool is None] == [
        "2-3",
        "0-3",
    ]
    assert not isolations(host({"rt": HOGS, "win": HOGS}, pcpus=1).model, ["rt"])
    assert not isolations(host({"rt": HOGS, "win": {**HOGS, "affinity": "0"}}, pcpus=1).model, ["rt"])


def test_threads_that_serve_other_vms_are_kept_away_too() -> None:
    served = {"nic": {}, "disk": {}, "iothreads": 1, "app": [{"kind": "web-server"}]}
    kvm = host({"rt": HOGS, "web": served, "batch": HOGS}, **KVM)
    (alone_on_3,) = isolations(kvm.model, ["rt"])
    fields = {"web.affinity", "web.emulator_affinity", "web.iothread_affinity", "batch.affinity"}
    assert alone_on_3.changes == {"domain.rt.affinity": "3", **{f"domain.{field}": "0-2" for field in fields}}
    change(kvm, alone_on_3.changes)


def test_a_new_pool_can_be_typed() -> None:
    typed = [f"pool.only.{setting}" for setting in ("pcpus=3", "scheduler=credit2")]
    assert apply(roaming(), [*typed, "rt.pool=only"]).scenario.to_dict()["pool"]["only"]["pcpus"] == "3"
    with pytest.raises(RequestError, match=r"pool\.only\.scheduler: required"):
        apply(roaming(), typed[:1])


def test_only_pinned_domains_are_pinned_together() -> None:
    explained = vcpulab.explain(real_time(), "rt.0.response_p99 < 0.03ms", replications=2)
    reasons = [one.finding.reason for one in explained.advice if one.finding.rule == "pinned-together"]
    assert all("pinned together with" not in reason for reason in reasons)
    assert all("rt is pinned to pCPU 2-3, where win" in reason for reason in reasons)


def test_a_soft_affinity_that_packs_a_domain_is_cleared() -> None:
    topology = {"sockets": 2, "cores": 4, "threads": 2, "nodes": 2}
    big = {"vcpus": 8, "soft_affinity": "0-7", "app": [{"kind": "hog", "instance": 8}]}
    frame: dict[str, Any] = {"profile": "xeon-gold-6240", "topology": topology, "scheduler": "credit"}
    packed = host({"big": big, "idle": {}}, pcpus=16, **frame)
    explained = vcpulab.explain(packed, "big.0.throughput > 1000", replications=2)
    assert explained.verdict is None
    assert explained.nearest is not None
    ((path, value),) = explained.nearest.finding.changes.items()
    assert path == "domain.big.soft_affinity"
    assert value in ("all", None)


def test_explain_looks_at_the_vcpu_of_the_application_that_is_asked_for() -> None:
    (explained,) = vcpulab.explain(reader(), "dom0.1.throughput", replications=2).explained
    assert explained.parts[0].name == "vCPU 1 of dom0, not blocked"


def test_what_was_tried_is_named() -> None:
    web = {"app": [{"kind": "web-server", "request_cpu": "2ms"}], "nic": {"driver_domain": "dom0"}}
    users = {"users": {"kind": "open-loop", "server": "web", "rate": 200}}
    shop = host({"dom0": {"driver_domain": True}, "web": web, "batch": {**HOGS, "vcpus": 2}}, pcpus=1, client=users)
    explained = vcpulab.explain(shop, "users.response_p99 < 2.001ms", replications=2)
    assert isinstance(explained.verdict, NotFound)
    assert explained.verdict.number >= len(explained.attempts.settings) > 0
    (first, *_) = explained.outlook()
    assert first.startswith(f"Not found: none of the {explained.verdict.number} settings tried (weight of web")
    assert "cannot" not in " ".join(explained.outlook())
    answer = vcpulab.tune(shop, slo=["users.response_p99 < 2.001ms"], trials=4, replications=2)
    assert isinstance(answer.missed, NotFound)
    assert answer.missed.number == 3
    assert "Not found: none of the 3 settings tried (weight of web " in answer.verdict


def test_a_setting_that_starves_others_is_not_counted_among_those_that_do_not_help() -> None:
    hogs = host({"a": HOGS, "b": HOGS}, pcpus=1, scheduler="credit")
    answer = vcpulab.tune(hogs, slo=["a.throughput > 950"], vary=["b.cap=0,2,80"], replications=2)
    assert not answer.advised
    assert isinstance(answer.missed, Costly)
    assert answer.verdict.startswith("Of 2 settings tried only those that harm others keep a.throughput > 950 1/s: ")
    assert "starves b" in answer.verdict


def test_a_setting_too_near_to_an_slo_gives_way_to_one_that_keeps_it_by_far() -> None:
    """The mildest that keeps it in the search is not sure to keep it: a greater weight is."""
    web = {"nic": {"driver_domain": "dom0"}, "app": [{"kind": "web-server", "request_cpu": "2ms"}]}
    users = {"users": {"kind": "open-loop", "server": "web", "rate": 200}}
    shop = host({"dom0": {"driver_domain": True}, "web": web, "batch": HOGS}, pcpus=1, client=users)
    weights = ["web.weight=256,512,1024,2048"]
    limit = vcpulab.run(shop.change({"domain.web.weight": 512})).get("users.response_p99")
    assert limit is not None
    answer = vcpulab.tune(shop, slo=[f"users.response_p99 < {1.02 * limit.mean:.4g}ms"], vary=weights, replications=2)
    assert answer.advised
    assert answer.result.best.changes["domain.web.weight"] > 512


def test_a_sentence_names_a_few_parameters() -> None:
    assert NotFound(0, ()).sentence(["x < 1"]) == "Not found: no setting was tried that may keep x < 1"
    said = NotFound(9, ("a 1", "b 2", "c 3", "d 4", "e 5", "f 6")).sentence(["x < 1", "y < 2"])
    assert (
        said == "Not found: none of the 9 settings tried (a 1, b 2, c 3, d 4, 2 more parameters) keeps x < 1 and y < 2"
    )
    costly = Costly(7, "weight of a 512", "makes b late")
    assert costly.sentence(["x < 1"]) == (
        "Of 7 settings tried only those that harm others keep x < 1: weight of a 512 makes b late"
    )
    assert Proven("even alone it is 3").sentence(["x < 1"]) == "x < 1 cannot be kept: even alone it is 3"


def drawn(random: Random) -> Any:
    """A host with a service among others, by chance."""
    vcpus = random.randint(1, 3)
    web: dict[str, Any] = {
        "vcpus": vcpus,
        "nic": {"driver_domain": "dom0"},
        "app": [{"kind": "web-server", "request_cpu": f"{random.randint(200, 3000)}us", "workers": vcpus}],
    }
    web |= random.choice([{}, {"cap": 30}, {"affinity": "0"}, {"weight": 64}])
    others = {f"batch{n}": {"vcpus": random.randint(1, 3), **HOGS} for n in range(random.randint(0, 3))}
    users = {"kind": "open-loop", "server": "web", "rate": random.choice([50, 200, 600])}
    frame: dict[str, Any] = {"pcpus": random.randint(1, 3), "scheduler": random.choice(["credit", "credit2"])}
    domains = {"dom0": {"driver_domain": True}, "web": web, **others}
    return host(domains, client={"users": users}, **frame)


@pytest.mark.parametrize("seed", range(6))
def test_what_is_proven_impossible_is_kept_by_no_setting(seed: int) -> None:
    """The settings that a search begins with, and some by chance, beside what the service reaches alone."""
    random = Random(seed)
    scenario = drawn(random)
    for metric, better in (("users.response_p99", 0.9), ("users.throughput", 1.1)):
        address = slo(scenario, f"{metric} > 0").address
        by_itself = alone(scenario, address)
        assert by_itself is not None
        if not by_itself.reason or by_itself.value is None:
            continue
        searched = widened(space(scenario), ["web"])
        picks = leads(searched, vcpulab.run(scenario), ["web"], None)
        picks += [searched.picks(lambda one: random.randrange(len(one.options))) for _ in range(4)]
        settings = [searched.changes(one) for one in random.sample(picks, min(12, len(picks)))]
        runs = vcpulab.run_many([scenario.change(changes) for changes in settings])
        reached = [value.mean for run in runs if (value := run.get(address.name)) is not None]
        bound = better * by_itself.value
        assert all(value > bound if better < 1 else value < bound for value in reached), (by_itself, settings)


@pytest.mark.parametrize("seed", range(3))
def test_explain_and_tune_do_not_contradict_each_other(seed: int) -> None:
    """What one proves impossible the other does not advise; where explain finds nothing, nothing it tried does it."""
    scenario = drawn(Random(seed))
    alone_ms = alone(scenario, slo(scenario, "users.response_p99 > 0").address)
    assert alone_ms is not None
    assert alone_ms.value is not None
    limit = f"users.response_p99 < {1.5 * alone_ms.value:.4g}ms"
    explained = vcpulab.explain(scenario, limit, replications=2)
    answer = vcpulab.tune(scenario, slo=[limit], trials=8, replications=2)
    fixes = [fix for fix in explained.advice if fix.keeps]
    assert not (isinstance(explained.verdict, Proven) and answer.advised)
    assert not (isinstance(answer.missed, Proven) and fixes)
    if isinstance(explained.verdict, NotFound):
        assert not fixes
        runs = vcpulab.run_many([change(scenario, setting).scenario for setting in explained.attempts.settings])
        values = [value.mean for run in runs if (value := run.get("users.response_p99")) is not None]
        assert all(value >= 1.5 * alone_ms.value for value in values)


def test_assumed_jobs_come_last_and_are_no_goals() -> None:
    """An import that knows no more than CPU use writes jobs: the real application beside them comes first."""
    late = {"kind": "periodic", "run": "8ms", "period": "10ms"}
    busy = {name: {"app": [{**late, "assumed": True}]} for name in ("b1", "b2", "b3")}
    real = host({**busy, "web": {"app": [late]}}, pcpus=1)
    explained = vcpulab.explain(real, replications=2)
    assert explained.explained[0].address == "web.response_p99"
    assert [one.assumed for one in explained.explained] == [False, True, True, True]
    assert explained.numbers()[-1].startswith("b1 to b3.response_p99 (assumed jobs): ")
    (throughput, response, *_) = default_goals(real)
    assert [address.thing for goal in (throughput, response) for address in goal.addresses] == ["web", "web"]
    alone_goals = default_goals(host(busy, pcpus=1))
    assert {address.thing for address in alone_goals[0].addresses} == {"b1", "b2", "b3"}


def test_a_setting_that_misses_the_slo_is_no_advice_in_the_report(tmp_path: Path) -> None:
    hogs = host({"a": HOGS, "b": HOGS}, pcpus=1)
    answer = vcpulab.tune(hogs, slo=["a.throughput > 100000"], vary=["a.weight=256,512"], replications=2)
    assert answer.result.best.changes == {"domain.a.weight": 512}
    html.write(tmp_path / "report.html", answer.title, on_page(answer.document(full=True)))
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "The nearest setting tried, which is not advised" in page
    assert "What to set" not in page


@pytest.mark.parametrize(("word", "meant"), [("eevdf", "linux-eevdf"), ("CFS", "linux-cfs"), ("kvm", "linux-eevdf")])
def test_schedulers_of_linux_are_hinted_at_by_their_short_names(word: str, meant: str) -> None:
    with pytest.raises(RequestError, match=f"did you mean `{meant}`"):
        apply(host({"a": HOGS}), [f"host.scheduler={word}"])
