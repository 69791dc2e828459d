"""The thesis's figures, drawn again, and charts of its open questions."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import polars as pl

from vcpulab.show.charts import BARS, bars
from vcpulab_evidence.studies.cells import Cell
from vcpulab_evidence.studies.charts import Chart, Mark, curves, marks, published
from vcpulab_evidence.studies.results import Missing, Results
from vcpulab_evidence.studies.venkatesh2015 import estimates
from vcpulab_evidence.studies.venkatesh2015.cases import (
    ENHANCED_READINGS,
    OPERATIONS,
    ROWS,
    SCHEDULERS,
    SEDF_READINGS,
    SIZES_MB,
    consolidated_case,
    network_case,
    reading_case,
    slice_case,
)

NAMES = {"credit": "Credit", "sedf": "SEDF", "credit2": "Credit2", "enhanced": "Enhanced"}
_LOADS = {
    "native": "Dom0 itself",
    "idle": "guest, Dom0 idle",
    "stress": "guest, CPU stress",
    "disk": "guest, Dom0 at its disk",
}
_NETWORK = {"dom0=idle": "idle", "dom0=cpu-stress": "stress", "dom0=disk-io": "disk"}
_COLUMNS = {
    "iozone_s_write@dom0": "IOzone in Dom0, KB/s",
    "netperf_tcp_stream@dom1": "netperf in Dom1, Mbit/s",
    "sysbench_transactions@dom2": "sysbench in Dom2, 1/s",
}
_WORKLOADS = {
    "disk": ("rate", "disk, KB/s"),
    "network": ("domU_throughput", "network, Mbit/s"),
    "database": ("transactions", "database, 1/s"),
}
_HOLLOW = "Hollow: as published."


def charts(results: Results, cells: Sequence[Cell]) -> list[Chart]:
    """The figures whose experiments were run."""
    disk = ("Figures 17 to 21 and 33 to 35: IOzone", "operation", "KB/s")
    database = ("Figures 27 to 30 and 39: sysbench", "rows", "transactions/s")
    operations = {operation: operation.replace("random-", "r-") for operation in OPERATIONS}
    rows = {str(rows): f"{rows:,}" for rows in ROWS}
    drawn = [
        _by_scheduler(results, "disk-iozone", disk, "rate", operations),
        _losses(results),
        _network(results, cells),
        _by_scheduler(results, "database-sysbench", database, "transactions", rows),
        _consolidated(results, cells),
        *_readings(results, "sedf-readings", "SEDF's defaults", SEDF_READINGS, ("idle", "stress")),
        *_readings(results, "enhanced-readings", "Enhanced's pseudo-code", ENHANCED_READINGS, ("stress",)),
        _slices(results),
    ]
    return [chart for chart in drawn if chart is not None]


def _by_scheduler(
    results: Results, experiment: str, axes: tuple[str, str, str], metric: str, positions: Mapping[str, str]
) -> Chart | None:
    """Marks of Dom0 itself and of the guest, idle and under stress, by horizontal position."""
    title, x, unit = axes
    data = [
        mark
        for name in SCHEDULERS
        for load in ("native", "idle", "stress")
        for mark in marks(
            results,
            NAMES[name],
            _LOADS[load],
            {shown: f"{experiment}: {name} {position} {load}" for position, shown in positions.items()},
            metric,
        )
    ]
    return _chart(data, (x, unit), title, "The thesis's values survive as plots only.", experiment, joined=False)


def _losses(results: Results) -> Chart | None:
    data: list[Mark] = []
    with suppress(Missing):
        data += [Mark("disk", "CPU stress", NAMES[n], estimates.disk_loss(results, n)) for n in SCHEDULERS]
    with suppress(Missing):
        for name in SCHEDULERS:
            for load in ("stress", "disk"):
                series = "CPU stress" if load == "stress" else "Dom0 at its disk"
                data.append(Mark("network", series, NAMES[name], estimates.network_loss(results, name, load)))
    with suppress(Missing):
        data += [Mark("database", "CPU stress", NAMES[n], estimates.database_loss(results, n)) for n in SCHEDULERS]
    for name, ends in {"credit": (4, 5), "sedf": (41, 45), "credit2": (4, 6), "enhanced": (2, 4)}.items():
        data += [published("disk", "CPU stress", NAMES[name], end) for end in ends if data]
    data += [published("database", "CPU stress", "SEDF", 75)] if data else []
    text = f"{_HOLLOW} Table 4 and section 4.5 give ranges, section 3.3.3 one number for SEDF's database."
    title = "Figures 36 and 38: what a guest loses when Dom0 is busy"
    return _chart(data, ("", "lost, %"), title, text, None, joined=False)


def _network(results: Results, cells: Sequence[Cell]) -> Chart | None:
    data: list[Mark] = []
    for name in SCHEDULERS:
        for load in ("idle", "stress", "disk"):
            positions = {f"{size} MB": network_case(name, size, load) for size in SIZES_MB}
            data += marks(results, NAMES[name], _LOADS[load], positions, "domU_throughput")
            with suppress(Missing):
                mean = estimates.average(results, estimates.network(name, load))
                data.append(Mark(NAMES[name], _LOADS[load], "mean", mean))
    if data:
        data += [
            published(NAMES[cell.scheduler], _LOADS[_NETWORK[cell.load]], "mean", cell.number)
            for cell in cells
            if cell.metric == "domU_throughput" and cell.number is not None
        ]
    title = "Figures 22 to 26 and 37: netperf by size of message"
    return _chart(data, ("message", "Mbit/s"), title, f"{_HOLLOW} Table 5, averages.", "network-netperf", joined=False)


def _consolidated(results: Results, cells: Sequence[Cell]) -> Chart | None:
    data = [
        mark
        for column, panel in _COLUMNS.items()
        for mark in marks(results, panel, panel, {NAMES[n]: consolidated_case(n) for n in SCHEDULERS}, column)
    ]
    if data:
        data += [
            published(_COLUMNS[cell.metric], _COLUMNS[cell.metric], NAMES[cell.scheduler], cell.number)
            for cell in cells
            if cell.experiment == "consolidated" and cell.number is not None
        ]
    title = "Table 7 and Figure 40: three domains at once"
    return _chart(data, ("", ""), title, _HOLLOW, "consolidated", joined=False, same_scale=False)


def _readings(
    results: Results, experiment: str, title: str, readings: Iterable[str], loads: Sequence[str]
) -> Iterable[Chart | None]:
    """A chart for each workload."""
    text = "Not in the thesis: what each reading gives (see the notes)."
    for workload, (metric, axis) in _WORKLOADS.items():
        data = []
        for reading in readings:
            for load in loads:
                with suppress(Missing):
                    measured = results.interval(reading_case(experiment, reading, workload, load), metric)
                    data.append((reading, _LOADS[load], measured.mean, measured.half_width, str(measured), False))
        yield (
            Chart(
                f"{title}: {workload}",
                bars(pl.DataFrame(data, schema=BARS, orient="row"), axis, f"{title}: {workload}").to_dict(),
                text,
                experiment,
            )
            if data
            else None
        )


def _slices(results: Results) -> Chart | None:
    data = [
        mark
        for workload in ("network", "database")
        for mark in marks(
            results,
            _WORKLOADS[workload][1],
            "guest, CPU stress",
            {f"{ms} ms": slice_case(workload, ms) for ms in (1, 5, 10, 30)},
            _WORKLOADS[workload][0],
        )
    ]
    text = "Not in the thesis, which argues that 30 ms are too long (claim V-17)."
    return _chart(data, ("slice", ""), "Credit: length of the slice", text, "slices", same_scale=False)


def _chart(
    data: list[Mark],
    axes: tuple[str, str],
    title: str,
    text: str,
    experiment: str | None,
    *,
    joined: bool = True,
    same_scale: bool = True,
) -> Chart | None:
    if not data:
        return None
    x, y = axes
    return Chart(title, curves(data, x, y, title, joined=joined, same_scale=same_scale), text, experiment)
