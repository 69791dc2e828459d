"""The Python interface."""

import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vcpulab
from support import HANG_S, TWO_HOGS
from vcpulab import Problem, Run, Scenario, ScenarioError, _engine
from vcpulab.errors import ChangeError
from vcpulab.results.stream import Stream
from vcpulab.results.tables import TABLES

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    "table", [*(f"df_{table}" for table in TABLES), "metrics", "summary", "df_wait_shares", "df_wakeup_means"]
)
def test_documented_columns_are_the_columns(hogs: Run, table: str) -> None:
    method = getattr(hogs, table)
    listed = method.__doc__.split("Columns:\n")[1]
    documented = re.findall(r"^ {12}(\w+): ", listed, re.MULTILINE)
    assert documented == method().columns


def test_what_is_loaded_and_what_is_built_are_the_same(tmp_path: Path) -> None:
    path = tmp_path / "hogs.toml"
    path.write_text(TWO_HOGS)
    loaded = Scenario.load(path)
    assert loaded == Scenario.from_toml(TWO_HOGS)
    assert loaded == Scenario.from_dict(loaded.to_dict())
    assert loaded == Scenario.from_toml(loaded.to_toml())


def test_every_file_that_the_engine_reads_can_be_loaded_and_changed(tmp_path: Path) -> None:
    path = tmp_path / "new.toml"
    newer = TWO_HOGS.replace('app = [{ kind = "hog" }]', 'app = [{\n  kind = "hog",\n}]')
    path.write_text("\ufeff" + newer)
    changed = Scenario.load(path).change({"domain.b.weight": 512})
    assert list(changed.to_dict()["domain"]) == ["a", "b"]


def test_a_change_makes_another_scenario() -> None:
    scenario = Scenario.from_toml(TWO_HOGS)
    changed = scenario.change({"domain.a.weight": 512, "domain.a.app.0.kind": "hog", 'domain."b".weight': None})
    assert changed.to_dict()["domain"]["a"]["weight"] == 512
    assert "weight" not in changed.to_dict()["domain"]["b"]
    assert scenario == Scenario.from_toml(TWO_HOGS)
    assert changed != scenario


def test_a_change_keeps_comments_order_and_formatting() -> None:
    text = "# Two hogs.\n" + TWO_HOGS.replace("[domain.b]", "[domain.b] # the second")
    changed = Scenario.from_toml(text).change({"domain.a.vcpus": 2, "domain.a.app.0.kind": "hog"})
    hog = 'app = [{ kind = "hog" }]\n'
    assert changed.text == text.replace(hog, f"{hog}vcpus = 2\n", 1)
    assert changed == Scenario.from_dict(changed.written())


def test_a_change_adds_items_to_the_end_of_a_list_only() -> None:
    scenario = Scenario.from_toml(TWO_HOGS)
    added = scenario.change({"domain.a.app.1": {"kind": "hog"}, "domain.a.app.2": {"kind": "hog"}})
    assert len(added.to_dict()["domain"]["a"]["app"]) == 3
    with pytest.raises(KeyError, match="allowed: an item from 0 to 0"):
        scenario.change({"domain.a.app.2": {"kind": "hog"}})


def test_a_change_takes_every_address_of_a_setting() -> None:
    starter = Scenario.starter()
    full = starter.change({"domain.web.weight": 512, "domain.batch.weight": 512, "client.http.rate": 5})
    assert starter.change({"*b*.weight": 512, "http.rate": 5}) == full
    assert starter.change({"web.weight": 512, "batch.weight": 512, "web.rate": 5}).text == full.text
    assert starter.addressed("web.rate") == ["client.http.rate"]
    pinned = starter.change({"web.affinity": 0, "batch.affinity": [0]}).written()["domain"]
    assert (pinned["web"]["affinity"], pinned["batch"]["affinity"]) == ("0", ["0"])
    with pytest.raises(ChangeError, match=r"there is no `wbe`; allowed: .*\n  hint: did you mean `web`\?$"):
        starter.change({"wbe.weight": 512})
    with pytest.raises(ChangeError, match=r"`domain\.web\.weight` is set twice"):
        starter.change({"web.weight": 512, "domain.web.weight": 512})
    with pytest.raises(ChangeError, match=r"`web\.cpa` cannot be removed"):
        starter.change({"web.cpa": None})


