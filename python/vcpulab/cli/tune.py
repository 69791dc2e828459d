"""`vcpulab tune`: the best setting of a scenario, searched for and confirmed."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from vcpulab import _api
from vcpulab._files import atomic
from vcpulab.advice import starvation
from vcpulab.advice.shared_parts import cautions_as_data
from vcpulab.advice.tuning.search import REPLICATIONS
from vcpulab.cli import files, outputs, page, terminal
from vcpulab.cli.interrupting import run_or_partial, stop
from vcpulab.cli.options import Flag, Jobs, Report, Seed, Slo, TableOrJson, TypedFor, Words, command, duration, number
from vcpulab.cli.outputs import Writes, written
from vcpulab.show.as_json import as_json

DONE, FAILED = 0, 1
_FOLDERS = Path("out/tune")


@command(
    "tune",
    "vcpulab tune web.toml --trials 12",
    "vcpulab tune web.toml --trials 9 --only 'domain.*.weight'",
    "vcpulab tune web.toml --trials 9 --vary batch.cap=10..90",
    "vcpulab tune web.toml --trials 9 --slo 'batch.throughput > 1'",
    "vcpulab tune web.toml --budget 2s --format json",
)
def tune(
    file: Path,
    /,
    *,
    maximise: Words = (),
    minimise: Words = (),
    slo: Slo = (),
    vary: Words = (),
    only: Words = (),
    price: Words = (),
    trials: Annotated[
        int | None,
        number(
            "Settings to try, the present one among them; unless stated 100, or fewer where 32 in a row are no better.",
            2,
            1_000_000,
        ),
    ] = None,
    budget: Annotated[float | None, duration("Time to search; the confirmation comes on top.")] = None,
    replications: Annotated[
        int, number("Replications of each setting that is not given up earlier.", 2, 1000)
    ] = REPLICATIONS,
    seed: Seed = None,
    sensitivity: Flag = False,
    all: Flag = False,
    folder: Annotated[
        Path | None,
        Parameter(name=["--out", "-o"], help="Directory of the measurements; one of its own in out/tune if left out."),
        Writes.FOLDER,
    ] = None,
    write: Annotated[Path | None, Writes.SAME_FILE] = None,
    report: Report = None,
    toolstack: TypedFor = None,
    format: TableOrJson = "table",
    jobs: Jobs = 0,
) -> int:
    """Search for the best setting of a scenario, and confirm it against the present one.

    A search that is interrupted keeps its measurements; the same command goes on. The same scenario, options and seed
    give the same result with --trials; with --budget the machine decides how far the search gets.

    Args:
        file: Scenario file.
        maximise: A metric to make greater, such as web.throughput; may be repeated, and all count alike. If none is
            named: the SLOs that do not hold as it is; where all hold, throughput and response times of all clients and
            applications, fairness, and waiting of driver domains.
        minimise: A metric to make smaller, such as web.response_p99.
        slo: A service-level objective, such as 'web.response_p99 < 50ms', or 'batch*.failed <= 3' of every one that
            matches.
        vary: A parameter and its range: PATH=LOW..HIGH or PATH=a,b,c.
        only: Parameters to vary, of those that the schedulers have: a path such as domain.dom0.weight, or a pattern
            such as 'batch*.cap'. If neither is given: schedulers of the same release, weights or reservations,
            slices, rate limits, vCPUs and pinning of driver domains; on hosts with threads, sockets or nodes core
            scheduling, run queues and soft affinity; of the goal's own domains also affinity, pools and vCPUs. Domains
            that are alike share their parameters.
        price: KIND=PERCENT, what changing a parameter of a kind costs: of settings that are about as good the cheapest
            is advised. Weight 1, cap and budget 2, slice (or rate limit) of the host 3, pinning 4, pool 5, vcpus (or
            netbacks) 6, boot (an option at boot) 15, scheduler 30.
        sensitivity: Try every guessed input (rates, users, think times, CPU time of requests and jobs) a quarter lower
            and higher; otherwise those nearest to the goal, for a quarter of the search's time.
        all: Show the gain in each goal, all parameters with their importance, the best under each scheduler, and every
            metric.
        write: Write the scenario with the setting found to this file, which may be the same one; comments stay.
    """
    scenario = files.load(file, toolstack)
    with _keeping(folder or _FOLDERS), terminal.progress(f"tuning {scenario.name}") as progress:
        answer, interrupted = run_or_partial(
            _api.tune,
            scenario,
            maximise=maximise,
            minimise=minimise,
            slo=slo,
            vary=vary,
            only=only,
            price=price,
            trials=trials,
            seconds=budget,
            replications=replications,
            seed=seed,
            folder=folder or _FOLDERS / f"{file.stem}-{{search}}",
            sensitivity=sensitivity,
            jobs=jobs,
            progress=progress,
        )
    if answer.search.note is not None:
        terminal.warn(answer.search.note)
    if format == "json":
        starved = {} if answer.confirmed is None else answer.confirmed.starved
        cautions = cautions_as_data(scenario)
        print(as_json({"starved": starvation.rows(starved), **answer.as_data(toolstack), **cautions}))
    else:
        page.show(answer.document(toolstack, full=all), all=all)
    if write is not None and answer.advised:
        with written(write):
            atomic.write(write, answer.result.best.scenario.text)
    outputs.report(report, answer.title, answer.document(toolstack, full=True))
    if interrupted:
        _go_on(folder or _FOLDERS)
    stop(interrupted=interrupted)
    return DONE if answer.kept else FAILED


@contextmanager
def _keeping(folder: Path) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        _go_on(folder)
        raise


def _go_on(folder: Path) -> None:
    if folder.exists():
        terminal.say(f"the measurements are kept in {folder}\n  hint: the same command goes on")
