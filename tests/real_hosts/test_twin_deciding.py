"""What deciding takes a recorded host, and that another scheduler takes more or less."""

import pytest

from support import ROOT
from vcpulab.twin import decision_costs
from vcpulab.twin.sequences import Turn, Turns
from vcpulab_evidence.validation.xen.recording import read

KEPT = ROOT / "evidence" / "recordings" / "xen"


@pytest.mark.parametrize("kind", ["mixed-default", "weights-default", "requests-default", "requests-rate5000"])
def test_either_scheduler_tells_what_credit_takes(kind: str) -> None:
    """Recordings that no constant was fitted on: a machine is as fast whatever its scheduler."""
    costs = [read(KEPT / f"xen4.17-{scheduler}-{kind}").twin.scenario.host.costs for scheduler in ("credit", "credit2")]
    assert costs[0].credit2_percent == 200
    for name, of_credit_ns in (("block_ns", 5_500), ("wake_ns", 3_400)):
        assert [one.constant(name) for one in costs] == pytest.approx([of_credit_ns] * 2, rel=0.1)


def test_what_deciding_and_waking_took_is_taken_from_what_follows() -> None:
    takes = decision_costs.DecisionCosts(block_ns=50, wake_ns=30, percent=100)
    turns = [
        Turn(((100, (1, 0)), (40, (2, 0)), (20, None)), 10),
        Turn(((20, (1, 0)), (200, None)), 10),
    ]
    left = decision_costs.without({(0, 0): Turns((0, 0), 0, turns)}, takes)[0, 0].turns
    # Nothing is shorter than a nanosecond; what was not there to be taken is taken later.
    assert [[cpu for cpu, _ in turn.computes] for turn in left] == [[50, 10, 1], [1, 139]]
    assert decision_costs.without({(0, 0): Turns((0, 0), 0, turns)}, decision_costs.NOTHING)[0, 0].turns == turns


def test_a_host_that_was_booted_again_has_its_guests_ticks_elsewhere() -> None:
    its = read(KEPT / "xen4.17-credit-requests-default")
    document, setting = its.twin.scenario.to_dict(), its.setting
    assert {"idle_tick_at" in table for table in setting.on(document)["domain"].values() if "idle_tick" in table} == {
        True
    }
    rebooted = setting.on(document, rebooted=True)["domain"]
    assert {"idle_tick_at" in table for table in rebooted.values()} == {False}
    assert all("idle_tick" in rebooted[name] for name in ("dom0", "server", "client"))


def test_recordings_of_one_boot_are_told_by_scheduler_release_and_seed() -> None:
    boots = [
        read(KEPT / f"xen4.17-{name}").boot
        for name in ("credit-weights-default", "credit-weights-cap", "credit-weights-cap-2", "credit2-weights-cap")
    ]
    assert boots[0] == boots[1]
    assert len(set(boots)) == 3
