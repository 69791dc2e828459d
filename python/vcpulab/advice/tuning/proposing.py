"""The choice of the next candidates.

First the candidates that are likely to help (`leads`), then every scheduler with its present parameters, and every
setting of a small space; then half by Optuna's tree-structured Parzen estimator of the score and the SLOs, half
neighbours of the best.
"""

import json
import random
import warnings
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

from vcpulab.advice.tuning.candidates import Candidate
from vcpulab.advice.tuning.goals import excess
from vcpulab.advice.tuning.spaces import Parameter, Space
from vcpulab.advice.tuning.trials import Trials, seed_of
from vcpulab.advice.tuning.worth import Worth

if TYPE_CHECKING:
    import optuna

_QUANTILE = 0.25
_TOP = 5
"""Least candidates in the best quarter for an estimate of importance."""
_TOGETHER = 4
"""Most parameters, of those that help one by one, that are combined."""
_REPEATS_MAX = 64
"""Repeated candidates in a row after which the space counts as exhausted."""

Proposed = list[tuple["optuna.Trial", Candidate]]


class Proposals:
    """Proposes candidates and learns from their results."""

    def __init__(self, optuna: Any, worth: Worth, trials: Trials) -> None:
        """Starts a study of Optuna, an optional dependency that the caller imports."""
        self._optuna = optuna
        sampler = optuna.samplers.TPESampler(seed=trials.seed % 2**32)
        self._study: optuna.Study = optuna.create_study(sampler=sampler, direction="maximize")
        self._worth = worth
        self._trials = trials
        self._chance = random.Random(seed_of(trials.seed, "neighbours", 0))
        self._turns: dict[str, list[Parameter]] = {}
        self.first: list[Mapping[str, int]] = []
        """Settings to try before all others."""

    @property
    def _space(self) -> Space:
        return self._worth.space

    def begin(self, leads: Iterable[Mapping[str, int]], most: int) -> None:
        """Begins with the present setting, `leads`, each scheduler, and every setting if there are at most `most`."""
        first = [self._space.present, *leads, *self._space.each_scheduler()]
        if self._space.size <= most:
            first += list(self._space.every())
        self.first = list({json.dumps(picks, sort_keys=True): picks for picks in first}.values())

    def combine(self, candidates: Iterable[Candidate]) -> None:
        """Tries the best changes of single parameters together, two and three at a time, before other settings.

        Args:
            candidates: the candidates with all replications.
        """
        order = self._worth.order
        best: dict[str, Candidate] = {}
        for candidate in candidates:
            changed = [parameter.key for parameter in self._worth.changed(candidate)]
            if len(changed) != 1:
                continue
            least = best.get(changed[0], self._worth.present)
            if candidate.scheduler == least.scheduler and order(candidate) > order(least):
                best[changed[0]] = candidate
        top = sorted(best, key=lambda key: order(best[key]), reverse=True)[:_TOGETHER]
        for size in (2, 3):
            for keys in combinations(top, size):
                self.first.append({**self._space.present, **{key: best[key].picks[key] for key in keys}})

    def ask(self, wanted: int, best: Candidate) -> tuple[Proposed, Proposed, bool]:
        """New candidates, repeated candidates, and whether the space is exhausted."""
        new: Proposed = []
        again: Proposed = []
        repeats = 0
        while len(new) < wanted and repeats < _REPEATS_MAX:
            # Every second candidate is a neighbour of a good one: of many parameters, most matter one by one.
            if self.first:
                self._study.enqueue_trial(dict(self.first.pop(0)))
            elif len(new) % 2:
                self._study.enqueue_trial(self._neighbour(best))
            trial = self._study.ask()
            candidate = self._trials.candidate(self._space.picks(partial(_suggest, trial)))
            if candidate in self._trials.tried:
                again.append((trial, candidate))
                repeats += 1
                # The sampler learns the result at once, so that it looks elsewhere.
                if candidate.rows and not any(candidate is fresh for _, fresh in new):
                    self.tell(*again.pop())
                continue
            repeats = 0
            self._trials.tried.append(candidate)
            new.append((trial, candidate))
        return new, again, repeats >= _REPEATS_MAX

    def tell(self, trial: "optuna.Trial", candidate: Candidate) -> None:
        """Gives the result of a candidate to the sampler."""
        if not candidate.rows or candidate.starves:
            self._study.tell(trial, state=self._optuna.trial.TrialState.FAIL)
            return
        for index, slo in enumerate(self._worth.slos):
            trial.set_constraint(f"{index}: {slo}", excess(slo, candidate.rows))
        trial.set_user_attr("candidate", candidate.number)
        self._study.tell(trial, self._worth.standing(candidate).score)

    def importance(self, best: Candidate) -> dict[str, float]:
        """Conditional PED-ANOVA (Watanabe, Bansal and Hutter 2023) of the score, under the best's scheduler."""
        choice = best.picks.get("host.scheduler")
        finished = [
            trial
            for trial in self._study.get_trials(deepcopy=False)
            if trial.values is not None and trial.params.get("host.scheduler") == choice
        ]
        if len(finished) < _TOP / _QUANTILE:
            return {}
        alike = self._optuna.create_study(direction="maximize")
        alike.add_trials(finished)
        evaluator = self._optuna.importance.PedAnovaImportanceEvaluator(target_quantile=_QUANTILE)
        # The evaluator minimises, and warns about it.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            importances: dict[str, float] = self._optuna.importance.get_param_importances(
                alike, evaluator=evaluator, target=lambda trial: -trial.value
            )
        # The most important first; equal ones by name, not in the order of a hash.
        ranked = sorted(importances.items(), key=lambda item: (-item[1], item[0]))
        return {name: share for name, share in ranked if share > 0 and name != "host.scheduler"}

    def _neighbour(self, best: Candidate) -> dict[str, int]:
        """The best setting, or the best under some scheduler, with one or two parameters changed."""
        best_of_each = self._worth.by_scheduler(self._trials.all).values()
        candidate = self._chance.choice([best, self._chance.choice([*best_of_each])])
        parameters = [
            parameter for parameter in self._space.active(candidate.scheduler) if parameter.name != "host.scheduler"
        ]
        # Parameters take turns, so that each is changed.
        turns = self._turns.setdefault(candidate.scheduler, [])
        if not turns:
            turns += self._chance.sample(parameters, len(parameters))
        turned = (
            [turns.pop(), *self._chance.sample(parameters, min(self._chance.randrange(2), len(parameters)))]
            if parameters
            else []
        )
        picks = dict(candidate.picks)
        for parameter in turned:
            here = candidate.picks.get(parameter.key, parameter.now)
            picks[parameter.key] = self._chance.choice(
                [option for option in range(len(parameter.options)) if option != here]
            )
        return picks


def _suggest(trial: "optuna.Trial", parameter: Parameter) -> int:
    last = len(parameter.options) - 1
    if parameter.ordered:
        return trial.suggest_int(parameter.key, 0, last)
    return int(trial.suggest_categorical(parameter.key, list(range(last + 1))))
