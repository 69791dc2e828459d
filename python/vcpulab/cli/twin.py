"""`vcpulab twin`: a scenario that behaves as a recorded host did, and its score."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from vcpulab._work.progress import Progress
from vcpulab.cli import files, page, terminal
from vcpulab.cli.options import All, AnyFormat, CpuMhz, Force, Out, Threads, command, group, number
from vcpulab.errors import RequestError
from vcpulab.formats import archive
from vcpulab.show.as_json import as_json
from vcpulab.show.csv import csv
from vcpulab.twin.scoring import REPLICATIONS
from vcpulab.twin.twin import Twin

twin = group(
    "twin",
    "Make a scenario that behaves as a recorded host did, and score it.",
    "vcpulab twin recorded --out host.toml",
    "vcpulab twin score recorded",
)

Scheduler = Annotated[str | None, Parameter(help="Scheduler to simulate, where no file says which one was recorded.")]
Replay = Annotated[
    bool,
    Parameter(
        negative=(), help="Replay the recorded times one after the other, instead of drawing from their spreads."
    ),
]


@twin.default
def make(
    *paths: Path,
    out: Out = None,
    scheduler: Scheduler = None,
    cpu_mhz: CpuMhz = None,
    threads: Threads = None,
    replay: Replay = False,
    force: Force = False,
) -> None:
    """Make a scenario of a recording: each vCPU computes and sleeps as it did, under the same scheduler.

    Args:
        paths: A trace of xentrace, perf or ftrace, and other files of its host, or a directory of such files, or an
            archive that `vcpulab collect` wrote. Of Xen:
            `xl list`, `xl vcpu-list`, `xl sched-credit`, `xl info`. Of KVM: `uname -a`, `ps -eLo`, `virsh`, `qm`,
            control groups; all that `vcpulab import kvm` takes.
        out: Write the scenario to this file instead of printing it.
    """
    files.check_new(out, force=force)
    with archive.unpacked(paths) as unpacked:
        with terminal.progress("making the twin") as progress:
            made = _twin(unpacked.paths, scheduler, cpu_mhz, threads, replay=replay, progress=progress)
            text = unpacked.shown(made.text)
        notes = [*unpacked.notes, *map(unpacked.shown, made.notes)]
    # Only a twin under the recorded scheduler can be compared with the recording.
    scoring = " ".join(["vcpulab twin score", *map(files.word, paths)]) if scheduler is None else None
    files.print_or_write(text, notes, out, scoring)


@command("score", "vcpulab twin score recorded", parent=twin)
def score(
    *paths: Path,
    scenario: Path | None = None,
    scheduler: Scheduler = None,
    split: Annotated[
        float, number("Part of the recording to make the twin of, %; it is compared with the rest.", 5, 95)
    ] = 50.0,
    replications: Annotated[int, number("Replications of the simulation.", 2, 10_000)] = REPLICATIONS,
    cpu_mhz: CpuMhz = None,
    threads: Threads = None,
    replay: Replay = False,
    all: All = False,
    format: AnyFormat = "table",
) -> None:
    """Score how well a twin reproduces the part of a recording that it was not made of.

    Args:
        paths: As for `vcpulab twin`.
        scenario: Compare this scenario, whose domains have the names of the recorded ones, with the whole recording
            instead.
    """
    against = None if scenario is None else files.load(scenario)
    with archive.unpacked(paths) as unpacked:
        made = _twin(unpacked.paths, scheduler, cpu_mhz, threads, replay=replay)
        with terminal.progress("scoring the twin") as progress:
            scored = made.score(against, split=split / 100, replications=replications, progress=progress)
        notes = [*unpacked.notes, *map(unpacked.shown, scored.notes)]
    for note in notes:
        terminal.warn(note)
    if format == "json":
        print(as_json([row.row() for row in scored.rows]))
    elif format == "csv":
        print(csv(scored.to_frame()), end="")
    else:
        page.show(scored.document(), all=all)


def _twin(
    paths: Sequence[Path],
    scheduler: str | None,
    cpu_mhz: float | None,
    threads: Path | None,
    *,
    replay: bool,
    progress: Progress | None = None,
) -> Twin:
    if not paths:
        raise RequestError("no files", hint="vcpulab twin --help")
    try:
        return Twin(*paths, scheduler=scheduler, cpu_mhz=cpu_mhz, threads=threads, replay=replay, progress=progress)
    except OSError as error:
        raise RequestError(f"{error.filename}: {files.reason(error)}") from None
