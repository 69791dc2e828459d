"""Forty VMs in a terminal: alike ones in a row, what changes before the rest."""

import io
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.console import Console

import vcpulab
from forty import FORTY
from support import ROOT, Vcpulab
from vcpulab.advice.capacity.varying import growth
from vcpulab.advice.compare import beside
from vcpulab.advice.lateness import late
from vcpulab.advice.lint.host import Host
from vcpulab.advice.lint.pinning import pinning_leaves_idle
from vcpulab.advice.starvation import starved
from vcpulab.advice.tuning.goals import goal
from vcpulab.advice.tuning.parameters import space
from vcpulab.errors import RequestError
from vcpulab.results.addresses import in_short, slos
from vcpulab.scenario.alike import groups
from vcpulab.scenario.settings import apply
from vcpulab.show.charts import differences, palette
from vcpulab.show.folded import View, things
from vcpulab.show.terminal import rendered

LINES_MAX = 40


@pytest.fixture
def forty(tmp_path: Path) -> str:
    (tmp_path / "forty.toml").write_text(FORTY)
    return "forty.toml"


def rows(text: str) -> dict[str, str]:
    """The first cell of each line of a table to the line."""
    return {re.split(r"\s{2,}", line[1:])[0]: line for line in text.splitlines() if line.startswith(" ")}


def test_alike_domains_differ_in_their_names_alone() -> None:
    scenario = vcpulab.Scenario.from_toml(FORTY)
    assert [len(group) for group in groups(scenario)] == [1, 1, 15, 12, 12]
    for change in ({"domain.batch03.weight": 99}, {"domain.batch03.affinity": "1"}):
        apart = groups(scenario.change(change))
        assert ["batch03"] in apart
        assert [len(group) for group in apart] == [1, 1, 15, 11, 1, 12]
    pause = vcpulab.Scenario.from_toml(FORTY + '[[action]]\nat = "1ms"\nop = "pause"\ndomain = "batch12"\n')
    assert ["batch12"] in groups(pause)
    assert len(groups(scenario, pause)[3]) == 11, "alike in both"


MANY = """\
run = { duration = "1ms", warmup = "0s", sample = "0s" }
host = { profile = "exact", pcpus = 2, scheduler = "credit" }
[domain.dom0]
driver_domain = true
[domain.web]
count = 20
nic = { driver_domain = "dom0" }
app = [{ kind = "web-server" }]
[client.users]
kind = "open-loop"
server = "web"
rate = 10
[domain.batch]
count = 20
app = [{ kind = "hog" }]
"""


def steps(work: Callable[[vcpulab.Run], object], run: vcpulab.Run) -> int:
    """The calls of functions that some work makes: a time that no machine changes."""
    made = 0

    def count(_frame: object, event: str, _what: object) -> None:
        nonlocal made
        made += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work(run)
    finally:
        sys.setprofile(None)
    return made


@pytest.mark.parametrize(
    "work",
    [
        lambda run: [one.table() for one in things(run, View())],
        starved,
        late,
        lambda run: groups(run.scenario),
        lambda run: vcpulab.bounds(run.scenario),
        lambda run: [*pinning_leaves_idle(Host(run.scenario, run))],
    ],
)
def test_what_is_shown_of_many_domains_takes_time_for_each_alone(work: Callable[[vcpulab.Run], object]) -> None:
    first, *runs = (vcpulab.run(vcpulab.Scenario.from_toml(MANY.replace("20", str(count)))) for count in (20, 20, 80))
    work(first)  # which imports
    few, many = (steps(work, run) for run in runs)
    assert many < 5 * few, "four times as many domains"


SHORT = """\
host = { profile = "exact", pcpus = 4, scheduler = "credit" }
[domain.dom0]
driver_domain = true
[domain.web]
count = 2
nic = { driver_domain = "dom0" }
app = [{ kind = "web-server" }]
[domain.batch]
count = 10
weight = 256 # usual
[domain.batch02]
cap = 50
[client.users]
kind = "open-loop"
server = "web"
rate = 5
"""


