"""A cache of measured values, with keys that cover everything the values depend on.

Measured values follow from the scenario, the engine, and the Python code that reads the values from the engine's
results. So a key covers the engine's binary, and the source of the measuring module with all modules of its package
and of this one that it imports, directly or not. A fixed statistic or metric makes new keys, and no stale value is
returned. A fixed chart, claim or command makes no new keys, as it decides no value: with whole packages in every key, a
new wording of a report would discard hours of runs.
"""

import ast
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

from vcpulab import _engine

_PARSING = Lock()
"""A lock around the parser: Python 3.11 counts the depth of all threads' trees together (CPython's issue 106905)."""
_TRIES = 10
"""Attempts to parse a source: other libraries parse in threads of their own without the lock."""
_ENGINE = "vcpulab._engine"


@cache
def maker(*modules: str) -> str:
    """A hash of everything that makes a value: the engine, these modules, and every source that they import.

    Args:
        modules: the modules that measure, such as `vcpulab.sweeps.work`.
    """
    hashed = sha256(_engine_hash())
    for name, file in sources(*modules).items():
        hashed.update(f"\0{name}\0".encode())
        hashed.update(file.read_bytes())
    return hashed.hexdigest()


@cache
def _engine_hash() -> bytes:
    return sha256(Path(_engine.__file__).read_bytes()).digest()


def key(made_by: str, *depends: str) -> str:
    """The key of a value, from its maker and everything else that the value depends on.

    Examples:
        >>> key("maker", "scenario", "1") == key("maker", "scenario", "2")
        False
    """
    return sha256("\0".join((made_by, *depends)).encode()).hexdigest()[:32]


def sources(*modules: str) -> dict[str, Path]:
    """Modules with all modules of their packages and of this one that they import: name to file, sorted by name.

    Raises:
        ModuleNotFoundError: there is no such module.
    """
    folders = {package: _folder(package) for package in {"vcpulab", *(name.partition(".")[0] for name in modules)}}
    files: dict[str, Path] = {}
    to_do = list(modules)
    while to_do:
        name = to_do.pop()
        if name in files or name == _ENGINE:
            continue
        file = _file(name, folders)
        if file is None:
            raise ModuleNotFoundError(f"no module `{name}`")
        files[name] = file
        to_do += _imported(file, folders)
    return dict(sorted(files.items()))


def _folder(package: str) -> Path:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"no package `{package}`")
    return Path(spec.origin).parent


def _imported(file: Path, folders: Mapping[str, Path]) -> Iterator[str]:
    """The modules of the packages that a file imports, at its head or in a function."""
    for node in _run(_parsed(file.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if _file(alias.name, folders) is not None)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                # A package imports nothing of its own for the sake of one of its modules: only the module counts.
                full = f"{node.module}.{alias.name}"
                if full == _ENGINE or _file(full, folders) is not None:
                    yield full
                elif _file(node.module, folders) is not None:
                    yield node.module


def _parsed(source: bytes) -> ast.AST:
    with _PARSING:
        for _ in range(_TRIES - 1):
            with suppress(SystemError):
                return ast.parse(source)
        return ast.parse(source)


def _run(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes of a tree, except nodes that only a type checker reads."""
    to_do = [tree]
    while to_do:
        node = to_do.pop()
        yield node
        typing_only = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        to_do += node.orelse if typing_only else ast.iter_child_nodes(node)  # type: ignore[attr-defined]


def _file(module: str, folders: Mapping[str, Path]) -> Path | None:
    package, _, inside = module.partition(".")
    if package not in folders:
        return None
    path = folders[package] / inside.replace(".", "/")
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


class RunCache:
    """Measured values by key, in a file that only grows; each line has its own hash."""

    def __init__(self, path: Path | None) -> None:
        """Reads the values in the file; `None`: values are kept in memory only."""
        self._path = path
        self._values: dict[str, dict[str, float]] = {}
        self.damaged = 0
        """Number of lines whose hash does not match: their values are measured again."""
        if path is not None and path.exists():
            whole = path.read_bytes()
            *lines, cut = whole.split(b"\n")
            for line in lines:
                unit = _unit(line)
                if unit is None:
                    self.damaged += 1
                else:
                    self._values[unit["key"]] = unit["metrics"]
            # A last line without an end was cut off when its writer was killed: it is no damage.
            if cut:
                with path.open("r+b") as file:
                    file.truncate(len(whole) - len(cut))

    def get(self, key: str) -> dict[str, float] | None:
        """The measured values of a key; `None`: none were measured."""
        return self._values.get(key)

    def add(self, key: str, case: str, replication: int, metrics: dict[str, float]) -> None:
        """Keeps measured values; `case` and `replication` are for readers of the file."""
        self._values[key] = metrics
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            unit = {"key": key, "case": case, "replication": replication, "metrics": metrics}
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({**unit, _HASH: _hash(unit)}) + "\n")

    @property
    def note(self) -> str | None:
        """A note about damaged lines; `None`: no line is damaged."""
        if not self.damaged:
            return None
        lines = "1 line is" if self.damaged == 1 else f"{self.damaged} lines are"
        return f"{self._path}: {lines} damaged (not what the hash says): left out, and measured again where needed"


_HASH = "hash"


def _hash(unit: Mapping[str, object]) -> str:
    return sha256(json.dumps(unit, sort_keys=True).encode()).hexdigest()[:32]


def _unit(line: bytes) -> dict[str, Any] | None:
    """The content of a line; `None`: the line is damaged."""
    try:
        unit = json.loads(line)
        stored_hash = unit.pop(_HASH)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return unit if stored_hash == _hash(unit) else None
