"""Studies: what their framework promises, whichever study it is."""

import csv
import json
import math
import re
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

import vcpulab
from support import STUDIES_PAGE, VCPULAB, Vcpulab, examples_of, examples_work, opened, run_vcpulab
from vcpulab.results.cache import RunCache
from vcpulab.results.statistics import Interval, holm, kendall_tau, mape, mser5, paired
from vcpulab_evidence.studies import NAMES, predict, study
from vcpulab_evidence.studies.cells import COLUMNS, Foretold
from vcpulab_evidence.studies.results import Missing, Results
from vcpulab_evidence.studies.runner import Runner, StudyEffort

pytestmark = pytest.mark.slow


def test_mser_cuts_what_has_not_settled() -> None:
    settled = [100.0, 101.0, 99.0, 100.0, 100.5] * 20
    assert mser5(settled) == 0
    assert mser5([10.0, 30.0, 50.0, 70.0, 90.0] * 2 + settled) == 10
    assert mser5([1.0] * 10) == 0, "too short to tell"


def test_mser_never_cuts_more_than_half() -> None:
    assert mser5([float(i) for i in range(100)]) <= 50


def test_paired_differences_see_what_means_do_not() -> None:
    noise = [0.0, 50.0, 100.0, 150.0]
    found = paired([x + y for x, y in zip(noise, (1.0, 1.1, 0.9, 1.0), strict=True)], noise)
    assert found is not None
    assert found.interval.mean == pytest.approx(1.0)
    assert found.p is not None
    assert found.p < 0.001
    assert paired([1.0], [2.0]) == (Interval(-1.0, None, 1), None)
    assert paired([], []) is None


def test_holm_is_at_least_each_probability() -> None:
    ps = [0.001, 0.04, 0.03, 0.5]
    corrected = holm(ps)
    assert corrected == [0.004, 0.09, 0.09, 0.5]
    assert all(c >= p for c, p in zip(corrected, ps, strict=True))


def test_agreement_of_orders_and_values() -> None:
    assert kendall_tau([1, 2, 3, 4], [2, 4, 6, 8]) == 1
    assert kendall_tau([1, 2, 3, 4], [8, 6, 4, 2]) == -1
    assert kendall_tau([1, 1], [2, 3]) is None
    assert mape([0.0, 200.0], [5.0, 150.0]) == 25


def test_results_are_combined_within_replications() -> None:
    results = Results({"a": [{"x": 10.0}, {"x": 40.0}], "b": [{"x": 5.0}, {"x": 20.0}]})
    ratio = results.combine(lambda first, second: first / second, ("a", "x"), ("b", "x"))
    assert ratio == Interval(2.0, 0.0, 2, 0.0)
    with pytest.raises(Missing, match="`c` was not run"):
        results.mean("c", "x")
    with pytest.raises(Missing, match="does not measure `y`"):
        results.mean("a", "y")


@pytest.mark.parametrize("name", NAMES)
def test_study_is_whole(name: str) -> None:
    it = study(name)
    keys = [case.key for case in it.cases()]
    assert len(keys) == len(set(keys))
    assert {case.experiment for case in it.cases()} <= set(it.experiments)
    cells = [cell.key for cell in it.cells]
    assert len(cells) == len(set(cells))
    ids = [claim.id for claim in it.claims]
    assert len(ids) == len(set(ids))
    for constant in it.calibration.constants:
        assert constant.low <= constant.value <= constant.high, constant.name
    for on in it.calibration.cells:
        assert any(cell.value and all(getattr(cell, c) == v for c, v in on.items()) for cell in it.cells), on


@pytest.mark.parametrize("name", NAMES)
def test_every_case_is_a_valid_scenario(name: str) -> None:
    it = study(name)
    for case in it.cases():
        assert it.scenario(case).seed == it.seed
        it.scenario(case, fast=True)


def test_units_survive_a_writer_that_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "units.jsonl"
    units = RunCache(file)
    units.add("one", "case", 0, {"x": 1.5})
    file.write_text(file.read_text() + '{"key": "two", "metrics": {"x": ')
    again = RunCache(file)
    assert again.get("one") == {"x": 1.5}
    assert again.get("two") is None
    again.add("two", "case", 1, {"x": 2.5})
    assert RunCache(file).get("two") == {"x": 2.5}


