"""What a study is made of: cases that run, cells that were published, claims to check, charts to redraw."""

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, NamedTuple

from vcpulab.results.figures import Interval
from vcpulab.scenario.scenario import Scenario
from vcpulab.studies.calibration import Calibration
from vcpulab.studies.results import Missing, Results
from vcpulab.studies.window import Window

if TYPE_CHECKING:
    import altair as alt

COLUMNS = (
    "study",
    "experiment",
    "scheduler",
    "generation",
    "config",
    "workload",
    "load",
    "metric",
    "unit",
    "value",
    "stat",
    "source",
    "note",
)


_NAME_MAX = 64
"""Characters that the name of a scenario may have."""


class Cell(NamedTuple):
    """One published number, or the key of one that is not public."""

    study: str
    experiment: str
    scheduler: str
    generation: str
    config: str
    workload: str
    load: str
    metric: str
    unit: str
    value: str
    """As printed; empty: not public."""
    stat: str
    source: str
    note: str

    @property
    def key(self) -> tuple[str, ...]:
        """What tells it from every other cell."""
        return (*self[:9], self.stat, self.source)

    @property
    def number(self) -> float | None:
        """Its value."""
        return float(self.value) if self.value else None


Trial = Callable[[Scenario], Window]
"""Runs a scenario once, and gives its window."""
Prepare = Callable[[Scenario, Trial], Scenario]
"""From the scenario of a replication, and trials, the scenario that is measured."""


@dataclass(frozen=True)
class Case:
    """A scenario that a study runs, and what is measured in it."""

    experiment: str
    """The experiment it belongs to."""
    name: str
    """What tells it from the others of its experiment, such as `bvt C=50 1:1`."""
    template: str
    """The scenario file in the study's folder from which it is made."""
    changes: Mapping[str, object]
    """What is different in it, as `Scenario.change` takes it; calibrated constants come before."""
    measure: Callable[[Window], Mapping[str, float]]
    """Figure to value, for one replication; named as the published metrics where there is one."""
    main: str | None = None
    """The application whose completions tell when the warm-up is over; `None`: nothing is cut off."""
    precise: tuple[str, ...] = ()
    """Figures whose intervals decide how many replications there are."""
    fast: Mapping[str, object] = field(default_factory=dict)
    """What is different in a fast run, such as its duration."""
    prepare: Prepare | None = None
    """Sets what its authors found by trial before they measured, such as a load; in each replication anew."""

    @property
    def key(self) -> str:
        """What tells it from every other case of the study."""
        return f"{self.experiment}: {self.name}"


class Outcome(StrEnum):
    """What came of a claim."""

    HOLDS = "holds"
    FAILS = "fails"
    UNTESTABLE = "cannot be tested"


class Verdict(NamedTuple):
    """What came of a claim, and why."""

    outcome: Outcome
    figures: str
    """The figures that decide, in words."""
    p: float | None = None
    """Probability that chance alone would give them; `None`: not a statistical question."""


@dataclass(frozen=True)
class Claim:
    """A statement of the authors that can be checked."""

    id: str
    """Its number in the study's notes."""
    text: str
    """What is claimed, in our words."""
    standing: str
    """How it stands in the paper: whether the authors' own figures agree with it."""
    check: Callable[[Results], Verdict]
    contradicted: bool = False
    """Do the authors' own figures contradict it?"""
    undecided: bool = False
    """Do the authors' own figures leave it open: within their noise, or not measured?"""

    @property
    def in_paper(self) -> str:
        """How it stands in the paper, in a sentence."""
        if self.contradicted:
            return f"{self.standing} (the authors' own figures contradict it)"
        if self.undecided:
            return f"{self.standing} (the authors' own figures do not tell)"
        return self.standing

    def verdict(self, results: Results) -> Verdict:
        """What comes of it with these results."""
        try:
            return self.check(results)
        except Missing as missing:
            return Verdict(Outcome.UNTESTABLE, str(missing))


class Chart(NamedTuple):
    """A figure of a paper, drawn again."""

    title: str
    chart: "alt.TopLevelMixin"
    text: str = ""
    """What there is to see, and what the paper shows there."""
    experiment: str | None = None
    """The experiment it is made from: for the command that makes it."""


def read_cells(file: Traversable) -> Iterable[Cell]:
    """The rows of a table of published numbers."""
    rows = csv.DictReader(file.read_text(encoding="utf-8").splitlines())
    return (Cell(**{column: row[column] for column in COLUMNS}) for row in rows)


@dataclass(frozen=True)
class Study:
    """A published study."""

    name: str
    title: str
    reference: str
    """Authors, title, where and when it was published."""
    cases: Callable[[], Iterable[Case]]
    estimate: Callable[[Cell, Results], Interval | str]
    """What the simulation says in place of a published cell; text: why it says nothing."""
    claims: tuple[Claim, ...]
    charts: Callable[[Results], Sequence[Chart]]
    experiments: Mapping[str, str]
    """Experiment to what it is, and where in the paper."""
    seed: int
    """Replication k of every case runs with seed + k: common random numbers."""
    replications: int = 5
    """The least number of replications of a case."""
    doubtful: Callable[[Cell], str] = lambda _cell: ""
    """Why a published cell does not count in scores, such as a likely misprint; empty: it counts."""
    limits: str = ""
    """What stands in the way of agreement, in Markdown: for the report."""
    extra: Callable[[Results], str] | None = None
    """More of the report, in Markdown: answers to questions that the authors left open."""

    @property
    def folder(self) -> Traversable:
        """Where its files are."""
        return files("vcpulab.studies").joinpath(self.name)

    @cached_property
    def calibration(self) -> Calibration:
        """The constants fitted to it."""
        return Calibration.read(self.folder.joinpath("calibration.toml"))

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """All published numbers, those that are not public with an empty value."""
        names = ("published.csv", "withheld.csv")
        return tuple(row for name in names for row in read_cells(self.folder.joinpath(name)))

    def scenario(self, case: Case, calibration: Calibration | None = None, *, fast: bool = False) -> Scenario:
        """The scenario of a case, with the calibrated constants in it."""
        text = self.folder.joinpath(case.template).read_text(encoding="utf-8")
        template = Scenario.from_toml(text, f"{self.name}/{case.template}")
        constants = (calibration or self.calibration).changes(case.template)
        changes = {**constants, **case.changes, "name": f"{self.name}, {case.key}"[:_NAME_MAX], "seed": self.seed}
        return template.change({**changes, **(case.fast if fast else {})})
