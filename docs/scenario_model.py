"""The typed scenario, `vcpulab/scenario/model.py`, from the schema of scenario files."""

import json
import keyword
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
FILE = ROOT / "python/vcpulab/scenario/model.py"
SCHEMA = ROOT / "schema/scenario.schema.json"
MODEL = "Model"
"""The class of the whole scenario."""
CONSTANTS = "Costs"
"""The class of the constants of a hardware profile."""
TAGS = ("kind", "op")
"""The fields that say which of its variants a table is."""
NOT_IN_COMPLETE = {"Domain.count", "Client.file_size"}
"""Fields that the engine resolves into others."""
OPTIONAL = {
    "Run": {"profiler"},
    "Host": {"topology", "pcpus_per_socket", "drivers", "halt_poll_us", "cgroups", "isolated_cpus", "nohz_full"},
    "Nic": {"driver_domain", "vcpu", "pcpu"},
    "Disk": {"driver_domain", "vcpu", "pcpu"},
    "Cgroup": {"cpus"},
    "Domain": {
        "soft_affinity",
        "nic",
        "disk",
        "idle_tick",
        "idle_tick_cpu",
        "idle_tick_at",
        "cgroup",
        "sched_policy",
        "sched_priority",
        "nice",
    },
    "Netfront": {"driver_domain", "device", "driver_vcpu"},
    "VirtualDisk": {"driver_domain", "device", "driver_vcpu"},
    "App": {"loop", "stretch", "start_delay"},
    "TcpSenderApp": {"to"},
    "IperfApp": {"to"},
    "NetperfApp": {"to"},
    "PhpWebApp": {"files"},
    "Client": {"machine", "timeout"},
    "Action": {"vcpu", "affinity", "soft_affinity"},
}
"""Fields that a complete scenario leaves out where a host or domain has no such thing: `None` then.

So may be all fields of an event. Collections that are left out are empty.
"""
_HEAD = '''"""A complete scenario with every field as an attribute of its type: `Scenario.model`.

Generated from the schema of scenario files: `make docs`.
"""

# mypy: disable-error-code="no-any-return"
# fmt: off

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal

from vcpulab.scenario.table import Constants, Table, all_of, single_or_each
from vcpulab.scenario.units import Duration, Size
'''
_WIDTH = 112


class _Value(NamedTuple):
    """The type of a field, and the expression that reads a value of it; `None`: the value as it is."""

    type: str
    reader: str | None
    is_table: bool = False


@dataclass(frozen=True)
class _Class:
    """A class to generate."""

    name: str
    table: str
    """The name of the table in the schema."""
    doc: str
    fields: Mapping[str, Mapping[str, Any]]
    required: frozenset[str]
    has_params: bool
    base: str = "Table"
    kind: str | None = None
    """The word of a variant that has the fields of its base, too."""


def page() -> str:
    """The module as it should be."""
    schema = json.loads(SCHEMA.read_text("utf-8"))
    parts = [_HEAD]
    for table, definition in [*schema["$defs"].items(), (MODEL, schema)]:
        if table == "Slot":
            continue  # an item of a parameter
        if table == "Host":
            parts.append("\n".join(_lines(_constants(definition["properties"]["costs"]))))
        classes = list(_classes(table, definition))
        parts += ["\n".join(_lines(each)) for each in classes]
        if table == "App":
            parts.append("\n".join(_by_kind(table, classes)))
        elif len(classes) > 1:
            parts.append("\n".join(_union(table, definition, classes)))
    return "\n\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _classes(table: str, definition: Mapping[str, Any]) -> Iterator[_Class]:
    variants = definition.get("oneOf")
    if variants is None:
        yield _class(table, table, definition)
        return
    tag = next(tag for tag in TAGS if tag in variants[0]["properties"])
    if table == "App":
        # The kinds differ in parameters; all other fields are those of scripts.
        script = next(variant for variant in variants if variant["properties"][tag]["const"] == "phases")
        kind = {**script["properties"][tag], "description": "The kind of the application."}
        del kind["const"]
        fields = {**script["properties"], tag: kind, "instance": script["properties"]["instance"]}
        yield _Class(table, table, definition["description"], fields, frozenset({tag}), has_params=True)
        for variant in variants:
            own = {field: value for field, value in variant["properties"].items() if field not in fields}
            if variant is not script:
                name = _name(variant["properties"][tag]["const"], table)
                params = _class(name, name, {**variant, "properties": own})
                yield replace(params, base=table, kind=variant["properties"][tag]["const"])
        return
    for variant in variants:
        yield _class(_name(variant["properties"][tag]["const"], table), table, variant)


