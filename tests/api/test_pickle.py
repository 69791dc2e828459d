"""Scenarios and runs in other processes."""

import multiprocessing
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

import vcpulab
from support import HANG_S
from vcpulab import EngineError, Policy, Run, Scenario, ScenarioError
from vcpulab.policy import Context

ROOT = Path(__file__).resolve().parents[2]
SHORT = Scenario.starter().change({"run.duration": "20ms", "run.replications": 2})
OWN = """
run = { duration = "20ms", replications = 2 }
host = { profile = "exact", pcpus = 1, scheduler = "turns.py:Turns" }
domain.a.app = [{ kind = "hog" }]
domain.b.app = [{ kind = "hog" }]
"""
TURNS = '''
"""Turns."""

from vcpulab import Policy


class Turns(Policy):
    """In turn."""

    def wake(self, ctx, v):
        ctx.raise_reschedule(ctx.processor(v))

    def sleep(self, ctx, v):
        ctx.raise_reschedule(ctx.processor(v))

    def schedule(self, ctx, p):
        waiting = [v for v in ctx.guest_vcpus if ctx.runnable(v) and ctx.processor(v) == p]
        return (min(waiting, key=ctx.switched_at), 1_000_000) if waiting else (ctx.idle(p), -1)
'''


class Idle(Policy):
    """Runs nothing."""

    def wake(self, ctx: Context, v: int) -> None: ...

    def sleep(self, ctx: Context, v: int) -> None: ...

    def schedule(self, ctx: Context, p: int) -> tuple[int, int]:
        return ctx.idle(p), -1


def _copied(run: Run) -> Run:
    copy = pickle.loads(pickle.dumps(run))
    assert isinstance(copy, Run)
    return copy


def _same(one: Run, other: Run) -> None:
    assert one.scenario == other.scenario
    assert one.warnings == other.warnings
    assert one.not_attributed == other.not_attributed
    assert one.tables().keys() == other.tables().keys()
    for name, table in one.tables().items():
        assert_frame_equal(table, other.tables()[name])
    assert_frame_equal(one.summary(), other.summary())


def test_a_scenario_is_the_same_after_pickling() -> None:
    for scenario in (SHORT, Scenario.starter(), Scenario.load(ROOT / "scenarios" / "two-hogs.toml")):
        copy = pickle.loads(pickle.dumps(scenario))
        assert copy == scenario
        assert (copy.text, copy.folder, copy.name) == (scenario.text, scenario.folder, scenario.name)
        assert copy.change({"seed": 9}) == scenario.change({"seed": 9})


@pytest.mark.parametrize("decisions", [False, True])
def test_a_run_is_the_same_after_pickling(tmp_path: Path, decisions: bool) -> None:
    run = vcpulab.run(SHORT, decisions=decisions)
    copy = _copied(run)
    _same(run, copy)
    assert copy.has_decisions is decisions
    _same(run, _copied(copy))
    run.save(tmp_path / "out")
    saved = Run.load(tmp_path / "out")
    _same(saved, _copied(saved))


def test_answers_hold_runs_and_are_pickled_too() -> None:
    found = vcpulab.whatif(SHORT, "batch.cap=30", replications=2)
    copy = pickle.loads(pickle.dumps(found))
    assert [one.row() for one in copy.comparisons] == [one.row() for one in found.comparisons]
    assert copy.before["web.gotten"] == found.before["web.gotten"]


def test_runs_come_back_from_other_processes(tmp_path: Path) -> None:
    (tmp_path / "turns.py").write_text(TURNS)
    (tmp_path / "own.toml").write_text(OWN)
    scenarios = [SHORT, SHORT.with_run(seed=7), Scenario(tmp_path / "own.toml")]
    # What the file of a policy is changed to after the scenario was read does not count.
    (tmp_path / "turns.py").write_text("raise SystemExit")
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        for run, copy in zip(map(vcpulab.run, scenarios), pool.map(vcpulab.run, scenarios), strict=True):
            _same(run, copy)
        # Errors come back as they are.
        broken = pool.submit(Scenario.from_toml, "nmae = 1")
        with pytest.raises(ScenarioError, match="nmae") as raised:
            broken.result()
        assert raised.value.problems
        assert pool.submit(vcpulab.run, SHORT.change({"host.scheduler": Idle})).result().df_vcpus().height


def test_a_policy_that_is_in_no_module_says_why_it_cannot_be_pickled() -> None:
    class Local(Idle):
        """In a function."""

    scenario = SHORT.change({"host.scheduler": Local})
    for what in (scenario, vcpulab.run(scenario)):
        with pytest.raises(pickle.PicklingError, match=r"`\S+Local` .* FILE\.py:CLASS"):
            pickle.dumps(what)


def test_what_a_saved_run_remembers_of_a_policy_is_pickled(tmp_path: Path) -> None:
    (tmp_path / "turns.py").write_text(TURNS)
    (tmp_path / "own.toml").write_text(OWN)
    vcpulab.run(tmp_path / "own.toml").save(tmp_path / "out")
    copy = _copied(Run.load(tmp_path / "out"))
    assert not copy.scenario.can_run


def test_policies_of_a_script_are_found_by_the_processes_that_it_spawns(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        TURNS
        + """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import vcpulab

if __name__ == "__main__":
    changes = {"run.duration": "20ms", "run.replications": 1, "host.scheduler": Turns}
    scenario = vcpulab.Scenario.starter().change(changes)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        run = pool.submit(vcpulab.run, scenario).result()
    print(run.scenario.can_run, run.df_vcpus().height)
"""
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, timeout=HANG_S)
    assert (done.stdout, done.returncode) == ("True 3\n", 0), done.stderr


def test_engine_errors_are_pickled() -> None:
    error = pickle.loads(pickle.dumps(EngineError("it failed")))
    assert isinstance(error, EngineError)
    assert str(error) == "it failed"
