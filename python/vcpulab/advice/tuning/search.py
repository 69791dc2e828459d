"""The search: candidates are proposed, and raced against each other and the best so far.

Replication i of every candidate has the same random numbers (Law 2015, section 11.2), so candidates are compared pair
by pair. Replications are added one at a time to a batch of candidates, and a candidate is dropped as soon as it is
hopeless: significantly (5 %, Student's paired test) worse than the best so far, or significantly beyond an SLO. That
is racing (Maron and Moore 1994, "Hoeffding races"), with Student's interval in place of Hoeffding's.

What is proposed: half by Optuna's tree-structured Parzen estimator of the score and the SLOs, half neighbours of the
best. Of several goals the score is one view; the settings that none beats in every goal are kept as well.

What is searched, in which order, follows from the scenario, the seed and the number of candidates alone: batches have
one size, whatever the processors. A search that was interrupted is replayed with the replications that are on disk,
which takes no time, and goes on where it stopped, as if nothing had happened.
"""

import json
import math
import random
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcpulab.advice.capacity.occupancy import bottleneck, stations, with_servers
from vcpulab.advice.lateness import LATE_MS, felt_ms
from vcpulab.advice.starving import newly_starved
from vcpulab.advice.tuning import leaving
from vcpulab.advice.tuning.goals import Goal, Row, excess, lasts_s, score
from vcpulab.advice.tuning.leads import leads
from vcpulab.advice.tuning.parameters import Parameter, Space
from vcpulab.advice.tuning.prices import PRICES, price
from vcpulab.errors import Interrupted, RequestError
from vcpulab.extras import require
from vcpulab.results import cache
from vcpulab.results.addresses import Address, Slo
from vcpulab.results.run import Run, run_many
from vcpulab.results.statistics import Interval, number, paired
from vcpulab.scenario import settings
from vcpulab.scenario.names import in_short
from vcpulab.scenario.scenario import Scenario, split

if TYPE_CHECKING:
    import optuna

FORMAT = "vcpulab-tune/1"
BATCH = 8
"""Candidates raced together. The sampler learns after each batch."""
REPLICATIONS = 6
"""Replications of a candidate that is not dropped."""
PATIENCE = 4
"""A search without a stated end ends when so many batches one after the other have found nothing better."""
_SIGNIFICANT = 0.05
LEAST_HARM = 0.01
"""A smaller loss is none: about 1 %."""
_FAR_BEHIND = 0.5
"""Who has less than this part of the best score after two replications is given up, if the best gains ..."""
_CLEAR_GAIN = 0.2
"""... at least so much: successive halving, with what is kept for the front."""
_SAME_SCORE = 0.002
_PART_OF_SCORE = 0.1
"""A parameter is changed back if that costs less of the score, or less than this part of it if that is not significant;
another scheduler is taken only if it gains more by such a part."""
_FINALISTS = 6
_QUANTILE = 0.25
_TOP = 5
"""What matters is looked for in what sets the best quarter apart, if these are at least so many."""
_STARVES = "starves "
"""Before the name of a domain, among what the first replication measured."""
_BEYOND_ALL = 1e9
"""What starves somebody is further beyond the SLOs than anything else."""
_OF_OTHERS = 0.5
"""Of settings with the same price, that which leaves other domains alone: each parameter of theirs adds this, %."""
_AS_GOOD = 0.1
"""Settings that lack no more than this part of the best score are as good; the one with the least price is taken."""
_REPEATS_MAX = 64
"""So many candidates one after the other that were there already: there is nothing new to find."""


@dataclass
class Candidate:
    """A setting that was tried."""

    number: int
    """From 0, the present setting."""
    picks: Mapping[str, int]
    """Key of a parameter to the number of its option."""
    changes: Mapping[str, Any]
    """What it changes in the scenario."""
    scenario: Scenario
    rows: list[Row] = field(default_factory=list)
    """What its replications measured."""
    dropped: str | None = None
    """Why it was not run to the end, if so."""

    @cached_property
    def scheduler(self) -> str:
        """Its scheduler."""
        return str(self.scenario.to_dict()["host"]["scheduler"])

    @property
    def starves(self) -> list[str]:
        """The domains that starve under it, and do not under the present setting; it is never advised."""
        return [
            name.removeprefix(_STARVES) for name in (self.rows[0] if self.rows else ()) if name.startswith(_STARVES)
        ]


