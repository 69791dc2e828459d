"""The document of bounds: the limit of each load, the use of each station, and simulated results beside them."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from vcpulab.results.statistics import least_to_most, number
from vcpulab.scenario.alike import ROWS_MAX
from vcpulab.scenario.names import grouped, in_short
from vcpulab.show.document import Lines, Part, Version
from vcpulab.show.table import Table

if TYPE_CHECKING:
    from vcpulab.advice.bounds.answers import Bounds, LoadBound, StationBound
    from vcpulab.advice.bounds.checking import Checked

_T = TypeVar("_T")
Rows: TypeAlias = Mapping[str, Sequence[_T]]
"""The name of a row, to its contents."""

_LIMITED = {"rate": "nothing that is counted", "customers": "its own users, or tasks"}


def document(bounds: "Bounds", checked: "Sequence[Checked] | None") -> Iterator[Part]:
    """The document of bounds, perhaps beside simulated results; see `Bounds.document`."""
    if bounds.loads:
        yield Part.always(Lines([f"{bounds.scenario}: bounds, and estimates by {bounds.method}", ""]))
    else:
        yield Part.always(Lines([f"{bounds.scenario}: nothing in it makes work that can be bounded", ""]))
    if checked:
        beyond = sum(not comparison.holds for comparison in checked)
        count = f"{beyond} of {len(checked)}" if beyond else f"none of {len(checked)}"
        yield Part.always(Lines([f"beyond its bound: {count} simulated results", ""]))
    if bounds.loads:
        loads, stations = _alike(bounds)
        yield Part.rows(_loads(loads, stations), "load", rounds=(0, _LOADS_SHOWN_FIRST))
        yield Part.rows(_stations(loads, stations), "station", rounds=(0, _STATIONS_SHOWN_FIRST))
        if over := _overloaded(bounds, stations):
            yield Part.always(Lines([f"Asked for more than 100 % of what it can do: {', '.join(over)}.", ""]))
    if bounds.notes:
        yield Part.always(Lines([*bounds.notes, ""]))
    if checked:
        yield Part.rows(_check_table(checked), "simulated result", rank=1)
    limits = [Lines(["Not modelled:"]), Lines(bounds.not_modelled, begin="  ", indent="    ")]
    yield Part.alternatives(Version(left_out={"what is not modelled": 0}), Version(limits), rank=2)


_LOADS_SHOWN_FIRST, _STATIONS_SHOWN_FIRST = 8, 3
"""The number of loads, and of stations (the fullest first), that are shown before other parts grow."""


def _loads(loads: "Rows[LoadBound]", stations: "Rows[StationBound]") -> Table:
    called = {station.name: name for name, row in stations.items() for station in row}
    cells = [
        [
            name,
            ", ".join(dict.fromkeys(_LIMITED.get(by, called.get(by, by)) for by in (load.bottleneck for load in row))),
            _range([load.throughput_max for load in row]),
            _range([load.together for load in row]),
            _range([load.throughput for load in row]),
            _range([None if load.response_min_s is None else 1e3 * load.response_min_s for load in row]),
            _range([None if load.response_s is None else 1e3 * load.response_s for load in row]),
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
    # On a narrow terminal the limit of a load is below its name.
    below = [[f"{name}\n  {by}", *values] for name, by, *values in cells]
    narrower = Table(title, ["load\n  limited by", *headings[2:5], "at least,\nms", headings[6]], below)
    return Table(title, headings, cells, text_columns=2, together=True, narrower=narrower)


def _stations(loads: "Rows[LoadBound]", stations: "Rows[StationBound]") -> Table:
    cells = [
        [
            name,
            _range([100 * station.busy for station in row], _one_decimal),
            _range([station.servers for station in row], lambda servers: f"{servers:g}"),
            *(_range(_demands(load, row)) for load in loads.values()),
        ]
        for name, row in stations.items()
        if any(station.asked > 0 for station in row)
    ]
    headings = ["station", "busy,\n%", "servers", *(f"{name},\nµs".replace(" to ", "\nto ") for name in loads)]
    return Table("Stations: least service of one unit of work", headings, cells)


def _one_decimal(percent: float) -> str:
    return f"{percent:.1f}"


def _overloaded(bounds: "Bounds", stations: "Rows[StationBound]") -> list[str]:
    """The stations whose demand from fixed rates and users exceeds their capacity, with the demand in %."""
    definite = {load.name for load in bounds.model.loads if load.rate is not None or load.think > 0}
    full = {load.bottleneck for load in bounds.loads if load.name in definite and load.together < load.throughput_max}
    return [
        f"{name} ({_range([100 * station.asked for station in row], _one_decimal)} %)"
        for name, row in stations.items()
        if any(station.name in full and station.asked > 1 for station in row)
    ]


def _alike(bounds: "Bounds") -> "tuple[Rows[LoadBound], Rows[StationBound]]":
    """Loads and stations by name; with many loads, those of alike domains are joined."""
    many = len(bounds.loads) > ROWS_MAX
    row_of = {name: row for row in bounds.alike for name in row} if many else {}
    apps = {load.name: load.rows[0] for load in bounds.model.loads}

    def of_load(load: "LoadBound") -> object:
        domain, position = apps[load.name]
        # A client's load is that of the application it asks.
        return (row_of[domain], position, load.name == domain) if domain in row_of else load.name

    def of_station(station: "StationBound") -> tuple[tuple[str, ...], str]:
        owner, _, resource = station.name.partition(": ")
        return (row_of[owner], resource) if owner in row_of else ((), station.name)

    stations = grouped(bounds.stations, of_station)
    return (
        {in_short([load.name for load in row]): row for row in grouped(bounds.loads, of_load).values()},
        {f"{in_short(owner)}: {resource}" if owner else resource: row for (owner, resource), row in stations.items()},
    )


def _demands(loads: "Sequence[LoadBound]", stations: "Sequence[StationBound]") -> list[float | None]:
    """The demand of each load at each station that serves it, µs."""
    demands = (load.demands.get(station.name) for load in loads for station in stations)
    return [1e6 * demand for demand in demands if demand]


def _range(values: Sequence[float | None], text: Callable[[float], str] = number) -> str:
    """A value, or the least and the most of several values."""
    given = [value for value in values if value is not None]
    return least_to_most(given, lambda value: _finite(value, text))


_CHECKED = {"throughput": ("throughput, 1/s", 1.0), "response": ("response, ms", 1e3), "busy": ("busy, %", 100.0)}


def _check_table(checked: "Sequence[Checked]") -> Table:
    """The table of simulated values next to bounds and estimates; values beyond their bound come first."""
    rows = []
    for comparison in sorted(checked, key=lambda comparison: comparison.holds):
        quantity, scale = _CHECKED[comparison.what]
        interval = comparison.simulated
        half_width = None if interval.half_width is None else scale * interval.half_width
        shown = interval._replace(mean=scale * interval.mean, half_width=half_width)
        side = ">=" if comparison.what == "response" else "<="
        estimate = "" if comparison.estimate is None else _finite(scale * comparison.estimate)
        verdict = "holds" if comparison.holds else "exceeded"
        rows.append(
            [comparison.name, quantity, str(shown), f"{side} {number(scale * comparison.bound)}", estimate, verdict]
        )
    headings = ["", "what", "simulated", "bound", "estimate", ""]
    title = "Simulated, beside bound and estimate"
    below = [[f"{name}\n  {quantity}: {verdict}", *values] for name, quantity, *values, verdict in rows]
    narrower = Table(title, ["what", *headings[2:-1]], below)
    return Table(title, headings, rows, text_columns=2, together=True, narrower=narrower)


def _finite(value: float, text: Callable[[float], str] = number) -> str:
    return text(value) if math.isfinite(value) else "grows"