def test_the_name_of_a_table_with_a_count_sets_all_copies() -> None:
    scenario = vcpulab.Scenario.from_toml(SHORT)
    changed = apply(scenario, ["batch.weight=128", "batch03.weight=64", "users.rate=7", "batch.cap="])
    assert changed.changes["domain.batch10.weight"] == 128
    written = changed.scenario.written()
    assert [written["domain"][f"batch{number:02}"]["weight"] for number in (1, 2, 3, 10)] == [128, 128, 64, 128]
    assert [client["rate"] for client in written["client"].values()] == [7, 7]
    assert "cap" not in written["domain"]["batch02"]
    assert "rate = 7" in changed.scenario.text
    assert "weight = 128 # usual" in changed.scenario.text
    assert "[domain.batch03]\nweight = 64\n" in changed.scenario.text, "one of them differs"
    assert apply(scenario, ["domain.batch.weight=128"]).scenario.text == SHORT.replace("256", "128")
    assert apply(scenario, ["web.rate=8"]).scenario.text == SHORT.replace("rate = 5", "rate = 8")
    assert "batch12" in apply(scenario, ["batch.count=12"]).scenario.written()["domain"]


def test_a_wrong_value_for_all_copies_is_one_mistake() -> None:
    scenario = vcpulab.Scenario.from_toml(SHORT)
    with pytest.raises(RequestError) as refused:
        apply(scenario, ["batch.weight=70000"])
    assert str(refused.value) == "changes batch.weight=70000: found `70000`; allowed: 0 or an integer from 1 to 65535"
    with pytest.raises(RequestError, match="says it for all its copies"):
        apply(scenario, ["batch03.weight="])


def test_what_stands_for_several_grows_together() -> None:
    scenario = vcpulab.Scenario.from_toml(SHORT)
    assert growth(scenario, "batch.count").at(3).copies()["domain"]["batch"] == ["batch1", "batch2", "batch3"]
    rate = growth(scenario, "client.users*.rate")
    assert (rate.name, rate.present) == ("client.users*.rate", 5.0)
    assert "rate = 9" in rate.at(9).text
    with pytest.raises(RequestError, match="they have different values, 256, 1"):
        growth(scenario.change({"domain.batch04.weight": 1}), "batch.weight")


def test_a_run_of_forty_domains_fits_on_a_page(command: Vcpulab, forty: str) -> None:
    result = command("run", forty)
    assert result.returncode == 0, result.stderr
    assert len(result.stdout.splitlines()) <= LINES_MAX
    for row in ("service01 to service15", "batch01.0 to batch12.0 (hog)", "idle01 to idle12", "http (open-loop)"):
        assert row in result.stdout
    assert "pcpu.3" not in result.stdout
    assert "--all" in result.stdout


def test_the_threads_of_a_kvm_host_have_a_row_beside_many_vms(command: Vcpulab) -> None:
    scenario = str(ROOT / "scenarios" / "kvm-forty-vms.toml")
    for view in ((), ("--only", "host")):
        shown = rows(command("run", scenario, "--replications", "2", *view).stdout)
        assert "host" in shown, shown


def test_a_warning_about_many_domains_is_one(command: Vcpulab, forty: str) -> None:
    said = command("check", forty).stderr
    assert said.count("warning: ") == 1
    assert "domain.idle01: nothing runs in this domain" in said
    assert "and in 11 more places" in said


