"""The study of Venkatesh: its scenarios can be read, every cell has an estimate, claims are decided by figures."""

from collections.abc import Callable

import pytest

from vcpulab.results.cache import RunCache
from vcpulab.results.statistics import Interval
from vcpulab_evidence.studies import study
from vcpulab_evidence.studies.claims import Outcome
from vcpulab_evidence.studies.results import Results
from vcpulab_evidence.studies.runner import Runner, StudyEffort
from vcpulab_evidence.studies.venkatesh2015 import estimates as figures
from vcpulab_evidence.studies.venkatesh2015.cases import TABLE_7

IT = study("venkatesh2015")
CASES = {case.key: case for case in IT.cases()}


def made_up(value: Callable[[str, str], float]) -> Results:
    """Results in which a function of case and figure says every value; replications, three or four, differ a little."""
    names = (
        "rate",
        "domU_throughput",
        "transactions",
        *TABLE_7,
        "stress_batches",
        "cpu_util@dom0",
    )
    return Results(
        {key: [{n: value(key, n) * (1 + k / 1e4) for n in names} for k in range(3 + len(key) % 2)] for key in CASES}
    )


def outcome(claim: str, results: Results) -> Outcome:
    return next(c for c in IT.claims if c.id == claim).verdict(results).outcome


def test_every_scenario_can_be_read() -> None:
    for case in CASES.values():
        IT.scenario(case, fast=True)


def test_every_cell_has_an_estimate() -> None:
    results = made_up(lambda *_: 50.0)
    assert len(IT.cells) > 35
    for cell in IT.cells:
        assert isinstance(IT.estimate(cell, results), Interval), cell


def test_a_loss_is_one_of_the_operations_rates() -> None:
    busy = {"write": 90.0, "read": 80.0, "random-write": 95.0, "random-read": 85.0}
    results = made_up(lambda key, _: busy[key.split()[2]] if key.endswith("stress") and "iozone" in key else 100.0)
    assert figures.disk_loss(results, "credit", "lo").mean == pytest.approx(5.0)
    assert figures.disk_loss(results, "credit", "hi").mean == pytest.approx(20.0)
    assert figures.disk_loss(results, "credit").mean == pytest.approx(12.5)


def test_claims_follow_the_figures() -> None:
    table = {"credit": (50.0, 70.0, 388.0), "sedf": (27.0, 60.0, 262.0), "credit2": (52.0, 80.0, 400.0)}

    def published(key: str, figure: str) -> float:
        name = next((n for n in ("credit2", "credit", "sedf", "enhanced") if f" {n}" in key), "credit")
        if figure in TABLE_7 and name in table:
            return table[name][TABLE_7.index(figure)]
        if key.startswith("network"):
            loads = {"credit": (87.85, 72.71, 71.63), "credit2": (91.05, 79.15, 84.57)}.get(name, (80.0, 30.0, 60.0))
            return loads[("idle", "stress", "disk").index(key.rsplit(maxsplit=1)[-1])]
        return 100.0

    results = made_up(published)
    assert [outcome(claim, results) for claim in ("V-6", "V-7", "V-8", "V-9", "V-11")] == [Outcome.HOLDS] * 5
    turned = made_up(lambda key, figure: 1000.0 - published(key, figure))
    assert [outcome(claim, turned) for claim in ("V-6", "V-7", "V-8", "V-9", "V-11")] == [Outcome.FAILS] * 5


def test_all_claims_have_a_verdict_and_all_charts_are_drawn() -> None:
    results = made_up(lambda *_: 50.0)
    for claim in IT.claims:
        assert claim.verdict(results).outcome in {Outcome.HOLDS, Outcome.FAILS}, claim.id
    assert len(IT.charts(results)) == 12
    assert not IT.charts(Results({}))


def measured(*keys: str) -> Results:
    return Runner(IT, StudyEffort(fast=True), RunCache(None)).run([CASES[key] for key in keys])


def test_without_its_rate_limit_credit_serves_the_network_beside_stress() -> None:
    """The reason for Credit's loss: Enhanced without the limit has it not, and has it with the limit."""
    stressed = "enhanced-readings: {}; network stress"
    free, limited = (stressed.format(reading) for reading in ("boost qualifies", "with a rate limit"))
    results = measured(free, limited)
    assert results.mean(free, "domU_throughput") > 1.1 * results.mean(limited, "domU_throughput")


def test_a_guest_that_needs_the_bar_though_boosted_never_runs() -> None:
    case = "enhanced-readings: boost needs the bar; disk stress"
    assert measured(case).mean(case, "rate") == 0


def test_sedf_loses_two_fifths_of_the_disk_with_equal_weights_and_nothing_without() -> None:
    cases = [
        f"sedf-readings: {reading}; disk {load}"
        for reading in ("best effort", "equal weights")
        for load in ("idle", "stress")
    ]
    results = measured(*cases)
    best_effort, weighted = (1 - results.mean(cases[i + 1], "rate") / results.mean(cases[i], "rate") for i in (0, 2))
    assert best_effort < 0.1
    assert 0.3 < weighted < 0.5


def test_guests_that_have_reservations_slow_dom0s_own_disk() -> None:
    best_effort, weighted = (f"sedf-readings: {reading}; consolidated" for reading in ("best effort", "equal weights"))
    results = measured(best_effort, weighted)
    assert results.mean(weighted, TABLE_7[0]) < 0.85 * results.mean(best_effort, TABLE_7[0])


def test_more_hardware_threads_than_hogs_leave_nothing_to_wait_for() -> None:
    two, four = (f"assumptions: credit, four hardware threads, {n} stress threads; network stress" for n in (2, 4))
    results = measured(two, four)
    assert results.mean(two, "domU_throughput") > 1.1 * results.mean(four, "domU_throughput")
