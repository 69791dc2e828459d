"""A sweep file: which scenarios, how often. Everything is checked before anything runs."""

import difflib
import json
import math
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, Self

from vcpulab import _engine, settings
from vcpulab.scenario import Scenario
from vcpulab.sweep.work import canonical, key_of
from vcpulab.usage import UsageError

RUNS_MAX = 1_000_000
AXES_MAX = 64
_FILE_BYTES_MAX = 1 << 20
_REPLICATIONS_MAX = 10_000
_SEED_MAX = 2**63 - 1
_PROBLEMS_SHOWN = 20
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_OWN = {"seed": "seed", "run.replications": "replications"}
"""Fields of a scenario that the sweep file sets itself."""


class Span(NamedTuple):
    """All values between two."""

    low: float
    high: float
    whole: bool
    """Only integers: both ends are."""
    logarithmic: bool
    unit: str

    def at(self, fraction: float) -> int | float | str:
        """The value at a fraction of the way, 0 to 1."""
        if self.logarithmic:
            value = math.exp(math.log(self.low) + fraction * (math.log(self.high) - math.log(self.low)))
        else:
            value = self.low + fraction * (self.high - self.low)
        # Twelve digits: what a way through logarithms adds behind them is not meant.
        value = min(max(float(f"{value:.12g}"), self.low), self.high)
        number = round(value) if self.whole else value
        return f"{number}{self.unit}" if self.unit else number

    def steps(self, number: int) -> tuple[int | float | str, ...]:
        """So many values, evenly spaced, both ends among them."""
        return tuple(self.at(index / max(number - 1, 1)) for index in range(number))


class Axis(NamedTuple):
    """A field that varies."""

    path: str
    values: tuple[Any, ...]
    """What it takes; empty: anything in the span."""
    span: Span | None
    zip: str | None
    """Axes of the same name here move together."""

    def at(self, fraction: float) -> Any:
        """The value for a sample, 0 up to but not 1."""
        if self.span is not None and not self.values:
            return self.span.at(fraction)
        return self.values[int(fraction * len(self.values))]


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
    points: tuple[tuple[Any, ...], ...]
    """The values of each point, in the order of `paths`."""
    replications: int
    seed: int
    digests: tuple[str, ...]
    """What stands for each point's scenario in the keys of its runs."""
    left_out: tuple[str, ...]
    """Parameters of the scenario that some of the schedulers of the sweep do not have."""

    @classmethod
    def load(cls, path: Path, checked: Callable[[float], bool] | None = None) -> Self:
        """Reads a sweep file and checks every point.

        Args:
            path: the file.
            checked: called now and then with the fraction of the points that are checked.

        Raises:
            UsageError: everything that is wrong with the file, or with its points.
            ScenarioError: what is wrong with the scenario that it starts from.
            OSError: it cannot be read.
        """
        with path.open("rb") as file:
            data = file.read(_FILE_BYTES_MAX + 1)
        if len(data) > _FILE_BYTES_MAX:
            raise UsageError(f"{path}: too long; allowed: at most {_FILE_BYTES_MAX} bytes")
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise UsageError(f"{path}: not a text file (UTF-8)") from None
        return cls.from_toml(text, path, checked)

    @classmethod
    def from_toml(cls, text: str, path: Path, checked: Callable[[float], bool] | None = None) -> Self:
        """As `load`; the scenario's file is looked for beside `path`."""
        read = _Reader(text, path)
        base = read.scenario()
        axes = read.axes(base)
        replications = read.whole("replications", 1, _REPLICATIONS_MAX, base.replications if base else 1)
        seed = read.whole("seed", 0, _SEED_MAX - _REPLICATIONS_MAX, base.seed if base else 0)
        name = read.name()
        choose = read.choice(axes, replications)
        read.finish()
        assert base is not None, "what is missing is a problem, and problems end in `finish`"
        points = tuple(choose())
        paths = tuple(axis.path for axis in axes)
        digests, left_out = _check(path, base, paths, points, checked)
        return cls(name, base, paths, points, replications, seed, digests, left_out)

    def scenario(self, point: int) -> Scenario:
        """The scenario of a point."""
        return _changed(self.base, self.paths, self.points[point])[0]

    def units(self) -> Iterator[Unit]:
        """Every run, point by point."""
        for point, digest in enumerate(self.digests):
            for replication in range(self.replications):
                seed = self.seed + replication
                yield Unit(point, replication, seed, key_of(digest, seed))

    def said(self, point: int) -> str:
        """The values of a point, for people."""
        return _said(self.paths, self.points[point])


