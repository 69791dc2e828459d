"""`vcpulab init --like`: a scenario of the answers to half a dozen questions."""

import json
import os
import pty
import subprocess
import tomllib
from pathlib import Path

import pytest

import vcpulab
from support import HANG_S, VCPULAB, Vcpulab
from vcpulab.scenario.catalogue import schedulers


def domains(file: Path) -> list[str]:
    return [
        name if name == "dom0" else name.rstrip("0123456789")
        for name in vcpulab.Scenario.load(file).to_dict()["domain"]
    ]


def test_without_a_terminal_options_answer(command: Vcpulab, tmp_path: Path) -> None:
    answers = [
        "--threads",
        "16",
        "--scheduler",
        "credit",
        "--web",
        "1",
        "--service",
        "15",
        "--batch",
        "12",
        "--idle",
        "0",
    ]
    made = command("init", "forty.toml", "--like", *answers)
    assert made.returncode == 0, made.stderr
    file = tmp_path / "forty.toml"
    assert domains(file) == ["dom0", "web", *["service"] * 15, *["batch"] * 12]
    assert file.read_text().count("\n[domain.") == 4
    host = vcpulab.Scenario.load(file).to_dict()["host"]
    assert (host["pcpus"], host["scheduler"]) == (16, "credit")
    checked = command("check", "forty.toml")
    assert (checked.stdout, checked.stderr) == ("forty.toml: ok\n", "")
    assert "exists already" in command("init", "forty.toml", "--like").stderr


def test_in_a_terminal_it_asks_for_the_rest(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, b"4\ncredti\ncredit\n2\n\n0\n")
    done = subprocess.run(
        [VCPULAB, "init", "mine.toml", "--like", "--idle", "3"],
        cwd=tmp_path, stdin=theirs, capture_output=True, text=True, timeout=HANG_S, check=False,
    )  # fmt: skip
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 0, done.stderr
    assert "did you mean `credit`?" in done.stderr
    assert done.stderr.count("]: ") == 6, "one of them twice, and the idle ones were given"
    assert domains(tmp_path / "mine.toml") == ["dom0", "web", "web", *["service"] * 4, *["idle"] * 3]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--threads", "4"], "are for --like"),
        (["--like", "--threads", "0"], "--threads: found `0`; allowed: an integer from 1 to 512"),
        (["--like", "--scheduler", "credti"], "hint: did you mean `credit`?"),
        (["--like", "--web", "-1"], "--web"),
    ],
)
def test_wrong_answers_are_told(command: Vcpulab, arguments: list[str], said: str) -> None:
    result = command("init", "new.toml", *arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert said in result.stderr


def test_every_scheduler_that_is_offered_makes_a_valid_file(command: Vcpulab, tmp_path: Path) -> None:
    offered = [one.name for one in schedulers() if one.name not in ("arinc653", "null")]
    for name in offered:
        made = command("init", f"{name}.toml", "--like", "--scheduler", name)
        assert made.returncode == 0, (name, made.stderr)
        host = tomllib.loads((tmp_path / f"{name}.toml").read_text())["host"]
        assert host.get("hypervisor", "xen") == ("kvm" if name.startswith("linux-") else "xen")


def test_check_tells_programs_too(command: Vcpulab, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text((tmp_path / "hogs.toml").read_text().replace("pcpus = 1", "pcpus = 0"))
    told = command("check", "hogs.toml", "bad.toml", "missing.toml", "--format", "json")
    assert told.returncode == 2
    answers = json.loads(told.stdout)
    assert [answer["ok"] for answer in answers.values()] == [True, False, False]
    (problem,) = answers["bad.toml"]["problems"]
    assert (problem["field"], problem["found"], problem["line"]) == ("host.pcpus", "0", 9)
    assert "no such file" in answers["missing.toml"]["problems"][0]["message"]
    assert "too many arguments: `b.toml`" in command("run", "hogs.toml", "b.toml").stderr
