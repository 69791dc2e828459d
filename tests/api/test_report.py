"""The demo and its report: what it says, that it needs nothing else, and that a browser draws it."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl
import pytest

import vcpulab
from support import examples_of, opened, run_vcpulab
from vcpulab.results.timeline import slices
from vcpulab.show import drawing, plots
from vcpulab_evidence.studies import demo as experiment

# Throughput and CPU time of all runs; for each run its waits, its wake-ups and its timeline.
CHARTS = 2 + 3 * len(experiment.scenarios())

# Zooms into the last chart with the wheel and writes its axis labels, before and after, into the page.
ZOOM = """
<script type="module">
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
while (document.querySelector("figure:not([data-drawn])")) await wait(50);
const figure = [...document.querySelectorAll("figure")].at(-1);
figure.scrollIntoView();
const labels = () => [...figure.querySelectorAll(".role-axis-label")].map((group) => group.textContent).join(" ");
document.body.dataset.before = labels();
const box = figure.querySelector(".mark-rect").getBoundingClientRect();
const at = { clientX: box.x + box.width / 2, clientY: box.y + box.height / 2 };
for (let turn = 0; turn < 5; turn++) {
  const target = document.elementFromPoint(at.clientX, at.clientY);
  target.dispatchEvent(new WheelEvent("wheel", { ...at, deltaY: -200, bubbles: true, cancelable: true }));
  await wait(100);
}
document.body.dataset.after = labels();
</script>
"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which the example of the help was run; its output is in `stdout`."""
    directory = tmp_path_factory.mktemp("demo")

    def command(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return run_vcpulab(arguments, directory)

    (example,) = examples_of(command, "demo")
    result = command(*example)
    assert result.returncode == 0, result.stderr
    (directory / "stdout").write_text(result.stdout)
    return directory


def test_charts_beside_published_values_show_what_was_published(hogs: vcpulab.Run) -> None:
    runs = {"now": hogs}
    assert {row["group"] for row in bars_of(plots.apps(runs))} == {"a", "b"}
    rows = bars_of(plots.apps(runs, {"now": {"b.throughput": 600.0}}))
    assert [(row["group"], row["label"]) for row in rows] == [("b", "now"), ("b", "now (published)")]


def bars_of(chart: alt.TopLevelMixin) -> list[dict[str, Any]]:
    (rows,) = chart.to_dict()["datasets"].values()
    return list(rows)


def page_of(demo: Path) -> Path:
    return demo / "out" / "demo" / "report.html"


def test_demo_compares_with_every_published_row(demo: Path) -> None:
    printed = (demo / "stdout").read_text()
    for label in experiment.scenarios():
        assert re.search(rf"{re.escape(label)} .* ± ", printed)
    for cell in experiment.STUDY.seen:
        if cell.value and cell.source in ("Table 1", "Table 2"):
            assert re.search(rf"{cell.scheduler} .*\(published\).* {re.escape(cell.value)} ", printed)
    assert printed.splitlines()[-1] == "report: out/demo/report.html"


def test_published_rows_stand_under_the_same_rows_simulated(demo: Path) -> None:
    printed = [line.strip() for line in (demo / "stdout").read_text().splitlines()]
    compared = 0
    for label in experiment.scenarios():
        simulated = next(i for i, line in enumerate(printed) if re.match(rf"{re.escape(label)}  ", line))
        if label.startswith(("bvt", "sedf")):
            below = printed[simulated + 1]
            assert below.startswith(f"{label} (published)  ")
            here, there = (float(re.split(r" {2,}", line)[1].split(" ")[0]) for line in (printed[simulated], below))
            assert here == pytest.approx(there, rel=0.1), label
            compared += 1
    assert compared == 6


def test_demo_runs_the_study_as_described() -> None:
    for scenario in experiment.scenarios().values():
        document = scenario.to_dict()
        assert document["run"]["replications"] == 5
        assert (document["host"]["profile"], document["host"]["pcpus"]) == ("lp200r", 1)
        assert not any("weight" in domain for domain in document["domain"].values()), "equal weights: the default"


def test_report_needs_nothing_else(demo: Path) -> None:
    page = page_of(demo).read_text()
    markup = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r"""(src|href)\s*=\s*(?!"data:)""", markup)
    assert page.count('<script type="module">') == 1, "the library is there once"


