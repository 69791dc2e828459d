"""What the library's functions take: one text or several, paths, changes; and how they refuse anything else."""

import inspect
import math
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vcpulab
from vcpulab import Effort, RequestError, Scenario, _api

SHORT = Scenario.starter().change({"run.duration": "50ms", "run.replications": 2})
SWEEP = """
scenario = "web.toml"
replications = 2
[[vary]]
path = "domain.web.weight"
values = [256, 512]
"""


def _sweep(metrics: Any, folder: Path) -> object:
    (folder / "web.toml").write_text(SHORT.text)
    (folder / "sweep.toml").write_text(SWEEP)
    return vcpulab.sweep(folder / "sweep.toml", folder / "store", metrics=metrics)


TAKE_TEXTS: dict[tuple[str, str], Callable[[Any, Path], object]] = {
    ("compare", "metrics"): lambda given, _: vcpulab.compare(SHORT, SHORT, given, replications=2),
    ("whatif", "changes"): lambda given, _: vcpulab.whatif(SHORT, given, replications=2),
    ("tune", "maximise"): lambda given, _: vcpulab.tune(SHORT, maximise=given, trials=2),
    ("tune", "minimise"): lambda given, _: vcpulab.tune(SHORT, minimise=given, trials=2),
    ("tune", "slo"): lambda given, _: vcpulab.tune(SHORT, slo=given, trials=2),
    ("tune", "vary"): lambda given, _: vcpulab.tune(SHORT, vary=given, trials=2),
    ("tune", "only"): lambda given, _: vcpulab.tune(SHORT, only=given, trials=2),
    ("tune", "price"): lambda given, _: vcpulab.tune(SHORT, price=given, trials=2),
    ("capacity", "slo"): lambda given, _: vcpulab.capacity(SHORT, "http.rate", slo=given, highest=100),
    ("place", "slo"): lambda given, _: vcpulab.place(SHORT, slo=given, replications=2),
    ("place", "apart"): lambda given, _: vcpulab.place(SHORT, apart=given, replications=2),
    ("place", "together"): lambda given, _: vcpulab.place(SHORT, together=given, replications=2),
    ("lint", "select"): lambda given, _: vcpulab.lint(SHORT, given, replications=2),
    ("explain", "slo"): lambda given, _: vcpulab.explain(SHORT, given, replications=2),
    ("sweep", "metrics"): _sweep,
}


def test_every_argument_that_takes_texts_is_listed() -> None:
    """A verb that is added, or an argument, comes into the table above."""
    found = {
        (name, parameter)
        for name in vcpulab.__all__
        if inspect.isfunction(verb := getattr(vcpulab, name)) and verb.__module__ == _api.__name__
        for parameter, declared in inspect.signature(verb).parameters.items()
        if "Iterable" in str(declared.annotation) and "str" in str(declared.annotation)
    }
    scenarios = ("place", "scenarios")  # paths, not texts
    assert found - {scenarios} == set(TAKE_TEXTS)


@pytest.mark.parametrize("called", TAKE_TEXTS, ids=".".join)
def test_a_text_is_one_text(called: tuple[str, str], tmp_path: Path) -> None:
    """It is not taken apart into letters: the error names the whole text, and is that of a list of one."""
    errors = []
    for given in ("no-such-thing", ["no-such-thing"], ("no-such-thing",), iter(["no-such-thing"])):
        with pytest.raises(RequestError) as raised:
            TAKE_TEXTS[called](given, tmp_path)
        errors.append(str(raised.value))
    assert "no-such-thing" in errors[0]
    assert set(errors) == {errors[0]}


@pytest.mark.parametrize("given", [5, b"http.failed", [5], [None], 1.5], ids=repr)
@pytest.mark.parametrize("called", TAKE_TEXTS, ids=".".join)
def test_what_is_no_text_is_refused_with_the_argument(called: tuple[str, str], given: Any, tmp_path: Path) -> None:
    with pytest.raises(RequestError) as raised:
        TAKE_TEXTS[called](given, tmp_path)
    assert str(raised.value).startswith(f"{called[1]}: found `")


