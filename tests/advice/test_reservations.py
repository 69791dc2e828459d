"""Reservations that advice makes longer or shorter: schedulers accept them, and tools take them."""

from random import Random

import pytest

from vcpulab import Scenario
from vcpulab.advice.reservations import reservations

MS = 1_000_000


@pytest.mark.parametrize("scheduler", reservations())
@pytest.mark.parametrize("seed", range(4))
def test_a_scaled_reservation_is_accepted_and_has_the_share(scheduler: str, seed: int) -> None:
    random, spelt = Random(seed), reservations()[scheduler]
    unit = MS // spelt.unit_ns
    period = random.choice([7, 10, 40, 100]) * unit
    table = {spelt.amount: random.choice([2, 3, 5]) * unit, spelt.period: period}
    table |= {name: random.choice([period, period // 2]) for name in spelt.at_most_period}
    for factor in (0.25, 0.3, 1.7, 12.3):
        scaled = spelt.scaled(table, factor)
        domain = {"app": [{"kind": "hog"}]} | table | scaled
        Scenario.from_dict({"host": {"profile": "exact", "scheduler": scheduler}, "domain": {"a": domain}})
        more = spelt.share(scaled) - spelt.share(table)
        assert -1e-9 < more <= max(spelt.step, spelt.least) / scaled[spelt.period]
        assert all(scaled[name] % spelt.step == 0 for name in (spelt.amount, spelt.period))


def test_what_cannot_be_typed_in_the_file_need_not_be_after_it() -> None:
    sedf = reservations()["sedf"]
    assert sedf.scaled({"slice": 5_000, "period": 10_000}, 3) == {"slice": 15_000, "period": 30_000}
