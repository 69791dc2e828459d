"""`vcpulab whatif` and `vcpulab compare`, and what they are made of: settings, metrics, paired differences."""

import json
import re
from pathlib import Path

import pytest

import vcpulab
from support import ROOT, Vcpulab, opened
from vcpulab._engine import Comparison as JudgedComparison
from vcpulab.advice.compare import (
    Comparison,
    Verdict,
    compare,
    in_words,
    judged_metric,
    seen_by_clients,
    table_of_differences,
)
from vcpulab.errors import RequestError
from vcpulab.results.addresses import addresses, apps, find, slo
from vcpulab.results.statistics import Interval, holm
from vcpulab.scenario.settings import apply

pytestmark = pytest.mark.quick

SHORT = {"run.duration": "300ms", "run.warmup": "100ms", "run.replications": 4}
WEB = vcpulab.Scenario.load(ROOT / "scenarios/web-server.toml").change(SHORT)


@pytest.fixture
def web(tmp_path: Path) -> Path:
    path = tmp_path / "web.toml"
    path.write_text(vcpulab.Scenario.starter().change(SHORT).to_toml())
    return path


def test_whatif_says_what_improves_and_regresses_and_what_to_type(command: Vcpulab, web: Path) -> None:
    result = command("whatif", web.name, "--set", "batch.cap=30", "--set", "web.weight=1024")
    assert result.returncode == 0, result.stderr
    assert "10 pairs of replications" in result.stdout
    assert "batch regresses: batch.throughput -" in result.stdout
    assert "web improves: " in result.stdout
    assert "xl sched-credit -d batch -c 30" in result.stdout
    assert "xl sched-credit -d web -w 1024" in result.stdout
    assert "dom0 -w" not in result.stdout, "only what differs"
    assert "as changed: domain.web: weight 1024 is above 512" in result.stderr


def test_whatif_as_data_has_every_metric(command: Vcpulab, web: Path) -> None:
    result = command("whatif", web.name, "--set", "batch.cap=30", "--format", "json", "--replications", "3")
    document = json.loads(result.stdout)
    found = {row["metric"]: row for row in document["metrics"]}
    assert found["batch.gotten"]["before"] > 40
    assert found["batch.gotten"]["after"] < 35
    assert found["batch.throughput"]["verdict"] in ("regresses", "unclear")
    assert {"http.response_p99", "dom0.waited", "host.fairness", "web.0.throughput"} <= set(found)


def test_whatif_leaves_out_what_another_scheduler_does_not_have(command: Vcpulab, web: Path) -> None:
    sets = ("--set", "host.scheduler=sedf", "--write", "sedf.toml")
    text = web.read_text().replace("# cap = 0 (default)", "cap = 30")
    text = text.replace("[[action]]", "[[not_kept]]").split("[[not_kept]]")[0]
    web.write_text(text)
    result = command("whatif", web.name, *sets)
    assert result.returncode == 0, result.stderr
    assert "domain.batch.cap is left out" in result.stderr
    assert "host.generation is left out" in result.stderr
    written = vcpulab.Scenario.load(web.parent / "sedf.toml").to_dict()
    assert written["host"]["scheduler"] == "sedf"


