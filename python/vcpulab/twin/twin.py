"""`vcpulab.Twin`: the twin of a recorded host, and how well it does what the host did."""

import tempfile
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path

import polars as pl

from vcpulab._work.progress import Progress, part
from vcpulab.errors import RequestError
from vcpulab.formats import Recording, archive
from vcpulab.hosts.kernel_rules import POLICIES
from vcpulab.results.statistics import number
from vcpulab.scenario.scenario import Scenario
from vcpulab.show.answer import Answer
from vcpulab.show.document import Document, Lines, Part
from vcpulab.show.table import Table
from vcpulab.twin import conservation
from vcpulab.twin.build import SPAN_NS_LEAST, Made, make, read, read_events
from vcpulab.twin.scoring import REPLICATIONS, TOLERANCES, Row, score
from vcpulab.twin.sources import Sources, gather


@dataclass(frozen=True)
class Score(Answer):
    """A twin beside the part of the recording that it was not made of."""

    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    """Notes on problems of the recording, and on differences between the twin and the host."""

    @property
    def judged(self) -> list[Row]:
        """Metrics that have a tolerance."""
        return [row for row in self.rows if row.holds is not None]

    def to_frame(self) -> pl.DataFrame:
        """A row for each metric: recorded, simulated, how far off, and whether that is within its tolerance."""
        return pl.DataFrame([row.row() for row in self.rows], infer_schema_length=None)

    def document(self) -> Document:
        """The score as a document: recorded and simulated values side by side."""
        verdicts = {True: "yes", False: "no", None: ""}
        rows = [
            [
                row.place,
                row.metric.name,
                row.metric.unit.text,
                number(row.recorded),
                str(row.simulated),
                f"{row.off:+.2f} points" if row.off_unit == "points" else f"{row.off:+.1f} %",
                verdicts[row.holds],
            ]
            for row in self.rows
        ]
        headings = ["domain", "metric", "unit", "recorded", "simulated", "off by", "within its tolerance"]
        tolerances = ", ".join(f"{metric} {most:g} {unit}" for metric, (most, unit) in TOLERANCES.items())
        within = f"{sum(bool(row.holds) for row in self.judged)} of {len(self.judged)}"
        return [
            Part.rows(Table("Recorded and simulated", headings, rows, 3, together=True), "metric"),
            Part.always(Lines([f"{within} within their tolerance ({tolerances})"])),
        ]


