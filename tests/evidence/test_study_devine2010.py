"""The study of Devine 2010."""

import math
from dataclasses import replace

import pytest

from vcpulab.results.cache import RunCache
from vcpulab.results.statistics import Interval
from vcpulab_evidence.studies import study
from vcpulab_evidence.studies.claims import Outcome
from vcpulab_evidence.studies.devine2010 import cases as c
from vcpulab_evidence.studies.devine2010 import noise
from vcpulab_evidence.studies.devine2010.analysis import WEB_CONFIGS, WINDOWS_CONFIGS, best
from vcpulab_evidence.studies.devine2010.best_by_load import best_by_load
from vcpulab_evidence.studies.devine2010.estimates import his_half_width, population_sd
from vcpulab_evidence.studies.results import Results
from vcpulab_evidence.studies.runner import Runner, StudyEffort

STUDY = study("devine2010")


def made_up(throughput: dict[str, float], users: int) -> Results:
    """Three replications of the web application at one load, with the same small noise for all."""
    values = {
        c.name(c.WEB, config, users): [
            {"throughput": throughput.get(config, 80.0) + noise + 0.01 * i * k}
            for k, noise in enumerate((-3.0, 0.0, 3.0))
        ]
        for i, config in enumerate(WEB_CONFIGS)
    }
    return Results(values)


class Anything(Results):
    """Every case measures every figure."""

    def values(self, case: str, figure: str) -> list[float]:
        spread = sum(map(ord, case + figure)) % 17
        return [100.0 + spread, 101.0 + spread, 103.0 + spread]


def test_his_formulas() -> None:
    # Credit-256 at 25 users: Tables 5.2 and 5.3, 5.5 and 5.6.
    assert his_half_width(28.83, 5) == pytest.approx(25.27, abs=0.01)
    assert his_half_width(279.2, 5 * 127.57) == pytest.approx(21.67, abs=0.01)
    assert population_sd([1.0, 3.0]) == 1.0


def test_every_number_that_can_be_simulated_has_an_estimate() -> None:
    reasons = set()
    for cell in STUDY.cells:
        said = STUDY.estimate(cell, Anything({}))
        if not isinstance(said, Interval):
            assert cell.value, cell
            reasons.add((cell.metric.split("@")[0], said))
    assert {metric for metric, _ in reasons} == {"cpu_time", "client_cpu_and_memory_util"}


def test_every_estimate_comes_from_cases_that_there_are() -> None:
    there = {case.key for case in STUDY.cases()}
    asked = set()

    class Asking(Anything):
        def values(self, case: str, figure: str) -> list[float]:
            asked.add(case)
            return super().values(case, figure)

    for cell in STUDY.cells:
        STUDY.estimate(cell, Asking({}))
    assert asked <= there
    assert len([case for case in there if case.startswith(c.WEB)]) == 10 * 5
    assert len([case for case in there if case.startswith(c.MOSS)]) == 9 * 4


def test_all_configurations_are_as_in_the_tables() -> None:
    web = dict(c.web_configurations(c.WEB_GUESTS))
    assert tuple(web) == WEB_CONFIGS
    assert web["sedf-2.8"]["domain.dom0.slice"] == 1_600_000
    assert (web["sedf-20"]["domain.dom0.period"], web["sedf-20"]["domain.nfs.period"]) == (20_000_000, 100_000_000)
    windows = dict(c.windows_configurations(("exchange",)))
    assert tuple(windows) == WINDOWS_CONFIGS
    assert windows["sedf-2.8"]["domain.exchange.slice"] == 2_800_000
    assert windows["sedf-2.8"]["domain.moss.slice"] == 1_800_000
    assert "domain.moss.weight" not in windows["credit-2048"]


def test_sedf_leaves_guests_where_their_creation_put_them() -> None:
    cases = {case.key: case.changes for case in STUDY.cases()}
    web = cases[c.name(c.WEB, "sedf-20", 25)]
    assert [web[f"domain.{guest}.affinity"] for guest in c.WEB_GUESTS] == [["1"], ["2", "3"], ["3", "0"]]
    shared, apart = (cases[c.name(c.MOSS, "sedf-20", users)] for users in (25, 100))
    assert shared["domain.moss.affinity"] == shared["domain.mssql.affinity"]
    both = [str(apart[f"domain.{guest}.affinity"]) for guest in ("moss", "mssql")]
    assert not any(all(f"'{pcpu}'" in homes for homes in both) for pcpu in range(4)), both
    assert not any("affinity" in path for path in cases[c.name(c.MOSS, "credit-512", 25)])


