"""`vcpulab capacity`: the largest load that a host can carry."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from vcpulab import _api
from vcpulab.advice.capacity import Capacity
from vcpulab.advice.capacity.judging import Judged, worst
from vcpulab.advice.capacity.words import sentences
from vcpulab.cli import files, page, terminal
from vcpulab.cli.interrupting import run_or_partial, stop
from vcpulab.cli.options import All, Budget, Jobs, Report, Several, Slo, TableOrJson, command
from vcpulab.cli.outputs import written
from vcpulab.cli.page import Lines
from vcpulab.results.addresses import Slo as SloOf
from vcpulab.results.statistics import number as number_said
from vcpulab.show.as_json import as_json
from vcpulab.show.table import Table

DONE, FAILED = 0, 1


@command(
    "capacity",
    "vcpulab capacity web.toml --vary web.rate --highest 800",
    "vcpulab capacity web.toml --vary copies:web --format json",
)
def capacity(
    file: Path,
    /,
    *,
    vary: str,
    slo: Slo = (),
    lowest: float | None = None,
    highest: float | None = None,
    replications: Several = None,
    budget: Budget = 600.0,
    all: All = False,
    report: Report = None,
    format: TableOrJson = "table",
    jobs: Jobs = 0,
) -> int:
    """Find the largest load that keeps objectives, and the bottleneck beyond it.

    Args:
        file: Scenario file.
        vary: The load: a number of the scenario (web.users, web.rate), or copies:NAME, copies of a domain with its
            clients.
        slo: A service-level objective, such as `web.response_p99 < 50ms`; may be given again. Without any: no failed
            requests, and a response p99 of at most 10 times that at the lowest load.
        lowest: The lowest load; 1, or the rate at which a hundred requests come in a replication, if left out.
        highest: The highest load; what the scenario allows if left out.
    """
    scenario = files.load(file)
    with terminal.status(f"varying {vary}") as progress:
        answer, interrupted = run_or_partial(
            _api.capacity,
            scenario,
            vary,
            slo=slo,
            lowest=lowest,
            highest=highest,
            replications=replications,
            seconds=budget,
            jobs=jobs,
            progress=progress,
        )
    if format == "json":
        print(as_json({"interrupted": interrupted, **answer.document()}))
    else:
        _show(scenario.name, answer, all=all)
    if report is not None:
        from vcpulab.advice.capacity.report import write

        with written(report):
            write(report, scenario.name, answer)
    stop(interrupted=interrupted)
    return DONE if answer.result.outcome in ("found", "all") else FAILED


def _show(name: str, answer: Capacity, *, all: bool) -> None:
    parts = [page.always(Lines([name, "", *sentences(answer), ""]))]
    # The columns of as many SLOs as fit side by side.
    for most in range(len(answer.in_short), 0, -1):
        loads = _loads(answer, most)
        if page.fits(loads):
            break
    parts.append(page.rows(loads, "load", soon=_LOADS_SOON))
    if answer.saturated is not None:
        stations = [
            [station.name, station.kind, station.reason, number_said(100 * station.used)]
            for station in answer.saturated.stations
        ]
        title = f"How full everything is on the way of the requests, at {answer.growth.format(answer.saturated.value)}"
        parts.append(
            page.rows(
                Table(title, ["station", "kind", "measured", "used, %"], stations, text_columns=3),
                "station",
                soon=_STATIONS_SOON,
            )
        )
    page.show(parts, all=all)


_LOADS_SOON, _STATIONS_SOON = 10, 8
"""The number of loads, and of stations, that are shown before other parts grow."""


def _loads(answer: Capacity, most: int) -> Table:
    """The table of loads that were tried, with the first `most` SLOs."""
    slos = dict(list(answer.in_short.items())[:most])
    title = "Loads tried"
    if len(slos) < len(answer.in_short):
        title += f", and of {len(answer.in_short)} SLOs {'the one' if most == 1 else f'the {most}'} nearest to breaking"
    headings = [answer.growth.name, "SLOs", *map(_in_lines, slos), "replications", "nearest to full"]
    rows = [
        [
            answer.growth.format(point.value),
            _STANDINGS[point.standing],
            *_nearest(slos.values(), dict(zip(answer.slos, point.judged, strict=True))),
            str(point.replications),
            "–" if point.bottleneck is None else f"{point.bottleneck.name}, {100 * point.bottleneck.used:.0f} %",
        ]
        for point in answer.points
    ]
    return Table(title, headings, rows, text_columns=2)


def _in_lines(slo: str) -> str:
    """An SLO as the heading of a narrow column."""
    return re.sub(r"\.(?=\w+ [<>])", "\n.", slo).replace(", ", ",\n")


def _nearest(rows: Iterable[Sequence[SloOf]], judged: Mapping[SloOf, Judged]) -> Iterator[str]:
    """The worst value for each row of SLOs on alike things."""
    for row in rows:
        interval = worst([judged[slo] for slo in row]).interval
        yield "–" if interval is None else str(interval)


_STANDINGS = {"holds": "hold", "open": "cannot tell", "broken": "broken"}