def test_a_change_tells_what_it_leaves_out() -> None:
    text = TWO_HOGS.replace("pcpus = 1", "pcpus = 2") + '[pool.rt]\npcpus = "1"\nscheduler = "rtds"\n'
    scenario = Scenario.from_toml(text).change({"domain.b.weight": 512})
    moved = scenario.changed([("b.pool", "rt"), ("b.period_us", 9000)])
    assert moved.changes == {"domain.b.pool": "rt", "domain.b.period_us": 9000}
    assert moved.left_out == ["domain.b.weight"]
    back = moved.scenario.changed([("b.pool", None), ("a.cap", None)])
    assert (back.changes, back.left_out) == ({"domain.b.pool": None}, ["domain.b.period_us"])
    assert back.scenario == Scenario.from_toml(text).change({"domain.b.weight": None})
    with pytest.raises(ScenarioError) as raised:
        scenario.changed([("a.vcpus", 2), ("b.weight", -1)])
    assert raised.value.edits == [1]


def test_a_changed_scenario_is_checked() -> None:
    with pytest.raises(ScenarioError) as raised:
        Scenario.from_toml(TWO_HOGS).change({"domain.a.weight": -1, "host.pcpus": 0})
    problems = {problem["field"]: problem for problem in raised.value.problems}
    assert problems.keys() == {"domain.a.weight", "host.pcpus"}
    assert problems["domain.a.weight"]["found"] == "-1"


@given(st.binary(max_size=400))
def test_any_bytes_are_a_scenario_or_told_why_not(data: bytes) -> None:
    with pytest.raises(ScenarioError) as raised:
        _engine.Scenario.parse_bytes(data)
    assert raised.value.problems


@given(st.integers(0, len(TWO_HOGS)), st.integers(0, 40), st.text(max_size=20))
def test_any_text_is_a_scenario_or_told_why_not(start: int, cut: int, new: str) -> None:
    text = TWO_HOGS[:start] + new + TWO_HOGS[start + cut :]
    problems: list[Problem] = []
    try:
        scenario = Scenario.from_toml(text)
    except ScenarioError as error:
        problems = error.problems
        assert problems, "an error says what is wrong"
    else:
        assert Scenario.from_toml(scenario.to_toml()) == scenario
    assert all(problem["message"] for problem in problems)


@pytest.mark.parametrize("path", ["", "domain.a.app.7.kind", "domain.a.app.x.kind", "name.first", "domain.a.cap"])
def test_a_change_that_leads_nowhere_is_told(path: str) -> None:
    with pytest.raises(KeyError):
        Scenario.from_toml(TWO_HOGS).change({path: None})


@pytest.mark.parametrize("numbers", [{"seed": -1}, {"seed": 1 << 80}, {"replications": 0}, {"replications": 1 << 40}])
def test_a_run_of_no_sense_is_refused(numbers: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="allowed"):
        Scenario.starter().with_run(**numbers)


def test_jobs_never_change_the_results() -> None:
    scenario = Scenario.starter().change({"run.duration": "200ms"})
    one, many = (vcpulab.run(scenario, jobs=jobs, decisions=True).tables() for jobs in (1, 4))
    for name, table in one.items():
        assert table.equals(many[name]), name


def test_the_seed_changes_the_results() -> None:
    scenario = Scenario.starter().change({"run.duration": "200ms"})
    other = scenario.with_run(seed=scenario.seed + 1)
    assert not vcpulab.run(scenario).df_apps().equals(vcpulab.run(other).df_apps())


def test_other_threads_run_meanwhile() -> None:
    ticks, stop = 0, threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not stop.wait(0.001):
            ticks += 1

    long = Scenario.from_toml(TWO_HOGS).change({"run.duration": "3000s"})
    thread = threading.Thread(target=tick)
    thread.start()
    vcpulab.run(long)
    counted = ticks
    stop.set()
    thread.join()
    assert counted > 10, "a run that kept the interpreter's lock would let it tick once or twice"


def test_progress_grows_to_one_and_can_cancel() -> None:
    seen: list[float] = []

    def watch(fraction: float) -> bool:
        seen.append(fraction)
        return True

    vcpulab.run(Scenario.from_toml(TWO_HOGS), progress=watch)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    long = Scenario.from_toml(TWO_HOGS).change({"run.duration": "1200min"})
    with pytest.raises(KeyboardInterrupt):
        vcpulab.run(long, progress=lambda _: False)
    with pytest.raises(ZeroDivisionError):
        vcpulab.run(long, progress=lambda _: bool(1 / 0))


def test_many_scenarios_give_what_each_gives_in_their_order() -> None:
    base = Scenario.from_toml(TWO_HOGS)
    scenarios = [
        base.change({"domain.a.weight": weight, "run.replications": 1 + weight % 2}) for weight in (256, 511, 64)
    ]
    together = vcpulab.run_many(iter(scenarios))
    for scenario, run in zip(scenarios, together, strict=True):
        assert run.scenario is scenario
        alone = vcpulab.run(scenario)
        for name, table in alone.tables().items():
            assert table.equals(run.tables()[name]), name
    assert vcpulab.run_many([]) == []
    without = vcpulab.run_many(scenarios[:1], waits=False)[0]
    assert without.df_waits().is_empty()
    assert without.not_attributed


