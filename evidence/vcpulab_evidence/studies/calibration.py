"""The fitted constants of a study, with the cells that they were fitted on."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources.abc import Traversable
from typing import Any, Self

import tomli_w


@dataclass(frozen=True)
class Constant:
    """A physical constant that is fitted."""

    name: str
    meaning: str
    unit: str
    """`ns`, `B`, or `1` for a number without a unit."""
    value: float
    low: float
    """Least physically sensible value."""
    high: float
    """Greatest physically sensible value."""
    sets: Mapping[str, float]
    """The factors of the value in the scenario, by path, or by FILE:PATH for a single template."""

    def changes(self, template: str) -> dict[str, object]:
        """The changes of the constant to a template, for `Scenario.change`."""
        by_path: dict[str, object] = {}
        for where, factor in self.sets.items():
            only, _, path = where.rpartition(":")
            if only in ("", template):
                number = round(self.value * factor)
                # Costs of the host are integers with their unit in the name; other values have a unit.
                by_path[path] = number if path.startswith("host.costs.") or self.unit == "1" else f"{number}{self.unit}"
        return by_path


@dataclass(frozen=True)
class Calibration:
    """The fitted constants of a study, and the cells that they were fitted on."""

    constants: tuple[Constant, ...]
    cells: tuple[Mapping[str, str], ...]
    """The published cells of the fit: columns and values that identify each cell."""
    seed: int
    fit: Mapping[str, Any]
    """Results of the fit: errors, and the prediction of each cell when it is left out; empty: not fitted yet."""

    @classmethod
    def read(cls, file: Traversable) -> Self:
        """Reads a calibration from a file with the `text` of one."""
        document = tomllib.loads(file.read_text(encoding="utf-8"))
        constants = tuple(Constant(name, **fields) for name, fields in document.get("constant", {}).items())
        return cls(constants, tuple(document.get("cell", [])), document.get("seed", 1), document.get("fit", {}))

    def text(self) -> str:
        """The content of the file."""
        constants = {
            c.name: {key: getattr(c, key) for key in ("meaning", "unit", "value", "low", "high", "sets")}
            for c in self.constants
        }
        document = {"seed": self.seed, "constant": constants, "cell": list(self.cells), "fit": dict(self.fit)}
        return "# Written by `vcpulab study fit`.\n" + tomli_w.dumps(document)

    def changes(self, template: str) -> dict[str, object]:
        """The changes of all constants to a template."""
        return {path: value for constant in self.constants for path, value in constant.changes(template).items()}

    def with_values(self, values: Mapping[str, float]) -> Self:
        """The calibration with other values of some constants."""
        constants = tuple(replace(c, value=values.get(c.name, c.value)) for c in self.constants)
        return replace(self, constants=constants)

    def fitted_on(self, cell: Any) -> bool:
        """Whether the constants were fitted on a published cell."""
        return any(all(getattr(cell, column) == value for column, value in on.items()) for on in self.cells)