def test_portal_and_database_on_the_same_processors_wait_for_each_other() -> None:
    orders = (c.MOSS_CREATED, c.MOSS_ANEW)
    wanted = [c.placed_name(c.MOSS, "sedf-175", order) for order in orders]
    found = Runner(STUDY, StudyEffort(fast=True), RunCache(None)).run([x for x in STUDY.cases() if x.key in wanted])
    together, apart = (found.mean(case, "throughput") for case in wanted)
    assert together < 0.9 * apart
    together, apart = (found.mean(case, "runnable@mssql") for case in wanted)
    assert together > apart + 5


def test_the_best_is_told_from_the_others_only_where_differences_are_sure() -> None:
    found = best(made_up({"sedf-250": 90.0}, 25), c.WEB, 25)
    assert (found.config, found.ties) == ("sedf-250", ("sedf-250",))
    noisy = made_up({}, 25)
    assert len(best(noisy, c.WEB, 25).ties) > 5


def test_claims_follow_the_figures() -> None:
    claims = {claim.id: claim for claim in STUDY.claims}
    assert list(claims) == [f"D-{i}" for i in range(1, 28)]
    right = made_up({"credit-2048": 107.0}, 50)
    wrong = made_up({"credit-512": 107.0}, 50)
    assert claims["D-4"].verdict(right).outcome == Outcome.HOLDS
    assert claims["D-4"].verdict(wrong).outcome == Outcome.FAILS
    assert claims["D-4"].verdict(Results({})).outcome == Outcome.UNTESTABLE
    assert all(claim.verdict(Anything({})).outcome != Outcome.UNTESTABLE for claim in STUDY.claims)


def test_what_his_own_runs_do_not_tell_is_marked() -> None:
    table = noise.published(c.WEB)
    assert noise.interaction(table).p > 0.05
    assert all(noise.between(table, users).p > 0.05 and not noise.behind(table, users)[1] for users in table.loads)
    top, told = noise.behind(noise.published(c.MOSS), 25)
    assert top == "credit-2048"
    assert told == ["credit-512", *c.WINDOWS_SLICES], "but neither the default nor credit-1024"
    assert noise.change(25, 100) == "his own from 25 to 100: -24.0 ± 11.1/s"
    marked = {claim.id for claim in STUDY.claims if claim.undecided}
    assert {"D-1", "D-3", "D-4", "D-5", "D-6", "D-8", "D-9", "D-19"} <= marked
    assert not marked & {claim.id for claim in STUDY.claims if claim.contradicted}


def test_only_sure_differences_are_in_an_order() -> None:
    (trade,) = (claim for claim in STUDY.claims if claim.id == "D-2")

    def results(response_ms: float) -> Results:
        values = {}
        for users in c.WEB_USERS:
            for key in made_up({}, users).cases():
                fast = key == c.name(c.WEB, "sedf-250", users)
                values[key] = [
                    {
                        "throughput": (90.0 if fast else 80.0) + chance,
                        "response_time": (response_ms if fast else 300.0) + chance,
                    }
                    for chance in (-0.1, 0.0, 0.1)
                ]
        return Results(values)

    assert trade.verdict(results(260.0)).outcome == Outcome.HOLDS
    assert trade.verdict(results(340.0)).outcome == Outcome.FAILS


def test_the_open_question_is_answered() -> None:
    text = best_by_load(Anything({}))
    assert "### Web application" in text
    assert "p = 0.65" in text, "the interaction in his own table, whatever is simulated"
    assert "nan" not in text


def test_users_without_a_worker_wait_or_give_up() -> None:
    few, many = (
        next(case for case in STUDY.cases() if case.key == c.name(c.WEB, "credit-256", users)) for users in (100, 500)
    )
    # A short stretch is enough to see that all find a worker, or not.
    shorter = [replace(case, fast={"run.duration": "30s", "run.sample": "500ms"}) for case in (few, many)]
    found = Runner(STUDY, StudyEffort(fast=True), RunCache(None)).run(shorter)
    assert found.mean(few.key, "failed_per_s") == 0
    assert found.mean(few.key, "requests_per_s") * found.mean(few.key, "response_time") / 1e5 == pytest.approx(
        1, abs=0.1
    )
    assert found.mean(many.key, "failed_per_s") > 1, "some hundred users, each again every 21 s"
    busy = found.mean(many.key, "requests_per_s") * found.mean(many.key, "response_time") / 1e3
    assert 140 < busy < 350, "as many as there are workers, and some of those that wait"


def test_a_fast_run_of_each_experiment_measures_everything() -> None:
    wanted = [c.name(c.MOSS, "sedf-2.8", 25), c.name(c.EXCHANGE, "credit-512", 25), c.name(c.VPS, "sedf-20", 25)]
    some = [case for case in STUDY.cases() if case.key in wanted]
    found = Runner(STUDY, StudyEffort(fast=True), RunCache(None)).run(some)
    for case in some:
        for figure in ("throughput", "response_time", "running@dom0", "blocked@dom0", "waiting@dom0"):
            assert math.isfinite(found.mean(case.key, figure)), (case.key, figure)
