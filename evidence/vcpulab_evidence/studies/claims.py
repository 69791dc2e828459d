"""Claims of the authors, each declared above its check, and the rule that decides them.

A claim rests on levels (a value lies in a range), on directions (one case is above another), or on both. Levels are
read off the means. A direction is a paired difference between runs with the same random numbers, and holds or fails
only if chance is excluded: p < 0.05 by Student's test, after Holm's correction for all directions of the claim. A
direction that the data do not settle is evidence neither for the claim nor against it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from vcpulab.results.statistics import Difference, holm
from vcpulab_evidence.studies.results import Missing, Results

SIGNIFICANT = 0.05
"""Chance is excluded below this probability."""


class Outcome(StrEnum):
    """The three outcomes of a check."""

    HOLDS = "holds"
    FAILS = "fails"
    UNTESTABLE = "cannot be tested"


class Verdict(NamedTuple):
    """The outcome of a claim, with the evidence."""

    outcome: Outcome
    evidence: str
    """The values that decide, in words."""
    p: float | None = None
    """Probability that chance alone would give these values; `None`: not a statistical question."""


Check = Callable[[Results], Verdict]


@dataclass(frozen=True)
class Claim:
    """A statement of the authors that can be checked."""

    id: str
    """The number of the claim in the study's notes."""
    text: str
    """The statement, in our words."""
    standing: str
    """The status of the claim in the paper: whether the authors' own numbers agree with it."""
    check: Check
    contradicted: bool = False
    """`True`: the authors' own numbers contradict the claim."""
    undecided: bool = False
    """`True`: the authors' own numbers do not decide the claim: within their noise, or not measured."""

    @property
    def in_paper(self) -> str:
        """The status of the claim in the paper, as a sentence."""
        if self.contradicted:
            return f"{self.standing} (the authors' own numbers contradict it)"
        if self.undecided:
            return f"{self.standing} (the authors' own numbers do not tell)"
        return self.standing

    def verdict(self, results: Results) -> Verdict:
        """The verdict on the claim with some results."""
        try:
            return self.check(results)
        except Missing as missing:
            return cannot_be_tested(str(missing))


class Claims:
    """The claims of one study, declared above their checks.

    Examples:
        >>> claim = Claims()
        >>> @claim("C-1", "Throughput rises with the weight", "Figure 1")
        ... def rises(results: Results) -> Verdict:
        ...     return decide(results.mean("heavy", "rate") > 100, "above 100")
        >>> [declared.id for declared in claim.all]
        ['C-1']
    """

    def __init__(self) -> None:
        """Starts without a claim."""
        self._claims: list[Claim] = []

    def __call__(
        self, number: str, text: str, standing: str, *, contradicted: bool = False, undecided: bool = False
    ) -> Callable[[Check], Check]:
        """Declares the claim that the function below checks; arguments as the fields of `Claim`."""

        def declare(check: Check) -> Check:
            self._claims.append(Claim(number, text, standing, check, contradicted, undecided))
            return check

        return declare

    @property
    def all(self) -> tuple[Claim, ...]:
        """All claims, sorted by number."""
        return tuple(sorted(self._claims, key=lambda claim: int(claim.id.rpartition("-")[2])))


def decide(levels: bool, evidence: str, directions: Iterable[Difference] = ()) -> Verdict:
    """The outcome of a claim.

    Args:
        levels: whether the means are as claimed, where the claim is not about a direction.
        evidence: the values that decide, in words.
        directions: paired differences, each of them above 0 if the claim is right.

    Returns:
        It *holds* if the levels are right and every difference is surely above 0. It *fails* if a level is wrong, or a
        difference is surely not above 0: below, or 0 in every replication. Otherwise it *cannot be tested*. One
        replication alone says nothing of chance: then the sign counts.
    """
    family = _corrected(list(directions))
    p = max((p for _, p in family if p is not None), default=None)
    if not levels:
        return Verdict(Outcome.FAILS, evidence, p)
    sure = [(d, p) for d, p in family if p is None or p < SIGNIFICANT]
    against = [p for d, p in sure if d.interval.mean <= 0]
    if against:
        return Verdict(Outcome.FAILS, evidence, min((p for p in against if p is not None), default=None))
    if len(sure) < len(family):
        return Verdict(Outcome.UNTESTABLE, f"{evidence}; chance is not excluded", p)
    return Verdict(Outcome.HOLDS, evidence, p)


def _corrected(directions: Sequence[Difference]) -> list[tuple[Difference, float | None]]:
    """Directions with their probabilities after Holm's correction; `None`: it is no question of chance."""
    ps = [None if d.interval.mean == d.interval.half_width == 0 else d.p for d in directions]
    corrected = iter(holm([p for p in ps if p is not None]))
    return [(d, None if p is None else next(corrected)) for d, p in zip(directions, ps, strict=True)]


def cannot_be_tested(reason: str) -> Verdict:
    """The verdict on a claim that the data do not decide."""
    return Verdict(Outcome.UNTESTABLE, reason)
