"""`vcpulab explain`: where the time goes, what holds it back, how to fix it."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import tomli_w

import vcpulab
from support import Vcpulab, examples_of
from vcpulab.advice.attempts import attempts
from vcpulab.advice.explanation import Explanation
from vcpulab.advice.lint.host import Host
from vcpulab.advice.lint.lint import as_data
from vcpulab.results.addresses import slos
from vcpulab.show import html
from vcpulab.show.document import on_page
from vcpulab.show.request_path import timeline
from vcpulab.show.terminal import rendered

SHOP = """
name = "a shop beside render jobs"
[run]
duration = "1s"
warmup = "200ms"
[host]
profile = "generic"
pcpus = 2
scheduler = "credit"
[domain.dom0]
driver_domain = true
weight = 1024
[domain.shop]
nic.driver_domain = "dom0"
app = [{ kind = "web-server", request_cpu = "2ms" }]
[domain.render]
vcpus = 2
app = [{ kind = "hog", instance = 2 }]
[domain.index]
vcpus = 2
app = [{ kind = "hog", instance = 2 }]
[client.customers]
kind = "open-loop"
server = "shop"
rate = 350
"""


@pytest.fixture(scope="module")
def shop() -> Explanation:
    return vcpulab.explain(vcpulab.Scenario.from_toml(SHOP), replications=4)


def test_the_parts_of_the_time_add_up(shop: Explanation) -> None:
    (one,) = shop.explained
    assert one.address == "customers.response_p99"
    server = [part for part in one.parts if part.depth < 2][:3]
    assert [part.name for part in server] == ["vCPU 0 of shop, not blocked", "computes", "waits for a pCPU"]
    whole, computes, waits = (part.percent.mean for part in server)
    assert computes + waits == pytest.approx(whole)
    behind = [part for part in one.parts if part.depth == 2][:2]
    assert {part.name for part in behind} == {"behind render", "behind index"}
    assert sum(part.percent.mean for part in behind) == pytest.approx(waits, rel=0.05)


def test_the_cause_and_its_mend_are_named(shop: Explanation) -> None:
    assert [one.finding.path for one in shop.advice] == ["domain.shop.weight"]
    (improved,) = (c for c in shop.advice[0].effect or () if c.address.name == "customers.response_p99")
    assert improved.verdict == "improves"
    assert "behind" in str(shop)
    assert shop.to_frame().columns == ["metric", "depth", "name", "percent", "half_width"]


def test_the_page_names_the_mend_with_its_effect(shop: Explanation, tmp_path: Path) -> None:
    """It had the causes alone, and no levels in the table of where the time goes."""
    html.write(tmp_path / "page.html", "Why?", on_page(shop.document()))
    page = (tmp_path / "page.html").read_text()
    words = page[: page.index('<script type="module">')]
    assert "with domain.shop.weight = " in words
    assert "(improves)" in words
    assert "xl sched-credit -d shop -w " in words
    assert '<th scope="row">    behind render</th>' in words
    assert "tbody th { font-weight: 400; white-space: pre; }" in words


def test_a_timeline_in_a_narrow_terminal_keeps_from_and_for_together(shop: Explanation) -> None:
    (one,) = shop.explained
    for width in (60, 80, 120):
        assert len(list(rendered(timeline(one.paths[0]), width))) == 1


def test_an_slo_that_is_met_needs_no_mend() -> None:
    idle = vcpulab.Scenario.from_toml(SHOP.replace("rate = 350", "rate = 20"))
    assert vcpulab.explain(idle, replications=2).explained == ()
    found = vcpulab.explain(idle, "shop.response_p99 < 10s", replications=2)
    assert found.explained[0].met
    assert found.advice == ()


def test_an_slo_that_nothing_keeps_says_what_the_service_would_have_alone() -> None:
    """The render jobs are why it is slow; that a request takes 2 ms is why it cannot be so quick."""
    scenario = vcpulab.Scenario.from_toml(SHOP)
    found = vcpulab.explain(scenario, "cust*.response_p99 < 2.1ms", replications=2)
    said = found.outlook()
    assert re.fullmatch(
        r"Not found: none of the \d+ settings tried \(weight of shop .*\) keeps customers.response_p99 < 2.1ms; "
        "vcpulab tune searches further",
        said[0],
    )
    assert said[1].startswith("nearest: domain.shop.weight = ")
    assert said[2].startswith("Even alone on the host, without the 2 other domains, customers.response_p99 is ")
    assert found.alone is not None
    assert not found.missed[0].holds(found.alone.value)
    assert [slo.bound for slo in found.missed] == [2.1]
    kept = vcpulab.explain(scenario, "cust*.response_p99 < 60ms", replications=2)
    assert (kept.explained[0].met, kept.outlook(), kept.advice[0].misses) == (False, [], [])


def test_a_mend_that_harms_or_does_nothing_is_not_recommended(shop: Explanation) -> None:
    good = shop.advice[0]
    for bad in (replace(good, starves={"index": "never ran"}), replace(good, effect=[])):
        (row,) = as_data([bad])
        assert (row["commands"], bool(row["not_recommended"])) == ([], True)
    (row,) = as_data([good])
    assert (bool(row["commands"]), row["not_recommended"]) == (True, None)


def test_who_never_runs_has_no_value() -> None:
    null = SHOP.replace('"credit"', '"null"').replace("weight = 1024", "vcpus = 2")
    found = vcpulab.explain(vcpulab.Scenario.from_toml(null), "customers.response_p99", replications=2).as_data()
    explained = found["explained"]
    assert isinstance(explained, list)
    assert (explained[0]["mean"], explained[0]["undefined"]) == (None, "nothing was answered")


def test_explain_on_the_command_line(command: Vcpulab, tmp_path: Path) -> None:
    (tmp_path / "shop.toml").write_text(SHOP)
    told = command("explain", "shop.toml", "--replications", "2")
    assert told.returncode == 0, told.stderr
    assert told.stdout.startswith("customers.response_p99: ")
    assert "waits-behind-equals" in told.stdout
    assert len(told.stdout.splitlines()) <= 40
    assert told.stdout.endswith("requests from begin to answer: --all\n")
    whole = command("explain", "shop.toml", "--replications", "2", "--all")
    assert "Requests of customers" in whole.stdout
    data = json.loads(command("explain", "shop.toml", "--replications", "2", "--format", "json").stdout)
    assert [one["rule"] for one in data["findings"]] == ["waits-behind-equals"]
    clean = command("explain", "hogs.toml", "--replications", "2")
    assert "nobody is late" in clean.stdout
    wrong = command("explain", "shop.toml", "--slo", "shpo.response_p99 < 5ms")
    assert wrong.returncode == 2
    assert "shpo" in wrong.stderr
    assert "Traceback" not in wrong.stderr


def test_examples_of_the_help_work(command: Vcpulab) -> None:
    assert command("init", "web.toml").returncode == 0
    for example in examples_of(command, "explain"):
        assert command(*example).returncode == 0, example


def test_what_is_wrong_with_a_pool_is_wrong_with_those_in_it() -> None:
    """The fix changes budgets of other domains, and none of the domains that serve the client in question."""
    document = {
        "name": "overbooked",
        "run": {"duration": "500ms", "replications": 2},
        "host": {"profile": "generic", "pcpus": 1, "scheduler": "rtds"},
        "domain": {
            "axis": {
                "app": [{"kind": "periodic", "run": "4ms", "period": "10ms"}],
                "budget_us": 5000,
                "period_us": 10000,
            },
            "plan": {"app": [{"kind": "hog"}], "budget_us": 8000, "period_us": 9000},
        },
    }
    scenario = vcpulab.Scenario.from_toml(tomli_w.dumps(document))
    found = vcpulab.explain(scenario, "axis.failed < 1", replications=2)
    assert [one.finding.rule for one in found.advice] == ["overbooked-reservations"]
    assert found.advice[0].helps


def test_a_tried_setting_keeps_an_slo_only_by_all_its_replications(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two replications of a setting look good; the sentence says what all of them show."""
    scenario = vcpulab.Scenario.from_toml(SHOP)
    limit = "customers.response_p99 < 1000ms"
    host = Host(scenario, vcpulab.run(scenario))
    limits = slos(scenario, [limit])
    (kept,) = attempts(host, limits, limits, []).advice
    assert kept.finding.reason.endswith(", this keeps customers.response_p99 < 1000ms")
    monkeypatch.setattr("vcpulab.advice.attempts._beyond", lambda _run, _missed: 0.0)
    limits = slos(scenario, ["customers.response_p99 < 0.01ms"])
    for fix in attempts(host, limits, limits, []).advice:
        assert fix.finding.reason.endswith(", this comes nearest to customers.response_p99 < 0.01ms")
        assert fix.misses
