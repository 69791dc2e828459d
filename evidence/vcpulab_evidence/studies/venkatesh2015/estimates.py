"""Simulated values in place of the numbers of the thesis."""

from collections.abc import Callable, Mapping
from statistics import mean

from vcpulab.results.statistics import Interval
from vcpulab_evidence.studies.cells import Cell
from vcpulab_evidence.studies.results import Results, Values
from vcpulab_evidence.studies.venkatesh2015.cases import (
    OPERATIONS,
    ROWS,
    SIZES_MB,
    consolidated_case,
    database_case,
    disk_case,
    network_case,
)

LINK_MBIT = 100.0
"""Rate of the link, Mbit/s: a setting (section 3.3.2)."""


def disk(scheduler: str, load: str) -> list[tuple[str, str]]:
    """IOzone's rate for each operation: `native`, `idle` or `stress`."""
    return [(disk_case(scheduler, operation, load), "rate") for operation in OPERATIONS]


def network(scheduler: str, load: str) -> list[tuple[str, str]]:
    """Netperf's rate for each size of message, Dom0 being `idle`, under `stress` or at its `disk`."""
    return [(network_case(scheduler, size, load), "domU_throughput") for size in SIZES_MB]


def database(scheduler: str, load: str) -> list[tuple[str, str]]:
    """Sysbench's rate for each size of table: `native`, `idle` or `stress`."""
    return [(database_case(scheduler, rows, load), "transactions") for rows in ROWS]


def average(results: Results, values: Values) -> Interval:
    """Mean over the cases."""
    return results.combine(lambda *x: mean(x), *values)


def near_native(results: Results, scheduler: str, stat: str = "mean") -> Interval:
    """The guest's disk rate, Dom0 being idle, % of Dom0's: over the operations, mean, least (`lo`) or most (`hi`)."""
    return _ratios(results, disk(scheduler, "idle"), disk(scheduler, "native"), stat, lambda a, b: 100 * a / b)


def disk_loss(results: Results, scheduler: str, stat: str = "mean") -> Interval:
    """The loss of the guest's disk when Dom0 is under stress, %; `stat` as above."""
    return _ratios(results, disk(scheduler, "stress"), disk(scheduler, "idle"), stat, loss)


def network_loss(results: Results, scheduler: str, load: str = "stress") -> Interval:
    """The loss of netperf's average over the sizes when Dom0 is busy, %."""
    return results.combine(loss_of_means, *network(scheduler, load), *network(scheduler, "idle"))


def database_share(results: Results, scheduler: str, load: str = "idle") -> Interval:
    """The guest's transactions over Dom0's, mean over the sizes of the table."""
    return _ratios(results, database(scheduler, load), database(scheduler, "native"), "mean", lambda a, b: a / b)


def database_loss(results: Results, scheduler: str) -> Interval:
    """The loss of the guest's database when Dom0 is under stress, mean over the sizes of the table, %."""
    return _ratios(results, database(scheduler, "stress"), database(scheduler, "idle"), "mean", loss)


_LOADS = {"dom0=idle": "idle", "dom0=cpu-stress": "stress", "dom0=disk-io": "disk"}

_ESTIMATES: Mapping[str, Callable[[Results, Cell], Interval]] = {
    "domU_over_dom0_rate": lambda results, cell: near_native(results, cell.scheduler, cell.stat),
    "domU_rate_loss_vs_dom0_idle": lambda results, cell: disk_loss(results, cell.scheduler, cell.stat),
    "domU_throughput": lambda results, cell: average(results, network(cell.scheduler, _LOADS[cell.load])),
    "link_rate": lambda *_: Interval(LINK_MBIT, None, 1),
    "domU_over_dom0_transactions": lambda results, cell: database_share(results, cell.scheduler),
    "domU_transaction_loss": lambda results, cell: database_loss(results, cell.scheduler),
}


def estimate(cell: Cell, results: Results) -> Interval | str:
    """The simulated value of a published cell; text: the reason for a missing value."""
    if cell.experiment == "consolidated":
        return results.interval(consolidated_case(cell.scheduler), cell.metric)
    return _ESTIMATES[cell.metric](results, cell)


def loss(busy: float, idle: float) -> float:
    """The loss of a rate, %."""
    return 100 * (1 - busy / idle)


def loss_of_means(*rates: float) -> float:
    """The loss of the mean rate, %: the first half of the rates is the busy machine's, the second the idle one's."""
    n = len(rates) // 2
    return loss(mean(rates[:n]), mean(rates[n:]))


def mean_loss(*rates: float) -> float:
    """The mean loss of the rates, %: arguments as above."""
    n = len(rates) // 2
    return mean(map(loss, rates[:n], rates[n:]))


def _ratios(
    results: Results, above: Values, below: Values, stat: str, ratio: Callable[[float, float], float]
) -> Interval:
    n, of_all = len(above), {"lo": min, "hi": max}.get(stat, mean)
    return results.combine(lambda *x: of_all(list(map(ratio, x[:n], x[n:]))), *above, *below)
