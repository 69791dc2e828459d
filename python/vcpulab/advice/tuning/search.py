"""The search: candidates are proposed, and raced against each other and the best so far.

`proposing` chooses candidates, `trials` measures, `worth` judges, `racing` drops hopeless ones, and `simplifying` takes
the mildest of the settings that are about as good as the best. For several goals the score is one view; `front` keeps
the settings that no other beats.

Candidates and their order depend only on the scenario, the seed and the number of candidates: batches have one size,
for any number of processors. An interrupted search is replayed with the replications on disk, which takes no time, and
continues from there with the same result.
"""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from vcpulab._extras import require
from vcpulab._work.progress import Progress, overall
from vcpulab.advice.capacity.occupancy import bottleneck, stations
from vcpulab.advice.lateness import felt_ms
from vcpulab.advice.tuning import no_change
from vcpulab.advice.tuning.candidates import Candidate, SearchResult
from vcpulab.advice.tuning.folder import Clock, claim, name_of
from vcpulab.advice.tuning.goals import Goal, excess
from vcpulab.advice.tuning.leads import leads, suffering
from vcpulab.advice.tuning.prices import PRICES
from vcpulab.advice.tuning.proposing import Proposals
from vcpulab.advice.tuning.racing import hopeless
from vcpulab.advice.tuning.simplifying import Simplifying
from vcpulab.advice.tuning.spaces import Space
from vcpulab.advice.tuning.trials import Trials
from vcpulab.advice.tuning.worth import Worth
from vcpulab.advice.verdicts import Proven
from vcpulab.errors import Interrupted
from vcpulab.results import cache
from vcpulab.results.addresses import Address, Slo
from vcpulab.results.run import Run

FORMAT = "vcpulab-tune/1"
BATCH = 8
"""Candidates raced together. The sampler learns after each batch."""
REPLICATIONS = 6
"""Replications of a candidate that is not dropped."""
PATIENCE = 4
"""Batches in a row without a better candidate after which a search without a stated end stops."""
_FINALISTS = 6
SAFER = 0.5
"""A setting keeps SLOs by far if its slack is at least this fraction of the largest slack of all settings. Assumed."""
_EVERY_MAX = 4096
"""Largest space whose settings are tried in order."""


