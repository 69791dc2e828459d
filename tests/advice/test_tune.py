"""`vcpulab tune`: what it searches, that it finds what was planted, and that it can be killed."""

import itertools
import json
import math
import random
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

import vcpulab
import vcpulab.scenario.settings
from support import HANG_S, ROOT, VCPULAB, Vcpulab, opened
from vcpulab.advice.capacity import bottleneck, stations
from vcpulab.advice.tuning import Parameter, Search, SearchResult, confirm, confirming, goal, space
from vcpulab.advice.tuning.goals import default_goals
from vcpulab.advice.tuning.leads import leads
from vcpulab.advice.tuning.prices import PRICES, price, stated
from vcpulab.advice.tuning.search import PATIENCE
from vcpulab.advice.tuning.sensitivity import guesses
from vcpulab.advice.tuning.widening import widened
from vcpulab.cli.main import main
from vcpulab.errors import RequestError
from vcpulab.results.addresses import find, slo
from vcpulab.results.stream import Stream

pytestmark = pytest.mark.slow

# A server, and a batch machine in its way: a small cap on that one is what a quick server wants.
PLANTED = """\
name = "planted"
[run]
duration = "1s"
warmup = "100ms"
[host]
profile = "generic"
pcpus = 1
scheduler = "credit"
[domain.dom0]
driver_domain = true
[domain.web]
nic = { driver_domain = "dom0" }
app = [{ kind = "web-server", request_cpu = "1ms" }]
[domain.batch]
app = [{ kind = "hog" }]
[client.http]
kind = "open-loop"
server = "web"
rate = 1200
"""
CAPS = "domain.batch.cap=0,10,20,30,40,50,60,70,80,90"


@pytest.fixture
def planted() -> vcpulab.Scenario:
    return vcpulab.Scenario.from_toml(PLANTED)


