"""The present setting is always one that `tune` can name, whatever value of whatever parameter it has."""

from random import Random
from typing import Any

import pytest

import vcpulab
from vcpulab.advice.tuning import space
from vcpulab.advice.tuning.widening import widened
from vcpulab.errors import ScenarioError
from vcpulab.scenario.catalogue import schedulers
from vcpulab.scenario.parameters import Param

HOG = {"app": [{"kind": "hog"}]}
CASES = [(policy.name, generation.name) for policy in schedulers() for generation in policy.generations]


def _value(param: Param, random: Random) -> Any:
    """Some value that a parameter may have; a flag in any of its spellings."""
    if param.kind == "choice":
        return random.choice(param.choices)
    if param.kind == "flag":
        return random.choice([0, 1, False, True])
    if param.kind != "int":
        return None
    low, high = param.min, param.max
    near = param.default if isinstance(param.default, int) else low
    return random.choice([low, random.randint(low, high), min(high, max(low, near + random.randint(1, 9)))])


def _scenarios(scheduler: str, generation: str, random: Random) -> list[vcpulab.Scenario]:
    """A scenario for each parameter of a scheduler, which has some value, those that check refuses left out."""
    (found,) = (one for p in schedulers() if p.name == scheduler for one in p.generations if one.name == generation)
    host: dict[str, Any] = {"pcpus": 4, "scheduler": scheduler, "generation": generation}
    host |= {"hypervisor": "kvm"} if scheduler.startswith("linux-") else {}
    made = []
    for param in found.params:
        value = _value(param, random)
        table = {**HOG, "vcpus": random.choice([1, 2])}
        document: dict[str, Any] = {"name": "drawn", "host": {**host}, "domain": {"a": table, "b": HOG}}
        where = document["host"] if param.scope == "global" else table
        where[param.name] = value
        try:
            made += [] if value is None else [vcpulab.Scenario.from_dict(document)]
        except ScenarioError:
            continue
    return made


@pytest.mark.parametrize(("scheduler", "generation"), CASES)
def test_the_present_value_of_any_parameter_is_an_option(scheduler: str, generation: str) -> None:
    random = Random(f"{scheduler} {generation}")
    for scenario in _scenarios(scheduler, generation, random):
        searched = widened(space(scenario, only=["*"]), ["a"])
        assert searched.changes(searched.present) == {}, scenario.to_toml()


@pytest.mark.parametrize("vcpus", [1, 2])
@pytest.mark.parametrize("cap", [1, 33, 99, 100])
@pytest.mark.parametrize("scheduler", ["credit", "credit2"])
def test_any_cap_is_an_option(scheduler: str, cap: int, vcpus: int) -> None:
    host = {"pcpus": 2, "scheduler": scheduler}
    domain = {"a": {**HOG, "vcpus": vcpus, "cap": cap}, "b": HOG}
    (caps,) = (
        one
        for one in space(vcpulab.Scenario.from_dict({"name": "capped", "host": host, "domain": domain})).parameters
        if one.name == "domain.a.cap" and one.scheduler == scheduler
    )
    values = [option.value for option in caps.options]
    assert values[caps.now] == cap
    assert values[-1] == 0
    assert values[:-1] == sorted(set(values[:-1]))
