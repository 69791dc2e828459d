"""The axes of a sweep, and its points: the whole grid, or a sample."""

import math
import random
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

from vcpulab.sweeps import sobol


class Span(NamedTuple):
    """A range of values, both ends included."""

    low: float
    high: float
    whole: bool
    """`True`: only integers; both ends are integers."""
    logarithmic: bool
    unit: str

    def at(self, fraction: float) -> int | float | str:
        """The value at a fraction of the range, 0 to 1."""
        if self.logarithmic:
            value = math.exp(math.log(self.low) + fraction * (math.log(self.high) - math.log(self.low)))
        else:
            value = self.low + fraction * (self.high - self.low)
        # Twelve digits: further digits are errors of the logarithms.
        value = min(max(float(f"{value:.12g}"), self.low), self.high)
        number = round(value) if self.whole else value
        return f"{number}{self.unit}" if self.unit else number

    def steps(self, number: int) -> tuple[int | float | str, ...]:
        """Evenly spaced values, both ends included."""
        return tuple(self.at(index / max(number - 1, 1)) for index in range(number))


class Axis(NamedTuple):
    """A field of the scenario that varies."""

    path: str
    values: tuple[Any, ...]
    """The values of the field; empty: anything in the span."""
    span: Span | None
    zip: str | None
    """A label: axes with the same label vary together."""

    def at(self, fraction: float) -> Any:
        """The value for a sample, 0 up to but not 1."""
        if self.span is not None and not self.values:
            return self.span.at(fraction)
        return self.values[int(fraction * len(self.values))]


Point = tuple[Any, ...]
"""A value for each axis."""


def groups(axes: Sequence[Axis]) -> list[list[int]]:
    """The numbers of the axes, in groups of axes that vary together."""
    members: dict[str, list[int]] = {}
    for index, axis in enumerate(axes):
        members.setdefault(f"zip {axis.zip}" if axis.zip else f"axis {index}", []).append(index)
    return list(members.values())


def grid(axes: Sequence[Axis]) -> Iterator[Point]:
    """Every combination of values, the first axis slowest."""
    together = groups(axes)
    for indexes in product(*(range(len(axes[members[0]].values)) for members in together)):
        values: list[Any] = [None] * len(axes)
        for members, index in zip(together, indexes, strict=True):
            for axis in members:
                values[axis] = axes[axis].values[index]
        yield tuple(values)


def sample(axes: Sequence[Axis], method: str, number: int, seed: int) -> Iterator[Point]:
    """Points spread over the axes: Sobol's sequence with a random shift, or random points.

    The shift modulo 1 is from Cranley and Patterson 1976, "Randomization of number theoretic methods for multiple
    integration".
    """
    chance = random.Random(seed)
    together = groups(axes)
    if method == "random":
        fractions: Iterator[list[float]] = ([chance.random() for _ in together] for _ in range(number))
    else:
        shift = [chance.random() for _ in together]
        sequence = sobol.points(len(together), number)
        fractions = ([(x + by) % 1.0 for x, by in zip(row, shift, strict=True)] for row in sequence)
    for row in fractions:
        values: list[Any] = [None] * len(axes)
        for members, fraction in zip(together, row, strict=True):
            for axis in members:
                values[axis] = axes[axis].at(fraction)
        yield tuple(values)
