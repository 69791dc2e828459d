"""Numbers that functions of the library take, refused by the argument's name before any work begins."""

import math
import reprlib
from dataclasses import dataclass
from numbers import Integral, Real

from vcpulab.errors import RequestError

SEED_MAX = 2**63 - 1
REPLICATIONS_MAX = 10_000


@dataclass(frozen=True)
class _Range:
    """The numbers that an argument takes."""

    least: float
    most: float = math.inf
    whole: bool = True
    """Integers only?"""

    def has(self, given: object) -> bool:
        if isinstance(given, bool):
            return False
        if isinstance(given, Integral):
            return self.least <= int(given) <= self.most
        # Never true of a NaN.
        return not self.whole and isinstance(given, Real) and self.least <= float(given) <= self.most

    def __str__(self) -> str:
        kind = "an integer" if self.whole else "a number"
        end = f"of at least {self.least:g}" if self.most == math.inf else f"from {self.least:g} to {self.most}"
        return f"{kind} {end}"


_TAKEN = {
    "jobs": _Range(0, 65_536),
    "replications": _Range(1, REPLICATIONS_MAX),
    "seed": _Range(0, SEED_MAX),
    "trials": _Range(1, 1_000_000),
    "seconds": _Range(0, whole=False),
    "precision": _Range(0, whole=False),
    "margin": _Range(0, 1, whole=False),
    "memory": _Range(1, whole=False),
    "lowest": _Range(0, whole=False),
    "highest": _Range(0, whole=False),
}
"""Each argument means the same in every function that has it."""


def check(**given: object) -> None:
    """Checks the numbers of arguments that need one.

    Raises:
        RequestError: an argument is no number that it takes.

    Examples:
        >>> check(jobs=2, seconds=1.5)
        >>> check(jobs=-1)
        Traceback (most recent call last):
        ...
        vcpulab.errors.RequestError: jobs: found `-1`; allowed: an integer from 0 to 65536
    """
    for field, value in given.items():
        if not _TAKEN[field].has(value):
            raise RequestError(field=field, found=reprlib.repr(value), allowed=str(_TAKEN[field]))


def check_optional(**given: object) -> None:
    """Checks the numbers of arguments that may be left out, which is `None`.

    Raises:
        RequestError: an argument is no number that it takes.
    """
    check(**{field: value for field, value in given.items() if value is not None})
