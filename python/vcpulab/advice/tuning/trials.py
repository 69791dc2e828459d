"""The settings that are tried, and what is measured of them.

Replication i of every candidate has the same random numbers (Law 2015, section 11.2), so candidates are compared pair
by pair. What is on disk is not run again. Others run while some are judged: which ones does not matter to anybody who
takes them in an order of their own.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from hashlib import sha256

from vcpulab.advice.starving import newly_starved
from vcpulab.advice.tuning.candidates import STARVES, Candidate
from vcpulab.advice.tuning.spaces import Space
from vcpulab.errors import RequestError
from vcpulab.results import cache
from vcpulab.results.addresses import Address
from vcpulab.results.run import Run, run
from vcpulab.results.stream import Stream
from vcpulab.scenario import settings

Tell = Callable[[float], bool | None]
"""Told of the part that is done; `False` cancels."""
Running = Stream[tuple[int, int]]
"""Replications that run: number of a candidate, and the replication."""


class Trials:
    """The settings that were tried, each once, the present one first."""

    def __init__(self, space: Space, asked: Sequence[Address], *, seed: int, jobs: int) -> None:
        """Takes what may be set, and what is to be measured.

        Args:
            space: the parameters that may be changed.
            asked: the metrics of each replication.
            seed: of the search, whose replications have seeds of their own.
            jobs: replications at a time; 0: one for each processor.
        """
        self.space = space
        self.asked = asked
        self.seed = seed
        self.tried: list[Candidate] = []
        """Those that the search proposed, in order."""
        self.ran = cache.RunCache(None)
        """What was measured."""
        self.runs = 0
        """Replications that were needed so far."""
        self._jobs = jobs
        self._by_key: dict[str, Candidate] = {}
        self._present_run: Run | None = None

    @property
    def all(self) -> list[Candidate]:
        """Those too that were only reached by changing parameters back."""
        return list(self._by_key.values())

    @property
    def present(self) -> Candidate:
        """The present setting."""
        return self.tried[0]

    def candidate(self, picks: Mapping[str, int]) -> Candidate:
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

    def present_run(self) -> Run:
        """The present setting's first replication, whole: others are set against it."""
        if self._present_run is None:
            scenario = self.space.scenario.with_run(seed=seed_of(self.seed, "search", 0), replications=1)
            self._present_run = run(scenario, jobs=self._jobs)
        return self._present_run

    def stream(self) -> Running:
        """Where replications run while others are judged."""
        return Stream(jobs=self._jobs, waits=False)

    def begin(self, running: Running, candidates: Iterable[Candidate], replication: int) -> None:
        """Begins a replication of those candidates that lack it, unless it is on disk."""
        for one in candidates:
            lacks_it = len(one.rows) <= replication and (one.number, replication) not in running
            if lacks_it and self.ran.get(self._key(one, replication)) is None:
                seed = seed_of(self.seed, "search", replication)
                running.begin((one.number, replication), one.scenario.with_run(seed=seed, replications=1))

    def take(self, running: Running, candidate: Candidate, tell: Tell) -> None:
        """Takes in the next replication of a candidate, which was begun or is on disk."""
        replication = len(candidate.rows)
        key = self._key(candidate, replication)
        if self.ran.get(key) is None:
            run = running.take((candidate.number, replication), tell)
            measured = {name: _defined(found[0]) for name, found in run.values(self.asked).items()}
            if replication == 0 and candidate.scenario != self.space.scenario:
                measured |= {f"{STARVES}{domain}": 1.0 for domain in newly_starved(self.present_run(), run)}
            self.ran.add(key, str(candidate.number), replication, measured)  # type: ignore[arg-type]
        candidate.rows.append(self.ran.get(key) or {})
        self.runs += 1

    def until(self, candidates: Sequence[Candidate], replications: int, tell: Tell) -> None:
        """Gives candidates the replications that they lack."""
        with self.stream() as running:
            # All at once would be many copies of a large host.
            ahead = 1 + math.ceil(running.jobs / max(len(candidates), 1))
            for replication in range(replications):
                for later in range(replication, min(replication + ahead, replications)):
                    self.begin(running, candidates, later)
                for candidate in candidates:
                    if len(candidate.rows) == replication:
                        self.take(running, candidate, partial(within, tell, replication / replications))

    def _key(self, candidate: Candidate, replication: int) -> str:
        """What stands for all that a replication depends on."""
        return cache.key(cache.maker(__name__), candidate.text, str(seed_of(self.seed, "search", replication)))


def within(tell: Tell, done: float, _: float) -> bool | None:
    """Tells how much of several runs is done; how much of the present one does not matter."""
    return tell(done)


def seed_of(seed: int, purpose: str, number: int) -> int:
    """A seed for a purpose: those of different purposes have nothing in common.

    Examples:
        >>> seed_of(1, "search", 0) != seed_of(1, "confirm", 0)
        True
    """
    digest = sha256(f"{seed} {purpose} {number}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 2


def _defined(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value
