"""The base of the tables of a complete scenario: immutable values whose fields are attributes."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

_Item = TypeVar("_Item")


class Table:
    """A table of a complete scenario. Tables with the same fields are equal."""

    _FIELDS: frozenset[str] = frozenset()
    """The names of all fields but scheduler and application parameters."""

    _table: Mapping[str, Any]

    def __init__(self, table: Mapping[str, Any]) -> None:
        """Takes the fields as a complete scenario file has them."""
        self.__dict__["_table"] = table

    def _params(self) -> dict[str, Any]:
        return {name: value for name, value in self._table.items() if name not in self._FIELDS}

    def _list(self, name: str, kind: Callable[[Any], _Item]) -> tuple[_Item, ...]:
        """The items of a list; none if the field is absent."""
        return tuple(map(kind, self._table.get(name, ())))

    def _named(self, name: str, kind: Callable[[Any], _Item]) -> dict[str, _Item]:
        """The tables of a field, by name; none if the field is absent."""
        return {key: kind(table) for key, table in self._table.get(name, {}).items()}

    def _optional(self, name: str, kind: Callable[[Any], _Item]) -> _Item | None:
        """The value of a field; `None`: the field is absent."""
        value = self._table.get(name)
        return None if value is None else kind(value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be set: Scenario.change makes another scenario")

    def __eq__(self, value: object) -> bool:
        return isinstance(value, Table) and type(self) is type(value) and self._table == value._table

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._table.items())})"


def single_or_each(kind: Callable[[Any], _Item]) -> Callable[[Any], _Item | tuple[_Item, ...]]:
    """The reader of a field that is one value, or a list of values."""
    return lambda value: tuple(map(kind, value)) if isinstance(value, list) else kind(value)


def all_of(value: Any) -> tuple[Any, ...]:
    """The values of a field that is one value, or a list of values."""
    return tuple(value) if isinstance(value, list) else (value,)
