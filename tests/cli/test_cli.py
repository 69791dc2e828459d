"""The command line, as a user runs it: what it prints, where, and its exit status."""

import csv
import gzip
import io
import json
import lzma
import os
import shutil
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import polars as pl
import pytest

from support import (
    HANG_S,
    ROOT,
    TWO_HOGS,
    VCPULAB,
    Vcpulab,
    commands_with_examples,
    examples_of,
    run_vcpulab,
    write_program,
)
from vcpulab import conformance as vectors
from vcpulab.results.tables import TABLES

pytestmark = pytest.mark.quick

COMMANDS = [name for name in commands_with_examples() if name.split()[0] not in {"demo", "explain", "study"}]
"""Examples of the others have tests beside those of their results: test_report.py, test_explain.py, test_studies.py."""


CONFORMANCE = ("conformance",)
BENCH = ("bench", "--seconds", "0.01")


@cache
def once(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """A command that takes seconds, and is an example in the help as well as a test of its own."""
    return run_vcpulab(arguments, ROOT)


def test_run_prints_every_kind_of_metric(command: Vcpulab) -> None:
    result = command("run", "hogs.toml")
    assert result.returncode == 0, result.stderr
    for word in ("two hogs", "Domains", "gotten", "of entitlement", "Applications", "throughput", "pCPUs", "±"):
        assert word in result.stdout
    assert result.stderr == ""


def test_run_with_other_settings(command: Vcpulab) -> None:
    result = command("run", "hogs.toml", "--set", "b.weight=256", "--format", "json")
    gotten = {f["thing"]: f["mean"] for f in json.loads(result.stdout)["metrics"] if f["metric"] == "gotten"}
    assert gotten == pytest.approx({"a": 50, "b": 50}, abs=8)
    assert command("run", "hogs.toml", "--set", "c.weight=256").returncode == 2


def test_run_as_json(command: Vcpulab) -> None:
    result = command("run", "hogs.toml", "--format", "json", "--seed", "9", "--replications", "2")
    document = json.loads(result.stdout)
    assert (document["seed"], document["replications"]) == (9, 2)
    gotten = {f["thing"]: f["mean"] for f in document["metrics"] if f["metric"] == "gotten"}
    assert gotten == pytest.approx({"a": 25, "b": 75}, abs=8)


def test_run_as_csv(command: Vcpulab) -> None:
    result = command("run", "hogs.toml", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert {row["of"] for row in rows} == {"domain", "app", "pcpu", "host"}
    assert {row["n"] for row in rows if row["metric"] == "gotten"} == {"3"}


def test_run_shows_the_io_of_domains_that_have_other_devices(command: Vcpulab) -> None:
    assert command("init", "web.toml").returncode == 0
    result = command("run", "web.toml", "--io")
    assert result.returncode == 0, result.stderr
    web = next(line for line in result.stdout.partition("I/O")[2].splitlines() if line.split()[:1] == ["web"])
    assert "–" in web, "it has no NIC of its own"


def test_run_writes_a_directory_that_says_how_to_repeat_it(command: Vcpulab, tmp_path: Path) -> None:
    first = command("run", "hogs.toml", "--format", "json", "--out", "out/a")
    assert first.returncode == 0, first.stderr
    names = {path.name for path in (tmp_path / "out" / "a").iterdir()}
    tables = {f"{table}.parquet" for table in TABLES}
    assert names == {"scenario.toml", "result.json"} | tables
    assert pl.read_parquet(tmp_path / "out/a/decisions.parquet").height > 0
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["a"], "nothing else is left behind"
    again = command("run", "out/a/scenario.toml", "--format", "json", "--out", "out/b")
    assert again.stdout == first.stdout
    for table in tables:
        assert (tmp_path / "out/a" / table).read_bytes() == (tmp_path / "out/b" / table).read_bytes()


def test_run_replaces_a_run_and_nothing_else(command: Vcpulab, tmp_path: Path) -> None:
    assert command("run", "hogs.toml", "--out", "a").returncode == 0
    assert command("run", "hogs.toml", "--out", "a").returncode == 0
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.tex").write_text("years of work")
    refused = command("run", "hogs.toml", "--out", "other")
    assert refused.returncode == 2
    assert "holds other files" in refused.stderr
    assert (other / "thesis.tex").read_text() == "years of work"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run"], "FILE"),
        (["run", "missing.toml"], "missing.toml: no such file"),
        (["run", "."], "is a directory"),
        (["run", "binary.toml"], "binary.toml: not a text file"),
        (["run", "typo.toml"], "typo.toml:11:1: domain.a.wieght: "),
        (["run", "typo.toml"], "hint: did you mean `weight`?"),
        (["run", "/dev/zero"], "/dev/zero: not a regular file"),
        (["run", "hogs.toml", "--format", "xml"], "--format"),
        (["run", "hogs.toml", "--replications", "0"], "--replications: found `0`"),
        (["run", "hogs.toml", "--seed", "-1"], "seed"),
        (["run", "hogs.toml", "--seed", "99999999999999999999999"], "seed"),
        (["run", "hogs.toml", "--jobs", "-1"], "--jobs"),
        (["run", "hogs.toml", "--out", "typo.toml"], "not a directory"),
        (["run", "hogs.toml", "--nonsense"], "--nonsense"),
        (["check"], "FILE"),
        (["check", "hogs.toml", "typo.toml"], "typo.toml:11:1"),
        (["init", "hogs.toml"], "exists already"),
        (["init", "hogs.toml/new.toml"], "not a directory"),
        (["conformance", "missing"], "missing: no such file"),
        (["conformance", "binary.toml"], "binary.toml"),
        (["conformance", "empty"], "no vector"),
        (["bench", "--seconds", "-1"], "--seconds"),
        (["frobnicate"], "frobnicate"),
    ],
)
def test_wrong_input_is_told_and_exits_with_2(
    command: Vcpulab, tmp_path: Path, arguments: list[str], said: str
) -> None:
    (tmp_path / "binary.toml").write_bytes(bytes(range(256)))
    (tmp_path / "typo.toml").write_text(
        TWO_HOGS.replace("[domain.a]\n", "[domain.a]\nwieght = 1\n").replace("name", "#")
    )
    (tmp_path / "empty").mkdir()
    result = command(*arguments)
    assert result.returncode == 2, result.stderr
    assert said in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_told(command: Vcpulab, tmp_path: Path) -> None:
    (tmp_path / "hogs.toml").chmod(0)
    result = command("run", "hogs.toml")
    assert (result.returncode, result.stderr) == (2, "error: hogs.toml: permission denied\n")