def _name(word: str, table: str) -> str:
    return "".join(map(str.capitalize, word.split("-"))) + table


def _constants(definition: Mapping[str, Any]) -> _Class:
    fields = definition["properties"]
    required = frozenset(name for name, constant in fields.items() if "default" not in constant)
    return _Class(
        CONSTANTS, CONSTANTS, "Constants of a hardware profile.", fields, required, has_params=False, base="Constants"
    )


def _class(name: str, table: str, definition: Mapping[str, Any]) -> _Class:
    properties = definition["properties"]
    fields = {
        field: value
        for field, value in properties.items()
        if not value.get("x-scheduler-parameter") and f"{table}.{field}" not in NOT_IN_COMPLETE
    }
    has_params = any(value.get("x-scheduler-parameter") for value in properties.values())
    required = frozenset(definition.get("required", ()))
    return _Class(name, table, definition["description"], fields, required, has_params)


def _union(table: str, definition: Mapping[str, Any], classes: list[_Class]) -> Iterator[str]:
    tag = next(tag for tag in TAGS if tag in classes[0].fields)
    yield f"{table} = (\n    " + "\n    | ".join(each.name for each in classes) + "\n)"
    yield f'"""{definition["description"]}"""'
    yield f"_{table.upper()}S: Mapping[str, type[{table}]] = {{"
    yield from (f'    "{each.fields[tag]["const"]}": {each.name},' for each in classes)
    yield "}\n\n"
    yield f"def _{table.lower()}(table: Mapping[str, Any]) -> {table}:"
    yield f'    return _{table.upper()}S[table["{tag}"]](table)'


def _by_kind(table: str, classes: list[_Class]) -> Iterator[str]:
    yield f"_{table.upper()}S: Mapping[str, type[{table}]] = {{"
    yield from (f'    "{each.kind}": {each.name},' for each in classes if each.kind is not None)
    yield "}\n\n"
    yield f"def _{table.lower()}(table: Mapping[str, Any]) -> {table}:"
    yield f'    return _{table.upper()}S.get(table["kind"], {table})(table)'


def _lines(cls: _Class) -> Iterator[str]:
    yield f"class {cls.name}({cls.base}):"
    yield from _doc(cls.doc, 4)
    if cls.has_params:
        names = textwrap.wrap(", ".join(f'"{name}"' for name in cls.fields), _WIDTH)
        yield ""
        yield "    _FIELDS = frozenset({"
        yield from (f"        {line}" for line in names)
        yield "    })"
    for name, definition in cls.fields.items():
        yield ""
        yield from _property(cls, name, definition)
    if cls.has_params:
        subject = "the application's kind" if cls.table == "App" else "the scheduler"
        yield ""
        yield "    @cached_property"
        yield "    def params(self) -> Mapping[str, Any]:"
        yield f'        """The given parameters of {subject}, by name."""'
        yield "        return self._params()"


def _property(cls: _Class, name: str, definition: Mapping[str, Any]) -> Iterator[str]:
    plural = f"{name}s" if _is_collection(definition) else name
    attribute = f"{plural}_" if keyword.iskeyword(plural) else plural
    kind, body, is_cached = _read(cls, name, definition)
    yield "    @cached_property" if is_cached else "    @property"
    yield f"    def {attribute}(self) -> {kind}:"
    yield from _doc(definition.get("description") or f"`{definition['const']}`.", 8)
    yield f"        return {body}"


