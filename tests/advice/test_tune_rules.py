"""The rules of the search: what is tried first, what is given up, what is advised. Most need no run."""

from pathlib import Path
from typing import Any

import pytest

import vcpulab
from support import Vcpulab
from vcpulab._engine import Comparison as JudgedComparison
from vcpulab.advice.capacity.service_alone import alone
from vcpulab.advice.compare import Comparison, Verdict, judged_metric
from vcpulab.advice.tuning.candidates import STARVES, Candidate
from vcpulab.advice.tuning.goals import goal, goals
from vcpulab.advice.tuning.headline import losses_of_others
from vcpulab.advice.tuning.parameters import space
from vcpulab.advice.tuning.prices import PRICES
from vcpulab.advice.tuning.racing import hopeless
from vcpulab.advice.tuning.simplifying import Simplifying
from vcpulab.advice.tuning.widening import widened
from vcpulab.advice.tuning.worth import Worth
from vcpulab.results.addresses import find, slos
from vcpulab.results.statistics import Interval
from vcpulab.scenario import settings

WEB = {"nic": {"driver_domain": "dom0"}, "app": [{"kind": "web-server", "request_cpu": "2ms"}]}
HOST: dict[str, Any] = {
    "run": {"duration": "500ms", "warmup": "100ms", "replications": 2},
    "host": {"profile": "generic", "pcpus": 2, "scheduler": "credit"},
    "domain": {
        "dom0": {"driver_domain": True},
        "shop": {**WEB, "vcpus": 2},
        "mail": WEB,
        "batch1": {"app": [{"kind": "hog"}]},
        "batch2": {"app": [{"kind": "hog"}]},
    },
    "client": {name: {"kind": "open-loop", "server": name, "rate": 100} for name in ("shop", "mail")},
}
SHOP, MAIL, SCHEDULER = "domain.shop.weight (credit)", "domain.mail.weight (credit)", "host.scheduler"
P99 = "shop.response_p99"
NOISE = (0.99, 1.0, 1.01, 0.995, 1.005, 1.0)


@pytest.fixture(scope="module")
def host() -> vcpulab.Scenario:
    return vcpulab.Scenario.from_dict(HOST)


class Tried:
    """Settings with made-up measurements: the mean of each metric, and the same noise for all."""

    def __init__(self, scenario: vcpulab.Scenario, *said: str) -> None:
        wanted = [goal(scenario, P99, higher=False)]
        self.worth = Worth(widened(space(scenario), ["shop"]), wanted, slos(scenario, said), PRICES)
        asked = [a.name for one in (wanted[0].addresses, *self.worth.bystanders) for a in one]
        self.now = {name: 400.0 if name == P99 else 30.0 if "response" in name else 100.0 for name in asked}
        self.number = -1
        self.worth.present = self.setting({})

    def setting(self, steps: dict[str, int], *, starves: str = "", n: int = 6, **values: float) -> Candidate:
        """Some parameters changed by so many options; metrics that differ from the present ones."""
        there = self.worth.space
        picks = {**there.present, **{key: there.present[key] + step for key, step in steps.items()}}
        changes = there.changes(picks)
        means = self.now | {f"{name}.response_p99": value for name, value in values.items()}
        rows: list[dict[str, float | None]] = [{k: v * noise for k, v in means.items()} for noise in NOISE[:n]]
        if starves:
            rows[0][f"{STARVES}{starves}"] = 1.0
        self.number += 1
        return Candidate(self.number, picks, changes, settings.change(there.scenario, changes).scenario, list(rows))

    def dropped(self, candidate: Candidate, *full: Candidate) -> str | None:
        leader = max([self.worth.present, candidate, *full], key=self.worth.order)
        return hopeless(self.worth, candidate, leader, [self.worth.present, *full], len(candidate.rows))

    def mildest(self, *finalists: Candidate) -> Candidate:
        """Of these; what has a parameter changed back is as good as the present setting."""

        class Back:
            def candidate(self, _picks: object) -> Candidate:
                return present

            def until(self, *_: object) -> None:
                pass

        present = self.worth.present
        back: Any = Back()
        best = max(finalists, key=self.worth.order)
        return Simplifying(self.worth, back, lambda _: True).mildest(best, [present, *finalists])


@pytest.fixture
def tried(host: vcpulab.Scenario) -> Tried:
    return Tried(host)


# ---- what is given up ----