def test_replications_are_added_until_the_interval_is_tight() -> None:
    it = study("cherkasova2007")
    case = next(case for case in it.cases() if case.precise and not case.prepare)
    case = replace(case, changes={**case.changes, "run.duration": "300ms", "run.sample": "10ms"})
    tight = Runner(replace(it, replications=3), StudyEffort(precision=0.05, replications_max=12), RunCache(None))
    results = tight.run([case])
    interval = results.interval(case.key, case.precise[0])
    assert interval.n == 12 or (interval.half_width or math.inf) <= 0.05 * interval.mean


def as_written(scenario: vcpulab.Scenario, _: object) -> vcpulab.Scenario:
    """The scenario of a case, without the trials that search its load."""
    return scenario


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study whose run was killed, and run again; beside it the others.

    Cases that search their load by trials have results without trials: these take most of the time, and have tests of
    their own.
    """
    folder = tmp_path_factory.mktemp("study")
    for name in NAMES:
        kept = folder / "st" / f"{name}-fast"
        kept.mkdir(parents=True)
        cases = [replace(case, prepare=as_written) for case in study(name).cases() if case.prepare]
        Runner(study(name), StudyEffort(fast=True), RunCache(kept / "units.jsonl")).run(cases)
    command = [str(VCPULAB), "study", "run", "cherkasova2007", "--fast", "--out", "st"]
    units = folder / "st" / "cherkasova2007-fast" / "units.jsonl"
    begun = units.read_bytes().count(b"\n")
    for lines in (begun + 3, begun + 10):
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL) as process:
            while process.poll() is None and units.read_bytes().count(b"\n") < lines:
                time.sleep(0.02)
            process.kill()
    for arguments in (command[1:], ["study", "report", "all", "--fast", "--out", "st"]):
        done = run_vcpulab(arguments, folder)
        assert done.returncode == 0, done.stderr
    return folder / "st" / "cherkasova2007-fast"


def test_killed_run_goes_on_with_nothing_lost_or_doubled(ran: Path) -> None:
    lines = [json.loads(line) for line in (ran / "units.jsonl").read_text().splitlines()]
    keys = [line["key"] for line in lines]
    assert len(keys) == len(set(keys))
    it = study("cherkasova2007")
    wanted = {(case.key, k) for case in it.cases() for k in range(2) if case.main or case.precise}
    assert wanted <= {(line["case"], line["replication"]) for line in lines}
    again = RunCache(None)
    cases = {case.key: case for case in it.cases() if not case.prepare}
    line = next(line for line in lines if line["case"] in cases)
    Runner(it, StudyEffort(fast=True), again).run([cases[line["case"]]])
    assert again.get(line["key"]) == line["metrics"], "an interrupted run has the same results"


def test_prediction_has_a_row_for_every_cell(ran: Path) -> None:
    out = ran.parent.parent
    done = run_vcpulab(["study", "predict", "cherkasova2007", "--fast", "--results", "st", "--out", "cells.csv"], out)
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader((out / "cells.csv").read_text().splitlines()))
    assert list(rows[0]) == [*COLUMNS, "ci_lo", "ci_hi", "role"]
    it = study("cherkasova2007")
    assert len(rows) == len(it.cells)
    for row, cell in zip(rows, it.cells, strict=True):
        assert [row[name] for name in COLUMNS[:9]] == list(cell)[:9]
        assert row["role"] in ("fitted", "predicted", "blind")
        if row["value"]:
            assert float(row["ci_lo"]) <= float(row["value"]) <= float(row["ci_hi"])


@pytest.mark.parametrize("name", ["list", "show", "run", "report", "predict", "fit", "overview"])
def test_examples_in_the_help_work(command: Vcpulab, tmp_path: Path, ran: Path, name: str) -> None:
    shutil.copytree(ran.parent, tmp_path / "out" / "study")  # what is done is not run again
    for arguments in examples_of(command, f"study {name}"):
        result = command(*arguments)
        assert result.returncode == 0, result.stderr


def test_examples_of_the_guide_work(ran: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ran.parent, tmp_path / "out" / "study")
    examples_work(STUDIES_PAGE, tmp_path, monkeypatch)


@pytest.mark.parametrize("name", NAMES)
def test_blind_cells_were_foretold_and_are_never_fitted(name: str) -> None:
    it = study(name)
    assert {cell.key for cell in it.blind} == set(it.foretold)
    assert not set(it.blind) & set(it.seen), "a fit takes its cells from those seen"
    rows = {row.cell.key: row for row in predict.predictions(it, Results({}))}
    assert all((row.role == "blind") == (row.foretold is not None) for row in rows.values())


def test_blind_cells_have_two_scores_of_their_own() -> None:
    """What was said before they were known, and what this version says."""
    blind = study("cherkasova2007").blind[0]
    row = predict.Prediction(blind, Interval(30.0, 1.0, 5), "blind", "", foretold=Foretold(28.0, 27.0, 29.0))
    found = {score.role: score.mape for score in predict.scores([row])}
    assert blind.number == 27
    assert found == pytest.approx({"blind": 100 / 27, "blind, since": 300 / 27})


SAID_OF_BLIND = {
    "cherkasova2007": [
        (
            "{:,.0f} a\nsecond were foretold, {} were measured",
            "sedf-nwc",
            "period_ms=10;dom0_to_dom1=1",
            "ex_per_sec@dom0",
        ),
        (
            "with {1} I/Os where {0:.1f} were foretold",
            "sedf-nwc",
            "period_ms=10;dom0_to_dom1=1",
            "io_count_per_ex@dom0",
        ),
    ],
    "venkatesh2015": [
        ("({:.0f} of\n478 a second)", "credit2", "weights=256:256:256", "sysbench_transactions@dom2"),
    ],
    "benevenuto2006": [
        ("at about {1} connections/s, here at {0:,.0f}", "bvt", "", "saturation_rate"),
        ("foretold to take {:.1f} % longer", "bvt", "", "exec_time_increase_over_linux"),
        ("took about {1} %", "bvt", "", "exec_time_increase_over_linux"),
    ],
}


@pytest.mark.parametrize("name", SAID_OF_BLIND)
def test_notes_on_blind_cells_say_their_numbers(name: str) -> None:
    it = study(name)
    for text, scheduler, config, metric in SAID_OF_BLIND[name]:
        cell = next(
            c for c in it.blind if (c.scheduler, c.metric) == (scheduler, metric) and c.config.startswith(config)
        )
        assert text.format(it.foretold[cell.key].value, cell.value) in it.blind_notes, text


def test_notes_on_moss_say_its_numbers() -> None:
    it = study("devine2010")
    moss = [c for c in it.blind if (c.load, c.metric, c.source) == ("users=500", "throughput", "Table 5.11")]
    published = sorted(c.number or 0 for c in moss)
    foretold = sorted(it.foretold[c.key].value for c in moss)
    assert f"He measured {published[0]:.0f} to {published[-1]:.0f} requests/s" in it.blind_notes
    assert f"{foretold[0]:.0f} to {foretold[-1]:.0f} requests/s were foretold" in it.blind_notes
    assert {c.config for c in moss if (c.number or 0) < 12} == {"credit-512", "credit-2048"}
    deviations = {c.config: c.number or 0 for c in it.blind if c.source == "Table 5.12" and c.load == "users=500"}
    means = {c.config: c.number or 0 for c in moss}
    said = [f"{of['credit-256']:.0f} and {of['credit-1024']:.0f}" for of in (deviations, means)]
    assert f"standard deviations of {said[0]} requests/s around means of {said[1]}" in it.blind_notes


CLICK = """
<script type="module">
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
const problems = [];
for (const kind of ["error", "unhandledrejection"]) window.addEventListener(kind, (event) => problems.push(kind));
const complain = console.error;
console.error = (...said) => { problems.push(said.join(" ")); complain(...said); };
while (document.querySelector("figure:not([data-drawn])")) await wait(50);
for (const link of document.querySelectorAll("nav a")) {
  link.click();
  await wait(20);
  if (!document.querySelector(":target")) problems.push("nothing at " + link.hash);
}
for (const fold of document.querySelectorAll("details")) { fold.querySelector("summary").click(); await wait(5); }
const shut = [...document.querySelectorAll("details")].filter((fold) => !fold.open).length;
document.body.dataset.problems = problems.length + shut + " " + problems.join("; ");
</script>
"""


@pytest.mark.parametrize("name", NAMES)
def test_report_opens_in_a_browser_without_an_error(name: str, ran: Path, browser: str) -> None:
    page = ran.with_name(f"{name}-fast") / "report.html"
    clicked = page.with_name("clicked.html")
    text = page.read_text()
    clicked.write_text(text.replace("<main>", f"{CLICK}<main>", 1))
    drawn = opened(browser, clicked)
    assert re.search(r'data-problems="0 "', drawn), re.findall(r'data-problems="[^"]*"', drawn)
    assert drawn.count('data-drawn=""') == drawn.count("<figure ")
    assert "could not be drawn" not in re.sub(r"<script.*?</script>", "", drawn, flags=re.DOTALL)


@pytest.mark.parametrize("name", NAMES)
def test_report_needs_nothing_else(name: str, ran: Path) -> None:
    folder = ran.with_name(f"{name}-fast")
    markup = re.sub(r"<script.*?</script>", "", (folder / "report.html").read_text(), flags=re.DOTALL)
    assert not re.search(r"""\ssrc\s*=|href\s*=\s*"(?!data:|#)""", markup)
    drawings = re.findall(r"!\[[^]]*\]\(([^)]+)\)", (folder / "report.md").read_text())
    assert drawings
    for drawing in drawings:
        assert (folder / drawing).read_text().startswith("<svg")