def test_a_run_shows_every_one_some_or_the_most_first(command: Vcpulab, forty: str) -> None:
    every = command("run", forty, "--all").stdout
    assert "batch07.1 (hog)" in every
    assert "pcpu.15" in every
    assert " to " not in every
    some = command("run", forty, "--only", "batch0[12]").stdout
    assert [name for name in rows(some) if name.startswith("batch")] == [
        "batch01", "batch02", "batch01.0 (hog)", "batch01.1 (hog)", "batch02.0 (hog)", "batch02.1 (hog)",
    ]  # fmt: skip
    assert "service" not in some
    assert "http (open-loop)" in command("run", forty, "--only", "web").stdout
    waited = list(rows(command("run", forty, "--sort", "gotten").stdout))
    assert (
        waited.index("batch01 to batch12") < waited.index("service01 to service15") < waited.index("idle01 to idle12")
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--only", "bath*"], "--only bath*: nothing matches; allowed: "),
        (["--only", "bath*"], "hint: did you mean `batch*`?"),
        (["--sort", "waitd"], "hint: did you mean `waited`?"),
    ],
)
def test_views_say_what_there_is(command: Vcpulab, forty: str, arguments: list[str], said: str) -> None:
    result = command("run", forty, *arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert said in result.stderr


def test_domains_that_are_all_different_are_cut_to_a_page(command: Vcpulab, tmp_path: Path) -> None:
    for numbered, shown in ((True, "service01 to service15"), (False, "34 others")):
        # Names without numbers have nothing in common.
        text = FORTY if numbered else re.sub(r"(\d)(\d)\]", lambda of: f"{'abc'[int(of[1])]}{of[2]}th]", FORTY)
        scenario = vcpulab.Scenario.from_toml(text)
        names = scenario.to_dict()["domain"]
        different = scenario.change({f"domain.{name}.weight": 100 + index for index, name in enumerate(names)})
        (tmp_path / "different.toml").write_text(different.text)
        text = command("run", "different.toml").stdout
        assert shown in text
        assert len(text.splitlines()) <= LINES_MAX


@pytest.mark.parametrize("columns", ["80", "120"])
def test_the_starter_fits_on_a_page_of_any_width(command: Vcpulab, tmp_path: Path, columns: str) -> None:
    short = vcpulab.Scenario.starter().change({"run.duration": "4s", "run.replications": 4})
    (tmp_path / "starter.toml").write_text(short.text)
    text = command("run", "starter.toml", COLUMNS=columns).stdout
    assert len(text.splitlines()) <= LINES_MAX
    assert max(map(len, text.splitlines())) <= max(int(columns), 83), "but for the two lines of prose"
    assert "Who made whom wait" in text
    every = command("run", "starter.toml", "--all", COLUMNS=columns).stdout
    assert "io per execution" in every
    assert "Wait for a pCPU after waking up" in every
    changed = command("whatif", "starter.toml", "--set", "web.weight=512", "--replications", "8", COLUMNS=columns)
    told = changed.stdout[: changed.stdout.index("To set it on a real host:")].splitlines()
    assert len(told) <= LINES_MAX
    assert any(line.startswith(" batch.throughput") for line in told), (
        "who pays is told before what is hardly judged by"
    )


UPGRADED = """
[run]
duration = "1s"
warmup = "200ms"

[host]
hypervisor = "kvm"
profile = "exact"
pcpus = 4
scheduler = "linux-eevdf"

[domain.large]
vcpus = 4
app = [{ kind = "hog", instance = 4 }]

[domain.small]
count = 4
app = [{ kind = "hog" }]
"""


def test_whatif_has_one_row_for_the_instances_of_an_application(command: Vcpulab, tmp_path: Path) -> None:
    (tmp_path / "host.toml").write_text(UPGRADED)
    printed = command("whatif", "host.toml", "--set", "host.generation=7.3").stdout
    assert printed.startswith("large.0 to large.3.throughput")
    assert "large.1.throughput" not in printed
    assert "linux-eevdf (7.3): install a kernel of 7.3, and boot it" in printed


def test_whatif_tells_what_was_set_and_what_changes(command: Vcpulab, forty: str) -> None:
    result = command("whatif", forty, "--set", "batch*.cap=20", "--replications", "4")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0].startswith("newly starved: batch01 to batch12 ("), "who starves comes first"
    assert "batch01.0 to batch10.0 (6).throughput" in lines[1], "and then the answer"
    assert lines[2:4] == ["set: domain.batch01 to batch12: cap = 20", "forty: credit xen4.17"]
    told = lines[: lines.index("To set it on a real host:")]
    assert len(told) <= LINES_MAX
    metrics = [line.split("  ")[0].strip() for line in told if line.startswith(" ") and "." in line.split("  ")[0]]
    assert metrics[0].startswith("batch"), "what was changed comes first"
    assert any(line.startswith("http.throughput") for line in metrics), "what clients see is always shown"
    assert any(line.startswith("not shown: ") for line in told)
    every = command("whatif", forty, "--set", "batch*.cap=20", "--replications", "4", "--all").stdout
    assert "batch07.gotten" in every