def _is_collection(definition: Mapping[str, Any]) -> bool:
    items = definition.get("items", definition.get("additionalProperties"))
    return isinstance(items, dict) and "$ref" in items


def _read(cls: _Class, name: str, definition: Mapping[str, Any]) -> tuple[str, str, bool]:
    """The type of an attribute, the expression for its value, and whether the value is kept."""
    match definition:
        case {"anyOf": [_, {"items": {"$ref": _}} as definition]}:
            pass  # the other value stands for a list, which a complete scenario has
    if _is_collection(definition):
        is_list = "items" in definition
        value = _value(definition["items" if is_list else "additionalProperties"])
        method, kind = ("_list", f"tuple[{value.type}, ...]") if is_list else ("_named", f"Mapping[str, {value.type}]")
        return kind, f'self.{method}("{name}", {value.reader})', True
    value = _value(definition)
    if value.reader == "all_of":
        return value.type, f'all_of(self._table.get("{name}", ()))', False
    if name not in cls.required and (cls.table == "Event" or name in OPTIONAL.get(cls.table, ())):
        body = f'self._table.get("{name}")' if value.reader is None else f'self._optional("{name}", {value.reader})'
        return f"{value.type} | None", body, value.is_table
    default: str | int | None = definition.get("default")
    if name in cls.required or default is None:
        body = f'self._table["{name}"]'
    else:
        body = f'self._table.get("{name}", {_literal(default)})'
    return value.type, body if value.reader is None else f"{value.reader}({body})", value.is_table


def _literal(value: str | int) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def _value(definition: Mapping[str, Any]) -> _Value:  # noqa: PLR0911 (a line for each type)
    match definition:
        case {"$ref": ref}:
            table = ref.rpartition("/")[2]
            reader = f"_{table.lower()}" if table in ("Client", "Action", "App") else table
            return _Value(table, reader, is_table=True)
        case {"const": word}:
            return _Value(f'Literal["{word}"]', None)
        case {"enum": words}:
            return _Value(f"Literal[{', '.join(map(json.dumps, words))}]", None)
        case {"format": "time-span"}:
            return _Value("Duration", "Duration")
        case {"format": "size"}:
            return _Value("Size", "Size")
        case {"anyOf": [{"type": "integer"}, {"type": "array"}]}:
            return _Value("tuple[int, ...]", "all_of")
        case {"anyOf": [single, {"type": "array"}]}:
            value = _value(single)
            return _Value(f"{value.type} | tuple[{value.type}, ...]", f"single_or_each({value.type})")
        case {"type": "object", "properties": _}:
            return _Value(CONSTANTS, CONSTANTS, is_table=True)
        case {"type": "string"}:
            return _Value("str", None)
        case {"type": "integer"}:
            return _Value("int", None)
        case {"type": "number"}:
            return _Value("float", None)
        case {"type": "boolean"}:
            return _Value("bool", None)
    raise TypeError(f"no field was described like this before: {definition}")


def _doc(text: str, indent: int) -> Iterator[str]:
    space = " " * indent
    if len(text) + indent + 6 <= _WIDTH + 8:
        yield f'{space}"""{text}"""'
        return
    first, _, rest = text.partition(". ")
    summary = [f"{first}."] if rest else [first]
    lines = textwrap.wrap(summary[0], _WIDTH - indent)
    yield f'{space}"""{lines[0]}'
    yield from (f"{space}{line}" for line in lines[1:])
    if rest:
        yield ""
        yield from (f"{space}{line}" for line in textwrap.wrap(rest, _WIDTH - indent))
    yield f'{space}"""'


if __name__ == "__main__":
    FILE.write_text(page(), encoding="utf-8")
