"""The definition of a study: its cases, published cells, claims, and the folder of its files."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING

from vcpulab.results.statistics import Interval
from vcpulab.scenario.scenario import Scenario
from vcpulab_evidence.studies.calibration import Calibration
from vcpulab_evidence.studies.case import Case
from vcpulab_evidence.studies.cells import Cell, Foretold, read_cells, read_foretold
from vcpulab_evidence.studies.claims import Claim
from vcpulab_evidence.studies.results import Results

if TYPE_CHECKING:
    from vcpulab_evidence.studies.charts import Chart

_NAME_MAX = 64
"""Maximum length of the name of a scenario."""


@dataclass(frozen=True)
class Study:
    """A published study."""

    name: str
    title: str
    reference: str
    """Authors, title, place and year of publication."""
    cases: Callable[[], Iterable[Case]]
    estimate: Callable[[Cell, Results], Interval | str]
    """The simulated value of a published cell; text: the reason for a missing value."""
    claims: tuple[Claim, ...]
    experiments: Mapping[str, str]
    """Descriptions of the experiments, with their places in the paper, by name."""
    seed: int
    """The first seed: replication k of every case runs with seed + k, for common random numbers."""
    replications: int = 5
    """Minimum number of replications of a case."""
    doubtful: Callable[[Cell], str] = lambda _cell: ""
    """The reason why a published cell does not count in scores, such as a likely misprint; empty: it counts."""
    extra: Callable[[Results], str] | None = None
    """A further section of the report, in Markdown: answers to questions that the authors left open."""

    @property
    def folder(self) -> Traversable:
        """The folder of the study's files."""
        return files("vcpulab_evidence.studies").joinpath(self.name)

    @property
    def limits(self) -> str:
        """Obstacles to agreement, in Markdown: for the report."""
        return self.folder.joinpath("limits.md").read_text(encoding="utf-8")

    def charts(self, results: Results) -> "Sequence[Chart]":
        """The figures of the paper whose cases were run, drawn again. Needs the extra `report`."""
        # Imported only here: not every installation can draw.
        module = import_module(f"vcpulab_evidence.studies.{self.name}.charts")
        figures: Sequence[Chart] = module.charts(results, self.cells)
        return figures

    @cached_property
    def calibration(self) -> Calibration:
        """The constants fitted to the study."""
        return Calibration.read(self.folder.joinpath("calibration.toml"))

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """All published numbers, the blind ones last."""
        return (*self.seen, *self.blind)

    @cached_property
    def seen(self) -> tuple[Cell, ...]:
        """The published numbers that were known when the model was made: only these may be used for fitting."""
        return tuple(read_cells(self.folder.joinpath("published.csv")))

    @cached_property
    def blind(self) -> tuple[Cell, ...]:
        """The published numbers that were unknown before `foretold` was written."""
        return tuple(read_cells(self.folder.joinpath("blind.csv")))

    @cached_property
    def foretold(self) -> Mapping[tuple[str, ...], Foretold]:
        """The predictions of blind cells before they were known, by the keys of the cells."""
        return read_foretold(self.folder.joinpath("foretold.csv"))

    @property
    def blind_notes(self) -> str:
        """The errors of predictions of blind cells, with their reasons, in Markdown."""
        return self.folder.joinpath("blind.md").read_text(encoding="utf-8")

    def scenario(self, case: Case, calibration: Calibration | None = None, *, fast: bool = False) -> Scenario:
        """The scenario of a case, with the calibrated constants in it."""
        text = self.folder.joinpath(case.template).read_text(encoding="utf-8")
        template = Scenario.from_toml(text, f"{self.name}/{case.template}")
        constants = (calibration or self.calibration).changes(case.template)
        changes = {**constants, **case.changes, "name": f"{self.name}, {case.key}"[:_NAME_MAX], "seed": self.seed}
        return template.change({**changes, **(case.fast if fast else {})})
