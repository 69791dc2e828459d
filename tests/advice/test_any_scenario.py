"""Advice on scenarios by chance and on bundled ones: it ends as documented, and never contradicts simple facts."""

from pathlib import Path

import pytest

import vcpulab
from random_scenarios import random_scenario
from support import ROOT, Vcpulab
from vcpulab import Effort
from vcpulab.advice.bounds import bounds
from vcpulab.advice.capacity.occupancy import NEAR_FULL
from vcpulab.advice.lint.host import Host
from vcpulab.advice.lint.lint import advise
from vcpulab.errors import ScenarioError

SHORT = {"run.duration": "60ms", "run.warmup": "5ms", "run.replications": 2}
BUNDLED = sorted((ROOT / "scenarios").glob("*.toml"))[::4]


def shortened(text: str) -> vcpulab.Scenario:
    try:
        return vcpulab.Scenario.from_toml(text).change(SHORT)
    except ScenarioError:
        pytest.skip("it has something later than that")


@pytest.mark.parametrize(
    "text",
    [*map(random_scenario, range(4)), *(path.read_text(encoding="utf-8") for path in BUNDLED)],
    ids=[*map(str, range(4)), *(path.stem for path in BUNDLED)],
)
def test_findings_of_lint_agree_with_what_was_measured(text: str) -> None:
    scenario = shortened(text)
    advice = advise(scenario, effort=Effort(replications=2))
    if not advice:
        return
    host = Host(scenario, vcpulab.run(scenario))
    full = {station.name for station in bounds(scenario).stations if station.asked > 1}
    for one in advice:
        name = one.finding.path.split(".")[1]
        if one.finding.rule == "capacity-exceeded" and "itself uses all that its" in one.finding.reason:
            assert min(host.occupied(name)) >= NEAR_FULL
        if one.finding.rule == "tasks-fill-vcpus":
            assert min(host.occupied(name)) < NEAR_FULL <= max(host.occupied(name))
        if "no setting of the scheduler changes that" in one.finding.reason:
            assert any(f" {station}, whatever" in one.finding.reason for station in full), one.finding.reason
        if one.finding.rule == "host-full":
            assert host.idle_of(host.pcpus_of("Pool-0")) < 0.05


@pytest.mark.parametrize("seed", range(3))
def test_every_adviser_ends_as_documented(seed: int, command: Vcpulab, tmp_path: Path) -> None:
    scenario = shortened(random_scenario(seed))
    (tmp_path / "any.toml").write_text(scenario.to_toml(), encoding="utf-8")
    domain = list(scenario.to_dict()["domain"])[-1]
    for name, *options in (
        ["lint", "--replications", "2"],
        ["bounds"],
        ["whatif", "--set", f"{domain}.vcpus=2"],
        ["capacity", "--vary", f"copies:{domain}", "--highest", "2", "--budget", "20"],
        ["place", "--replications", "2", "--budget", "20"],
    ):
        result = command(name, "any.toml", *options)
        assert result.returncode in (0, 1, 2), f"{name}: {result.stderr}"
        assert "Traceback" not in result.stderr, f"{name}: {result.stderr}"
