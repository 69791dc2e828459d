"""The function `study` of the package."""

from dataclasses import replace
from os import PathLike
from pathlib import Path

from vcpulab._work.effort import Effort, stated
from vcpulab._work.progress import Progress
from vcpulab.errors import Interrupted, RequestError
from vcpulab.results.cache import RunCache
from vcpulab_evidence import studies
from vcpulab_evidence.studies.answer import Agreement
from vcpulab_evidence.studies.runner import Runner, StudyEffort


def study(
    name: str,
    *,
    only: str | None = None,
    fast: bool = False,
    folder: str | PathLike[str] = "out/study",
    effort: Effort | None = None,
    precision: float | None = None,
    jobs: int = 0,
    progress: Progress | None = None,
) -> Agreement:
    """The results of a published study, simulated; finished runs are not repeated.

    Args:
        name: the study, such as `cherkasova2007`.
        only: an experiment of the study.
        fast: whether to run a short version: short runs, two of each; its results are kept apart.
        folder: the directory of the results; each study has a folder in it.
        effort: see `vcpulab.Effort`, whose fields are keywords, too. Replications are added until the intervals that
            decide have the `precision`, 0.02 if left out.
        progress: see `vcpulab.Progress`.

    Raises:
        RequestError: the study or the experiment does not exist.
        Interrupted: the work was cancelled; it holds the finished cases.
    """
    effort = stated("study", effort, precision=precision, jobs=jobs)
    published = studies.study(name)
    if only is not None and only not in published.experiments:
        raise RequestError(field="only", found=only, allowed=", ".join(published.experiments))
    cases = [case for case in published.cases() if only in (None, case.experiment)]
    own = Path(folder) / (f"{name}-fast" if fast else name)
    chosen = StudyEffort(fast=fast, jobs=effort.jobs)
    if effort.precision is not None:
        chosen = replace(chosen, precision=effort.precision)
    cached = RunCache(own / "units.jsonl")
    runner = Runner(published, chosen, cached)
    try:
        results = runner.run(cases, progress)
    except KeyboardInterrupt:
        measured = runner.measured(cases)
        raise (
            Interrupted(Agreement(published, measured, chosen, own, cached.note)) if measured else KeyboardInterrupt
        ) from None
    return Agreement(published, results, chosen, own, cached.note)
