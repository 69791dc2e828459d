"""The tried settings and their measurements.

Replication i of every candidate has the same random numbers (Law 2015, section 11.2), so candidates are compared pair
by pair. Replications on disk are not run again. Replications run while others are judged; each is taken in a fixed
order, so the order in which they finish does not matter.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from hashlib import sha256

from vcpulab._work.progress import Progress, overall
from vcpulab.advice.starvation import newly_starved
from vcpulab.advice.tuning.candidates import STARVES, Candidate
from vcpulab.advice.tuning.spaces import Space
from vcpulab.errors import RequestError
from vcpulab.results import cache
from vcpulab.results.addresses import Address
from vcpulab.results.run import Run, run
from vcpulab.results.stream import Stream
from vcpulab.scenario import settings

Running = Stream[tuple[int, int]]
"""Running replications by number of the candidate and of the replication."""


class Trials:
    """The tried settings, each once, the present setting first."""

    def __init__(self, space: Space, metrics: Sequence[Address], *, seed: int, jobs: int) -> None:
        """Starts without trials.

        Args:
            space: the parameters to vary.
            metrics: the metrics to measure.
            seed: seed of the search, from which the replications' seeds are derived.
            jobs: replications at a time; 0: one for each processor.
        """
        self.space = space
        self.metrics = metrics
        self.seed = seed
        self.tried: list[Candidate] = []
        """The proposed candidates, in order."""
        self.ran = cache.RunCache(None)
        """The measured replications."""
        self.runs = 0
        """Number of replications that were needed so far."""
        self._jobs = jobs
        self._by_key: dict[str, Candidate] = {}
        self._present_run: Run | None = None

    @property
    def all(self) -> list[Candidate]:
        """All candidates, with those that were not proposed but made by changing parameters back."""
        return list(self._by_key.values())

    @property
    def present(self) -> Candidate:
        """The present setting."""
        return self.tried[0]

    def candidate(self, picks: Mapping[str, int]) -> Candidate:
        """The candidate of a setting; the same object for settings with the same changes."""
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
        """The first replication of the present setting with all its tables, for comparisons."""
        if self._present_run is None:
            scenario = self.space.scenario.with_run(seed=seed_of(self.seed, "search", 0), replications=1)
            self._present_run = run(scenario, jobs=self._jobs)
        return self._present_run

    def stream(self) -> Running:
        """A stream of replications that run while others are judged."""
        return Stream(jobs=self._jobs, waits=False)

    def begin(self, running: Running, candidates: Iterable[Candidate], replication: int) -> None:
        """Begins a replication of the candidates that lack it, unless it is on disk."""
        for candidate in candidates:
            lacks_it = len(candidate.rows) <= replication and (candidate.number, replication) not in running
            if lacks_it and self.ran.get(self._key(candidate, replication)) is None:
                seed = seed_of(self.seed, "search", replication)
                running.begin((candidate.number, replication), candidate.scenario.with_run(seed=seed, replications=1))

    def take(self, running: Running, candidate: Candidate, tell: Progress) -> None:
        """Waits for the next replication of a candidate, which was begun or is on disk, and adds it."""
        replication = len(candidate.rows)
        key = self._key(candidate, replication)
        if self.ran.get(key) is None:
            run = running.take((candidate.number, replication), tell)
            measured = {name: _defined(values[0]) for name, values in run.values(self.metrics).items()}
            if replication == 0 and candidate.scenario != self.space.scenario:
                measured |= {f"{STARVES}{domain}": 1.0 for domain in newly_starved(self.present_run(), run)}
            self.ran.add(key, str(candidate.number), replication, measured)  # type: ignore[arg-type]
        candidate.rows.append(self.ran.get(key) or {})
        self.runs += 1

    def until(self, candidates: Sequence[Candidate], replications: int, tell: Progress) -> None:
        """Runs the missing replications of candidates."""
        with self.stream() as running:
            # A limit on replications ahead bounds the memory, which a large host would exhaust.
            ahead = 1 + math.ceil(running.jobs / max(len(candidates), 1))
            for replication in range(replications):
                for later in range(replication, min(replication + ahead, replications)):
                    self.begin(running, candidates, later)
                for candidate in candidates:
                    if len(candidate.rows) == replication:
                        self.take(running, candidate, partial(overall, tell, replication / replications))

    def _key(self, candidate: Candidate, replication: int) -> str:
        """The cache key of everything that a replication depends on."""
        return cache.key(cache.maker(__name__), candidate.text, str(seed_of(self.seed, "search", replication)))


def seed_of(seed: int, purpose: str, number: int) -> int:
    """A seed for a purpose, independent of the seeds of other purposes.

    Examples:
        >>> seed_of(1, "search", 0) != seed_of(1, "confirm", 0)
        True
    """
    digest = sha256(f"{seed} {purpose} {number}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 2


def _defined(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value