def test_what_is_better_by_less_than_its_price_is_given_up(tried: Tried) -> None:
    weight = tried.setting({SHOP: 2}, shop=40)
    assert tried.dropped(tried.setting({SCHEDULER: 1}, n=3, shop=35), weight) == "not worth its price"
    assert tried.dropped(tried.setting({SHOP: 1}, n=3, shop=300), weight) == "far behind the best"
    assert tried.dropped(tried.setting({SCHEDULER: 1}, n=3, shop=11), weight) is None


def test_a_mild_setting_beside_a_dear_one_that_is_better_stays(tried: Tried) -> None:
    """The slice that was worth more than another scheduler was given up for its score."""
    another = tried.setting({SCHEDULER: 1}, shop=15)
    mild = tried.setting({SHOP: 1}, n=3, shop=26)
    assert max(tried.worth.scores(mild)) < min(tried.worth.scores(another))
    assert tried.dropped(mild, another) is None
    assert tried.mildest(another, tried.setting({SHOP: 1}, shop=26)).changes == {"domain.shop.weight": 512}


def test_nothing_is_given_up_after_one_replication(tried: Tried) -> None:
    assert tried.dropped(tried.setting({SHOP: 1}, n=1, shop=4000), tried.setting({SHOP: 2}, shop=40)) is None


# ---- what is advised ----


def test_of_the_mildest_parameter_the_value_that_is_worth_most_is_taken(tried: Tried) -> None:
    steps = [tried.setting({SHOP: step}, shop=shop) for step, shop in ((1, 60), (2, 40), (3, 41))]
    both = tried.setting({SHOP: 2, MAIL: 1}, shop=38)
    assert tried.mildest(*steps, both) is steps[1]


def test_what_a_neighbour_pays_is_no_gain(tried: Tried) -> None:
    taken, given = tried.setting({SHOP: 2}, shop=40, mail=300), tried.setting({SHOP: 1}, shop=50)
    assert tried.worth.standing(taken).score > tried.worth.standing(given).score
    assert tried.mildest(taken, given) is given
    harm = tried.worth.harm(taken.rows, tried.worth.present.rows)
    assert str(harm) == "response_p99 of mail +900 %"
    assert tried.worth.harm(given.rows, tried.worth.present.rows) is None


def test_a_neighbours_slo_goes_before_any_gain(host: vcpulab.Scenario) -> None:
    tried = Tried(host, "mail.response_p99 < 50ms")
    taken, given = tried.setting({SHOP: 2}, shop=20, mail=60), tried.setting({SHOP: 1}, shop=200)
    assert tried.dropped(taken, given) == "beyond mail.response_p99 < 50ms"
    assert tried.mildest(taken, given) is given


def test_with_an_slo_on_the_goal_the_cheapest_that_keeps_it_is_taken(host: vcpulab.Scenario) -> None:
    tried = Tried(host, f"{P99} < 100ms")
    steps = [tried.setting({SHOP: step}, shop=shop) for step, shop in ((1, 120), (2, 90), (3, 20))]
    assert tried.mildest(*steps) is steps[1]


def test_who_starves_somebody_is_behind_everybody(tried: Tried) -> None:
    starving, mild = tried.setting({SHOP: 3}, starves="batch1", shop=5), tried.setting({SHOP: 1}, shop=200)
    assert tried.worth.order(starving) < tried.worth.order(tried.worth.present) < tried.worth.order(mild)
    assert tried.mildest(starving, mild) is mild


# ---- what is wanted, and tried first ----


def test_alike_domains_with_goals_share_their_parameters_apart_from_the_others(host: vcpulab.Scenario) -> None:
    four = host.change({f"domain.batch{n}.app": [{"kind": "hog"}] for n in (3, 4)})
    names = [one.name for one in widened(space(four), ["batch1", "batch2"]).parameters]
    assert {"domain.batch1 to batch2.weight", "domain.batch3 to batch4.weight"} <= set(names)


def test_slos_that_do_not_hold_are_the_goals_where_none_is_named(host: vcpulab.Scenario) -> None:
    missed = slos(host, ["batch1.throughput > 400", f"{P99} < 9ms"])
    assert [str(one) for one in goals(host, [], [], missed)] == ["maximise batch1.throughput", f"minimise {P99}"]
    assert [str(one) for one in goals(host, ["host.fairness"], [], missed)] == ["maximise host.fairness"]


@pytest.fixture(scope="module")
def spinning() -> vcpulab.Scenario:
    spin = {"kind": "spin", "threads": 6, "section": "8us", "work": "60us"}
    solver = {"vcpus": 6, "app": [spin]}
    return vcpulab.Scenario.from_dict(
        {**HOST, "domain": {"solver": solver, "build": {"app": [{"kind": "hog"}]}}, "client": {}}
    )


