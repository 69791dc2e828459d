"""Policies of the user's own that print or fail, under commands."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from support import HANG_S
from vcpulab.cli.main import main

HOGS = """
run = { duration = "20ms", replications = 2 }
host = { profile = "exact", pcpus = 1, scheduler = "p.py:P" }
domain.a.app = [{ kind = "hog" }]
"""
POLICY = """
import sys
from vcpulab import Policy
print("at import")
class P(Policy):
    def __init__(self, params, seed): print("made")
    def sleep(self, ctx, v): sys.stdout.write("asleep")
    def wake(self, ctx, v): ctx.raise_reschedule(0)
    def schedule(self, ctx, p):
        print("deciding")
        return (ctx.guest_vcpus[0], 1_000_000) if ctx.runnable(ctx.guest_vcpus[0]) else (ctx.idle(p), -1)
"""


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("hogs.toml").write_text(HOGS)
    Path("credit.toml").write_text(HOGS.replace("p.py:P", "credit"))
    Path("p.py").write_text(POLICY)


@pytest.mark.parametrize(
    "words",
    [
        ["run", "hogs.toml"],
        ["run", "credit.toml", "--set", "host.scheduler=p.py:P"],
        ["whatif", "hogs.toml", "--set", "host.scheduler=credit", "--replications", "2"],
        ["compare", "hogs.toml", "credit.toml", "--replications", "2"],
        ["explain", "hogs.toml", "--replications", "2"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("form", ["json", "csv"])
def test_what_a_policy_prints_does_not_mix_with_the_answer(
    capsys: pytest.CaptureFixture[str], words: list[str], form: str
) -> None:
    if (words[0], form) == ("explain", "csv"):
        form = "json"
    assert main([*words, "--format", form]) == 0
    shown = capsys.readouterr()
    if form == "json":
        json.loads(shown.out)
    else:
        assert len({len(row) for row in csv.reader(io.StringIO(shown.out))}) == 1
    assert "deciding" not in shown.out
    assert "deciding" in shown.err
    assert "at import" in shown.err


def test_a_failed_run_leaves_no_part_of_a_trace(capsys: pytest.CaptureFixture[str]) -> None:
    Path("p.py").write_text(POLICY.replace("return (ctx", "return ctx.now < 5_000_000 and (ctx"))
    assert main(["run", "hogs.toml", "--trace", "events"]) == 1
    assert "in `schedule`" in capsys.readouterr().err
    assert list(Path("events").iterdir()) == []
    Path("p.py").write_text(POLICY)
    assert main(["run", "hogs.toml", "--trace", "events"]) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="limits on files")
def test_a_full_disk_leaves_no_part_of_a_trace() -> None:
    """A limit on files stands for the disk: what is beyond it cannot be written.

    `-B`: Python 3.11 would cut bytecode off without an error, and all later imports would fail.
    """
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)); "
        "from vcpulab.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    words = ["run", "credit.toml", "--set", "run.duration=60s", "--trace", "events"]
    done = subprocess.run(
        [sys.executable, "-B", "-c", code, *words], capture_output=True, text=True, check=False, timeout=HANG_S
    )
    assert done.returncode == 1, done.stderr
    assert "events" in done.stderr
    assert list(Path("events").iterdir()) == []
