"""`docs/validation.md`: its numbers are those that are measured, and its picture and quotations are up to date."""

import csv
import re
from pathlib import Path
from typing import Any

import pytest

import invalidation
import measure
from support import ROOT, examples_in_help
from vcpulab.cli.main import main
from vcpulab_evidence.validation import Report, validate

pytestmark = pytest.mark.slow

DOCS = ROOT / "docs"
PAGE = (DOCS / "validation.md").read_text(encoding="utf-8")
_BLOCK = re.compile(r"<!-- generated: ([a-z-]+) -->\n(.*?)\n<!-- end -->", re.DOTALL)


def kept(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader((DOCS / "evidence" / f"{name}.csv").read_text(encoding="utf-8").splitlines()))


def test_cases_that_break_twins_give_what_the_page_says() -> None:
    for name, measured in (("invalidation", invalidation.table), ("effects", invalidation.effects_table)):
        kept = (DOCS / "evidence" / f"{name}.csv").read_text(encoding="utf-8")
        assert measured() == kept


def test_cases_that_break_twins_do() -> None:
    """Each is there because the effect matters: a twin is off by far more than a bar allows, but for Dom0, by less."""
    off = {row["case"]: abs(float(row["off_percent"])) for row in kept("invalidation")}
    assert set(off) == {path.stem for path in (ROOT / "scenarios" / "invalidation").glob("*.toml")}
    assert all(by > 25 for case, by in off.items() if case != "saturated-dom0"), off


def test_decisions_are_those_that_are_replayed() -> None:
    measured = [{key: str(value) for key, value in row.items()} for row in measure.conformance()]
    assert measured == kept("conformance")


def test_predictions_of_linux_are_those_that_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the first example in the help of `vcpulab validate`: predictions of all that is bundled take long."""
    reports: list[Report] = []

    def validated(*paths: Any, **options: Any) -> Report:
        reports.append(validate(*paths, **options))
        return reports[-1]

    monkeypatch.setattr("vcpulab_evidence.validation.validate", validated)
    monkeypatch.chdir(tmp_path)
    first_example, *_ = examples_in_help("validate")
    assert first_example == "vcpulab validate"
    assert main(["validate"]) == 0
    (report,) = reports
    assert [{key: str(value) for key, value in row.items()} for row in measure.linux(report)] == kept("linux")


def test_predictions_of_hosts_are_those_that_are_measured() -> None:
    report = validate([measure.HOSTS])
    for name, rows in (("hosts", measure.hosts(report)), ("host-threads", measure.host_threads(report))):
        assert [{key: str(value) for key, value in row.items()} for row in rows] == kept(name)


def test_studies_are_as_their_own_page_has_them() -> None:
    assert [{key: str(value) for key, value in row.items()} for row in measure.studies()] == kept("studies")


def test_the_page_opens_with_two_lines_a_table_and_a_picture_and_the_readme_quotes_the_lines() -> None:
    names = [name for name, _ in _BLOCK.findall(PAGE)]
    assert names[:2] == ["two-lines", "overview"]
    assert PAGE.index("![") < PAGE.index("\n## ")
    quoted = dict(_BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8")))["two-lines"]
    assert quoted == dict(_BLOCK.findall(PAGE))["two-lines"]
    assert len(quoted.splitlines()) == 2


def test_the_verdict_of_a_bar_is_what_its_numbers_say() -> None:
    """A reader who does not trust the column can check it by the others."""
    for row in kept("xen"):
        limits = re.findall(r"[\d.]+ (?:points|%) in ([\d.]+) %", row["bar"])
        reached = row["within"].split(" / ")
        assert len(limits) == len(reached)
        near = [abs(float(part) - float(needed)) < 1 for part, needed in zip(reached, limits, strict=True)]
        passed = all(float(part) >= float(needed) for part, needed in zip(reached, limits, strict=True))
        assert any(near) or (row["passed"] == "yes") == passed, row
