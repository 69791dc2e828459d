"""Devine's open question: why does the best configuration change with the user load?"""

import math
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from vcpulab.studies.devine2010 import cases as c
from vcpulab.studies.devine2010.analysis import best, configs
from vcpulab.studies.results import Missing, Results
from vcpulab.studies.study import read_cells

_RUNS = 5
_REPLAYS = 20_000


class _Table(NamedTuple):
    """One of his throughput tables: configurations by loads."""

    means: np.ndarray
    sds: np.ndarray
    """Population form, of five runs."""
    loads: tuple[int, ...]

    @property
    def noise(self) -> float:
        """Standard deviation of one run, as a part of the mean, pooled over all cells."""
        return float(np.sqrt(np.mean((self.sds / self.means) ** 2) * _RUNS / (_RUNS - 1)))


def best_by_load(results: Results) -> str:
    """The answer, in Markdown."""
    parts = ["## Why does the best configuration change with the user load?\n"]
    for experiment, title, loads in (
        (c.WEB, "Web application", c.WEB_USERS),
        (c.MOSS, "MOSS", c.MOSS_USERS),
    ):
        try:
            parts.append(_answer(results, experiment, title, loads))
        except Missing as missing:
            parts.append(f"### {title}\n\nNot run: {missing}.\n")
    return "\n".join(parts)


def _answer(results: Results, experiment: str, title: str, loads: tuple[int, ...]) -> str:
    table = _published(experiment)
    truth = np.array(
        [[results.mean(c.name(experiment, x, users), "throughput") for users in loads] for x in configs(experiment)]
    )
    return "\n".join(
        [f"### {title}\n", _his_noise(table), _simulated(results, experiment, loads), _replayed(truth, table, loads)]
    )


def _published(experiment: str) -> _Table:
    cells = read_cells(files("vcpulab.studies").joinpath("devine2010", "published.csv"))
    found = {
        (cell.config, cell.load, cell.stat): cell.number
        for cell in cells
        if (cell.experiment, cell.metric) == (experiment, "throughput") and cell.source.startswith("Table")
    }
    loads = sorted({int(load.removeprefix("users=")) for _, load, _ in found})
    means, sds = (
        np.array([[found[x, f"users={users}", stat] for users in loads] for x in configs(experiment)], dtype=float)
        for stat in ("mean", "sd")
    )
    return _Table(means, sds, tuple(loads))


def _his_noise(table: _Table) -> str:
    """Analysis of variance from means and deviations: at each load, and of configuration by load."""
    rows, columns = table.means.shape
    within = table.sds**2 * _RUNS / (_RUNS - 1)
    lines = [
        f"**His own figures.** One of his runs deviates from another by {100 * table.noise:.0f} % of the mean (pooled). Is the "
        "spread between configurations more than such runs give by chance (analysis of variance, five runs each)?\n",
        "| users | spread of the means, % | F | p |",
        "|---|---|---|---|",
    ]
    for column, users in enumerate(table.loads):
        means = table.means[:, column]
        f = _RUNS * float(np.var(means, ddof=1)) / float(np.mean(within[:, column]))
        p = _f_tail(rows - 1, rows * (_RUNS - 1), f)
        lines.append(f"| {users} | {100 * np.std(means, ddof=1) / np.mean(means):.0f} | {f:.2f} | {p:.2g} |")
    # On logarithms: what a configuration does to all loads alike, and a load to all configurations, drops out.
    logs = np.log(table.means)
    rest = logs - logs.mean(axis=0) - logs.mean(axis=1, keepdims=True) + logs.mean()
    degrees = (rows - 1) * (columns - 1)
    f = _RUNS * float(np.sum(rest**2)) / degrees / table.noise**2
    p = _f_tail(degrees, rows * columns * (_RUNS - 1), f)
    lines.append(
        f"\nThat the order of configurations depends on the load (their interaction): F = {f:.2f}, p = {p:.2g}.\n"
    )
    return "\n".join(lines)


def _f_tail(between: int, within: int, f: float) -> float:
    from scipy.special import fdtrc

    return float(fdtrc(between, within, f))


def _simulated(results: Results, experiment: str, loads: tuple[int, ...]) -> str:
    lines = [
        "**Without the noise.** Simulated, with common random numbers; a configuration is told from the best one by paired "
        "differences with Holm's correction.\n",
        "| users | best | req/s | best over worst, % | not told from the best |",
        "|---|---|---|---|---|",
    ]
    for users in loads:
        found = best(results, experiment, users)
        interval = results.interval(c.name(experiment, found.config, users), "throughput")
        ties = ", ".join(found.ties[1:]) or "none"
        lines.append(f"| {users} | {found.config} | {interval} | {found.range_percent:.1f} | {ties} |")
    return "\n".join(lines) + "\n"


def _replayed(truth: np.ndarray, table: _Table, loads: tuple[int, ...]) -> str:
    """His procedure, many times: five runs of each cell with his noise around the simulated means."""
    random = np.random.default_rng(2010)
    rows, columns = truth.shape
    changed, right, gaps = 0, np.zeros(columns), []
    for _ in range(_REPLAYS):
        seen = truth * (1 + table.noise / math.sqrt(_RUNS) * random.standard_normal(truth.shape))
        winners = seen.argmax(axis=0)
        changed += len(set(winners)) > 1
        right += truth[winners, range(columns)] > 0.98 * truth.max(axis=0)
        ordered = np.sort(seen, axis=0)
        gaps.append(ordered[-1] / seen.mean(axis=0) - 1)
    by_chance = np.mean(gaps, axis=0)
    his = table.means.max(axis=0) / table.means.mean(axis=0) - 1
    shares = ", ".join(f"{100 * right[i] / _REPLAYS:.0f} % at {users}" for i, users in enumerate(loads))
    chance = ", ".join(f"{100 * by_chance[i]:.0f} % at {users}" for i, users in enumerate(loads))
    seen_by_him = ", ".join(f"{100 * x:.0f} % at {users}" for x, users in zip(his, table.loads, strict=True))
    return (
        f"**His procedure again**, {_REPLAYS} times: five runs of each cell, with his run-to-run deviation around the simulated "
        f"means. The best configuration changes between the {len(loads)} loads in {100 * changed / _REPLAYS:.1f} % of them. "
        f"The winner is within 2 % of the truly best: {shares} users. The winner stands above the mean of all configurations "
        f"by {chance} users, on average; his winners by {seen_by_him}.\n"
    )
