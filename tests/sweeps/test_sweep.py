"""Sweeps: plans, the store, executors; killed, damaged, and done by others, they come to the same bytes."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import Mock

import polars as pl
import pytest

from support import HANG_S, ROOT, VCPULAB
from vcpulab import EngineError, _engine, run_many
from vcpulab._work.budget import StoppedError
from vcpulab.cli.main import main
from vcpulab.errors import RequestError
from vcpulab.results.addresses import find
from vcpulab.sweeps import (
    Dask,
    Executor,
    Local,
    Plan,
    Store,
    SweepFailedError,
    executor,
    export,
    query,
    run,
    summary,
    tables,
)
from vcpulab.sweeps.executors import BatchResult
from vcpulab.sweeps.runner import Fixed, Sizer
from vcpulab.sweeps.work import Batch, Measured, measure

pytestmark = pytest.mark.slow

WEB = """\
[run]
duration = "150ms"
warmup = "10ms"
[host]
profile = "generic"
scheduler = "credit"
[domain.dom0]
driver_domain = true
[domain.web]
nic = { driver_domain = "dom0" }
app = [{ kind = "web-server" }]
[client.users]
kind = "open-loop"
server = "web"
rate = 1000
file_size = "10KB"
"""

SWEEP = """\
scenario = "web.toml"
replications = 3
seed = 5

[[vary]]
path = "web.weight"
values = [128, 256, 512, 1024]

[[vary]]
path = "client.users.rate"
from = 500
to = 2500
steps = 5
"""
RUNS = 4 * 5 * 3


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a scenario and a sweep over it."""
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "web.toml").write_text(WEB)
    (folder / "rates.toml").write_text(SWEEP)
    return folder


@pytest.fixture(scope="module")
def plan(here: Path) -> Plan:
    return Plan.load(here / "rates.toml")


def swept(plan: Plan, folder: Path, doing: Executor | None = None, sizer: Sizer | None = None) -> dict[str, bytes]:
    """The files that a sweep exports once it is done."""
    doing = doing or Local(2)
    try:
        with Store.open(folder / "store", create=True) as store:
            run(plan, store, doing, sizer)
            assert store.notes == []
            return exported(plan, store, folder / "out")
    finally:
        doing.close()


def exported(plan: Plan, store: Store, out: Path) -> dict[str, bytes]:
    export(plan, store, out)
    return {file.name: file.read_bytes() for file in sorted(out.iterdir())}


def runs_in(store: Path) -> list[str]:
    """Every run in the shards themselves, once for each time it is there."""
    return [run for shard in (store / "shards").glob("[!.]*") for run in pl.read_parquet(shard)["run_id"]]


