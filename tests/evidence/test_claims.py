"""The rule by which claims are decided: the same for every study."""

import pytest

from vcpulab.results.statistics import Difference, paired
from vcpulab_evidence.studies import study
from vcpulab_evidence.studies.claims import Claims, Outcome, decide
from vcpulab_evidence.studies.results import Results


def difference(*values: float) -> Difference:
    """Of as many replications."""
    found = paired(values, [0.0] * len(values))
    assert found is not None
    return found


SURE, LIKELY = difference(1.0, 1.1, 0.9), difference(1.0, 0.1, -0.4)
AGAINST, UNLIKELY, EQUAL = difference(-1.0, -1.1, -0.9), difference(-1.0, -0.1, 0.4), difference(0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("levels", "directions", "outcome"),
    [
        (True, [], Outcome.HOLDS),
        (False, [], Outcome.FAILS),
        (True, [SURE], Outcome.HOLDS),
        (True, [LIKELY], Outcome.UNTESTABLE),
        (True, [UNLIKELY], Outcome.UNTESTABLE),
        (True, [AGAINST], Outcome.FAILS),
        (True, [EQUAL], Outcome.FAILS),
        (True, [SURE, LIKELY], Outcome.UNTESTABLE),
        (True, [AGAINST, LIKELY], Outcome.FAILS),
        (False, [LIKELY], Outcome.FAILS),
        (True, [difference(1.0)], Outcome.HOLDS),
        (True, [difference(-1.0)], Outcome.FAILS),
    ],
)
def test_a_direction_that_the_data_do_not_settle_decides_nothing(
    levels: bool, directions: list[Difference], outcome: Outcome
) -> None:
    verdict = decide(levels, "as measured", directions)
    assert verdict.outcome == outcome
    assert ("chance is not excluded" in verdict.evidence) == (outcome == Outcome.UNTESTABLE)


def test_directions_of_one_claim_are_corrected_for_their_number() -> None:
    alone = difference(1.0, 0.4, 0.4, 0.9)
    assert alone.p is not None
    assert 0.01 < alone.p < 0.05
    assert decide(True, "", [alone]).outcome == Outcome.HOLDS
    five = decide(True, "", [alone] * 5)
    assert five.outcome == Outcome.UNTESTABLE
    assert five.p == pytest.approx(5 * alone.p)


def test_the_probability_is_that_of_what_decides() -> None:
    assert decide(True, "", [AGAINST, LIKELY]).p == pytest.approx(2 * (AGAINST.p or 0))
    assert decide(True, "", [EQUAL]).p is None


def test_claims_are_in_the_order_of_their_numbers() -> None:
    claim = Claims()
    for number in ("X-10", "X-2"):
        claim(number, "anything", "nowhere")(lambda _: decide(True, ""))
    assert [found.id for found in claim.all] == ["X-2", "X-10"]


class Noisy(Results):
    """Every case measures 100 of everything, three times; some are at another level, in which chance has a part."""

    def __init__(self, part: str, level: float, chance: float) -> None:
        super().__init__({})
        self._part = part
        self._values_there = [level - chance, level, level + chance]

    def values(self, case: str, metric: str) -> list[float]:  # noqa: ARG002
        return self._values_there if self._part in case else [100.0] * 3


@pytest.mark.parametrize(
    ("name", "number", "better"),
    [
        ("cherkasova2007", "C-14", "sedf-wc"),
        ("devine2010", "D-17", "web-application: sedf"),
        ("venkatesh2015", "V-2", "disk-iozone: credit "),
        ("benevenuto2006", "B-12", "two-nics: default"),
    ],
)
def test_the_same_evidence_has_the_same_outcome_in_every_study(name: str, number: str, better: str) -> None:
    claim = next(claim for claim in study(name).claims if claim.id == number)
    assert claim.verdict(Noisy(better, 101.0, 0.0)).outcome == Outcome.HOLDS
    assert claim.verdict(Noisy(better, 101.0, 2.0)).outcome == Outcome.UNTESTABLE
    assert claim.verdict(Noisy(better, 99.0, 2.0)).outcome == Outcome.UNTESTABLE
    assert claim.verdict(Noisy(better, 99.0, 0.0)).outcome == Outcome.FAILS