def test_one_text_answers_as_a_list_of_one() -> None:
    alone, listed = (vcpulab.whatif(SHORT, given, replications=2) for given in ("batch.cap=30", ["batch.cap=30"]))
    assert [one.row() for one in alone.comparisons] == [one.row() for one in listed.comparisons]
    assert [one.address.name for one in vcpulab.compare(SHORT, SHORT, "web.gotten", replications=2).comparisons] == [
        "web.gotten"
    ]
    tuned = vcpulab.tune(SHORT, slo="http.response_p99 < 50ms", only="domain.*.weight", trials=2, replications=2)
    assert [str(slo) for slo in tuned.search.slos] == ["http.response_p99 < 50ms"]
    answers = vcpulab.explain(SHORT, ["batch.gotten", "http.response_p99 < 50ms"], replications=2)
    assert {one.address for one in answers.explained} == {"batch.gotten", "http.response_p99"}


@pytest.mark.parametrize(
    ("given", "argument"),
    [
        ({"seconds": 5.0}, "seconds 5: it has no effect"),
        ({"precision": 0.05}, "precision 0.05: it has no effect"),
    ],
)
def test_library_errors_speak_of_arguments(given: dict[str, float], argument: str) -> None:
    options: dict[str, Any] = {"replications": 2, **given}
    with pytest.raises(RequestError) as raised:
        vcpulab.whatif(SHORT, "web.cap=5", **options)
    assert str(raised.value).startswith(argument)
    with pytest.raises(RequestError) as raised:
        vcpulab.compare(SHORT, SHORT, **options)
    assert str(raised.value).startswith(argument)
    with pytest.raises(RequestError, match=r"^changes: `run.duration` is set on both sides") as raised:
        vcpulab.whatif(SHORT, "run.duration=1s")
    assert "--" not in str(raised.value)


# ---- changes ----


@pytest.mark.parametrize("value", [math.nan, math.inf, object(), {1, 2}, b"x", np.array([1, 2]), {"a": math.nan}])
def test_a_value_that_no_file_can_hold_is_refused_with_its_path(value: object) -> None:
    for ask in (SHORT.change, lambda changes: vcpulab.whatif(SHORT, changes, replications=2)):
        with pytest.raises(RequestError, match=r"^domain\.web\.weight: found `.+`; allowed: text, finite numbers"):
            ask({"domain.web.weight": value})


@pytest.mark.parametrize("path", ["", ".", '"', "...", 1, None, ("domain", "web")])
def test_a_path_that_leads_nowhere_is_refused(path: Any) -> None:
    for ask in (SHORT.change, lambda changes: vcpulab.whatif(SHORT, changes, replications=2)):
        with pytest.raises(RequestError, match=r"^changes: found `.*`; allowed: dotted paths"):
            ask({path: 1})


def test_numbers_of_numpy_are_numbers() -> None:
    changed = SHORT.change({"domain.web.weight": np.int64(300), "client.http.rate": np.float64(12.5)})
    assert changed == SHORT.change({"domain.web.weight": 300, "client.http.rate": 12.5})


def test_tables_with_values_of_other_types_are_refused() -> None:
    for document in ({"seed": object()}, 5, {"seed": None}):
        with pytest.raises(RequestError, match=r"^document: "):
            Scenario.from_dict(document)  # type: ignore[arg-type]


# ---- scenarios ----


def test_a_scenario_is_made_of_a_path(tmp_path: Path) -> None:
    file = tmp_path / "web.toml"
    file.write_text(SHORT.text)
    assert Scenario(file) == Scenario(str(file)) == Scenario.load(file) == SHORT
    assert Scenario(file).folder == tmp_path


