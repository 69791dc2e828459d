"""`vcpulab capacity` and `vcpulab place`: how much more a host can carry, and on how few hosts domains fit."""

import json
import re
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from vcpulab import files, views
from vcpulab.capacity import Capacity, Growth, growth
from vcpulab.capacity import capacity as find_capacity
from vcpulab.capacity.growing import FULL, Point
from vcpulab.capacity.guard import Guard
from vcpulab.capacity.limits import said as default_limits_said
from vcpulab.figures import number
from vcpulab.outcomes import limit as read_limit
from vcpulab.usage import UsageError, examples

app = App()

DONE, FAILED = 0, 1
Jobs = Annotated[int, Parameter(name=["--jobs", "-j"])]
Words = Annotated[tuple[str, ...], Parameter(negative=(), show_default=False)]
Format = Literal["table", "json"]
_STATIONS_SHOWN = 8
_BUDGET = re.compile(r"(?P<number>[0-9]+(\.[0-9]+)?)(?P<unit>s|m|min|h)")
_UNITS_S = {"s": 1, "m": 60, "min": 60, "h": 3600}


@app.command(
    help_epilogue=examples(
        "vcpulab capacity web.toml --grow web.rate --limit 'web.response_p99 < 50ms'",
        "vcpulab capacity web.toml --grow copies:web --format json",
    )
)
def capacity(
    file: Path,
    /,
    *,
    grow: str,
    limit: Words = (),
    lowest: float | None = None,
    highest: float | None = None,
    replications: int | None = None,
    budget: str = "10m",
    report: Path | None = None,
    format: Format = "table",  # noqa: A002 - the option's name
    jobs: Jobs = 0,
) -> int:
    """Find the largest load that keeps limits, and what stops the host from carrying more.

    Args:
        file: Scenario file.
        grow: What grows: a number of the scenario (web.users, web.rate), or copies:NAME, copies of a domain with its
            clients.
        limit: What must hold, such as `web.response_p99 < 50ms`; may be given again. Without any: no failed requests, and
            a response p99 of at most 10 times that at the lowest load.
        lowest: From where to look; 1, or the rate at which a hundred requests come in a replication, if left out.
        highest: Up to where to look; what the scenario allows if left out.
        replications: Of each load, to begin with; four times as many where it is close. The scenario's, but at least 5,
            if left out.
        budget: Time after which to stop and say how far it came.
        report: Write a report (HTML) to this file, too.
        format: How to print.
        jobs: Replications at a time; 0: one for each processor. It never changes the results.
    """
    scenario = files.load(file)
    limits = [read_limit(scenario, text) for text in limit]
    _replications(replications)
    grows = growth(scenario, grow, lowest=lowest, highest=highest)
    with views.status(f"growing {grows.name}") as progress:
        found = find_capacity(
            grows, limits, replications=replications, jobs=jobs, guard=Guard(_seconds(budget)), progress=progress
        )
    if report is not None:
        from vcpulab.capacity.report import write

        write(report, scenario.name, found, said(found))
        views.say(f"written to {report}")
    if format == "json":
        print(json.dumps(found.document(), indent=2))
    else:
        _show(scenario.name, found)
    return DONE if found.found.outcome in ("found", "all") else FAILED


def _replications(given: int | None) -> None:
    if given is not None and not 2 <= given <= 1000:
        raise UsageError(f"--replications: found `{given}`; allowed: an integer from 2 to 1000")


def _seconds(budget: str) -> float:
    match = _BUDGET.fullmatch(budget.strip())
    if match is None or float(match["number"]) == 0:
        raise UsageError(f"--budget: found `{budget}`; allowed: a time such as 90s, 10m or 2h")
    return float(match["number"]) * _UNITS_S[match["unit"]]


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
    if it.value is not None and it.broken is not None:
        if it.open_until is not None and it.open_until > it.value:
            lines.append(
                f"between {value} and {grows.said(it.open_until)} it cannot be told apart from a limit; "
                f"from {grows.said(it.broken)} on one is broken"
            )
        else:
            lines.append(f"from {grows.said(it.broken)} on a limit is broken")
    if it.broken_below:
        places = ", ".join(map(grows.said, it.broken_below))
        lines.append(f"not monotone: broken at {places}, although larger loads keep the limits")
    if found.by_default:
        lines.append(f"limits, as none were given: {default_limits_said()}")
    beyond, saturated = found.first_beyond, found.saturated
    if beyond is not None:
        lines.append(f"first limit to break: {_limit_said(beyond, grows)}")
    if saturated is not None and saturated.bottleneck is not None:
        full = saturated.bottleneck
        lines.append(f"bottleneck at {grows.said(saturated.value)}: {full}")
        if full.used < FULL:
            lines.append("nothing is full there: response times grow before anything is used up")
    return lines


def _limit_said(point: Point, grows: Growth) -> str:
    worst = point.worst
    measured = "it has no value: nothing was completed" if worst.interval is None else f"it is {worst.interval}"
    unit = "" if worst.interval is None else f" {worst.limit.metric.unit}"
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
        stations = [[one.name, one.kind, one.why, number(100 * one.used)] for one in shown]
        title = f"How full everything is on the way of the requests, at {found.growth.said(found.saturated.value)}"
        views.print_table(title, ["station", "kind", "measured", "used, %"], stations, text_columns=3)


_STANDINGS = {"holds": "hold", "open": "cannot tell", "broken": "broken"}


def register(root: App) -> None:
    """Adds the commands."""
    root.command(app, name="*")