def test_whatif_edits_the_text_of_the_file(command: Vcpulab, web: Path) -> None:
    web.write_text("# Ours.\n" + web.read_text())
    before = web.read_text()
    result = command("whatif", web.name, "--set", "web.weight=300", "--write", web.name, "--replications", "3")
    assert result.returncode == 0, result.stderr
    changed = [line for line in web.read_text().splitlines() if line not in before.splitlines()]
    assert changed == ["weight = 300"]
    assert web.read_text().startswith("# Ours.\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "nothing is set"),
        (["--set", "web.weight"], "allowed: PATH=VALUE"),
        (["--set", "=5"], "allowed: PATH=VALUE"),
        (["--set", "nobody.weight=5"], "there is no `nobody`; allowed: "),
        (["--set", "domain.nobody.weight=5"], "there is no domain `nobody`; allowed: dom0, web, batch"),
        (
            ["--set", "webb.weight=5"],
            "; allowed: web, dom0, batch, http, name, seed, run, host, …\n  hint: did you mean `web`?",
        ),
        (["--set", "bath*.weight=5"], "nothing matches `bath*`; allowed: dom0, web, batch, http"),
        (["--set", "bath*.weight=5"], "hint: did you mean `batch*`?"),
        (["--set", "*.weight=-5"], "--set *.weight=-5: found `-5`; allowed: "),
        (["--set", "*.weight=5", "--set", "web.weight=6", "--set", "web.weight=7"], "is set twice"),
        (["--set", "web.wieght=5"], "--set web.wieght=5: unknown field\n  hint: did you mean `weight`?"),
        (["--set", "web.weight=-5"], "--set web.weight=-5: found `-5`; allowed: "),
        (["--set", "web.weight=5", "--set", "domain.web.weight=6"], "is set twice"),
        (["--set", "host.scheduler=o1"], "allowed: one of arinc653, "),
        (["--set", "web.app.7.workers=2"], "allowed: an item from 0 to 0"),
        (["--set", "web.weight=5", "--replications", "1"], "allowed: an integer from 2 to 10000"),
        (["--set", "web.weight=5", "--replications", "99999999999999999999"], "replications"),
        (["--set", "web.weight=5", "--jobs", "-1"], "--jobs"),
    ],
)
def test_whatif_says_what_is_wrong(command: Vcpulab, web: Path, arguments: list[str], said: str) -> None:
    result = command("whatif", web.name, *arguments)
    assert (result.returncode, result.stdout) == (2, ""), result.stderr
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_compare_scenarios_and_runs_alike(command: Vcpulab, web: Path) -> None:
    other = web.parent / "other.toml"
    other.write_text(vcpulab.Scenario.load(web).change({"domain.batch.cap": 50}).to_toml())
    files = command("compare", web.name, other.name, "--format", "csv", "--replications", "4")
    for name in (web.name, other.name):
        assert command("run", name, "--out", f"out/{name}").returncode == 0
    runs = command("compare", f"out/{web.name}", f"out/{other.name}", "--format", "csv")
    assert runs.stdout == files.stdout != ""
    itself = command("compare", web.name, web.name)
    assert "nothing improves or regresses" in itself.stdout


def test_counts_of_runs_of_different_lengths_are_rates() -> None:
    short = vcpulab.Scenario.starter().change({"run.duration": "1s", "run.warmup": "2s", "run.replications": 4})
    once, twice = vcpulab.run_many([short, short.change({"run.duration": "2s"})])
    assert twice["http.failed"].mean > 1.8 * once["http.failed"].mean > 0
    (failed,) = (one for one in compare(once, twice) if one.address.name == "http.failed")
    assert (failed.verdict, failed.address.unit) == ("unclear", "1/s")
    assert failed.after is not None
    assert failed.after.mean == twice["http.failed"].mean / 2


def test_compare_says_what_is_not_compared(command: Vcpulab, web: Path, tmp_path: Path) -> None:
    result = command("compare", web.name, "hogs.toml")
    assert result.returncode == 0, result.stderr
    assert "only in the first, not compared: web.0, http" in result.stderr
    assert "only in the second, not compared: " in result.stderr
    assert command("compare", web.name, str(tmp_path)).returncode == 2
    assert "does not hold a run" in command("compare", str(tmp_path), str(tmp_path)).stderr
    missing = command("compare", web.name, "missing.toml")
    assert missing.returncode == 2
    assert "missing.toml: no such file" in missing.stderr


def test_report_of_a_comparison_in_a_browser(command: Vcpulab, web: Path, browser: str) -> None:
    result = command("whatif", web.name, "--set", "batch.cap=30", "--report", "out/report.html")
    assert result.returncode == 0, result.stderr
    page = opened(browser, web.parent / "out/report.html")
    assert page.count('data-drawn=""') == page.count("<figure ") == 9
    assert re.search(r"batch\.throughput \d+ → \d+ 1/s \(-\d+ %\)", page)


