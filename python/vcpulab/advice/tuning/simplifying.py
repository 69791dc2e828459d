"""Simplification: the mildest setting that is about as good as the best, without parameters that do not matter."""

from collections.abc import Sequence

from vcpulab._work.progress import Progress
from vcpulab.advice.tuning.candidates import Candidate
from vcpulab.advice.tuning.spaces import Parameter
from vcpulab.advice.tuning.trials import Trials
from vcpulab.advice.tuning.worth import Worth, greater
from vcpulab.results.statistics import Interval, paired

_SAME_SCORE = 0.002
_PART_OF_SCORE = 0.1
"""A parameter is changed back if the loss of score is below `_SAME_SCORE`, or if it is below this fraction of the score
and not significant."""


class Simplifying:
    """Looks for the mildest candidate, and runs the replications that this needs."""

    def __init__(self, worth: Worth, trials: Trials, tell: Progress, rejected: Sequence[Candidate] = ()) -> None:
        """Prepares the simplification.

        Args:
            worth: the judge of candidates.
            trials: the candidates, with their replications.
            tell: called with the fraction of the runs that is done; returning `False` cancels.
            rejected: candidates that must not be advised.
        """
        self._worth = worth
        self._trials = trials
        self._tell = tell
        self._rejected = rejected

    def mildest(self, best: Candidate, finalists: Sequence[Candidate]) -> Candidate:
        """The setting to advise; it may be the present one."""
        worth, present = self._worth, self._worth.present
        finalists = [candidate for candidate in finalists if candidate not in self._rejected]
        beyond = worth.standing(best).excess
        best = max(
            [best, *(candidate for candidate in finalists if worth.standing(candidate).excess <= beyond)],
            key=worth.rank,
        )
        mild = min((candidate for candidate in [best, *finalists] if worth.as_good(candidate, best)), key=worth.cost)
        best = self._stepped(mild, finalists)
        before = None
        # After one parameter is changed back, another may no longer matter.
        while best is not before:
            before = best
            for parameter in reversed(worth.changed(best)):
                simpler = self._back(best, parameter)
                if simpler is None or simpler in self._rejected:
                    continue
                if self._does_without(simpler, best) or self._is_cheaper(simpler, best):
                    best = simpler
        # A setting that gains next to nothing need not change anything.
        return present if worth.keeps(present) and worth.standing(best).score < _SAME_SCORE else best

    def costs(self, best: Candidate) -> dict[str, Interval]:
        """Key of each changed parameter to the loss of score if it is changed back."""
        costs = {}
        for parameter in self._worth.changed(best):
            back = self._back(best, parameter)
            if back is not None and (cost := paired(self._worth.scores(best), self._worth.scores(back))) is not None:
                costs[parameter.key] = cost.interval
        return costs

    def _stepped(self, mild: Candidate, finalists: Sequence[Candidate]) -> Candidate:
        """The same parameters at their best values: the tolerance may save parameters, not steps of a parameter."""
        worth = self._worth
        keys = {parameter.key for parameter in worth.changed(mild)}
        alike = [
            candidate
            for candidate in finalists
            if {parameter.key for parameter in worth.changed(candidate)} == keys
            and candidate.scheduler == mild.scheduler
            and worth.keeps(candidate)
        ]
        return mild if worth.stated() else max([mild, *alike], key=worth.rank)

    def _does_without(self, simpler: Candidate, best: Candidate) -> bool:
        """Is the setting as good without the parameter?"""
        if self._worth.late(simpler) and not self._worth.late(best):
            return False
        standing, back = self._worth.standing(best), self._worth.standing(simpler)
        lost = standing.score - back.score
        alike = lost < _SAME_SCORE or (
            lost < _PART_OF_SCORE * standing.score
            and not greater(self._worth.scores(best), self._worth.scores(simpler))
        )
        return back.excess <= standing.excess and alike and (standing.excess > 0 or back.score > -_SAME_SCORE)

    def _is_cheaper(self, simpler: Candidate, best: Candidate) -> bool:
        """Is the loss from changing a parameter back less than its price?"""
        worth = self._worth
        standing, back = worth.standing(best), worth.standing(simpler)
        return back.excess <= standing.excess <= 0 < standing.score and worth.rank(simpler) > worth.rank(best)

    def _back(self, candidate: Candidate, parameter: Parameter) -> Candidate | None:
        """The candidate with one parameter changed back, and all replications; `None`: impossible, or no change."""
        picks = {**candidate.picks, parameter.key: parameter.now}
        back = self._trials.candidate(picks)
        if back is candidate:
            # The parameter had no effect with the values of the others.
            candidate.picks = picks
            return None
        if back.scenario is self._worth.space.scenario:
            return None
        self._trials.until([back], len(self._worth.present.rows), self._tell)
        # Other picks, with parameters that have no effect, may have led to the same candidate before.
        back.picks, back.dropped = picks, None
        return back
