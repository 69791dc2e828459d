"""Mean-value analysis against textbook results, and what must hold of any network."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vcpulab.advice.bounds import asymptotic, mva
from vcpulab.advice.bounds.mva import Centre, Closed, Open, solve


def repairman(machines: int, repairers: int, think: float, repair: float) -> float:
    """Throughput of M/M/c//N from its birth-death chain (Kleinrock 1975, "Queueing Systems" I, section 3.8)."""
    weights = [1.0]
    for down in range(1, machines + 1):
        weights.append(weights[-1] * (machines - down + 1) / think / (min(down, repairers) / repair))
    busy = sum(weight * min(down, repairers) for down, weight in enumerate(weights))
    return busy / repair / sum(weights)


@pytest.mark.parametrize(("machines", "repairers"), [(1, 1), (3, 1), (12, 1), (12, 3), (5, 8), (200, 4)])
def test_machine_repairman(machines: int, repairers: int) -> None:
    loop = Closed("machines", machines, {"repair": 0.7}, think=3.0)
    found = solve([Centre("repair", repairers)], [loop])
    assert found.throughput["machines"] == pytest.approx(repairman(machines, repairers, 3.0, 0.7), rel=1e-9)
    assert found.utilisation["repair"] == pytest.approx(found.throughput["machines"] * 0.7 / repairers)


def test_the_central_server_of_the_textbook() -> None:
    """Lazowska et al. 1984, section 6.4.1: CPU 0.605 s, disks 2.1 s and 1.35 s, 15 s of thinking, three users."""
    loop = Closed("users", 3, {"cpu": 0.605, "disk 1": 2.1, "disk 2": 1.35}, think=15.0)
    found = solve([Centre("cpu"), Centre("disk 1"), Centre("disk 2")], [loop])
    assert found.throughput["users"] == pytest.approx(0.152, abs=0.0005)
    assert found.response["users"] == pytest.approx(4.76, abs=0.05)


def test_an_erlang_system() -> None:
    found = solve([Centre("lines", 5)], open_=[Open("calls", 4.0, {"lines": 1.0})])
    waits = (4**5 / math.factorial(5) * 5) / (sum(4**k / math.factorial(k) for k in range(5)) + 4**5 / 120 * 5)
    assert found.response["calls"] == pytest.approx(1 + waits / (5 - 4))


def test_an_open_load_that_is_too_much_grows() -> None:
    found = solve([Centre("cpu")], open_=[Open("calls", 4.0, {"cpu": 0.25})])
    assert math.isinf(found.response["calls"])


def test_classes_that_are_alike_are_one_class() -> None:
    centres = [Centre("cpu"), Centre("disk")]
    demands = {"cpu": 0.03, "disk": 0.02}
    one = solve(centres, [Closed("all", 7, demands, 0.1)])
    two = solve(centres, [Closed("a", 3, demands, 0.1), Closed("b", 4, demands, 0.1)])
    assert two.method == "exact mean-value analysis"
    assert sum(two.throughput.values()) == pytest.approx(one.throughput["all"])


def test_the_approximation_is_near_and_says_so() -> None:
    centres = [Centre("cpu"), Centre("disk")]
    loops = [Closed("a", 12, {"cpu": 0.03, "disk": 0.01}, 0.5), Closed("b", 9, {"cpu": 0.01, "disk": 0.04}, 0.2)]
    exact = solve(centres, loops)
    near = mva._schweitzer(centres, loops, "approximate")
    for name in ("a", "b"):
        assert near.throughput[name] == pytest.approx(exact.throughput[name], rel=0.1)
    many = solve(centres, [Closed(loop.name, 900, loop.demands, loop.think) for loop in loops])
    assert "approximate" in many.method


def test_an_open_load_takes_its_part_first() -> None:
    loop = Closed("users", 40, {"cpu": 0.1})
    found = solve([Centre("cpu")], [loop], [Open("calls", 6.0, {"cpu": 0.1})])
    assert found.throughput["users"] == pytest.approx(4.0)
    assert found.utilisation["cpu"] == pytest.approx(1.0)


def test_a_demand_is_at_a_centre() -> None:
    with pytest.raises(KeyError, match="disk"):
        solve([Centre("cpu")], [Closed("users", 1, {"disk": 1.0})])


DEMANDS = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.floats(0.001, 1.0), min_size=1)


@settings(max_examples=60, deadline=None)
@given(DEMANDS, st.integers(1, 40), st.floats(0.0, 5.0), st.tuples(*[st.integers(0, 4)] * 3))
def test_more_users_never_do_less_and_littles_law_holds(
    demands: dict[str, float], users: int, think: float, servers: tuple[int, int, int]
) -> None:
    centres = [Centre(name, count) for name, count in zip("abc", servers, strict=True)]
    loops = [Closed("users", n, demands, think) for n in (users, users + 1)]
    less, more = (solve(centres, [loop]) for loop in loops)
    assert more.throughput["users"] >= less.throughput["users"] * (1 - 1e-9)
    for loop, found in zip(loops, (less, more), strict=True):
        throughput = found.throughput["users"]
        assert throughput * (found.response["users"] + think) == pytest.approx(loop.population)
        assert sum(found.customers.values()) + throughput * think == pytest.approx(loop.population)
        alone = sum(demands.values())
        limit = asymptotic.limit(
            {name: d for name, d in demands.items() if servers["abc".index(name)]},
            {name: float(count) for name, count in zip("abc", servers, strict=True)},
            customers=loop.population,
            cycle=alone + think,
        )
        assert throughput <= limit.throughput * (1 + 1e-9)
        assert found.response["users"] >= alone * (1 - 1e-9)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(DEMANDS, st.integers(0, 300), st.floats(0.0, 5.0)), min_size=2, max_size=4))
def test_several_classes_keep_littles_law_and_fill_no_centre_beyond_its_time(
    classes: list[tuple[dict[str, float], int, float]],
) -> None:
    loops = [Closed(str(i), users, demands, think) for i, (demands, users, think) in enumerate(classes)]
    found = solve([Centre("a"), Centre("b", 2), Centre("c", 0)], loops)
    for loop in loops:
        if loop.population:
            throughput = found.throughput[loop.name]
            assert throughput * (found.response[loop.name] + loop.think) == pytest.approx(loop.population, rel=1e-6)
    for name in "ab":
        assert found.utilisation[name] <= 1 + 1e-6
