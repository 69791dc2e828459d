"""The base of the tables of a complete scenario: immutable values whose fields are attributes."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn, TypeVar

_Item = TypeVar("_Item")


class FrozenDict(dict[str, Any]):
    """A mapping that cannot be changed; it is equal to a `dict` with the same items, and `|` makes a `dict`."""

    def _refuse(self, *_args: object, **_kwargs: object) -> NoReturn:
        raise TypeError("the tables of a scenario cannot be changed: Scenario.change makes another scenario")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __copy__(self) -> "FrozenDict":
        return self

    def __deepcopy__(self, _copied: object) -> "FrozenDict":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenDict, (dict(self),)


def frozen(value: Any) -> Any:
    """A value of a scenario with every table as a `FrozenDict` and every list as a tuple."""
    if isinstance(value, FrozenDict):
        return value
    if isinstance(value, Mapping):
        return FrozenDict({name: frozen(item) for name, item in value.items()})
    return tuple(map(frozen, value)) if isinstance(value, list) else value


def value_at(tables: Any, path: Iterable[str]) -> Any:
    """The value at a path through tables and lists, whose items are counted from 0; `None`: there is none.

    Examples:
        >>> tables = {"domain": {"web": {"app": [{"kind": "hog"}]}}}
        >>> value_at(tables, ["domain", "web", "app", "0", "kind"]), value_at(tables, ["domain", "web", "weight"])
        ('hog', None)
    """
    for step in path:
        if isinstance(tables, Mapping):
            tables = tables.get(step)
        elif isinstance(tables, list | tuple) and step.isdecimal() and int(step) < len(tables):
            tables = tables[int(step)]
        else:
            return None
    return tables


class Table:
    """A table of a complete scenario. Tables with the same fields are equal."""

    _FIELDS: frozenset[str] = frozenset()
    """The names of all fields but scheduler and application parameters."""

    _table: FrozenDict

    def __init__(self, table: Mapping[str, Any]) -> None:
        """Takes the fields as a complete scenario file has them."""
        self.__dict__["_table"] = frozen(table)

    @property
    def fields(self) -> Mapping[str, Any]:
        """The fields as a complete scenario file has them."""
        return self._table

    def _params(self) -> Mapping[str, Any]:
        return FrozenDict({name: value for name, value in self._table.items() if name not in self._FIELDS})

    def _list(self, name: str, kind: Callable[[Any], _Item]) -> tuple[_Item, ...]:
        """The items of a list; none if the field is absent."""
        return tuple(map(kind, self._table.get(name, ())))

    def _named(self, name: str, kind: Callable[[Any], _Item]) -> Mapping[str, _Item]:
        """The tables of a field, by name; none if the field is absent."""
        return FrozenDict({key: kind(table) for key, table in self._table.get(name, {}).items()})

    def _optional(self, name: str, kind: Callable[[Any], _Item]) -> _Item | None:
        """The value of a field; `None`: the field is absent."""
        value = self._table.get(name)
        return None if value is None else kind(value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be set: Scenario.change makes another scenario")

    def __eq__(self, value: object) -> bool:
        return isinstance(value, Table) and type(self) is type(value) and self._table == value._table

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._table,)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._table.items())})"


class Constants(Table):
    """A table of integers that are also read by computed names."""

    def constant(self, name: str) -> int:
        """The constant of a name."""
        value: int = getattr(self, name)
        return value


def single_or_each(kind: Callable[[Any], _Item]) -> Callable[[Any], _Item | tuple[_Item, ...]]:
    """The reader of a field that is one value, or a list of values."""
    return lambda value: tuple(map(kind, value)) if isinstance(value, tuple) else kind(value)


def all_of(value: Any) -> tuple[Any, ...]:
    """The values of a field that is one value, or a list of values."""
    return value if isinstance(value, tuple) else (value,)
