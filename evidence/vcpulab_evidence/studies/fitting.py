"""Fits the constants of a study to the cells named in its calibration.

The procedure, the same for every study: constants vary on a logarithmic scale between their physical limits. A Sobol
sequence (seeded) covers them; from the best points, least squares on the logarithms of simulated over published values
(Branch, Coleman and Li's trust-region reflective method, as scipy has it) walks downhill, with steps of 8 % for the
derivatives, wide enough that noise does not hide them. A random walk (seeded) from the end of the descent, which keeps
every improvement, crosses discontinuities of schedulers, where derivatives do not help. All runs have common random
numbers. Then each cell is left out in turn, the fit is repeated from the optimum, and the cell is predicted.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from vcpulab._extras import require
from vcpulab.results.cache import RunCache
from vcpulab.results.statistics import Interval
from vcpulab_evidence.studies.calibration import Calibration
from vcpulab_evidence.studies.case import Case
from vcpulab_evidence.studies.cells import Cell
from vcpulab_evidence.studies.definition import Study
from vcpulab_evidence.studies.runner import Runner, StudyEffort

_STEP = 0.08
_WALK = 0.12
"""First spread of a walk's steps, on the logarithmic scale; it shrinks to a tenth."""
_PENALTY = 2.0
"""Residual of a missing simulated value: worse than a factor of seven."""


class Fit:
    """A fit, with a cache of evaluated points."""

    def __init__(
        self, study: Study, cells: Sequence[Cell], cases: Sequence[Case], effort: StudyEffort, replications: int
    ) -> None:
        """Takes the cells to fit on, and the cases that they are computed from."""
        self._study = replace(study, replications=replications)
        self._cells = cells
        self._cases = cases
        self._effort = replace(effort, precision=math.inf, fast_replications=replications)
        self._values_at: dict[tuple[float, ...], list[float]] = {}
        self.evaluations = 0
        self._low, self._high = (
            np.log([getattr(c, end) for c in study.calibration.constants]) for end in ("low", "high")
        )

    def simulated(self, logs: Iterable[float]) -> list[float]:
        """The simulated value of each cell; nan if it is missing."""
        point = tuple(round(float(x), 6) for x in logs)
        if point not in self._values_at:
            constants = self._study.calibration.constants
            values = {c.name: math.exp(x) for c, x in zip(constants, point, strict=True)}
            calibration = self._study.calibration.with_values(values)
            results = Runner(self._study, self._effort, RunCache(None), calibration).run(self._cases)
            estimates = [self._study.estimate(cell, results) for cell in self._cells]
            self._values_at[point] = [x.mean if isinstance(x, Interval) else math.nan for x in estimates]
            self.evaluations += 1
        return self._values_at[point]

    def residuals(self, logs: Iterable[float], without: int | None = None) -> np.ndarray:
        """The logarithm of simulated over published values, for each cell."""
        pairs = zip(self._cells, self.simulated(logs), strict=True)
        errors = [math.log(value / cell.number) if cell.number and value > 0 else _PENALTY for cell, value in pairs]
        return np.array([e for i, e in enumerate(errors) if i != without])

    def search(self, samples: int, best: int, say: Callable[[str], None]) -> np.ndarray:
        """The best point from the Sobol sequence and the descents."""
        qmc = require("scipy.stats.qmc", "fit", "vcpulab-evidence")
        start = np.log([c.value for c in self._study.calibration.constants])
        sobol = qmc.Sobol(len(start), seed=self._study.calibration.seed)
        points = [start, *qmc.scale(sobol.random(samples), self._low, self._high)]
        costs = []
        for i, point in enumerate(points):
            costs.append(float(np.sum(self.residuals(point) ** 2)))
            say(f"point {i} of {samples}: root mean square error {_rms(costs[-1], len(self._cells))}")
        ends = [self.descend(points[i]) for i in np.argsort(costs, kind="stable")[:best]]
        for _, cost in ends:
            say(f"descended to {_rms(cost, len(self._cells))}")
        return min(ends, key=lambda end: end[1])[0]

    def walk(self, start: np.ndarray, steps: int) -> np.ndarray:
        """The end of a random walk from a point that keeps every improvement."""
        random = np.random.default_rng(self._study.calibration.seed)
        best, cost = start, float(np.sum(self.residuals(start) ** 2))
        for i in range(steps):
            spread = _WALK * 0.1 ** (i / steps)
            moved = random.random(len(best)) < 0.5
            point = np.clip(best + moved * random.normal(0, spread, len(best)), self._low, self._high)
            moved_cost = float(np.sum(self.residuals(point) ** 2))
            if moved_cost < cost:
                best, cost = point, moved_cost
        return best

    def descend(self, start: np.ndarray, without: int | None = None, steps: int = 8) -> tuple[np.ndarray, float]:
        """The end of a least-squares descent from a point, and its sum of squares."""
        least_squares = require("scipy.optimize", "fit", "vcpulab-evidence").least_squares
        inside = np.clip(start, self._low + 1e-6, self._high - 1e-6)
        optimum = least_squares(
            self.residuals,
            inside,
            bounds=(self._low, self._high),
            diff_step=_STEP / np.maximum(np.abs(inside), 1e-3),
            xtol=5e-3,
            ftol=5e-3,
            max_nfev=steps,
            kwargs={"without": without},
        )
        return optimum.x, float(2 * optimum.cost)


