"""Odd files and classes: pipes, devices, endless files, damaged shards, policies that end the program."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest

import vcpulab
from support import HANG_S, TWO_HOGS
from vcpulab.cli.main import main
from vcpulab.formats import read
from vcpulab.formats.sources import BLANK_BYTES_MAX, BLANK_LINES_MAX, lines_of
from vcpulab.sweeps import Store

SHORT = TWO_HOGS.replace("300ms", "20ms").replace("replications = 3", "replications = 1")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a scenario and a pipe."""
    monkeypatch.chdir(tmp_path)
    Path("hogs.toml").write_text(SHORT)
    os.mkfifo("pipe")


@pytest.mark.parametrize("path", ["pipe", "/dev/zero"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "{}"),
        ("check", "{}"),
        ("lint", "{}"),
        ("sweep", "{}"),
        ("import", "{}"),
        ("import", "{}", "--kind", "sched-text"),
        ("import", "rt-app", "{}"),
        ("import", "hogs.toml", "--threads", "{}"),
        ("twin", "{}"),
        ("conformance", "{}"),
        ("run", "hogs.toml", "--set", "host.scheduler={}:P"),
    ],
    ids=" ".join,
)
def test_what_is_no_file_is_refused(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], path: str) -> None:
    assert main([word.format(path) for word in arguments]) in (1, 2)
    shown = capsys.readouterr()
    assert f"{path}: not a regular file" in shown.err
    assert shown.out == ""


POLICY = """
import sys
from vcpulab import Policy
class P(Policy):
    def __init__(self, params, seed): pass
    def sleep(self, ctx, v): pass
    def schedule(self, ctx, p): return (0, -1)
    def wake(self, ctx, v): {wake}
"""


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        ("import sys\nsys.exit(0)\n", 2, "p.py: line 2: SystemExit: 0"),
        (POLICY.format(wake="sys.exit(0)"), 1, "SystemExit: 0 (p.py:8)"),
        (POLICY.format(wake="raise GeneratorExit"), 1, "GeneratorExit (p.py:8)"),
        ("x" * 2**25, 2, "p.py: too long; allowed: at most 16777216 bytes"),
    ],
    ids=["file", "hook", "generator", "long"],
)
def test_a_policy_does_not_end_the_program(
    capsys: pytest.CaptureFixture[str], text: str, status: int, said: str
) -> None:
    Path("p.py").write_text(text)
    assert main(["run", "hogs.toml", "--set", "host.scheduler=p.py:P"]) == status
    shown = capsys.readouterr()
    (line,) = [line for line in shown.err.splitlines() if not line.startswith("warning: ")]
    assert line.startswith("error: ")
    assert said in line


def test_a_message_is_as_long_as_can_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    Path("long.toml").write_text("x" * 100_000 + " = 1\n")
    assert main(["check", "long.toml"]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("long.toml:1:1: xxx")
    assert max(map(len, shown.splitlines())) < 2100


def test_empty_lines_without_end_are_given_up() -> None:
    Path("lines").write_bytes(b"\n" * (BLANK_LINES_MAX + 2))
    with pytest.raises(vcpulab.RecordingError, match="another empty line"):
        list(lines_of(Path("lines")))
    Path("lines").write_bytes(b"\n" * (2 * BLANK_BYTES_MAX))
    with pytest.raises(vcpulab.RecordingError, match="nothing but empty lines in 1"):
        read("lines", "sched-text")


def test_a_shard_with_other_columns_is_set_aside(capsys: pytest.CaptureFixture[str]) -> None:
    Path("sweep.toml").write_text(
        'scenario = "hogs.toml"\nreplications = 1\n[[vary]]\npath = "domain.a.weight"\nvalues = [128, 256]\n'
    )
    assert main(["sweep", "sweep.toml", "--store", "s", "--format", "csv"]) == 0
    before = capsys.readouterr().out
    with Store.open(Path("s")) as store:
        (shard, *_) = store.shards()
        whole = pl.read_parquet(shard)
        store.verify()
        for frame in (whole.drop("apps"), whole.with_columns(pl.lit(1).alias("apps")), whole.rename({"run_id": "id"})):
            store._write("shards", frame, {"engine": _engine_of(shard)})
    shard.unlink()
    assert main(["sweep", "sweep.toml", "--store", "s", "--format", "csv"]) == 0
    again = capsys.readouterr()
    assert again.out == before
    assert again.err.count("damaged (its columns are not those of runs): moved to s/damaged") == 3


def _engine_of(shard: Path) -> str:
    return pl.read_parquet_metadata(shard)["engine"]


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("seed", -1, "0 to 9223372036854775807"),
        ("seed", 2**70, "0 to 9223372036854775807"),
        ("replications", -1, "1 to 10000"),
        ("replications", 2**40, "1 to 10000"),
    ],
)
def test_a_number_out_of_range_is_named_with_its_range(field: str, value: int, allowed: str) -> None:
    scenario = vcpulab.Scenario.from_toml(SHORT)
    with pytest.raises(vcpulab.RequestError) as error:
        scenario.with_run(**{field: value})
    assert str(error.value) == f"{field}: found `{value}`; allowed: an integer from {allowed}"


FORKED = """
import os, sys, vcpulab
scenario = vcpulab.Scenario.load("hogs.toml")
vcpulab.run(scenario).summary()
if (child := os.fork()) == 0:
    try:
        vcpulab.run(scenario).summary()
    except vcpulab.EngineError as error:
        print(error, flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""


def test_a_forked_process_says_that_it_cannot() -> None:
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=HANG_S, check=True)
    assert done.stdout.startswith("this process was forked from one that had tables of results already")
    assert 'hint: multiprocessing.get_context("spawn")' in done.stdout


def test_runs_in_two_threads_do_not_meet() -> None:
    scenarios = [vcpulab.Scenario.from_toml(SHORT).with_run(seed=seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda one: vcpulab.run(one, jobs=1).summary(), scenarios))
    assert all(a.equals(vcpulab.run(b, jobs=1).summary()) for a, b in zip(together, scenarios, strict=True))
