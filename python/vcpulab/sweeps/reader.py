"""Reads a sweep file, and reports every problem with its place."""

import difflib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import tomli_w

from vcpulab import _engine
from vcpulab.errors import RequestError
from vcpulab.scenario.names import is_pattern
from vcpulab.scenario.scenario import Scenario
from vcpulab.sweeps import sobol
from vcpulab.sweeps.axes import Axis, Point, Span, grid, groups, sample

RUNS_MAX = 1_000_000
AXES_MAX = sobol.DIMENSIONS_MAX
REPLICATIONS_MAX = 10_000
SEED_MAX = 2**63 - 1
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_OWN = {"seed": "seed", "run.replications": "replications"}
"""Fields of a scenario that the sweep file sets itself."""


class Reader:
    """A reader of a sweep file, field by field, which collects problems."""

    def __init__(self, text: str, path: Path) -> None:
        self._lines = text.splitlines()
        self._path = path
        self._problems: list[str] = []
        try:
            # Read by the engine: Python's reader supports an older version of TOML.
            self._document: dict[str, Any] = json.loads(_engine.tables(text))
        except ValueError as error:
            raise RequestError(f"{path}: {error}".rstrip()) from None
        if "domain" in self._document and "vary" not in self._document:
            raise RequestError(
                f"{path}: is a scenario; allowed: a sweep file\n  hint: it names `{path.name}` as its scenario"
            )
        self._fields(self._document, "", ("name", "scenario", "replications", "seed", "vary", "sample"))

    def finish(self) -> None:
        """Raises:
        RequestError: the file has problems; the message lists them.
        """  # noqa: D205
        if self._problems:
            raise RequestError("\n".join(self._problems))

    def scenario(self) -> Scenario | None:
        """The base scenario of the sweep; `None`: it has a problem."""
        given = self._document.get("scenario")
        try:
            if isinstance(given, dict):
                infinite = _infinite(given, "scenario")
                if infinite is not None:
                    raise RequestError(f"{self._path}: {infinite}: found `nan` or `inf`; allowed: finite numbers")
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
        """The name of the sweep: by default the name of its file."""
        name = self._document.get("name", re.sub(r"[^A-Za-z0-9_.-]", "-", self._path.stem).lstrip(".-") or "sweep")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            self._wrong("name", name, "up to 64 letters, digits, `_`, `-` and `.`, a letter, digit or `_` first")
        return str(name)

    def whole(self, field: str, low: int, high: int, default: int | None, table: str = "") -> int:
        """The integer in a field."""
        holder = self._document.get(table, {}) if table else self._document
        value = holder.get(field, default)
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        name, allowed = f"{table}.{field}" if table else field, f"an integer from {low} to {high}"
        if field in holder or value is None:
            self._wrong(name, value, allowed)
        else:
            self._say(name, f"not given, and the scenario has `{value}`; allowed: {allowed}")
        return low

    def axes(self, base: Scenario | None) -> tuple[Axis, ...]:
        """The axes of the sweep."""
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
                # A pattern, or the name of alike domains, is kept: all fields that it means vary together.
                meant = base.addressed(path)
                path = path if is_pattern(path) or len(meant) > 1 else meant[0]
            except RequestError as error:
                # Without the value, which the place has.
                problem = RequestError(error.reason, allowed=error.allowed, hint=error.hint)
                self._problems.append(problem.text(self._place(f"{where}.path")))
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

    def points(self, axes: Sequence[Axis], replications: int) -> Iterator[Point]:
        """The points: the whole grid, or a sample."""
        for members in groups(axes):
            lengths = [len(axes[index].values) for index in members]
            if len(set(lengths)) > 1:
                label = axes[members[0]].zip
                self._say("vary", f"axes with `zip = {label}` have {lengths} values; allowed: as many each")
        table = self._document.get("sample")
        if table is None:
            self._limit_grid(axes, replications)
            return grid(axes)
        if not isinstance(table, dict):
            self._wrong("sample", table, "a table, such as { points = 64 }")
            return iter(())
        self._fields(table, "sample.", ("method", "points", "seed"))
        method = table.get("method", "sobol")
        if method not in ("sobol", "random"):
            self._wrong("sample.method", method, "`sobol` or `random`")
        number = self.whole("points", 1, RUNS_MAX // replications, None, "sample")
        return sample(axes, str(method), number, self.whole("seed", 0, SEED_MAX, 0, "sample"))

    def _limit_grid(self, axes: Sequence[Axis], replications: int) -> None:
        lengths = [len(axes[members[0]].values) for members in groups(axes)]
        runs = math.prod(lengths) * replications
        if runs > RUNS_MAX:
            size = " × ".join(str(length) for length in lengths)
            self._say(
                "vary",
                f"{size} points × {replications} replications are {runs} runs; allowed: at most {RUNS_MAX}\n"
                "  hint: a sample: sample = { points = 1000 }",
            )

    def _fields(self, table: Mapping[str, Any], prefix: str, allowed: Sequence[str]) -> None:
        for field in table:
            if field not in allowed:
                near = difflib.get_close_matches(field, allowed, n=1)
                hint = f"\n  hint: did you mean `{near[0]}`?" if near else ""
                self._say(f"{prefix}{field}", f"unknown field; allowed: {', '.join(allowed)}{hint}")

    def _wrong(self, field: str, value: object, allowed: str) -> None:
        shown = "nothing" if value is None else f"`{str(value)[:80]}`"
        self._say(field, f"found {shown}; allowed: {allowed}")

    def _say(self, field: str, message: str) -> None:
        self._problems.append(f"{self._place(field)}: {message}")

    def _place(self, field: str) -> str:
        """File, line (where it can be determined) and field."""
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


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return _is_whole(value) or (isinstance(value, float) and math.isfinite(value))


def _infinite(value: Any, path: str = "") -> str | None:
    """The path of a number that is not finite, which the engine's reader returns as `None`; `None`: all are finite.

    Examples:
        >>> _infinite({"vary": [{"values": [1, None]}]}), _infinite({"seed": 1})
        ('vary[0].values[1]', None)
    """
    if value is None:
        return path
    if isinstance(value, dict):
        parts = ((f"{path}.{name}" if path else name, part) for name, part in value.items())
    elif isinstance(value, list):
        parts = ((f"{path}[{at}]", part) for at, part in enumerate(value))
    else:
        return None
    return next((infinite for where, part in parts if (infinite := _infinite(part, where)) is not None), None)
