"""`vcpulab bounds`: limits of a host by queueing analysis, without a simulation or compared with one."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from vcpulab import verbs
from vcpulab.advice.bounds import Bounds, Checked, check
from vcpulab.advice.bounds.answers import LoadBound, StationBound
from vcpulab.cli import files, terminal, views
from vcpulab.cli.interrupting import so_far, stop
from vcpulab.cli.options import Flag, Jobs, Replications, TableOrJson, command
from vcpulab.errors import Interrupted
from vcpulab.results.run import run
from vcpulab.results.statistics import least_to_most, number
from vcpulab.scenario.alike import ROWS_MAX, rows
from vcpulab.scenario.names import in_short
from vcpulab.scenario.scenario import Scenario
from vcpulab.show.as_json import as_json
from vcpulab.show.table import Table

_T = TypeVar("_T")

DONE, EXCEEDED = 0, 1
_LOADS_WIDE = 4
"""Most loads that have a column each in the table of stations."""
Rows: TypeAlias = Mapping[str, Sequence[_T]]
"""What a row is called, to what is in it."""


@command("bounds", "vcpulab bounds web.toml", "vcpulab bounds web.toml --check --format json")
def bounds(
    file: Path,
    /,
    *,
    check: Flag = False,
    replications: Replications = None,
    format: TableOrJson = "table",
    jobs: Jobs = 0,
) -> int:
    """Bound the load that a host can carry, by queueing analysis, and name the bottleneck.

    Bounds hold whatever the scheduler does; estimates are those of a host without overhead that shares its CPUs evenly.

    Args:
        file: Scenario file.
        check: Also run the scenario, and fail if a result is beyond a bound.
    """
    scenario = files.with_run(files.load(file), replications=replications)
    found = verbs.bounds(scenario)
    checked, interrupted = so_far(_checked, scenario, found, jobs) if check else (None, False)
    if format == "json":
        print(as_json({"interrupted": interrupted, **_document(found, checked)}))
    else:
        _tables(scenario, found, checked)
    stop(interrupted=interrupted)
    beyond = [] if checked is None else [one for one in checked if not one.holds]
    for one in beyond:
        simulated = number(one.simulated.mean)
        terminal.error(f"{one.name}: {one.what} {simulated} is beyond its bound of {number(one.bound)}")
    return EXCEEDED if beyond else DONE


def _checked(scenario: Scenario, found: Bounds, jobs: int) -> list[Checked] | None:
    with terminal.progress(f"running {scenario.name}") as progress:
        try:
            return check(found, run(scenario, jobs=jobs, waits=False, progress=progress, so_far=True))
        except Interrupted as interrupted:
            raise Interrupted(check(found, interrupted.so_far), interrupted.said) from None
        except KeyboardInterrupt:
            # The bounds need no run.
            raise Interrupted(None) from None


# ---- JSON ----


def _document(found: Bounds, checked: Sequence[Checked] | None) -> dict[str, Any]:
    document = {
        "scenario": found.scenario,
        "loads": [{**asdict(one), "undefined": one.undefined()} for one in found.loads],
        "stations": [asdict(one) for one in found.stations],
        "method": found.method,
        "not_modelled": list(found.not_modelled),
    }
    if checked is not None:
        document["check"] = [_row(one) for one in checked]
    return document


def _row(one: Checked) -> dict[str, Any]:
    undefined = {} if one.estimate is not None else {"estimate": "there is only a bound on it"}
    return asdict(one) | {"simulated": one.simulated.row(), "holds": one.holds, "undefined": undefined}


# ---- tables ----

_LIMITED = {"rate": "nothing: all is served", "customers": "its own users, or tasks"}


def _tables(scenario: Scenario, found: Bounds, checked: Sequence[Checked] | None) -> None:
    if found.loads:
        views.show_lines([f"{found.scenario}: bounds, and estimates by {found.method}", ""])
        loads, stations = _alike(found, scenario)
        _show_loads(loads, stations)
        _show_stations(found, loads, stations)
    else:
        print(f"{found.scenario}: nothing in it makes work that can be bounded\n")
    if checked:
        _show_check(checked)
    print("Not modelled:")
    views.show_lines(found.not_modelled, begin="  ", indent="    ")


def _show_loads(loads: Rows[LoadBound], stations: Rows[StationBound]) -> None:
    called = {one.name: name for name, row in stations.items() for one in row}
    cells = [
        [
            name,
            ", ".join(dict.fromkeys(_LIMITED.get(by, called.get(by, by)) for by in (one.bottleneck for one in row))),
            _range([one.throughput_max for one in row]),
            _range([one.throughput for one in row]),
            _range([None if one.response_min_s is None else 1e3 * one.response_min_s for one in row]),
            _range([None if one.response_s is None else 1e3 * one.response_s for one in row]),
        ]
        for name, row in loads.items()
    ]
    headings = ["load", "limited by", "at most,\n1/s", "estimate,\n1/s", "response,\nat least, ms", "estimate,\nms"]
    title = _titled("Loads: bounds, and estimates", cells)
    views.show_table(Table(title, headings, cells[:ROWS_MAX], text_columns=2, together=True))


def _show_stations(found: Bounds, loads: Rows[LoadBound], stations: Rows[StationBound]) -> None:
    # In one piece with as many loads as there is room for.
    for wide in range(_LOADS_WIDE, 0, -1):
        table = _stations(dict(list(loads.items())[:wide]), stations)
        if views.fits(table):
            break
    views.show_table(table)
    busiest = found.stations[0].asked
    if busiest > 1 + 1e-9:
        views.show_lines(
            [
                "More than 100 %: the loads cannot all have their bounds at once; in these proportions, at most "
                f"{100 / busiest:.1f} % of them.",
                "",
            ]
        )


def _stations(loads: Rows[LoadBound], stations: Rows[StationBound]) -> Table:
    cells = [
        [
            name,
            _range([one.servers for one in row], lambda servers: f"{servers:g}"),
            *(_range(_demands(load, row)) for load in loads.values()),
            _range([100 * one.asked for one in row], lambda percent: f"{percent:.1f}"),
        ]
        for name, row in stations.items()
        if any(one.asked > 0 for one in row)
    ]
    headings = ["station", "servers", *(f"{name},\nµs".replace(" to ", "\nto ") for name in loads), "busy,\n%"]
    title = _titled("Stations: least service of one unit of work", cells)
    return Table(title, headings, cells[:ROWS_MAX])


def _titled(title: str, rows: Sequence[object]) -> str:
    return title if len(rows) <= ROWS_MAX else f"{title}; the first {ROWS_MAX} of {len(rows)}"


def _alike(found: Bounds, scenario: Scenario) -> tuple[Rows[LoadBound], Rows[StationBound]]:
    """Loads and stations under their names; where there are many loads, those of domains that are alike as one."""
    many = len(found.loads) > ROWS_MAX
    row_of = {name: tuple(row) for row in rows(scenario) for name in row} if many else {}
    apps = {load.name: load.rows[0] for load in found.model.loads}
    loads: dict[object, list[LoadBound]] = {}
    for one in found.loads:
        domain, position = apps[one.name]
        # A client stands for what it asks.
        key = (row_of[domain], position, one.name == domain) if domain in row_of else one.name
        loads.setdefault(key, []).append(one)
    stations: dict[tuple[tuple[str, ...], str], list[StationBound]] = {}
    for station in found.stations:
        of, _, what = station.name.partition(": ")
        place = (row_of[of], what) if of in row_of else ((), station.name)
        stations.setdefault(place, []).append(station)
    return (
        {in_short([one.name for one in row]): row for row in loads.values()},
        {f"{in_short(of)}: {what}" if of else what: row for (of, what), row in stations.items()},
    )


def _demands(loads: Sequence[LoadBound], stations: Sequence[StationBound]) -> list[float | None]:
    """What each of the loads asks of those of the stations that it is served by."""
    found = (load.demands.get(station.name) for load in loads for station in stations)
    return [1e6 * one for one in found if one]


def _range(values: Sequence[float | None], said: Callable[[float], str] = number) -> str:
    """A value; of several the least and the most."""
    there = [value for value in values if value is not None]
    return least_to_most(there, lambda value: _finite(value, said))


_CHECKED = {"throughput": ("throughput, 1/s", 1.0), "response": ("response, ms", 1e3), "busy": ("busy, %", 100.0)}


def _show_check(checked: Sequence[Checked]) -> None:
    rows = []
    for one in checked:
        what, scale = _CHECKED[one.what]
        interval = one.simulated
        half_width = None if interval.half_width is None else scale * interval.half_width
        shown = interval._replace(mean=scale * interval.mean, half_width=half_width)
        side = ">=" if one.what == "response" else "<="
        estimate = "" if one.estimate is None else _finite(scale * one.estimate)
        verdict = "holds" if one.holds else "exceeded"
        rows.append([one.name, what, str(shown), f"{side} {number(scale * one.bound)}", estimate, verdict])
    headings = ["", "what", "simulated", "bound", "estimate", ""]
    views.show_table(Table("Simulated, beside bound and estimate", headings, rows, text_columns=2, together=True))


def _finite(value: float, said: Callable[[float], str] = number) -> str:
    return said(value) if math.isfinite(value) else "grows"
