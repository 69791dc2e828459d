"""The engine's statistics against those of scipy: Student's t to 1e-12, in the middle and in the tails."""

import math
import pickle
import random
import statistics

import numpy as np
import pytest
import scipy  # its parts are imported where they are used: each worker imports all tests, and one runs these

from vcpulab import _engine
from vcpulab._engine import Comparison, Metric
from vcpulab.results.statistics import Interval, holm, kendall_p, kendall_tau, number, paired
from vcpulab.sweeps import sobol
from vcpulab.twin.messages.assignment import cheapest

DEGREES = [1, 1.5, 2, 3, 4, 5, 7, 9, 10, 19, 29, 30, 49, 99, 100, 250.5, 999, 1e4, 1e5, 1e6]
EXACT = 1e-12


@pytest.mark.parametrize("degrees", DEGREES)
def test_probabilities_of_t_are_those_of_scipy(degrees: float) -> None:
    ts = [0.0, *(sign * 10**exponent for exponent in np.linspace(-6, 4, 101) for sign in (1, -1))]
    for t in ts:
        # With one degree, which is Cauchy's distribution, `stdtr` has an error of 1e-11 near 0.
        theirs = float(scipy.stats.cauchy.cdf(t) if degrees == 1 else scipy.special.stdtr(degrees, t))
        ours = _engine.t_cdf(degrees, t)
        if theirs > 1e-300:
            assert ours == pytest.approx(theirs, rel=EXACT, abs=0), (degrees, t)


@pytest.mark.parametrize("degrees", DEGREES)
def test_quantiles_of_t_are_those_of_scipy(degrees: float) -> None:
    tails = [10**exponent for exponent in np.linspace(-12, -0.302, 60)]
    for probability in [*tails, *(1 - tail for tail in tails), 0.025, 0.975, 0.5]:
        ours, theirs = _engine.t_quantile(degrees, probability), float(scipy.special.stdtrit(degrees, probability))
        assert ours == pytest.approx(theirs, rel=EXACT, abs=EXACT / 10), (degrees, probability)


def test_the_tail_of_f_is_that_of_scipy() -> None:
    for numerator, denominator in [(1, 1), (2, 10), (3.5, 7), (19, 80), (76, 400)]:
        for f in [0.01, 0.5, 1, 2, 5, 30]:
            theirs = float(scipy.special.fdtrc(numerator, denominator, f))
            assert _engine.f_tail(numerator, denominator, f) == pytest.approx(theirs, rel=1e-11)


def test_intervals_and_tests_are_those_of_scipy() -> None:
    chance = random.Random(1)
    for n in [2, 3, 5, 10, 40, 200]:
        first, second = ([chance.gauss(50, 3) for _ in range(n)] for _ in range(2))
        interval, gap = Interval.from_values([None, *first]), paired(first, second)
        assert interval is not None
        assert gap is not None
        low, high = scipy.stats.t.interval(0.95, n - 1, statistics.fmean(first), statistics.stdev(first) / math.sqrt(n))
        assert (interval.mean, interval.half_width) == pytest.approx(((low + high) / 2, (high - low) / 2), rel=EXACT)
        assert gap.p == pytest.approx(scipy.stats.ttest_rel(first, second).pvalue, rel=1e-11)
        ranks = scipy.stats.kendalltau(first, second)
        assert kendall_tau(first, second) == pytest.approx(ranks.statistic, rel=EXACT)
        if 2 < n < 30:
            assert kendall_p(n, ranks.statistic) == pytest.approx(ranks.pvalue, rel=EXACT)
    ties = [1, 1, 2, 3, 3, 3], [2, 1, 1, 5, 6, 6]
    assert kendall_tau(*ties) == pytest.approx(scipy.stats.kendalltau(*ties).statistic, rel=EXACT)
    ps = [chance.random() ** 3 for _ in range(30)]
    # Holm: the least p times the number of tests, the next one times one less, and none below the one before.
    order = sorted(range(30), key=ps.__getitem__)
    steps = [min(1.0, (30 - done) * ps[index]) for done, index in enumerate(order)]
    assert [holm(ps)[index] for index in order] == np.maximum.accumulate(steps).tolist()


def test_medians_have_the_interval_of_the_sign_test() -> None:
    for n in [2, 5, 6, 9, 20, 33, 400]:
        interval = Interval.of_median(float(value * value) for value in range(n))
        assert interval is not None
        assert interval.mean == statistics.median(value * value for value in range(n))
        outside = max(0, int(scipy.stats.binom.ppf(0.025, n, 0.5)) - 1)
        outside += scipy.stats.binom.cdf(outside, n, 0.5) <= 0.025 and n > 5
        left_out = outside - 1 if n > 5 else 0
        assert interval.half_width == ((n - 1 - left_out) ** 2 - left_out**2) / 2


def test_numbers_are_written_as_python_writes_them() -> None:
    chance = random.Random(2)
    values = [chance.choice([1, -1]) * 10 ** chance.uniform(-8, 15) for _ in range(5000)]
    values += [m * 10.0**e for m in (1, 9.995, 0.5, 2.5) for e in range(-6, 13)]
    for value in values:
        digits = max(0, min(6, 2 - math.floor(math.log10(abs(value)))))
        assert number(value) == f"{value:.{digits}f}", value


def test_sobols_sequence_is_that_of_scipy() -> None:
    for dimensions in (1, 2, 7, sobol.DIMENSIONS_MAX):
        theirs = scipy.stats.qmc.Sobol(dimensions, scramble=False).random_base2(8)
        assert [list(point) for point in sobol.points(dimensions, 256)] == theirs.tolist()


def test_assignments_are_those_of_scipy_also_among_equal_ones() -> None:
    chance = random.Random(3)
    for _ in range(2000):
        rows, columns = chance.randint(1, 7), chance.randint(1, 7)
        costs = [[chance.choice([0.0, 1.0, 2.0, chance.random()]) for _ in range(columns)] for _ in range(rows)]
        pairs = scipy.optimize.linear_sum_assignment(np.array(costs))
        assert cheapest(costs) == [(int(row), int(column)) for row, column in zip(*pairs, strict=True)]


def test_comparisons_can_be_pickled_and_compared() -> None:
    metric = Metric("a.failed", "app", "a", "count", "lower", None, "never ran", True, True, False, 5.0)
    comparison = Comparison(metric, (1.0, 0.5, 3, 0.1), None, None, None, "regresses", None, "never ran")
    copy = pickle.loads(pickle.dumps(comparison))
    assert copy == comparison
    assert hash(copy) == hash(comparison)
    assert (copy.before, copy.after_undefined, copy.change) == ((1.0, 0.5, 3, 0.1), "never ran", comparison.change)
    assert copy != Comparison(metric, (1.0, 0.5, 3, 0.1), None, None, None, "improves", None, "never ran")


@pytest.mark.parametrize("wrong", [{"kind": "thing"}, {"better": "more"}])
def test_a_word_that_means_nothing_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="found `"):
        Metric(**{"name": "a.b", "kind": "app", "domain": "a", "unit": "ms", **wrong})  # type: ignore[arg-type]