def test_check_says_ok_of_what_is(command: Vcpulab) -> None:
    result = command("check", "hogs.toml")
    assert (result.returncode, result.stdout) == (0, "hogs.toml: ok\n")


def test_threads_and_nodes_are_said_where_there_are_some(command: Vcpulab, tmp_path: Path) -> None:
    text = (tmp_path / "hogs.toml").read_text()
    flat = "pcpus = 1"
    assert flat in text
    shape = "topology = { sockets = 2, cores = 2, threads = 2, nodes = 2 }"
    (tmp_path / "server.toml").write_text(text.replace(flat, shape))
    said = "8 threads on 4 cores, 2 sockets, 2 nodes"
    assert command("check", "server.toml").stdout == f"server.toml: ok ({said})\n"
    assert f", {said}, profile " in command("run", "server.toml").stdout
    assert f"\nhost: {said}\n" in command("explain", "server.toml", "--slo", "a.wait_p99").stdout
    assert ", 1 pCPU, profile " in command("run", "hogs.toml").stdout
    assert "host:" not in command("explain", "hogs.toml", "--slo", "a.wait_p99").stdout


def test_init_writes_a_scenario_that_runs_and_is_not_lost(command: Vcpulab, tmp_path: Path) -> None:
    assert command("init").returncode == 0
    assert command("check", "scenario.toml").returncode == 0
    (tmp_path / "scenario.toml").write_text("mine")
    assert command("init").returncode == 2
    assert (tmp_path / "scenario.toml").read_text() == "mine"
    assert command("init", "--force").returncode == 0
    assert command("check", "scenario.toml").returncode == 0


def test_listings_are_complete(command: Vcpulab) -> None:
    schedulers = json.loads(command("schedulers", "--format", "json").stdout)
    table = command("schedulers").stdout
    for scheduler in schedulers:
        assert f"{scheduler['name']}: {scheduler['doc']}" in table
        for generation in scheduler["generations"]:
            assert generation["name"] in table
            for param in generation["params"]:
                assert param["name"] in table
    only = command("schedulers", "rtds").stdout
    assert "budget_us" in only
    assert "credit" not in only
    unknown = command("schedulers", "rdts")
    assert unknown.returncode == 2
    assert "one of arinc653, atropos, bvt" in unknown.stderr
    profiles = command("profile", "list").stdout
    for profile in json.loads(command("profile", "list", "--format", "json").stdout):
        assert profile["name"] in profiles
        shown = command("profile", "show", profile["name"]).stdout
        for constant in profile["constants"]:
            assert f"{constant['kind']}: {constant['source']}" in shown
    assert json.loads(command("schema").stdout)["title"] == "vcpulab scenario"