def test_names_of_metrics() -> None:
    assert find(WEB, "web.throughput") == find(WEB, "httperf.throughput")
    assert find(WEB, "web.0.throughput").thing == "web.0"
    assert find(WEB, "web.gotten").kind == "domain"
    named = [found.name for found in addresses(WEB)]
    assert len(named) == len(set(named))
    with pytest.raises(RequestError, match="`web` has no metric `speed`; allowed: throughput"):
        find(WEB, "web.speed")
    with pytest.raises(RequestError, match="did you mean `response_p99`"):
        find(WEB, "web.p99")
    with pytest.raises(RequestError, match=r"it does not say of what; .*\n.*did you mean `httperf.response_p99`"):
        find(WEB, "response_p99")
    with pytest.raises(RequestError, match="there is no `wbe`"):
        find(WEB, "wbe.throughput")


def test_instances_of_an_application_count_one_by_one() -> None:
    """A client behind several instances was taken for one of them."""
    several = WEB.change({"domain.web.app.1": {"kind": "hog", "instance": 3}, "run.replications": 1})
    run = vcpulab.run(several)
    everybody = {(app.domain, app.position, app.kind, app.name) for app in apps(several)}
    assert everybody == set(run.df_apps()["domain", "app", "kind", "name"].rows())
    (client,) = (app for app in apps(several) if app.name == find(several, "web.throughput").thing)
    assert (client.domain, client.position, client.kind) == ("web", 4, "open-loop")


def test_slos() -> None:
    kept = slo(WEB, "web.response_p99 < 50ms")
    assert (kept.bound, kept.holds(49.0), kept.holds(50.0), kept.holds(None)) == (50, True, False, False)
    assert slo(WEB, "web.response_p99<=0.05s").bound == pytest.approx(50)
    assert slo(WEB, "dom0.wait_p99 < 1ms").bound == 1000
    assert slo(WEB, "web.throughput >= 100").excess(90) == pytest.approx(0.1)
    for wrong in (
        "web.response_p99",
        "web.response_p99 < fast",
        "web.response_p99 < 5kg",
        "web.response_p99 < 1e",
        "< 3",
    ):
        with pytest.raises(RequestError, match="allowed: "):
            slo(WEB, wrong)


def test_values_make_the_intervals_of_the_run() -> None:
    run = vcpulab.run(WEB)
    asked = addresses(WEB)
    found = run.values(asked)
    for one in asked:
        assert vcpulab.Interval.from_values(found[one.name]) == run.get(one.name)


def test_fairness_is_one_where_all_wait_alike() -> None:
    hog = {"app": [{"kind": "hog"}]}
    host = {"profile": "exact", "pcpus": 1, "scheduler": "credit"}
    run = {"duration": "3s", "replications": 1}
    even = vcpulab.Scenario.from_dict({"name": "even", "run": run, "host": host, "domain": {"a": hog, "b": hog}})
    uneven = even.change({"domain.a.weight": 2560})
    fairness = [vcpulab.run(one)["host.fairness"].mean for one in (even, uneven)]
    assert fairness[0] == pytest.approx(1, abs=0.01)
    # Shares of 10/11 and 1/11: (1)^2 / (2 (100 + 1) / 121).
    assert fairness[1] == pytest.approx(121 / 202, abs=0.03)


def test_a_host_on_which_nothing_runs_is_neither_fair_nor_unfair() -> None:
    """It was not a number."""
    idle = vcpulab.Scenario.from_dict(
        {"name": "idle", "run": {"duration": "10ms"}, "host": {"pcpus": 1, "scheduler": "credit"}, "domain": {"a": {}}}
    )
    assert vcpulab.run(idle).get("host.fairness") is None


OVERCOMMITTED = """
[run]
duration = "300ms"
warmup = "100ms"
replications = 4
[host]
pcpus = 2
scheduler = "null"
[domain.dom0]
[domain.hog]
app = [{ kind = "hog" }]
[domain.clock]
app = [{ kind = "periodic", run = "1ms", period = "10ms" }]
"""