def test_report_can_be_heard(demo: Path) -> None:
    page = page_of(demo).read_text()
    assert '<html lang="en">' in page
    labels = re.findall(r'<figure aria-label="([^"]+)">', page)
    assert len(labels) == page.count("<figure ") == CHARTS
    assert "round-robin v1" in labels[0]


def test_browser_draws_every_chart(demo: Path, browser: str) -> None:
    page = opened(browser, page_of(demo))
    assert page.count('data-drawn=""') == page.count("<figure ") == CHARTS
    drawn = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert drawn.count("<svg ") == CHARTS
    assert "could not be drawn" not in drawn


def test_timeline_zooms(demo: Path, browser: str) -> None:
    report = page_of(demo)
    zooming = report.with_name("zoom.html")
    zooming.write_text(report.read_text() + ZOOM)
    page = opened(browser, zooming)
    before, after = (re.search(rf'data-{when}="([^"]*)"', page) for when in ("before", "after"))
    assert before is not None
    assert after is not None
    assert "2,050" in before[1] or "2,060" in before[1]
    assert before[1] != after[1]
    assert "2,000" not in after[1], "the start of the window has moved out of sight"


def test_slices_fill_the_window_without_overlap(hogs: vcpulab.Run) -> None:
    start, end = 30_000_000, 230_000_000
    cut = slices(hogs, 0, start, end)
    assert cut["start_ns"][0] == start
    assert cut["end_ns"][-1] == end
    assert cut["start_ns"].to_list()[1:] == cut["end_ns"].to_list()[:-1]


def test_slices_agree_with_the_counters(hogs: vcpulab.Run) -> None:
    scenario = hogs.scenario
    cut = slices(hogs, 1, scenario.warmup_ns, scenario.warmup_ns + scenario.duration_ns)
    ran = cut.filter(pl.col("domain") >= 0).group_by("domain").agg((pl.col("end_ns") - pl.col("start_ns")).sum())
    counted = hogs.df_domains().filter(replication=1).select("number", "running_ns")
    assert dict(ran.iter_rows()) == dict(counted.iter_rows())


def test_charts_are_complete(hogs: vcpulab.Run) -> None:
    for chart in (hogs.plot.domains(), hogs.plot.apps(), hogs.plot.timeline(window_ms=100)):
        spec = chart.to_dict()
        assert spec["description"]
        json.dumps(spec)
    assert "<table>" in hogs._repr_html_()


def test_a_legend_shows_the_dashes_that_it_explains() -> None:
    run = vcpulab.run(vcpulab.Scenario.starter().change({"run.duration": "200ms", "run.replications": 1}))
    (drawn,) = drawing.pictures("svg", [run.plot.wakeups().to_dict()])
    dashed = re.findall(
        r'role-legend-symbol"[^>]*><path[^>]*stroke="(\w+)"[^>]*stroke-dasharray="([\d,]+)"', drawn.decode()
    )
    assert len(dashed) == len(set(dashed)) == run.df_wakeup_means()["cause"].n_unique() > 1
    assert {colour for colour, _ in dashed} == {"currentColor"}


def test_a_timeline_ends_where_a_browser_would_choke() -> None:
    busy = vcpulab.Scenario.from_dict(
        {
            "run": {"duration": "200ms", "warmup": "0s"},
            "host": {"profile": "exact", "pcpus": 64, "scheduler": "credit"},
            "domain": {
                "d": {"vcpus": 64, "app": [{"kind": "periodic", "run": "50us", "period": "100us", "instance": 64}]}
            },
        }
    )
    spec = vcpulab.run(busy, decisions=True).plot.timeline().to_dict()
    (values,) = spec["datasets"].values()
    assert 5_000 < len(values) <= 20_000 + 64
    start, end = spec["encoding"]["x"]["scale"]["domain"]
    assert 0 == start < end < 200


def test_a_timeline_needs_a_trace(hogs: vcpulab.Run) -> None:
    untraced = vcpulab.run(hogs.scenario)
    with pytest.raises(ValueError, match="decisions=True"):
        untraced.plot.timeline()
