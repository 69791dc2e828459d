"""`vcpulab.Twin`: the twin of a recorded host, and how well it does what the host did."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import polars as pl

from vcpulab.errors import RequestError
from vcpulab.scenario.scenario import Scenario
from vcpulab.show.answer import Answer
from vcpulab.twin.build import Made, make, read, read_events
from vcpulab.twin.scoring import LIMITS, REPLICATIONS, Row, score
from vcpulab.twin.sources import gather


@dataclass(frozen=True)
class Score(Answer):
    """A twin beside the part of the recording that it was not made of."""

    rows: tuple[Row, ...]

    def to_frame(self) -> pl.DataFrame:
        """A row for each metric: recorded, simulated, how far off, and whether that is within its tolerance."""
        return pl.DataFrame([row.row() for row in self.rows], infer_schema_length=None)

    def __str__(self) -> str:
        judged = [row for row in self.rows if row.holds is not None]
        within = sum(1 for row in judged if row.holds)
        return f"{within} of {len(judged)} metrics within their tolerance ({', '.join(LIMITS)})"


class Twin(Answer):
    """A scenario that wants what the vCPUs of a recorded host wanted.

    Args:
        paths: files of one host, or folders of them: one trace, and what else there is.
        scheduler: the one to simulate, if no file says which was recorded.
        cpu_mhz: frequency of the counter in Xen's trace, if no file says it.
        threads: for KVM, the file that says which threads are vCPUs.
        replay: replay what happened, instead of drawing from its spreads.
        progress: called now and then with the fraction done; returning `False` cancels.

    Raises:
        RequestError: there is not one trace, nothing says the scheduler, or nothing ran.
        RecordingError: a file holds something else.
    """

    def __init__(
        self,
        *paths: str | PathLike[str],
        scheduler: str | None = None,
        cpu_mhz: float | None = None,
        threads: str | PathLike[str] | None = None,
        replay: bool = False,
        progress: Callable[[float], bool] | None = None,
    ) -> None:
        files = None if threads is None else Path(threads)
        self._sources = gather([Path(path) for path in paths], cpu_mhz=cpu_mhz, threads=files)
        self._scheduler = scheduler
        self._replay = replay
        self._made = self._make(1.0, progress)

    @property
    def scenario(self) -> Scenario:
        """The twin of the whole recording."""
        return self._made.scenario

    @property
    def notes(self) -> list[str]:
        """What it does not do that the host did."""
        return self._made.notes

    def score(
        self,
        *,
        split: float = 0.5,
        replications: int = REPLICATIONS,
        progress: Callable[[float], bool] | None = None,
    ) -> Score:
        """A twin of the first part of the recording, held against the rest.

        Args:
            split: the part that it is made of, 0 to 1.
            replications: of the simulation.
            progress: called now and then with the fraction done; returning `False` cancels.

        Raises:
            RequestError: no vCPU of the first part is in the rest.
        """
        if not 0 < split < 1:
            raise RequestError(field="split", found=split, allowed="more than 0, less than 1")
        held = self._make(split, None).scenario
        rest = read(self._sources, (split, 1.0))
        rows = score(held, self._sources, rest, replications=replications, progress=progress)
        if len(rows) == 1:
            raise RequestError("no vCPU of the first part is in the rest", field="split", found=split)
        return Score(tuple(rows))

    def _make(self, end: float, progress: Callable[[float], bool] | None) -> Made:
        part = (0.0, end)
        recording = read(self._sources, part)
        with tempfile.TemporaryDirectory() as scratch:
            file = Path(scratch, "events.arrow")
            events = read_events(self._sources, part, recording, file, progress, replay=self._replay)
            return make(self._sources, recording, scheduler=self._scheduler, events=events, replay=self._replay)

    def to_frame(self) -> pl.DataFrame:
        """A row for each domain: its vCPUs, and how many applications they run."""
        domains = self.scenario.to_dict()["domain"].items()
        rows = [(name, table["vcpus"], len(table.get("app", []))) for name, table in domains]
        return pl.DataFrame(rows, pl.Schema({"domain": pl.String, "vcpus": pl.UInt32, "apps": pl.UInt32}), orient="row")

    def __str__(self) -> str:
        return "\n".join([self.scenario.name, *(f"note: {note}" for note in self.notes)])