def test_what_no_longer_runs_regresses_and_does_not_vanish() -> None:
    null = vcpulab.Scenario.from_toml(OVERCOMMITTED)
    credit = null.change({"host.scheduler": "credit"})
    found = vcpulab.compare(credit, null, replications=4)
    for address in ("clock.wait_p99", "clock.response_p99"):
        one = found[address]
        assert (one.verdict, one.after, one.difference, one.percent) == ("regresses", None, None, None)
        assert one.row()["after_undefined"] == one.address.metric.undefined_is
        assert vcpulab.compare(found.after, found.before)[address].verdict == "improves"
    assert found.starved == [{"domain": "clock", "reason": "never ran", "since": "after"}]
    lines = found.in_words()
    assert lines[0] == "newly starved: clock (never ran)"
    assert "clock.response_p99 1.00 → undefined ms" in lines[1]
    assert vcpulab.compare(found.after, found.before).in_words()[0].startswith("no longer starved: clock (never ran)")
    assert vcpulab.compare(found.after, found.after).in_words()[0].startswith("starved as before: clock (never ran)")


def test_the_command_names_the_starved_first(command: Vcpulab, tmp_path: Path) -> None:
    Path(tmp_path, "null.toml").write_text(OVERCOMMITTED)
    assert "\n\nstarved: clock (never ran)\n\n" in command("run", "null.toml").stdout
    document = json.loads(command("run", "null.toml", "--format", "json").stdout)
    assert document["starved"] == [{"domain": "clock", "reason": "never ran"}]
    shown = command("whatif", "null.toml", "--set", "host.scheduler=credit").stdout
    assert "no longer starved: clock (never ran)" in shown
    assert shown.index("no longer starved") < shown.index("Differences")
    compared = command("whatif", "null.toml", "--set", "domain.hog.app.0.kind=hog", "--format", "json")
    assert json.loads(compared.stdout)["starved"] == [{"domain": "clock", "reason": "never ran", "since": "before"}]


def compared(
    address: str,
    before: float,
    after: float,
    half_width: float,
    verdict: Verdict = "unclear",
    *,
    begun: float | None = None,
) -> Comparison:
    difference = Interval(after - before, half_width, 10)
    sides = (Interval(before, 0.0, 10), Interval(after, half_width, 10))
    metric = find(WEB, address)
    described = judged_metric(metric, (), {} if begun is None else {metric.thing: begun})
    return Comparison(metric, JudgedComparison(described, *sides, difference, 0.4, verdict))


def test_a_large_uncertain_harm_is_told() -> None:
    failed = compared("httperf.failed", 0, 33, 38)
    assert failed.may_regress
    assert in_words([failed])[1] == "may regress: httperf.failed 0 → 33 ± 38 count"
    assert compared("httperf.response_p99", 10, 11, 2).may_regress
    assert not compared("httperf.response_p99", 10, 9, 4).may_regress, "it improves, if anything"
    assert not compared("httperf.response_p99", 10, 10.4, 2).may_regress, "the mean is hardly worse"
    assert not compared("httperf.response_p99", 10, 10.6, 1).may_regress, "it is not much worse at worst"
    assert not compared("web.waited", 0, 0.01, 0.02).may_regress, "a hundredth of a point"
    assert not compared("httperf.response_p99", 10, 14, 1, "regresses").may_regress, "it does"


def test_verdicts_are_told_by_what_they_mean_and_small_ones_counted() -> None:
    found = [
        compared("host.overhead", 5, 10, 0.1, "regresses"),
        compared("web.waited", 10, 20, 1, "regresses"),
        compared("httperf.response_p50", 10, 9, 0.1, "improves"),
        compared("httperf.response_p95", 10, 5, 0.1, "improves"),
        compared("httperf.throughput", 1000, 1004, 1, "improves"),
        compared("web.wait_p99", 1000, 1004, 10),
    ]
    assert in_words(found, ["newly starved: batch (never ran)"]) == [
        "newly starved: batch (never ran)",
        "web improves: httperf.response_p95 -50.0 %, httperf.response_p50 -10.0 %",
        "web regresses: web.waited +100 %",
        "host regresses: host.overhead +100 %",
        "of no consequence: 1 metric (less than 1 %)",
        "no significant difference: 1 metric (more replications may show one)",
    ]
    assert [row[0] for row in table_of_differences(found).rows][:3] == [
        "httperf.response_p95",
        "httperf.response_p50",
        "httperf.throughput",
    ]


