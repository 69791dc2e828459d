"""`vcpulab tune`: the best setting of a scenario, searched for and confirmed."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from vcpulab import _api
from vcpulab._files import atomic
from vcpulab.advice import in_short as short
from vcpulab.advice import starvation
from vcpulab.advice.tuning.answer import Tuning
from vcpulab.advice.tuning.candidates import Candidate
from vcpulab.advice.tuning.confirming import Confirmation
from vcpulab.advice.tuning.search import REPLICATIONS
from vcpulab.advice.tuning.widening import held
from vcpulab.cli import files, page, terminal, views
from vcpulab.cli.interrupting import run_or_partial, stop
from vcpulab.cli.options import Flag, Jobs, Report, Seed, Slo, TableOrJson, TypedFor, Words, command, duration, number
from vcpulab.cli.outputs import Writes, written
from vcpulab.cli.page import BLANK, Lines, Part
from vcpulab.hypervisors import Toolstack
from vcpulab.results.addresses import in_short
from vcpulab.show.as_json import as_json
from vcpulab.show.table import Table

DONE, FAILED = 0, 1
_OFFERS_MAX = 3
"""The largest number of settings to choose from that are shown without `--all`."""
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
        cautions = views.cautions_as_data(scenario)
        print(as_json({"starved": starvation.rows(starved), **answer.document(toolstack), **cautions}))
    else:
        page.show([*_parts(answer, toolstack, all=all), views.cautions(scenario)], all=all)
    if write is not None and answer.advised:
        with written(write):
            atomic.write(write, answer.result.best.scenario.text)
    if report is not None:
        from vcpulab.advice.tuning.report import write_report

        with written(report):
            write_report(report, answer, toolstack)
    if interrupted:
        _go_on(folder or _FOLDERS)
    stop(interrupted=interrupted)
    return DONE if answer.kept else FAILED


def _parts(answer: Tuning, toolstack: Toolstack | None, *, all: bool) -> Iterator[Part]:
    """The parts of the answer: commands, then the search's goals and limits, then effects on other domains."""
    search, confirmed = answer.result, answer.confirmed
    yield page.always(Lines([f"{answer.space.scenario.name}: {answer.headline}", ""]))
    if confirmed is not None and confirmed.starved:
        starved = starvation.in_a_line(confirmed.starved, "the setting found is not advised, for it starves")
        yield page.always(Lines([starved]))
    if answer.advised:
        steps = answer.commands(toolstack)
        typed = views.commands(steps, headed=True)
        if not steps:
            typed = [[Lines([f"No command of the toolstack sets {', '.join(search.best.changes)}.", ""])]]
        yield page.always(Lines(["To set it on a real host:"]))
        yield page.items(typed, "command", least=1)
        yield page.always(Lines(["", answer.verdict, ""]))
    size = answer.space.size
    tried = f"{len(search.candidates)} of {size if size < 10**6 else f'{size:.1g}'} settings"
    lines = [
        f"wanted: {'; '.join([*map(str, answer.search.goals), *in_short(answer.search.slos)])}",
        f"held fixed: {'; '.join(held(answer.space)) or 'nothing'}",
        f"tried: {tried}, {100 * answer.saved():.0f} % of their replications saved",
        *answer.reasons(),
    ]
    yield page.items([[Lines([line])] for line in lines], "line on the search", rank=1)
    yield page.always(BLANK)
    if len(answer.offers) > 1 and all:
        yield page.always(answer.offered())
    elif len(answer.offers) > 1:
        yield page.items([[Lines([line])] for line in [*answer.front_lines(_OFFERS_MAX), ""]], "line of offers", rank=2)
    if all or answer.interrupted:
        yield from _parameters(answer, all=all)
    # The effects of a setting that is not advised are of no use.
    if confirmed is not None and (all or answer.advised):
        yield from _confirmed(confirmed, all=all)


def _parameters(answer: Tuning, *, all: bool) -> Iterator[Part]:
    search = answer.result
    rows = [
        [key, before, after, str(search.costs.get(key, "–")), _share(search.importance.get(key))]
        for key, before, after in answer.changed()
    ]
    if rows:
        headings = ["parameter", "now", "found", "changing it back\ncosts of the score", "importance\nin the search"]
        title = "Parameters that the best setting changes"
        yield page.rows(Table(title, headings, rows, text_columns=3), "parameter")
    if not all and not answer.kept:
        return
    unchanged = [
        [key, _share(share)] for key, share in search.importance.items() if key not in {row[0] for row in rows}
    ]
    if unchanged:
        title = "Parameters that stay as they are"
        yield page.rows(Table(title, ["parameter", "importance in the search"], unchanged), "parameter", rank=3)
    if len(search.policies) > 1:
        ranked = sorted(search.policies.items(), key=lambda item: search.standings[item[1].number].order, reverse=True)
        policies = [[name, f"{search.standings[c.number].score:+.3f}", _verbal(answer, c)] for name, c in ranked]
        headings = ["scheduler", "score in the search", "SLOs"]
        yield page.rows(Table("The best under each scheduler", headings, policies), "scheduler", rank=3)


def _confirmed(confirmed: Confirmation, *, all: bool) -> Iterator[Part]:
    if all:
        rows = [[name, str(gain)] for name, gain in confirmed.gains.items()]
        if len(rows) > 1:
            rows.append(["score: their mean", str(confirmed.score)])
        yield page.always(Table("Gain", ["goal", f"gain in {confirmed.score.n} fresh replications"], rows))
    if confirmed.slos:
        words = {True: "kept", False: "not kept", None: "not sure"}
        judged = {confirmed_slo.slo: confirmed_slo for confirmed_slo in confirmed.slos}
        slos = []
        for name, slos_alike in in_short(judged).items():
            # The worst one stands for the SLOs of alike domains.
            worst = min(
                (judged[slo] for slo in slos_alike),
                key=lambda confirmed_slo: (False, None, True).index(confirmed_slo.sure),
            )
            slos.append([name, words[worst.sure], str(worst.interval or "–")])
        yield page.rows(Table("SLOs", ["SLO", "kept", "value"], slos, text_columns=2), "SLO")
    changed = [
        comparison
        for comparison in confirmed.comparisons
        if comparison.verdict in ("improves", "regresses") or comparison.may_regress
    ]
    runs, labels = (confirmed.before, confirmed.after), ("now", "found")
    if changed and (all or len(changed) <= short.ROWS_FULL):
        yield from views.comparison(changed, runs, labels, all=all, heading=False)
    elif changed:
        scenarios = (runs[0].scenario, runs[1].scenario)
        worse = [line for line in short.words(changed, scenarios) if "regress" in line]
        yield page.always(Lines([*worse, "--all shows what improves, and every metric"]))


def _verbal(answer: Tuning, candidate: Candidate) -> str:
    if not answer.search.slos:
        return "–"
    return "kept" if answer.result.standings[candidate.number].excess <= 0 else "not kept"


def _share(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f} %"


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
