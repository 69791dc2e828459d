"""The command line starts at once, and can be interrupted from the first moment."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support import VCPULAB, Vcpulab, run_vcpulab
from vcpulab.cli.main import COMMANDS, Command, app, overview

HEAVY = ("polars", "numpy", "scipy", "altair", "rich.progress", "textual", "optuna")
LISTED = [command for commands in COMMANDS.values() for command in commands]


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["check", "hogs.toml"]])
def test_nothing_heavy_is_imported_before_it_is_used(command: Vcpulab, tmp_path: Path, arguments: list[str]) -> None:
    assert command(*arguments).returncode == 0
    code = f"""
import json, sys
from vcpulab.cli.main import main
status = main({arguments!r})
print(json.dumps([status, sorted(set({HEAVY!r}) & sys.modules.keys())]))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == [0, []]


@pytest.mark.parametrize("package", ["cyclopts", "tomli_w", "polars"])
def test_an_interrupt_while_packages_are_imported_is_one_line(command: Vcpulab, tmp_path: Path, package: str) -> None:
    assert command("check", "hogs.toml").returncode == 0
    (tmp_path / f"{package}.py").write_text("raise KeyboardInterrupt\n")
    code = f"import sys; sys.path.insert(0, '.'); sys.argv[0] = {str(VCPULAB)!r}; exec(open(sys.argv[0]).read())"
    done = subprocess.run(
        [sys.executable, "-c", code, "run", "hogs.toml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


def test_an_interrupt_from_the_first_moment_on_is_one_line() -> None:
    code = """
import os, signal, sys

class Press:
    def find_spec(self, name, *_):
        if name == "vcpulab.cli.main":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Press())
from vcpulab.cli import start
start()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_an_import_that_an_interrupt_fails_is_no_missing_package(command: Vcpulab, tmp_path: Path) -> None:
    assert command("check", "hogs.toml").returncode == 0
    code = f"""
import os, signal, sys

class Press:
    def find_spec(self, name, *_):
        if name == "ortools":
            try:
                os.kill(os.getpid(), signal.SIGINT)
            except KeyboardInterrupt:
                raise ImportError("as packages in C do it") from None

sys.meta_path.insert(0, Press())
sys.argv = [{str(VCPULAB)!r}, "place", "hogs.toml", "--slo", "a.gotten > 1"]
from vcpulab.cli import start
start()
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 130, done.stderr
    assert "not installed" not in done.stderr
    assert done.stderr.endswith("interrupted\n")


def test_the_help_lists_every_command_in_its_group(command: Vcpulab) -> None:
    shown = command("--help").stdout
    assert shown == command().stdout == overview() + "\n"
    assert re.findall(r"^(\w[\w ]*):$", shown, re.MULTILINE) == [*COMMANDS, "Options", "Examples"]
    assert [name for name in app() if not name.startswith("-")] == [listed.name for listed in LISTED]
    assert command("-h").stdout == shown


@pytest.mark.parametrize("listed", LISTED, ids=lambda listed: listed.name)
def test_the_help_of_a_command_begins_as_that_of_all(listed: Command) -> None:
    assert app()[listed.name].help.splitlines()[0] == listed.summary


@pytest.mark.parametrize(
    ("arguments", "said", "hint"),
    [
        (["run"], "error: FILE is missing", "vcpulab run --help"),
        (["capacity", "hogs.toml"], "error: --vary is missing", "vcpulab capacity --help"),
        (["study", "run"], "error: NAME is missing", "vcpulab study run --help"),
        (["run", "hogs.toml", "--jobs"], "--jobs", "vcpulab run --help"),
        (["run", "hogs.toml", "--nonsense"], "--nonsense", "vcpulab run --help"),
        (["study", "frobnicate"], "frobnicate", "vcpulab study --help"),
        (["chek"], "error: there is no command `chek`", "did you mean `check`?"),
        (["--verison"], "error: there is no option `--verison`", "vcpulab --help"),
    ],
)
def test_a_wrong_command_line_points_to_the_help_of_its_command(
    command: Vcpulab, arguments: list[str], said: str, hint: str
) -> None:
    result = command(*arguments)
    assert result.returncode == 2
    assert said in result.stderr
    assert result.stderr.endswith(f"\n  hint: {hint}\n")


@pytest.mark.parametrize("arguments", [["tune", "hogs.toml"], ["capacity", "hogs.toml", "--vary", "copies:a"]])
@pytest.mark.parametrize("budget", ["90", "soon", "0s", "-5m", "721h", "1e3s"])
def test_a_budget_has_a_unit_for_every_command(command: Vcpulab, arguments: list[str], budget: str) -> None:
    result = command(*arguments, f"--budget={budget}")
    assert result.returncode == 2
    allowed = "allowed: a time such as 90s, 10m or 2h, at most 720h"
    assert result.stderr.startswith(f"error: --budget: found `{budget}`; {allowed}\n")
    assert "A number with a unit" in re.sub(r"[\s│]+", " ", command(arguments[0], "--help").stdout)


@pytest.mark.parametrize("precision", ["1", "0%", "101%", "2 percent", "nan%"])
def test_a_precision_is_a_percentage(tmp_path: Path, precision: str) -> None:
    result = run_vcpulab(["study", "run", "cherkasova2007", "--precision", precision], tmp_path)
    assert result.returncode == 2
    assert result.stderr.startswith(f"error: --precision: found `{precision}`; allowed: more than 0%, at most 100%")


def test_ranges_stand_in_the_help(command: Vcpulab) -> None:
    shown = re.sub(r"[\s│]+", " ", command("run", "--help").stdout)
    assert "Allowed: 1 to 10000." in shown
    assert "Allowed: 0 to 1024." in shown


@pytest.mark.parametrize("replications", ["0", "10001", "1.5", "many", "-1", ""])
def test_a_number_out_of_its_range_is_refused_with_the_range(command: Vcpulab, replications: str) -> None:
    result = command("run", "hogs.toml", f"--replications={replications}")
    assert result.returncode == 2
    allowed = "allowed: an integer from 1 to 10000"
    assert result.stderr.startswith(f"error: --replications: found `{replications}`; {allowed}\n")
