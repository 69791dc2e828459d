"""`vcpulab twin`: a scenario that behaves as a recorded host did, and how well it does."""

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import polars as pl
from cyclopts import App, Parameter

from vcpulab import twin
from vcpulab.cli import files, views
from vcpulab.cli.usage import examples
from vcpulab.errors import RequestError
from vcpulab.formats import Recording
from vcpulab.results.figures import number
from vcpulab.twin import Row
from vcpulab.twin.build import read, read_events

app = App(
    name="twin",
    help="Make a scenario that behaves as a recorded host did, and say how well it does.",
    help_format="plaintext",
    help_epilogue=examples("vcpulab twin recorded --out host.toml", "vcpulab twin score recorded"),
)

Threads = Annotated[Path | None, Parameter(name="--threads")]
Replay = Annotated[bool, Parameter(negative=())]


@app.default
def make(
    *paths: Path,
    out: Path | None = None,
    scheduler: str | None = None,
    cpu_mhz: float | None = None,
    threads: Threads = None,
    replay: Replay = False,
    force: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Make a scenario of a recording: each vCPU computes and sleeps as it did, under the scheduler that it had.

    Args:
        paths: A trace of xentrace, perf or ftrace, and what else there is of its host (`xl list`, `xl vcpu-list`,
            `xl sched-credit`, `xl info`), or a directory of such files.
        out: Write the scenario to this file instead of printing it.
        scheduler: Simulate this scheduler, where no file says which was recorded.
        cpu_mhz: Frequency of the counter in Xen's trace, MHz; found from the trace or `xl info` if left out.
        threads: For KVM: a file with a line `thread name vcpu` for each vCPU.
        replay: Do what was done one time after the other, instead of drawing from its spreads.
        force: Replace what is there.
    """
    if out is not None and out.exists() and not force:
        raise RequestError(f"{out}: exists already\n  hint: --force replaces it")
    sources = _gathered(paths, cpu_mhz, threads)
    made = _made(sources, 1.0, scheduler, replay=replay)
    if out is None:
        print(made.text, end="")
        return
    files.write(out, made.text)
    # Only under the scheduler that was recorded can it be held against the recording.
    held = " ".join(["twin score", *map(str, paths)])
    views.say(f"written to {out}\n  hint: vcpulab {held if scheduler is None else f'run {out}'}")


@app.command(help_epilogue=examples("vcpulab twin score recorded"))
def score(
    *paths: Path,
    scenario: Path | None = None,
    scheduler: str | None = None,
    split: float = 50.0,
    replications: int = twin.REPLICATIONS,
    cpu_mhz: float | None = None,
    threads: Threads = None,
    replay: Replay = False,
    format: Literal["table", "json", "csv"] = "table",  # noqa: A002 - the option's name
) -> None:
    """Say how well a twin reproduces the part of a recording that it was not made of.

    Args:
        paths: As for `vcpulab twin`.
        scenario: Hold this scenario, whose domains have the names of those recorded, against all of it instead.
        scheduler: As for `vcpulab twin`.
        split: The part of the recording to make the twin of, %; the rest is what it is held against.
        replications: Of the simulation.
        cpu_mhz: As for `vcpulab twin`.
        threads: As for `vcpulab twin`.
        replay: As for `vcpulab twin`.
        format: How to print.
    """
    if not 5 <= split <= 95:
        raise RequestError(f"--split: found `{split:g}`; allowed: 5 to 95")
    if not 2 <= replications <= 10_000:
        raise RequestError(f"--replications: found `{replications}`; allowed: 2 to 10000")
    sources = _gathered(paths, cpu_mhz, threads)
    if scenario is not None:
        held, against = files.load(scenario), _read(sources, (0.0, 1.0))
    else:
        made = _made(sources, split / 100, scheduler, replay=replay)
        held, against = made.scenario, _read(sources, (split / 100, 1.0))
    with views.progress("simulating") as progress:
        rows = twin.score(held, sources, against, replications=replications, progress=progress)
    if len(rows) == 1 and scenario is None:
        raise RequestError(
            f"{sources.trace}: no vCPU of its first {split:g} % is in the rest; allowed: another --split"
        )
    if len(rows) == 1:
        raise RequestError(f"{scenario}: none of its domains has the name of one recorded")
    _show(rows, format)


def _made(sources: twin.Sources, split: float, scheduler: str | None, *, replay: bool) -> twin.Made:
    part = (0.0, split)
    recording = _read(sources, part)
    with tempfile.TemporaryDirectory() as scratch:
        with views.progress("who wakes whom") as progress:
            events = read_events(sources, part, recording, Path(scratch, "events.arrow"), progress, replay=replay)
        made = twin.make(sources, recording, scheduler=scheduler, events=events, replay=replay)
    for note in made.notes:
        views.warn(note)
    return made


def _gathered(paths: Sequence[Path], cpu_mhz: float | None, threads: Path | None) -> twin.Sources:
    if not paths:
        raise RequestError("no files\n  hint: vcpulab twin --help")
    try:
        return twin.gather(paths, cpu_mhz=cpu_mhz, threads=threads)
    except OSError as error:
        raise RequestError(f"{error.filename}: {files.reason(error)}") from None


def _read(sources: twin.Sources, part: tuple[float, float]) -> Recording:
    with views.progress(f"reading {sources.trace.name}") as progress:
        recording = read(sources, part, progress)
    for note in recording.notes:
        views.warn(f"{sources.trace}: {note['what']} ({note['count']}): {note['means']}")
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
    headings = ["domain", "figure", "unit", "recorded", "simulated", "off by", "within its limit"]
    views.print_table("Recorded and simulated", headings, table, text_columns=3)
    judged = [row for row in rows if row.holds is not None]
    limits = ", ".join(f"{what} {limit:g} {unit}" for what, (limit, unit) in twin.LIMITS.items())
    print(f"{sum(bool(row.holds) for row in judged)} of {len(judged)} within their limits ({limits})")
