"""Simulated values in place of the numbers of Cherkasova, Gupta and Vahdat."""

import re
from collections.abc import Callable

from vcpulab.results.statistics import Interval
from vcpulab_evidence.studies.cells import Cell
from vcpulab_evidence.studies.cherkasova2007 import alert
from vcpulab_evidence.studies.cherkasova2007.cases import (
    ALERT_DOM0,
    ALERT_TARGETS,
    ALLOWANCES_MS,
    PERIODS_MS,
    RATIOS,
    bvt_kind,
    sedf_kind,
    web_case,
)
from vcpulab_evidence.studies.results import Results

_SEDF_LARGEST = 9.52
"""Largest error of SEDF, % (section 5.2)."""


def estimate(cell: Cell, results: Results) -> Interval | str:
    """The simulated value of a published cell; text: the reason for a missing value."""
    if cell.experiment == "alert":
        return _alert(cell, results)
    if cell.experiment != "dom0-weight-sweep":
        return "a requirement of a controller that the authors do not describe, not a result"
    if cell.stat == "mean":
        return results.interval(case_of(cell), cell.metric)
    if cell.stat in ("lo", "hi"):
        return _range(cell, results)
    return _compared(cell, results)


def case_of(cell: Cell) -> str:
    """The case that gives a cell of Tables 1 and 2. SEDF: the generation that the study's notes argue for."""
    match = re.fullmatch(r"(?:C_ms|period_ms)=(\d+);dom0_to_dom1=([\d.]+)", cell.config)
    if match is None:
        raise ValueError(f"found config `{cell.config}`")
    value, ratio = match.groups()
    return web_case(_kind(cell.scheduler, int(value)), float(ratio))


def _kind(scheduler: str, value: int) -> str:
    return bvt_kind(value) if scheduler == "bvt" else sedf_kind(scheduler.removeprefix("sedf-"), value)


def _compared(cell: Cell, results: Results) -> Interval | str:
    """Section 5.1: one setting against another, %."""
    match = re.fullmatch(r"\w+=(\d+) (?:vs|to) \w+=(\d+);dom0_to_dom1=1", cell.config)
    if match is None:
        return "not simulated"
    pair = [(web_case(_kind(cell.scheduler, int(value))), "web_throughput") for value in match.groups()]
    if cell.metric == "web_throughput_gain":
        return results.combine(lambda first, second: 100 * (first / second - 1), *pair)
    # The prose names the slower setting first, or the direction of the change.
    slow, fast = pair if " vs " in cell.config else reversed(pair)
    return results.combine(lambda slow, fast: 100 * (1 - slow / fast), slow, fast)


def _range(cell: Cell, results: Results) -> Interval:
    """Section 5.1: the least and the most CPU time of Dom0 over ratios of 0.5 to 4 and all settings."""
    settings = ALLOWANCES_MS if cell.scheduler == "bvt" else PERIODS_MS
    pairs = [
        (web_case(_kind(cell.scheduler, value), ratio), cell.metric)
        for value in settings
        for ratio in RATIOS
        if ratio >= 0.5
    ]
    end = min if cell.stat == "lo" else max
    return results.combine(lambda *used: end(used), *pairs)


def _alert(cell: Cell, results: Results) -> Interval | str:
    if cell.metric == "cpu_share@dom0":
        return _exactly(ALERT_DOM0)
    scheduler = alert.SEDF if cell.scheduler == "sedf-nwc" else alert.CREDIT
    ascending = alert.all_errors(results, scheduler)
    values: dict[tuple[str, str], Callable[[], float]] = {
        ("experiments", "count"): lambda: len(ALERT_TARGETS),
        ("samples_per_experiment", "count"): lambda: len(ascending) / len(ALERT_TARGETS),
        ("samples_total", "count"): lambda: len(ascending),
        ("duration", "point"): lambda: len(ascending) / len(ALERT_TARGETS),
        ("alloc_error_p10", "quantile"): lambda: alert.at_or_below(ascending, 10),
        ("alloc_error_p90", "quantile"): lambda: alert.at_or_above(ascending, 10),
        ("share_of_points_with_error_below_-9.9", "point"): lambda: alert.share_below(ascending, -9.9),
        ("share_of_points_with_error_above_36.3", "point"): lambda: alert.share_above(ascending, 36.3),
        ("alloc_error", "min"): lambda: ascending[0],
        ("alloc_error", "max"): lambda: ascending[-1],
        ("target_below_which_errors_are_large", "approx"): lambda: _first_small(results),
        ("target_range_with_larger_error_than_sedf", "lo"): lambda: min(alert.worse_than_sedf(results)),
        ("target_range_with_larger_error_than_sedf", "hi"): lambda: max(alert.worse_than_sedf(results)),
    }
    value = values.get((cell.metric, cell.stat))
    return "not simulated" if value is None else _exactly(value())


def _first_small(results: Results) -> float:
    """The least target from which on no error of Credit is beyond the largest published one of SEDF; 100: none.

    The authors do not say which errors they call large.
    """
    large = [t for t in ALERT_TARGETS if max(map(abs, alert.errors(results, alert.CREDIT, t))) > _SEDF_LARGEST]
    return float(next((t for t in ALERT_TARGETS if not large or t > max(large)), 100))


def _exactly(value: float) -> Interval:
    return Interval(float(value), None, 1)