class Search:
    """Looks for the best setting of a scenario."""

    def __init__(
        self,
        space: Space,
        goals: Sequence[Goal],
        slos: Sequence[Slo] = (),
        *,
        seed: int = 1,
        replications: int = REPLICATIONS,
        folder: Path | None = None,
        jobs: int = 0,
        drop: bool = True,
        by_hand: bool = False,
        prices: Mapping[str, float] = PRICES,
    ) -> None:
        """Prepares a search; `run` starts it.

        Args:
            space: the parameters to vary.
            goals: the goals; all count alike.
            slos: the SLOs that the means over replications must keep.
            seed: seed of the search and of its replications.
            replications: replications of each candidate that is not dropped.
            folder: folder of the measurements, from which a search can continue; `None`: in memory only.
            jobs: replications at a time; 0: one for each processor. It never changes the result.
            drop: drop hopeless candidates before they have all replications.
            by_hand: were the parameters chosen by hand? Then they are tried even if the host is good enough.
            prices: price of changing a parameter of each kind, %; see `prices`.

        Raises:
            RequestError: the folder has another search.
        """
        self.space = space
        self.seed = seed
        self.replications = replications
        self.jobs = jobs
        self.worth = Worth(space, goals, slos, prices)
        self.metrics = _metrics_of(goals, slos, [address for row in self.worth.bystanders for address in row])
        self.rejected: list[Candidate] = []
        """Candidates that must not be advised, see `without`."""
        self._drop = drop
        self._by_hand = by_hand
        self._trials = Trials(space, self.metrics, seed=seed, jobs=jobs)
        self._clock = Clock(None)
        if folder is not None:
            self.keep(folder)

    @property
    def goals(self) -> list[Goal]:
        """The goals."""
        return self.worth.goals

    @property
    def slos(self) -> list[Slo]:
        """The SLOs."""
        return self.worth.slos

    @property
    def present(self) -> Candidate:
        """The present setting."""
        return self._trials.present

    @property
    def runs(self) -> int:
        """Number of replications that were needed so far."""
        return self._trials.runs

    @property
    def note(self) -> str | None:
        """A remark on the measurements that the folder had; `None`: no remark."""
        return self._trials.ran.note

    def keep(self, folder: Path) -> None:
        """Keeps the measurements in a folder, and uses those that the folder has.

        Raises:
            RequestError: the folder has another search.
        """
        claim(folder, self._identity())
        self._trials.ran = cache.RunCache(folder / "runs.jsonl")
        self._clock = Clock(folder / "batches.txt")

    def run(
        self,
        *,
        trials: int | None = None,
        seconds: float | None = None,
        patient: bool = True,
        progress: Progress | None = None,
    ) -> SearchResult:
        """Searches until the number of trials or the time is reached, or the space is exhausted.

        Args:
            trials: most candidates, with the present setting; repeated candidates do not count.
            seconds: most time, with earlier parts of the same search; checked after each batch.
            patient: continue after `PATIENCE` batches without a better candidate?
            progress: see `Progress`.

        Raises:
            Interrupted: the search was cancelled; holds the best so far, and the measurements are kept.
            EngineError: a run failed.
        """
        optuna = require("optuna", "tune")
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            try:
                return self._search(optuna, trials, seconds, patient, progress or (lambda _: True))
            except KeyboardInterrupt:
                if not self._full():
                    raise
                best = max(self._full(), key=self.worth.order)
                raise Interrupted(self._result(best, self._trials.tried, self.runs)) from None

    def without(
        self,
        result: SearchResult,
        rejected: Sequence[Candidate],
        progress: Progress | None = None,
    ) -> SearchResult:
        """The result without some rejected settings: its best is the next best, or the present setting.

        Raises:
            EngineError: a run failed.
        """
        tell = progress or (lambda _: True)
        self.rejected = [*rejected]
        return self._with_best(result, self._mildest(self.present, tell), tell)

    def safer(
        self,
        result: SearchResult,
        rejected: Sequence[Candidate],
        progress: Progress | None = None,
    ) -> SearchResult:
        """The result without settings that are too near to an SLO: its best is the mildest that keeps SLOs by far.

        Raises:
            EngineError: a run failed.
        """
        left = [
            candidate for candidate in self._full() if candidate not in rejected and self.worth.slack(candidate) > 0
        ]
        far = SAFER * max(map(self.worth.slack, left), default=0.0)
        inside = [candidate for candidate in left if self.worth.slack(candidate) >= far]
        if not inside:
            return self.without(result, rejected, progress)
        self.rejected = [*rejected]
        best = min(inside, key=self.worth.cost)
        self._trials.until([best], len(self.present.rows), progress or (lambda _: True))
        return self._with_best(result, best, progress or (lambda _: True))

    def present_run(self) -> Run:
        """The first replication of the present setting with all its tables, for comparisons."""
        return self._trials.present_run()

    def complete(self, candidates: Sequence[Candidate], tell: Progress) -> None:
        """Runs the missing replications of dropped candidates."""
        self._trials.until(candidates, self.replications, tell)

    def name(self) -> str:
        """A short unique name of this search."""
        return name_of(self._identity())

    # ---- the search ----

    def _search(
        self, optuna: Any, trials: int | None, seconds: float | None, patient: bool, progress: Progress
    ) -> SearchResult:
        most = min(trials or math.inf, self.space.size)
        tried = self._trials.tried

        def tell(part: float = 0.0) -> bool | None:
            of_trials = (len(tried) - BATCH * (1 - part)) / most if trials is not None else 0.0
            of_time = self._clock.spent() / seconds if seconds is not None else 0.0
            return progress(min(max(of_trials, of_time, 0.0), 1.0))

        proposals = Proposals(optuna, self.worth, self._trials)
        present = self._first(tell)
        left, proof, first = self._look()
        proposals.begin(first, int(min(most, _EVERY_MAX)))
        best, exhausted = present, self.space.size == 1 or bool(left or proof)
        in_vain, combined = 0, False
        while not exhausted and len(tried) < most and (seconds is None or self._clock.spent() < seconds):
            batch, again, exhausted = proposals.ask(int(min(BATCH, most - len(tried))), best)
            self._clock.start()
            self._race([candidate for _, candidate in batch], best, tell)
            self._clock.stop()
            for trial, candidate in [*batch, *again]:
                proposals.tell(trial, candidate)
            before, best = best, max([best, *self._full()], key=self.worth.order)
            in_vain = 0 if best is not before or proposals.first else in_vain + 1
            enough = self.worth.is_enough(best)
            if not (enough or combined or proposals.first):
                proposals.combine(self._full())
                combined = True
            if not patient and in_vain >= PATIENCE and enough:
                break
            exhausted = exhausted or len(tried) >= self.space.size
        progress(1.0)
        searched, runs = list(tried), self.runs
        if not (left or proof):
            best = self._mildest(self._final(tell), tell)
            left = self._reason_against(best)
        result = replace(
            self._result(present, searched, runs),
            importance=proposals.importance(present if left or proof else best),
            exhausted=exhausted and not (left or proof),
            left=left,
            proof=proof,
        )
        return self._with_best(result, present if left or proof else best, tell)

    def _first(self, tell: Progress) -> Candidate:
        """Measures the present setting, the reference of all comparisons."""
        present = self._trials.candidate(self.space.present)
        self._trials.tried.append(present)
        self._trials.until([present], self.replications, tell)
        self.worth.present = present
        # Metrics without a value under the present setting allow no gain.
        defined = {name for row in present.rows for name, value in row.items() if value is not None}
        kept = [
            replace(g, addresses=tuple(a for a in g.addresses if a.name in defined) or g.addresses) for g in self.goals
        ]
        self.worth.goals = [g for g in kept if len(kept) == 1 or any(a.name in defined for a in g.addresses)] or kept
        return present

    def _look(self) -> tuple[str, Proven | None, list[dict[str, int]]]:
        """Judges the present setting: reason to leave it, proof that no setting helps, and the first candidates."""
        own = no_change.concerned(self.goals)
        run = self._trials.present_run()
        missed = [slo.address.domain for slo in self.slos if excess(slo, self.present.rows) > 0]
        felt = {
            goal.addresses[0].name: value
            for goal in self.goals
            if own and (value := felt_ms(run, goal.addresses[0])) is not None
        }
        left = "" if self._by_hand else no_change.good_enough(self.goals, self.slos, self.present.rows, felt)
        if left:
            return left, None, []
        if not own:
            hurt = [name for name in dict.fromkeys(missed) if name] or suffering(run, self.goals)
            return "", None, leads(self.space, run, hurt, bottleneck(stations(run, hurt)))
        self.worth.goals = [no_change.bounded(goal, self.slos, felt, self.present.rows) for goal in self.goals]
        passed = stations(run, own)
        proof = None
        if not self._by_hand:
            scenario = self.space.scenario.with_run(replications=self.replications)
            proof = no_change.out_of_reach(self.goals, passed, scenario, self.present.rows, jobs=self.jobs)
        hurt = [name for name in dict.fromkeys([*own, *missed]) if name]
        return "", proof, [] if proof else leads(self.space, run, hurt, bottleneck(passed))

    def _race(self, batch: Sequence[Candidate], best: Candidate, tell: Progress) -> None:
        """Adds replications to candidates until each is dropped or has all replications.

        While replications are judged, the next ones of the best candidates already run; those of dropped candidates
        are canceled. The order of judging does not depend on this, so the number of jobs never changes the result.
        """
        racing = [candidate for candidate in batch if candidate.dropped is None]
        with self._trials.stream() as running:
            for n in range(1, self.replications + 1):
                self._trials.begin(running, racing, n - 1)
                if n < self.replications:
                    ahead = sorted(racing, key=self.worth.order, reverse=True) if n > 1 else racing
                    self._trials.begin(running, ahead[: running.jobs], n)
                for candidate in racing:
                    self._trials.take(running, candidate, partial(overall, tell, (n - 1) / self.replications))
                    if candidate.starves:
                        candidate.dropped = f"starves {', '.join(candidate.starves)}"
                remaining = [candidate for candidate in racing if candidate.dropped is None]
                if self._drop and n < self.replications:
                    full = self._full()
                    leader = max([best, *remaining], key=partial(self.worth.order, n=n))
                    for candidate in remaining:
                        candidate.dropped = hopeless(self.worth, candidate, leader, full, n)
                running.call_off((candidate.number, n) for candidate in racing if candidate.dropped is not None)
                racing = [candidate for candidate in racing if candidate.dropped is None]

    # ---- its end ----

    def _full(self) -> list[Candidate]:
        """The candidates with all replications."""
        return [candidate for candidate in self._trials.tried if len(candidate.rows) >= self.replications]

    def _final(self, tell: Progress) -> Candidate:
        """The best of the finalists, with twice the replications: the best of many candidates is partly lucky.

        Each scheduler's best candidate is a finalist, unless it was dropped.
        """
        worth = self.worth
        ranked = sorted(self._full(), key=worth.order, reverse=True)
        cheap = sorted((candidate for candidate in ranked if worth.as_good(candidate, ranked[0])), key=worth.cost)[
            :_FINALISTS
        ]
        policies = [
            candidate for candidate in worth.by_scheduler(self._trials.all).values() if candidate.dropped is None
        ]
        finalists = {
            candidate.number: candidate for candidate in [self.present, *ranked[:_FINALISTS], *cheap, *policies]
        }
        self._trials.until(list(finalists.values()), 2 * self.replications, tell)
        return max(finalists.values(), key=worth.order)

    def _mildest(self, best: Candidate, tell: Progress) -> Candidate:
        finalists = [candidate for candidate in self._full() if len(candidate.rows) == len(self.present.rows)]
        return self._simplifying(tell).mildest(best, finalists)

    def _simplifying(self, tell: Progress) -> Simplifying:
        return Simplifying(self.worth, self._trials, tell, self.rejected)

    def _reason_against(self, best: Candidate) -> str:
        """The reason against a best candidate whose gain users do not notice; empty: they notice it."""
        winner, now = self.worth.standing(best), self.worth.standing(self.present)
        responses = [goal for goal in self.goals if goal.floor is not None]
        if best is self.present or winner.excess > 0 or now.excess > 0 or len(responses) < len(self.goals):
            return ""
        if winner.score >= no_change.LEAST_GAIN:
            return ""
        return f"the best setting tried gains {100 * winner.score:.1g} %, which users do not notice"

    def _result(self, best: Candidate, searched: Sequence[Candidate], runs: int) -> SearchResult:
        """The result of the search so far."""
        return SearchResult(
            candidates=list(searched),
            best=best,
            policies=self.worth.by_scheduler(self._trials.all),
            costs={},
            standings={
                candidate.number: self.worth.standing(candidate) for candidate in self._trials.all if candidate.rows
            },
            importance={},
            runs=runs,
            runs_full=sum(self.replications for candidate in searched if candidate.rows),
            seconds=self._clock.spent(),
            exhausted=False,
        )

    def _with_best(self, result: SearchResult, best: Candidate, tell: Progress) -> SearchResult:
        costs = self._simplifying(tell).costs(best)
        standings = {
            candidate.number: self.worth.standing(candidate) for candidate in self._trials.all if candidate.rows
        }
        return replace(result, best=best, costs=costs, standings=standings)

    def _identity(self) -> dict[str, object]:
        """Everything that the measurements of a search depend on, by name."""
        return {
            "format": FORMAT,
            "version": _version(),
            "scenario": sha256(self.space.scenario.to_toml().encode()).hexdigest(),
            "parameters": [
                f"{parameter.key}: {[option.label for option in parameter.options]}"
                for parameter in self.space.parameters
            ],
            "goals": [str(goal) for goal in self.goals],
            "slos": [str(slo) for slo in self.slos],
            "seed": self.seed,
            "replications": self.replications,
            "drop": self._drop,
            "prices": self.worth.prices,
        }


def _metrics_of(goals: Sequence[Goal], slos: Sequence[Slo], bystanders: Sequence[Address]) -> list[Address]:
    listed = [address for goal in goals for address in goal.addresses] + [slo.address for slo in slos] + [*bystanders]
    return list({address.name: address for address in listed}.values())


def _version() -> str:
    """A hash of the engine, of this module with all that it imports, and of Optuna's version."""
    return cache.key(cache.maker(__name__), require("optuna", "tune").__version__)