@pytest.mark.parametrize("given", [{}, 5, None, SHORT, SHORT.text], ids=["dict", "int", "None", "Scenario", "text"])
def test_what_is_no_path_is_refused_with_the_way_to_read_it(given: Any) -> None:
    with pytest.raises(RequestError, match=r"^path: found `\w+.*`; allowed: the path of a scenario file\n  hint: Scen"):
        Scenario(given)


# ---- charts ----


def test_charts_are_found_by_completion() -> None:
    run = vcpulab.run(SHORT)
    assert "plot" in dir(run)
    assert inspect.getdoc(vcpulab.Run.plot)
    assert "<table" in run.plot.tables()
    with pytest.raises(AttributeError):
        run.no_such_thing  # type: ignore[attr-defined]  # noqa: B018


TAKE_NUMBERS: dict[str, Callable[..., object]] = {
    "run": lambda **given: vcpulab.run(SHORT, **given),
    "run_many": lambda **given: vcpulab.run_many([SHORT], **given),
    "compare": lambda **given: vcpulab.compare(SHORT, SHORT, **given),
    "whatif": lambda **given: vcpulab.whatif(SHORT, "web.weight=512", **given),
    "tune": lambda **given: vcpulab.tune(SHORT, **given),
    "capacity": lambda **given: vcpulab.capacity(SHORT, "http.rate", **given),
    "place": lambda **given: vcpulab.place(SHORT, **given),
    "lint": lambda **given: vcpulab.lint(SHORT, **given),
    "explain": lambda **given: vcpulab.explain(SHORT, **given),
    "sweep": lambda **given: vcpulab.sweep("sweep.toml", **given),
}


@pytest.mark.parametrize("called", TAKE_NUMBERS)
def test_what_is_no_number_is_refused_with_the_argument(called: str) -> None:
    numbers = [
        name
        for name, declared in inspect.signature(getattr(vcpulab, called)).parameters.items()
        if {"int", "float"} & set(re.findall(r"\w+", str(declared.annotation))) and "progress" not in name
    ]
    assert "jobs" in numbers
    for name in numbers:
        for wrong in ("soon", math.nan, -1, True, [2], b"2", -(10**400)):
            with pytest.raises(RequestError) as raised:
                TAKE_NUMBERS[called](**{name: wrong})
            assert str(raised.value).startswith(f"{name}: "), str(raised.value)


SCENARIOS = {"compare": "before", "place": "scenarios", "run_many": "scenarios", "sweep": "file"}


@pytest.mark.parametrize("called", [*TAKE_NUMBERS, "bounds"])
@pytest.mark.parametrize("given", [None, 5, math.nan, {}, [None], b"web.toml"], ids=repr)
def test_what_is_no_scenario_is_refused_with_the_argument(called: str, given: Any) -> None:
    first_arguments: dict[str, list[Any]] = {
        "compare": [SHORT],
        "whatif": ["web.weight=512"],
        "capacity": ["http.rate"],
    }
    further = first_arguments.get(called, [])
    with pytest.raises(RequestError) as raised:
        getattr(vcpulab, called)(given, *further)
    assert str(raised.value).startswith(f"{SCENARIOS.get(called, 'scenario')}: found `")


@pytest.mark.parametrize("given", [None, 5, "web.weight=512", ["web.weight=512"]], ids=repr)
def test_changes_are_a_mapping(given: Any) -> None:
    with pytest.raises(RequestError, match=r"^changes: found `"):
        SHORT.change(given)


def test_a_folder_is_a_path() -> None:
    wrong: Any = 3
    with pytest.raises(RequestError, match=r"^folder: found `int`"):
        vcpulab.tune(SHORT, folder=wrong)


def test_a_whatif_without_a_change_has_nothing_to_compare() -> None:
    with pytest.raises(RequestError, match="changes: nothing is set"):
        vcpulab.whatif(SHORT, {})
    with pytest.raises(RequestError, match="changes: nothing is set"):
        vcpulab.whatif(SHORT, [])


