"""Comparison of the winner with the present setting, on random numbers that the search has not used.

The best of many candidates is partly the luckiest, so the search's measurements are no estimate of the gain. Both
settings run again on fresh seeds, in up to three looks with twice the replications each. Every look is allowed a third
of the error (Bonferroni), so repeated looks do not raise the error. If the gain is decided and a large loss of a
bystander is uncertain, the looks continue. A setting that starves another domain than the present one is not better,
for any gain. If the winner starves a domain or does not keep an SLO for sure, the second best is confirmed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from vcpulab._work.progress import Progress
from vcpulab.advice.compare import Comparison, compare
from vcpulab.advice.deciding import PRECISION, Added, uncertain_harm
from vcpulab.advice.starvation import newly_starved
from vcpulab.advice.tuning.candidates import Candidate, Harm, SearchResult
from vcpulab.advice.tuning.goals import Goal, Row, rows, score
from vcpulab.advice.tuning.search import Search
from vcpulab.advice.tuning.trials import seed_of
from vcpulab.results.addresses import Slo
from vcpulab.results.run import Run, run_many
from vcpulab.results.statistics import CONFIDENCE, Interval, paired

LOOKS = (8, 16, 32)
"""Replications at each look."""

TRIES = 3
"""Most settings to confirm; none is started after the replications of a whole confirmation and one more look."""

Verdict = Literal["better", "not better", "unclear", "keeps the SLOs"]


@dataclass(frozen=True)
class Kept:
    """An SLO under a setting."""

    slo: Slo
    interval: Interval | None
    """Confidence interval of the metric; `None`: the metric has no value."""
    sure: bool | None
    """Is the SLO kept at both ends of the interval? `None`: at one end only."""


@dataclass(frozen=True)
class Confirmation:
    """The gain of a setting, on fresh random numbers."""

    verdict: Verdict
    """`keeps the SLOs`: the winner keeps all SLOs, and the present setting does not."""
    score: Interval
    """The mean gain over all goals; see `goals`."""
    gains: Mapping[str, Interval]
    """Goal to gain."""
    comparisons: Sequence[Comparison]
    """Every metric, before and after."""
    slos: Sequence[Kept]
    """SLOs under the winner."""
    before: Run
    after: Run
    starved: Mapping[str, str]
    """Domains that starve under the winner only, with the reason; such a winner is not better."""
    added: Added
    """The replications that were added for uncertain losses."""
    harm: Harm | None
    """Largest loss of a bystander; `None`: none is significant."""


@dataclass(frozen=True)
class Rejected:
    """A setting that was the best of the search, and is not advised."""

    candidate: Candidate
    reason: str
    """Reason of the rejection: starving domains, or SLOs that are not kept for sure."""


def settle(
    search: Search, result: SearchResult, progress: Progress | None = None
) -> tuple[SearchResult, Confirmation | None, list[Rejected]]:
    """The search with the best acceptable setting, its confirmation, and the settings that were rejected before.

    If no setting is acceptable, the first best stays, with its confirmation.

    Raises:
        EngineError: a run failed.
    """
    rejected: list[Rejected] = []
    now, first, spent = result, None, 0
    while now.best is not search.present and len(rejected) < TRIES and spent <= LOOKS[-1]:
        confirmed = confirm(search, now.best, progress)
        spent += confirmed.score.n
        first = first or confirmed
        reason = _why_rejected(confirmed)
        if not reason:
            return now, confirmed, rejected
        rejected.append(Rejected(now.best, reason))
        candidates = [trial.candidate for trial in rejected]
        # After a setting too near to an SLO, one that keeps the SLO by far is tried, not a neighbor.
        now = (search.without if confirmed.starved else search.safer)(result, candidates, progress)
    return result, first, rejected


def _why_rejected(confirmed: Confirmation) -> str:
    """Reason to reject a setting; empty: it may be advised, or no other would be better."""
    if confirmed.starved:
        return f"starves {', '.join(confirmed.starved)}"
    broken = [str(kept.slo) for kept in confirmed.slos if not kept.sure]
    return f"does not keep {' and '.join(broken)} for sure" if broken and confirmed.verdict not in _ADVISED else ""


_ADVISED = ("better", "keeps the SLOs")


def confirm(search: Search, winner: Candidate, progress: Progress | None = None) -> Confirmation:
    """Compares the winner of a search with the present setting.

    Raises:
        EngineError: a run failed.
    """
    seed = seed_of(search.seed, "confirm", 0)
    question = [
        *(address for goal in search.goals for address in goal.addresses),
        *(slo.address for slo in search.slos),
    ]
    decided: Verdict = "unclear"
    first, added_for = 0, None
    for look in LOOKS:
        pair = [c.scenario.with_run(seed=seed, replications=look) for c in (search.present, winner)]
        before, after = run_many(pair, jobs=search.jobs, waits=False, progress=progress)
        old, new = (rows(run, search.metrics) for run in (before, after))
        scores = [
            score(search.goals, [goal.gain(b, a) for goal in search.goals]) for a, b in zip(old, new, strict=True)
        ]
        kept = [_kept(slo, new) for slo in search.slos]
        broken = any(_kept(slo, old).sure is False for slo in search.slos)
        starving = newly_starved(before, after)
        verdict = "not better" if starving else _verdict(scores, kept, broken=broken)
        # A decision of one look stays, unless another look decides otherwise.
        decided = decided if verdict == "unclear" else verdict
        comparisons = compare(before, after, first=question, looks=len(LOOKS))
        doubt = uncertain_harm(comparisons, before, PRECISION)
        if decided == "not better" or (decided != "unclear" and not doubt):
            break
        if decided != "unclear" and added_for is None:
            first, added_for = look, doubt
    mean = Interval.from_values(scores)
    assert mean is not None
    gains = {goal.name: _gain_of(goal, old, new) for goal in search.goals}
    added = Added(first or look, look, tuple(added_for or ()), tuple(doubt))
    return Confirmation(
        decided, mean, gains, comparisons, kept, before, after, starving, added, search.worth.harm(new, old)
    )


def _verdict(scores: Sequence[float], kept: Sequence[Kept], *, broken: bool) -> Verdict:
    if any(slo.sure is False for slo in kept):
        return "not better"
    if broken and all(slo.sure for slo in kept):
        return "keeps the SLOs"
    difference = paired(scores, [0.0] * len(scores))
    assert difference is not None
    if difference.p is None or difference.p > (1 - CONFIDENCE) / len(LOOKS) or any(slo.sure is None for slo in kept):
        return "not better" if difference.interval.mean == 0 and not difference.interval.half_width else "unclear"
    return "better" if difference.interval.mean > 0 else "not better"


def _kept(slo: Slo, rows: Sequence[Row]) -> Kept:
    values = [row[slo.address.name] for row in rows]
    if any(value is None for value in values):
        return Kept(slo, Interval.from_values(values), False)
    interval = Interval.from_values(values)
    assert interval is not None
    half = interval.half_width or 0.0
    ends = [slo.holds(interval.mean - half), slo.holds(interval.mean + half)]
    return Kept(slo, interval, True if all(ends) else None if any(ends) else False)


def _gain_of(goal: Goal, old: Sequence[Row], new: Sequence[Row]) -> Interval:
    interval = Interval.from_values(goal.gain(b, a) for a, b in zip(old, new, strict=True))
    assert interval is not None
    return interval