def test_common_random_numbers_tell_apart_what_independent_runs_do_not() -> None:
    calm = WEB.change({"client.httperf.rate": 200})
    changed = calm.change({"domain.web.app.0.request_cpu": "500us"})
    before, same_seed, other_seed = vcpulab.run_many([calm, changed, changed.with_run(seed=7)])
    asked = [find(WEB, "web.gotten")]
    (near,), (far,) = compare(before, same_seed, asked), compare(before, other_seed, asked)
    assert near.verdict == "higher"
    assert near.difference is not None
    assert far.difference is not None
    assert near.difference.half_width is not None
    assert far.difference.half_width is not None
    assert 3 * near.difference.half_width < far.difference.half_width


def test_nothing_is_told_apart_too_often_where_nothing_differs() -> None:
    """At 5 % for all metrics together, three of ten comparisons of like with like would be too many."""
    runs = vcpulab.run_many([WEB.with_run(seed=seed) for seed in range(1, 12)])
    wrong = sum(any(one.verdict in ("improves", "regresses") for one in compare(runs[0], other)) for other in runs[1:])
    assert wrong <= 3


def test_every_p_value_is_corrected_for_the_number_of_metrics() -> None:
    """Metrics without a good direction kept their raw p values, and so the verdicts higher and lower."""
    before, after = vcpulab.run_many([WEB, WEB.change({"domain.web.app.0.request_cpu": "1ms"}).with_run(seed=7)])
    found = compare(before, after)
    question = seen_by_clients(before)
    assert {one.thing for one in question} == {"httperf"}
    families = {(c.address in question, c.address.better is not None) for c in found}
    assert len(families) == 3
    for which in families:
        family = [
            c for c in found if (c.address in question, c.address.better is not None) == which and c.p is not None
        ]
        raw = []
        for one in family:
            (alone,) = compare(before, after, [one.address])
            assert alone.p is not None
            raw.append(alone.p)
        assert len(family) > 1
        assert [one.p for one in family] == holm(raw)
        assert all((one.verdict == "unclear") == (one.p > 0.05) for one in family if one.verdict != "same" and one.p)


def test_the_question_is_not_corrected_for_what_nobody_asked() -> None:
    before, after = vcpulab.run_many([WEB, WEB.change({"domain.web.app.0.request_cpu": "1ms"}).with_run(seed=7)])
    asked = find(WEB, "web.waited")
    (alone,) = compare(before, after, [asked])
    among_all = {one.address: one.p for one in compare(before, after, first=[asked])}
    assert among_all[asked] == alone.p
    twice = {one.address: one.p for one in compare(before, after, first=[asked], looks=2)}
    assert twice[asked] == pytest.approx(min(1.0, 2 * (alone.p or 0)))


# A few long jobs beside a machine that computes: how late they are is a matter of chance.
RARE = """
[run]
duration = "400ms"
warmup = "50ms"
[host]
pcpus = 1
scheduler = "credit"
[domain.dom0]
driver_domain = true
[domain.rare]
nic = { driver_domain = "dom0" }
app = [{ kind = "web-server", request_cpu = "8ms" }]
[domain.batch]
app = [{ kind = "hog" }]
[client.http]
kind = "open-loop"
server = "rare"
rate = 25
"""


def test_a_large_uncertain_harm_is_decided_by_more_replications() -> None:
    rare = vcpulab.Scenario.from_toml(RARE)
    found = vcpulab.whatif(rare, {"rare.weight": 128})
    assert found.added is not None
    assert found.added.first == 10
    assert found.added.last == found.before.scenario.replications in (20, 40)
    assert found.added.first_doubts
    assert all(one.may_regress and one.address.metric.judged for one in found.added.first_doubts)
    (line,) = found.added.lines()
    assert line.startswith(f"replications: 10 → {found.added.last}, for a large harm was uncertain (")
    assert line in found.in_words()
    vague = vcpulab.whatif(rare, {"rare.weight": 128}, precision=1.0, seconds=60)
    assert vague.added is not None
    assert vague.added.last <= found.added.last
    hurried = vcpulab.whatif(rare, {"rare.weight": 128}, seconds=1e-9)
    assert hurried.added is not None
    assert (hurried.added.last, hurried.added.lines()) == (10, [])


