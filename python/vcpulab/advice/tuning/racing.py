"""When a candidate is given up: after a few replications it will hardly be advised.

That is racing (Maron and Moore 1994, "Hoeffding races"), with Student's interval in place of Hoeffding's: replications
are added one at a time to a batch of candidates, and one is dropped as soon as it is significantly worth less than what
is worth most so far, or significantly beyond an SLO.
"""

import math
from collections.abc import Sequence

from vcpulab.advice.tuning.candidates import Candidate
from vcpulab.advice.tuning.goals import excess
from vcpulab.advice.tuning.worth import AS_GOOD, Worth, greater

_FAR_BEHIND = 0.5
"""What is worth less than this part of the best after two replications is given up, if the best is worth ..."""
_CLEAR_GAIN = 0.2
"""... at least so much: successive halving, with what is kept for the front."""


def hopeless(worth: Worth, candidate: Candidate, leader: Candidate, full: Sequence[Candidate], n: int) -> str | None:
    """Why a candidate can be dropped after n replications; `None`: it may be advised yet.

    Args:
        worth: what candidates are worth.
        candidate: one of a batch.
        leader: the best of the batch and of all before it, after n replications.
        full: those that were run to the end.
        n: replications.
    """
    if n < 2:
        return None
    slos = worth.slos
    if worth.standing(leader, n).excess > 0:
        # Nothing keeps the SLOs yet: the nearer the better.
        beyond = [
            [math.fsum(max(excess(slo, [row]), 0.0) for slo in slos) for row in which.rows[:n]]
            for which in (candidate, leader)
        ]
        return "further beyond the SLOs than the best" if greater(beyond[0], beyond[1]) else None
    for slo in slos:
        if greater([excess(slo, [row]) for row in candidate.rows], [0.0] * n):
            return f"beyond {slo}"
    keeping = [one for one in (leader, *full) if worth.keeps(one)]
    best = max(keeping, key=worth.rank, default=candidate)
    if best is candidate or (worth.late(best) and not worth.late(candidate)):
        return None
    return _behind(worth, candidate, best, n)


def _behind(worth: Worth, candidate: Candidate, best: Candidate, n: int) -> str | None:
    """Why it will hardly become worth more than what is worth most so far."""
    most, mine = (worth.nets(which)[:n] for which in (best, candidate))
    if _CLEAR_GAIN * n < math.fsum(most) and math.fsum(mine) < _FAR_BEHIND * math.fsum(most):
        return "far behind the best"
    milder = worth.price(candidate) < worth.price(best)
    # What is as good and milder is taken.
    part = 1 - AS_GOOD if milder and math.fsum(most) > 0 else 1.0
    if not greater([part * one for one in most], mine):
        return None
    better = math.fsum(worth.scores(candidate)) > math.fsum(worth.scores(best)[:n])
    return "not worth its price" if better else "worse than the best"