def test_a_comparison_shows_some_or_one_metric_first(command: Vcpulab, forty: str) -> None:
    asked = ("whatif", forty, "--set", "batch*.cap=20", "--replications", "3")
    some = command(*asked, "--only", "service*").stdout
    table = rows(some[: some.index("To set it")])
    assert {name.split(".")[0] for name in table if "." in name} == {"service01 to service15"}
    first = [name for name in rows(command(*asked, "--sort", "gotten").stdout) if "." in name]
    assert first[0] == "batch01 to batch12.gotten", "though it has no good direction"
    refused = command(*asked, "--sort", "gottn")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "did you mean `gotten`?" in refused.stderr


def test_alike_clients_of_whom_nothing_is_sure_have_their_row(command: Vcpulab, tmp_path: Path) -> None:
    (tmp_path / "copies.toml").write_text(FORTY.replace("[domain.web]", "[domain.web]\ncount = 2"))
    result = command("whatif", "copies.toml", "--set", "batch*.weight=128", "--replications", "2")
    assert result.returncode == 0, result.stderr
    assert rows(result.stdout)["http1, http2.response_p99"].strip().endswith("no significant difference")


def test_a_narrow_terminal_shows_both_sides_beside_one_another(command: Vcpulab, forty: str) -> None:
    result = command("whatif", forty, "--set", "batch*.weight=128", "--replications", "3", COLUMNS="80")
    lines = result.stdout.splitlines()
    assert len(lines) <= LINES_MAX
    assert all(len(line) <= 80 for line in lines if not line.startswith("for d in "))
    headings = next(line for line in lines if line.startswith(" metric"))
    assert headings.split() == ["metric", "now", "changed", "%"]
    names = " ".join(f"batch{number:02}" for number in range(1, 13))
    assert lines[-3:] == [
        f"for d in {names}; do xl sched-credit -d $d -w 128; done",
        "# to keep it after a restart",
        f"for d in {names}; do sed -i '$a cpu_weight = 128' /etc/xen/$d.cfg; done",
    ]


def test_the_narrowest_terminal_breaks_no_name() -> None:
    """At 60 columns names of metrics and verdicts were broken wherever their column ended."""
    name, verdict = "service01 to service15 (14).response_p99", "no significant difference"
    table = beside("t", ("now", "changed"), [[name, "ms", "0.30 ± 0.10", "0.60 ± 0.20", "+0.30", "+99", "1", verdict]])
    for width in (60, 80, 100, 110, 120):
        console = Console(width=width, file=io.StringIO(), highlight=False)
        for part in rendered(table, width):
            console.print(part)
        text = console.file.getvalue()  # type: ignore[attr-defined]
        for word in (*name.split(), *verdict.split(), "0.30 ± 0.10", "0.60 ± 0.20"):
            assert word in text, width


@pytest.mark.parametrize("columns", ["80", "120"])
@pytest.mark.parametrize(
    "arguments",
    [["bounds"], ["capacity", "--vary", "http.rate", "--lowest", "200", "--highest", "400", "--replications", "2"]],
)
def test_bounds_and_capacity_of_forty_domains_fit_on_a_page(
    command: Vcpulab, tmp_path: Path, arguments: list[str], columns: str
) -> None:
    apart = vcpulab.Scenario.from_toml(FORTY).change({f"domain.service{n:02}.weight": 240 + n for n in range(1, 16)})
    (tmp_path / "forty.toml").write_text(apart.text)
    result = command(arguments[0], "forty.toml", *arguments[1:], COLUMNS=columns)
    lines = result.stdout.splitlines()
    assert len(lines) <= LINES_MAX
    assert sum(line.startswith((" station", " domain.http.rate")) for line in lines) <= 1, "in one piece"
    assert re.search(r"service01(\.0)?\s+to service15", result.stdout), "numbered ones share a row, or a column"