def test_whatever_may_keep_an_slo_is_varied(spinning: vcpulab.Scenario) -> None:
    """The number of vCPUs was varied for goals, and not for SLOs: it said that none could be kept."""
    answer = vcpulab.tune(spinning, slo=["solver.throughput > 9000"], trials=8, replications=2)
    assert answer.advised
    assert list(answer.result.best.changes) == ["domain.solver.vcpus"]


def test_what_holds_a_service_back_by_itself_is_no_claim_about_schedulers(spinning: vcpulab.Scenario) -> None:
    (beyond,) = slos(spinning, ["solver.throughput > 100000"])
    crowded = alone(spinning, beyond.address)
    assert crowded is not None
    assert crowded.about(beyond).endswith("The 6 vCPUs of solver on 2 pCPUs may hold it back.")
    assert crowded.proof(beyond) is None
    full = alone(spinning.change({"domain.solver.vcpus": 2}), beyond.address)
    assert full is not None
    assert full.proof(beyond) is not None
    assert "the pCPUs of Pool-0 are 100 % used by its own work" in full.about(beyond)


@pytest.mark.parametrize("trials", [3, 6])
def test_few_trials_are_spent_on_mild_cures(trials: int) -> None:
    """Six trials of the scenario to start from went to schedulers, and a restart was advised."""
    quick = vcpulab.Scenario.starter().change({"run.duration": "3s"})
    answer = vcpulab.tune(quick, trials=trials, replications=2)
    assert [list(one.changes) for one in answer.result.candidates[1:3]] == [["domain.web.weight"]] * 2
    assert not any("host.scheduler" in one.changes for one in answer.result.candidates)
    assert answer.advised
    assert "no restart of the host" in answer.headline


# ---- its output ----


@pytest.fixture
def forty(tmp_path: Path) -> Path:
    kinds: dict[str, tuple[int, dict[str, Any]]] = {
        "job": (20, {"app": [{"kind": "hog"}]}),
        "svc": (15, {"app": [{"kind": "periodic", "run": "2ms", "period": "20ms"}]}),
    }
    alike = {f"{kind}{n:02}": table for kind, (count, table) in kinds.items() for n in range(1, count + 1)}
    scenario = vcpulab.Scenario.from_dict({**HOST, "domain": {**HOST["domain"], **alike}})
    path = tmp_path / "forty.toml"
    path.write_text(scenario.to_toml())
    return path


@pytest.mark.parametrize("goal", [["--minimise", "shop.response_p99"], []])
def test_forty_vms_are_answered_in_forty_lines(command: Vcpulab, forty: Path, goal: list[str]) -> None:
    result = command("tune", str(forty), *goal, "--trials", "5", "--replications", "2", COLUMNS="80")
    assert result.returncode == 0, result.stderr
    assert len(result.stdout.splitlines()) <= 40
    assert max(map(len, result.stdout.splitlines()[:2])) <= 80


@pytest.mark.parametrize(
    ("ms", "said"),
    [
        ((2.0, 3.0), "no other service loses significantly (p99 of mail rises, and stays below 20 ms)"),
        ((2.0, 30.0), "mail response_p99 +1400 %"),
        ((3.0, 2.0), "no other service loses significantly"),
    ],
)
def test_what_nobody_feels_is_not_paid_but_said(host: vcpulab.Scenario, ms: tuple[float, float], said: str) -> None:
    before, after = (Interval(one, 0.1, 6) for one in ms)
    worse: Verdict = "regresses" if after.mean > before.mean else "improves"
    metric = find(host, "mail.response_p99")
    difference = Interval(ms[1] - ms[0], 0.1, 6)
    one = Comparison(metric, JudgedComparison(judged_metric(metric), before, after, difference, 0.001, worse))
    assert losses_of_others(host, {one.address.name: one}, set()) == said


@pytest.mark.parametrize("objective", ["batch.gotten < 30", "batch.throughput < 100"])
def test_a_ceiling_for_what_a_domain_does_is_not_refuted_by_how_much_it_does_alone(objective: str) -> None:
    """A cap keeps it, whatever the domain has alone on the host."""
    scenario = vcpulab.Scenario.starter().change({"run.duration": "100ms", "run.replications": 1})
    ceiling, floor = slos(scenario, [objective, objective.replace("<", ">") + "000"])
    by_itself = alone(scenario, ceiling.address)
    assert by_itself is not None
    assert by_itself.reason
    assert by_itself.proof(ceiling) is None
    assert "hold it back" not in by_itself.about(ceiling)
    assert by_itself.proof(floor) is not None
