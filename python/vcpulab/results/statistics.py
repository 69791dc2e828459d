"""Statistics of replications, each with its source.

Intervals, tests and corrections are the engine's (`crates/judge`), which the playground uses too. Replications are
independent, so the interval of a mean over them is Student's: mean ± t(0.975, n-1) s/√n (Student 1908, "The probable
error of a mean").
"""

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

from vcpulab import _engine

CONFIDENCE = _engine.CONFIDENCE


class Interval(NamedTuple):
    """A mean over replications and half the width of its confidence interval."""

    mean: float
    half_width: float | None
    """`None`: one value alone has no interval."""
    n: int
    """Number of replications of the mean."""
    standard_error: float | None = None
    """s/√n, the standard error of the mean; `None`: one value alone has none."""

    @classmethod
    def from_values(cls, values: Iterable[float | None]) -> "Interval | None":
        """The mean of values with its 95 % confidence interval; missing values do not count.

        Returns:
            `None` if there is no value at all.

        Examples:
            >>> Interval.from_values([10.0, 12.0, 14.0])
            Interval(mean=12.0, half_width=4.96..., n=3, standard_error=1.15...)
        """
        interval = _engine.interval(list(values))
        return None if interval is None else cls(*interval)

    @classmethod
    def of_median(cls, values: Iterable[float]) -> "Interval | None":
        """The median of values with its 95 % confidence interval, in place of the mean.

        For a percentile of few waits, which a single slow replication of ten would move. Its half width is half of the
        distance between the order statistics that enclose the median with the least probability of at least 95 %
        (Conover 1999, "Practical nonparametric statistics", section 3.2).

        Returns:
            `None` if there is no value at all.

        Examples:
            >>> Interval.of_median([10.0, 12.0, 900.0])
            Interval(mean=12.0, half_width=445.0, n=3, standard_error=None)
        """
        interval = _engine.median_interval(list(values))
        return None if interval is None else cls(*interval)

    def row(self) -> dict[str, float | None]:
        """The interval as flat data: mean, half width and number."""
        return {"mean": self.mean, "half_width": self.half_width, "n": self.n}

    def __str__(self) -> str:
        return _engine.interval_text(self)


def t_quantile(degrees: int, probability: float) -> float:
    """A quantile of Student's t."""
    return _engine.t_quantile(degrees, probability)


def number(value: float) -> str:
    """The value with three significant digits.

    Examples:
        >>> number(1234.5678), number(0.0123456), number(0.0)
        ('1235', '0.0123', '0')
    """
    return _engine.number_text(value)


def least_to_most(values: Collection[float], formatted: Callable[[float], str] = number) -> str:
    """Values as text: the least and the most if their texts differ; a dash if there are no values.

    Examples:
        >>> least_to_most([3.0, 1.0, 2.0]), least_to_most([1.0001, 1.0]), least_to_most([])
        ('1.00 to 3.00', '1.00', '–')
    """
    if not values:
        return "–"
    least, most = formatted(min(values)), formatted(max(values))
    return least if least == most else f"{least} to {most}"


MSER_BATCH = 5


def mser5(series: Sequence[float]) -> int:
    """The number of values at the beginning of a series that are warm-up, by MSER-5.

    The series is cut where the standard error of the mean of what remains would be least, looked for in the first half
    of it, in batches of five (White, Cobb and Spratt 2000, "A comparison of five steady-state truncation heuristics
    for simulation", Winter Simulation Conference, pp. 755-760).

    Args:
        series: values at equal distances in time.

    Returns:
        Number of values to leave out, a multiple of five; 0 for fewer than four batches.

    Examples:
        >>> mser5([9.0] * 10 + [1.0, 2.0] * 20)
        10
    """
    batches = [
        math.fsum(series[i : i + MSER_BATCH]) / MSER_BATCH for i in range(0, len(series) - MSER_BATCH + 1, MSER_BATCH)
    ]
    if len(batches) < 4:
        return 0
    best, least = 0, math.inf
    for cut in range(len(batches) // 2 + 1):
        kept = batches[cut:]
        mean = math.fsum(kept) / len(kept)
        error = math.fsum((value - mean) ** 2 for value in kept) / len(kept) ** 2
        if error < least:
            best, least = cut, error
    return best * MSER_BATCH


class Difference(NamedTuple):
    """The mean of paired differences, and the evidence that it is not 0."""

    interval: Interval
    p: float | None
    """Probability of a difference at least as far from 0 if there were none (two-sided); `None` with one pair."""


def paired(first: Sequence[float], second: Sequence[float]) -> Difference | None:
    """Student's test of paired differences, first minus second, for runs with common random numbers.

    Args:
        first: a value for each replication.
        second: a value for each replication of another configuration; extra values of the longer sequence are ignored.

    Returns:
        `None` where there is no pair.

    Examples:
        >>> difference = paired([5.0, 6.0, 7.0], [1.0, 2.5, 2.9])
        >>> round(difference.interval.mean, 2), difference.p < 0.01
        (3.87, True)
    """
    difference = _engine.paired(list(first), list(second))
    return None if difference is None else Difference(Interval(*difference[0]), difference[1])


def holm(ps: Sequence[float]) -> list[float]:
    """Probabilities corrected for the number of tests (Holm 1979, Scandinavian Journal of Statistics 6, pp. 65-70).

    Examples:
        >>> holm([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]
    """
    return _engine.holm(list(ps))


def kendall_tau(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Kendall's tau-b, the rank agreement: 1: the same order, -1: the opposite order; `None` without an order.

    Examples:
        >>> round(kendall_tau([1, 2, 3], [10, 30, 20]), 2)
        0.33
    """
    pairs = list(combinations(zip(first, second, strict=True), 2))
    signs = [(_sign(a - c), _sign(b - d)) for (a, b), (c, d) in pairs]
    tied = [sum(not sign for sign in side) for side in zip(*signs, strict=True)] or [0, 0]
    ordered = [len(pairs) - ties for ties in tied]
    if not all(ordered):
        return None
    tau = sum(a * b for a, b in signs) / math.sqrt(ordered[0]) / math.sqrt(ordered[1])
    return max(-1.0, min(1.0, tau))


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def kendall_p(n: int, tau: float) -> float:
    """The probability of a rank agreement at least as far from 0 by chance (two-sided), for n pairs without ties.

    It is exact (Kendall 1970, "Rank correlation methods", 4th edition, section 5.5).

    Examples:
        >>> round(kendall_p(4, 1.0), 4)
        0.0833
    """
    # The number of orders of k items with so many inversions, for k from 1 to n.
    orders = [1]
    for k in range(2, n + 1):
        longest = len(orders) + k - 1
        orders = [sum(orders[max(0, i - k + 1) : i + 1]) for i in range(longest)]
    inversions = round((1 - abs(tau)) / 2 * math.comb(n, 2))
    return min(1.0, 2 * sum(orders[: inversions + 1]) / math.factorial(n))


def mape(published: Sequence[float], simulated: Sequence[float]) -> float | None:
    """Mean absolute error in % of the published values; values of 0 do not count; `None` if none remain.

    Examples:
        >>> mape([100.0, 50.0], [110.0, 45.0])
        10.0
    """
    errors = [abs(s - p) / abs(p) for p, s in zip(published, simulated, strict=True) if p]
    return 100 * math.fsum(errors) / len(errors) if errors else None
