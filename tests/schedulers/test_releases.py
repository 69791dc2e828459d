"""A release is named, and has the rules that were in it."""

import pytest

from claims import load, run
from vcpulab.scenario.catalogue import generation_of

RULES = {
    "xen4.17.0": "xen4.17.0",
    "xen4.17": "xen4.17",
    "xen4.18.2": "xen4.17",
    "xen4.19.2": "xen4.17",
    "xen4.19.3": "xen4.22",
    "xen4.20.1": "xen4.17",
    "xen4.20": "xen4.22",
    "xen4.21.0": "xen4.22",
}


@pytest.mark.parametrize(("release", "rules"), RULES.items())
def test_credit2_of_a_release_has_its_rules(release: str, rules: str) -> None:
    found = generation_of("credit2", release)
    assert found is not None
    assert found.name == rules


def test_a_release_without_the_scheduler_has_no_generation() -> None:
    assert generation_of("credit2", "xen4.16") is None
    assert generation_of("credit2", "xen4.4.2") is None


def test_a_scenario_keeps_the_release_and_runs_by_its_rules() -> None:
    name = "credit2-short-waits"
    changed = load(name).change({"host.generation": "xen4.19.2"})
    assert changed.to_dict()["host"]["generation"] == "xen4.19.2"
    releases = ("xen4.17", "xen4.19.2", "xen4.19.3", "xen4.22")
    before, still, after, newest = (
        run(name, {"host.generation": release}, decisions=True).df_decisions().rows() for release in releases
    )
    assert before == still
    assert after == newest
    assert still != after