@pytest.fixture(scope="module")
def undisturbed(plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What a sweep exports that nothing happens to."""
    return swept(plan, tmp_path_factory.mktemp("undisturbed"))


def plan_of(tmp_path: Path, text: str) -> Plan:
    (tmp_path / "web.toml").write_text(WEB)
    return Plan.from_toml(text, tmp_path / "sweep.toml")


# ---- plans ----


def test_points_are_checked_without_their_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = Mock(side_effect=AssertionError("the text of a scenario"))
    monkeypatch.setattr("vcpulab.sweeps.work.canonical", written)
    monkeypatch.setattr("vcpulab.sweeps.plan.canonical", written, raising=False)
    weights = '[[vary]]\npath = "domain.web.weight"\nvalues = [128, 300]\n'
    plan = plan_of(tmp_path, f'scenario = "web.toml"\n{weights}')
    other = plan_of(tmp_path, f'scenario = "web.toml"\nseed = 77\nreplications = 3\n{weights}')
    assert plan.digests == other.digests, "seeds are beside them in a key"
    assert len(set(plan.digests)) == 2


def test_a_grid_has_every_combination_the_first_axis_slowest(plan: Plan) -> None:
    assert plan.paths == ("domain.web.weight", "client.users.rate")
    assert len(plan.points) == 20
    assert plan.points[:6] == ((128, 500), (128, 1000), (128, 1500), (128, 2000), (128, 2500), (256, 500))
    assert plan.scenario(5).to_dict()["domain"]["web"]["weight"] == 256
    units = list(plan.units())
    assert [unit.replication for unit in units[:4]] == [0, 1, 2, 0]
    assert len({unit.key for unit in units}) == RUNS


def test_axes_that_are_zipped_move_together(tmp_path: Path) -> None:
    text = """
    scenario = "web.toml"
    vary = [
      { path = "web.weight", values = [256, 512], zip = "w" },
      { path = "client.users.rate", values = [100, 200] },
      { path = "dom0.weight", values = [512, 256], zip = "w" },
    ]
    """
    assert plan_of(tmp_path, text).points == ((256, 100, 512), (256, 200, 512), (512, 100, 256), (512, 200, 256))


def test_a_pattern_varies_everything_that_matches_together(tmp_path: Path) -> None:
    made = plan_of(tmp_path, 'scenario = "web.toml"\nvary = [{ path = "domain.*.weight", values = [64, 128] }]')
    assert (made.paths, made.points) == (("domain.*.weight",), ((64,), (128,)))
    weights = [domain["weight"] for domain in made.scenario(1).to_dict()["domain"].values()]
    assert set(weights) == {128}


def test_ranges_keep_whole_numbers_ends_and_units(tmp_path: Path) -> None:
    text = """
    scenario = "web.toml"
    [[vary]]
    path = "client.users.rate"
    from = 10
    to = 1000
    steps = 3
    scale = "log"
    [[vary]]
    path = "run.duration"
    from = 10
    to = 20
    steps = 2
    unit = "ms"
    """
    points = plan_of(tmp_path, text).points
    assert points == ((10, "10ms"), (10, "20ms"), (100, "10ms"), (100, "20ms"), (1000, "10ms"), (1000, "20ms"))


@pytest.mark.parametrize("method", ["sobol", "random"])
def test_a_sample_is_the_same_for_the_same_seed_and_fills_the_range(tmp_path: Path, method: str) -> None:
    def points(seed: int) -> list[int]:
        text = f"""
        scenario = "web.toml"
        sample = {{ method = "{method}", points = 64, seed = {seed} }}
        vary = [{{ path = "web.weight", from = 1, to = 1000 }}, {{ path = "client.users.rate", values = [1, 2] }}]
        """
        chosen = plan_of(tmp_path, text).points
        assert {rate for _, rate in chosen} == {1, 2}
        return [weight for weight, _ in chosen]

    first = points(1)
    assert first == points(1) != points(2)
    in_quarters = [sum(1 for weight in first if low < weight <= low + 250) for low in (0, 250, 500, 750)]
    assert min(in_quarters) >= (15 if method == "sobol" else 5)


def test_another_scheduler_takes_away_what_it_does_not_know(tmp_path: Path) -> None:
    (tmp_path / "web.toml").write_text(WEB)
    text = """
    replications = 1
    vary = [{ path = "host.scheduler", values = ["credit", "credit2", "rtds"] }]
    [scenario]
    host = { scheduler = "credit", tslice_ms = 10 }
    domain.a = { weight = 512, app = [{ kind = "hog" }] }
    """
    plan = Plan.from_toml(text, tmp_path / "sweep.toml")
    assert len(plan.points) == 3
    assert set(plan.left_out) == {"host.tslice_ms", "domain.a.weight"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("scenario = 'web.toml'", "vary: found `0 tables`"),
        ("vary = [{ path = 'web.weight', values = [1] }]", "scenario: found nothing; allowed:"),
        ("scenario = 'no.toml'\nvary = [{ path = 'web.weight', values = [1] }]", ":1: scenario: found `no.toml`"),
        ("scenario = 'web.toml'\n[[vary]]\npath = 'web.weight'\nvalues = []", ":4: vary[0].values: found `[]`"),
        ("scenario = 'web.toml'\n[[vary]]\npath = 'web.wieght'\nvalues = [1]", "web.wieght: unknown field"),
        ("scenario = 'web.toml'\n[[vary]]\npath = 'wbe.weight'\nvalues = [1]", ":3: vary[0].path: there is no `wbe`"),
        ("scenario = 'web.toml'\n[[vary]]\npath = 'seed'\nvalues = [1]", ":3: vary[0].path: found `seed`"),
        ("scenario = 'web.toml'\n[[vary]]\npath = 'web.weight'\nfrom = 1\nto = 9", ":2: vary[0]: `steps` is missing"),
        (
            "scenario = 'web.toml'\n[[vary]]\npath = 'web.weight'\nfrom = 1\nto = 1\nsteps = 3",
            ":5: vary[0].to: found `1`",
        ),
        (
            "scenario = 'web.toml'\n[[vary]]\npath = 'web.weight'\nfrom = 1\nto = inf\nsteps = 3",
            ":5: vary[0].to: found nothing",
        ),
        (
            "scenario = 'web.toml'\n[[vary]]\npath = 'web.weight'\nfrom = 0\nto = 9\nsteps = 3\nscale = 'log'",
            ":4: vary[0].from: found `0`; allowed: more than 0",
        ),
        (
            "scenario = 'web.toml'\n[[vary]]\npath = 'web.weight'\nfrom = 0\nto = 9\nsteps = 9999999999",
            ":6: vary[0].steps: found `9999999999`",
        ),
        ("scenario = 'web.toml'\nreplications = 0\nvary = [{ path = 'web.cap', values = [1] }]", ":2: replications"),
        ("scenario = 'web.toml'\nname = '../x'\nvary = [{ path = 'web.cap', values = [1] }]", ":2: name: found `../x`"),
        ("scenario = 'web.toml'\nrepetitions = 1\nvary = [{ path = 'web.cap', values = [1] }]", ":2: repetitions"),
        (
            "scenario = 'web.toml'\nreplications = 10000\n"
            "vary = [{ path = 'web.weight', from = 1, to = 60000, steps = 60000 }]",
            "600000000 runs; allowed: at most 1000000",
        ),
        (
            "scenario = 'web.toml'\nvary = [{ path = 'web.weight', values = [1, 2], zip = 'a' },"
            " { path = 'web.cap', values = [1], zip = 'a' }]",
            "axes with `zip = a` have [2, 1] values",
        ),
        (
            "scenario = 'web.toml'\nsample = { points = 1e9 }\nvary = [{ path = 'web.cap', values = [1] }]",
            "sample.points: found `1000000000.0`",
        ),
        (
            "vary = [{ path = 'a.cap', values = [1] }]\n[scenario]\ndomain.a = { app = [{ kind = 'hog', x = nan }] }",
            "scenario.domain.a.app[0].x: found `nan` or `inf`; allowed: finite numbers",
        ),
        ("scenario = [", "sweep.toml: TOML parse error at line 1"),
    ],
)
def test_what_is_wrong_with_a_sweep_file_is_said(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(RequestError) as error:
        plan_of(tmp_path, text)
    assert said in str(error.value)
    assert str(tmp_path / "sweep.toml") in str(error.value)


def test_all_points_that_cannot_be_run_are_said_at_once(tmp_path: Path) -> None:
    text = """
    scenario = "web.toml"
    [[vary]]
    path = "web.weight"
    values = [-3, 256, 99999999]
    [[vary]]
    path = "client.users.rate"
    values = [100, -1]
    """
    with pytest.raises(RequestError) as error:
        plan_of(tmp_path, text)
    said = str(error.value)
    assert "5 of 6 points cannot be run; nothing was run" in said
    assert "domain.web.weight: found `-3`" in said
    assert "point 0: domain.web.weight = -3, client.users.rate = 100, and 1 more" in said
    assert "client.users.rate: found `-1`" in said


# ---- the same bytes, whoever does the runs ----


def test_the_results_are_those_of_the_runs(plan: Plan, undisturbed: dict[str, bytes]) -> None:
    assert undisturbed.keys() >= {"runs.parquet", "apps.parquet", "export.json"}
    apps = pl.read_parquet(undisturbed["apps.parquet"])
    point = 7
    (ran,) = run_many([plan.scenario(point).with_run(seed=plan.seed, replications=3)])
    rows = apps.filter(point=point).drop("point")
    assert rows.equals(ran.df_apps().select(rows.columns))
    assert apps.select("point", "replication").unique(maintain_order=True).rows() == [
        (point, replication) for point in range(20) for replication in range(3)
    ]


@pytest.mark.parametrize(("jobs", "size"), [(1, 1), (2, 7), (3, 1000)])
def test_neither_jobs_nor_batches_change_a_byte(
    plan: Plan, tmp_path: Path, undisturbed: dict[str, bytes], jobs: int, size: int
) -> None:
    assert swept(plan, tmp_path, Local(jobs), Fixed(size)) == undisturbed


def test_two_clusters_are_in_no_ones_way() -> None:
    first = Dask(None, workers=1)
    try:
        Dask(None, workers=1).close()  # a warning is an error here
    finally:
        first.close()


def test_a_cluster_that_loses_a_worker_comes_to_the_same_bytes(
    plan: Plan, tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    cluster = Dask(None, workers=3)
    killed: list[int] = []

    def kill_one(done: int, total: int) -> None:
        if 0 < done < total and not killed:
            victim = sorted(cluster._client.run(os.getpid).values())[0]
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

    try:
        with Store.open(tmp_path / "store", create=True) as store:
            run(plan, store, cluster, Fixed(2), kill_one)
            assert killed
            assert exported(plan, store, tmp_path / "out") == undisturbed
    finally:
        cluster.close()
    assert sorted(runs_in(tmp_path / "store")) == sorted(unit.key for unit in plan.units())


class Unlucky:
    """Loses every third batch that it is given."""

    def __init__(self) -> None:
        self._outcomes: list[BatchResult] = []
        self._submitted = 0
        self.lost = 0

    def slots(self) -> int:
        return 2

    def submit(self, batch: Batch) -> None:
        self._submitted += 1
        if self._submitted % 3 == 0:
            self.lost += 1
            self._outcomes.append(BatchResult(batch.number, None))
        else:
            self._outcomes.append(BatchResult(batch.number, measure(batch)))

    def gather(self, timeout_s: float) -> list[BatchResult]:
        del timeout_s
        gathered, self._outcomes = self._outcomes, []
        return gathered

    def close(self) -> None:
        pass


def test_lost_batches_are_handed_out_again(plan: Plan, tmp_path: Path, undisturbed: dict[str, bytes]) -> None:
    unlucky = Unlucky()
    assert swept(plan, tmp_path, unlucky, Fixed(5)) == undisturbed
    assert unlucky.lost > 3


def test_a_batch_that_kills_every_worker_ends_the_sweep(plan: Plan, tmp_path: Path) -> None:
    class Deadly(Unlucky):
        def submit(self, batch: Batch) -> None:
            self._outcomes.append(BatchResult(batch.number, None))

    with pytest.raises(SweepFailedError, match="4 workers died of the same"):
        swept(plan, tmp_path, Deadly())


def test_a_worker_with_another_engine_is_refused(plan: Plan, tmp_path: Path) -> None:
    class Other(Unlucky):
        def submit(self, batch: Batch) -> None:
            done = measure(batch)
            self._outcomes.append(BatchResult(batch.number, Measured("0.0.1-beef", done.seconds, done.frame)))

    with pytest.raises(SweepFailedError, match=r"another engine, 0\.0\.1-beef"):
        swept(plan, tmp_path, Other())
    assert runs_in(tmp_path / "store") == []


def test_a_run_that_fails_is_named(plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = _engine.run

    def many(scenarios: list[_engine.Scenario], **_: object) -> object:
        if any("weight = 512" in scenario.to_toml() for scenario in scenarios):
            raise EngineError("scenario 1: broken")
        return [real(scenario) for scenario in scenarios]

    monkeypatch.setattr(_engine, "run_many", many)
    with pytest.raises(SweepFailedError, match=r"point 10 \(domain.web.weight = 512.*, seed 5: scenario 1: broken"):
        swept(plan, tmp_path, Local(1), Fixed(3))
    assert len(runs_in(tmp_path / "store")) == 30, "what came before is kept"


def test_batches_grow_until_a_task_lasts_long_enough() -> None:
    sizer = Sizer(task_s=0.5)
    for _ in range(6):
        sizer.learn(sizer.size, 0.002 * sizer.size)
    assert sizer.size * 0.002 == pytest.approx(0.5, rel=0.05)
    slow = Sizer(task_s=0.5)
    slow.learn(1, 30.0)
    assert slow.size == 1


def test_the_last_batches_are_small_so_that_all_end_together() -> None:
    sizer = Sizer(task_s=0.5)
    for _ in range(3):
        sizer.learn(sizer.size, 0.02 * sizer.size)
    left, sizes = 100, []
    while left:
        sizes.append(sizer.next(left, slots=2))
        left -= sizes[-1]
    assert sizes[0] == 25
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-2] == 3, "no shorter than 50 ms"
    assert sizer.next(20, slots=1) == 20, "there is nobody to end together with"


# ---- killed ----

KILLED = """
import os, signal, sys, time
from pathlib import Path
from vcpulab.sweeps import Local, Plan, Store, executors, run, runner

fsync, measure, steps = os.fsync, executors.measure, int(sys.argv[3])

def kill_before(descriptor):
    # Between a file's content and its name, or between its name and the index.
    global steps
    steps -= 1
    if steps == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    fsync(descriptor)

def slowly(*arguments):
    time.sleep(0.01)
    return measure(*arguments)

os.fsync, executors.measure, runner._KEEP_S = kill_before, slowly, 0.0
plan = Plan.load(Path(sys.argv[1]))
doing = Local(2)
print("begins", flush=True)
with Store.open(Path(sys.argv[2]), create=True) as store:
    run(plan, store, doing, runner.Fixed(2))
"""


def test_killed_again_and_again_it_comes_to_the_same_bytes(
    here: Path, plan: Plan, tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    """At random moments, and at the steps by which a file becomes part of the store."""
    chance = random.Random(20070)
    folder, there = tmp_path / "store", [0]
    for attempt in range(60):
        steps = chance.randrange(5, 12) if attempt % 2 else 0
        command = [sys.executable, "-c", KILLED, str(here / "rates.toml"), str(folder), str(steps)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as sweep:
            assert sweep.stdout is not None
            assert sweep.stdout.readline() == b"begins\n"
            if steps:
                sweep.wait(timeout=HANG_S)
            else:
                time.sleep(chance.uniform(0, 0.2))
                sweep.kill()
        found = runs_in(folder) if folder.exists() else []
        assert len(found) == len(set(found)) >= there[-1], "nothing twice, nothing lost"
        there.append(len(found))
        if len(found) == RUNS:
            break
    assert len({number for number in there if 0 < number < RUNS}) >= 3, "it was killed on its way"
    assert swept(plan, tmp_path) == undisturbed
    assert sorted(runs_in(folder)) == sorted(unit.key for unit in plan.units())
    assert not list((folder / "shards").glob(".*")), "nothing half written is left"


def test_interrupted_it_keeps_what_is_done(plan: Plan, tmp_path: Path, undisturbed: dict[str, bytes]) -> None:
    def interrupt(done: int, total: int) -> None:
        if done > total / 3:
            raise KeyboardInterrupt

    doing = Local(2)
    with Store.open(tmp_path / "store", create=True) as store:
        with pytest.raises(KeyboardInterrupt):
            run(plan, store, doing, Fixed(1), interrupt)
        assert RUNS / 3 < store.count() < RUNS
    doing.close()
    assert swept(plan, tmp_path) == undisturbed


# ---- the store ----


class Counting(Unlucky):
    """Counts the runs that it does."""

    runs = 0

    def submit(self, batch: Batch) -> None:
        self.runs += len(batch.items)
        self._outcomes.append(BatchResult(batch.number, measure(batch)))


def test_sweeps_that_share_a_store_run_nothing_twice(here: Path, plan: Plan, tmp_path: Path) -> None:
    swept(plan, tmp_path)
    again = Counting()
    swept(plan, tmp_path, again)
    assert again.runs == 0
    # Two more replications, one more rate: only these are new.
    text = SWEEP.replace("replications = 3", "replications = 5").replace("steps = 5", "steps = 5\nzip = 'r'")
    other = Plan.from_toml(f'name = "more"\n{text}', here / "more.toml")
    more = Counting()
    swept(other, tmp_path, more)
    assert more.runs == 4 * 5 * 2
    with Store.open(tmp_path / "store") as store:
        sweeps = query(store, "SELECT sweep, count(*) AS n FROM points GROUP BY sweep ORDER BY sweep").rows()
        assert sweeps == [("more", 100), ("rates", 60)]
        assert query(store, "SELECT count(*) FROM runs").item() == 100


def test_two_sweeps_at_once_leave_every_run_once(
    here: Path, plan: Plan, tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    command = [sys.executable, "-c", KILLED, str(here / "rates.toml"), str(tmp_path / "store"), "0"]
    both = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [one.wait(timeout=HANG_S) for one in both] == [0, 0]
    assert sorted(runs_in(tmp_path / "store")) == sorted(unit.key for unit in plan.units())
    assert swept(plan, tmp_path) == undisturbed


MAKES_STORES = """
import sys
from pathlib import Path
from vcpulab.sweeps.store import Store
for line in sys.stdin:
    with Store.open(Path(line.rstrip()), create=True):
        print("made", flush=True)
"""


def test_many_make_a_store_at_once(tmp_path: Path) -> None:
    command = [sys.executable, "-c", MAKES_STORES]
    pipe = subprocess.PIPE
    makers = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(4)]
    for number in range(40):
        for maker in makers:
            print(tmp_path / f"store-{number}", file=maker.stdin, flush=True)
        assert [maker.stdout.readline() for maker in makers if maker.stdout] == ["made\n"] * len(makers)
    assert [maker.communicate(timeout=HANG_S)[0] for maker in makers] == [""] * len(makers)


def truncate(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def flip(file: Path) -> None:
    """Changes one bit, and leaves no trace of it but the content."""
    state, data = file.stat(), bytearray(file.read_bytes())
    data[len(data) // 3] ^= 1
    file.write_bytes(data)
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))


@pytest.mark.parametrize("damage", [truncate, flip])
def test_damaged_shards_are_set_aside_and_their_runs_done_again(
    plan: Plan, tmp_path: Path, undisturbed: dict[str, bytes], damage: Callable[[Path], None]
) -> None:
    swept(plan, tmp_path)
    shard = next((tmp_path / "store/shards").glob("*.parquet"))
    lost = pl.read_parquet(shard).height
    damage(shard)
    doing = Counting()
    with Store.open(tmp_path / "store") as store:
        run(plan, store, doing)
        assert doing.runs == lost
        assert [f"{shard}: damaged" in note and "done again" in note for note in store.notes] == [True]
        assert exported(plan, store, tmp_path / "out") == undisturbed
    assert (tmp_path / "store/damaged" / shard.name).exists()


def test_a_disk_that_damages_all_that_is_written_ends_the_sweep(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept(plan, tmp_path)
    monkeypatch.setattr(Store, "verify", lambda *_: 1)
    with pytest.raises(SweepFailedError, match="is the disk sound"):
        swept(plan, tmp_path)


def test_a_sweep_that_is_changed_keeps_the_parameters_of_its_runs(plan: Plan, here: Path, tmp_path: Path) -> None:
    swept(plan, tmp_path)
    swept(Plan.from_toml(SWEEP.replace("[128, 256, 512, 1024]", "[128, 300]"), here / "rates.toml"), tmp_path)
    swept(plan, tmp_path)
    swept(plan, tmp_path)
    with Store.open(tmp_path / "store") as store:
        assert [version for _, version, _ in store.plans()] == [1, 2, 3]
        weights = query(store, 'SELECT DISTINCT "domain.web.weight" AS w FROM runs ORDER BY w')["w"].to_list()
        assert weights == [128, 256, 300, 512, 1024]
        assert query(store, "SELECT count(*) FROM points").item() == RUNS, "those of the last time"


@pytest.mark.parametrize("content", [None, b"", b"nonsense" * 1000])
def test_the_index_is_made_again_from_the_shards(
    plan: Plan, tmp_path: Path, undisturbed: dict[str, bytes], content: bytes | None
) -> None:
    swept(plan, tmp_path)
    index = tmp_path / "store/index.sqlite"
    for left in (tmp_path / "store").glob("index.sqlite*"):
        left.unlink()
    if content is not None:
        index.write_bytes(content)
    doing = Counting()
    assert swept(plan, tmp_path, doing) == undisturbed
    assert doing.runs == 0


def test_an_index_damaged_in_its_middle_is_made_again(
    plan: Plan, tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    swept(plan, tmp_path)
    index = tmp_path / "store/index.sqlite"
    data = bytearray(index.read_bytes())
    data[4096:] = bytes(len(data) - 4096)
    index.write_bytes(data)
    doing = Counting()
    assert swept(plan, tmp_path, doing) == undisturbed
    assert doing.runs == 0


def test_questions_need_no_index_that_can_be_written(plan: Plan, tmp_path: Path) -> None:
    swept(plan, tmp_path)
    for left in (tmp_path / "store").glob("index.sqlite*"):
        left.unlink()
    (tmp_path / "store/index.sqlite").mkdir()
    with Store.open(tmp_path / "store") as store:
        assert query(store, "SELECT count(*) FROM runs").item() == RUNS
    with pytest.raises(OSError, match=r"index\.sqlite"):
        Store.open(tmp_path / "store", create=True)


def test_stores_are_merged_by_copying_their_shards(
    here: Path, plan: Plan, tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    swept(plan, tmp_path)
    half = Plan.from_toml(SWEEP.replace("[128, 256, 512, 1024]", "[128, 256]"), here / "half.toml")
    swept(half, tmp_path / "other")
    shutil.copytree(tmp_path / "store/shards", tmp_path / "other/store/shards", dirs_exist_ok=True)
    with Store.open(tmp_path / "other/store") as store:
        assert store.count() == RUNS
        assert exported(plan, store, tmp_path / "merged") == undisturbed
    assert sorted(runs_in(tmp_path / "other/store")) == sorted(unit.key for unit in plan.units())


def test_runs_of_another_engine_are_kept_and_not_used(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("work", "store", "runner"):
        monkeypatch.setattr(f"vcpulab.sweeps.{module}.engine", lambda: "0.0.9-old")
    with Store.open(tmp_path / "store", create=True) as store:
        run(plan, store, Counting())
        assert store.count() == RUNS
    monkeypatch.undo()
    with Store.open(tmp_path / "store") as store:
        assert (store.count(), store.foreign()) == (0, {"0.0.9-old": RUNS})
        with pytest.raises(RequestError, match="no runs of this engine"):
            query(store, "SELECT * FROM runs")
        doing = Counting()
        run(plan, store, doing)
        assert (store.count(), doing.runs) == (RUNS, RUNS)
        assert query(store, "SELECT count(*) FROM runs").item() == RUNS
        assert store.foreign() == {"0.0.9-old": RUNS}


def test_files_of_another_format_are_kept_and_not_used(
    plan: Plan, tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    swept(plan, tmp_path)
    for kind, content in (("shards", b"of another time"), ("plans", b"of another kind")):
        (tmp_path / "store" / kind / f"{sha256(content).hexdigest()}.parquet").write_bytes(content)
    with Store.open(tmp_path / "store") as store:
        assert len(store.notes) == 2
        assert all("of another format" in note for note in store.notes)
        assert query(store, "SELECT count(*) FROM runs").item() == RUNS
    assert swept(plan, tmp_path) == undisturbed


def test_what_is_no_store_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(RequestError, match="holds other files"):
        Store.open(tmp_path, create=True)
    with pytest.raises(RequestError, match="no store of sweeps is there"):
        Store.open(tmp_path / "missing")
    with pytest.raises(RequestError, match="not a directory"):
        Store.open(tmp_path / "thesis.tex", create=True)
    later = tmp_path / "later"
    later.mkdir()
    (later / "store.json").write_text('{"format": "vcpulab-sweep/2"}')
    with pytest.raises(RequestError, match="written by another version, format `vcpulab-sweep/2`"):
        Store.open(later)
    (later / "store.json").write_text("{")
    with pytest.raises(RequestError, match="damaged"):
        Store.open(later)


FULL = """
import resource, signal, sys
from pathlib import Path
from vcpulab._work.budget import StoppedError
from vcpulab.cli.main import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
sys.dont_write_bytecode = True  # Python 3.11 cuts it off without an error, and all later imports fail
status = main(["sweep", sys.argv[1], "--store", sys.argv[2], "--jobs", "1"]) if len(sys.argv) > 3 else None
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
sys.exit(main(["sweep", sys.argv[1], "--store", sys.argv[2]]))
"""


def test_a_disk_that_is_full_costs_nothing_that_was_there(
    here: Path, plan: Plan, tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    half = tmp_path / "half.toml"
    half.write_text(SWEEP.replace("[128, 256, 512, 1024]", "[128]").replace("web.toml", str(here / "web.toml")))
    swept(Plan.load(half), tmp_path)
    before = sorted(runs_in(tmp_path / "store"))
    full = subprocess.run(
        [sys.executable, "-c", FULL, here / "rates.toml", tmp_path / "store"],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert full.returncode == 1, full.stderr
    assert "error: " in full.stderr
    assert "Traceback" not in full.stderr
    assert set(before) <= set(runs_in(tmp_path / "store"))
    assert swept(plan, tmp_path) == undisturbed


# ---- questions ----


@pytest.fixture(scope="module")
def full_store(plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    folder = tmp_path_factory.mktemp("questions")
    swept(plan, folder)
    with Store.open(folder / "store") as store:
        yield store


def test_questions_are_answered_with_the_parameters_of_the_points(full_store: Store, plan: Plan) -> None:
    sql = """
    SELECT "client.users.rate" AS rate, avg(throughput_per_s) AS throughput FROM apps JOIN runs USING (run_id)
    WHERE kind = 'open-loop' AND "domain.web.weight" = 256 GROUP BY rate ORDER BY rate
    """
    answer = query(full_store, sql)
    assert answer["rate"].to_list() == [500, 1000, 1500, 2000, 2500]
    address = find(plan.scenario(0), "web.throughput")
    means = [row.intervals[0].mean for row in summary(plan, full_store, [address])[5:10] if row.intervals[0]]
    assert answer["throughput"].to_list() == pytest.approx(means)
    of_metrics = query(
        full_store,
        "SELECT avg(value) AS v FROM metrics JOIN points USING (run_id) WHERE sweep = 'rates' AND point = 5 "
        f"AND address = '{address}'",
    )
    assert of_metrics.item() == pytest.approx(means[0])


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("DROP TABLE runs", "allowed: a query that only reads"),
        ("", "allowed: a query that only reads"),
        ("SELECT nonsense FROM runs", "nonsense"),
        ("SELECT * FROM nowhere", "nowhere"),
        ("SELECT * FROM runs WHERE", "sql"),
        ("SELECT * FROM read_csv('/etc/passwd')", "found `read_csv`; allowed: the tables of the store"),
        ("SELECT * FROM \"READ_Parquet\"('x')", "found `READ_Parquet`; allowed: the tables of the store"),
    ],
)
def test_a_question_that_cannot_be_answered_is_one_line(full_store: Store, sql: str, said: str) -> None:
    with pytest.raises(RequestError) as error:
        query(full_store, sql)
    assert said in str(error.value)
    assert len(str(error.value).splitlines()) <= 2


def test_a_literal_is_no_function(full_store: Store) -> None:
    assert query(full_store, "SELECT 'read_csv' AS said FROM runs LIMIT 1").item() == "read_csv"


ENDLESS = "SELECT count(*) FROM metrics a CROSS JOIN metrics b CROSS JOIN metrics c WHERE a.value + b.value > c.value"


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list["subprocess.Popen[bytes]"]:
    """The processes that are begun from now on."""
    found: list[subprocess.Popen[bytes]] = []

    def begin(*arguments: Any, **options: Any) -> "subprocess.Popen[bytes]":
        found.append(popen(*arguments, **options))
        return found[-1]

    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", begin)
    return found


def test_an_answer_without_end_is_given_up(full_store: Store, begun: list["subprocess.Popen[bytes]"]) -> None:
    with pytest.raises(StoppedError, match=r"the 0.05 s that were given are over"):
        query(full_store, ENDLESS, seconds=0.05)
    (child,) = begun
    assert child.returncode == -signal.SIGKILL, "nothing goes on"


def test_an_interrupt_ends_a_question(
    full_store: Store, begun: list["subprocess.Popen[bytes]"], monkeypatch: pytest.MonkeyPatch
) -> None:
    def pressed(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", pressed)
    with pytest.raises(KeyboardInterrupt):
        query(full_store, ENDLESS)
    (child,) = begun
    assert child.returncode == -signal.SIGKILL


def test_a_question_without_memory_for_its_answer_ends_only_its_own_process(
    full_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "_PROGRAM", "import os; os.abort()")
    with pytest.raises(
        EngineError, match="the query was not answered: ended by SIGABRT\n  hint: is there enough memory"
    ):
        query(full_store, "SELECT count(*) FROM runs")


# ---- the command line ----


class Answer(NamedTuple):
    status: int
    out: str
    err: str


@pytest.fixture
def typed(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Answer]:
    """A command line, in this process, where there are a scenario and a sweep over it."""
    for name in ("web.toml", "rates.toml"):
        shutil.copy(here / name, tmp_path)
    monkeypatch.chdir(tmp_path)

    def answer(*arguments: str) -> Answer:
        status = main(arguments)
        return Answer(status, *capsys.readouterr())

    return answer


def test_the_commands_run_show_ask_and_export(typed: Callable[..., Answer], tmp_path: Path) -> None:
    dry = typed("sweep", "rates.toml", "--store", "s", "--dry-run")
    assert (dry.status, "60 to do" in dry.err, (tmp_path / "s").exists()) == (0, True, False)
    first = typed("sweep", "rates.toml", "--store", "s", "--show", "web.throughput", "--format", "json")
    assert first.status == 0, first.err
    assert "60 runs, 0 of them in s, 60 to do" in first.err
    answer = json.loads(first.out)
    records = answer["metrics"]
    assert not answer["interrupted"]
    assert len(records) == 20
    assert records[0].keys() >= {"domain.web.weight", "client.users.rate", "mean", "half_width"}
    second = typed("sweep", "rates.toml", "--store", "s", "--out", "o", "--plot", "p.svg")
    assert "60 of them in s, 0 to do" in second.err
    assert "users.throughput" in second.out
    assert "users.throughput over domain.web.weight" in (tmp_path / "p.svg").read_text()
    assert typed("query", "s", "SELECT count(*) AS n FROM runs", "--format", "csv").out == "n\n60\n"
    assert json.loads(typed("query", "s", "SELECT max(replication) AS n FROM runs", "--format", "json").out) == [
        {"n": 2}
    ]
    assert "run_id" in typed("query", "s", "--tables").out
    asked = typed("query", "s", "SELECT * FROM apps", "--format", "parquet", "--out", "a.parquet")
    assert asked.status == 0
    assert pl.read_parquet(tmp_path / "a.parquet").height == 120
    whole = typed("sweep", "--verify", "--store", "s")
    assert (whole.status, "60 runs, 0 files damaged" in whole.err) == (0, True)
    flip(next((tmp_path / "s/shards").glob("*.parquet")))
    damaged = typed("sweep", "--verify", "--store", "s")
    assert (damaged.status, "1 files damaged" in damaged.err) == (1, True)


def test_alike_domains_vary_together_and_lists_are_cells(typed: Callable[..., Answer], tmp_path: Path) -> None:
    scenario = (
        '[run]\nduration = "10ms"\n[host]\nprofile = "exact"\npcpus = 2\nscheduler = "credit2"\n'
        '[domain.pair]\nvcpus = 2\n[domain.batch]\ncount = 3\napp = [{ kind = "hog" }]\n'
    )
    axes = (("batch.weight", "[100, 200]"), ("pair.affinity", '["all", ["0", "1"]]'), ("name", '["free", "pinned"]'))
    tables = "".join(f'[[vary]]\npath = "{path}"\nvalues = {values}\nzip = "how"\n' for path, values in axes)
    (tmp_path / "three.toml").write_text(scenario)
    (tmp_path / "alike.toml").write_text(f'scenario = "three.toml"\n{tables}')
    plan = Plan.load(tmp_path / "alike.toml")
    assert [plan.scenario(1).to_dict()["domain"][f"batch{number}"]["weight"] for number in (1, 2, 3)] == [200] * 3
    drawn = ("--show", "batch1.gotten", "--format", "csv", "--plot", "alike.svg")
    answer = typed("sweep", "alike.toml", "--store", "s", *drawn)
    assert answer.status == 0, answer.err
    assert '"[""0"", ""1""]"' in answer.out
    assert "batch1.gotten over" in (tmp_path / "alike.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sweep"], "FILE is missing"),
        (["sweep", "missing.toml"], "missing.toml: no such file"),
        (["sweep", "web.toml"], "web.toml: is a scenario; allowed: a sweep file"),
        (["sweep", "rates.toml", "--executor", "slurm"], "--executor: found `slurm`"),
        (["sweep", "rates.toml", "--executor", "dask://"], "--executor: found"),
        (["sweep", "rates.toml", "--executor", "dask://local?workers=many"], "--executor: found"),
        (["sweep", "rates.toml", "--executor", "dask://local", "--jobs", "2"], "--jobs: allowed: only with"),
        (["sweep", "rates.toml", "--jobs", "-1"], "--jobs: found `-1`"),
        (["sweep", "rates.toml", "--show", "web.speed"], "--show web.speed: `web` has no metric `speed`"),
        (["sweep", "rates.toml", "--out", "."], "it would replace what is read"),
        (["sweep", "rates.toml", "--store", "."], "holds other files"),
        (["sweep", "rates.toml", "--plot", "x.pdf"], "--plot"),
        (["query", "missing", "SELECT 1"], "no store of sweeps is there"),
        (["query", "."], "allowed: either a query or --tables"),
    ],
)
def test_wrong_usage_is_told(typed: Callable[..., Answer], arguments: list[str], said: str) -> None:
    answer = typed(*arguments)
    assert answer.status == 2, answer.err
    assert said in answer.err


def test_an_interrupt_is_answered(here: Path, tmp_path: Path) -> None:
    long = tmp_path / "long.toml"
    long.write_text(SWEEP.replace("replications = 3", "replications = 100").replace("web.toml", str(here / "web.toml")))
    with subprocess.Popen(
        [VCPULAB, "sweep", long, "--store", tmp_path / "s"], stderr=subprocess.PIPE, text=True
    ) as sweep:
        assert sweep.stderr is not None
        assert "to do" in sweep.stderr.readline()
        while not runs_in(tmp_path / "s"):
            time.sleep(0.05)
        sweep.send_signal(signal.SIGINT)
        said = sweep.stderr.read()
    assert sweep.returncode == 130
    assert "what is done is kept" in said
    assert 0 < len(runs_in(tmp_path / "s")) < 2000


def dask(*arguments: str) -> "subprocess.Popen[bytes]":
    """A part of a cluster, as a user starts it."""
    command = [str(VCPULAB.with_name("dask")), *arguments, "--no-dashboard"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def test_a_scheduler_that_goes_away_is_said_and_the_sweep_goes_on_elsewhere(
    plan: Plan, tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    file = tmp_path / "scheduler.json"
    scheduler = dask("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file))
    worker = dask("worker", "--scheduler-file", str(file), "--no-nanny")
    try:
        while not file.exists():
            time.sleep(0.05)
        address = json.loads(file.read_text())["address"].removeprefix("tcp://")
        cluster = executor(f"dask://{address}")

        def kill(done: int, total: int) -> None:
            if 0 < done < total:
                scheduler.kill()

        with Store.open(tmp_path / "store", create=True) as store:
            with pytest.raises(SweepFailedError, match="does not answer any more\n  hint: what is done is kept"):
                run(plan, store, cluster, Fixed(1), kill)
            assert 0 < store.count() < RUNS
        cluster.close()
        assert swept(plan, tmp_path) == undisturbed
    finally:
        for one in (scheduler, worker):
            one.kill()
            one.wait()


def test_the_guide_shows_the_example() -> None:
    example = (ROOT / "examples" / "weights.toml").read_text()
    assert f"```toml\n{example}```" in (ROOT / "docs" / "guides" / "sweeps.md").read_text()


def test_where_no_scheduler_answers(typed: Callable[..., Answer]) -> None:
    answer = typed("sweep", "rates.toml", "--executor", "dask://127.0.0.1:9?patience=1")
    assert answer.status == 1
    assert "no scheduler answers at 127.0.0.1:9" in answer.err