class Twin(Answer):
    """A scenario with the demands of a recorded host. It is built on first access.

    Args:
        paths: files of one host, or folders or archives of them: one trace, and what else there is.
        scheduler: the one to simulate, if no file says which was recorded.
        cpu_mhz: frequency of the counter in Xen's trace, if no file says it.
        threads: for KVM, the file that says which threads are vCPUs.
        replay: replay what happened, instead of drawing from its spreads.
        progress: see `Progress`.

    Raises:
        RequestError: there is not one trace; when the scenario is made: nothing says the scheduler, or nothing ran.
        RecordingError: a file holds something else.
        OSError: it cannot be read.
    """

    def __init__(
        self,
        *paths: str | PathLike[str],
        scheduler: str | None = None,
        cpu_mhz: float | None = None,
        threads: str | PathLike[str] | None = None,
        replay: bool = False,
        progress: Progress | None = None,
    ) -> None:
        files = None if threads is None else Path(threads)
        # The trace is read again for each part of it, so that archives stay unpacked as long as the twin exists.
        unpacked = archive.unpacked_for(self, [Path(path) for path in paths])
        self._sources = gather(unpacked.paths, cpu_mhz=cpu_mhz, threads=files)
        self._scheduler = scheduler
        self._replay = replay
        self._progress = progress

    @property
    def sources(self) -> Sources:
        """The files, and what they say of the host."""
        return self._sources

    @property
    def scenario(self) -> Scenario:
        """The twin of the whole recording."""
        return self._whole[0].scenario

    @property
    def text(self) -> str:
        """The scenario as a file, with what it was made of."""
        return self._whole[0].text

    @property
    def notes(self) -> list[str]:
        """Notes on problems of the recording, and on differences between the twin and the host."""
        made, recording = self._whole
        return [*self._odd(recording), *made.notes]

    def score(
        self,
        scenario: Scenario | None = None,
        *,
        split: float = 0.5,
        replications: int = REPLICATIONS,
        progress: Progress | None = None,
    ) -> Score:
        """A twin of the first part of the recording, held against the rest.

        Args:
            scenario: held against the whole recording instead; its domains have the names of the recorded ones.
            split: the part that the twin is made of, 0 to 1.
            replications: of the simulation.
            progress: see `Progress`.

        Raises:
            RequestError: the rest is too short; no vCPU of the first part is in it, or no domain of the scenario was
                recorded; or another scheduler than the recorded one is to be simulated, and no scenario is given.
        """
        if not 0 < split < 1:
            raise RequestError(field="split", found=split, allowed="more than 0, less than 1")
        notes = []
        self._check_scheduler(scenario)
        if scenario is None:
            made, first = self._make(split, part(progress, 0.0, 0.4))
            scenario, begin = made.scenario, split
            notes += [*self._odd(first), *made.notes]
            nothing = f"{self._sources.trace}: no vCPU of its first {100 * split:g} % is in the rest"
        else:
            begin = 0.0
            nothing = f"{scenario.name}: none of its domains has the name of one recorded"
        self._sources = self._sources.with_threads(part(progress, 0.4, 0.4))
        rest = read(self._sources, (begin, 1.0), part(progress, 0.4, 0.5))
        if rest.summary["span_ns"] < SPAN_NS_LEAST:
            raise RequestError(
                f"{self._sources.trace}: what a twin is held against is {rest.summary['span_ns'] / 1e6:.3g} ms long, "
                "in which chance decides",
                allowed=f"at least {SPAN_NS_LEAST / 1e9:g} s, of a recording of {_needed_s(begin):.3g} s",
                hint="record ten seconds under the load that matters",
            )
        rows = score(scenario, self._sources, rest, replications=replications, progress=part(progress, 0.5, 1.0))
        if len(rows) == 1:
            raise RequestError(nothing, allowed="another split" if begin else None)
        return Score(tuple(rows), (*notes, *self._odd(rest)))

    def _check_scheduler(self, scenario: Scenario | None) -> None:
        """Makes sure that a twin to be scored has the recorded scheduler: another one says nothing of its quality."""
        recorded, used = self._sources.scheduler, self._scheduler
        under = (recorded is None and used not in POLICIES) or (recorded is not None and used != recorded)
        if scenario is None and self._sources.of_linux and used is not None and under:
            raise RequestError(
                f"{self._sources.trace}: recorded under {recorded or 'a scheduler of Linux'}: "
                f"what a twin does under {used} says nothing of how good it is",
                hint="vcpulab twin makes it all the same; vcpulab run shows what these vCPUs do under that scheduler",
            )

    @cached_property
    def _whole(self) -> tuple[Made, Recording]:
        return self._make(1.0, self._progress)

    def _make(self, end: float, progress: Progress | None) -> tuple[Made, Recording]:
        """The twin of the recording up to there, and that part of it."""
        first = (0.0, end)
        self._sources = self._sources.with_threads(part(progress, 0.0, 0.2))
        recording = read(self._sources, first, part(progress, 0.2, 0.5))
        span_ns = recording.summary["span_ns"]
        if span_ns < SPAN_NS_LEAST * end:
            wakes = sum(vcpu["wakes"] for vcpu in recording.summary["vcpus"])
            raise RequestError(
                f"{self._sources.trace}: {span_ns / 1e6 / end:.3g} ms with {wakes} wake-up{'s' * (wakes != 1)} "
                f"{'are' if wakes != 1 else 'is'} too short to tell shares and waits",
                allowed=f"at least {SPAN_NS_LEAST / 1e9:g} s",
                hint="record ten seconds under the load that matters",
            )
        with tempfile.TemporaryDirectory() as scratch:
            file, second = Path(scratch, "events.arrow"), part(progress, 0.5, 1.0)
            events = read_events(self._sources, first, recording, file, second, replay=self._replay)
            made = make(self._sources, recording, scheduler=self._scheduler, events=events, replay=self._replay)
        if self._sources.of_linux and self._scheduler in (None, self._sources.scheduler):
            made.notes.extend(conservation.check(made, self._sources, recording))
        return made, recording

    def _odd(self, recording: Recording) -> list[str]:
        return [f"{self._sources.trace}: {note['what']} ({note['count']}): {note['means']}" for note in recording.notes]

    def to_frame(self) -> pl.DataFrame:
        """A row for each domain: its vCPUs, and how many applications they run."""
        rows = [(name, domain.vcpus, len(domain.apps)) for name, domain in self.scenario.domains.items()]
        return pl.DataFrame(rows, pl.Schema({"domain": pl.String, "vcpus": pl.UInt32, "apps": pl.UInt32}), orient="row")

    def document(self) -> Document:
        """The twin as a document: its domains, and the notes."""
        rows = [[name, str(vcpus), str(apps)] for name, vcpus, apps in self.to_frame().iter_rows()]
        return [
            Part.rows(Table(self.scenario.name, ["domain", "vCPUs", "applications"], rows), "domain"),
            Part.lines([f"note: {note}" for note in self.notes], "note"),
        ]


def _needed_s(begin: float) -> float:
    """The least length of a recording whose rest after that part is long enough, s."""
    return SPAN_NS_LEAST / 1e9 / (1 - begin)
