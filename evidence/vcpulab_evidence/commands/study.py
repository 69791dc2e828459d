"""`vcpulab study`: published studies, run again and compared with the published numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from vcpulab._files import atomic
from vcpulab.cli import page, terminal
from vcpulab.cli.interrupting import run_or_partial, stop
from vcpulab.cli.options import All, Jobs, Precision, command, group, number
from vcpulab.cli.outputs import Writes, written
from vcpulab.show.document import Lines, Part
from vcpulab.show.table import Table
from vcpulab_evidence._api import study as simulated
from vcpulab_evidence.studies import NAMES, predict
from vcpulab_evidence.studies import runner as runs
from vcpulab_evidence.studies import study as study_of
from vcpulab_evidence.studies.answer import Agreement
from vcpulab_evidence.studies.fitting import fit as fit_constants

study = group(
    "study",
    "Re-run published studies, and compare simulated with published numbers.",
    "vcpulab study list",
    "vcpulab study run cherkasova2007 --fast",
)

Name = Annotated[str, Parameter(help="The study.")]
OutFile = Annotated[Path, Writes.FILE]
NameOrAll = Annotated[str, Parameter(help="The study, or `all`.")]

Folder = Annotated[
    Path,
    Parameter(name=["--out", "-o"], help="Directory of the results; each study has a folder in it."),
    Writes.FOLDER,
]
ResultsFolder = Annotated[Path, Parameter(help="Directory of the results, as --out of `study run`."), Writes.FOLDER]
Fast = Annotated[
    bool, Parameter(negative=(), help="A short look: short runs, two of each; its results are kept apart.")
]


@dataclass(frozen=True)
class _Effort:
    """The options for missing runs of a study."""

    fast: Fast = False
    precision: Precision = 0.02
    jobs: Jobs = 0


Effort = Annotated[_Effort, Parameter(name="*")]
_WHOLE = _Effort()


@command("list", "vcpulab study list", parent=study)
def list_(*, all: All = False) -> None:
    """List the studies."""
    rows = []
    for name in NAMES:
        published = study_of(name)
        cases = list(published.cases())
        blind = len(published.blind)
        rows.append(
            [
                name,
                published.title,
                str(len(published.experiments)),
                str(len(cases)),
                str(len(published.cells)),
                str(blind),
                str(len(published.claims)),
            ]
        )
    headings = ["study", "title", "experiments", "cases", "cells", "of them blind", "claims"]
    page.show([Part.rows(Table("Published studies", headings, rows, 2), "study")], all=all)


@command("show", "vcpulab study show cherkasova2007", parent=study)
def show(name: Name, /, *, all: All = False) -> None:
    """Describe a study: its experiments, cases, fitted constants and claims."""
    published = study_of(name)
    parts = [Part.always(Lines([f"{published.name}: {published.title}", published.reference, ""]))]
    cases = list(published.cases())
    rows = [[e, text, str(sum(1 for c in cases if c.experiment == e))] for e, text in published.experiments.items()]
    experiments = Table("Experiments", ["experiment", "what it is", "cases"], rows, 2)
    parts.append(Part.rows(experiments, "experiment", rounds=(0, _ROWS_SOON)))
    constants = [
        [c.name, c.meaning, f"{c.value:.6g} {c.unit}", f"{c.low:g} to {c.high:g}"]
        for c in published.calibration.constants
    ]
    fitted = Table("Fitted constants", ["constant", "what it is", "value", "between"], constants, 2)
    parts.append(Part.rows(fitted, "constant", rank=1))
    claims = [[c.id, c.text, c.in_paper] for c in published.claims]
    parts.append(
        Part.rows(Table("Claims", ["claim", "text", "in the paper"], claims, 3), "claim", rounds=(0, _ROWS_SOON))
    )
    page.show(parts, all=all)


_ROWS_SOON = 4
"""The number of experiments, and of claims, that are shown before more of either."""


@command(
    "run",
    "vcpulab study run cherkasova2007 --fast",
    "vcpulab study run cherkasova2007 --only dom0-weight-sweep --fast",
    parent=study,
)
def run(
    name: NameOrAll,
    /,
    *,
    only: str | None = None,
    all: All = False,
    out: Folder = Path("out/study"),
    effort: Effort = _WHOLE,
) -> None:
    """Run a study; results that are there are kept, an interrupted run goes on where it stopped.

    Args:
        only: One experiment of it.
    """
    for each in _names(name):
        agreement, interrupted = run_or_partial(_run, each, out, effort, only=only)
        page.show(agreement.document(), all=all)
        stop(interrupted=interrupted)


@command("report", "vcpulab study report cherkasova2007 --fast", parent=study)
def report(
    name: NameOrAll,
    /,
    *,
    out: Folder = Path("out/study"),
    effort: Effort = _WHOLE,
) -> None:
    """Write the report of a study (HTML, Markdown, Parquet), with the runs that it lacks."""
    from vcpulab_evidence.studies import report as reports

    for each in _names(name):
        print(f"report: {reports.write(_run(each, out, effort))}")


@command("predict", "vcpulab study predict cherkasova2007 --fast --out cells.csv", parent=study)
def predict_(
    name: Name,
    /,
    *,
    out: OutFile,
    results: ResultsFolder = Path("out/study"),
    effort: Effort = _WHOLE,
) -> None:
    """Write the simulated value of every cell of a study's tables, with the runs that they lack.

    Args:
        out: The file (CSV): the columns of the published cells, then ci_lo, ci_hi and role.
    """
    rows = _run(name, results, effort).predicted
    atomic.write(out, predict.to_csv(rows))
    simulated = sum(1 for row in rows if row.estimate is not None)
    terminal.say(f"written to {out}: {simulated} of {len(rows)} cells")


@command("overview", "vcpulab study overview --fast --out studies.md", parent=study)
def overview(
    *,
    out: OutFile,
    results: ResultsFolder = Path("out/study"),
    effort: Effort = _WHOLE,
) -> None:
    """Write the agreement of every study with the published numbers (Markdown), with the runs that it lacks.

    Args:
        out: The file.
    """
    from vcpulab_evidence.studies import overview as overviews

    done = [_run(each, results, effort) for each in NAMES]
    command = "vcpulab study overview" + (" --fast" if effort.fast else "")
    with written(out):
        atomic.write(out, overviews.page(done, command))


@command("fit", "vcpulab study fit venkatesh2015 --fast --samples 1 --out fit.toml", parent=study)
def fit(
    name: Name,
    /,
    *,
    out: OutFile,
    samples: Annotated[int, number("Points to try first.", 1, 4096)] = 32,
    descents: Annotated[int, number("Descents, from the best of these points.", 1, 64)] = 2,
    walk: Annotated[int, number("Random steps from the end of the best descent.", 0, 4096)] = 0,
    replications: Annotated[int, number("Replications of each case at each point.", 1, 100)] = 2,
    fast: Fast = False,
    jobs: Jobs = 0,
) -> None:
    """Fit the constants of a study to the cells that its calibration names, and predict each cell left out in turn.

    Args:
        out: The calibration with the values found (TOML).
    """
    calibration = fit_constants(
        study_of(name),
        runs.StudyEffort(fast=fast, jobs=jobs),
        samples=samples,
        best=descents,
        walk=walk,
        replications=replications,
        say=terminal.say,
    )
    with written(out):
        atomic.write(out, calibration.text())


def _run(name: str, folder: Path, effort: _Effort, *, only: str | None = None) -> Agreement:
    with terminal.progress(name) as progress:
        agreement = simulated(
            name,
            only=only,
            fast=effort.fast,
            precision=effort.precision,
            folder=folder,
            jobs=effort.jobs,
            progress=progress,
        )
    if agreement.note is not None:
        terminal.warn(agreement.note)
    return agreement


def _names(name: str) -> Sequence[str]:
    return NAMES if name == "all" else [name]