@dataclass(frozen=True)
class Standing:
    """What a candidate is worth, against the present setting."""

    score: float
    gains: tuple[float, ...]
    """One for each goal."""
    excess: float
    """How far it is beyond the SLOs, summed; 0: it keeps them."""

    @property
    def order(self) -> tuple[bool, float, float]:
        """Greater is better: first the SLOs, then the score."""
        return (self.excess <= 0, -self.excess, self.score)


@dataclass(frozen=True)
class Harm:
    """What some who are alike lose under a setting."""

    size: float
    """The mean loss, on the scale of the score: 0.1 is about 10 %."""
    percent: float | None
    """The change of the metric, %; `None`: it was 0."""
    metric: str
    """Which metric."""
    things: tuple[str, ...]
    """Of which applications or clients."""

    def __str__(self) -> str:
        change = "" if self.percent is None else f" {'+' if self.percent > 0 else ''}{number(self.percent)} %"
        return f"{self.metric} of {in_short(self.things)}{change}"


@dataclass(frozen=True)
class Found:
    """How a search ended."""

    candidates: list[Candidate]
    best: Candidate
    """The best, with every parameter changed back that does not matter."""
    standings: Mapping[int, Standing]
    policies: Mapping[str, Candidate]
    """Scheduler to the best that was tried under it."""
    costs: Mapping[str, Interval]
    """Key of a parameter that the best setting changes to what changing it back alone costs of the score."""
    importance: Mapping[str, float]
    """Key of a parameter of the best's scheduler to its importance for a good setting; nothing where too few were tried
    to tell."""
    runs: int
    """Replications that were needed."""
    runs_full: int
    """Replications if no candidate had been dropped."""
    seconds: float
    exhausted: bool
    """Was everything tried that there is?"""
    left: str = ""
    """Why the host is left as it is, whatever else was or could be tried."""


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
            prices: of changing a parameter of each kind, %; see `prices`.

        Raises:
            RequestError: another search is kept in the folder.
        """
        self.space = space
        self.goals = list(goals)
        self.slos = list(slos)
        self.seed = seed
        self.replications = replications
        self.jobs = jobs
        self._drop = drop
        self._prices = {**PRICES, **prices}
        self.others = leaving.others(space.scenario, self.goals)
        self.bystanders = leaving.bystanders(space.scenario, self.goals)
        self.asked = _asked(self.goals, self.slos, [one for row in self.bystanders for one in row])
        self._ran = cache.RunCache(None)
        self._clock = _Clock(None)
        if folder is not None:
            self.keep(folder)
        self._by_key: dict[str, Candidate] = {}
        self._candidates: list[Candidate] = []
        self.runs = 0
        """Replications that were needed so far."""
        self._chance = random.Random(seed_of(seed, "neighbours", 0))
        self._turns: dict[str, list[Parameter]] = {}
        self._first_trials: list[Mapping[str, int]] = []
        self._present_runs: list[Run] = []
        self.rejected: list[Candidate] = []
        """What must not be advised, see `without`."""

    def keep(self, folder: Path) -> None:
        """Keeps what is measured in a folder, and takes what is there already.

        Raises:
            RequestError: another search is kept in it.
        """
        _claim(folder, self._identity())
        self._ran = cache.RunCache(folder / "runs.jsonl")
        self._clock = _Clock(folder / "batches.txt")

    def run(
        self,
        *,
        trials: int | None = None,
        seconds: float | None = None,
        patient: bool = True,
        progress: Callable[[float], bool] | None = None,
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
                best = max(self._full(), key=partial(self._order, None))
                raise Interrupted(self._known(best, self._candidates, self.runs)) from None

    def _search(
        self,
        optuna: Any,
        trials: int | None,
        seconds: float | None,
        patient: bool,
        progress: Callable[[float], bool],
    ) -> Found:
        most = min(trials or math.inf, self.space.size)

        def tell(part: float = 0.0) -> bool:
            of_trials = (len(self._candidates) - BATCH * (1 - part)) / most if trials is not None else 0.0
            of_time = self._clock.spent() / seconds if seconds is not None else 0.0
            return progress(min(max(of_trials, of_time, 0.0), 1.0))

        sampler = optuna.samplers.TPESampler(seed=self.seed % 2**32)
        study = optuna.create_study(sampler=sampler, direction="maximize")
        present = self._first(tell)
        left = self._look()
        self._first_trials = self._in_any_case(int(min(most, 4096)))
        best, exhausted = present, self.space.size == 1 or bool(left)
        in_vain = 0
        while not exhausted and len(self._candidates) < most and (seconds is None or self._clock.spent() < seconds):
            batch, again, exhausted = self._ask(study, int(min(BATCH, most - len(self._candidates))), best)
            self._clock.start()
            self._race([candidate for _, candidate in batch], best, tell)
            self._clock.stop()
            for trial, candidate in [*batch, *again]:
                self._tell(study, trial, candidate)
            before, best = best, max([best, *self._full()], key=partial(self._order, None))
            in_vain = 0 if best is not before or self._first_trials else in_vain + 1
            if not patient and in_vain >= PATIENCE:
                break
            exhausted = exhausted or len(self._candidates) >= self.space.size
        progress(1.0)
        searched, runs = list(self._candidates), self.runs
        if not left:
            best = self._simplified(self._final(tell), tell)
            left = self._unfelt(best)
        found = replace(
            self._known(present, searched, runs),
            importance=self._importance(optuna, study, present if left else best),
            exhausted=exhausted and not left,
            left=left,
        )
        return self._with_best(found, present if left else best, tell)

    def _known(self, best: Candidate, searched: Sequence[Candidate], runs: int) -> Found:
        """What is known of the candidates by now."""
        return Found(
            candidates=list(searched),
            best=best,
            policies=self._policies(),
            costs={},
            standings={one.number: self.standing(one) for one in self._by_key.values() if one.rows},
            importance={},
            runs=runs,
            runs_full=sum(self.replications for candidate in searched if candidate.rows),
            seconds=self._clock.spent(),
            exhausted=False,
        )

    def without(
        self, found: Found, rejected: Sequence[Candidate], progress: Callable[[float], bool] | None = None
    ) -> Found:
        """The same search, had some settings not been tried: its best is the next best, or the present setting.

        Raises:
            EngineError: a run failed.
        """
        tell = progress or (lambda _: True)
        self.rejected = [*rejected]
        return self._with_best(found, self._simplified(self.present, tell), tell)

    def _with_best(self, found: Found, best: Candidate, tell: Callable[[float], bool]) -> Found:
        costs = self._costs(best, tell)
        standings = {one.number: self.standing(one) for one in self._by_key.values() if one.rows}
        return replace(found, best=best, costs=costs, standings=standings)

    # ---- candidates ----

    def _first(self, tell: Callable[[float], bool]) -> Candidate:
        """The present setting, which the others are set against."""
        present = self._candidate(self.space.present)
        self._candidates.append(present)
        for replication in range(self.replications):
            self._measure([present], replication, tell)
        # What nobody has a value of under the present setting cannot be gained on.
        known = {name for row in present.rows for name, value in row.items() if value is not None}
        kept = [
            replace(g, addresses=tuple(a for a in g.addresses if a.name in known) or g.addresses) for g in self.goals
        ]
        self.goals = [g for g in kept if len(kept) == 1 or any(a.name in known for a in g.addresses)] or kept
        return present

    def _look(self) -> str:
        """Looks at the present setting: what holds the goals back is tried first. Why it is left as it is, if it is."""
        own = leaving.concerned(self.goals)
        run = self.present_run(waits=True)
        felt = {
            goal.addresses[0].name: value
            for goal in self.goals
            if own and (value := felt_ms(run, goal.addresses[0])) is not None
        }
        left = leaving.good_enough(self.goals, self.slos, self.present.rows, felt)
        if left or not own:
            return left
        self.goals = [
            replace(goal, floor=min([felt[name], *(slo.bound for slo in leaving.on_the_goal(goal, self.slos))]) / 2)
            if (name := goal.addresses[0].name) in felt
            else goal
            for goal in self.goals
        ]
        found = stations(run, own)
        left = leaving.out_of_reach(self.goals, found, run)
        self._first_trials = [] if left else list(leads(self.space, run, own, bottleneck(found)))
        return left

    def present_run(self, *, waits: bool = False) -> Run:
        """The present setting's first replication, whole: others are set against it."""
        if not self._present_runs or waits:
            scenario = self.space.scenario.with_run(seed=seed_of(self.seed, "search", 0), replications=1)
            self._present_runs = run_many([scenario], jobs=self.jobs, waits=waits)
        return self._present_runs[0]

    def _unfelt(self, best: Candidate) -> str:
        """Why the best is not worth it: nobody feels what it gains."""
        there, now = self.standing(best), self.standing(self.present)
        responses = [goal for goal in self.goals if goal.floor is not None]
        if best is self.present or now.excess > there.excess or len(responses) < len(self.goals):
            return ""
        if there.score >= leaving.LEAST_GAIN:
            return ""
        return f"the best that was found gains {100 * there.score:.1g} %, which nobody feels"

    def _in_any_case(self, most: int) -> list[Mapping[str, int]]:
        first = [self.space.present, *self._first_trials, *self.space.each_scheduler()]
        if self.space.size <= most:
            first += list(self.space.every())
        return list({json.dumps(picks, sort_keys=True): picks for picks in first}.values())

    def _ask(
        self, study: "optuna.Study", wanted: int, best: Candidate
    ) -> tuple[list[tuple["optuna.Trial", Candidate]], list[tuple["optuna.Trial", Candidate]], bool]:
        """New candidates, those that were there already, and whether there was nothing new to be found."""
        new: list[tuple[optuna.Trial, Candidate]] = []
        again: list[tuple[optuna.Trial, Candidate]] = []
        repeats = 0
        while len(new) < wanted and repeats < _REPEATS_MAX:
            # Every other one is a neighbour of what is good: where there are many parameters, most matter one by one.
            if self._first_trials:
                study.enqueue_trial(dict(self._first_trials.pop(0)))
            elif len(new) % 2:
                study.enqueue_trial(self._neighbour(best))
            trial = study.ask()
            candidate = self._candidate(self.space.picks(partial(_suggest, trial)))
            if candidate in self._candidates:
                again.append((trial, candidate))
                repeats += 1
                # Told at once, so that the sampler looks elsewhere.
                if candidate.rows and not any(candidate is fresh for _, fresh in new):
                    self._tell(study, *again.pop())
                continue
            repeats = 0
            self._candidates.append(candidate)
            new.append((trial, candidate))
        return new, again, repeats >= _REPEATS_MAX

    def _neighbour(self, best: Candidate) -> dict[str, int]:
        """The best setting, or the best under some scheduler, with one or two parameters changed."""
        candidate = self._chance.choice([best, self._chance.choice([*self._policies().values()])])
        parameters = [k for k in self.space.active(candidate.scheduler) if k.name != "host.scheduler"]
        # Each has its turn, so that none is forgotten.
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
            others = [
                index
                for index in range(len(parameter.options))
                if index != candidate.picks.get(parameter.key, parameter.now)
            ]
            picks[parameter.key] = self._chance.choice(others)
        return picks

    def _candidate(self, picks: Mapping[str, int]) -> Candidate:
        """The setting; the same object whenever it is the same scenario."""
        changes = self.space.changes(picks)
        key = json.dumps(changes, sort_keys=True, default=str)
        if key not in self._by_key:
            try:
                scenario = settings.change(self.space.scenario, changes).scenario
                impossible = None
            except RequestError as error:
                scenario, impossible = self.space.scenario, f"cannot be set: {error}"
            number = len(self._by_key)
            self._by_key[key] = Candidate(number, dict(picks), changes, scenario, dropped=impossible)
        return self._by_key[key]

    def _tell(self, study: "optuna.Study", trial: "optuna.Trial", candidate: Candidate) -> None:
        import optuna

        if not candidate.rows or candidate.starves:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
            return
        standing = self.standing(candidate)
        for index, slo in enumerate(self.slos):
            trial.set_constraint(f"{index}: {slo}", excess(slo, candidate.rows))
        trial.set_user_attr("candidate", candidate.number)
        study.tell(trial, standing.score)

    # ---- racing ----

    def _race(self, batch: Sequence[Candidate], best: Candidate, tell: Callable[[float], bool]) -> None:
        racing = [candidate for candidate in batch if candidate.dropped is None]
        for replication in range(self.replications):
            self._measure(racing, replication, partial(self._within, tell, replication))
            for candidate in racing:
                if candidate.starves:
                    candidate.dropped = f"starves {', '.join(candidate.starves)}"
            racing = [candidate for candidate in racing if candidate.dropped is None]
            if not self._drop or replication + 1 == self.replications:
                continue
            n = replication + 1
            leader = max([best, *racing], key=partial(self._order, n))
            for candidate in racing:
                candidate.dropped = self._hopeless(candidate, leader, n)
            racing = [candidate for candidate in racing if candidate.dropped is None]

    def _order(self, n: int | None, candidate: Candidate) -> tuple[bool, float, float]:
        return self.standing(candidate, n).order

    def _within(self, tell: Callable[[float], bool], replication: int, part: float) -> bool:
        return tell((replication + part) / self.replications)

    def _hopeless(self, candidate: Candidate, leader: Candidate, n: int) -> str | None:
        """Why a candidate can be dropped after n replications: it will hardly be advised."""
        if n < 2:
            return None
        if self.standing(leader, n).excess > 0:
            # Nothing keeps the SLOs yet: the nearer the better.
            beyond = [[_beyond(self.slos, row) for row in which.rows[:n]] for which in (candidate, leader)]
            return "further beyond the SLOs than the best" if _greater(beyond[0], beyond[1]) else None
        for slo in self.slos:
            if _greater([excess(slo, [row]) for row in candidate.rows], [0.0] * n):
                return f"beyond {slo}"
        keeping = [one for one in (leader, *self._full()) if self.standing(one).excess <= 0]
        worth = max(keeping, key=self._net, default=candidate)
        return self._behind(candidate, worth, n) if worth is not candidate else None

    def _behind(self, candidate: Candidate, worth: Candidate, n: int) -> str | None:
        """Why it will hardly become worth more than what is worth most so far."""
        best, mine = (self._nets(which)[:n] for which in (worth, candidate))
        if _CLEAR_GAIN * n < math.fsum(best) and math.fsum(mine) < _FAR_BEHIND * math.fsum(best):
            return "far behind the best"
        milder = self.price(candidate) < self.price(worth)
        # What is as good and milder is taken.
        part = 1 - _AS_GOOD if milder and math.fsum(best) > 0 else 1.0
        if not _greater([part * one for one in best], mine):
            return None
        better = math.fsum(self.scores(candidate)) > math.fsum(self.scores(worth)[:n])
        return "not worth its price" if better else "worse than the best"

    def _measure(self, candidates: Sequence[Candidate], replication: int, tell: Callable[[float], bool]) -> None:
        """Runs one replication of some candidates, those that are not on disk."""
        seed = seed_of(self.seed, "search", replication)
        scenarios = [candidate.scenario.with_run(seed=seed, replications=1) for candidate in candidates]
        keys = [cache.key(cache.maker(__name__), scenario.to_toml()) for scenario in scenarios]
        missing = [index for index, known in enumerate(keys) if self._ran.get(known) is None]
        ran = run_many([scenarios[index] for index in missing], jobs=self.jobs, waits=False, progress=tell)
        for index, run in zip(missing, ran, strict=True):
            measured = {name: _defined(found[0]) for name, found in run.values(self.asked).items()}
            if replication == 0 and scenarios[index] != self.present_run().scenario:
                measured |= {f"{_STARVES}{domain}": 1.0 for domain in newly_starved(self.present_run(), run)}
            self._ran.add(keys[index], str(candidates[index].number), replication, measured)  # type: ignore[arg-type]
        for candidate, known in zip(candidates, keys, strict=True):
            candidate.rows.append(self._ran.get(known) or {})
        self.runs += len(candidates)

    # ---- what they are worth ----

    @property
    def note(self) -> str | None:
        """What is to be told of the measurements that were there."""
        return self._ran.note

    @property
    def present(self) -> Candidate:
        """The present setting."""
        return self._candidates[0]

    def scores(self, candidate: Candidate) -> list[float]:
        """The score of each replication against the same one of the present setting."""
        return [
            score(self.goals, [goal.gain(new, old) for goal in self.goals])
            for new, old in zip(candidate.rows, self.present.rows, strict=False)
        ]

    def standing(self, candidate: Candidate, n: int | None = None) -> Standing:
        """What a candidate is worth, from its first n replications, or from all that it has."""
        rows = candidate.rows[:n]
        gains = tuple(
            math.fsum(goal.gain(new, old) for new, old in zip(rows, self.present.rows, strict=False)) / len(rows)
            for goal in self.goals
        )
        beyond = math.fsum(max(excess(slo, rows), 0.0) for slo in self.slos) + _BEYOND_ALL * bool(candidate.starves)
        return Standing(score(self.goals, gains), gains, beyond)

    def harm(self, candidate: Candidate) -> Harm | None:
        """Who loses most under a candidate, of those whom the goals are not about; `None`: nobody significantly."""
        found = [self._loss(candidate, row) for row in self.bystanders]
        return max((one for one in found if one is not None), key=lambda harm: harm.size, default=None)

    def _loss(self, candidate: Candidate, row: Sequence[Address]) -> Harm | None:
        """The mean loss of alike ones, on the scale of the score; of response times what is felt."""
        goal = self._of_owner(row)
        pairs = list(zip(candidate.rows, self.present.rows, strict=False))
        losses = [-goal.gain(new, old) for new, old in pairs]
        size = math.fsum(losses) / len(losses)
        if size < LEAST_HARM or not _greater(losses, [0.0] * len(losses)):
            return None
        sums = [math.fsum(one[a.name] or 0.0 for one in side for a in row) for side in zip(*pairs, strict=True)]
        percent = 100 * (sums[0] / sums[1] - 1) if sums[1] else None
        return Harm(size, percent, row[0].metric.name, tuple(address.thing for address in row))

    def _of_owner(self, row: Sequence[Address]) -> Goal:
        """What the owners of alike things want of one metric; of response times what is felt."""
        first = row[0]
        floor = LATE_MS if first.metric.name == "response_p99" else None
        return Goal(first.name, tuple(row), first.better == "higher", floor=floor, seconds=lasts_s(self.space.scenario))

    def complete(self, candidates: Sequence[Candidate], tell: Callable[[float], bool]) -> None:
        """Gives candidates that were given up the replications that they lack."""
        for replication in range(self.replications):
            self._measure([one for one in candidates if len(one.rows) == replication], replication, tell)

    def _full(self) -> list[Candidate]:
        return [candidate for candidate in self._candidates if len(candidate.rows) >= self.replications]

    def _final(self, tell: Callable[[float], bool]) -> Candidate:
        """The best of the best, with twice the replications: who leads a large field is partly lucky.

        Of each scheduler the best is there, unless it was given up.
        """
        ranked = sorted(self._full(), key=partial(self._order, None), reverse=True)
        cheap = sorted(filter(partial(self._good, ranked[0]), ranked), key=self._cost)[:_FINALISTS]
        policies = [one for one in self._policies().values() if one.dropped is None]
        finalists = {one.number: one for one in [self.present, *ranked[:_FINALISTS], *cheap, *policies]}
        for replication in range(2 * self.replications):
            self._measure([one for one in finalists.values() if len(one.rows) == replication], replication, tell)
        return max(finalists.values(), key=partial(self._order, None))

    def price(self, candidate: Candidate) -> float:
        """What it costs to set, %."""
        another = candidate.scheduler != self.present.scheduler
        own = self._own_and_servers()
        strangers = [p for p in self.changed(candidate) if split(p.name)[0] == "domain" and not own & set(_domains(p))]
        changed = [(parameter, candidate.picks[parameter.key]) for parameter in self.changed(candidate)]
        of_others = _OF_OTHERS * len(strangers) if own else 0.0
        return price(changed, self._prices) + another * self._prices["scheduler"] + of_others

    def _own_and_servers(self) -> set[str]:
        """The domains that the goals are about and those that serve them; nobody where that is no one in particular."""
        return set(with_servers(self.space.document["domain"], leaving.concerned(self.goals)))

    def _cost(self, candidate: Candidate) -> tuple[float, float]:
        """Less is better: of those with one price the best."""
        return (round(self.price(candidate), 6), -self.standing(candidate).score)

    def _good(self, best: Candidate, candidate: Candidate) -> bool:
        """Is it as good as the best? Where the SLOs say how good is good enough: whatever keeps them."""
        there, mine = self.standing(best), self.standing(candidate)
        if mine.excess > there.excess or there.excess > 0:
            return candidate is best
        top = self._net(best)
        return self._stated() or self._net(candidate) >= top - _AS_GOOD * abs(top)

    def _stated(self) -> bool:
        """Do SLOs say how good is good enough, of each goal?"""
        each = all(leaving.on_the_goal(goal, self.slos) for goal in self.goals)
        return each and bool(leaving.concerned(self.goals))

    def _net(self, candidate: Candidate) -> float:
        """The mean of `_nets`."""
        nets = self._nets(candidate)
        return math.fsum(nets) / len(nets)

    def _nets(self, candidate: Candidate) -> list[float]:
        """The score of each replication, less the price and what other services lose: to take from those is no gain."""
        spent = self.price(candidate) / 100
        both = zip(self.scores(candidate), candidate.rows, self.present.rows, strict=False)
        return [one - spent * max(1.0, one) - self._taken(row, was) for one, row, was in both]

    def _taken(self, row: Row, was: Row) -> float:
        """The mean loss of other services' response times, on the scale of the score, of those that people feel."""
        lost = [max(-self._of_owner([address]).gain(row, was), 0.0) for address in self.others]
        return math.fsum(lost) / len(lost) if lost else 0.0

    def _simplified(self, best: Candidate, tell: Callable[[float], bool]) -> Candidate:
        """The mildest of those that are as good as the best, with parameters changed back that do not matter."""
        finalists = [
            one for one in self._full() if len(one.rows) == len(self.present.rows) and one not in self.rejected
        ]
        keeping = [one for one in finalists if self.standing(one).excess <= self.standing(best).excess]
        best = max([best, *keeping], key=self._net)
        best = self._stepped(min(filter(partial(self._good, best), [best, *finalists]), key=self._cost), finalists)
        before = None
        # Changing one parameter back may take away what another was good for.
        while best is not before:
            before = best
            for parameter in reversed(self.changed(best)):
                simpler = self._back(best, parameter, tell)
                if simpler in self.rejected:
                    continue
                if simpler is not None and (self._as_good(simpler, best) or self._as_cheap(simpler, best)):
                    best = simpler
        there = self.standing(best)
        # A setting that gains next to nothing need not change anything.
        return self.present if self.standing(self.present).excess <= 0 and there.score < _SAME_SCORE else best

    def _stepped(self, mild: Candidate, finalists: Sequence[Candidate]) -> Candidate:
        """The same parameters, at the values that are worth most: the tolerance saves some, not steps."""
        keys = {one.key for one in self.changed(mild)}
        alike = [
            one
            for one in finalists
            if {p.key for p in self.changed(one)} == keys
            and one.scheduler == mild.scheduler
            and self.standing(one).excess <= 0
        ]
        return mild if self._stated() else max([mild, *alike], key=self._net)

    def _as_good(self, simpler: Candidate, best: Candidate) -> bool:
        there, back = self.standing(best), self.standing(simpler)
        lost = there.score - back.score
        alike = lost < _SAME_SCORE or (
            lost < _PART_OF_SCORE * there.score and not _greater(self.scores(best), self.scores(simpler))
        )
        return back.excess <= there.excess and alike and (there.excess > 0 or back.score > -_SAME_SCORE)

    def _as_cheap(self, simpler: Candidate, best: Candidate) -> bool:
        """Is what is lost by changing something back less than its price?"""
        there, back = self.standing(best), self.standing(simpler)
        return back.excess <= there.excess and there.excess <= 0 < there.score and self._net(simpler) > self._net(best)

    def _costs(self, best: Candidate, tell: Callable[[float], bool]) -> dict[str, Interval]:
        """What changing back each parameter costs."""
        found = {}
        for parameter in self.changed(best):
            back = self._back(best, parameter, tell)
            if back is not None and (cost := paired(self.scores(best), self.scores(back))) is not None:
                found[parameter.key] = cost.interval
        return found

    def changed(self, candidate: Candidate) -> list[Parameter]:
        """The parameters that are not where they are now, without the choice of a scheduler."""
        return [
            parameter
            for parameter in self.space.parameters
            if candidate.picks.get(parameter.key, parameter.now) != parameter.now and parameter.name != "host.scheduler"
        ]

    def _back(self, candidate: Candidate, parameter: Parameter, tell: Callable[[float], bool]) -> Candidate | None:
        """The candidate with one parameter changed back, run to the end; `None`: impossible, or the same setting."""
        picks = {**candidate.picks, parameter.key: parameter.now}
        back = self._candidate(picks)
        if back is candidate:
            # The parameter had no effect beside the others.
            candidate.picks = picks
            return None
        if back.scenario is self.space.scenario:
            return None
        while len(back.rows) < len(self.present.rows):
            self._measure([back], len(back.rows), tell)
        # It may have been reached by other picks, of parameters that have no effect beside each other.
        back.picks, back.dropped = picks, None
        return back

    def _policies(self) -> dict[str, Candidate]:
        best: dict[str, Candidate] = {}
        for candidate in self._by_key.values():
            name = candidate.scheduler
            if (
                candidate.rows
                and not candidate.starves
                and (name not in best or self.standing(candidate).order > self.standing(best[name]).order)
            ):
                best[name] = candidate
        return best

    def _importance(self, optuna: Any, study: "optuna.Study", best: Candidate) -> dict[str, float]:
        """Conditional PED-ANOVA (Watanabe, Bansal and Hutter 2023) of the score, under the best's scheduler."""
        choice = best.picks.get("host.scheduler")
        there = [
            trial
            for trial in study.get_trials(deepcopy=False)
            if trial.values is not None and trial.params.get("host.scheduler") == choice
        ]
        if len(there) < _TOP / _QUANTILE:
            return {}
        alike = optuna.create_study(direction="maximize")
        alike.add_trials(there)
        evaluator = optuna.importance.PedAnovaImportanceEvaluator(target_quantile=_QUANTILE)
        # The evaluator minimises, and says so.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            found: dict[str, float] = optuna.importance.get_param_importances(
                alike, evaluator=evaluator, target=lambda trial: -trial.value
            )
        return {name: share for name, share in found.items() if share > 0 and name != "host.scheduler"}

    # ---- on disk ----

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
            "prices": self._prices,
        }

    def name(self) -> str:
        """A short name that only this search has."""
        return name_of(self._identity())


