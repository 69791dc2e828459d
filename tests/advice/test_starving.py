"""Who starves: in one run, and from one run to another."""

import json
from pathlib import Path

import vcpulab
from vcpulab import Effort
from vcpulab.advice.capacity.words import sentences
from vcpulab.advice.lint.lint import lint
from vcpulab.advice.starvation import in_a_line, newly_starved, starved
from vcpulab.advice.tuning import goals
from vcpulab.advice.tuning.confirming import confirm
from vcpulab.advice.tuning.parameters import space
from vcpulab.advice.tuning.search import Search

SHORT = {"run.duration": "1s", "run.warmup": "100ms", "run.replications": 2}


def scenario(text: str) -> vcpulab.Scenario:
    return vcpulab.Scenario.from_toml(text).change(SHORT)


def hogs(scheduler: str, weights: dict[str, int], pcpus: int = 1) -> vcpulab.Scenario:
    tables = "".join(
        f'[domain.{name}]\n{f"weight = {weight}" if weight else ""}\napp = [{{ kind = "hog" }}]\n'
        for name, weight in weights.items()
    )
    return scenario(f'[host]\npcpus = {pcpus}\nscheduler = "{scheduler}"\n[domain.dom0]\n{tables}')


def test_a_domain_without_a_pcpu_under_null_never_ran() -> None:
    run = vcpulab.run(hogs("null", {"a": 0, "b": 0}, pcpus=2))
    assert starved(run) == {"b": "never ran"}
    assert in_a_line(starved(run)) == "starved: b (never ran)"


def test_one_vcpu_of_several_is_named() -> None:
    run = vcpulab.run(
        hogs("null", {"a": 0}, pcpus=2).change({"domain.a.vcpus": 2, "domain.a.app": [{"kind": "hog"}] * 2})
    )
    assert starved(run) == {"a": "vCPU 1 never ran"}


def test_hogs_that_share_a_pcpu_by_weight_do_not_starve() -> None:
    assert starved(vcpulab.run(hogs("credit2", {"small": 16, **{f"big{i}": 512 for i in range(12)}}))) == {}


def test_a_cap_starves_nobody_in_one_run_and_somebody_against_another() -> None:
    now = hogs("credit", {"a": 256, "b": 256}, pcpus=3)
    capped = now.change({"domain.a.cap": 4})
    before, after = vcpulab.run_many([now, capped])
    assert starved(after) == {}
    assert list(newly_starved(before, after)) == ["a"]
    assert newly_starved(after, before) == {}


def test_less_to_do_is_no_starvation() -> None:
    now = vcpulab.Scenario.starter().change(SHORT)
    before, after = vcpulab.run_many([now, now.change({"client.http.rate": 10})])
    assert newly_starved(before, after) == {}


SERVED = """
[host]
pcpus = 3
scheduler = "null"
[domain.dom0]
driver_domain = true
[domain.web]
nic.driver_domain = "dom0"
app = [{ kind = "web-server" }]
[domain.extra]
app = [{ kind = "hog" }]
[client.http]
kind = "open-loop"
server = "web"
rate = 100
"""


def test_lint_and_capacity_name_the_starved_first(tmp_path: Path) -> None:
    served = scenario(SERVED.replace("pcpus = 3", "pcpus = 2"))
    file = tmp_path / "null.toml"
    file.write_text(served.to_toml())
    first = lint(file, effort=Effort(replications=2))[1][0].finding
    assert (first.rule, first.path) == ("starved", "domain.extra")
    assert first.reason == "wants to run, but never ran"
    found = vcpulab.capacity(served, "http.rate", lowest=100, highest=200)
    assert sentences(found)[0] == f"starved at client.http.rate = {found.result.value:g}: extra (never ran)"
    assert json.loads(json.dumps(found.as_data()))["points"][0]["starved"] == [
        {"domain": "extra", "reason": "never ran"}
    ]


def test_place_names_whom_it_starves() -> None:
    placed = vcpulab.place(scenario(SERVED.replace("pcpus = 3", "pcpus = 2")))
    starving = [host.starved for host in placed.hosts if host.starved]
    assert starving == [{"extra": "never ran"}]


def test_a_setting_that_starves_somebody_is_not_better() -> None:
    now = scenario(SERVED).change({"host.scheduler": "credit", "host.pcpus": 1})
    asked = goals.goals(now, ["http.throughput"], ["http.response_p99"])
    search = Search(space(now, ["domain.extra.cap=2,0"]), asked, [], seed=1, replications=2)
    found = search.run(trials=2)
    assert found.best is search.present
    confirmed = confirm(search, found.candidates[1])
    assert list(confirmed.starved) == ["extra"]
    assert confirmed.verdict == "not better"


def test_lint_tells_of_a_mend_what_it_makes_of_nothing(tmp_path: Path) -> None:
    """Rates that were 0 and response times that were undefined have no percentage, and were left out."""
    file = tmp_path / "null.toml"
    file.write_text(scenario(SERVED).change({"domain.dom0.vcpus": 3}).to_toml())
    told = [one for advice in lint(file, effort=Effort(replications=2))[1] for one in advice.main_effects()]
    assert ("http.response_p50", "improves", None) in [(one.address.name, one.verdict, one.percent) for one in told]


def test_what_is_undefined_is_as_bad_as_can_be_for_a_goal() -> None:
    now = scenario(SERVED)
    (goal,) = goals.goals(now, [], ["web.wait_p99"])
    name = goal.addresses[0].name
    worst, late = ({name: value} for value in (None, 1e6))
    assert goal.gain(worst, {name: 5.0}) == -goal.gain({name: 5.0}, worst) < goal.gain(late, {name: 5.0}) < 0
    assert goal.gain({name: None}, {name: None}) == 0
