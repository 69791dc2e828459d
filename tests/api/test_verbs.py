"""The calls of a notebook: each answers in words, as a frame, and as HTML."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import vcpulab
from support import ROOT, TWO_HOGS
from vcpulab.show.answer import Answer

SHORT = {"run.duration": "200ms", "run.warmup": "50ms", "run.replications": 3}
STARTER = vcpulab.Scenario.starter().change(SHORT)


def shown(answer: Answer) -> list[str]:
    """The columns of an answer that prints itself everywhere."""
    words, page = str(answer), answer._repr_html_()
    assert words
    assert "<table" in page
    assert not words.startswith("<")
    return answer.to_frame().columns


def test_a_file_can_be_run(tmp_path: Path) -> None:
    """It was an AttributeError."""
    file = tmp_path / "hogs.toml"
    file.write_text(TWO_HOGS)
    loaded = vcpulab.run(vcpulab.Scenario.load(file))
    for path in (file, str(file)):
        assert vcpulab.run(path)["a.gotten"] == loaded["a.gotten"]


def test_whatif_and_compare_agree(tmp_path: Path) -> None:
    found = vcpulab.whatif(STARTER, {"batch.cap": 30})
    assert found["batch.gotten"].verdict == "lower"
    assert [step.text for step in found.commands if step.how == "run"] == ["xl sched-credit -d batch -c 30"]
    assert found.commands_for("xapi")[-1].text.endswith(" VCPUs-params:cap=30")
    assert found.before.scenario.replications == 10
    assert shown(found)[:4] == ["metric", "unit", "better_if", "before"]
    assert vcpulab.whatif(STARTER, ["batch.cap=30"]).to_frame().equals(found.to_frame())
    file = tmp_path / "capped.toml"
    file.write_text(found.changed.scenario.to_toml())
    assert vcpulab.compare(STARTER, file).to_frame().equals(found.to_frame())
    found.before.save(tmp_path / "before")
    runs = vcpulab.compare(tmp_path / "before", found.after, ["host.idle"])
    assert [one.address.name for one in runs] == ["host.idle"]
    runs = vcpulab.compare(found.before, found.after, ["*b*.gotten"])
    assert [one.address.name for one in runs] == ["web.gotten", "batch.gotten"]
    with pytest.raises(vcpulab.RequestError, match="two scenarios, or two runs"):
        vcpulab.compare(STARTER, found.after)
    with pytest.raises(vcpulab.RequestError, match="did you mean `gotten`"):
        vcpulab.compare(found.before, found.after, ["batch.gotte"])


def test_bounds_capacity_and_lint_answer() -> None:
    bounds = vcpulab.bounds(STARTER)
    assert shown(bounds)[:3] == ["load", "throughput_max", "bottleneck"]
    most = vcpulab.capacity(STARTER, "http.rate", lowest=200, highest=400, slo=["web.throughput > 1"])
    assert shown(most) == ["value", "standing", "replications", "slo", "mean", "fullest"]
    assert most.result.value == 400
    found = vcpulab.lint(STARTER.change({"run.duration": "1s"}), replications=2)
    assert "waits-behind-equals" in shown(found) + found.to_frame()["rule"].to_list()
    assert str(vcpulab.lint(vcpulab.Scenario.from_toml(TWO_HOGS), replications=2)) == "two hogs: nothing found"


def test_tuning_takes_one_call(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    arguments = {"minimise": ["dom0.waited"], "vary": ["domain.dom0.weight=256,1024"], "replications": 2}
    found = vcpulab.tune(STARTER, **arguments, trials=2, folder=tmp_path / "search")  # type: ignore[arg-type]
    assert shown(found) == ["parameter", "now", "found", "cost_of_the_present"]
    assert found.search.metrics[0].name == "dom0.waited"
    with pytest.raises(vcpulab.RequestError, match="named twice"):
        vcpulab.tune(STARTER, maximise=["host.idle"], minimise=["host.idle"])


def test_placing_takes_scenarios() -> None:
    pytest.importorskip("ortools")
    placed = vcpulab.place(vcpulab.Scenario.from_toml(TWO_HOGS), slo=["throughput > 1"])
    assert shown(placed) == ["host", "domains", "pcpus_used_percent", "slo"]
    assert placed.to_frame()["domains"].to_list() == [["a", "b"]]


def test_a_sweep_answers(tmp_path: Path) -> None:
    (tmp_path / "hogs.toml").write_text(TWO_HOGS)
    file = tmp_path / "weights.toml"
    file.write_text(
        'scenario = "hogs.toml"\nreplications = 2\n[[vary]]\npath = "domain.a.weight"\nvalues = [256, 768]\n'
    )
    found = vcpulab.sweep(file, tmp_path / "store", metrics=["a.gotten"])
    assert shown(found) == ["point", "domain.a.weight", "a.gotten", "a.gotten ±"]
    assert found.to_frame()["a.gotten"].is_sorted()


def test_the_twin_of_a_recording() -> None:
    twin = vcpulab.Twin(ROOT / "tests/recordings/xen4.17-credit-weights")
    assert shown(twin) == ["domain", "vcpus", "apps"]
    score = twin.score(replications=2)
    assert {"what", "of", "recorded", "simulated", "holds"} <= set(shown(score))


def test_names_are_there_before_their_modules_are() -> None:
    code = (
        "import sys, vcpulab\n"
        "assert not {'polars', 'numpy', 'scipy'} & sys.modules.keys()\n"
        "assert all(getattr(vcpulab, name) is not None for name in vcpulab.__all__)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_answer_of_every_question_is_exported() -> None:
    verbs = [getattr(vcpulab, name) for name in vcpulab._DEFINED["_api"]]
    answers = {inspect.signature(verb).return_annotation.strip('"') for verb in verbs}
    assert len(answers) == len(verbs)
    assert answers <= set(vcpulab.__all__)
    assert all(issubclass(getattr(vcpulab, name), vcpulab.Answer) for name in answers)


def test_a_comparison_loads_no_linter_and_no_search() -> None:
    code = (
        "import sys, vcpulab\n"
        "vcpulab.whatif, vcpulab.compare, vcpulab.WhatIf, vcpulab.Differences\n"
        "import vcpulab.advice.deciding\n"
        "assert not [name for name in sys.modules if name.startswith(('vcpulab.advice.lint', 'vcpulab.advice.tuning'))]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_functions_shadow_no_modules() -> None:
    """`capacity.growth` and `tuning.confirm` were a module, or a function, by what had been imported first."""
    roots = [ROOT / "python/vcpulab", ROOT / "evidence/vcpulab_evidence"]
    for package in sorted(file.parent for root in roots for file in root.rglob("__init__.py")):
        inside = [*package.glob("*.py"), *(file.parent for file in package.glob("*/__init__.py"))]
        public = re.search(r"__all__ = \[(.*?)\]", (package / "__init__.py").read_text(), re.DOTALL)
        names = set(re.findall(r'"(\w+)"', public[1])) if public else set()
        assert not names & {file.stem for file in inside}, package