def test_hosts_are_named_with_alike_domains_in_short(command: Vcpulab, forty: str) -> None:
    result = command("place", forty, "--slo", "http.response_p99 < 1s", COLUMNS="100")
    assert result.returncode == 0, result.stderr
    assert "batch01 to batch12" in result.stdout
    assert "batch07" not in result.stdout


def test_the_counters_of_others_have_alike_domains_in_a_row(command: Vcpulab, forty: str) -> None:
    text = command("run", forty, "--counters", "esx", "--only", "batch*", COLUMNS="80").stdout
    counted = text[text.index("in the counters of esx") :]
    assert "batch01 to batch12 " in counted
    assert "batch07" not in counted


def test_patterns_stand_for_all_that_match_in_slos_goals_and_ranges() -> None:
    scenario = vcpulab.Scenario.from_toml(FORTY)
    bounds = slos(scenario, ["batch*.wait_p99 < 0.05s"])
    assert len(bounds) == 12
    assert list(in_short(bounds)) == ["batch01 to batch12.wait_p99 < 0.05s"]
    wanted = goal(scenario, "service*.response_p99", higher=False)
    assert (str(wanted), len(wanted.addresses)) == ("minimise service*.response_p99", 15)
    (weight,) = space(scenario, ["batch*.weight=64,256"]).parameters
    assert (weight.name, len(weight.paths), weight.options[weight.now].value) == ("batch*.weight", 12, 256)


def drawn(chart: Any) -> list[dict[str, Any]]:
    """The rows of a chart's data, whichever layer they are drawn in."""
    spec = chart.to_dict()
    return [row for rows in spec.get("datasets", {"": spec.get("data", {}).get("values", [])}).values() for row in rows]


def test_charts_of_forty_domains_have_a_row_for_alike_ones_and_no_colour_twice() -> None:
    run = vcpulab.run(vcpulab.Scenario.from_toml(FORTY).change({"run.replications": 1}), decisions=True)
    timeline = run.plot.timeline(window_ms=5)
    assert {row["pcpu"] for row in drawn(timeline)} == set(range(16))
    colours = timeline.to_dict()["encoding"]["color"]["scale"]
    assert colours["domain"] == [
        "dom0", "web", "service01 to service15", "batch01 to batch12", "idle01 to idle12",
    ]  # fmt: skip
    assert len(set(palette([str(number) for number in range(50)]))) == 50
    assert {row["domain"] for row in drawn(run.plot.waits())} <= set(colours["domain"])
    assert [row["group"] for row in drawn(run.plot.domains())] == colours["domain"]
    assert run._repr_html_().count("batch") == 2 * 3, "its row in the table of domains, and two of applications"


def test_intervals_end_where_values_do() -> None:
    frame = pl.DataFrame(
        {
            "metric": [f"d{number}.waited" for number in range(40)],
            "percent": [-90.0, *map(float, range(1, 40))],
            "low": [-400.0] * 40,
            "high": [50.0] * 40,
            "verdict": ["improves"] + ["no significant difference"] * 39,
            "size": [90.0, *map(float, range(1, 40))],
            "told": [True] + [False] * 39,
        }
    )
    shown = [row for row in drawn(differences(frame)) if "metric" in row]
    assert min(row["low"] for row in shown) == -100
    assert [row["metric"] for row in shown[:3]] == ["d0.waited", "d39.waited", "d38.waited"], "the largest first"
    assert len(shown) < 20
    (ticks,) = [
        layer["encoding"]["x"]["axis"]["values"]
        for layer in differences(frame).to_dict()["layer"]
        if "axis" in layer["encoding"]["x"]
    ]
    assert ticks == [-100, -50, -20, -10, 0, 10, 20, 50], "round numbers, and none beyond the intervals"
