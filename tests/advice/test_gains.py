"""What a setting gains: one scale for all units, without an end above, and with one below."""

import math

import pytest

import vcpulab
from vcpulab.advice.tuning.goals import Goal, goal
from vcpulab.advice.tuning.prices import PRICES


@pytest.fixture(scope="module")
def starter() -> vcpulab.Scenario:
    return vcpulab.Scenario.starter()


def gain(wanted: Goal, new: float | None, old: float | None) -> float:
    (address,) = wanted.addresses
    return wanted.gain({address.name: new}, {address.name: old})


def test_a_great_gain_does_not_hide_a_greater_one(starter: vcpulab.Scenario) -> None:
    """37, 8,039 and 22,264/s: relative to their mean the last two gained 1.98 and 1.99, less apart than any price."""
    wanted = goal(starter, "http.throughput", higher=True)
    apart = gain(wanted, 22264, 37) - gain(wanted, 8039, 37)
    assert apart == pytest.approx(math.log(22264 / 8039))
    assert apart > max(PRICES.values()) / 100
    assert gain(wanted, 37, 8039) == -gain(wanted, 8039, 37)
    times = goal(starter, "http.response_p99", higher=False)
    assert gain(times, 110, 100) == pytest.approx(-0.1, abs=0.005)


@pytest.mark.parametrize(
    ("name", "nothing", "worse", "better"),
    [
        ("http.throughput", 0.0, 100.0, 200.0),
        ("http.response_p99", None, 400.0, 20.0),
        ("http.failed", 50.0, 1.0, 0.0),
        ("dom0.wait_p50", None, 30.0, 0.0),
    ],
)
def test_two_cures_of_what_stands_still_are_told_apart(
    starter: vcpulab.Scenario, name: str, nothing: float | None, worse: float, better: float
) -> None:
    wanted = goal(starter, name, higher=name.endswith("throughput"))
    assert gain(wanted, nothing, nothing) == 0
    assert gain(wanted, better, nothing) - gain(wanted, worse, nothing) == pytest.approx(gain(wanted, better, worse))
    assert gain(wanted, better, worse) > 0.5
    assert gain(wanted, worse, nothing) > 0


def test_what_has_an_end_is_scored_in_points(starter: vcpulab.Scenario) -> None:
    wanted = goal(starter, "dom0.waited", higher=False)
    assert gain(wanted, 30, 50) == pytest.approx(0.2)
    assert gain(wanted, 0, None) > gain(wanted, 0, 100)
    assert wanted.percent(0.2) == pytest.approx(20)


def test_a_gain_is_said_in_percent(starter: vcpulab.Scenario) -> None:
    rate, time = (goal(starter, f"http.{name}", higher=name == "throughput") for name in ("throughput", "response_p99"))
    assert rate.percent(gain(rate, 300, 100)) == pytest.approx(200)
    assert time.percent(gain(time, 25, 100)) == pytest.approx(75)