def test_who_states_replications_gets_that_many() -> None:
    found = vcpulab.whatif(vcpulab.Scenario.from_toml(RARE), {"rare.weight": 128}, replications=3)
    assert found.before.scenario.replications == 3
    with pytest.raises(RequestError, match=r"has no effect where the number of replications is given"):
        vcpulab.whatif(found.before.scenario, {"rare.weight": 128}, replications=3, precision=0.1)


def test_few_failures_of_many_are_of_no_consequence() -> None:
    failed = compared("httperf.failed", 1, 3, 4)
    assert failed.may_regress
    assert compared("httperf.failed", 1, 3, 4, begun=100.0).may_regress
    assert not compared("httperf.failed", 1, 3, 4, begun=1000.0).may_regress


def test_settings_stand_for_paths() -> None:
    assert apply(WEB, ["httperf.rate=5"]).changes == {"client.httperf.rate": 5}
    assert apply(WEB, ["web.rate=5"]).changes == {"client.httperf.rate": 5}
    assert apply(WEB, ["web.weight="]).changes == {}, "it has its default already"
    assert apply(WEB, ["host.scheduler=credit2"]).left_out == ["host.generation"]


def test_the_release_of_a_host_stays_if_it_has_the_new_scheduler() -> None:
    old = WEB.change({"host.generation": "xen4.4.1"})
    assert old.change({"host.scheduler": "credit2"}).to_dict()["host"]["generation"] == "xen4.4.1"
    assert apply(old, ["host.scheduler=rtds"]).left_out == ["host.generation"]


def test_a_reboot_decides_anew_when_kernels_tick() -> None:
    ticks = {"domain.web.idle_tick": "4ms", "domain.web.idle_tick_cpu": "20us", "domain.web.idle_tick_at": "1ms"}
    recorded = WEB.change(ticks)
    rebooted = apply(recorded, ["host.scheduler=rtds"])
    assert "domain.web.idle_tick_at" in rebooted.left_out
    assert "idle_tick_at" not in rebooted.scenario.written()["domain"]["web"]
    for words in (["host.scheduler=credit"], ["web.weight=512"]):
        assert "idle_tick_at" in apply(recorded, words).scenario.written()["domain"]["web"], "no reboot"
    chosen = apply(recorded, ["host.scheduler=rtds", "web.idle_tick_at=3ms"])
    assert chosen.scenario.to_dict()["domain"]["web"]["idle_tick_at"] == "3ms"


def test_patterns_of_names_stand_for_every_name_that_matches() -> None:
    assert apply(WEB, ["*.weight=128"]).changes == dict.fromkeys(("domain.dom0.weight", "domain.web.weight"), 128)
    assert apply(WEB, ["w*.rate=5"]).changes == {"client.httperf.rate": 5}
    assert apply(WEB, ["client.http*.rate=5"]).changes == {"client.httperf.rate": 5}
    later = apply(WEB, ["*.weight=128", "web.weight=512"]).changes
    assert later == {"domain.dom0.weight": 128, "domain.web.weight": 512}
    found = vcpulab.whatif(WEB.change({"run.duration": "100ms"}), {"d*.weight": 77}, replications=2)
    assert found.changed.changes == {"domain.dom0.weight": 77}


def test_what_is_set_of_the_runs_is_set_on_both_sides() -> None:
    found = vcpulab.whatif(WEB, {"run.duration": "50ms", "dom0.weight": 77}, replications=2)
    assert {run.scenario.duration_ns for run in (found.before, found.after)} == {50_000_000}
    with pytest.raises(RequestError, match=r"`run.duration` is set on both sides, and nothing else is"):
        vcpulab.whatif(WEB, ["run.duration=50ms"], replications=2)


def test_pcpus_need_no_quotes() -> None:
    assert apply(WEB, ["web.affinity=0"]).changes == {"domain.web.affinity": "0"}
    assert apply(WEB, ["web.affinity=[0]"]).changes == {"domain.web.affinity": ["0"]}
