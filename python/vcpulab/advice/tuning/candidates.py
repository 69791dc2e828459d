"""What a search tries, what that is worth, and how a search ends."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from vcpulab.advice.tuning.goals import Row
from vcpulab.advice.verdicts import Proven
from vcpulab.results.statistics import Interval, number
from vcpulab.scenario.names import in_short
from vcpulab.scenario.scenario import Scenario

STARVES = "starves "
"""Before the name of a domain, among what the first replication measured."""


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

    @cached_property
    def text(self) -> str:
        """What its replications have in common."""
        return self.scenario.with_run(seed=0, replications=1).to_toml()

    @property
    def starves(self) -> list[str]:
        """The domains that starve under it, and do not under the present setting; it is never advised."""
        return [name.removeprefix(STARVES) for name in (self.rows[0] if self.rows else ()) if name.startswith(STARVES)]


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
    proof: Proven | None = None
    """Why no setting helps, where that is proven; then nothing else was tried."""

    @property
    def tried(self) -> list[Candidate]:
        """The settings that were run, without the present one."""
        return [one for one in self.candidates if one.rows and one.changes]
