"""Statistics of replications, each with its source.

Replications are independent, so the interval of a mean over them is Student's: mean ± t(0.975, n-1) s/√n (Student 1908,
"The probable error of a mean").
"""

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from typing import NamedTuple

CONFIDENCE = 0.95


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
        present = [value for value in values if value is not None]
        n = len(present)
        if n == 0:
            return None
        # Summed as distances from the first value, so that equal values have a width of exactly 0.
        mean = present[0] + math.fsum(value - present[0] for value in present) / n
        if n == 1:
            return cls(mean, None, 1)
        deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in present) / (n - 1))
        half_width = t_quantile(n - 1, 0.5 + CONFIDENCE / 2) * deviation / math.sqrt(n)
        return cls(mean, half_width, n, deviation / math.sqrt(n))

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
        # Only scores of twins need it, and its import takes as long as this module's.
        from statistics import median

        ordered = sorted(values)
        n = len(ordered)
        if n == 0:
            return None
        if n == 1:
            return cls(ordered[0], None, 1)
        below, outside = 0, 1
        while 2 * (outside + math.comb(n, below + 1)) <= (1 - CONFIDENCE) * 2**n:
            below += 1
            outside += math.comb(n, below)
        return cls(median(ordered), (ordered[n - 1 - below] - ordered[below]) / 2, n)

    def row(self) -> dict[str, float | None]:
        """The interval as flat data: mean, half width and number."""
        return {"mean": self.mean, "half_width": self.half_width, "n": self.n}

    def __str__(self) -> str:
        if self.half_width is None:
            return number(self.mean)
        if self.half_width == 0:
            return f"{number(self.mean)} ± 0"
        decimals = min(_decimals(self.half_width, 2), _decimals(self.mean, 5))
        return f"{self.mean:.{decimals}f} ± {self.half_width:.{decimals}f}"


@cache
def t_quantile(degrees: int, probability: float) -> float:
    """A quantile of Student's t."""
    # Only this corner of scipy: the whole of scipy.stats takes half a second to import.
    from scipy.special import stdtrit

    return float(stdtrit(degrees, probability))


def number(value: float) -> str:
    """The value with three significant digits.

    Examples:
        >>> number(1234.5678), number(0.0123456), number(0.0)
        ('1235', '0.0123', '0')
    """
    return f"{value:.{_decimals(value, 3)}f}" if value else "0"


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


def _decimals(value: float, digits: int) -> int:
    """Number of decimals for `digits` significant digits of the value, at most 6."""
    if value == 0:
        return 6
    return max(0, min(6, digits - 1 - math.floor(math.log10(abs(value)))))


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
    differences = [a - b for a, b in zip(first, second, strict=False)]
    interval = Interval.from_values(differences)
    if interval is None:
        return None
    if interval.standard_error is None:
        return Difference(interval, None)
    if interval.standard_error == 0:
        return Difference(interval, 1.0 if interval.mean == 0 else 0.0)
    from scipy.special import stdtr

    t = abs(interval.mean) / interval.standard_error
    return Difference(interval, float(2 * stdtr(interval.n - 1, -t)))


def holm(ps: Sequence[float]) -> list[float]:
    """Probabilities corrected for the number of tests (Holm 1979, Scandinavian Journal of Statistics 6, pp. 65-70).

    Examples:
        >>> holm([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]
    """
    corrected = [0.0] * len(ps)
    least = 0.0
    for done, i in enumerate(sorted(range(len(ps)), key=lambda i: ps[i])):
        least = max(least, min(1.0, (len(ps) - done) * ps[i]))
        corrected[i] = least
    return corrected


def kendall_tau(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Kendall's tau-b, the rank agreement: 1: the same order, -1: the opposite order; `None` without an order.

    Examples:
        >>> round(kendall_tau([1, 2, 3], [10, 30, 20]), 2)
        0.33
    """
    from scipy.stats import kendalltau

    if len(first) < 2 or len(set(first)) < 2 or len(set(second)) < 2:
        return None
    return float(kendalltau(first, second).statistic)


def mape(published: Sequence[float], simulated: Sequence[float]) -> float | None:
    """Mean absolute error in % of the published values; values of 0 do not count; `None` if none remain.

    Examples:
        >>> mape([100.0, 50.0], [110.0, 45.0])
        10.0
    """
    errors = [abs(s - p) / abs(p) for p, s in zip(published, simulated, strict=True) if p]
    return 100 * math.fsum(errors) / len(errors) if errors else None