class _Clock:
    """How long batches took, those of earlier parts of the same search too."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._known: list[float] = []
        if path is not None and path.exists():
            for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
                try:
                    self._known.append(float(line))
                except ValueError:
                    break
        self._done: list[float] = []
        self._since: float | None = None

    def start(self) -> None:
        self._since = time.monotonic()

    def stop(self) -> None:
        batch, now = len(self._done), self._running()
        self._since = None
        if batch < len(self._known):
            self._done.append(self._known[batch])
            return
        self._done.append(now)
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"{now:.6f}\n")

    def spent(self) -> float:
        """Seconds."""
        return math.fsum(self._done) + self._running()

    def _running(self) -> float:
        return 0.0 if self._since is None else time.monotonic() - self._since


def seed_of(seed: int, purpose: str, number: int) -> int:
    """A seed for a purpose: those of different purposes have nothing in common.

    Examples:
        >>> seed_of(1, "search", 0) != seed_of(1, "confirm", 0)
        True
    """
    digest = sha256(f"{seed} {purpose} {number}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 2


def name_of(identity: Mapping[str, object]) -> str:
    """A short name for all this."""
    return sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:12]


def _defined(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value


def _domains(parameter: Parameter) -> list[str]:
    return [split(path)[1] for path in parameter.paths or (parameter.name,)]


def _asked(goals: Sequence[Goal], slos: Sequence[Slo], others: Sequence[Address]) -> list[Address]:
    all_of_them = [address for goal in goals for address in goal.addresses] + [slo.address for slo in slos] + [*others]
    return list({address.name: address for address in all_of_them}.values())


def _suggest(trial: "optuna.Trial", parameter: Parameter) -> int:
    last = len(parameter.options) - 1
    if parameter.ordered:
        return trial.suggest_int(parameter.key, 0, last)
    return int(trial.suggest_categorical(parameter.key, list(range(last + 1))))


def _greater(first: Sequence[float], second: Sequence[float]) -> bool:
    """Is the first significantly greater, pair by pair?"""
    difference = paired(first, second)
    return (
        difference is not None
        and difference.p is not None
        and difference.p < _SIGNIFICANT
        and difference.interval.mean > 0
    )


def _beyond(slos: Sequence[Slo], row: Row) -> float:
    return math.fsum(max(excess(slo, [row]), 0.0) for slo in slos)


def _claim(folder: Path, identity: Mapping[str, object]) -> None:
    """Makes the folder this search's, or finds that it is."""
    mark = folder / "tune.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not mark.exists():
            if any(folder.iterdir()):
                reason = f"`{folder}` holds other files than a search's"
                raise RequestError(reason, field="folder", allowed="a new or empty directory")
            scratch = folder / ".tune.json.new"
            scratch.write_text(json.dumps(identity, indent=2) + "\n", encoding="utf-8")
            scratch.replace(mark)
            return
        there = json.loads(mark.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RequestError(f"`{folder}` cannot be used: {error}", field="folder") from None
    other = [name for name, value in identity.items() if not isinstance(there, dict) or there.get(name) != value]
    if other:
        made = "made by another version"
        named = {"format": made, "version": made, "parameters": "of other parameters", "goals": "of other goals"}
        why = {**named, "slos": "of other SLOs"}.get(other[0], f"of another {other[0]}")
        reason = f"the search in `{folder}` is {why}; its measurements do not count here"
        raise RequestError(reason, field="folder", hint="another directory, or delete this one")


def _version() -> str:
    """A hash of what measures and what searches: the engine, this code and all that it imports, and Optuna's."""
    return cache.key(cache.maker(__name__), require("optuna", "tune").__version__)
