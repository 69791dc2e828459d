"""The mildest of the settings that are about as good as the best, with parameters changed back that do not matter."""

from collections.abc import Sequence

from vcpulab.advice.tuning.candidates import Candidate
from vcpulab.advice.tuning.spaces import Parameter
from vcpulab.advice.tuning.trials import Tell, Trials
from vcpulab.advice.tuning.worth import Worth, greater
from vcpulab.results.statistics import Interval, paired

_SAME_SCORE = 0.002
_PART_OF_SCORE = 0.1
"""A parameter is changed back if that costs less of the score, or less than this part of it if that is not
significant."""


class Simplifying:
    """Looks for the mildest among candidates; what it must run for that it runs."""

    def __init__(self, worth: Worth, trials: Trials, tell: Tell, rejected: Sequence[Candidate] = ()) -> None:
        """Takes what is known.

        Args:
            worth: what candidates are worth.
            trials: where those are run that were not.
            tell: told of the runs.
            rejected: what must not be advised.
        """
        self._worth = worth
        self._trials = trials
        self._tell = tell
        self._rejected = rejected

    def mildest(self, best: Candidate, finalists: Sequence[Candidate]) -> Candidate:
        """The setting to advise; it may be the present one."""
        worth, present = self._worth, self._worth.present
        finalists = [one for one in finalists if one not in self._rejected]
        beyond = worth.standing(best).excess
        best = max([best, *(one for one in finalists if worth.standing(one).excess <= beyond)], key=worth.rank)
        mild = min((one for one in [best, *finalists] if worth.as_good(one, best)), key=worth.cost)
        best = self._stepped(mild, finalists)
        before = None
        # Changing one parameter back may take away what another was good for.
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
        """Key of each parameter that is changed to what changing it back costs of the score."""
        found = {}
        for parameter in self._worth.changed(best):
            back = self._back(best, parameter)
            if back is not None and (cost := paired(self._worth.scores(best), self._worth.scores(back))) is not None:
                found[parameter.key] = cost.interval
        return found

    def _stepped(self, mild: Candidate, finalists: Sequence[Candidate]) -> Candidate:
        """The same parameters, at the values that are worth most: the tolerance saves some, not steps."""
        worth = self._worth
        keys = {one.key for one in worth.changed(mild)}
        alike = [
            one
            for one in finalists
            if {parameter.key for parameter in worth.changed(one)} == keys
            and one.scheduler == mild.scheduler
            and worth.keeps(one)
        ]
        return mild if worth.stated() else max([mild, *alike], key=worth.rank)

    def _does_without(self, simpler: Candidate, best: Candidate) -> bool:
        """Is it as good without the parameter?"""
        if self._worth.late(simpler) and not self._worth.late(best):
            return False
        there, back = self._worth.standing(best), self._worth.standing(simpler)
        lost = there.score - back.score
        alike = lost < _SAME_SCORE or (
            lost < _PART_OF_SCORE * there.score and not greater(self._worth.scores(best), self._worth.scores(simpler))
        )
        return back.excess <= there.excess and alike and (there.excess > 0 or back.score > -_SAME_SCORE)

    def _is_cheaper(self, simpler: Candidate, best: Candidate) -> bool:
        """Is what is lost by changing something back less than its price?"""
        worth = self._worth
        there, back = worth.standing(best), worth.standing(simpler)
        return back.excess <= there.excess <= 0 < there.score and worth.rank(simpler) > worth.rank(best)

    def _back(self, candidate: Candidate, parameter: Parameter) -> Candidate | None:
        """The candidate with one parameter changed back, run to the end; `None`: impossible, or the same setting."""
        picks = {**candidate.picks, parameter.key: parameter.now}
        back = self._trials.candidate(picks)
        if back is candidate:
            # The parameter had no effect beside the others.
            candidate.picks = picks
            return None
        if back.scenario is self._worth.space.scenario:
            return None
        self._trials.until([back], len(self._worth.present.rows), self._tell)
        # It may have been reached by other picks, of parameters that have no effect beside each other.
        back.picks, back.dropped = picks, None
        return back
