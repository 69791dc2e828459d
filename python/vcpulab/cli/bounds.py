"""`vcpulab bounds`: limits of a host by queueing analysis, without a simulation or compared with one."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from vcpulab import verbs
from vcpulab.advice.bounds import Bounds, Checked, check
from vcpulab.advice.bounds.answers import LoadBound, StationBound
from vcpulab.cli import files, page, terminal
from vcpulab.cli.interrupting import so_far, stop
from vcpulab.cli.options import All, Flag, Jobs, Replications, TableOrJson, command
from vcpulab.cli.page import Lines, Part
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
Rows: TypeAlias = Mapping[str, Sequence[_T]]
"""What a row is called, to what is in it."""


@command("bounds", "vcpulab bounds web.toml", "vcpulab bounds web.toml --check --format json")
def bounds(
    file: Path,
    /,
    *,
    check: Flag = False,
    all: All = False,
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
        page.show(list(_parts(scenario, found, checked)), all=all)
    stop(interrupted=interrupted)
    beyond = [] if checked is None else [one for one in checked if not one.holds]
    for one in beyond:
        simulated = number(one.simulated.mean)
        terminal.error(f"{one.name}: {one.what} {simulated} is beyond its bound of {number(one.bound)}")
    return EXCEEDED if beyond else DONE


def _checked(scenario: Scenario, found: Bounds, jobs: int) -> list[Checked] | None:
    with terminal.progress(f"running {scenario.name}") as progress:
        try:
            return check(found, run(scenario, jobs=jobs, waits=False, progress=progress, keep_finished=True))
        except Interrupted as interrupted:
            raise Interrupted(check(found, interrupted.partial), interrupted.extent) from None
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
        **({"notes": list(found.notes)} if found.notes else {}),
    }
    if checked is not None:
        document["check"] = [_row(one) for one in checked]
    return document


def _row(one: Checked) -> dict[str, Any]:
    undefined = {} if one.estimate is not None else {"estimate": "there is only a bound on it"}
    return asdict(one) | {"simulated": one.simulated.row(), "holds": one.holds, "undefined": undefined}


# ---- tables ----

_LIMITED = {"rate": "nothing that is counted", "customers": "its own users, or tasks"}


def _parts(scenario: Scenario, found: Bounds, checked: Sequence[Checked] | None) -> Iterator[Part]:
    if found.loads:
        yield page.always(Lines([f"{found.scenario}: bounds, and estimates by {found.method}", ""]))
    else:
        yield page.always(Lines([f"{found.scenario}: nothing in it makes work that can be bounded", ""]))
    if checked:
        beyond = sum(not one.holds for one in checked)
        said = f"{beyond} of {len(checked)}" if beyond else f"none of {len(checked)}"
        yield page.always(Lines([f"beyond its bound: {said} simulated results", ""]))
    if found.loads:
        loads, stations = _alike(found, scenario)
        yield page.rows(_loads(loads, stations), "load", soon=_LOADS_SOON)
        yield page.rows(_stations(loads, stations), "station", soon=_STATIONS_SOON)
        if over := _overloaded(found, stations):
            yield page.always(Lines([f"Asked for more than 100 % of what it can do: {', '.join(over)}.", ""]))
    if found.notes:
        yield page.always(Lines([*found.notes, ""]))
    if checked:
        yield page.rows(_check_table(checked), "simulated result", rank=1)
    limits = [Lines(["Not modelled:"]), Lines(found.not_modelled, begin="  ", indent="    ")]
    yield page.either(page.Version(left_out={"what is not modelled": 0}), page.Version(limits), rank=2)


_LOADS_SOON, _STATIONS_SOON = 8, 3
"""So many loads, and stations, the fullest first, are shown before there is room for anything else."""


def _loads(loads: Rows[LoadBound], stations: Rows[StationBound]) -> Table:
    called = {one.name: name for name, row in stations.items() for one in row}
    cells = [
        [
            name,
            ", ".join(dict.fromkeys(_LIMITED.get(by, called.get(by, by)) for by in (one.bottleneck for one in row))),
            _range([one.throughput_max for one in row]),
            _range([one.together for one in row]),
            _range([one.throughput for one in row]),
            _range([None if one.response_min_s is None else 1e3 * one.response_min_s for one in row]),
            _range([None if one.response_s is None else 1e3 * one.response_s for one in row]),
        ]
        for name, row in loads.items()
    ]
    headings = [
        "load",
        "limited by",
        "at most,\n1/s",
        "together,\n1/s",
        "estimate,\n1/s",
        "response,\nat least, ms",
        "estimate,\nms",
    ]
    title = "Loads: bounds of each by itself and of all together, and estimates"
    # Where there is no room for all, what limits a load stands below it.
    below = [[f"{name}\n  {by}", *values] for name, by, *values in cells]
    narrower = Table(title, ["load\n  limited by", *headings[2:5], "at least,\nms", headings[6]], below)
    return Table(title, headings, cells, text_columns=2, together=True, narrower=narrower)


def _stations(loads: Rows[LoadBound], stations: Rows[StationBound]) -> Table:
    cells = [
        [
            name,
            _range([100 * one.busy for one in row], _one_decimal),
            _range([one.servers for one in row], lambda servers: f"{servers:g}"),
            *(_range(_demands(load, row)) for load in loads.values()),
        ]
        for name, row in stations.items()
        if any(one.asked > 0 for one in row)
    ]
    headings = ["station", "busy,\n%", "servers", *(f"{name},\nµs".replace(" to ", "\nto ") for name in loads)]
    return Table("Stations: least service of one unit of work", headings, cells)


def _one_decimal(percent: float) -> str:
    return f"{percent:.1f}"


def _overloaded(found: Bounds, stations: Rows[StationBound]) -> list[str]:
    """The stations that fixed rates and users ask for more than they can do, and how much they ask for."""
    definite = {load.name for load in found.model.loads if load.rate is not None or load.think > 0}
    full = {one.bottleneck for one in found.loads if one.name in definite and one.together < one.throughput_max}
    return [
        f"{name} ({_range([100 * one.asked for one in row], _one_decimal)} %)"
        for name, row in stations.items()
        if any(one.name in full and one.asked > 1 for one in row)
    ]


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


def _check_table(checked: Sequence[Checked]) -> Table:
    """Simulated beside bound and estimate, what is beyond its bound first."""
    rows = []
    for one in sorted(checked, key=lambda one: one.holds):
        what, scale = _CHECKED[one.what]
        interval = one.simulated
        half_width = None if interval.half_width is None else scale * interval.half_width
        shown = interval._replace(mean=scale * interval.mean, half_width=half_width)
        side = ">=" if one.what == "response" else "<="
        estimate = "" if one.estimate is None else _finite(scale * one.estimate)
        verdict = "holds" if one.holds else "exceeded"
        rows.append([one.name, what, str(shown), f"{side} {number(scale * one.bound)}", estimate, verdict])
    headings = ["", "what", "simulated", "bound", "estimate", ""]
    title = "Simulated, beside bound and estimate"
    below = [[f"{name}\n  {what}: {verdict}", *values] for name, what, *values, verdict in rows]
    narrower = Table(title, ["what", *headings[2:-1]], below)
    return Table(title, headings, rows, text_columns=2, together=True, narrower=narrower)


def _finite(value: float, said: Callable[[float], str] = number) -> str:
    return said(value) if math.isfinite(value) else "grows"
