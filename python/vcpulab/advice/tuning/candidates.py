"""Candidates of a search, their standing, and the result of a search."""

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
"""Prefix of the names of starving domains in the row of the first replication."""


@dataclass
class Candidate:
    """A setting that was tried."""

    number: int
    """Number of the candidate; 0: the present setting."""
    picks: Mapping[str, int]
    """Key of a parameter to the number of its option."""
    changes: Mapping[str, Any]
    """Changed fields of the scenario: path to value."""
    scenario: Scenario
    rows: list[Row] = field(default_factory=list)
    """Measured metrics, a row for each replication."""
    dropped: str | None = None
    """Reason why not all replications were run; `None`: all were, or may be yet."""

    @cached_property
    def scheduler(self) -> str:
        """Name of the candidate's scheduler."""
        return self.scenario.host.scheduler

    @cached_property
    def text(self) -> str:
        """The scenario without seed and number of replications, as TOML."""
        return self.scenario.with_run(seed=0, replications=1).to_toml()

    @property
    def starves(self) -> list[str]:
        """The domains that starve under this setting only; such a setting is never advised."""
        return [name.removeprefix(STARVES) for name in (self.rows[0] if self.rows else ()) if name.startswith(STARVES)]


@dataclass(frozen=True)
class Standing:
    """Score and SLOs of a candidate, compared with the present setting."""

    score: float
    gains: tuple[float, ...]
    """Gain of each goal."""
    excess: float
    """Sum of the relative distances beyond the SLOs; 0: all are kept."""

    @property
    def order(self) -> tuple[bool, float, float]:
        """Key for sorting, greater is better: first the SLOs, then the score."""
        return (self.excess <= 0, -self.excess, self.score)


@dataclass(frozen=True)
class Harm:
    """The loss of alike applications or clients under a setting."""

    size: float
    """The mean loss, on the scale of the score: 0.1 is about 10 %."""
    percent: float | None
    """The change of the metric, %; `None`: it was 0."""
    metric: str
    """Name of the metric."""
    things: tuple[str, ...]
    """Names of the applications or clients."""

    def __str__(self) -> str:
        change = "" if self.percent is None else f" {'+' if self.percent > 0 else ''}{number(self.percent)} %"
        return f"{self.metric} of {in_short(self.things)}{change}"


@dataclass(frozen=True)
class SearchResult:
    """The result of a search."""

    candidates: list[Candidate]
    best: Candidate
    """The best candidate, with every parameter changed back that does not matter."""
    standings: Mapping[int, Standing]
    policies: Mapping[str, Candidate]
    """Scheduler to its best candidate."""
    costs: Mapping[str, Interval]
    """Key of a parameter that the best setting changes to the loss of score if it alone is changed back."""
    importance: Mapping[str, float]
    """Key of a parameter of the best's scheduler to its importance for a good setting; empty after too few
    candidates."""
    runs: int
    """Replications that were needed."""
    runs_full: int
    """Replications if no candidate had been dropped."""
    seconds: float
    exhausted: bool
    """Was every setting of the space tried?"""
    left: str = ""
    """Reason why the host stays as it is; empty: no such reason."""
    proof: Proven | None = None
    """Proof that no setting helps; then no other setting was tried."""

    @property
    def tried(self) -> list[Candidate]:
        """The settings that were run, without the present one."""
        return [candidate for candidate in self.candidates if candidate.rows and candidate.changes]
