"""The fitted constants of a study: the one place where their values stand, with what they were fitted on."""

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
    """Least value that is physically sensible."""
    high: float
    """Greatest value that is physically sensible."""
    sets: Mapping[str, float]
    """Path in the scenario, or FILE:PATH for one template only, to the factor by which the value goes there."""

    def changes(self, template: str) -> dict[str, object]:
        """Its changes to a template, as `Scenario.change` takes it."""
        found: dict[str, object] = {}
        for where, factor in self.sets.items():
            only, _, path = where.rpartition(":")
            if only in ("", template):
                number = round(self.value * factor)
                # Costs of the host are plain integers with their unit in the name; everything else names its unit.
                found[path] = number if path.startswith("host.costs.") or self.unit == "1" else f"{number}{self.unit}"
        return found


@dataclass(frozen=True)
class Calibration:
    """The fitted constants of a study, and the cells they were fitted on."""

    constants: tuple[Constant, ...]
    cells: tuple[Mapping[str, str], ...]
    """The published cells it is fitted on: columns and their values, which tell them from all others."""
    seed: int
    fit: Mapping[str, Any]
    """Results of the fit: errors, and the prediction of each cell when it is left out. Empty: not fitted yet."""

    @classmethod
    def read(cls, file: Traversable) -> Self:
        """Reads what `write` wrote."""
        document = tomllib.loads(file.read_text(encoding="utf-8"))
        constants = tuple(Constant(name, **fields) for name, fields in document.get("constant", {}).items())
        return cls(constants, tuple(document.get("cell", [])), document.get("seed", 1), document.get("fit", {}))

    def text(self) -> str:
        """As a file."""
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
        """The same with other values of some constants."""
        constants = tuple(replace(c, value=values.get(c.name, c.value)) for c in self.constants)
        return replace(self, constants=constants)

    def fitted_on(self, cell: Any) -> bool:
        """Was it fitted on this published cell?"""
        return any(all(getattr(cell, column) == value for column, value in on.items()) for on in self.cells)
