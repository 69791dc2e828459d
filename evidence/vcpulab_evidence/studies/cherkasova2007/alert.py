"""ALERT: allocation errors, and the figures that the authors read off them (section 5.2)."""

import math
from collections.abc import Sequence

from vcpulab_evidence.studies.cherkasova2007.cases import ALERT_TARGETS, alert_case
from vcpulab_evidence.studies.results import Missing, Results

SEDF = ("sedf", "xen3.0.2")
CREDIT = ("credit", "xen3.0.3")
"""The generation whose errors last over three minutes, as the authors found (claim C-19)."""


def errors(results: Results, scheduler: tuple[str, str], target: int, seconds: int = 1) -> list[float]:
    """Relative errors of one experiment, one for each window of `seconds`, %.

    The sign is that of the authors' figures, (U - A) / A: positive where a guest got more than it was to have. Their
    formula has the opposite sign, which their figures contradict (notes, C-I4).

    Raises:
        Missing: the experiment was not run.
    """
    used: list[float] = []
    while True:
        try:
            used.append(results.values(alert_case(*scheduler, target), f"used {len(used)}")[0])
        except Missing:
            if not used:
                raise
            break
    means = [math.fsum(used[i : i + seconds]) / seconds for i in range(0, len(used) - seconds + 1, seconds)]
    return [100 * (mean - target) / target for mean in means]


def long_error(results: Results, scheduler: tuple[str, str], target: int) -> float:
    """Relative error over the whole of one experiment, %."""
    each = errors(results, scheduler, target)
    return math.fsum(each) / len(each)


def all_errors(results: Results, scheduler: tuple[str, str], seconds: int = 1) -> list[float]:
    """The relative errors of all experiments, %, in ascending order."""
    return sorted(error for target in ALERT_TARGETS for error in errors(results, scheduler, target, seconds))


def at_or_below(ascending: Sequence[float], percent: float) -> float:
    """The error with `percent` of all points at or below it."""
    return ascending[max(math.ceil(len(ascending) * percent / 100) - 1, 0)]


def at_or_above(ascending: Sequence[float], percent: float) -> float:
    """The error with `percent` of all points at or above it."""
    return ascending[min(len(ascending) - math.ceil(len(ascending) * percent / 100), len(ascending) - 1)]


def share_below(ascending: Sequence[float], error: float) -> float:
    """Share of points below an error, %."""
    return 100 * sum(1 for e in ascending if e < error) / len(ascending)


def share_above(ascending: Sequence[float], error: float) -> float:
    """Share of points above an error, %."""
    return 100 * sum(1 for e in ascending if e > error) / len(ascending)


def worse_than_sedf(results: Results) -> list[int]:
    """Targets at which Credit's error over the whole experiment is more than a point above SEDF's; 0: none."""
    return [
        target
        for target in ALERT_TARGETS
        if abs(long_error(results, CREDIT, target)) > abs(long_error(results, SEDF, target)) + 1
    ] or [0]


def tails(results: Results, scheduler: tuple[str, str]) -> str:
    """Both tails and both ends of all errors, as text."""
    ascending = all_errors(results, scheduler)
    low, high = at_or_below(ascending, 10), at_or_above(ascending, 10)
    name, ends = " ".join(scheduler), f"{ascending[0]:.0f} to {ascending[-1]:.0f} %"
    return f"{name}: 10 % at or below {low:.1f} %, 10 % at or above {high:.1f} %, {ends}"
