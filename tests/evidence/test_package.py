"""The package `vcpulab-evidence` beside `vcpulab`: its version, its commands, and what is said where it is missing."""

import tomllib
from importlib.metadata import distribution

import pytest

from support import ROOT
from vcpulab import plugins
from vcpulab.cli.main import COMMANDS, EVIDENCE, app, main
from vcpulab_evidence.studies import NAMES

OFFERED = [command.name for group in COMMANDS.values() for command in group if command.package == EVIDENCE]
pytestmark = pytest.mark.quick


def test_both_packages_have_one_version() -> None:
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    evidence = tomllib.loads((ROOT / "evidence/pyproject.toml").read_text())["project"]
    assert evidence["version"] == workspace["version"]
    assert evidence["dependencies"] == [f"vcpulab[report]=={workspace['version']}"]


def test_the_package_offers_the_commands_that_are_listed_as_its_own() -> None:
    points = distribution(EVIDENCE).entry_points
    assert {point.name: point.group for point in points} == dict.fromkeys(OFFERED, "vcpulab.commands")


@pytest.mark.parametrize("name", OFFERED)
def test_where_the_package_is_missing_its_commands_say_what_to_install(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(plugins, "places", lambda _group: {})
    assert main([name, "--help"]) == 2
    message, hint = capsys.readouterr().err.splitlines()
    assert message == f"error: `vcpulab {name}` is in the package {EVIDENCE}"
    assert "make build" in hint
    assert "pip install" not in hint


def test_where_the_package_is_missing_other_commands_and_completion_work(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(plugins, "places", lambda _group: {})
    assert not set(OFFERED) & set(app())
    assert main(["--help"]) == main(["schema"]) == main(["completion", "bash"]) == 0
    assert NAMES[0] not in capsys.readouterr().out


def test_a_package_that_cannot_be_loaded_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(plugins, "places", lambda _group: {"study": "vcpulab_absent:study"})
    assert main(["study", "list"]) == 2
    assert "hint: install vcpulab and vcpulab-evidence of one release" in capsys.readouterr().err
