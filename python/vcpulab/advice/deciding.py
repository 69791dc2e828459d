"""A comparison of two scenarios with enough replications to decide whether the change harms a client or application.

An uncertain large harm (`Comparison.may_regress`) is no answer. If it concerns a metric that owners judge by
(throughput, failures and response times of clients and applications), both scenarios run again with twice the
replications, until the harm is significant or too small to matter, its interval is narrow enough, or the looks or the
time are used up.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from vcpulab import _engine
from vcpulab._work.effort import Effort
from vcpulab._work.progress import Progress
from vcpulab.advice.compare import Comparison, compare
from vcpulab.advice.lateness import felt_ms
from vcpulab.errors import Interrupted
from vcpulab.results.addresses import Address, judged
from vcpulab.results.run import Run, run_many
from vcpulab.scenario.scenario import Scenario

PRECISION = 0.1
"""Half the width of an interval that is narrow enough to decide, as a fraction of the value before."""


@dataclass(frozen=True)
class Added:
    """The replications that were added, and the reasons."""

    first: int
    """Replications of the first look."""
    last: int
    """Replications of the last look."""
    first_doubts: tuple[Comparison, ...]
    """The harms that were uncertain at the first look."""
    uncertain: tuple[Comparison, ...]
    """The harms that are still uncertain."""
    interrupted: bool = False
    """`True`: the work was cancelled at the first look, or while replications were being added."""

    def lines(self) -> list[str]:
        """The replications in words; nothing if none were added."""
        if self.interrupted:
            return [
                f"replications: {self.last}{_WHILE_ADDING if self.first_doubts else f' of {self.first}; interrupted'}"
            ]
        if self.last == self.first:
            return []
        named = "; ".join(comparison.judged.in_doubt for comparison in self.first_doubts[:_NAMED])
        named += ", …" * (len(self.first_doubts) > _NAMED)
        # With more replications other harms may have become uncertain.
        left = f"{len(self.uncertain)} uncertain now" if self.uncertain else "decided"
        return [f"replications: {self.first} → {self.last}, for a large harm was uncertain ({named}): {left}"]

    def row(self) -> dict[str, Any]:
        """The replications as data."""
        return {
            "first": self.first,
            "last": self.last,
            "why": [comparison.address.name for comparison in self.first_doubts],
            "uncertain": [comparison.address.name for comparison in self.uncertain],
            "interrupted": self.interrupted,
        }


_NAMED = 3
"""The largest number of reasons that are named."""
_WHILE_ADDING = "; interrupted when more were being added"
_LEAST = 2
"""The fewest replications that have an interval."""


def decide(
    before: Scenario,
    after: Scenario,
    *,
    metrics: Iterable[Address] | None = None,
    effort: Effort = Effort(),
    progress: Progress | None = None,
) -> tuple[Run, Run, list[Comparison], Added]:
    """Both runs, their comparisons, and the replications that were added.

    Args:
        before: a scenario, with the replications of the first look.
        after: another scenario; it runs with the seed and replications of `before`.
        metrics: the metrics to compare; all if left out.
        effort: the limits of the work; with a number of replications none are added. No look is begun that would
            probably exceed the time.
        progress: called now and then with the fraction of a look that is done.

    Raises:
        EngineError: a run failed.
        KeyboardInterrupt: the work was cancelled before both runs had enough replications to compare.
    """
    metrics = None if metrics is None else list(metrics)
    looks = looks_of(effort)
    precision = PRECISION if effort.precision is None else effort.precision
    n, first_doubt = before.replications, None
    comparisons: list[Comparison] = []
    doubt: list[Comparison] = []
    begins = time.monotonic()
    for look in range(looks):
        began = time.monotonic()
        pair = [scenario.with_run(seed=before.seed, replications=n << look) for scenario in (before, after)]
        try:
            old, new = run_many(pair, jobs=effort.jobs, progress=progress, keep_finished=not look)
        except KeyboardInterrupt as pressed:
            if look:
                # The answer is that of the previous look.
                added = Added(n, n << (look - 1), tuple(first_doubt or ()), tuple(doubt), interrupted=True)
                return old, new, comparisons, added
            if not isinstance(pressed, Interrupted):
                raise
            old, new = pressed.partial
            last = min(old.scenario.replications, new.scenario.replications)
            if last < _LEAST:
                raise KeyboardInterrupt from None
            comparisons = compare(old, new, metrics, looks=looks)
            doubt = uncertain_harm(comparisons, old, precision)
            return old, new, comparisons, Added(n, last, (), tuple(doubt), interrupted=True)
        comparisons = compare(old, new, metrics, looks=looks)
        doubt = uncertain_harm(comparisons, old, precision)
        first_doubt = doubt if first_doubt is None else first_doubt
        # The next look takes twice as long.
        now = time.monotonic()
        late = effort.seconds is not None and now - begins + 2 * (now - began) > effort.seconds
        if not doubt or late:
            break
    return old, new, comparisons, Added(n, n << look, tuple(first_doubt or ()), tuple(doubt))


def looks_of(effort: Effort) -> int:
    """The largest number of looks at two runs, by the engine's rule.

    Examples:
        >>> looks_of(Effort(replications=5)), looks_of(Effort()), looks_of(Effort(seconds=60))
        (1, 3, 8)
    """
    if effort.replications is not None:
        return _engine.looks("stated")
    return _engine.looks("decided" if effort.seconds is None else "timed")


def uncertain_harm(comparisons: Sequence[Comparison], before: Run, precision: float) -> list[Comparison]:
    """Possible large harms to metrics that owners judge by whose intervals are too wide, by rank.

    Response times that stay below the threshold of perception do not count.
    """
    names = {address.name for address in judged(before.scenario)}
    doubt = [
        comparison
        for comparison in comparisons
        if comparison.may_regress and comparison.address.name in names and (comparison.width or 0) > precision
    ]
    return sorted(
        (comparison for comparison in doubt if _felt(comparison, before)), key=lambda comparison: comparison.rank
    )


def _felt(comparison: Comparison, before: Run) -> bool:
    """`True`: the worse end of the interval of a harm would be perceptible."""
    below = felt_ms(before, comparison.address)
    return (
        below is None
        or comparison.after is None
        or comparison.after.mean + (comparison.after.half_width or 0.0) > below
    )