def _said(paths: Sequence[str], values: Sequence[Any]) -> str:
    return ", ".join(f"{path} = {json.dumps(value)}" for path, value in zip(paths, values, strict=True))


def _changed(base: Scenario, paths: Sequence[str], values: Sequence[Any]) -> tuple[Scenario, list[str]]:
    """The scenario of a point, and the parameters that its scheduler does not have."""
    changes = dict(zip(paths, values, strict=True))
    if any(path.endswith((".scheduler", ".generation")) for path in paths):
        changed = settings.change(base, changes)
        return changed.scenario, changed.left_out
    return base.change(changes), []


def _check(
    path: Path,
    base: Scenario,
    paths: Sequence[str],
    points: Sequence[Sequence[Any]],
    checked: Callable[[float], bool] | None,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The digest of each point's scenario.

    Raises:
        UsageError: what is wrong with any of them.
    """
    digests: list[str] = []
    wrong: dict[str, list[int]] = {}
    left_out: dict[str, None] = {}
    for point, values in enumerate(points):
        try:
            scenario, without = _changed(base, paths, values)
        except _engine.ScenarioError as error:
            for problem in error.problems:
                wrong.setdefault(f"{problem['field']}: {problem['message']}", []).append(point)
        except (KeyError, UsageError) as error:
            wrong.setdefault(str(error.args[0]), []).append(point)
        else:
            digests.append(sha256(canonical(scenario).encode()).hexdigest())
            left_out.update(dict.fromkeys(without))
        if checked is not None and point % 64 == 0 and not checked(point / len(points)):
            raise KeyboardInterrupt
    if not wrong:
        return tuple(digests), tuple(left_out)
    bad = len({point for those in wrong.values() for point in those})
    lines = [f"{path}: {bad} of {len(points)} points cannot be run; nothing was run"]
    for message, those in list(wrong.items())[:_PROBLEMS_SHOWN]:
        others = "" if len(those) == 1 else f", and {len(those) - 1} more"
        lines.append(f"  {message} (point {those[0]}: {_said(paths, points[those[0]])}{others})")
    if len(wrong) > _PROBLEMS_SHOWN:
        lines.append(f"  and {len(wrong) - _PROBLEMS_SHOWN} more problems")
    raise UsageError("\n".join(lines))


class _Reader:
    """Reads a sweep file field by field, and keeps what is wrong with it."""

    def __init__(self, text: str, path: Path) -> None:
        self._lines = text.splitlines()
        self._path = path
        self._problems: list[str] = []
        try:
            # By the engine's own reader: Python's knows an older TOML.
            self._document: dict[str, Any] = json.loads(_engine.tables(text))
        except ValueError as error:
            raise UsageError(f"{path}: {error}".rstrip()) from None
        self._fields(self._document, "", ("name", "scenario", "replications", "seed", "vary", "sample"))

    def finish(self) -> None:
        """Raises:
        UsageError: everything that was wrong.
        """  # noqa: D205
        if self._problems:
            raise UsageError("\n".join(self._problems))

    def scenario(self) -> Scenario | None:
        """The scenario that the sweep starts from."""
        given = self._document.get("scenario")
        try:
            if isinstance(given, dict):
                import tomli_w

                text = tomli_w.dumps(given)
                return Scenario.from_toml(text, f"{self._path}: [scenario]", folder=self._path.parent)
            if isinstance(given, str):
                return Scenario.load(self._path.parent / given)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            self._wrong("scenario", given, f"a scenario file, beside this one ({reason})")
            return None
        self._wrong("scenario", given, "the name of a scenario file, or a scenario as a table")
        return None

    def name(self) -> str:
        """What the sweep is called: after its file unless it says otherwise."""
        name = self._document.get("name", re.sub(r"[^A-Za-z0-9_.-]", "-", self._path.stem).lstrip(".-") or "sweep")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            self._wrong("name", name, "up to 64 letters, digits, `_`, `-` and `.`, a letter, digit or `_` first")
        return str(name)

    def whole(self, field: str, low: int, high: int, default: int | None, table: str = "") -> int:
        """An integer."""
        holder = self._document.get(table, {}) if table else self._document
        value = holder.get(field, default)
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        self._wrong(f"{table}.{field}" if table else field, value, f"an integer from {low} to {high}")
        return low

    def axes(self, base: Scenario | None) -> tuple[Axis, ...]:
        """What varies."""
        tables = self._document.get("vary", [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            self._wrong("vary", tables, "tables [[vary]]")
            return ()
        if not 1 <= len(tables) <= AXES_MAX:
            self._wrong("vary", f"{len(tables)} tables", f"1 to {AXES_MAX} tables [[vary]]")
            return ()
        axes = [self._axis(f"vary[{index}]", table, base) for index, table in enumerate(tables)]
        paths: set[str] = set()
        for index, axis in enumerate(axes):
            if axis.path in paths:
                self._say(f"vary[{index}].path", f"`{axis.path}` varies already")
            paths.add(axis.path)
        return tuple(axes)

    def _axis(self, where: str, table: Mapping[str, Any], base: Scenario | None) -> Axis:
        self._fields(table, f"{where}.", ("path", "values", "from", "to", "steps", "scale", "unit", "zip"))
        path, label = table.get("path"), table.get("zip")
        if not isinstance(path, str) or not path:
            self._wrong(f"{where}.path", path, "a field of the scenario, such as domain.web.weight")
            path = ""
        elif path in _OWN:
            self._say(f"{where}.path", f"found `{path}`; allowed: other fields\n  hint: `{_OWN[path]} = …` above")
        elif base is not None:
            try:
                path = settings.resolve(base, path, self._place(f"{where}.path"))
            except UsageError as error:
                self._problems.append(str(error))
        if label is not None and (not isinstance(label, str) or not label):
            self._wrong(f"{where}.zip", label, "a name")
            label = None
        if ("values" in table) == ("from" in table or "to" in table):
            self._say(where, "allowed: either `values`, or `from` and `to`")
            return Axis(path, (None,), None, label)
        if "values" in table:
            for field in ("steps", "scale", "unit"):
                if field in table:
                    self._say(f"{where}.{field}", "allowed: only with `from` and `to`")
            values = table["values"]
            if not isinstance(values, list) or not 1 <= len(values) <= RUNS_MAX:
                self._wrong(f"{where}.values", values, f"a list of 1 to {RUNS_MAX} values")
                values = [None]
            return Axis(path, tuple(values), None, label)
        return self._range(where, table, path, label)

    def _range(self, where: str, table: Mapping[str, Any], path: str, label: str | None) -> Axis:
        low, high = table.get("from"), table.get("to")
        for field, value in (("from", low), ("to", high)):
            if not _is_number(value):
                self._wrong(f"{where}.{field}", value, 'a number (its unit: `unit = "ms"`)')
        scale, unit = table.get("scale", "linear"), table.get("unit", "")
        if scale not in ("linear", "log"):
            self._wrong(f"{where}.scale", scale, "`linear` or `log`")
        if not isinstance(unit, str):
            self._wrong(f"{where}.unit", unit, "a unit, such as `ms`")
        if not (_is_number(low) and _is_number(high)):
            return Axis(path, (None,), None, label)
        assert isinstance(low, (int, float)), "it is a number"
        assert isinstance(high, (int, float)), "it is a number"
        if not low < high:
            self._wrong(f"{where}.to", high, f"more than `from`, {low}")
        if scale == "log" and low <= 0:
            self._wrong(f"{where}.from", low, "more than 0 on a logarithmic scale")
            scale = "linear"
        span = Span(low, high, _is_whole(low) and _is_whole(high), scale == "log", str(unit))
        steps = table.get("steps")
        if steps is None:
            if "sample" not in self._document:
                self._say(where, f"`steps` is missing; allowed: an integer from 2 to {RUNS_MAX}")
            return Axis(path, (), span, label)
        if not _is_whole(steps) or not 2 <= steps <= RUNS_MAX:
            self._wrong(f"{where}.steps", steps, f"an integer from 2 to {RUNS_MAX}")
            return Axis(path, (), span, label)
        if self._problems:
            return Axis(path, (None,), None, label)
        return Axis(path, span.steps(steps), span, label)

    def choice(self, axes: Sequence[Axis], replications: int) -> Callable[[], Iterator[tuple[Any, ...]]]:
        """How the points are chosen: on the whole grid or as a sample."""
        groups: dict[str, list[int]] = {}
        for index, axis in enumerate(axes):
            groups.setdefault(f"zip {axis.zip}" if axis.zip else f"axis {index}", []).append(index)
        for label, members in groups.items():
            lengths = [len(axes[index].values) for index in members]
            if len(set(lengths)) > 1:
                self._say(
                    "vary", f"axes with `{label.replace(' ', ' = ')}` have {lengths} values; allowed: as many each"
                )
        sample = self._document.get("sample")
        if sample is None:
            return self._grid(axes, list(groups.values()), replications)
        if not isinstance(sample, dict):
            self._wrong("sample", sample, "a table, such as { points = 64 }")
            return lambda: iter(())
        self._fields(sample, "sample.", ("method", "points", "seed"))
        method = sample.get("method", "sobol")
        if method not in ("sobol", "random"):
            self._wrong("sample.method", method, "`sobol` or `random`")
        points = self.whole("points", 1, RUNS_MAX // replications, None, "sample")
        seed = self.whole("seed", 0, _SEED_MAX, 0, "sample")
        return lambda: _sample(axes, list(groups.values()), str(method), points, seed)

    def _grid(
        self, axes: Sequence[Axis], groups: Sequence[Sequence[int]], replications: int
    ) -> Callable[[], Iterator[tuple[Any, ...]]]:
        lengths = [len(axes[members[0]].values) for members in groups]
        runs = math.prod(lengths) * replications
        if runs > RUNS_MAX:
            said = " × ".join(str(length) for length in lengths)
            self._say(
                "vary",
                f"{said} points × {replications} replications are {runs} runs; allowed: at most {RUNS_MAX}\n"
                "  hint: a sample: sample = { points = 1000 }",
            )

        def points() -> Iterator[tuple[Any, ...]]:
            for indexes in product(*(range(length) for length in lengths)):
                values: list[Any] = [None] * len(axes)
                for members, index in zip(groups, indexes, strict=True):
                    for axis in members:
                        values[axis] = axes[axis].values[index]
                yield tuple(values)

        return points

    def _fields(self, table: Mapping[str, Any], prefix: str, known: Sequence[str]) -> None:
        for field in table:
            if field not in known:
                near = difflib.get_close_matches(field, known, n=1)
                hint = f"\n  hint: did you mean `{near[0]}`?" if near else ""
                self._say(f"{prefix}{field}", f"unknown field; allowed: {', '.join(known)}{hint}")

    def _wrong(self, field: str, found: object, allowed: str) -> None:
        said = "nothing" if found is None else f"`{str(found)[:80]}`"
        self._say(field, f"found {said}; allowed: {allowed}")

    def _say(self, field: str, message: str) -> None:
        self._problems.append(f"{self._place(field)}: {message}")

    def _place(self, field: str) -> str:
        """File, line (as far as a look at the text tells) and field."""
        line = self._line(field)
        return f"{self._path}{'' if line is None else f':{line}'}: {field}"

    def _line(self, field: str) -> int | None:
        match = re.fullmatch(r"(?:vary\[(?P<axis>\d+)\]|(?P<table>sample)(?=\.))?\.?(?P<name>\w*)", field)
        if match is None:
            return None
        header = r"\s*\[\[\s*vary\s*\]\]" if match["axis"] else r"\s*\[\s*sample\s*\]" if match["table"] else None
        headers = [number for number, line in enumerate(self._lines) if header and re.match(header, line)]
        first = 0
        if header is not None:
            index = int(match["axis"] or 0)
            if index >= len(headers):
                return None
            first = headers[index]
        for number in range(first, len(self._lines)):
            if match["name"] and re.match(rf"\s*{match['name']}\s*=", self._lines[number]):
                return number + 1
            if number > first and self._lines[number].lstrip().startswith("["):
                break
        return first + 1 if header is not None else None


def _sample(
    axes: Sequence[Axis], groups: Sequence[Sequence[int]], method: str, number: int, seed: int
) -> Iterator[tuple[Any, ...]]:
    """Points spread over the axes: by Sobol's sequence, shifted by chance, or by chance alone.

    Sobol 1967, "On the distribution of points in a cube and the approximate evaluation of integrals"; the shift modulo
    1 is that of Cranley and Patterson 1976, "Randomization of number theoretic methods for multiple integration".
    """
    chance = random.Random(seed)
    if method == "random":
        fractions: Iterator[list[float]] = ([chance.random() for _ in groups] for _ in range(number))
    else:
        from scipy.stats.qmc import Sobol

        shift = [chance.random() for _ in groups]
        sequence = Sobol(len(groups), scramble=False).random_base2(max(number - 1, 0).bit_length())[:number]
        fractions = ([(float(x) + by) % 1.0 for x, by in zip(row, shift, strict=True)] for row in sequence)
    for row in fractions:
        values: list[Any] = [None] * len(axes)
        for members, fraction in zip(groups, row, strict=True):
            for axis in members:
                values[axis] = axes[axis].at(fraction)
        yield tuple(values)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return _is_whole(value) or (isinstance(value, float) and math.isfinite(value))
