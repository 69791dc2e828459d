"""The largest value up to which everything tried holds: bracketed by doubling, then bisected.

A try answers `holds`, `open` (cannot be told apart from the SLO) or `broken`. Two borders are looked for: the last
value that holds, and the first that is broken; what lies between is open. Whether the answer is the same below and
above is looked at in a few places: responses need not be monotone.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from vcpulab.advice.capacity.judging import Standing
from vcpulab.budget import StoppedError

Outcome = Literal["found", "none", "all", "stopped"]

PRECISION = 0.01
"""Of values that are no integers, as a fraction of them."""

EDGE = 0.001
"""How near the highest value comes to the first that is not allowed, as a fraction of it."""

_BELOW = (0.25, 0.5, 0.75)
_ABOVE = (1.25, 1.5, 2.0)
_REPAIRS_MAX = 3


@dataclass
class Range:
    """Where to look.

    The largest value that makes a scenario is not searched for before it is needed: the largest scenarios have
    thousands of domains, and most searches end far below them.
    """

    lowest: float
    highest: float
    """The largest value that is tried; it falls to the largest allowed value when a search gets there."""
    whole: bool
    """Integers only?"""
    allowed: Callable[[float], bool] = lambda _value: True
    """Does a value make a valid scenario?"""
    _reached: float = field(init=False)
    """The largest value that is known to be allowed."""

    def __post_init__(self) -> None:
        self._reached = self.lowest

    def settle(self, value: float) -> float:
        """The nearest value that is tried: an integer, or a value of three or four digits, which is allowed."""
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
        """Is there nothing worth trying between them?"""
        return high - low <= (1 if self.whole else PRECISION * high)


@dataclass
class Found:
    """What a search has found out."""

    outcome: Outcome
    """`found`: a largest value; `none`: not even the lowest one holds; `all`: even the highest one does; `stopped`:
    there was no time or memory left to go on."""
    value: float | None
    """The largest value up to which everything tried holds."""
    open_until: float | None
    """The largest value tried below the first broken one; more than `value` where some cannot be told apart."""
    broken: float | None
    """The smallest value above that is broken."""
    stopped: str | None = None
    """Why it stopped, and where."""
    interrupted: bool = False
    """Was it cancelled?"""
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


def search(within: Range, try_: Callable[[float], Standing]) -> Found:
    """Looks for the largest value that holds.

    Args:
        within: where to look.
        try_: how a value stands; it may raise `StoppedError`, or `KeyboardInterrupt`.

    Examples:
        >>> found = search(Range(1, 1000, whole=True), lambda n: "holds" if n <= 37 else "open" if n < 40 else "broken")
        >>> found.value, found.open_until, found.broken
        (37, 39, 40)
    """
    looking = _Search(within, try_)
    try:
        looking.run()
    except StoppedError as error:
        return looking.found(f"{error}: stopped at {looking.at:g}")
    except KeyboardInterrupt:
        return replace(looking.found(f"interrupted at {looking.at:g}"), interrupted=True)
    return looking.found(None)


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
        """The last value up to which all hold, the first that does not, the first that is broken."""
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
            # What is just below the first broken one: does it break, too?
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
            # Near enough to one that was tried is as good.
            if not any(self.within.next_to(*sorted((value, other))) for other in self.tried):
                self.stands(value)

    def found(self, stopped: str | None) -> Found:
        tried = dict(sorted(self.tried.items()))
        holds, no, broken = self.borders()
        below = [value for value in tried if broken is not None and value < broken]
        outcome: Outcome = "stopped" if stopped else "none" if holds is None else "all" if no is None else "found"
        return Found(outcome, holds, max(below, default=holds), broken, stopped, tried=tried)
