"""Simulated values in place of Devine's numbers."""

import math
import re
from collections.abc import Sequence

from vcpulab.results.statistics import Interval
from vcpulab_evidence.studies.cells import Cell
from vcpulab_evidence.studies.devine2010 import cases as c
from vcpulab_evidence.studies.devine2010.analysis import best
from vcpulab_evidence.studies.results import Results

HIS_RUNS = 5

_SETTINGS = {"client_output_files": 125.0, "xenmon_output_files": 500.0, "bytes_transferred": 5017.0}
"""Inputs of the experiment: loads x configurations x runs, times domains, and the page in the scenario."""


def estimate(cell: Cell, results: Results) -> Interval | str:  # noqa: PLR0911 - a table of answers
    """An interval, or the reason for a missing value as text."""
    users = re.fullmatch(r"users=(\d+)", cell.load)
    if cell.metric in _SETTINGS:
        return Interval(_SETTINGS[cell.metric], None, 1)
    if cell.metric.startswith("cpu_time@"):
        return "CPU time since boot over a mix of runs that is not known"
    if cell.metric == "client_cpu_and_memory_util":
        return "the client's processor and memory are not simulated"
    if cell.metric == "throughput_gain" and users:
        return _gain(results, int(users[1]))
    if cell.config == "sample-log-entry":
        return results.interval(c.name(c.WEB, "credit-256", 25), "response_time")
    if cell.experiment == c.WEB and cell.load == "all":
        return _over_all(cell, results)
    if users is None:
        return "not simulated"
    case = c.name(cell.experiment, cell.config, int(users[1]))
    match cell.stat:
        case "mean" | "approx":
            return results.interval(case, cell.metric)
        case "sd" if cell.metric == "throughput":
            return _as_one(population_sd(results.values(case, "throughput")))
        case "sd":
            return results.interval(case, "response_sd")
        case "ci95" if cell.metric == "throughput":
            return _as_one(his_half_width(population_sd(results.values(case, "throughput")), HIS_RUNS))
        case "ci95":
            # The number in his formula was five times the throughput, not the number of samples (D-I4).
            return results.combine(
                lambda sd, x: his_half_width(sd, HIS_RUNS * x), (case, "response_sd"), (case, "throughput")
            )
    return "not simulated"


def population_sd(values: Sequence[float]) -> float:
    """Equation 5.1: the root of the mean square deviation, over N."""
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((x - mean) ** 2 for x in values) / len(values))


def his_half_width(sd: float, n: float) -> float:
    """Equation 5.2: 1.96 SD / sqrt(N). Student's factor for five runs would be 2.78, with SD over N - 1."""
    return 1.96 * sd / math.sqrt(n)


def _as_one(value: float) -> Interval:
    return Interval(value, None, 1)


def _gain(results: Results, users: int) -> Interval:
    """The gain of the best MOSS configuration over the default, %."""
    winner, default = (c.name(c.MOSS, x, users) for x in (best(results, c.MOSS, users).config, "credit-256"))
    return results.combine(lambda a, b: 100 * (a / b - 1), (winner, "throughput"), (default, "throughput"))


def _over_all(cell: Cell, results: Results) -> Interval:
    """A rounded statement on all rows of a table: mean, or the ends of the range."""
    means = [
        results.mean(case.key, cell.metric)
        for case in c.cases()
        if case.experiment == c.WEB and case.key in set(results.cases() or [case.key])
    ]
    match cell.stat:
        case "lo":
            return _as_one(min(means))
        case "hi":
            return _as_one(max(means))
    return _as_one(math.fsum(means) / len(means))


def doubt(cell: Cell) -> str:
    """The reason why a cell does not count in scores, from the notes beside the published numbers.

    Waiting was computed as a residual (D-I1); some cells are likely misprints, swapped, or the logs of idle domains
    (D-I3, D-I10 to D-I12).
    """
    return cell.note if any(words in cell.note for words in _DOUBTS) else ""


_DOUBTS = ("residual", "idle domain", "misprint", "swapped", "out of family", "row sums to", "cumulative")