def test_many_scenarios_can_be_watched_and_cancelled() -> None:
    seen: list[float] = []
    scenarios = [Scenario.from_toml(TWO_HOGS)] * 3

    def watch(fraction: float) -> bool:
        seen.append(fraction)
        return True

    vcpulab.run_many(scenarios, progress=watch)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    long = Scenario.from_toml(TWO_HOGS).change({"run.duration": "1200min"})
    with pytest.raises(KeyboardInterrupt):
        vcpulab.run_many([long] * 100, progress=lambda _: False)


@pytest.mark.parametrize("jobs", [1, 2])
def test_runs_that_go_on_are_what_each_is_alone(jobs: int) -> None:
    base = Scenario.from_toml(TWO_HOGS).change({"run.replications": 2})
    with Stream[int](jobs=jobs, waits=False) as stream:
        assert stream.jobs == jobs
        for seed in range(4):
            stream.begin(seed, base.with_run(seed=seed))
        stream.call_off([1, 9])
        assert [seed in stream for seed in range(4)] == [True, False, True, True]
        for seed in (3, 0, 2):
            run, alone = stream.take(seed), vcpulab.run(base.with_run(seed=seed), waits=False)
            assert all(table.equals(run.tables()[name]) for name, table in alone.tables().items())


def test_runs_that_go_on_can_be_cancelled_and_leave_room() -> None:
    long = Scenario.from_toml(TWO_HOGS).change({"run.duration": "1200min"})
    short = long.change({"run.duration": "10ms"})
    with Stream[str](jobs=2) as stream:
        for name in ("first", "second"):
            stream.begin(name, long)
        with pytest.raises(KeyboardInterrupt):
            stream.take("first", lambda _: False)
        # One thread is free again, and then the other one.
        stream.begin("third", short)
        assert stream.take("third").scenario is short
        stream.call_off(["second"])
        for name in ("fourth", "fifth"):
            stream.begin(name, short)
        assert stream.take("fifth").scenario is short


def test_interrupting_many_scenarios_ends_them_soon() -> None:
    code = (
        "import vcpulab\n"
        "starter = vcpulab.Scenario.starter()\n"
        # All is imported then: Python loses an interrupt in some moments of an import.
        "vcpulab.run_many([starter.change({'run.duration': '10ms'})])\n"
        "long = starter.change({'run.duration': '1200min'})\n"
        "print('begun', flush=True)\n"
        "vcpulab.run_many([long] * 100)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    time.sleep(0.5)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=HANG_S)
    assert errors.endswith("KeyboardInterrupt\n")


def test_a_saved_run_is_the_same_when_loaded(hogs: Run, tmp_path: Path) -> None:
    hogs.save(tmp_path / "run")
    loaded = Run.load(tmp_path / "run")
    assert loaded.scenario == hogs.scenario
    assert loaded.has_decisions
    for name, table in hogs.tables().items():
        assert table.equals(loaded.tables()[name]), name
    with pytest.raises(FileNotFoundError):
        Run.load(tmp_path)


def test_a_run_of_an_earlier_version_says_which_table_it_has_not(hogs: Run, tmp_path: Path) -> None:
    hogs.save(tmp_path / "run")
    (tmp_path / "run" / "waits.parquet").unlink()
    earlier = Run.load(tmp_path / "run")
    assert earlier.df_domains().equals(hogs.df_domains())
    with pytest.raises(vcpulab.RequestError, match=r"no table `waits`: .*\n.*hint: vcpulab run .*scenario.toml"):
        earlier.df_waits()


def test_a_run_that_cannot_be_written_leaves_what_was_there(hogs: Run, tmp_path: Path) -> None:
    hogs.save(tmp_path / "run")
    before = (tmp_path / "run" / "result.json").read_bytes()
    broken = Run(hogs.scenario, hogs.tables() | {"decisions": pl.DataFrame({"x": [object()]})}, has_decisions=True)
    with pytest.raises(Exception, match=r"(?i)object"):
        broken.save(tmp_path / "run")
    assert (tmp_path / "run" / "result.json").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_other_frame_libraries_read_the_tables() -> None:
    results = _engine.run(_engine.Scenario.parse(TWO_HOGS))
    table = results.domains()
    assert hasattr(table, "__arrow_c_stream__")
    assert pl.DataFrame(table).equals(pl.DataFrame(table)), "it can be read more than once"


def test_a_public_name_imports_its_module_when_it_is_used() -> None:
    assert set(vcpulab.__all__) == {*vcpulab._HOMES, "__version__"}
    assert all(hasattr(vcpulab, name) for name in vcpulab.__all__)
    code = "import sys, vcpulab; sys.exit(bool({'polars', 'numpy', 'vcpulab._engine'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
