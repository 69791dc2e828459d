"""The typed scenario: `Scenario.model`."""

import ast
import copy
import pickle
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest

from random_scenarios import random_checked
from support import ROOT
from vcpulab import Scenario
from vcpulab.errors import ScenarioError
from vcpulab.scenario.catalogue import schema
from vcpulab.scenario.model import ClosedLoopClient, Model, OpenLoopClient, PeriodicApp
from vcpulab.scenario.settings import apply
from vcpulab.scenario.table import Table

pytestmark = pytest.mark.quick

SHIPPED = sorted(path for path in (ROOT / "scenarios").rglob("*.toml") if path.name != "calibration.toml")
KVM = ROOT / "scenarios/kvm-web-beside-batch.toml"
SCHEMA = schema()


def properties(table: Table) -> dict[str, Any]:
    """The type of each field."""
    kind: Any = type(table)  # mypy believes that a class without hashable instances is not hashable itself
    return _properties(kind)


@cache
def _properties(kind: type) -> dict[str, Any]:
    # An application's kind has the fields of `App`, too.
    classes = [each for each in reversed(kind.__mro__) if each.__module__ == Model.__module__]
    getters = {
        name: member.func if isinstance(member, cached_property) else member.fget
        for each in classes
        for name, member in vars(each).items()
        if isinstance(member, property | cached_property)
    }
    return {name: get_type_hints(getter)["return"] for name, getter in getters.items()}


def is_of(value: Any, kind: Any) -> bool:
    origin, parts = get_origin(kind), get_args(kind)
    if kind is Any or origin is Literal:
        return kind is Any or value in parts
    if origin in (Union, UnionType):
        return any(is_of(value, part) for part in parts)
    if origin is tuple:
        return isinstance(value, tuple) and all(is_of(item, parts[0]) for item in value)
    if origin is Mapping:
        return isinstance(value, Mapping) and all(is_of(item, parts[1]) for item in value.values())
    kind = int | float if kind is float else kind
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def tables(value: object) -> Iterator[Table]:
    """The tables in a value, itself included."""
    if isinstance(value, Table):
        yield value
        for name in properties(value):
            yield from tables(getattr(value, name))
    elif isinstance(value, Mapping | tuple):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from tables(item)


def check(scenario: Scenario) -> None:
    for table in tables(scenario.model):
        for name, kind in properties(table).items():
            value = getattr(table, name)
            assert is_of(value, kind), f"{type(table).__name__}.{name}: {value!r} is no {kind}"


def test_shipped_scenarios_have_every_field_with_its_type() -> None:
    for path in SHIPPED:
        check(Scenario(path))


def test_random_scenarios_have_every_field_with_its_type() -> None:
    for seed in range(100):
        check(random_checked(seed))


@pytest.mark.parametrize(
    ("source", "field", "value"),
    [
        (None, "host.hypervisor", "xen"),
        (None, "host.governor", "performance"),
        (None, "domain.web.pool", "Pool-0"),
        (None, "domain.web.start", "0ns"),
        (None, "domain.web.wake_cpu", "0ns"),
        (None, "run.start_spread", "0ns"),
        (KVM, "domain.web.emulator_affinity", "all"),
        (KVM, "domain.web.iothread_affinity", "all"),
        (KVM, "domain.web.iothreads", 0),
    ],
)
def test_the_value_of_an_absent_field_is_what_the_engine_takes(source: Any, field: str, value: Any) -> None:
    scenario = Scenario.starter() if source is None else Scenario(source)
    owner = {"host": scenario.host, "run": scenario.model.run}.get(field.partition(".")[0], scenario.domains["web"])
    assert getattr(owner, field.rpartition(".")[2]) == value
    assert scenario.change({field: value}) == scenario


def absent(definition: Mapping[str, Any], value: Any, path: str) -> Iterator[tuple[str, str, Any]]:
    """The fields of tables that have a default and are absent: the kind of table, the path and the default."""
    definitions, tables = SCHEMA["$defs"], [definition]
    while "properties" not in tables[-1]:
        match tables[-1]:
            case {"$ref": reference}:
                tables.append(definitions[reference.rpartition("/")[2]])
            case {"oneOf": variants}:
                tag = "op" if "op" in value else "kind"
                tables.append(next(each for each in variants if each["properties"][tag]["const"] == value[tag]))
            case {"anyOf": forms} if isinstance(value, list):
                tables.append(next(form for form in forms if form["type"] == "array"))
            case {"items": item} if isinstance(value, list):
                for number, each in enumerate(value):
                    yield from absent(item, each, f"{path}.{number}")
                return
            case {"additionalProperties": dict(named)} if isinstance(value, dict):
                for name, each in value.items():
                    yield from absent(named, each, f"{path}.{name}" if path else name)
                return
            case _:
                return
    for name, field in tables[-1]["properties"].items():
        inner = f"{path}.{name}" if path else name
        if name in value:
            yield from absent(field, value[name], inner)
        elif "default" in field and not field.get("x-scheduler-parameter"):
            yield f"{tables[-1].get('description')}.{name}", inner, field["default"]


@pytest.mark.parametrize("hypervisor", ["xen", "kvm"])
def test_a_default_that_is_absent_from_the_tables_cannot_be_stated(hypervisor: str) -> None:
    seen = set[str]()
    for scenario in map(Scenario, SHIPPED):
        if scenario.host.hypervisor != hypervisor:
            continue
        for field, path, default in absent(SCHEMA, scenario.to_dict(), ""):
            # Threads of real-time classes take a nice value of 0, which does nothing.
            if field not in seen and not path.endswith(".nice"):
                seen.add(field)
                with pytest.raises(ScenarioError):
                    scenario.change({path: default})
    assert seen, "there are fields that only the other hypervisor has"