def test_an_objective_is_finite() -> None:
    with pytest.raises(RequestError, match=r"^slo: found `http.response_p99 < 1e400 ms`"):
        vcpulab.tune(SHORT, slo="http.response_p99 < 1e400 ms")


@pytest.mark.parametrize("given", [None, 5, [5], [None]], ids=repr)
def test_what_is_no_address_is_refused_with_the_argument(given: Any) -> None:
    done = vcpulab.run(SHORT)
    with pytest.raises(RequestError, match=r"^addresses: found `"):
        done.values(given)
    with pytest.raises(RequestError, match=r"^address: found `"):
        done.get(given)


def test_values_take_texts() -> None:
    done = vcpulab.run(SHORT)
    assert done.values("http.throughput") == done.values(["http.throughput"])


@pytest.mark.parametrize("given", [None, 5, b"name = 1", ["x"]], ids=repr)
def test_what_is_no_text_or_table_is_refused_with_the_argument(given: Any) -> None:
    with pytest.raises(RequestError, match=r"^text: found `"):
        Scenario.from_toml(given)
    with pytest.raises(RequestError, match=r"^document: found `"):
        Scenario.from_dict(given)
    log: Any = "log" if given is None else given
    with pytest.raises(RequestError, match=r"^jtl: found `"):
        vcpulab.run(SHORT, jtl=log)


# ---- effort ----

EFFORTS: dict[str, Callable[..., object]] = {name: verb for name, verb in TAKE_NUMBERS.items() if "run" not in name}


@pytest.mark.parametrize("called", EFFORTS)
def test_every_question_takes_an_effort_and_refuses_the_fields_that_it_cannot_use(called: str) -> None:
    parameters = inspect.signature(getattr(vcpulab, called)).parameters
    values: dict[str, float] = {"replications": 3, "precision": 0.5, "seconds": 1.5, "seed": 3, "jobs": 1}
    assert list(values) == [field.name for field in fields(vcpulab.Effort)]
    for name, value in values.items():
        effort = Effort(**{name: value})  # type: ignore[arg-type]
        if name in parameters:
            with pytest.raises(RequestError, match=rf"^{name} {value}: `{called}` takes it once: as a keyword, or in"):
                EFFORTS[called](effort=effort, **{name: value})
        else:
            with pytest.raises(
                RequestError, match=rf"^effort.{name} {value}: `{called}` has no use for it; allowed: .*jobs"
            ):
                EFFORTS[called](effort=effort)
    with pytest.raises(RequestError, match=r"^effort: found `dict`; allowed: an `Effort`"):
        EFFORTS[called](effort={"jobs": 1})


def test_an_effort_is_checked_when_it_is_made() -> None:
    for field in fields(Effort):
        with pytest.raises(RequestError, match=rf"^{field.name}: found `-1`"):
            Effort(**{field.name: -1})


def test_an_effort_is_the_same_as_its_fields() -> None:
    whole = vcpulab.whatif(SHORT, "batch.cap=30", effort=Effort(replications=3, seed=7), jobs=1)
    single = vcpulab.whatif(SHORT, "batch.cap=30", replications=3, seed=7)
    assert [comparison.row() for comparison in whole] == [comparison.row() for comparison in single]
    assert whole.before.scenario.replications == 3


def test_searches_and_findings_have_a_seed() -> None:
    """The scenario's own seed is the default; another one draws other random numbers."""
    for seed in (None, 5):
        effort = Effort(replications=2, seed=seed)
        assert vcpulab.explain(SHORT, "batch.gotten", effort=effort).scenario.seed == (seed or SHORT.seed)
    searched = SHORT.change({"run.duration": "500ms"})
    loads = [
        vcpulab.capacity(searched, "http.rate", lowest=100, highest=200, seed=seed).points[0].judged[-1].row()
        for seed in (None, searched.seed, 5)
    ]
    assert loads[0] == loads[1] != loads[2]
