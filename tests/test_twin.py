"""Twins of recorded hosts: what is made of a recording, and how well it behaves like the part it was not made of."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

import vcpulab
from support import ROOT, Vcpulab
from vcpulab import twin
from vcpulab.twin.build import read
from vcpulab.twin.sequences import turns_of
from vcpulab.usage import UsageError

REAL = ROOT / "tests" / "recordings"
FOLDERS = sorted(path.name for path in REAL.iterdir() if path.is_dir())


@pytest.mark.parametrize("name", FOLDERS)
def test_twins_share_switch_and_wait_as_the_recorded_host_did(name: str) -> None:
    """Made of the first half, held against the second: the limits that the guide states."""
    sources = twin.gather([REAL / name])
    made = twin.make(sources, read(sources, (0.0, 0.5)))
    rows = twin.score(made.scenario, sources, read(sources, (0.5, 1.0)), replications=5)
    judged = [row for row in rows if row.holds is not None]
    off = [(row.of, row.what, round(row.off, 1)) for row in judged if not row.holds]
    assert all(row.holds for row in judged if row.what in ("share", "switches")), off
    # Dom0 wakes some fifty times in that half: its percentiles are chance.
    waits = [row for row in judged if row.what.startswith("wake") and row.of != "dom0"]
    assert sum(bool(row.holds) for row in waits) >= 0.7 * len(waits) - 1, off
    assert all(abs(row.off) < 50 for row in waits), off


@pytest.mark.parametrize("name", FOLDERS)
def test_twins_that_replay_do_so_more_closely(name: str, tmp_path: Path) -> None:
    sources = twin.gather([REAL / name])
    events = tmp_path / "events.arrow"
    made = twin.make(sources, read(sources, (0.0, 0.5), events=events), events=events)
    rows = twin.score(made.scenario, sources, read(sources, (0.5, 1.0)), replications=2)
    judged = [row for row in rows if row.holds is not None and row.of != "dom0"]
    off = [(row.of, row.what, round(row.off, 1)) for row in judged if not row.holds]
    assert len(off) <= 1, off
    assert all(what.startswith("wake") for _, what, _ in off), off


def test_turns_are_cpu_time_between_waking_and_blocking(tmp_path: Path) -> None:
    """A vCPU that is preempted while it computes has computed as long as without."""
    states = [(9, "runnable"), (10, "running"), (14, "runnable"), (20, "running"), (21, "blocked"), (30, "runnable")]
    rows = {"kind": "runstate", "domain": 1, "vcpu": 0}
    table = pl.DataFrame([{**rows, "time_ns": time, "what": what} for time, what in [(5, "blocked"), *states]])
    table.write_ipc(tmp_path / "events.arrow")
    assert turns_of(tmp_path / "events.arrow") == {(1, 0): (9, [(5, 9)])}
    many = pl.concat([table] * 10_001)
    many.write_ipc(tmp_path / "events.arrow")
    with pytest.raises(UsageError, match="found 20002 turns of computing and blocking; allowed: at most 20000"):
        turns_of(tmp_path / "events.arrow")


@pytest.mark.parametrize("name", FOLDERS)
def test_what_guests_were_said_to_do_gives_their_shares(name: str) -> None:
    """A scenario written from their description alone: shares to a few points, for what the description leaves out."""
    sources = twin.gather([REAL / name])
    scenario = vcpulab.Scenario.load(ROOT / "scenarios/recordings" / f"{name.removeprefix('xen4.17-')}.toml")
    rows = twin.score(scenario, sources, read(sources), replications=2)
    shares = {row.of: row.off for row in rows if row.what == "share"}
    assert all(abs(off) < 3.5 for off in shares.values()), shares
    assert all(abs(off) < 1 for off in shares.values()) or name.endswith("mixed"), shares


def test_a_twin_has_the_names_parameters_and_scheduler_of_its_host() -> None:
    sources = twin.gather([REAL / "xen4.17-credit-mixed"])
    made = twin.make(sources, read(sources))
    document = made.scenario.to_dict()
    assert list(document["domain"]) == ["dom0", "hogA", "hogB", "ioA", "ioB", "ioC"]
    assert (document["host"]["scheduler"], document["host"]["tslice_ms"], document["host"]["ratelimit_us"]) == (
        "credit",
        30,
        1000,
    )
    assert document["domain"]["ioC"]["weight"] == 1024
    assert [app["kind"] for app in document["domain"]["hogA"]["app"]] == ["hog"]
    (event, _) = document["domain"]["ioB"]["app"][0]["phase"][0]["event"]
    assert len(event["run"]) == 129
    assert "Made by `vcpulab twin`" in made.text


def test_twin_on_the_command_line_and_what_is_made_of_it(command: Vcpulab, tmp_path: Path) -> None:
    shutil.copytree(REAL / "xen4.17-credit2-weights", tmp_path / "recorded")
    made = command("twin", "recorded", "--out", "host.toml")
    assert made.returncode == 0, made.stderr
    # A twin that was written beside its recording is none of its files.
    shutil.copy(tmp_path / "host.toml", tmp_path / "recorded")
    again = command("twin", "recorded", "--out", "host.toml")
    assert again.returncode == 2
    assert "--force replaces it" in again.stderr
    scored = command("twin", "score", "recorded", "--replications", "2", "--format", "json")
    rows = json.loads(scored.stdout)
    assert {row["what"] for row in rows} == {"switches", "share", "waited", "executions", "wake p50", "wake p90"}
    whatif = command("whatif", "host.toml", "--set", "hogA.cap=20", "--set", "run.duration=1s")
    assert whatif.returncode == 0, whatif.stderr
    assert "hogA pays: hogA.throughput" in whatif.stdout
    linted = command("lint", "host.toml", "--replications", "2")
    assert linted.returncode in (0, 1), linted.stderr


def test_a_kvm_host_has_a_twin_under_a_scheduler_of_choice(command: Vcpulab, tmp_path: Path) -> None:
    shutil.copy(ROOT / "examples/perf-sched.txt", tmp_path)
    unknown = command("twin", "perf-sched.txt")
    assert unknown.returncode == 2
    assert "nothing says which scheduler was recorded" in unknown.stderr
    made = command("twin", "perf-sched.txt", "--scheduler", "credit2")
    assert made.returncode == 0, made.stderr
    assert vcpulab.Scenario.from_toml(made.stdout).to_dict()["host"]["scheduler"] == "credit2"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "no files"),
        (("missing.bin",), "missing.bin"),
        (("hogs.toml",), "found none; allowed: one trace"),
        (("noise.bin",), "not known by how it begins"),
        (("empty",), "found none; allowed: one trace"),
        (("score", "recorded", "--split", "0"), "--split: found `0`; allowed: 5 to 95"),
        (("score", "recorded", "--replications", "1"), "--replications: found `1`"),
        (("score", "recorded", "--scenario", "hogs.toml"), "none of its domains has the name of one recorded"),
        (("recorded", "--scheduler", "o1"), "o1"),
    ],
)
def test_twin_says_what_is_wrong(command: Vcpulab, tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "noise.bin").write_bytes(bytes(range(256)) * 4)
    shutil.copytree(REAL / "xen4.17-credit-weights", tmp_path / "recorded")
    result = command("twin", *arguments)
    assert (result.returncode, result.stdout) == (2, ""), result.stderr
    assert said in result.stderr
    assert "Traceback" not in result.stderr
