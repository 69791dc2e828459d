"""Racing: candidates that are unlikely to be advised are dropped after a few replications.

The method is that of Maron and Moore 1994, "Hoeffding races", with Student's interval in place of Hoeffding's:
replications are added one at a time to a batch of candidates, and a candidate is dropped as soon as it is significantly
worse than the best so far, or significantly beyond an SLO.
"""

import math
from collections.abc import Sequence

from vcpulab.advice.tuning.candidates import Candidate
from vcpulab.advice.tuning.goals import excess
from vcpulab.advice.tuning.worth import AS_GOOD, Worth, greater

_FAR_BEHIND = 0.5
"""Fraction of the best's net score below which a candidate is dropped after two replications (successive halving)."""
_CLEAR_GAIN = 0.2
"""Least net score of the best at which `_FAR_BEHIND` applies; below it, the front may need the candidates."""


def hopeless(worth: Worth, candidate: Candidate, leader: Candidate, full: Sequence[Candidate], n: int) -> str | None:
    """The reason to drop a candidate after n replications; `None`: it may be advised yet.

    Args:
        worth: the judge of candidates.
        candidate: a candidate of a batch.
        leader: the best of the batch and of all batches before, after n replications.
        full: the candidates with all replications.
        n: number of replications.
    """
    if n < 2:
        return None
    slos = worth.slos
    if worth.standing(leader, n).excess > 0:
        # No candidate keeps the SLOs yet, so the distance to the SLOs decides.
        beyond = [
            [math.fsum(max(excess(slo, [row]), 0.0) for slo in slos) for row in trial.rows[:n]]
            for trial in (candidate, leader)
        ]
        return "further beyond the SLOs than the best" if greater(beyond[0], beyond[1]) else None
    for slo in slos:
        if greater([excess(slo, [row]) for row in candidate.rows], [0.0] * n):
            return f"beyond {slo}"
    keeping = [trial for trial in (leader, *full) if worth.keeps(trial)]
    best = max(keeping, key=worth.rank, default=candidate)
    if best is candidate or (worth.late(best) and not worth.late(candidate)):
        return None
    return _behind(worth, candidate, best, n)


def _behind(worth: Worth, candidate: Candidate, best: Candidate, n: int) -> str | None:
    """The reason why a candidate is unlikely to become better than the best so far; `None`: it may."""
    most, mine = (worth.nets(trial)[:n] for trial in (best, candidate))
    if _CLEAR_GAIN * n < math.fsum(most) and math.fsum(mine) < _FAR_BEHIND * math.fsum(most):
        return "far behind the best"
    milder = worth.price(candidate) < worth.price(best)
    # A milder candidate that is about as good is preferred.
    part = 1 - AS_GOOD if milder and math.fsum(most) > 0 else 1.0
    if not greater([part * net for net in most], mine):
        return None
    better = math.fsum(worth.scores(candidate)) > math.fsum(worth.scores(best)[:n])
    return "not worth its price" if better else "worse than the best"
