"""The winner against the present setting, on random numbers that the search has not seen.

The best of many is partly the luckiest of many, so what the search measured is no estimate of the gain. Both settings
run again on fresh seeds, in up to three looks with twice the replications each; at every look a third of the error is
allowed (Bonferroni), so that looking again cannot make a gain of nothing. Where the gain is decided and a large harm to
somebody is uncertain, the looks go on. A setting that starves somebody who does not starve now is no better, whatever
others gain. Where the winner starves somebody or does not keep an SLO for sure, the second best has its turn.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from vcpulab.advice.compare import Comparison, compare
from vcpulab.advice.deciding import PRECISION, Added, uncertain_harm
from vcpulab.advice.starving import newly_starved
from vcpulab.advice.tuning.candidates import Candidate, Found, Harm
from vcpulab.advice.tuning.goals import Goal, Row, rows, score
from vcpulab.advice.tuning.search import Search
from vcpulab.advice.tuning.trials import seed_of
from vcpulab.results.addresses import Slo
from vcpulab.results.run import Run, run_many
from vcpulab.results.statistics import CONFIDENCE, Interval, paired

LOOKS = (8, 16, 32)
"""Replications at each look."""

TRIES = 3
"""So many settings are confirmed at most; none after the replications of a whole confirmation and one more look."""

Verdict = Literal["better", "not better", "unclear", "keeps the SLOs"]


@dataclass(frozen=True)
class Kept:
    """An SLO under a setting."""

    slo: Slo
    interval: Interval | None
    """Of the metric; `None`: it has no value."""
    sure: bool | None
    """Is it kept, even at the end of the interval that is nearest to the bound? `None`: not sure either way."""


@dataclass(frozen=True)
class Confirmation:
    """What is gained, on fresh random numbers."""

    verdict: Verdict
    """`keeps the SLOs`: the winner does, and the present setting does not."""
    score: Interval
    """The mean gain over all goals; see `goals`."""
    gains: Mapping[str, Interval]
    """Goal to gain."""
    comparisons: Sequence[Comparison]
    """Every metric, before and after."""
    slos: Sequence[Kept]
    """Under the winner."""
    before: Run
    after: Run
    starved: Mapping[str, str]
    """Who starves under the winner and does not now, with the reason: then it is not better."""
    added: Added
    """The replications that were added for harms that were uncertain."""
    harm: Harm | None
    """What those lose most whom the goals are not about; `None`: nobody loses significantly."""


@dataclass(frozen=True)
class Rejected:
    """A setting that was the best of the search, and is not advised."""

    candidate: Candidate
    why: str
    """What it does to whom."""


def settle(
    search: Search, found: Found, progress: Callable[[float], bool | None] | None = None
) -> tuple[Found, Confirmation | None, list[Rejected]]:
    """The search with the best setting that nobody pays too much for, its confirmation, and what was rejected before.

    If none is left the first best stays, with its confirmation.

    Raises:
        EngineError: a run failed.
    """
    rejected: list[Rejected] = []
    now, first, spent = found, None, 0
    while now.best is not search.present and len(rejected) < TRIES and spent <= LOOKS[-1]:
        confirmed = confirm(search, now.best, progress)
        spent += confirmed.score.n
        first = first or confirmed
        why = _why_rejected(confirmed)
        if not why:
            return now, confirmed, rejected
        rejected.append(Rejected(now.best, why))
        candidates = [trial.candidate for trial in rejected]
        # After a setting that is too near to an SLO, one that keeps it by far is tried, not its neighbor.
        now = (search.without if confirmed.starved else search.safer)(found, candidates, progress)
    return found, first, rejected


def _why_rejected(confirmed: Confirmation) -> str:
    """Why another setting is to be tried; nothing: this one may be advised, or none would be better."""
    if confirmed.starved:
        return f"starves {', '.join(confirmed.starved)}"
    broken = [str(one.slo) for one in confirmed.slos if not one.sure]
    return f"does not keep {' and '.join(broken)} for sure" if broken and confirmed.verdict not in _ADVISED else ""


_ADVISED = ("better", "keeps the SLOs")


def confirm(search: Search, winner: Candidate, progress: Callable[[float], bool | None] | None = None) -> Confirmation:
    """Sets the winner of a search against the present setting.

    Raises:
        EngineError: a run failed.
    """
    seed = seed_of(search.seed, "confirm", 0)
    question = [
        *(address for goal in search.goals for address in goal.addresses),
        *(slo.address for slo in search.slos),
    ]
    decided: Verdict = "unclear"
    first, why = 0, None
    for look in LOOKS:
        pair = [c.scenario.with_run(seed=seed, replications=look) for c in (search.present, winner)]
        before, after = run_many(pair, jobs=search.jobs, waits=False, progress=progress)
        old, new = (rows(run, search.asked) for run in (before, after))
        scores = [
            score(search.goals, [goal.gain(b, a) for goal in search.goals]) for a, b in zip(old, new, strict=True)
        ]
        kept = [_kept(slo, new) for slo in search.slos]
        broken = any(_kept(slo, old).sure is False for slo in search.slos)
        starving = newly_starved(before, after)
        verdict = "not better" if starving else _verdict(scores, kept, broken=broken)
        # What was decided at a look stays so, unless another look decides otherwise.
        decided = decided if verdict == "unclear" else verdict
        found = compare(before, after, first=question, looks=len(LOOKS))
        doubt = uncertain_harm(found, before, PRECISION)
        if decided == "not better" or (decided != "unclear" and not doubt):
            break
        if decided != "unclear" and why is None:
            first, why = look, doubt
    mean = Interval.from_values(scores)
    assert mean is not None
    gains = {goal.name: _of(goal, old, new) for goal in search.goals}
    added = Added(first or look, look, tuple(why or ()), tuple(doubt))
    return Confirmation(decided, mean, gains, found, kept, before, after, starving, added, search.worth.harm(new, old))


def _verdict(scores: Sequence[float], kept: Sequence[Kept], *, broken: bool) -> Verdict:
    if any(one.sure is False for one in kept):
        return "not better"
    if broken and all(one.sure for one in kept):
        return "keeps the SLOs"
    found = paired(scores, [0.0] * len(scores))
    assert found is not None
    if found.p is None or found.p > (1 - CONFIDENCE) / len(LOOKS) or any(one.sure is None for one in kept):
        return "not better" if found.interval.mean == 0 and not found.interval.half_width else "unclear"
    return "better" if found.interval.mean > 0 else "not better"


def _kept(slo: Slo, rows: Sequence[Row]) -> Kept:
    found = [row[slo.address.name] for row in rows]
    if any(value is None for value in found):
        return Kept(slo, Interval.from_values(found), False)
    interval = Interval.from_values(found)
    assert interval is not None
    half = interval.half_width or 0.0
    ends = [slo.holds(interval.mean - half), slo.holds(interval.mean + half)]
    return Kept(slo, interval, True if all(ends) else None if any(ends) else False)


def _of(goal: Goal, old: Sequence[Row], new: Sequence[Row]) -> Interval:
    interval = Interval.from_values(goal.gain(b, a) for a, b in zip(old, new, strict=True))
    assert interval is not None
    return interval
