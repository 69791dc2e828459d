"""The search: candidates are proposed, and raced against each other and the best so far.

`proposing` says what is tried next, `trials` measures it, `worth` judges it, `racing` gives up what is hopeless, and
`simplifying` takes the mildest of what is about as good as the best. Of several goals the score is one view; the
settings that none beats in every goal are kept as well.

What is searched, in which order, follows from the scenario, the seed and the number of candidates alone: batches have
one size, whatever the processors. A search that was interrupted is replayed with the replications that are on disk,
which takes no time, and goes on where it stopped, as if nothing had happened.
"""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from vcpulab.advice.capacity.occupancy import bottleneck, stations
from vcpulab.advice.lateness import felt_ms
from vcpulab.advice.tuning import leaving
from vcpulab.advice.tuning.candidates import Candidate, Found
from vcpulab.advice.tuning.goals import Goal, excess
from vcpulab.advice.tuning.keeping import Clock, claim, name_of
from vcpulab.advice.tuning.leads import leads, suffering
from vcpulab.advice.tuning.prices import PRICES
from vcpulab.advice.tuning.proposing import Proposals
from vcpulab.advice.tuning.racing import hopeless
from vcpulab.advice.tuning.simplifying import Simplifying
from vcpulab.advice.tuning.spaces import Space
from vcpulab.advice.tuning.trials import Tell, Trials, within
from vcpulab.advice.tuning.worth import Worth
from vcpulab.advice.verdicts import Proven
from vcpulab.errors import Interrupted
from vcpulab.extras import require
from vcpulab.results import cache
from vcpulab.results.addresses import Address, Slo
from vcpulab.results.run import Run

