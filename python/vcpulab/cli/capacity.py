"""`vcpulab capacity`: how much more a host can carry."""

import json
from pathlib import Path

from vcpulab import verbs
from vcpulab.advice.capacity import Capacity, Growth
from vcpulab.advice.capacity.growing import FULL, Point
from vcpulab.advice.capacity.limits import said as default_limits_said
from vcpulab.advice.capacity.search import Found
from vcpulab.cli import files, terminal, views
from vcpulab.cli.options import Budget, Jobs, Report, Several, Slo, Table, command
from vcpulab.results.statistics import number as number_said

DONE, FAILED = 0, 1
_STATIONS_SHOWN = 8


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
    report: Report = None,
    format: Table = "table",
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
        found = verbs.capacity(
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
    if report is not None:
        from vcpulab.advice.capacity.report import write

        write(report, scenario.name, found, said(found))
        terminal.say(f"written to {report}")
    if format == "json":
        print(json.dumps(found.document(), indent=2))
    else:
        _show(scenario.name, found)
    return DONE if found.found.outcome in ("found", "all") else FAILED


def said(found: Capacity) -> list[str]:
    """The answer in sentences."""
    it, grows = found.found, found.growth
    value = "none" if it.value is None else grows.said(it.value)
    present = grows.said(grows.present)
    lines = []
    if it.outcome == "none":
        lines.append(f"no load keeps the limits: not even {grows.name} = {grows.said(grows.within.lowest)}")
    elif it.outcome == "all":
        lines.append(f"every load keeps the limits: {grows.name} up to {value}, which is as far as was looked")
    elif it.outcome == "stopped":
        lines.append(f"not finished: {it.stopped}; {grows.name} = {value} is the largest known to keep the limits")
    else:
        lines.append(f"{grows.name} = {value} keeps all limits (95 % confidence); in the file it is {present}")
    lines += _borders_said(it, grows)
    if found.by_default:
        lines.append(f"limits, as none were given: {default_limits_said()}")
    elif any(one.address.metric.name == "failed" for one in found.limits):
        lines.append("no request of the clients concerned may fail, either, unless a limit on failures is given")
    beyond, saturated = found.first_beyond, found.saturated
    if beyond is not None:
        lines.append(f"first limit to break: {_limit_said(beyond, grows)}")
    if saturated is not None and saturated.bottleneck is not None:
        full = saturated.bottleneck
        lines.append(f"bottleneck at {grows.said(saturated.value)}: {full}")
        if full.used < FULL:
            lines.append("nothing is full there: response times grow before anything is used up")
    return lines


def _borders_said(it: Found, grows: Growth) -> list[str]:
    """The nearest values that break a limit, above and below."""
    lines = []
    if it.value is not None and it.broken is not None:
        if it.open_until is not None and it.open_until > it.value:
            between = f"between {grows.said(it.value)} and {grows.said(it.open_until)}"
            lines.append(
                f"{between} the difference from a limit is not significant; at {grows.said(it.broken)} one is broken"
            )
        else:
            lines.append(f"at {grows.said(it.broken)} a limit is broken")
    if it.broken_below:
        places, held = ", ".join(map(grows.said, it.broken_below)), ", ".join(map(grows.said, it.holds_above))
        lines.append(
            f"not monotone: broken at {places}, though {held} held: the failures are rare there, or come and go"
        )
    return lines


def _limit_said(point: Point, grows: Growth) -> str:
    worst = point.worst
    measured = "it has no value: nothing was completed" if worst.interval is None else f"it is {worst.interval}"
    unit = "" if worst.interval is None else f" {worst.limit.address.unit}"
    return f"{worst.limit}; at {grows.said(point.value)} {measured}{unit}"


def _show(name: str, found: Capacity) -> None:
    print(f"{name}\n")
    for line in said(found):
        print(line)
    print()
    headings = [found.growth.name, "limits", *(str(limit) for limit in found.limits), "replications", "nearest to full"]
    rows = [
        [
            found.growth.said(point.value),
            _STANDINGS[point.standing],
            *("–" if one.interval is None else str(one.interval) for one in point.judged),
            str(point.replications),
            "–" if point.bottleneck is None else f"{point.bottleneck.name}, {100 * point.bottleneck.used:.0f} %",
        ]
        for point in found.points
    ]
    views.print_table("Loads tried", headings, rows, text_columns=2)
    if found.saturated is not None:
        shown = found.saturated.stations[:_STATIONS_SHOWN]
        stations = [[one.name, one.kind, one.why, number_said(100 * one.used)] for one in shown]
        title = f"How full everything is on the way of the requests, at {found.growth.said(found.saturated.value)}"
        views.print_table(title, ["station", "kind", "measured", "used, %"], stations, text_columns=3)


_STANDINGS = {"holds": "hold", "open": "cannot tell", "broken": "broken"}
