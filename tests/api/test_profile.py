"""Hardware profiles in files: measured, used, and refused when something is wrong with them."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import vcpulab
from support import HANG_S, Vcpulab
from vcpulab import _engine
from vcpulab.scenario.measured import measure

SCENARIO = """[run]
duration = "100ms"
warmup = "0s"
[host]
profile = "machine.toml"
scheduler = "credit"
[domain.a]
app = [{ kind = "hog" }]
"""


def profile_text(name: str = "dl360") -> str:
    profile = next(profile for profile in vcpulab.profiles() if profile.name == name)
    lines = [f"doc = {json.dumps(profile.doc)}"]
    for constant in (profile.pcpus, None, *profile.constants.values()):
        fields = (f"{key} = {json.dumps(getattr(constant, key))}" for key in ("value", "kind", "source") if constant)
        lines.append(f"{constant.name} = {{ {', '.join(fields)} }}" if constant else "[constants]")
    return "\n".join(lines) + "\n"


@pytest.fixture(name="folder")
def scenario_beside_its_profile(tmp_path: Path) -> Path:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "machine.toml").write_text(profile_text())
    (folder / "scenario.toml").write_text(SCENARIO)
    return folder


def test_a_profile_file_is_looked_for_beside_the_scenario(folder: Path) -> None:
    scenario = vcpulab.Scenario.load(folder / "scenario.toml")
    assert scenario.to_dict()["host"]["costs"]["l3_bytes"] == 2 << 20
    assert scenario.change({"seed": 5}).to_dict()["host"]["pcpus"] == 4


def test_a_saved_run_needs_no_profile_file(folder: Path, command: Vcpulab) -> None:
    first = command("run", str(folder / "scenario.toml"), "--out", "out", "--format", "json")
    assert first.returncode == 0, first.stderr
    (folder / "machine.toml").unlink()
    again = command("run", "out/scenario.toml", "--format", "json")
    assert json.loads(again.stdout)["metrics"] == json.loads(first.stdout)["metrics"]


def test_what_is_wrong_with_a_profile_file_is_said_with_its_place(folder: Path, command: Vcpulab) -> None:
    text = profile_text().replace("l2_bytes = { value = 524288", "l2_bytes = { value = -1", 1)
    (folder / "machine.toml").write_text(text)
    result = command("check", str(folder / "scenario.toml"))
    assert result.returncode == 2
    line = text[: text.index("value = -1")].count("\n") + 1
    assert f"machine.toml:{line}:22: constants.l2_bytes.value: found `-1`" in result.stderr
    (folder / "machine.toml").unlink()
    missing = command("profile", "show", str(folder / "machine.toml"))
    assert missing.returncode == 2
    assert "machine.toml: cannot be read" in missing.stderr


def test_a_measured_profile_can_be_used_and_says_what_was_measured(folder: Path, command: Vcpulab) -> None:
    path = folder / "machine.toml"
    assert command("profile", "measure", "--out", str(path)).returncode == 2, "it exists already"
    result = command("profile", "measure", "--base", "lp200r", "--out", str(path), "--force")
    assert result.returncode == 0, result.stderr
    assert command("run", str(folder / "scenario.toml")).returncode == 0
    shown = json.loads(command("profile", "show", str(path), "--format", "json").stdout)
    for constant in shown["constants"]:
        copied = constant["source"].startswith("assumption: as in profile `lp200r`")
        assert constant["kind"] == ("assumed" if copied else "measured"), constant["name"]
        assert copied or constant["name"] in result.stdout


def test_a_measured_profile_has_the_topology_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    base = next(profile for profile in vcpulab.profiles() if profile.name == "generic")
    found = json.loads(_engine.measure())
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    places = {"sockets": 2, "cores": 2, "threads": 2, "nodes": 2, "numbering": "spread"}
    for changes, expected in (
        ({}, 'topology = { sockets = 2, cores = 2, threads = 2, nodes = 2, numbering = "spread" }'),
        ({"cores": 3}, None),
    ):
        answer = json.dumps({**found, "places": {**places, **changes}})
        monkeypatch.setattr(_engine, "measure", lambda answer=answer: answer)
        lines = measure(base).text.splitlines()
        assert [line for line in lines if line.startswith("topology")] == ([expected] if expected else [])


def test_a_measured_profile_has_constants_that_its_base_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    base = next(profile for profile in vcpulab.profiles() if profile.name == "generic")
    found = json.loads(_engine.measure())
    name = "smt_memory_beside_io_percent"
    said = {"value": 71, "low": 70, "high": 73, "samples": 7, "how": "beside each other"}
    answer = json.dumps({**found, "constants": {**found["constants"], name: said}, "missing": {}})
    monkeypatch.setattr(_engine, "measure", lambda: answer)
    (line,) = [line for line in measure(base).text.splitlines() if line.startswith("smt_")]
    assert line.startswith(f'{name} = {{ value = 71, kind = "measured", source = ')
    assert "median of 7, quartiles 70 and 73" in line


@pytest.mark.parametrize(
    ("name", "other", "value"), [("l3_miss_ps", "l2_miss_ps", 107_561), ("l2_miss_ps", "l3_miss_ps", 15_000)]
)
def test_what_is_not_measured_fits_what_is(monkeypatch: pytest.MonkeyPatch, name: str, other: str, value: int) -> None:
    """On a busy machine the one shows and the other does not, and the base's would be on the wrong side of it."""
    base = next(profile for profile in vcpulab.profiles() if profile.name == "generic")
    found = json.loads(_engine.measure())
    said = {"value": value, "low": value, "high": value, "samples": 7, "how": "a walk"}
    constants = {kind: found["constants"][kind] for kind in found["constants"] if kind != name} | {other: said}
    answer = json.dumps({**found, "constants": constants, "missing": {name: "no walk was long enough"}})
    monkeypatch.setattr(_engine, "measure", lambda: answer)
    (line,) = [line for line in measure(base).text.splitlines() if line.startswith(name)]
    assert line.startswith(f'{name} = {{ value = {value}, kind = "assumed", source = "assumption: as in ')
    assert line.endswith(f'`{other}`; not measured: no walk was long enough" }}')


def test_measuring_ends_when_it_is_interrupted() -> None:
    code = "from vcpulab import _engine; print('begins', flush=True); _engine.measure()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as measuring:
        assert measuring.stdout is not None
        assert measuring.stdout.readline() == "begins\n"
        time.sleep(0.2)
        measuring.send_signal(signal.SIGINT)
        _, errors = measuring.communicate(timeout=HANG_S)
    assert "KeyboardInterrupt" in errors


def test_no_such_profile(command: Vcpulab) -> None:
    result = command("profile", "show", "lp200")
    assert result.returncode == 2
    assert "found `lp200`; allowed: one of generic" in result.stderr