FORMAT = "vcpulab-tune/1"
BATCH = 8
"""Candidates raced together. The sampler learns after each batch."""
REPLICATIONS = 6
"""Replications of a candidate that is not dropped."""
PATIENCE = 4
"""A search without a stated end ends when so many batches one after the other have found nothing better."""
_FINALISTS = 6
SAFER = 0.5
"""A setting keeps SLOs by far if it is at least this part as far inside them as the one that is furthest. Assumed."""
_EVERY_MAX = 4096
"""Where there are no more settings, they are tried in order."""


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
        """Takes the parameters that may be changed and what is wanted.

        Args:
            space: the parameters that may be changed.
            goals: what is wanted; all count alike.
            slos: what must hold of the means over replications.
            seed: of the search and of its replications.
            replications: of each candidate that is not dropped.
            folder: where what was measured is kept, so that a search can go on; `None`: in memory only.
            jobs: replications at a time; 0: one for each processor. It never changes the result.
            drop: drop hopeless candidates before they have all replications.
            by_hand: the parameters were chosen by hand, and are tried whether the host needs it or not.
            prices: of changing a parameter of each kind, %; see `prices`.

        Raises:
            RequestError: another search is kept in the folder.
        """
        self.space = space
        self.seed = seed
        self.replications = replications
        self.jobs = jobs
        self.worth = Worth(space, goals, slos, prices)
        self.asked = _asked(goals, slos, [one for row in self.worth.bystanders for one in row])
        self.rejected: list[Candidate] = []
        """What must not be advised, see `without`."""
        self._drop = drop
        self._by_hand = by_hand
        self._trials = Trials(space, self.asked, seed=seed, jobs=jobs)
        self._clock = Clock(None)
        if folder is not None:
            self.keep(folder)

    @property
    def goals(self) -> list[Goal]:
        """What is wanted."""
        return self.worth.goals

    @property
    def slos(self) -> list[Slo]:
        """What must hold."""
        return self.worth.slos

    @property
    def present(self) -> Candidate:
        """The present setting."""
        return self._trials.present

    @property
    def runs(self) -> int:
        """Replications that were needed so far."""
        return self._trials.runs

    @property
    def note(self) -> str | None:
        """What is to be told of the measurements that were there."""
        return self._trials.ran.note

    def keep(self, folder: Path) -> None:
        """Keeps what is measured in a folder, and takes what is there already.

        Raises:
            RequestError: another search is kept in it.
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
        progress: Callable[[float], bool | None] | None = None,
    ) -> Found:
        """Searches until so many candidates were tried, or so much time was spent, or nothing is left to try.

        Args:
            trials: candidates, the present setting among them; one that comes up again does not count.
            seconds: time, that of earlier parts of the same search included; looked at after each batch.
            patient: go on where `PATIENCE` batches have found nothing better?
            progress: called now and then with the fraction done; `False` cancels.

        Raises:
            Interrupted: it was cancelled, with the best so far; what is done is kept.
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
                raise Interrupted(self._known(best, self._trials.tried, self.runs)) from None

    def without(
        self, found: Found, rejected: Sequence[Candidate], progress: Callable[[float], bool | None] | None = None
    ) -> Found:
        """The same search, had some settings not been tried: its best is the next best, or the present setting.

        Raises:
            EngineError: a run failed.
        """
        tell = progress or (lambda _: True)
        self.rejected = [*rejected]
        return self._with_best(found, self._mildest(self.present, tell), tell)

    def safer(
        self, found: Found, rejected: Sequence[Candidate], progress: Callable[[float], bool | None] | None = None
    ) -> Found:
        """The same search, where its best is too near to an SLO: the mildest of those that keep the SLOs by far.

        Raises:
            EngineError: a run failed.
        """
        left = [
            candidate for candidate in self._full() if candidate not in rejected and self.worth.slack(candidate) > 0
        ]
        far = SAFER * max(map(self.worth.slack, left), default=0.0)
        inside = [candidate for candidate in left if self.worth.slack(candidate) >= far]
        if not inside:
            return self.without(found, rejected, progress)
        self.rejected = [*rejected]
        best = min(inside, key=self.worth.cost)
        self._trials.until([best], len(self.present.rows), progress or (lambda _: True))
        return self._with_best(found, best, progress or (lambda _: True))

    def present_run(self) -> Run:
        """The present setting's first replication, whole: others are set against it."""
        return self._trials.present_run()

    def complete(self, candidates: Sequence[Candidate], tell: Tell) -> None:
        """Gives candidates that were given up the replications that they lack."""
        self._trials.until(candidates, self.replications, tell)

    def name(self) -> str:
        """A short name that only this search has."""
        return name_of(self._identity())

    # ---- the search ----

    def _search(self, optuna: Any, trials: int | None, seconds: float | None, patient: bool, progress: Tell) -> Found:
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
            left = self._unfelt(best)
        found = replace(
            self._known(present, searched, runs),
            importance=proposals.importance(present if left or proof else best),
            exhausted=exhausted and not (left or proof),
            left=left,
            proof=proof,
        )
        return self._with_best(found, present if left or proof else best, tell)

    def _first(self, tell: Tell) -> Candidate:
        """The present setting, which the others are set against."""
        present = self._trials.candidate(self.space.present)
        self._trials.tried.append(present)
        self._trials.until([present], self.replications, tell)
        self.worth.present = present
        # What nobody has a value of under the present setting cannot be gained on.
        known = {name for row in present.rows for name, value in row.items() if value is not None}
        kept = [
            replace(g, addresses=tuple(a for a in g.addresses if a.name in known) or g.addresses) for g in self.goals
        ]
        self.worth.goals = [g for g in kept if len(kept) == 1 or any(a.name in known for a in g.addresses)] or kept
        return present

    def _look(self) -> tuple[str, Proven | None, list[dict[str, int]]]:
        """Looks at the present setting: why it is left as it is, the proof that nothing helps, what to try first."""
        own = leaving.concerned(self.goals)
        run = self._trials.present_run()
        missed = [slo.address.domain for slo in self.slos if excess(slo, self.present.rows) > 0]
        felt = {
            goal.addresses[0].name: value
            for goal in self.goals
            if own and (value := felt_ms(run, goal.addresses[0])) is not None
        }
        left = "" if self._by_hand else leaving.good_enough(self.goals, self.slos, self.present.rows, felt)
        if left:
            return left, None, []
        if not own:
            hurt = [name for name in dict.fromkeys(missed) if name] or suffering(run, self.goals)
            return "", None, leads(self.space, run, hurt, bottleneck(stations(run, hurt)))
        self.worth.goals = [leaving.bounded(goal, self.slos, felt, self.present.rows) for goal in self.goals]
        found = stations(run, own)
        proof = None
        if not self._by_hand:
            scenario = self.space.scenario.with_run(replications=self.replications)
            proof = leaving.out_of_reach(self.goals, found, scenario, self.present.rows, jobs=self.jobs)
        hurt = [name for name in dict.fromkeys([*own, *missed]) if name]
        return "", proof, [] if proof else leads(self.space, run, hurt, bottleneck(found))

    def _race(self, batch: Sequence[Candidate], best: Candidate, tell: Tell) -> None:
        """Adds replications to candidates until they are dropped or have all.

        While replications are judged, the next ones of the best run already; those of whoever is dropped are called
        off. What is judged, and in which order, depends on none of this: the number of jobs decides nothing.
        """
        racing = [candidate for candidate in batch if candidate.dropped is None]
        with self._trials.stream() as running:
            for n in range(1, self.replications + 1):
                self._trials.begin(running, racing, n - 1)
                if n < self.replications:
                    ahead = sorted(racing, key=self.worth.order, reverse=True) if n > 1 else racing
                    self._trials.begin(running, ahead[: running.jobs], n)
                for candidate in racing:
                    self._trials.take(running, candidate, partial(within, tell, (n - 1) / self.replications))
                    if candidate.starves:
                        candidate.dropped = f"starves {', '.join(candidate.starves)}"
                there = [candidate for candidate in racing if candidate.dropped is None]
                if self._drop and n < self.replications:
                    full = self._full()
                    leader = max([best, *there], key=partial(self.worth.order, n=n))
                    for candidate in there:
                        candidate.dropped = hopeless(self.worth, candidate, leader, full, n)
                running.call_off((one.number, n) for one in racing if one.dropped is not None)
                racing = [candidate for candidate in racing if candidate.dropped is None]

    # ---- its end ----

    def _full(self) -> list[Candidate]:
        """Those that were run to the end."""
        return [one for one in self._trials.tried if len(one.rows) >= self.replications]

    def _final(self, tell: Tell) -> Candidate:
        """The best of the best, with twice the replications: who leads a large field is partly lucky.

        Of each scheduler the best is there, unless it was given up.
        """
        worth = self.worth
        ranked = sorted(self._full(), key=worth.order, reverse=True)
        cheap = sorted((one for one in ranked if worth.as_good(one, ranked[0])), key=worth.cost)[:_FINALISTS]
        policies = [one for one in worth.by_scheduler(self._trials.all).values() if one.dropped is None]
        finalists = {one.number: one for one in [self.present, *ranked[:_FINALISTS], *cheap, *policies]}
        self._trials.until(list(finalists.values()), 2 * self.replications, tell)
        return max(finalists.values(), key=worth.order)

    def _mildest(self, best: Candidate, tell: Tell) -> Candidate:
        finalists = [one for one in self._full() if len(one.rows) == len(self.present.rows)]
        return self._simplifying(tell).mildest(best, finalists)

    def _simplifying(self, tell: Tell) -> Simplifying:
        return Simplifying(self.worth, self._trials, tell, self.rejected)

    def _unfelt(self, best: Candidate) -> str:
        """Why the best is not worth it: nobody feels what it gains."""
        there, now = self.worth.standing(best), self.worth.standing(self.present)
        responses = [goal for goal in self.goals if goal.floor is not None]
        if best is self.present or there.excess > 0 or now.excess > 0 or len(responses) < len(self.goals):
            return ""
        if there.score >= leaving.LEAST_GAIN:
            return ""
        return f"the best that was found gains {100 * there.score:.1g} %, which nobody feels"

    def _known(self, best: Candidate, searched: Sequence[Candidate], runs: int) -> Found:
        """What is known of the candidates by now."""
        return Found(
            candidates=list(searched),
            best=best,
            policies=self.worth.by_scheduler(self._trials.all),
            costs={},
            standings={one.number: self.worth.standing(one) for one in self._trials.all if one.rows},
            importance={},
            runs=runs,
            runs_full=sum(self.replications for candidate in searched if candidate.rows),
            seconds=self._clock.spent(),
            exhausted=False,
        )

    def _with_best(self, found: Found, best: Candidate, tell: Tell) -> Found:
        costs = self._simplifying(tell).costs(best)
        standings = {one.number: self.worth.standing(one) for one in self._trials.all if one.rows}
        return replace(found, best=best, costs=costs, standings=standings)

    def _identity(self) -> dict[str, object]:
        """All that a search depends on, by what it is called."""
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


def _asked(goals: Sequence[Goal], slos: Sequence[Slo], others: Sequence[Address]) -> list[Address]:
    all_of_them = [address for goal in goals for address in goal.addresses] + [slo.address for slo in slos] + [*others]
    return list({address.name: address for address in all_of_them}.values())


def _version() -> str:
    """A hash of what measures and what searches: the engine, this code and all that it imports, and Optuna's."""
    return cache.key(cache.maker(__name__), require("optuna", "tune").__version__)
