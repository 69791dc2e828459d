"""`vcpulab study`: published studies, run again and set beside what was published."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from vcpulab.cli import views
from vcpulab.cli.usage import examples
from vcpulab.errors import RequestError
from vcpulab.studies import NAMES, predict, study
from vcpulab.studies.fitting import fit as fit_constants
from vcpulab.studies.results import Results
from vcpulab.studies.runner import Effort, Runner, Units
from vcpulab.studies.study import Claim, Study

app = App(
    name="study",
    help="Re-run published studies, and set what was published beside what is simulated.",
    help_epilogue=examples("vcpulab study list", "vcpulab study run cherkasova2007 --fast"),
)

Jobs = Annotated[int, Parameter(name=["--jobs", "-j"])]
Fast = Annotated[bool, Parameter(negative=())]
_CELLS_SHOWN = 100
"""More are for a report, not for a terminal."""

Out = Annotated[Path, Parameter(name=["--out", "-o"])]


@app.command(name="list", help_epilogue=examples("vcpulab study list"))
def list_() -> None:
    """List the studies."""
    rows = []
    for name in NAMES:
        it = study(name)
        cases = list(it.cases())
        public = sum(1 for cell in it.cells if cell.value)
        rows.append([name, it.title, str(len(it.experiments)), str(len(cases)), str(public), str(len(it.claims))])
    headings = ["study", "title", "experiments", "cases", "cells", "claims"]
    views.print_table("Published studies", headings, rows, text_columns=2)


@app.command(help_epilogue=examples("vcpulab study show cherkasova2007"))
def show(name: str, /) -> None:
    """Say what a study is: its experiments, cases, fitted constants and claims.

    Args:
        name: The study.
    """
    it = _study(name)
    print(f"{it.name}: {it.title}\n{it.reference}\n")
    cases = list(it.cases())
    rows = [[e, text, str(sum(1 for c in cases if c.experiment == e))] for e, text in it.experiments.items()]
    views.print_table("Experiments", ["experiment", "what it is", "cases"], rows, text_columns=2)
    constants = [
        [c.name, c.meaning, f"{c.value:.6g} {c.unit}", f"{c.low:g} to {c.high:g}"] for c in it.calibration.constants
    ]
    views.print_table("Fitted constants", ["constant", "what it is", "value", "between"], constants, text_columns=2)
    claims = [[c.id, c.text, c.in_paper] for c in it.claims]
    views.print_table("Claims", ["claim", "text", "in the paper"], claims, text_columns=3)


@app.command(
    help_epilogue=examples(
        "vcpulab study run cherkasova2007 --fast",
        "vcpulab study run cherkasova2007 --only dom0-weight-sweep --fast",
    )
)
def run(
    name: str,
    /,
    *,
    only: str | None = None,
    fast: Fast = False,
    ci: str = "2%",
    out: Out = Path("out/study"),
    jobs: Jobs = 0,
) -> None:
    """Run a study: what is done already is not run again; an interrupted run goes on where it stopped.

    Args:
        name: The study, or `all`.
        only: One experiment of it.
        fast: A short look: short runs, two of each; its results are kept apart.
        ci: Replications are added until every interval that decides is at most so wide: half of it, of the mean.
        out: Directory for the results; each study has a folder in it.
        jobs: Replications at a time; 0: one for each processor. It never changes the results.
    """
    for it in _studies(name):
        results = _run(it, out, Effort(fast=fast, precision=_percent(ci), jobs=jobs), only)
        rows = predict.predictions(it, results)
        shown = [_row(row) for row in rows if row.estimate is not None]
        headings = ["cell", "published", "simulated", "error", "role"]
        if len(shown) <= _CELLS_SHOWN:
            views.print_table(it.title, headings, shown)
        else:
            views.say(f"{it.name}: {len(shown)} cells are not shown here\n  hint: vcpulab study report {it.name}")
        scores = [
            [
                f"{score.table}, {score.metric}",
                str(score.cells),
                _number(score.tau),
                _number(score.mape),
                score.within,
                score.role,
            ]
            for score in predict.scores(rows)
        ]
        views.print_table(
            "Agreement", ["table, metric", "cells", "tau", "mean error, %", "in intervals", "role"], scores
        )
        claims = [[c.id, *_verdict(c, results), c.text] for c in it.claims]
        views.print_table("Claims", ["claim", "outcome", "figures", "text"], claims, text_columns=4)


@app.command(help_epilogue=examples("vcpulab study report cherkasova2007 --fast"))
def report(name: str, /, *, fast: Fast = False, ci: str = "2%", out: Out = Path("out/study"), jobs: Jobs = 0) -> None:
    """Write the report of a study (HTML, Markdown, Parquet), running what is not done yet.

    Args:
        name: The study, or `all`.
        fast: Of a short look.
        ci: As for `study run`.
        out: As for `study run`.
        jobs: As for `study run`.
    """
    from vcpulab.studies import report as reports

    effort = Effort(fast=fast, precision=_percent(ci), jobs=jobs)
    for it in _studies(name):
        results = _run(it, out, effort)
        folder = _folder(it, out, effort)
        reports.write(it, results, effort, folder)
        print(f"report: {folder / 'report.html'}")


@app.command(name="predict", help_epilogue=examples("vcpulab study predict cherkasova2007 --fast --out cells.csv"))
def predict_(
    name: str,
    /,
    *,
    out: Path,
    fast: Fast = False,
    ci: str = "2%",
    results: Path = Path("out/study"),
    jobs: Jobs = 0,
) -> None:
    """Write what the simulation says for every cell of a study's tables, public or not, running what is not done yet.

    Args:
        name: The study.
        out: The file (CSV): the columns of the published cells, then ci_lo, ci_hi and role.
        fast: By a short look.
        ci: As for `study run`.
        results: Directory of the results, as --out of `study run`.
        jobs: As for `study run`.
    """
    it = _study(name)
    rows = predict.predictions(it, _run(it, results, Effort(fast=fast, precision=_percent(ci), jobs=jobs)))
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(predict.to_csv(rows), encoding="utf-8")
    said = sum(1 for row in rows if row.estimate is not None)
    views.say(f"written to {out}: {said} of {len(rows)} cells")


@app.command(help_epilogue=examples("vcpulab study overview --fast --out studies.md"))
def overview(
    *, out: Path, fast: Fast = False, ci: str = "2%", results: Path = Path("out/study"), jobs: Jobs = 0
) -> None:
    """Write how well every study agrees with what was published (Markdown), running what is not done yet.

    Args:
        out: The file.
        fast: By a short look.
        ci: As for `study run`.
        results: Directory of the results, as --out of `study run`.
        jobs: As for `study run`.
    """
    from vcpulab.studies import overview as overviews

    effort = Effort(fast=fast, precision=_percent(ci), jobs=jobs)
    done = [overviews.Done.of(it, _run(it, results, effort)) for it in _studies("all")]
    command = "vcpulab study overview" + (" --fast" if fast else "")
    out.write_text(overviews.page(done, command), encoding="utf-8")
    views.say(f"written to {out}")


@app.command(help_epilogue=examples("vcpulab study fit venkatesh2015 --samples 1 --descents 1 --out fit.toml"))
def fit(
    name: str,
    /,
    *,
    out: Path,
    samples: int = 32,
    descents: int = 2,
    walk: int = 0,
    replications: int = 2,
    jobs: Jobs = 0,
) -> None:
    """Fit the constants of a study to the cells that its calibration names, and predict each cell left out in turn.

    Args:
        name: The study.
        out: The calibration with the values found (TOML).
        samples: How many points to try first.
        descents: From how many of the best of them to descend.
        walk: How many random steps to try from where that ends.
        replications: Of each case at each point.
        jobs: Runs at a time; 0: one for each processor. It never changes the result.
    """
    for option, value, least, most in (
        ("--samples", samples, 1, 4096),
        ("--descents", descents, 1, 64),
        ("--walk", walk, 0, 4096),
        ("--replications", replications, 1, 100),
    ):
        if not least <= value <= most:
            raise RequestError(f"{option}: found `{value}`; allowed: an integer from {least} to {most}")
    found = fit_constants(
        _study(name), samples=samples, best=descents, walk=walk, replications=replications, jobs=jobs, say=views.say
    )
    out.write_text(found.text(), encoding="utf-8")
    views.say(f"written to {out}")


def _row(row: predict.Prediction) -> list[str]:
    cell = row.cell
    named = " ".join(part for part in (cell.scheduler, cell.config, cell.load, cell.metric, cell.stat) if part)
    error = "–" if row.error is None else f"{row.error:+.0f} %"
    return [named, cell.value or "–", str(row.estimate), error, row.role]


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _verdict(claim: Claim, results: Results) -> tuple[str, str]:
    verdict = claim.verdict(results)
    sure = "" if verdict.p is None else f" (p = {verdict.p:.2g})"
    return verdict.outcome.value, verdict.figures + sure


def _run(it: Study, out: Path, effort: Effort, only: str | None = None) -> Results:
    if only is not None and only not in it.experiments:
        raise RequestError(f"--only: found `{only}`; allowed: {', '.join(it.experiments)}")
    cases = [case for case in it.cases() if only in (None, case.experiment)]
    units = Units(_folder(it, out, effort) / "units.jsonl")
    with views.progress(f"{it.name}: {len(cases)} cases") as progress:
        return Runner(it, effort, units).run(cases, progress)


def _folder(it: Study, out: Path, effort: Effort) -> Path:
    return out / (f"{it.name}-fast" if effort.fast else it.name)


def _studies(name: str) -> list[Study]:
    return [study(each) for each in NAMES] if name == "all" else [_study(name)]


def _study(name: str) -> Study:
    try:
        return study(name)
    except KeyError as error:
        raise RequestError(str(error.args[0])) from None


def _percent(text: str) -> float:
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = 0.0
    if not 0 < value <= 100:
        raise RequestError(f"--ci: found `{text}`; allowed: more than 0%, at most 100%")
    return value / 100
