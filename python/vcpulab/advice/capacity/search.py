"""The largest value up to which every value tried holds: bracketed by doubling, then bisected.

Each value `holds`, is `open` (its difference from the SLO is not significant) or is `broken`. The search looks for two
borders: the last value that holds and the first that is broken; the values between them are open. It also tries a few
values below and above the borders, because responses need not be monotone.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from vcpulab._work.budget import StoppedError
from vcpulab.advice.capacity.judging import Standing

Outcome = Literal["found", "none", "all", "stopped"]

PRECISION = 0.01
"""The precision of a value that is not an integer, as a fraction of the value."""

EDGE = 0.001
"""The largest gap between the highest value and the first one that is not allowed, as a fraction of the latter."""

_BELOW = (0.25, 0.5, 0.75)
_ABOVE = (1.25, 1.5, 2.0)
_REPAIRS_MAX = 3


@dataclass
class Range:
    """The values to search.

    The largest value that makes a valid scenario is determined only when it is needed: the largest scenarios have
    thousands of domains, and most searches end far below them.
    """

    lowest: float
    highest: float
    """The largest value that is tried; lowered to the largest allowed value when a search reaches that."""
    whole: bool
    """Integers only?"""
    allowed: Callable[[float], bool] = lambda _value: True
    """Does a value make a valid scenario?"""
    _reached: float = field(init=False)
    """The largest value that is known to be allowed."""

    def __post_init__(self) -> None:
        self._reached = self.lowest

    def settle(self, value: float) -> float:
        """The nearest value to try: an allowed one that is an integer, or has three or four digits."""
        if self.whole:
            settled: float = round(value)
        else:
            settled = float(f"{value:.{3 if f'{value:e}'[0] == '1' else 2}e}")
        settled = min(max(settled, self.lowest), self.highest)
        if settled > self._reached:
            self._reach(settled)
        return min(settled, self.highest)

    def _reach(self, value: float) -> None:
        """Raises the largest value known to be allowed to this one, or lowers the highest to what is allowed."""
        if self.allowed(value):
            self._reached = value
            return
        low, high = self._reached, value
        while high - low > max(1.0 if self.whole else 0.0, EDGE * high):
            middle = float((low + high) // 2) if self.whole else (low + high) / 2
            low, high = (middle, high) if self.allowed(middle) else (low, middle)
        self._reached = self.highest = low

    def next_to(self, low: float, high: float) -> bool:
        """Are the values so close that no value between them is worth a try?"""
        return high - low <= (1 if self.whole else PRECISION * high)


@dataclass
class SearchResult:
    """The result of a search."""

    outcome: Outcome
    """`found`: a largest value; `none`: the lowest value does not hold; `all`: the highest value holds; `stopped`: the
    time or memory was used up."""
    value: float | None
    """The largest value up to which every value tried holds."""
    open_until: float | None
    """The largest value tried below the first broken one; above `value` if open values are between."""
    broken: float | None
    """The smallest value above `value` that is broken."""
    stopped: str | None = None
    """The reason why the search stopped, and the value at which it stopped."""
    interrupted: bool = False
    """Was the search cancelled?"""
    tried: dict[float, Standing] = field(default_factory=dict)
    """Every value tried, in order."""

    @property
    def broken_below(self) -> list[float]:
        """Values that are broken although a larger one holds: the response is not monotone."""
        most = max((value for value, standing in self.tried.items() if standing == "holds"), default=-math.inf)
        return [value for value, standing in self.tried.items() if standing == "broken" and value < most]

    @property
    def holds_above(self) -> list[float]:
        """Values that hold although a smaller one is broken."""
        least = min((value for value, standing in self.tried.items() if standing == "broken"), default=math.inf)
        return [value for value, standing in self.tried.items() if standing == "holds" and value > least]


def search(within: Range, try_: Callable[[float], Standing]) -> SearchResult:
    """Searches for the largest value that holds.

    Args:
        within: the values to search.
        try_: the standing of a value; it may raise `StoppedError`, or `KeyboardInterrupt`.

    Examples:
        >>> def standing(n: float) -> Standing:
        ...     return "holds" if n <= 37 else "open" if n < 40 else "broken"
        >>> result = search(Range(1, 1000, whole=True), standing)
        >>> result.value, result.open_until, result.broken
        (37, 39, 40)
    """
    looking = _Search(within, try_)
    try:
        looking.run()
    except StoppedError as error:
        return looking.result(f"{error}: stopped at {looking.at:g}")
    except KeyboardInterrupt:
        return replace(looking.result(f"interrupted at {looking.at:g}"), interrupted=True)
    return looking.result(None)


class _Search:
    def __init__(self, within: Range, try_: Callable[[float], Standing]) -> None:
        self.within = within
        self.try_ = try_
        self.tried: dict[float, Standing] = {}
        self.at = within.lowest

    def run(self) -> None:
        self.double(self.within.lowest, {"open", "broken"})
        if self.borders()[0] is None:
            return
        for _ in range(_REPAIRS_MAX):
            self.bisect()
            before = self.borders()
            self.check_around()
            if self.borders() == before:
                return

    def stands(self, value: float) -> Standing:
        if value not in self.tried:
            self.at = value
            self.tried[value] = self.try_(value)
        return self.tried[value]

    def double(self, value: float, until: set[Standing]) -> None:
        while self.stands(value) not in until and value < self.within.highest:
            value = self.within.settle(max(2 * value, value + 1) if self.within.whole else 2 * value)

    def borders(self) -> tuple[float | None, float | None, float | None]:
        """The last value up to which all hold, the first value that does not hold, the first that is broken."""
        holds = no = broken = None
        for value, standing in sorted(self.tried.items()):
            if no is None and standing == "holds":
                holds = value
            elif no is None:
                no = value
            if standing == "broken":
                broken = value
                break
        return holds, no, broken

    def bisect(self) -> None:
        holds, no, broken = self.borders()
        if no is None:
            return
        if broken is None:
            self.double(no, {"broken"})
        while True:
            holds, no, broken = self.borders()
            assert holds is not None
            assert no is not None
            if not self.within.next_to(holds, no):
                self.between(holds, no)
                continue
            # Is the value just below the first broken one broken, too?
            below = max((value for value in self.tried if broken is not None and value < broken), default=None)
            if below is None or broken is None or self.within.next_to(below, broken):
                return
            self.between(below, broken)

    def between(self, low: float, high: float) -> None:
        middle = self.within.settle((low + high) / 2)
        if middle in (low, high):
            # Neighbours among the values that are tried.
            middle = (low + high) / 2
        self.stands(middle)

    def check_around(self) -> None:
        holds, no, _broken = self.borders()
        assert holds is not None
        around = [holds * factor for factor in _BELOW]
        if no is not None:
            around += [no * factor for factor in _ABOVE]
        for value in map(self.within.settle, around):
            # A value close to one that was tried is not worth a try.
            if not any(self.within.next_to(*sorted((value, tried))) for tried in self.tried):
                self.stands(value)

    def result(self, stopped: str | None) -> SearchResult:
        tried = dict(sorted(self.tried.items()))
        holds, no, broken = self.borders()
        below = [value for value in tried if broken is not None and value < broken]
        outcome: Outcome = "stopped" if stopped else "none" if holds is None else "all" if no is None else "found"
        return SearchResult(outcome, holds, max(below, default=holds), broken, stopped, tried=tried)
