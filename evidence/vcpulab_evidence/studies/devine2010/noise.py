"""The noise in the author's own numbers: means and deviations of five runs of each cell."""

import math
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from vcpulab._engine import f_tail, t_cdf
from vcpulab.results.statistics import holm
from vcpulab_evidence.studies.cells import read_cells
from vcpulab_evidence.studies.claims import SIGNIFICANT
from vcpulab_evidence.studies.devine2010 import cases as c
from vcpulab_evidence.studies.devine2010.analysis import configs

RUNS = 5


class Table(NamedTuple):
    """A table of the author: configurations by loads."""

    configs: tuple[str, ...]
    means: np.ndarray
    sds: np.ndarray
    """Standard deviations of five runs, in population form."""
    loads: tuple[int, ...]

    @property
    def noise(self) -> float:
        """Standard deviation of a run, as a fraction of the mean, pooled over all cells."""
        return float(np.sqrt(np.mean((self.sds / self.means) ** 2) * RUNS / (RUNS - 1)))


class Test(NamedTuple):
    """The result of an F test."""

    f: float
    p: float

    def __str__(self) -> str:
        return f"F = {self.f:.2f}, p = {self.p:.2g}"


def published(experiment: str, metric: str = "throughput") -> Table:
    """The author's table of a metric of an experiment."""
    cells = read_cells(files("vcpulab_evidence.studies").joinpath("devine2010", "published.csv"))
    numbers = {
        (cell.config, cell.load, cell.stat): cell.number
        for cell in cells
        if (cell.experiment, cell.metric) == (experiment, metric) and cell.source.startswith("Table")
    }
    loads = sorted({int(load.removeprefix("users=")) for _, load, _ in numbers})
    named = configs(experiment)
    means, sds = (
        np.array([[numbers.get((x, f"users={n}", stat), 0) for n in loads] for x in named], dtype=float)
        for stat in ("mean", "sd")
    )
    return Table(named, means, sds, tuple(loads))


def between(table: Table, users: int) -> Test:
    """Analysis of variance at a load: a test whether the configurations differ by more than chance."""
    column = table.loads.index(users)
    within = float(np.mean(table.sds[:, column] ** 2)) * RUNS / (RUNS - 1)
    f = RUNS * float(np.var(table.means[:, column], ddof=1)) / within
    rows = len(table.configs)
    return Test(f, f_tail(rows - 1, rows * (RUNS - 1), f))


def interaction(table: Table) -> Test:
    """A test whether the order of the configurations depends on the load."""
    # On logarithms, the effects of a configuration on all loads, and of a load on all configurations, cancel out.
    logs = np.log(table.means)
    rest = logs - logs.mean(axis=0) - logs.mean(axis=1, keepdims=True) + logs.mean()
    rows, columns = logs.shape
    degrees = (rows - 1) * (columns - 1)
    f = RUNS * float(np.sum(rest**2)) / degrees / table.noise**2
    return Test(f, f_tail(degrees, rows * columns * (RUNS - 1), f))


def behind(table: Table, users: int) -> tuple[str, list[str]]:
    """The author's best configuration at a load, and those significantly worse (Welch's test, Holm's correction)."""
    column = table.loads.index(users)
    means, sds = table.means[:, column], table.sds[:, column] * np.sqrt(RUNS / (RUNS - 1))
    top = int(means.argmax())
    rest = [i for i in range(len(means)) if i != top]
    ps = [_welch((means[top], sds[top]), (means[i], sds[i])) for i in rest]
    behind_best = [table.configs[i] for i, p in zip(rest, holm(ps), strict=True) if p < SIGNIFICANT]
    return table.configs[top], behind_best


def in_words(experiment: str, users: int) -> str:
    """The evidence of the author's own runs for the best configuration at a load, as text."""
    table = published(experiment)
    if users not in table.loads:
        return "his numbers were blind then"
    top, behind_best = behind(table, users)
    losers = ", ".join(behind_best) or "none"
    return f"his own runs: {top} best, significantly above {losers}; all alike: {between(table, users)}"


def change(few: int, many: int) -> str:
    """The change of the author's web throughput between loads: mean over configurations, with its 95 % interval."""
    table = published(c.WEB)
    columns = [table.loads.index(users) for users in (few, many)]
    change = float(table.means[:, columns[1]].mean() - table.means[:, columns[0]].mean())
    half = 1.96 * float(np.sqrt((table.sds[:, columns] ** 2).sum() / (RUNS - 1))) / len(table.configs)
    return f"his own from {few} to {many}: {change:+.1f} ± {half:.1f}/s"


def _welch(first: tuple[float, float], second: tuple[float, float]) -> float:
    """The p value (two-sided) of Welch's test of two means of `RUNS` runs, each with its standard deviation."""
    errors = [sd**2 / RUNS for _, sd in (first, second)]
    degrees = sum(errors) ** 2 / sum(error**2 / (RUNS - 1) for error in errors)
    return 2 * t_cdf(degrees, -abs(first[0] - second[0]) / math.sqrt(sum(errors)))
