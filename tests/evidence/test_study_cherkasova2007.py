"""The study of Cherkasova, Gupta and Vahdat: that it is complete, and that its checks can tell right from wrong."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from vcpulab.results.cache import RunCache
from vcpulab.results.statistics import Interval
from vcpulab.scenario.scenario import Scenario
from vcpulab_evidence.studies import study
from vcpulab_evidence.studies.cherkasova2007 import alert, claims
from vcpulab_evidence.studies.cherkasova2007.cases import ALERT_TARGETS, alert_case, bvt, credit, nearly_saturated, sedf
from vcpulab_evidence.studies.claims import Outcome
from vcpulab_evidence.studies.predict import predictions
from vcpulab_evidence.studies.results import Results
from vcpulab_evidence.studies.runner import Runner, StudyEffort

STUDY = study("cherkasova2007")


def made_up(case: str) -> dict[str, float]:
    """Figures for any case."""
    if case.startswith("alert"):
        target = float(case.rpartition("=")[2])
        return {f"used {second}": 1.1 * target for second in range(180)}
    return dict.fromkeys(
        (
            *("web_throughput", "throughput", "web", "iperf", "disk", "error_ms", "idle_while_waiting"),
            *("cpu_util@dom0", "cpu_util@dom1", "ex_per_sec@dom0", "io_count_per_ex@dom0", "io_per_sec@dom0"),
        ),
        40.0,
    )


ANY = Results({case.key: [made_up(case.key)] * 2 for case in STUDY.cases()})


def sweep(figures: Mapping[str, Mapping[str, float]]) -> Results:
    """Cases of the weight sweep at equal weights, each with two nearly equal replications."""
    return Results(
        {
            f"dom0-weight-sweep: {case} 1": [values, {name: 1.001 * value for name, value in values.items()}]
            for case, values in figures.items()
        }
    )


def test_every_case_is_a_scenario() -> None:
    keys = [case.key for case in STUDY.cases()]
    assert len(set(keys)) == len(keys)
    assert {case.experiment for case in STUDY.cases()} == set(STUDY.experiments)
    for case in STUDY.cases():
        STUDY.scenario(case, fast=True)


def test_every_cell_is_predicted_but_what_is_a_requirement() -> None:
    for row in predictions(STUDY, ANY):
        assert (row.estimate is None) == (row.cell.experiment == "workload-manager"), row.cell
        assert row.estimate is not None or row.reason


def test_every_blind_cell_is_predicted() -> None:
    blind = [row for row in predictions(STUDY, ANY) if row.role == "blind"]
    assert len(blind) == 25
    assert all(row.estimate is not None and row.cell.value for row in blind)


def test_weights_and_shares() -> None:
    assert bvt(4) == {"domain.dom0.mcu_adv": 10, "domain.dom1.mcu_adv": 40}
    half = sedf(0.25, 10, extra=False)
    assert (half["domain.dom0.slice"], half["domain.dom1.slice"]) == (2_000_000, 8_000_000)
    assert (half["domain.dom0.extratime"], half["domain.dom1.period"]) == (0, 10_000_000)
    assert credit(2, capped=True)["domain.dom1.cap"] == 33
    assert "domain.dom1.cap" not in credit(2, capped=False)


@pytest.mark.parametrize("capacity", [250, 703, 1200])
def test_the_rate_offered_is_a_twentieth_below_the_highest_that_is_served(capacity: int) -> None:
    def trial(scenario: Scenario) -> Any:
        served = min(scenario.to_dict()["client"]["httperf"]["rate"], capacity)
        return SimpleNamespace(throughput=lambda _client: served)

    case = next(case for case in STUDY.cases() if case.prepare)
    scenario = nearly_saturated(STUDY.scenario(case), trial)
    offered = scenario.to_dict()["client"]["httperf"]["rate"]
    assert 0.93 * capacity < offered < 0.97 * capacity
    assert scenario.duration_ns == STUDY.scenario(case).duration_ns, "trials may be shorter"


def test_errors_have_the_sign_of_the_figures() -> None:
    used = Results({alert_case(*alert.CREDIT, 10): [{"used 0": 15.0, "used 1": 5.0, "used 2": 10.0, "used 3": 0.0}]})
    assert alert.errors(used, alert.CREDIT, 10) == [50.0, -50.0, 0.0, -100.0]
    assert alert.errors(used, alert.CREDIT, 10, seconds=2) == [0.0, -50.0]
    assert alert.long_error(used, alert.CREDIT, 10) == -25.0


def test_tails_are_shares_of_all_points() -> None:
    points = [float(i) for i in range(1, 21)]
    assert (alert.at_or_below(points, 10), alert.at_or_above(points, 10)) == (2.0, 19.0)
    assert (alert.share_below(points, 2.0), alert.share_above(points, 17.0)) == (5.0, 15.0)


@pytest.mark.parametrize(
    ("served", "outcome"),
    [((934, 817, 510), Outcome.HOLDS), ((510, 817, 934), Outcome.FAILS), ((934, 934, 934), Outcome.FAILS)],
)
def test_an_order_holds_or_fails(served: tuple[float, ...], outcome: Outcome) -> None:
    results = sweep({f"bvt C={c}": {"web_throughput": x} for c, x in zip((50, 5, 1), served, strict=True)})
    assert claims.rises_with_allowance(results).outcome == outcome


def test_the_authors_own_figures_decide_as_the_notes_say() -> None:
    published = sweep(
        {
            "bvt C=50": {"web_throughput": 934.0},
            "bvt C=1": {"web_throughput": 510.0},
            "sedf-wc xen3.0.2 P=10": {"web_throughput": 696.0},
            "sedf-wc xen3.0.2 P=1000": {"web_throughput": 499.0},
        }
    )
    outcomes = {claim.id: claim.verdict(published).outcome for claim in STUDY.claims}
    assert outcomes["C-3"] == Outcome.FAILS
    assert outcomes["C-4"] == Outcome.HOLDS
    assert outcomes["C-14"] == Outcome.UNTESTABLE, "not run"
    assert [claim.id for claim in STUDY.claims if claim.contradicted] == ["C-3"]


def test_allocation_errors_are_told_apart() -> None:
    def each(scheduler: tuple[str, str], more: float) -> dict[str, list[dict[str, float]]]:
        return {
            alert_case(*scheduler, t): [{f"used {s}": t * (1 + more * (t < 30)) for s in range(10)}]
            for t in ALERT_TARGETS
        }

    exact, loose = each(alert.SEDF, 0.0), each(alert.CREDIT, 0.4)
    assert claims.small_and_similar(Results(exact | loose)).outcome == Outcome.HOLDS
    assert claims.three_minutes(Results(exact | loose)).outcome == Outcome.HOLDS
    same = Results(exact | each(alert.CREDIT, 0.0))
    assert claims.small_and_similar(same).outcome == Outcome.FAILS
    assert claims.three_minutes(same).outcome == Outcome.FAILS


def test_every_claim_says_why() -> None:
    assert [claim.id for claim in STUDY.claims] == [f"C-{i}" for i in range(1, 23)]
    for claim in STUDY.claims:
        assert claim.verdict(ANY).evidence


def test_a_chart_for_every_figure_of_the_paper() -> None:
    titles = [chart.title for chart in STUDY.charts(ANY)]
    for figure in range(1, 9):
        assert any(title.startswith(f"Figure {figure}:") for title in titles)
    for chart in STUDY.charts(ANY):
        spec = chart.spec
        assert spec["description"]
        assert chart.experiment in STUDY.experiments
    assert STUDY.charts(Results({})) == []


def test_fitted_cells_are_those_the_notes_name() -> None:
    fitted = [cell for cell in STUDY.seen if STUDY.calibration.fitted_on(cell)]
    assert {cell.scheduler for cell in fitted} == {"bvt"}
    assert len(fitted) == 13
    assert len(STUDY.calibration.constants) <= 6
    for constant in STUDY.calibration.constants:
        assert constant.low <= constant.value <= constant.high


@pytest.fixture(scope="module")
def run() -> Results:
    """A few cases as they are."""
    names = (
        "bvt C=50 1",
        "bvt C=1 1",
        "sedf-nwc xen3.0.3 P=1000 1",
        "xen3.0 C=5 1",
        "credit xen3.0.3",
        "sedf xen3.0.3",
    )
    cases = [case for case in STUDY.cases() if case.name in names]
    assert len(cases) == len(names)
    return Runner(STUDY, StudyEffort(fast=True), RunCache(None)).run(cases)


def test_batches_make_throughput(run: Results) -> None:
    batched, single = "dom0-weight-sweep: bvt C=50 1", "dom0-weight-sweep: bvt C=1 1"
    assert run.mean(batched, "web_throughput") > 1.4 * run.mean(single, "web_throughput")
    assert run.mean(batched, "io_count_per_ex@dom0") > 5 * run.mean(single, "io_count_per_ex@dom0")
    requests = run.combine(lambda io, served: io / served, (single, "io_per_sec@dom0"), (single, "web_throughput"))
    assert isinstance(requests, Interval)
    assert requests.mean == pytest.approx(32.7, rel=0.1), "I/O counts of one request (Tables 1 and 2)"


def test_released_sedf_starves_a_blocking_dom0(run: Results) -> None:
    assert run.mean("dom0-weight-sweep: sedf-nwc xen3.0.3 P=1000 1", "web_throughput") < 100


def test_design_statements(run: Results) -> None:
    assert run.mean("bvt-error: xen3.0 C=5 1", "error_ms") <= 5
    assert run.mean("smp: credit xen3.0.3", "idle_while_waiting") == 0
    assert run.mean("smp: sedf xen3.0.3", "idle_while_waiting") > 0