def test_the_tables_make_the_same_scenario() -> None:
    for path in SHIPPED:
        scenario = Scenario(path)
        assert Scenario.from_dict(scenario.to_dict()) == scenario


def test_a_client_has_the_fields_of_its_kind() -> None:
    open_loop = Scenario.starter()
    assert isinstance(open_loop.clients["http"], OpenLoopClient)
    assert not hasattr(open_loop.clients["http"], "users")
    closed_loop = Scenario(ROOT / "scenarios/closed-loop.toml").clients
    assert [client.users > 0 for client in closed_loop.values() if isinstance(client, ClosedLoopClient)] == [True]


def test_an_application_has_the_parameters_of_its_kind() -> None:
    domain = {"app": [{"kind": "periodic", "run": "1ms", "period": "10ms"}]}
    host = {"profile": "exact", "scheduler": "credit"}
    (job,) = Scenario.from_dict({"host": host, "domain": {"a": domain}}).domains["a"].apps
    assert isinstance(job, PeriodicApp)
    assert (job.run.ns, job.period.ns, job.instance) == (1_000_000, 10_000_000, 1)
    assert not hasattr(job, "request_cpu")


def test_costs_have_the_defaults_of_constants_that_a_profile_leaves_out() -> None:
    costs = Scenario.starter().host.costs
    assert "kvm_tap_ns" not in costs.fields
    assert (costs.numa_distance, costs.smt_compute_beside_compute_percent, costs.kvm_tap_ns) == (10, 100, 0)
    assert costs.constant("decision_ns") == costs.decision_ns == costs.fields["decision_ns"]


def test_parameters_are_those_that_are_given() -> None:
    scenario = Scenario.starter().change({"domain.web.weight": 512, "host.tslice_ms": 5})
    assert (scenario.domains["web"].params, scenario.host.params) == ({"weight": 512}, {"tslice_ms": 5})


def test_a_model_cannot_be_changed() -> None:
    scenario = Scenario.starter()
    with pytest.raises(AttributeError, match=r"Domain\.vcpus cannot be set: Scenario\.change makes another scenario"):
        scenario.domains["web"].vcpus = 2  # type: ignore[misc]
    assert scenario.model == Scenario.starter().model != scenario.change({"seed": 9}).model


def mappings(value: object) -> Iterator[Mapping[str, Any]]:
    """The mappings in the values of tables, at all levels."""
    if isinstance(value, Table):
        for name in ("fields", *properties(value)):
            yield from mappings(getattr(value, name))
    elif isinstance(value, Mapping | tuple):
        if isinstance(value, Mapping):
            yield value
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from mappings(item)
    else:
        assert not isinstance(value, list)


CHANGES: dict[str, tuple[Any, ...]] = {
    "update": ({"a": 1},),
    "__setitem__": ("a", 1),
    "__delitem__": ("a",),
    "__ior__": ({"a": 1},),
    "setdefault": ("a", 1),
    "pop": ("a", None),
    "popitem": (),
    "clear": (),
}


@pytest.mark.parametrize(
    "path", [SHIPPED[0], KVM, ROOT / "scenarios/claims/arinc653-pools.toml"], ids=lambda path: path.stem
)
def test_no_mapping_of_a_model_can_be_changed(path: Path) -> None:
    scenario = Scenario(path)
    seen = list(mappings(scenario.model))
    assert any(table is scenario.host.costs.fields for table in seen)
    for table in seen:
        for change, arguments in CHANGES.items():
            with pytest.raises(TypeError, match=r"Scenario\.change makes another scenario"):
                getattr(table, change)(*arguments)
    assert scenario.model == Scenario(path).model


def test_models_and_their_mappings_are_pickled_and_copied() -> None:
    scenario = Scenario(KVM)
    for value in (scenario.model, scenario.domains, scenario.host.costs, scenario.domains["web"].params):
        for other in (pickle.loads(pickle.dumps(value)), copy.copy(value), copy.deepcopy(value)):
            assert other == value
            assert type(other) is type(value)


def test_a_value_is_found_by_its_path() -> None:
    scenario = Scenario.starter()
    assert scenario.value("host.scheduler") == scenario.host.scheduler
    assert scenario.value("domain.web.app.0.kind") == scenario.domains["web"].apps[0].kind
    for path in ("domain.web.app.9.kind", "domain.web.app.x", "domain.nobody", "name.x"):
        assert scenario.value(path) is None


@pytest.mark.parametrize("release", ["7.3", "6.10"])
def test_a_release_is_set_as_it_is_typed_although_it_looks_like_a_number(release: str) -> None:
    host = '[host]\nhypervisor = "kvm"\npcpus = 1\nscheduler = "linux-eevdf"\n'
    scenario = Scenario.from_toml(f'{host}[domain.a]\napp = [{{ kind = "hog" }}]\n')
    changed = apply(scenario, [f"host.generation={release}"])
    assert changed.scenario.model.host.generation == release


def test_the_package_reads_scenarios_by_the_model_instead_of_tables() -> None:
    package = ROOT / "python/vcpulab"
    callers = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "to_dict"
    }
    charts = {"show/html.py", "sweeps/chart.py"}
    assert callers == charts | {"scenario/scenario.py"}, "Scenario.model, and Scenario.value for a path"
