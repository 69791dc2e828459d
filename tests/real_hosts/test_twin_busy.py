"""Ticks that find a vCPU busy: what one takes, and that twins keep step with them as their guests did."""

import random

import pytest

from support import ROOT
from vcpulab import Twin
from vcpulab.twin.busy import all_told, busy_ns
from vcpulab.twin.messages.ticks import recognise
from vcpulab.twin.sequences import Turn, Turns

KEPT = ROOT / "evidence" / "recordings" / "xen"
US, PERIOD_US, TICK_US = 1000, 4000, 50
VCPU = (1, 0)


def sleeper(busy_us: int, spread_us: int) -> list[Turn]:
    """A guest that computes and sleeps, with a tick every 4 ms that takes part of its computation, or finds it idle."""
    chance = random.Random(1)
    turns, now = list[Turn](), 0

    def turn(run_us: int, slept_us: int) -> None:
        nonlocal now
        turns.append(Turn(((run_us * US, None),), slept_us * US, now * US, 0, run_us * US, slept_us * US))
        now += run_us + slept_us

    for _ in range(400):
        run_us = 900 + chance.randrange(2 * spread_us + 1) - spread_us
        run_us += busy_us * ((now + run_us) // PERIOD_US - now // PERIOD_US)
        slept_us = 5300 + chance.randrange(200)
        first_us = PERIOD_US - (now + run_us) % PERIOD_US
        if first_us < slept_us:
            turn(run_us, first_us)
            turn(TICK_US, slept_us - first_us - TICK_US if slept_us - first_us > 2 * TICK_US else 2 * TICK_US)
        else:
            turn(run_us, slept_us)
    return turns


@pytest.mark.parametrize("busy_us", [20, 35])
def test_turns_that_are_alike_tell_what_a_tick_takes_of_them(busy_us: int) -> None:
    turns = sleeper(busy_us, 5)
    found = recognise(turns)
    assert found is not None
    assert busy_ns(turns, found) == pytest.approx(busy_us * US, abs=2 * US)
    tick, demands = all_told({VCPU: Turns(VCPU, 0, turns)})[VCPU]
    assert tick is not None
    assert tick.busy_ns == busy_ns(turns, found)
    assert max(demand.run_ns for demand in demands) < (900 + 5 + 3) * US, "none has a tick within any more"


@pytest.mark.parametrize(("busy_us", "spread_us"), [(0, 5), (35, 400)])
def test_turns_that_differ_by_themselves_or_not_at_all_tell_nothing(busy_us: int, spread_us: int) -> None:
    turns = sleeper(busy_us, spread_us)
    found = recognise(turns)
    assert found is not None
    assert busy_ns(turns, found) == 0


@pytest.mark.parametrize("name", ["xen4.20-credit2-two-default", "xen4.17-credit-weights-default"])
def test_guests_of_a_real_host_say_what_a_tick_takes(name: str) -> None:
    """A busy tick takes 27 to 44 µs of a guest, one that finds it idle 49 to 66 µs: it wakes it, too."""
    tables = Twin(KEPT / name).scenario.to_dict()["domain"]
    told = [table for name, table in tables.items() if "busy_tick_cpu" in table and name != "dom0"]
    assert told
    for table in told:
        busy, idle = (int(table[field].removesuffix("ns")) for field in ("busy_tick_cpu", "idle_tick_cpu"))
        assert 25 * US < busy < 45 * US < idle
