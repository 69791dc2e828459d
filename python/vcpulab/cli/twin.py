"""`vcpulab twin`: a scenario that behaves as a recorded host did, and its score."""

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import polars as pl
from cyclopts import Parameter

from vcpulab import twin as twin_
from vcpulab.cli import files, terminal, views
from vcpulab.cli.options import AnyFormat, CpuMhz, Force, Out, Threads, command, group
from vcpulab.cli.options import number as an_option
from vcpulab.errors import RequestError
from vcpulab.formats import Recording
from vcpulab.results.statistics import number
from vcpulab.twin import Row
from vcpulab.twin.build import read, read_events

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
        paths: A trace of xentrace, perf or ftrace, and other files of its host (`xl list`, `xl vcpu-list`,
            `xl sched-credit`, `xl info`), or a directory of such files.
        out: Write the scenario to this file instead of printing it.
    """
    files.check_new(out, force=force)
    sources = _gathered(paths, cpu_mhz, threads)
    made = _made(sources, 1.0, scheduler, replay=replay)
    if out is None:
        print(made.text, end="")
        return
    files.write(out, made.text)
    # Only under the scheduler that was recorded can it be held against the recording.
    held = " ".join(["twin score", *map(str, paths)])
    terminal.say(f"written to {out}\n  hint: vcpulab {held if scheduler is None else f'run {out}'}")


@command("score", "vcpulab twin score recorded", of=twin)
def score(
    *paths: Path,
    scenario: Path | None = None,
    scheduler: Scheduler = None,
    split: Annotated[
        float, an_option("Part of the recording to make the twin of, %; it is compared with the rest.", 5, 95)
    ] = 50.0,
    replications: Annotated[int, an_option("Replications of the simulation.", 2, 10_000)] = twin_.REPLICATIONS,
    cpu_mhz: CpuMhz = None,
    threads: Threads = None,
    replay: Replay = False,
    format: AnyFormat = "table",
) -> None:
    """Score how well a twin reproduces the part of a recording that it was not made of.

    Args:
        paths: As for `vcpulab twin`.
        scenario: Compare this scenario, whose domains have the names of the recorded ones, with the whole recording
            instead.
    """
    sources = _gathered(paths, cpu_mhz, threads)
    if scenario is not None:
        held, against = files.load(scenario), _read(sources, (0.0, 1.0))
    else:
        made = _made(sources, split / 100, scheduler, replay=replay)
        held, against = made.scenario, _read(sources, (split / 100, 1.0))
    with terminal.progress("simulating") as progress:
        rows = twin_.score(held, sources, against, replications=replications, progress=progress)
    if len(rows) == 1 and scenario is None:
        raise RequestError(
            f"{sources.trace}: no vCPU of its first {split:g} % is in the rest; allowed: another --split"
        )
    if len(rows) == 1:
        raise RequestError(f"{scenario}: none of its domains has the name of one recorded")
    _show(rows, format)


def _made(sources: twin_.Sources, split: float, scheduler: str | None, *, replay: bool) -> twin_.Made:
    part = (0.0, split)
    recording = _read(sources, part)
    with tempfile.TemporaryDirectory() as scratch:
        with terminal.progress("who wakes whom") as progress:
            events = read_events(sources, part, recording, Path(scratch, "events.arrow"), progress, replay=replay)
        made = twin_.make(sources, recording, scheduler=scheduler, events=events, replay=replay)
    for note in made.notes:
        terminal.warn(note)
    return made


def _gathered(paths: Sequence[Path], cpu_mhz: float | None, threads: Path | None) -> twin_.Sources:
    if not paths:
        raise RequestError("no files", hint="vcpulab twin --help")
    try:
        return twin_.gather(paths, cpu_mhz=cpu_mhz, threads=threads)
    except OSError as error:
        raise RequestError(f"{error.filename}: {files.reason(error)}") from None


def _read(sources: twin_.Sources, part: tuple[float, float]) -> Recording:
    with terminal.progress(f"reading {sources.trace.name}") as progress:
        recording = read(sources, part, progress)
    for note in recording.notes:
        terminal.warn(f"{sources.trace}: {note['what']} ({note['count']}): {note['means']}")
    return recording


def _show(rows: Sequence[Row], form: str) -> None:
    data = [row.row() for row in rows]
    if form == "json":
        print(json.dumps(data, indent=2))
        return
    if form == "csv":
        print(pl.DataFrame(data, infer_schema_length=None).write_csv(), end="")
        return
    verdicts = {True: "yes", False: "no", None: ""}
    table = [
        [
            row.of,
            row.what,
            row.unit,
            number(row.recorded),
            str(row.simulated),
            f"{row.off:+.2f} points" if row.what in ("share", "waited") else f"{row.off:+.1f} %",
            verdicts[row.holds],
        ]
        for row in rows
    ]
    headings = ["domain", "metric", "unit", "recorded", "simulated", "off by", "within its limit"]
    views.print_table("Recorded and simulated", headings, table, text_columns=3)
    judged = [row for row in rows if row.holds is not None]
    limits = ", ".join(f"{what} {limit:g} {unit}" for what, (limit, unit) in twin_.LIMITS.items())
    print(f"{sum(bool(row.holds) for row in judged)} of {len(judged)} within their limits ({limits})")
