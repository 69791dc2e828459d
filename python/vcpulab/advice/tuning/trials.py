"""The settings that are tried, and what is measured of them.

Replication i of every candidate has the same random numbers (Law 2015, section 11.2), so candidates are compared pair
by pair. What is on disk is not run again.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256

from vcpulab.advice.starving import newly_starved
from vcpulab.advice.tuning.candidates import STARVES, Candidate
from vcpulab.advice.tuning.parameters import Space
from vcpulab.errors import RequestError
from vcpulab.results import cache
from vcpulab.results.addresses import Address
from vcpulab.results.run import Run, run_many
from vcpulab.scenario import settings

Tell = Callable[[float], bool]
"""Told of the part that is done; `False` cancels."""


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
        self._present_runs: list[Run] = []

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

    def present_run(self, *, waits: bool = False) -> Run:
        """The present setting's first replication, whole: others are set against it."""
        if not self._present_runs or waits:
            scenario = self.space.scenario.with_run(seed=seed_of(self.seed, "search", 0), replications=1)
            self._present_runs = run_many([scenario], jobs=self._jobs, waits=waits)
        return self._present_runs[0]

    def measure(self, candidates: Sequence[Candidate], replication: int, tell: Tell) -> None:
        """Runs one replication of some candidates, those that are not on disk."""
        seed = seed_of(self.seed, "search", replication)
        scenarios = [candidate.scenario.with_run(seed=seed, replications=1) for candidate in candidates]
        keys = [cache.key(cache.maker(__name__), scenario.to_toml()) for scenario in scenarios]
        missing = [index for index, known in enumerate(keys) if self.ran.get(known) is None]
        ran = run_many([scenarios[index] for index in missing], jobs=self._jobs, waits=False, progress=tell)
        for index, run in zip(missing, ran, strict=True):
            measured = {name: _defined(found[0]) for name, found in run.values(self.asked).items()}
            if replication == 0 and scenarios[index] != self.present_run().scenario:
                measured |= {f"{STARVES}{domain}": 1.0 for domain in newly_starved(self.present_run(), run)}
            self.ran.add(keys[index], str(candidates[index].number), replication, measured)  # type: ignore[arg-type]
        for candidate, known in zip(candidates, keys, strict=True):
            candidate.rows.append(self.ran.get(known) or {})
        self.runs += len(candidates)

    def until(self, candidates: Sequence[Candidate], replications: int, tell: Tell) -> None:
        """Gives candidates the replications that they lack."""
        for replication in range(replications):
            self.measure([one for one in candidates if len(one.rows) == replication], replication, tell)


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
