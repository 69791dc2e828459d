"""`vcpulab validate` of recordings of Xen: twins in the settings of others, and what chance gives."""

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from support import ROOT, Vcpulab
from vcpulab.results.cache import RunCache
from vcpulab.twin.decision_costs import shortest_wait_ns
from vcpulab_evidence.validation import validate
from vcpulab_evidence.validation.xen import Xen
from vcpulab_evidence.validation.xen.agreement import BARS, WHAT_IF, Agreement, Held, quantile
from vcpulab_evidence.validation.xen.chance import spread
from vcpulab_evidence.validation.xen.recording import Recorded, find, read
from vcpulab_evidence.validation.xen.settings import changes
from vcpulab_evidence.validation.xen.twin_runs import Unit

REAL = ROOT / "tests" / "recordings"
WEIGHTS = ("xen4.17-credit-weights", "xen4.17-credit2-weights")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which runs are kept: several tests validate the same recordings."""
    return tmp_path_factory.mktemp("results")


@pytest.fixture(scope="module")
def weights(results: Path) -> Agreement:
    return Xen().validate([REAL / name for name in WEIGHTS], store=RunCache(results / "units.jsonl"))


@pytest.mark.usefixtures("weights")
def test_every_ordered_pair_of_the_same_guests_is_predicted(command: Vcpulab, tmp_path: Path, results: Path) -> None:
    for name in (*WEIGHTS, "xen4.17-credit-mixed"):
        shutil.copytree(REAL / name, tmp_path / "recordings" / name)
    result = command("validate", "recordings", "--format", "json", "--report", "page.html", "--results", str(results))
    report = json.loads(result.stdout)["xen"]
    assert result.returncode == (0 if report["passed"] else 1)
    pairs = {(one["kind"], one["demands"], one["setting"]) for one in report["cells"]}
    credit, credit2 = WEIGHTS
    assert pairs == {
        *(("own setting", name, name) for name in (*WEIGHTS, "xen4.17-credit-mixed")),
        ("what-if", credit, credit2),
        ("what-if", credit2, credit),
    }
    assert {one["changed"] for one in report["cells"] if one["kind"] == "what-if"} == {"scheduler"}
    # These guests ask nobody.
    assert {one["metric"] for one in report["cells"]} == set(BARS) - {"loops"}
    page = (tmp_path / "page.html").read_text()
    assert "Predicted against recorded" in page
    assert "twin of xen4.17-credit2-weights" in page


@pytest.mark.usefixtures("weights")
def test_the_answer_begins_with_the_verdict_on_each_metric(command: Vcpulab, results: Path) -> None:
    lines = command("validate", *(str(REAL / name) for name in WEIGHTS), "--results", str(results)).stdout.splitlines()
    assert lines[0].startswith("Xen: 2 recordings, 2 what-ifs with ")
    assert lines[1].startswith("what-if: ")
    assert any(" shares " in line and "1 points in 90 %" in line for line in lines[:10])


@pytest.mark.usefixtures("weights")
def test_a_narrow_terminal_shows_which_metric_failed(command: Vcpulab, results: Path) -> None:
    words = ["validate", *(str(REAL / name) for name in WEIGHTS), "--results", str(results)]
    shown = command(*words, COLUMNS="80").stdout.splitlines()
    assert max(map(len, shown)) <= 80
    assert any(" median waits " in line and (" passed " in line or " failed " in line) for line in shown[:12])


def test_every_prediction_is_a_row(command: Vcpulab, weights: Agreement, results: Path) -> None:
    words = ["validate", *(str(REAL / name) for name in WEIGHTS), "--results", str(results)]
    lines = command(*words, "--format", "csv").stdout.splitlines()
    assert lines[0].startswith("kind,guests,demands,setting,scheduler_before,scheduler,changed,of,metric,recorded,")
    assert len(lines) == 1 + len(weights.cells)


def test_twins_in_the_setting_of_another_are_near_what_was_recorded(weights: Agreement) -> None:
    """Loose enough for chance, tight enough that the setting must have been taken over."""
    shares = {(cell.setting, cell.thing): cell for cell in weights.cells_of(WHAT_IF, "share")}
    assert len(shares) == 8
    assert all(abs(cell.off) < 4 for cell in shares.values())
    doubled = shares["xen4.17-credit2-weights", "hogB"]
    assert doubled.predicted > 1.8 * shares["xen4.17-credit2-weights", "hogA"].predicted
    assert {signs.metric: signs.wrong for signs in weights.signs}["all"] == 0


def test_weights_of_the_other_are_taken_over(tmp_path: Path) -> None:
    """The same recording with other weights in its listing is of another setting, in which guests share otherwise."""
    shutil.copytree(REAL / "xen4.17-credit2-weights", tmp_path / "as-recorded")
    shutil.copytree(REAL / "xen4.17-credit2-weights", tmp_path / "swapped")
    listing = tmp_path / "swapped" / "sched.txt"
    swapped = listing.read_text().replace("    256    0\nhogB", "   4096    0\nhogB")
    assert swapped != listing.read_text()
    listing.write_text(swapped)
    found = Xen().validate(find(tmp_path))
    cell = next(c for c in found.cells_of(WHAT_IF, "share") if c.thing == "hogA" and c.setting == "swapped")
    assert cell.changed == "weight"
    assert cell.predicted > 2 * cell.recorded, "sixteen times the weight, of a recording without it"
    assert not found.passed


def test_an_ended_validation_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "units.jsonl"
    folders = [REAL / name for name in WEIGHTS]
    told: list[float] = []

    def few(fraction: float) -> bool:
        told.append(fraction)
        return fraction < 0.3

    with pytest.raises(KeyboardInterrupt):
        validate(folders, store=store, jobs=1, progress=few)
    kept = len(store.read_text().splitlines())
    assert kept > 0
    whole = validate(folders, store=store)
    assert len(store.read_text().splitlines()) > kept
    monkeypatch.setattr(Unit, "measure", lambda *_: pytest.fail("what was measured is measured again"))
    again = validate(folders, store=store)
    assert again.to_dict() == whole.to_dict()
    assert validate(folders, store=store, jobs=2).to_dict() == whole.to_dict()


def test_who_the_guests_are_does_not_depend_on_weights_or_when_they_began(tmp_path: Path) -> None:
    shutil.copytree(REAL / WEIGHTS[0], tmp_path / "a")
    shutil.copytree(REAL / WEIGHTS[0], tmp_path / "b")
    cfg = tmp_path / "b" / "slp.cfg"
    cfg.write_text(cfg.read_text().replace("wt=3", "wt=4") + "weight=99\n")
    assert read(tmp_path / "a").guests == read(tmp_path / "b").guests
    cfg.write_text(cfg.read_text().replace("wk=100000", "wk=100001"))
    assert read(tmp_path / "a").guests != read(tmp_path / "b").guests
    (tmp_path / "b" / "experiment.toml").write_text('guests_kind = "weights"\nseed = 7\n')
    assert (read(tmp_path / "b").kind, read(tmp_path / "b").guests) == ("weights", "kind weights")


def test_a_wrong_experiment_names_file_field_value_and_what_is_allowed(command: Vcpulab, tmp_path: Path) -> None:
    shutil.copytree(REAL / WEIGHTS[0], tmp_path / "a")
    (tmp_path / "a" / "experiment.toml").write_text("guests_kind = 7\n")
    result = command("validate", "a")
    assert result.returncode == 2
    assert "a/experiment.toml: guests_kind: found 7; allowed: a text" in result.stderr


def test_what_changed_is_said_in_words() -> None:
    credit, credit2 = (read(REAL / name).setting for name in WEIGHTS)
    assert changes(credit, credit2) == ["scheduler"]
    dom0 = {"dom0": {**credit.domains["dom0"], "weight": 1024}}
    assert changes(credit, replace(credit, domains={**credit.domains, **dom0})) == ["Dom0's weight"]
    assert changes(credit, replace(credit, host={**credit.host, "tslice_ms": 5})) == ["slice"]
    assert changes(credit, credit) == []
    both = replace(credit, host={**credit.host, "tslice_ms": 5, "ratelimit_us": 5000})
    assert changes(credit, both) == ["rate limit", "slice"], "in one order, whatever the hashes of texts are"


def test_the_shortest_wait_is_none_that_clocks_of_two_pcpus_make() -> None:
    summary = json.loads(json.dumps(read(REAL / WEIGHTS[0]).whole.summary))
    assert shortest_wait_ns(summary) == pytest.approx(9_000, abs=300)
    for vcpu in summary["vcpus"]:
        waits = vcpu["wake_latency"]["quantiles_ns"]
        waits[:4] = [63] * len(waits[:4])
    assert shortest_wait_ns(summary) == pytest.approx(9_000, abs=300)


def test_the_shortest_wait_is_that_of_the_scheduler_in_question(weights: Agreement) -> None:
    """Credit2 takes twice as long to decide, so most of Dom0's and the sleeper's waits are no shorter."""
    sleepers = {cell.setting: cell for cell in weights.cells_of(WHAT_IF, "wait_median") if cell.thing == "slp"}
    credit, credit2 = (sleepers[name].predicted for name in WEIGHTS)
    assert credit == pytest.approx(9, rel=0.05)
    assert credit2 > 17


def test_a_wait_is_off_by_as_many_recorded_ones_as_lie_between() -> None:
    first = read(REAL / WEIGHTS[0])
    assert first.rank_off("slp", "wait_median", first.values["slp", "wait_median"]) == 0
    assert first.rank_off("slp", "wait_median", 0.0) == pytest.approx(50, abs=1), "none is as short"
    assert first.rank_off("slp", "wait_p90", 1e9) == pytest.approx(10)
    assert first.rank_off("slp", "share", 10) is None


def test_request_loops_are_who_asks_and_who_is_asked() -> None:
    kept = read(ROOT / "evidence" / "recordings" / "xen" / "xen4.17-credit2-requests-default")
    assert kept.loops == {"client", "server"}
    assert {of for of, metric in kept.values if metric == "loops"} == kept.loops
    assert kept.answering == {"client", "server", "dom0"}
    assert {of for of, metric in kept.values if metric == "throughput"} == {"hogA"}


def recorded(seed_value: float, *, setting: str = "one", halves: tuple[float, float] | None = None) -> Recorded:
    """As much of a recording as chance is told from."""
    of = ("host", "switches")
    return cast(
        Recorded,
        SimpleNamespace(
            guests="g",
            setting=SimpleNamespace(key=setting, scheduler="credit"),
            values={of: seed_value},
            halves=({of: halves[0]}, {of: halves[1]}) if halves else None,
        ),
    )


def test_chance_is_what_seeds_differ_by() -> None:
    found = spread([recorded(90), recorded(100), recorded(110), recorded(500, setting="two")])
    chance = found.by_cell["g", "credit", "host", "switches"]
    assert (chance.evidence, chance.degrees) == ("seeds", 2)
    assert chance.deviation == pytest.approx(10), "% of the mean, 100"
    assert chance.half_width == pytest.approx(4.3027 * 10, rel=1e-3)
    assert sorted(found.apart["switches"]["seeds"]) == pytest.approx([100 / 11, 10, 200 / 11])


def test_without_seeds_halves_stand_in() -> None:
    found = spread([recorded(100, halves=(90, 110))])
    chance = found.by_cell["g", "credit", "host", "switches"]
    assert (chance.evidence, chance.degrees) == ("halves", 1)
    assert chance.deviation == pytest.approx(10), "a half has a standard deviation of 14.1, the whole of 10"
    assert found.apart["switches"]["halves"] == pytest.approx([100 * 20 / 110 / math.sqrt(2)])


def test_bars_and_quantiles() -> None:
    assert [quantile(list(range(1, 11)), part) for part in (0.5, 0.9, 1.0)] == [5, 9, 10]
    assert str(BARS["switches"]) == "5 % in 50 %, 10 % in 90 %"
    assert str(BARS["wait_p90"]) == "25 % in 90 % beyond chance"


def test_a_bar_is_reached_by_as_many_as_it_says(weights: Agreement) -> None:
    model = weights.cells_of(WHAT_IF, "share")[0]

    def off(by: float) -> Held:
        return replace(model, off=by, chance=5.0)

    enough = weights.judge(WHAT_IF, "share", [off(0.9)] * 9 + [off(1.1)])
    assert (enough.passed, enough.reached) == (True, [90.0])
    assert not weights.judge(WHAT_IF, "share", [off(0.9)] * 8 + [off(1.1)] * 2).passed, "chance forgives no share"
    median = [replace(cell, metric="wait_median") for cell in (off(21), off(4))]
    assert [cell.within(20) for cell in median] == [False, True]
    assert replace(median[0], chance=22.0).within(20)


def test_values_are_kept_by_what_they_depend_on() -> None:
    credit, credit2 = (read(REAL / name) for name in WEIGHTS)
    unit = Unit(credit, credit2)
    span_ns = credit2.span_ns + 1_000_000
    longer = {**credit2.whole.report, "summary": {**credit2.whole.summary, "span_ns": span_ns}}
    longer_one = replace(credit2, whole=replace(credit2.whole, report=longer))
    assert (longer_one.span_ns, unit.key) == (span_ns, Unit(credit, longer_one).key), (
        "a millisecond is none of a setting"
    )
    assert unit.key != Unit(credit, replace(credit2, setting=credit.setting)).key
    assert unit.done(RunCache(None)) is None
