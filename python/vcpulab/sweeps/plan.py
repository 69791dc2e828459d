"""The plan of a sweep, from its file: scenarios and replications. Everything is checked before anything runs."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

from vcpulab._files import safe_open
from vcpulab._work.progress import Progress, report
from vcpulab.errors import RequestError, ScenarioError
from vcpulab.scenario.scenario import Scenario
from vcpulab.sweeps.axes import Point, groups
from vcpulab.sweeps.reader import REPLICATIONS_MAX, SEED_MAX, Reader
from vcpulab.sweeps.work import digest, key_of

_FILE_BYTES_MAX = 1 << 20
_PROBLEMS_SHOWN = 20


class Unit(NamedTuple):
    """A run of a point."""

    point: int
    replication: int
    key: str


@dataclass(frozen=True)
class Plan:
    """The plan of a sweep file, checked.

    Replication k of every point is replication k of its scenario with the seed `seed`, as `vcpulab run` has it. So all
    points have the same random numbers, and more replications do not change existing ones.
    """

    name: str
    base: Scenario
    paths: tuple[str, ...]
    points: tuple[Point, ...]
    """The values of each point, in the order of `paths`."""
    replications: int
    seed: int
    digests: tuple[str, ...]
    """The digest of each point's scenario, for the keys of its runs."""
    left_out: tuple[str, ...]
    """Parameters of the scenario that some of the schedulers of the sweep do not have."""
    groups: tuple[tuple[int, ...], ...]
    """The numbers of the paths, in groups of paths that vary together."""

    @classmethod
    def load(cls, path: Path, checked: Progress | None = None) -> Self:
        """Reads a sweep file and checks every point.

        Args:
            path: the file.
            checked: called now and then with the fraction of the points that are checked; `False` cancels.

        Raises:
            RequestError: the file or its points are wrong; the message lists every problem.
            ScenarioError: the base scenario is wrong.
            OSError: the file cannot be read.
        """
        with safe_open.opened(path) as file:
            data = file.read(_FILE_BYTES_MAX + 1)
        if len(data) > _FILE_BYTES_MAX:
            raise RequestError(f"{path}: too long; allowed: at most {_FILE_BYTES_MAX} bytes")
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise RequestError(f"{path}: not a text file (UTF-8)") from None
        return cls.from_toml(text, path, checked)

    @classmethod
    def from_toml(cls, text: str, path: Path, checked: Progress | None = None) -> Self:
        """Reads a plan from text; the path of the scenario's file is relative to the folder of `path`."""
        read = Reader(text, path)
        base = read.scenario()
        axes = read.axes(base)
        replications = read.whole("replications", 1, REPLICATIONS_MAX, base.replications if base else 1)
        seed = read.whole("seed", 0, SEED_MAX, base.seed if base else 0)
        name = read.name()
        chosen = read.points(axes, replications)
        read.finish()
        assert base is not None, "a missing scenario is a problem, and `finish` raises problems"
        points = tuple(chosen)
        paths = tuple(axis.path for axis in axes)
        digests, left_out = _check(path, base, paths, points, checked)
        together = tuple(map(tuple, groups(axes)))
        return cls(name, base, paths, points, replications, seed, digests, left_out, together)

    def scenario(self, point: int) -> Scenario:
        """The scenario of a point."""
        return self.base.changed(zip(self.paths, self.points[point], strict=True)).scenario

    def units(self) -> Iterator[Unit]:
        """Every run, point by point."""
        for point, scenario_digest in enumerate(self.digests):
            for replication in range(self.replications):
                yield Unit(point, replication, key_of(scenario_digest, self.seed, replication))

    def values_text(self, point: int) -> str:
        """The values of a point as text."""
        return _values_text(self.paths, self.points[point])


def _values_text(paths: Sequence[str], values: Sequence[Any]) -> str:
    return ", ".join(f"{path} = {json.dumps(value)}" for path, value in zip(paths, values, strict=True))


def _check(
    path: Path,
    base: Scenario,
    paths: Sequence[str],
    points: Sequence[Sequence[Any]],
    checked: Progress | None,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The digest of each point's scenario.

    Raises:
        RequestError: points are wrong; the message lists the problems.
    """
    digests: list[str] = []
    wrong: dict[str, list[int]] = {}
    left_out: dict[str, None] = {}
    for point, values in enumerate(points):
        try:
            changed = base.changed(zip(paths, values, strict=True))
        except ScenarioError as error:
            for problem in error.problems:
                wrong.setdefault(f"{problem['field']}: {problem['message']}", []).append(point)
        except RequestError as error:
            wrong.setdefault(str(error), []).append(point)
        else:
            digests.append(digest(changed.scenario))
            left_out.update(dict.fromkeys(changed.left_out))
        if point % 64 == 0:
            report(checked, point / len(points))
    if not wrong:
        return tuple(digests), tuple(left_out)
    bad = len({point for bad_points in wrong.values() for point in bad_points})
    lines = [f"{path}: {bad} of {len(points)} points cannot be run; nothing was run"]
    for message, bad_points in list(wrong.items())[:_PROBLEMS_SHOWN]:
        more = "" if len(bad_points) == 1 else f", and {len(bad_points) - 1} more"
        first, *hints = message.splitlines()
        lines.append(f"  {first} (point {bad_points[0]}: {_values_text(paths, points[bad_points[0]])}{more})")
        lines += hints
    if len(wrong) > _PROBLEMS_SHOWN:
        lines.append(f"  and {len(wrong) - _PROBLEMS_SHOWN} more problems")
    raise RequestError("\n".join(lines))