def fit(
    study: Study,
    effort: StudyEffort,
    *,
    samples: int = 32,
    best: int = 2,
    walk: int = 0,
    replications: int = 2,
    say: Callable[[str], None] = lambda _: None,
) -> Calibration:
    """Fits a study's constants, and returns them without writing a file.

    Args:
        study: the study.
        effort: whether runs are short, and the number of runs at a time; its precision is not used.
        samples: points of the Sobol sequence.
        best: number of points to descend from.
        walk: number of steps of the random walk from the best end.
        replications: replications of each case at each point.
        say: called with messages about the progress.

    Raises:
        ValueError: the study has nothing to fit.
    """
    cells = [cell for cell in study.seen if study.calibration.fitted_on(cell)]
    if not cells or not study.calibration.constants:
        raise ValueError(f"study {study.name} has nothing to fit")
    work = Fit(study, cells, cases_for(study, cells), effort, replications)
    logs = work.walk(work.search(samples, best, say), walk)
    say(f"walked to {_rms(float(np.sum(work.residuals(logs) ** 2)), len(cells))}")
    constants = study.calibration.constants
    values = {c.name: _six_digits(math.exp(x)) for c, x in zip(constants, logs, strict=True)}
    left_out = []
    for i, cell in enumerate(cells):
        logs_without, _ = work.descend(logs, without=i, steps=3)
        value = work.simulated(logs_without)[i]
        left_out.append(
            _row(cell, value) | {"constants": dict(zip(values, np.exp(logs_without).tolist(), strict=True))}
        )
        say(f"without {cell.metric} of {cell.scheduler} {cell.config}: published {cell.value}, predicted {value:.4g}")
    result = {
        "evaluations": work.evaluations,
        "samples": samples,
        "descents": best,
        "walk": walk,
        "replications": replications,
        "rms_log_error": float(np.sqrt(np.mean(work.residuals(logs) ** 2))),
        "cells": [_row(cell, value) for cell, value in zip(cells, work.simulated(logs), strict=True)],
        "left_out": left_out,
    }
    return replace(study.calibration.with_values(values), fit={key: _rounded(value) for key, value in result.items()})


def cases_for(study: Study, cells: Sequence[Cell]) -> list[Case]:
    """The cases that the estimates of some cells use."""
    from vcpulab_evidence.studies.results import Missing, Results

    case_keys: dict[str, None] = {}

    class RecordedUses(Results):
        def values(self, case: str, metric: str) -> list[float]:  # noqa: ARG002 - any will do
            case_keys[case] = None
            return [1.0]

    for cell in cells:
        try:
            study.estimate(cell, RecordedUses({}))
        except Missing:
            continue
    return [case for case in study.cases() if case.key in case_keys]


def _row(cell: Cell, value: float) -> dict[str, object]:
    named = {name: getattr(cell, name) for name in ("scheduler", "config", "load", "metric")}
    return named | {"published": cell.number, "simulated": value}


def _rms(cost: float, n: int) -> str:
    return f"{100 * math.sqrt(cost / n):.1f} %"


def _six_digits(value: float) -> float:
    """The value with six significant digits; further digits are noise."""
    return float(f"{value:.6g}")


def _rounded(value: object) -> object:
    """A value with all floats rounded to six significant digits."""
    if isinstance(value, float):
        return _six_digits(value)
    if isinstance(value, Mapping):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return value