@pytest.mark.parametrize("name", NAMES)
def test_report_says_what_stands_in_the_way(name: str, ran: Path) -> None:
    folder = ran.with_name(f"{name}-fast")
    assert study(name).limits.strip() in (folder / "report.md").read_text()
    assert "What does not agree, and why</h2>" in (folder / "report.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "nobody2000"), "no study `nobody2000`; there are: cherkasova2007"),
        (("run", "cherkasova2007", "--only", "nothing"), "--only: found `nothing`; allowed: dom0-weight-sweep"),
        (("run", "cherkasova2007", "--precision", "none"), "--precision: found `none`; allowed: more than 0%"),
        (("run", "cherkasova2007", "--precision", "0"), "--precision: found `0`; allowed: more than 0%"),
        (("run", "cherkasova2007", "--precision", "nan"), "--precision: found `nan`; allowed: more than 0%"),
        (("fit", "cherkasova2007", "--out", "x.toml", "--samples", "-1"), "--samples: found `-1`; allowed"),
    ],
)
def test_wrong_usage_is_said(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = run_vcpulab(["study", *arguments], tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_scores_keep_roles_apart_and_leave_doubtful_cells_out() -> None:
    cell = study("cherkasova2007").cells[0]

    def row(value: str, simulated: float, role: str, doubt: str = "") -> predict.Prediction:
        return predict.Prediction(cell._replace(value=value), Interval(simulated, 1.0, 5), role, "", doubt, 5.0)

    rows = [
        row("100", 104.0, "predicted"),
        row("200", 210.0, "predicted"),
        row("300", 300.0, "fitted"),
        row("1", 1e6, "predicted", "a misprint"),
    ]
    predicted, fitted = predict.scores(rows)
    assert (predicted.cells, predicted.tau, predicted.within) == (2, 1.0, "1 of 2")
    assert predicted.mape == pytest.approx(4.5)
    assert (fitted.role, fitted.cells, fitted.tau, fitted.mape) == ("fitted", 1, None, 0.0)


def test_published_intervals_are_found_in_the_tables_where_they_stand() -> None:
    devine = study("devine2010")
    widths = [
        row.half_width
        for row in predict.predictions(devine, Results({}))
        if row.cell.metric == "throughput" and row.cell.source == "Table 5.1" and row.cell.value
    ]
    assert len(widths) == 50, "ten of them blind"
    assert widths[0] == 25.27
    assert None not in widths
