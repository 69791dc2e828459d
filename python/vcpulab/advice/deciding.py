"""Two scenarios side by side, with as many replications as it takes to decide whether anybody is harmed.

A large harm that is uncertain (`Comparison.may_regress`) is no answer. Where it is of something that owners judge by
(throughput, failures and response times of clients and applications), both sides run again with twice the
replications, until the harm is significant, or too small to matter, or its interval is as narrow as was asked for, or
there is nothing left to spend.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from vcpulab.advice.compare import Comparison, compare, in_doubt
from vcpulab.advice.lateness import felt_ms
from vcpulab.errors import Interrupted
from vcpulab.results.addresses import Address, judged
from vcpulab.results.run import Run, run_many
from vcpulab.scenario.scenario import Scenario

PRECISION = 0.1
"""Half the width of an interval that is narrow enough to decide, as a part of the value before."""
LOOKS = 3
"""Both sides are run so often, where no time is given: at most four times the replications."""
LOOKS_IN_TIME = 8
"""... and so often where one is."""


@dataclass(frozen=True)
class Effort:
    """How far to go to decide."""

    precision: float = PRECISION
    """See `PRECISION`; 1: half the width may be as large as the value."""
    seconds: float | None = None
    """No replications are added that would hardly be done in this time; `None`: there are `LOOKS`."""
    fixed: bool = False
    """Is nothing added, whatever is uncertain?"""

    @property
    def looks(self) -> int:
        """How often the two sides may be run."""
        return 1 if self.fixed else LOOKS if self.seconds is None else LOOKS_IN_TIME


@dataclass(frozen=True)
class Added:
    """The replications that were added, and why."""

    first: int
    """Replications of the first look."""
    last: int
    """Replications in the end."""
    why: tuple[Comparison, ...]
    """What was uncertain at the first look."""
    uncertain: tuple[Comparison, ...]
    """What is so still."""
    interrupted: bool = False
    """Was it cancelled: at the first look, or when more were being added?"""

    def lines(self) -> list[str]:
        """In words; nothing if none were added."""
        if self.interrupted:
            return [f"replications: {self.last}{_WHILE_ADDING if self.why else f' of {self.first}; interrupted'}"]
        if self.last == self.first:
            return []
        named = "; ".join(in_doubt(one) for one in self.why[:_NAMED]) + (", …" if len(self.why) > _NAMED else "")
        # With more replications others may have come to be uncertain.
        left = f"{len(self.uncertain)} uncertain now" if self.uncertain else "decided"
        return [f"replications: {self.first} → {self.last}, for a large harm was uncertain ({named}): {left}"]

    def row(self) -> dict[str, Any]:
        """As data."""
        return {
            "first": self.first,
            "last": self.last,
            "why": [one.address.name for one in self.why],
            "uncertain": [one.address.name for one in self.uncertain],
            "interrupted": self.interrupted,
        }


_NAMED = 3
"""More reasons than that are too many to read."""
_WHILE_ADDING = "; interrupted when more were being added"
_LEAST = 2
"""An interval needs so many replications."""


def decide(
    before: Scenario,
    after: Scenario,
    *,
    asked: Iterable[Address] | None = None,
    effort: Effort = Effort(),
    jobs: int = 0,
    progress: Callable[[float], bool | None] | None = None,
) -> tuple[Run, Run, list[Comparison], Added]:
    """Both runs, what was compared, and the replications that were added.

    Args:
        before: a scenario, with the replications of the first look.
        after: another one; it gets the first one's seed and replications.
        asked: as for `compare`.
        effort: how far to go.
        jobs: replications at a time; 0: one for each processor.
        progress: called now and then with the fraction done of a look.

    Raises:
        EngineError: a run failed.
        KeyboardInterrupt: it was cancelled before both had replications enough to compare.
    """
    asked = None if asked is None else list(asked)
    n, why = before.replications, None
    found: list[Comparison] = []
    doubt: list[Comparison] = []
    begins = time.monotonic()
    for look in range(effort.looks):
        began = time.monotonic()
        pair = [one.with_run(seed=before.seed, replications=n << look) for one in (before, after)]
        try:
            old, new = run_many(pair, jobs=jobs, progress=progress, keep_finished=not look)
        except KeyboardInterrupt as pressed:
            if look:
                # What is known is of the look before.
                return old, new, found, Added(n, n << (look - 1), tuple(why or ()), tuple(doubt), interrupted=True)
            if not isinstance(pressed, Interrupted):
                raise
            old, new = pressed.partial
            last = min(old.scenario.replications, new.scenario.replications)
            if last < _LEAST:
                raise KeyboardInterrupt from None
            found = compare(old, new, asked, looks=effort.looks)
            doubt = uncertain_harm(found, old, effort.precision)
            return old, new, found, Added(n, last, (), tuple(doubt), interrupted=True)
        found = compare(old, new, asked, looks=effort.looks)
        doubt = uncertain_harm(found, old, effort.precision)
        why = doubt if why is None else why
        # The next one takes twice as long.
        now = time.monotonic()
        late = effort.seconds is not None and now - begins + 2 * (now - began) > effort.seconds
        if not doubt or late:
            break
    return old, new, found, Added(n, n << look, tuple(why or ()), tuple(doubt))


def uncertain_harm(found: Sequence[Comparison], before: Run, precision: float) -> list[Comparison]:
    """What may regress by much, of what owners judge by, and is known less precisely than was asked for.

    Response times that stay below what is felt do not count. The largest part of the value comes first.
    """
    names = {address.name for address in judged(before.scenario)}
    doubt = [one for one in found if one.may_regress and one.address.name in names and (one.width or 0) > precision]
    return sorted((one for one in doubt if _felt(one, before)), key=lambda one: one.rank)


def _felt(one: Comparison, before: Run) -> bool:
    """Would the worse end of its interval be felt?"""
    below = felt_ms(before, one.address)
    return below is None or one.after is None or one.after.mean + (one.after.half_width or 0.0) > below