def test_version(command: Vcpulab) -> None:
    assert command("--version").stdout.strip().count(".") == 2


def test_help_is_broken_where_the_terminal_ends_alone(command: Vcpulab) -> None:
    lines = command("explain", "--help", COLUMNS="80").stdout.splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("Without a metric"))
    assert all(len(line) > 60 for line in lines[begin : lines.index("", begin) - 1])


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_examples_in_the_help_work(
    command: Vcpulab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    assert command("init", "web.toml").returncode == 0
    if name in {"capacity", "run", "tune", "whatif"}:  # they run it often; the guides run it as it is
        lasting(tmp_path / "web.toml", "1s")
    copy_examples_inputs(tmp_path)
    if name in {"collect", "import"}:
        # `ssh` runs the command here: what each shell and host gives is tested in tests/real_hosts/test_collect.py.
        write_program(tmp_path / "ssh", 'shift 2; exec sh -c "$*"')
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        shutil.make_archive(str(tmp_path / "host"), "gztar", ROOT / "examples", "kvm-host")
    if name == "collect":
        (tmp_path / "host.tar.gz").unlink()
    if name == "validate":
        shutil.copytree(
            ROOT / "evidence" / "recordings" / "hosts" / "linux6.18-2cpus-hogs-1", tmp_path / "out" / "real-host"
        )
    if name.startswith("export"):
        assert command("run", "web.toml", "--trace", "out/trace").returncode == 0
    for arguments in examples_of(command, name):
        if arguments == ["validate"]:
            continue  # of all recordings: `tests/evidence/test_validation_page.py`
        if name == "init":
            (tmp_path / "web.toml").unlink()
        result = once(*arguments) if tuple(arguments) in (CONFORMANCE, BENCH) else command(*arguments)
        # The starter is more than its host can carry: lint says so, and no copy of its web server has room. The twin
        # of a recording lacks a thread of the host.
        assert result.returncode in ({0, 1} if name in {"lint", "capacity", "validate"} else {0}), result.stderr


def copy_examples_inputs(folder: Path) -> None:
    """Writes the files that examples in the help read, under the names that they have there."""
    shutil.copytree(next(vectors.bundled().glob("null-*")), folder / "my-vectors")
    for example in ("lottery.py", "weights.toml"):
        shutil.copy(ROOT / "examples" / example, folder)
    shutil.copy(ROOT / "examples" / "rt-app.json", folder / "workload.json")
    shutil.copy(ROOT / "scenarios" / "kvm-web-beside-batch.toml", folder / "kvm.toml")
    for listing in ("machines.xml", "lscpu.txt", "kernel.txt"):
        shutil.copy(ROOT / "examples" / "kvm-host" / listing, folder)
    recorded = folder / "recorded"
    shutil.copytree(ROOT / "tests/recordings/xen4.17-credit-weights", recorded)
    for file in ("trace.bin.xz", "list0.txt"):
        shutil.copy(recorded / file, folder)
    (folder / "trace.bin").write_bytes(lzma.decompress((recorded / "trace.bin.xz").read_bytes()))
    linux = vectors.recordings() / "6.1-cfs-weights"
    shutil.copytree(linux, folder / "linux-6.1-cfs-weights")
    (folder / "sched.txt").write_bytes(gzip.decompress((linux / "trace.txt.gz").read_bytes()))
    shutil.copy(linux / "threads.txt", folder / "vcpus.txt")
    shutil.copytree(vectors.recordings() / "6.12-eevdf-weights", folder / "recordings" / "eevdf")


def test_all_bundled_vectors_agree() -> None:
    result = once(*CONFORMANCE)
    assert result.returncode == 0, result.stdout
    assert result.stdout.splitlines()[-1].endswith(" 0 failed, 0 skipped")


def test_a_vector_that_disagrees_is_shown_with_what_led_to_it(command: Vcpulab, tmp_path: Path) -> None:
    folder = tmp_path / "credit-xen4.17"
    shutil.copytree(vectors.bundled() / "credit-xen4.17", folder)
    trace = sorted(folder.glob("*.trace.csv.gz"))[0]
    lines = gzip.decompress(trace.read_bytes()).decode().splitlines()
    time_ns, rest = lines[5].split(",", 1)
    lines[5] = f"{int(time_ns) + 1},{rest}"
    trace.write_bytes(gzip.compress("\n".join(lines).encode() + b"\n"))
    result = command("conformance", str(folder))
    assert result.returncode == 1
    vector = trace.name.removesuffix(".trace.csv.gz")
    assert vector in result.stdout
    assert f"expected  {int(time_ns) + 1} ns" in result.stdout
    assert f"got       {time_ns} ns" in result.stdout
    assert "decisions before:" in result.stdout
    count = len(list(folder.glob("*.json")))
    assert result.stdout.splitlines()[-1] == f"{count - 1} passed, 1 failed, 0 skipped"
    report = json.loads(command("conformance", str(folder), "--format", "json").stdout)
    assert (report["passed"], report["failed"]) == (count - 1, 1)


def test_a_vector_of_an_unknown_scheduler_is_skipped_and_told(command: Vcpulab, tmp_path: Path) -> None:
    source = sorted((vectors.bundled() / "credit-xen4.17").glob("*.json"))[0]
    vector = json.loads(source.read_text()) | {"scheduler": "lottery"}
    (tmp_path / "v").mkdir()
    (tmp_path / "v" / source.name).write_text(json.dumps(vector))
    result = command("conformance", "v")
    assert result.returncode == 0
    assert "lottery" in result.stdout
    assert result.stdout.splitlines()[-1] == "0 passed, 0 failed, 1 skipped"


def test_bench_measures_each_policy_beside_the_bare_loop(command: Vcpulab, tmp_path: Path) -> None:
    result = command("bench", "--seconds", "0.01", "--format", "json", "--out", "runs/figures.json")
    figures = json.loads(result.stdout)
    assert figures["floor_events_per_s_4x16"] > 0
    assert {"decisions_per_s_4x16", "decisions_per_s_4x16_round_robin", "bytes_per_vcpu"} <= figures.keys()
    assert {"whole_tasks_16_ns_per_dispatch", "whole_web_server_read_ms"} <= figures.keys()
    assert "starter_wall_s_per_simulated_s" in figures
    assert all(value > 0 for value in figures.values())
    assert json.loads((tmp_path / "runs" / "figures.json").read_text()) == figures
    table = once(*BENCH).stdout
    assert "of the bare loop" in table
    assert "floor_events_per_s_4x16" in table
    assert "crowd-63" in table


def test_interrupting_ends_soon_and_cleanly(tmp_path: Path) -> None:
    long = tmp_path / "long.toml"
    shutil.copy(ROOT / "crates/scenario/src/starter.toml", long)
    lasting(long, "1200min")
    ready = "from vcpulab.cli.main import main; print('ready', flush=True); raise SystemExit(main())"
    process = subprocess.Popen(
        [sys.executable, "-c", ready, "run", long], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(1)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=HANG_S)
    assert (process.returncode, errors) == (130, "interrupted\n")


def lasting(file: Path, duration: str) -> None:
    """Gives the scenario to start from another duration."""
    text = file.read_text()
    assert 'duration = "10s"' in text
    file.write_text(text.replace('duration = "10s"', f'duration = "{duration}"'))


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    line = ["bash", "-o", "pipefail", "-c", f"{VCPULAB} schema | head -c 10"]
    result = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (len(result.stdout), result.stderr, result.returncode) == (10, "", 0)


def test_no_color(command: Vcpulab) -> None:
    coloured = command("run", "missing.toml", FORCE_COLOR="1", TERM="xterm")
    plain = command("run", "missing.toml", FORCE_COLOR="1", NO_COLOR="1", TERM="xterm")
    assert "\x1b[1;31merror: \x1b[0m" in coloured.stderr
    assert "\x1b[3" not in plain.stderr


@pytest.mark.parametrize(
    ("words", "expected"), [(["sch"], ["schedulers", "schema"]), (["run", "--form"], ["--format"])], ids=str
)
def test_bash_completes(command: Vcpulab, tmp_path: Path, words: list[str], expected: list[str]) -> None:
    (tmp_path / "completion").write_text(command("completion", "bash").stdout)
    line = " ".join(["vcpulab", *words])
    script = f'. ./completion; COMP_WORDS=({line}); COMP_CWORD={len(words)}; _vcpulab; echo "${{COMPREPLY[@]}}"'
    shown = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert sorted(shown.split()) == expected
