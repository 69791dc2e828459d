"""A sweep file: which scenarios, how often. Everything is checked before anything runs."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

from vcpulab import regular
from vcpulab.errors import RequestError, ScenarioError
from vcpulab.scenario import settings
from vcpulab.scenario.scenario import Scenario
from vcpulab.sweeps.axes import Point, groups
from vcpulab.sweeps.reader import REPLICATIONS_MAX, SEED_MAX, Reader
from vcpulab.sweeps.work import digest, key_of

_FILE_BYTES_MAX = 1 << 20
_PROBLEMS_SHOWN = 20


class Unit(NamedTuple):
    """One run of a point."""

    point: int
    replication: int
    seed: int
    key: str


@dataclass(frozen=True)
class Plan:
    """What a sweep file asks for, all of it valid.

    Replication k of every point is its scenario with the seed `seed` + k, so that all points meet the same random
    numbers, and more replications leave those that are there as they are.
    """

    name: str
    base: Scenario
    paths: tuple[str, ...]
    points: tuple[Point, ...]
    """The values of each point, in the order of `paths`."""
    replications: int
    seed: int
    digests: tuple[str, ...]
    """What stands for each point's scenario in the keys of its runs."""
    left_out: tuple[str, ...]
    """Parameters of the scenario that some of the schedulers of the sweep do not have."""
    groups: tuple[tuple[int, ...], ...]
    """The paths by number, those that move together in one group."""

    @classmethod
    def load(cls, path: Path, checked: Callable[[float], bool | None] | None = None) -> Self:
        """Reads a sweep file and checks every point.

        Args:
            path: the file.
            checked: called now and then with the fraction of the points that are checked.

        Raises:
            RequestError: everything that is wrong with the file, or with its points.
            ScenarioError: what is wrong with the scenario that it starts from.
            OSError: it cannot be read.
        """
        with regular.opened(path) as file:
            data = file.read(_FILE_BYTES_MAX + 1)
        if len(data) > _FILE_BYTES_MAX:
            raise RequestError(f"{path}: too long; allowed: at most {_FILE_BYTES_MAX} bytes")
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise RequestError(f"{path}: not a text file (UTF-8)") from None
        return cls.from_toml(text, path, checked)

    @classmethod
    def from_toml(cls, text: str, path: Path, checked: Callable[[float], bool | None] | None = None) -> Self:
        """As `load`; the scenario's file is looked for beside `path`."""
        read = Reader(text, path)
        base = read.scenario()
        axes = read.axes(base)
        replications = read.whole("replications", 1, REPLICATIONS_MAX, base.replications if base else 1)
        seed = read.whole("seed", 0, SEED_MAX - REPLICATIONS_MAX, base.seed if base else 0)
        name = read.name()
        chosen = read.points(axes, replications)
        read.finish()
        assert base is not None, "what is missing is a problem, and problems end in `finish`"
        points = tuple(chosen)
        paths = tuple(axis.path for axis in axes)
        digests, left_out = _check(path, base, paths, points, checked)
        together = tuple(map(tuple, groups(axes)))
        return cls(name, base, paths, points, replications, seed, digests, left_out, together)

    def scenario(self, point: int) -> Scenario:
        """The scenario of a point."""
        return _changed(self.base, _resolved(self.base, self.paths), self.points[point])[0]

    def units(self) -> Iterator[Unit]:
        """Every run, point by point."""
        for point, its in enumerate(self.digests):
            for replication in range(self.replications):
                seed = self.seed + replication
                yield Unit(point, replication, seed, key_of(its, seed))

    def said(self, point: int) -> str:
        """The values of a point, for people."""
        return _said(self.paths, self.points[point])


def _said(paths: Sequence[str], values: Sequence[Any]) -> str:
    return ", ".join(f"{path} = {json.dumps(value)}" for path, value in zip(paths, values, strict=True))


def _resolved(base: Scenario, paths: Sequence[str]) -> list[list[str]]:
    """The settings that each path stands for."""
    document = base.to_dict()
    return [settings.resolve_all(base, path, path, document) for path in paths]


def _changed(base: Scenario, resolved: Sequence[Sequence[str]], values: Sequence[Any]) -> tuple[Scenario, list[str]]:
    """The scenario of a point, and the parameters that its scheduler does not have."""
    changes = {path: value for paths, value in zip(resolved, values, strict=True) for path in paths}
    if any(path.endswith((".scheduler", ".generation")) for path in changes):
        changed = settings.change(base, changes)
        return changed.scenario, changed.left_out
    return base.change(changes), []


def _check(
    path: Path,
    base: Scenario,
    paths: Sequence[str],
    points: Sequence[Sequence[Any]],
    checked: Callable[[float], bool | None] | None,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The digest of each point's scenario.

    Raises:
        RequestError: what is wrong with any of them.
    """
    # Once for all points: it depends on the scenario alone.
    resolved = _resolved(base, paths)
    digests: list[str] = []
    wrong: dict[str, list[int]] = {}
    left_out: dict[str, None] = {}
    for point, values in enumerate(points):
        try:
            scenario, without = _changed(base, resolved, values)
        except ScenarioError as error:
            for problem in error.problems:
                wrong.setdefault(f"{problem['field']}: {problem['message']}", []).append(point)
        except RequestError as error:
            wrong.setdefault(str(error), []).append(point)
        else:
            digests.append(digest(scenario))
            left_out.update(dict.fromkeys(without))
        if checked is not None and point % 64 == 0 and checked(point / len(points)) is False:
            raise KeyboardInterrupt
    if not wrong:
        return tuple(digests), tuple(left_out)
    bad = len({point for those in wrong.values() for point in those})
    lines = [f"{path}: {bad} of {len(points)} points cannot be run; nothing was run"]
    for message, those in list(wrong.items())[:_PROBLEMS_SHOWN]:
        others = "" if len(those) == 1 else f", and {len(those) - 1} more"
        first, *hints = message.splitlines()
        lines.append(f"  {first} (point {those[0]}: {_said(paths, points[those[0]])}{others})")
        lines += hints
    if len(wrong) > _PROBLEMS_SHOWN:
        lines.append(f"  and {len(wrong) - _PROBLEMS_SHOWN} more problems")
    raise RequestError("\n".join(lines))