@pytest.fixture
def tune(command: Vcpulab, tmp_path: Path) -> Vcpulab:
    (tmp_path / "planted.toml").write_text(PLANTED)

    def run(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        return command("tune", *arguments, **environment)

    return run


def search(
    scenario: vcpulab.Scenario, *parameters: str, trials: int = 12, **options: Any
) -> tuple[Search, SearchResult]:
    goals = [goal(scenario, "web.throughput", higher=True)]
    made = Search(space(scenario, parameters), goals, **{"replications": 6, **options})
    return made, made.run(trials=trials)


def shown(found: SearchResult) -> list[object]:
    return [(c.number, dict(c.changes), c.rows, c.dropped) for c in found.candidates] + [dict(found.best.changes)]


# ---- the parameters that may be changed ----


def names(scenario: vcpulab.Scenario, *by_hand: str, only: tuple[str, ...] = ()) -> list[str]:
    return [parameter.key for parameter in space(scenario, by_hand, only).parameters]


def test_schedulers_are_those_of_the_release(planted: vcpulab.Scenario) -> None:
    old = planted.change({"host.generation": "xen3.0.3"})
    assert space(planted).schedulers == ["credit", "credit2", "rtds"]
    assert space(old).schedulers == ["bvt", "credit", "sedf"]
    assert space(planted, ["host.scheduler=credit2,round-robin"]).schedulers == ["credit", "credit2", "round-robin"]


def test_unasked_no_guest_keeps_its_weight(planted: vcpulab.Scenario) -> None:
    """The first guest's was held once, which may be the one complained of."""
    weights = [name for name in names(planted) if name.endswith("weight (credit)")]
    assert weights == [f"domain.{name}.weight (credit)" for name in ("dom0", "web", "batch")]
    assert "domain.web.weight (credit)" in names(planted, only=("domain.*.weight",))
    assert names(planted, only=("w*.weight",)) == names(planted, only=("web.weight",))


def test_ranges_are_round_and_hold_the_present_value(planted: vcpulab.Scenario) -> None:
    (parameter,) = space(planted.change({"domain.web.weight": 300}), ["web.weight=10..5000"]).parameters
    labels = [option.label for option in parameter.options]
    assert (labels[0], labels[-1], parameter.options[parameter.now].value) == ("10", "5000", 300)
    assert all(len(label.rstrip("0")) <= 2 for label in labels[1:-1])
    (parameter,) = space(planted, ["host.tslice_ms=5..8"]).parameters
    assert [option.value for option in parameter.options] == [5, 6, 7, 8, 30]


def test_every_setting_of_every_shipped_scenario_is_valid() -> None:
    for file in sorted((ROOT / "scenarios").glob("*.toml")):
        scenario = vcpulab.Scenario.load(file)
        found = space(scenario)
        chance = random.Random(7)
        assert found.changes(found.present) == {}
        for _ in range(30):
            vcpulab.scenario.settings.change(scenario, found.changes(found.picks(partial(at_random, chance))))


def at_random(chance: random.Random, parameter: Parameter) -> int:
    return chance.randrange(len(parameter.options))


def test_a_reservation_changes_no_more_than_it_must(planted: vcpulab.Scenario) -> None:
    """Extra time came along with each greater slice, and the period was set to what it was."""
    reserved = {"domain.web.period": 20_000_000, "domain.web.slice": 4_000_000, "domain.web.extratime": 0}
    old = planted.change({"host.generation": "xen3.0.3", "host.scheduler": "sedf"}).change(reserved)
    found = space(old, only=["web.reservation", "batch.reservation"])
    (mine, other) = found.parameters
    assert found.changes({**found.present, mine.key: mine.now + 1}) == {"domain.web.slice": 6_000_000}
    fresh = found.changes({**found.present, other.key: other.now + 1})
    assert fresh["domain.batch.extratime"] == 1


def test_reservations_fit(planted: vcpulab.Scenario) -> None:
    found = space(planted.change({"host.generation": "xen3.0.3", "host.scheduler": "sedf"}))
    most = found.changes(
        found.picks(lambda parameter: len(parameter.options) - 1 if "reservation" in parameter.name else parameter.now)
    )
    shares = [
        most[f"domain.{name}.slice"] / most[f"domain.{name}.period"]
        for name in ("dom0", "web", "batch")
        if f"domain.{name}.slice" in most
    ]
    assert shares == [0.9, 0.1]


def test_a_rate_limit_is_no_longer_than_the_slice(planted: vcpulab.Scenario) -> None:
    found = space(planted, ["host.tslice_ms=1,30", "host.ratelimit_us=1000,10000"])
    longest = found.changes(found.picks(lambda parameter: 0 if parameter.name == "host.tslice_ms" else 1))
    assert longest == {"host.tslice_ms": 1, "host.ratelimit_us": 1000}


def test_driver_domains_can_have_pcpus_of_their_own(planted: vcpulab.Scenario) -> None:
    found = space(planted.change({"host.pcpus": 4}), only=["dom0.vcpus", "dom0.pinning"])
    changes = found.changes({"domain.dom0.vcpus": 1, "domain.dom0.pinning": 2})
    affinities = {f"domain.{name}.affinity": "2-3" for name in ("web", "batch")}
    assert changes == {"domain.dom0.vcpus": 2, "domain.dom0.affinity": "0-1", **affinities}
    assert "domain.dom0.affinity" not in found.changes({"domain.dom0.vcpus": 3, "domain.dom0.pinning": 2})


# ---- the search ----


def test_it_finds_what_was_planted_and_saves_runs(planted: vcpulab.Scenario) -> None:
    _, quick = search(planted, CAPS)
    _, thorough = search(planted, CAPS, drop=False)
    assert quick.exhausted
    assert thorough.runs == thorough.runs_full == 60
    assert quick.runs < 0.8 * thorough.runs
    assert quick.best.changes == thorough.best.changes == {"domain.batch.cap": 10}
    assert quick.standings[quick.best.number].score > 0.2


def test_an_slo_is_kept(planted: vcpulab.Scenario) -> None:
    kept = slo(planted, "batch.throughput > 200")
    _, found = search(planted, CAPS, slos=[kept])
    assert found.best.changes["domain.batch.cap"] > 10
    assert kept.holds(mean(row["batch.throughput"] or 0.0 for row in found.best.rows))
    assert any(candidate.dropped and "batch.throughput" in candidate.dropped for candidate in found.candidates)


def test_the_same_search_finds_the_same(planted: vcpulab.Scenario) -> None:
    parameters = ["host.scheduler=credit,credit2", "domain.dom0.weight=64..4096", "domain.batch.weight=16..4096"]
    first, second = (search(planted, *parameters, trials=20, jobs=jobs)[1] for jobs in (1, 2))
    assert len(first.candidates) == 20
    assert shown(first) == shown(second)
    other = search(planted, *parameters, trials=20, seed=2)[1]
    assert shown(other) != shown(first)


def test_what_was_begun_for_the_dropped_is_called_off(
    planted: vcpulab.Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, taken, called_off = list[object](), list[object](), list[object]()

    class Watched(Stream[tuple[int, int]]):
        def begin(self, name: tuple[int, int], scenario: vcpulab.Scenario) -> None:
            begun.append(name)
            super().begin(name, scenario)

        def take(self, name: tuple[int, int], progress: Callable[[float], bool | None] | None = None) -> vcpulab.Run:
            taken.append(name)
            return super().take(name, progress)

        def call_off(self, names: Iterable[tuple[int, int]]) -> None:
            there = [name for name in names if name in self]
            called_off.extend(there)
            super().call_off(there)

    monkeypatch.setattr("vcpulab.advice.tuning.trials.Stream", Watched)
    _, found = search(planted, CAPS, jobs=3)
    dropped = {one.number: len(one.rows) for one in found.candidates if one.dropped}
    ahead = set(begun) - set(taken)
    assert ahead, "replications of the dropped ran already"
    assert ahead == set(called_off) <= set(dropped.items()), "each was the next one of a dropped setting"


def test_the_present_setting_comes_first_and_can_be_the_best() -> None:
    hogs = {"weight": 256, "app": [{"kind": "hog"}]}
    document = {
        "run": {"duration": "300ms"},
        "host": {"profile": "exact", "pcpus": 1, "scheduler": "credit"},
        "domain": {"a": hogs, "b": hogs},
    }
    scenario = vcpulab.Scenario.from_dict(document)
    made = Search(space(scenario, ["domain.b.weight=64,512,4096"]), [goal(scenario, "host.fairness", higher=True)])
    found = made.run(trials=10)
    assert found.candidates[0].changes == {}
    assert found.best is made.present


def test_what_does_not_matter_is_turned_back(planted: vcpulab.Scenario) -> None:
    # The batch machine has no network interface, and the seed is the search's own.
    _, found = search(planted, CAPS, "seed=1,2", trials=20)
    assert found.best.changes == {"domain.batch.cap": 10}


def test_services_are_judged_by_those_who_ask(planted: vcpulab.Scenario) -> None:
    throughput, response, fairness, waited = default_goals(planted)
    assert [address.name for address in throughput.addresses] == ["http.throughput", "batch.throughput"]
    assert (fairness.name, waited.name) == ("host.fairness", "dom0.waited")
    old = {"http.response_p99": 20.0, "batch.response_p99": None}
    assert response.gain({**old, "http.response_p99": 10.0}, old) == pytest.approx(math.log(2) / 2)


# ---- the command ----


def test_the_answer_can_be_set_and_written(tune: Vcpulab, tmp_path: Path) -> None:
    result = tune("planted.toml", "--vary", CAPS, "--maximise", "web.throughput", "--trials", "12", "--write", "t.toml")
    assert result.returncode == 0, result.stderr
    assert "The setting found is better than the present one." in result.stdout
    first, *lines = result.stdout.splitlines()
    assert re.match(r"planted: throughput of http \d+ → \d+ 1/s \(\+.* %\) by cap of batch 0 → 10; batch -", first)
    assert ":\nxl sched-credit -d batch -c 10\n# to keep it after a restart\n" in "\n".join(lines[:8])
    written = vcpulab.Scenario.load(tmp_path / "t.toml")
    assert written == vcpulab.Scenario.from_toml(PLANTED).change({"domain.batch.cap": 10})


def test_nothing_beats_a_good_setting(tune: Vcpulab) -> None:
    result = tune("hogs.toml", "--vary", "domain.a.weight=256,512", "--minimise", "a.waited", "--slo", "a.waited > 60")
    assert result.returncode == 0, result.stderr
    assert "Nothing that was tried beats the present setting." in result.stdout
    assert "To set it" not in result.stdout


def test_the_nearest_to_an_slo_that_nobody_keeps(tune: Vcpulab, tmp_path: Path) -> None:
    slos = ["--slo", "web.throughput > 5000", "--slo", "batch.throughput >= 0"]
    result = tune("planted.toml", "--vary", CAPS, *slos, "--trials", "12", "--write", "t.toml")
    assert result.returncode == 1, result.stderr
    said = " ".join(result.stdout.split())
    assert "http.throughput > 5000 1/s cannot be kept: even alone on the host, without the other domain," in said
    assert re.search(r"; the nearest, cap of batch .*, comes to http.throughput \d+ 1/s\.", said)
    assert not (tmp_path / "t.toml").exists()


def test_an_slo_that_only_the_winner_keeps(tune: Vcpulab) -> None:
    arguments = ["--vary", CAPS, "--slo", "batch.throughput < 250", "--trials", "12", "--format", "json"]
    answer = json.loads(tune("planted.toml", *arguments).stdout)
    assert answer["verdict"].startswith("The setting found keeps the SLOs")
    assert answer["kept"][0]["sure"]
    assert answer["commands"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing.toml"], "missing.toml: no such file"),
        (["planted.toml", "--trials", "1"], "--trials: found `1`; allowed: an integer from 2"),
        (["planted.toml", "--budget", "soon"], "--budget: found `soon`; allowed: a time such as 90s"),
        (["planted.toml", "--budget", "0s"], "--budget: found `0s`"),
        (["planted.toml", "--replications", "1"], "--replications: found `1`"),
        (["planted.toml", "--seed", "-1"], "--seed: found `-1`"),
        (["planted.toml", "--jobs", "-1"], "--jobs: found `-1`"),
        (["planted.toml", "--maximise", "web.speed"], "`web` has no metric `speed`"),
        (["planted.toml", "--minimise", "nobody.waited"], "there is no `nobody`"),
        (["planted.toml", "--maximise", "web.gotten", "--minimise", "web.gotten"], "`web.gotten` is named twice"),
        (["planted.toml", "--slo", "web.response_p99"], "allowed: METRIC < VALUE"),
        (["planted.toml", "--slo", "web.waited < 5%", "--slo", "web.waited > 6%"], "contradict each other"),
        (["planted.toml", "--vary", "web.weight"], "allowed: PATH=LOW..HIGH"),
        (["planted.toml", "--vary", "web.weight=9..1"], "two numbers of which the second is greater"),
        (["planted.toml", "--vary", "web.weight=a..b"], "two numbers of which the second is greater"),
        (["planted.toml", "--vary", "web.weight=0..inf"], "two numbers of which the second is greater"),
        (["planted.toml", "--vary", "web.weight=1,,2"], "a value between each two commas"),
        (["planted.toml", "--vary", "web.wieght=1,2"], "did you mean `weight`?"),
        (["planted.toml", "--vary", "web.weight=1,99999"], "99999"),
        (["planted.toml", "--vary", "wbe.weight=1,2"], "there is no `wbe`"),
        (["planted.toml", "--vary", "web.weight=256"], "nothing is free to be tuned"),
        (["planted.toml", "--vary", "web.weight=1,2", "--vary", "domain.web.weight=3,4"], "is stated twice"),
        (["planted.toml", "--vary", "host.scheduler=cfs"], 'found `"cfs"`; allowed: one of arinc653, atropos'),
        (["planted.toml", "--vary", "host.scheduler=arinc653"], "needs a timetable"),
        (["planted.toml", "--only", "web.wieght"], "--only: found `web.wieght`; allowed: "),
        (["planted.toml", "--out", "."], "holds other files than a search's"),
        (["planted.toml", "--out", "planted.toml"], "it would replace what is read"),
    ],
)
def test_wrong_input_is_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("planted.toml").write_text(PLANTED)
    assert main(["tune", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_another_search_is_not_taken_for_this_one(planted: vcpulab.Scenario, tmp_path: Path) -> None:
    goals = default_goals(planted)
    caps = space(planted, [CAPS])
    Search(caps, goals, folder=tmp_path)
    Search(caps, goals, folder=tmp_path)
    others = {
        "of another seed": Search(caps, goals, seed=5),
        "of other SLOs": Search(caps, goals, [slo(planted, "web.waited < 50%")]),
        "of other goals": Search(caps, goals[:1]),
        "of other parameters": Search(space(planted, ["domain.batch.cap=0,10"]), goals),
        "of another scenario": Search(space(planted.change({"client.http.rate": 1000}), [CAPS]), goals),
    }
    for said, other in others.items():
        with pytest.raises(RequestError, match=said):
            other.keep(tmp_path)
    mark = tmp_path / "tune.json"
    mark.write_text(json.dumps({**json.loads(mark.read_text()), "version": "0"}))
    with pytest.raises(RequestError, match="made by another version"):
        Search(caps, goals, folder=tmp_path)
    mark.write_text("{")
    with pytest.raises(RequestError, match="cannot be used"):
        Search(caps, goals, folder=tmp_path)


def test_killed_at_any_moment_it_goes_on_as_if_nothing_had_happened(tune: Vcpulab, tmp_path: Path) -> None:
    parameters = ["--vary", "domain.dom0.weight=64..4096", "--vary", "domain.batch.weight=16..4096"]
    arguments = ["planted.toml", *parameters, "--trials", "40", "--maximise", "web.throughput", "--format", "json"]
    undisturbed = tune(*arguments, "--out", "undisturbed")
    assert undisturbed.returncode == 0, undisturbed.stderr
    chance = random.Random(3)
    for _ in range(3):
        killed = subprocess.Popen(
            [VCPULAB, "tune", *arguments, "--out", "killed"], cwd=tmp_path, stdout=subprocess.DEVNULL
        )
        time.sleep(0.8 + chance.random())
        killed.send_signal(signal.SIGKILL)
        killed.wait()
    resumed = tune(*arguments, "--out", "killed")
    assert resumed.stdout == undisturbed.stdout
    runs = [(tmp_path / which / "runs.jsonl").read_bytes().splitlines() for which in ("undisturbed", "killed")]
    keys = [json.loads(line)["key"] for line in runs[1] if line.startswith(b'{"key"') and line.endswith(b"}")]
    assert len(keys) == len(set(keys)), "nothing was run twice"
    assert set(keys) == {json.loads(line)["key"] for line in runs[0]}


def test_interrupted_it_says_how_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "planted.toml").write_text(PLANTED)
    process = subprocess.Popen(
        [VCPULAB, "tune", "planted.toml", "--budget", "1h", "--out", "kept"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    while process.poll() is None and not (tmp_path / "kept" / "batches.txt").exists():
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=HANG_S)
    assert process.returncode == 130
    assert "the measurements are kept in kept\n  hint: the same command goes on" in said


def test_a_budget_of_time_is_kept(planted: vcpulab.Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock of its own, so that no machine is too slow: a second passes whenever the search looks at it."""
    seconds = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: float(next(seconds)))
    quick = planted.change({"run.duration": "150ms"})
    goals = default_goals(quick)
    weights = space(quick, [f"domain.{name}.weight=16..4096" for name in ("dom0", "web", "batch")])

    def candidates(budget_s: float) -> int:
        return len(Search(weights, goals, replications=2).run(seconds=budget_s).candidates)

    assert 8 < candidates(5.0) < candidates(15.0) < weights.size


def test_a_search_without_a_stated_end_ends_when_nothing_better_comes() -> None:
    hogs = {"app": [{"kind": "hog"}]}
    host = {"profile": "exact", "pcpus": 1, "scheduler": "credit"}
    even = vcpulab.Scenario.from_dict({"run": {"duration": "50ms"}, "host": host, "domain": {"a": hogs, "b": hogs}})
    # What nobody does anything with makes no difference.
    idle = even.change({"domain.c.weight": 256, "domain.d.weight": 256})
    weights = space(idle, ["c.weight=16..4096", "d.weight=16..4096"])
    goals = [goal(idle, "host.fairness", higher=True)]
    tried = [
        len(Search(weights, goals, replications=2).run(trials=60, patient=patient).candidates)
        for patient in (False, True)
    ]
    assert tried == [1 + 8 * PATIENCE, 60]


def test_the_report_is_drawn(tune: Vcpulab, tmp_path: Path, browser: str) -> None:
    result = tune("planted.toml", "--trials", "22", "--only", "domain.batch.*", "--report", "report.html")
    assert result.returncode == 0, result.stderr
    page = re.sub(r"<script.*?</script>", "", opened(browser, tmp_path / "report.html"), flags=re.DOTALL)
    assert page.count('data-drawn=""') == page.count("<figure ") >= 3
    assert "<summary>Every metric" in page
    assert "could not be drawn" not in page


def test_desktop_scenario_shows_what_the_guide_says() -> None:
    now = vcpulab.Scenario.load(ROOT / "scenarios" / "desktop.toml").change({"run.duration": "2s"})
    folk = {"domain.dom0.weight": 1024, "domain.game.weight": 2048, "domain.call.weight": 2048}
    settings: list[dict[str, Any]] = [
        {},
        {**folk, "domain.sys-audio.weight": 4096},
        {"domain.build.weight": 128, "domain.update.weight": 128},
        {"host.ratelimit_us": 0},
    ]
    runs = vcpulab.run_many([now.change(changes) for changes in settings], waits=False)
    asked = [find(now, name) for name in ("game.0.failed", "sys-audio.response_p99")]
    found = [{name: max(v or 0.0 for v in listed) for name, listed in run.values(asked).items()} for run in runs]
    late, sound = ([one[address.name] for one in found] for address in asked)
    assert min(late[0], late[3]) > 100
    assert max(late[1], late[2]) == 0
    assert sound[3] < 0.5 * min(sound[:3])


# ---- advice that can be trusted ----

GROUP = "domain.batch1 to batch4.weight"
# A service that waits behind machines that compute, all alike.
BUSY: dict[str, Any] = {
    "run": {"duration": "1s", "warmup": "100ms"},
    "host": {"profile": "generic", "pcpus": 2, "scheduler": "credit"},
    "domain": {
        "dom0": {"driver_domain": True},
        "shop": {
            "vcpus": 2,
            "nic": {"driver_domain": "dom0"},
            "app": [{"kind": "web-server", "request_cpu": "3ms", "workers": 8}],
        },
        **{f"batch{n}": {"app": [{"kind": "hog"}]} for n in (1, 2, 3, 4)},
    },
    "client": {"customers": {"kind": "open-loop", "server": "shop", "rate": 250}},
}


def busy(**changes: Any) -> vcpulab.Scenario:
    found = vcpulab.Scenario.from_dict(BUSY)
    return found.change({path.replace("__", "."): value for path, value in changes.items()}) if changes else found


def advice(scenario: vcpulab.Scenario, *slos: str, **options: Any) -> Any:
    asked = {"minimise": ["customers.response_p99"], "trials": 16, "replications": 3, **options}
    return vcpulab.tune(scenario, slo=slos, **asked)


def test_the_goals_own_weight_is_tried_first_and_advised() -> None:
    answer = advice(busy())
    weights = [candidate.changes for candidate in answer.result.candidates[1:4]]
    assert weights == [{"domain.shop.weight": weight} for weight in (512, 1024, 2048)]
    assert answer.advised
    assert list(answer.result.best.changes) == ["domain.shop.weight"]


def test_alike_domains_share_a_parameter() -> None:
    there = widened(space(busy()), ["shop"])
    (weight,) = [one for one in there.parameters if one.key.endswith("weight (credit)") and "batch" in one.key]
    assert weight.name == GROUP
    changed = there.changes({**there.present, weight.key: 0})
    assert changed == {f"domain.batch{n}.weight": 64 for n in (1, 2, 3, 4)}
    apart = widened(space(busy(domain__batch1__weight=300)), ["batch2"])
    assert "domain.batch3 to batch4.weight" in [one.name for one in apart.parameters]


def test_the_present_setting_that_keeps_the_slo_stays() -> None:
    answer = advice(busy(), "customers.response_p99 < 5s")
    assert not answer.advised
    assert answer.result.best.changes == {}
    assert "customers.response_p99 < 5s is kept as it is" in answer.verdict


def test_a_response_time_so_short_that_users_notice_no_difference_is_left() -> None:
    answer = advice(busy(client__customers__rate=5, host__pcpus=8))
    assert not answer.advised
    assert "users notice no difference below" in answer.verdict
    assert len(answer.result.candidates) == 1


def test_a_full_link_is_no_fault_of_the_scheduler() -> None:
    branch = {"processors": 4, "bits_per_s": 10_000_000}
    readers = {"kind": "closed-loop", "server": "shop", "users": 20, "file_size": "100KB", "machine": "branch"}
    far = vcpulab.Scenario.from_dict({**BUSY, "client_machine": {"branch": branch}, "client": {"customers": readers}})
    answer = advice(far.change({"host.pcpus": 8}))
    assert not answer.advised
    assert answer.verdict.startswith("No change is needed: even alone on the host, without the 4 other domains, ")
    assert answer.verdict.endswith("the link of branch is 100 % used.")
    assert answer.as_data()["proven"]


def test_who_starves_somebody_is_never_advised() -> None:
    """Under null the last vCPUs never run: a wait that is not there looks like the best."""
    hogs = {"app": [{"kind": "hog"}]}
    scenario = vcpulab.Scenario.from_dict(
        {
            "run": {"duration": "500ms"},
            "host": {"profile": "generic", "pcpus": 2, "scheduler": "credit"},
            "domain": dict.fromkeys("abcd", hogs),
        }
    )
    found = Search(
        space(scenario, ["host.scheduler=credit,null"]), [goal(scenario, "d.waited", higher=False)], replications=3
    ).run(trials=4)
    (null,) = [one for one in found.candidates if one.changes]
    assert null.starves
    assert "starves" in (null.dropped or "")
    assert found.best.changes == {}


@pytest.fixture(scope="module")
def weighed() -> Any:
    """Only the weight of the shop is free, and everything that is guessed is tried."""
    return advice(busy(), only=["shop.weight"], trials=6, sensitivity=True)


def test_the_front_trades_gain_against_harm(weighed: Any) -> None:
    rows = weighed.front.to_dicts()
    assert rows == sorted(rows, key=lambda row: row["price"])
    assert sum(row["recommended"] for row in rows) == 1
    for row, other in itertools.permutations(rows, 2):
        assert (row["gain"], -row["harm"], -row["price"]) != (other["gain"], -other["harm"], -other["price"])
        assert not (row["gain"] > 1.1 * other["gain"] and row["harm"] < other["harm"] and row["price"] < other["price"])
    # Who pays for the recommended setting is what the confirmation says, as everywhere else in the answer.
    assert [one.harm for one in weighed.offers if one.recommended] == [weighed.confirmed.harm]
    losers = {row["loser"] for row in rows}
    assert any(loser and loser.startswith("throughput of batch1 to batch4 -") for loser in losers)
    document = json.loads(json.dumps(weighed.as_data()))
    assert [row["recommended"] for row in document["front"]] == [row["recommended"] for row in rows]


def test_what_was_guessed_is_tried_lower_and_higher(weighed: Any) -> None:
    tried = weighed.sensitivity.rows()
    assert {(row["input"], row["factor"]) for row in tried} == {
        (name, factor) for name in ("rate of customers", "request_cpu of shop") for factor in (0.75, 1.25)
    }
    lower, higher = (row for row in tried if row["input"] == "rate of customers")
    assert "no change is needed" in lower["why"] or lower["score"] < higher["score"]
    assert any(line.startswith("the answer ") for line in weighed.sensitivity.lines())
    assert weighed.sensitivity.left == ()


def test_alike_domains_are_guessed_together() -> None:
    app = [{"kind": "periodic", "run": "1ms", "period": "10ms"}]
    periodic = busy().change({f"domain.batch{n}.app": app for n in (1, 2, 3, 4)})
    (jobs,) = (one for one in guesses(periodic) if one.name.startswith("run"))
    assert jobs.name == "run of batch1 to batch4"
    assert jobs.times(1.25) == {f"domain.batch{n}.app.0.run": "1250000ns" for n in (1, 2, 3, 4)}


def test_the_second_best_is_tried_where_the_best_starves_somebody(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Any] = []

    def starving(search: Search, winner: Any, _progress: object) -> Any:
        tried.append(winner.changes)
        confirmed = confirm(search, winner)
        return (
            replace(confirmed, starved={"batch1": "never ran"}, verdict="not better") if len(tried) == 1 else confirmed
        )

    monkeypatch.setattr(confirming, "confirm", starving)
    answer = advice(busy(), only=["shop.weight"], trials=6)
    assert answer.advised
    assert len(tried) == 2
    assert answer.result.best.changes == tried[1] != tried[0]
    (rejected,) = answer.rejected
    assert rejected.candidate.changes == tried[0]
    assert answer.reasons()[0].startswith("not advised: weight of shop 256 → ")
    assert answer.reasons()[0].endswith("which starves batch1")
    assert answer.as_data()["rejected"] == [{"changes": dict(tried[0]), "why": "starves batch1"}]


def test_prices_can_be_stated() -> None:
    there = {parameter.name: parameter for parameter in widened(space(busy()), ["shop"]).parameters}
    weight, batch, scheduler = (there[name] for name in ("domain.shop.weight", GROUP, "host.scheduler"))
    one, all_of_them, another = ((it, it.now + 1 if it.ordered else 1 - it.now) for it in (weight, batch, scheduler))
    assert price([one], PRICES) < price([all_of_them], PRICES) < price([another], PRICES)
    assert price([one], PRICES) < price([(weight, weight.now + 3)], PRICES)
    assert price([another], stated(["scheduler=30"])) == 30
    with pytest.raises(RequestError, match="KIND=PERCENT"):
        advice(busy(), price=["wait=1"])


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"domain.shop.affinity": "0", "domain.batch1.affinity": "0"}, {"domain.shop.affinity": "all"}),
        ({"domain.shop.cap": 40}, {"domain.shop.cap": 0}),
        ({"pool.p.pcpus": "3", "pool.p.scheduler": "credit", "domain.shop.pool": "p"}, {"pool.p.pcpus": "2-3"}),
    ],
    ids=["pinned", "capped", "small-pool"],
)
def test_whatever_holds_the_goal_back_is_among_the_first(changes: dict[str, Any], wanted: dict[str, Any]) -> None:
    scenario = busy(host__pcpus=4).change(changes)
    there = widened(space(scenario), ["shop"])
    tried = [there.changes(picks) for picks in leads(there, vcpulab.run(scenario), ["shop"], None)]
    assert wanted in tried[:20]


def test_a_quota_that_holds_the_goal_back_is_tried_before_weights() -> None:
    server = {"vcpu_quota_us": 20_000, "nic": {}, "app": [{"kind": "web-server", "request_cpu": "3ms"}]}
    scenario = vcpulab.Scenario.from_dict(
        {
            "run": {"duration": "500ms"},
            "host": {"hypervisor": "kvm", "profile": "exact", "pcpus": 2, "scheduler": "linux-eevdf"},
            "domain": {"web": server, "batch": {"count": 3, "app": [{"kind": "hog"}]}},
            "client": {"users": {"kind": "open-loop", "server": "web", "rate": 100}},
        }
    )
    there, run = space(scenario), vcpulab.run(scenario)
    first = leads(there, run, ["web"], bottleneck(stations(run, ["web"])))[0]
    assert there.changes(first).keys() == {"domain.web.vcpu_quota_us"}


def test_back_ends_are_spread_over_the_vcpus_of_the_driver_domain() -> None:
    scenario = busy(host__pcpus=4).change({"domain.batch1.nic": {"driver_domain": "dom0"}})
    there = widened(space(scenario), ["shop"])
    (spread,) = [one for one in there.parameters if one.name == "domain.dom0.backends"]
    assert there.changes({spread.key: 1}) == {"domain.dom0.vcpus": 2, "domain.batch1.nic.driver_vcpu": 1}


def test_what_is_taken_from_another_service_is_no_gain() -> None:
    """Two services share a pool of one pCPU: more weight for one is taken from the other, another pCPU is not."""
    web = {"pool": "p", "nic": {"driver_domain": "dom0"}, "app": BUSY["domain"]["shop"]["app"]}
    ask = {"kind": "open-loop", "rate": 150}
    pooled = {
        **BUSY,
        "host": {**BUSY["host"], "pcpus": 4},
        "pool": {"p": {"pcpus": "3", "scheduler": "credit"}},
        "domain": {"dom0": {"driver_domain": True}, "shop": web, "mail": web},
        "client": {"customers": {**ask, "server": "shop"}, "senders": {**ask, "server": "mail"}},
    }
    answer = advice(vcpulab.Scenario.from_dict(pooled))
    assert answer.advised
    assert "domain.shop.weight" not in answer.result.best.changes


def test_a_pattern_of_what_no_scheduler_has_is_answered_in_words() -> None:
    scenario = vcpulab.Scenario.from_dict(
        {
            "host": {"profile": "exact", "scheduler": "arinc653", "sched_gran": "cpu", "major_frame_ns": 10_000_000}
            | {"entries": [{"domain": "a", "runtime": "2ms"}]},
            "domain": {"a": {"app": [{"kind": "hog"}]}},
        }
    )
    with pytest.raises(RequestError, match=r"only: found `domain.\*.weight`; allowed: \S"):
        space(scenario, only=["domain.*.weight"])
