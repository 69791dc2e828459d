"""The study of Benevenuto: its cases build and measure, every cell has an answer, claims are told apart by figures."""

import json
import math
from collections.abc import Mapping

import pytest

from vcpulab.results.cache import RunCache
from vcpulab.results.statistics import Interval
from vcpulab_evidence.studies import predict, study
from vcpulab_evidence.studies.benevenuto2006.cases import (
    TWO_CARDS,
    WEB_RATES,
    build_case,
    gap_ns,
    receive_case,
    web_case,
)
from vcpulab_evidence.studies.case import Case
from vcpulab_evidence.studies.claims import Outcome
from vcpulab_evidence.studies.results import Results
from vcpulab_evidence.studies.runner import Runner, StudyEffort

STUDY = study("benevenuto2006")
CLAIMS = {claim.id: claim for claim in STUDY.claims}


def case(key: str) -> Case:
    return next(case for case in STUDY.cases() if case.key == key)


def run(*keys: str) -> Results:
    return Runner(STUDY, StudyEffort(fast=True), RunCache(None)).run([case(key) for key in keys])


def made_up(figures: Mapping[str, Mapping[str, float]]) -> Results:
    return Results({key: [figure, figure] for key, figure in figures.items()})


class Anything(Results):
    """Has every figure of every case."""

    def values(self, case: str, figure: str) -> list[float]:  # noqa: ARG002
        return [1.0, 1.0]


def test_every_cell_has_an_answer_and_those_that_are_not_public_have_a_number() -> None:
    rows = predict.predictions(STUDY, Anything({}))
    assert len(rows) == len(STUDY.cells)
    for row in rows:
        assert row.estimate is not None or row.reason, row.cell
        if not row.cell.value:
            assert row.estimate is not None, row.cell
            assert row.role == "predicted", row.cell
    assert sum(row.role == "fitted" for row in rows) == 6


def test_the_worked_examples_come_from_the_monitors_formulas() -> None:
    examples = [cell for cell in STUDY.cells if cell.experiment == "worked-example"]
    for cell in examples:
        found = STUDY.estimate(cell, Results({}))
        assert isinstance(found, Interval)
        assert math.isclose(found.mean, float(cell.value))
    assert len(examples) == 2


def test_the_files_of_the_web_server_are_those_of_table_5_1() -> None:
    results = run("web-server: content")
    for cell in (cell for cell in STUDY.cells if cell.config == "content"):
        found = STUDY.estimate(cell, results)
        assert isinstance(found, Interval)
        if cell.metric != "file_size_median":  # the printed one fits no definition: see the study's notes
            assert found.mean == pytest.approx(float(cell.value), rel=0.005, abs=0.11), cell.metric
    asked, sent = (results.mean("web-server: content", figure) for figure in ("asked_kb", "sent_kb"))
    assert 14 < asked < 15
    assert 0.5 * asked < sent < 2 * asked, "what is sent is a sample of it, with headers"


def test_a_rate_is_reached_by_pauses() -> None:
    assert gap_ns(1000, 200) == 4 * 40_000
    key = receive_case("linux", 1000, 200)
    results = run(key)
    assert results.mean(key, "rate_mbit") == pytest.approx(200, rel=0.02)
    assert results.mean(key, "cpu_idd") == 0


def test_a_driver_domain_for_each_card_doubles_the_throughput() -> None:
    results = run("two-nics: default", "two-nics: an IDD each")
    default, each = (results.mean(key, "rate_mbit") for key in results.cases())
    assert each > 1.7 * default
    assert results.mean("two-nics: default", "cpu_2") < 1
    assert "routed, split" in TWO_CARDS


def test_claims_that_were_not_run_cannot_be_tested() -> None:
    assert len(CLAIMS) == 18
    assert {claim.verdict(Results({})).outcome for claim in STUDY.claims} == {Outcome.UNTESTABLE}


def test_a_claim_about_guests_wants_each_to_cost_more() -> None:
    linux = {build_case("linux", n): {"seconds": 100.0 * n} for n in range(1, 6)}

    def outcome(factors: tuple[float, ...]) -> Outcome:
        guests = {build_case("n guests", n + 1): {"seconds": 100.0 * (n + 1) * f} for n, f in enumerate(factors)}
        return CLAIMS["B-15"].verdict(made_up(linux | guests)).outcome

    assert outcome((1.01, 1.02, 1.03, 1.04, 1.05)) is Outcome.HOLDS
    assert outcome((1.01, 1.02, 1.03, 1.03, 1.02)) is Outcome.FAILS


def test_saturation_is_where_most_is_served() -> None:
    offered = {500: 500.0, 1000: 1000.0, 1500: 1500.0, 2000: 2000.0, 2500: 2500.0, 3000: 2600.0, 4000: 2400.0}
    served = {web_case("xen", rate): {"throughput": value} for rate, value in offered.items()}
    served |= {web_case("xen", rate): {"throughput": 2300.0} for rate in WEB_RATES if rate not in offered}
    cell = next(cell for cell in STUDY.cells if cell.metric == "saturation_rate")
    found = STUDY.estimate(cell, made_up(served))
    assert isinstance(found, Interval)
    assert found.mean == 2600


def test_charts_leave_out_what_was_not_run() -> None:
    assert STUDY.charts(Results({})) == []
    results = run(*(case.key for case in STUDY.cases() if case.experiment == "profiler-overhead"))
    (chart,) = STUDY.charts(results)
    assert chart.experiment == "profiler-overhead"
    assert "Xenoprof" in json.dumps(chart.spec)


def test_all_charts_draw() -> None:
    assert len([chart.spec for chart in STUDY.charts(Anything({}))]) == 12


def test_cpu_of_the_web_server_must_fall_at_each_rate_beyond_its_limit() -> None:
    def outcomes(cpu_beyond: float, cpu_at_limit: float) -> list[Outcome]:
        figures = {"throughput": 300.0, "cpu_guest": 30.0, "cpu_total": 60.0, "disk_kb": 15.0}
        served = {web_case("xen", rate): figures for rate in WEB_RATES}
        served |= {web_case("linux", rate): {"throughput": 1.0 * rate, "cpu_total": 99.0} for rate in WEB_RATES}
        for rate in (rate for rate in WEB_RATES if rate <= 2750):
            at = {"throughput": 1.0 * rate, "cpu_guest": cpu_at_limit, "cpu_total": 2 * cpu_at_limit}
            served[web_case("xen", rate)] = {**figures, **at}
        served[web_case("xen", 4000)] = {**figures, "cpu_total": cpu_beyond}
        return [CLAIMS[claim].verdict(made_up(served)).outcome for claim in ("B-3", "B-5")]

    assert outcomes(60, 95) == [Outcome.HOLDS, Outcome.HOLDS]
    assert outcomes(195, 95) == [Outcome.HOLDS, Outcome.FAILS], "at one of the rates it does not"
    assert outcomes(60, 50) == [Outcome.FAILS, Outcome.HOLDS], "the guest's CPU is not what limits it"


def test_processes_leave_the_files_of_the_web_server_no_memory() -> None:
    limit, beyond, linux = web_case("xen", 2500), web_case("xen", 8000), web_case("linux", 8000)
    results = run(limit, beyond, linux)
    assert results.mean(beyond, "cpu_total") < 0.6 * results.mean(limit, "cpu_total")
    assert results.mean(beyond, "throughput") < 0.3 * results.mean(limit, "throughput")
    assert results.mean(beyond, "disk_kb") > 3 * results.mean(limit, "disk_kb") > 0
    assert results.mean(linux, "disk_kb") == 0
    assert results.mean(linux, "throughput") > 2500
