"""Keys of cached values: they cover all that decides a value, and nothing that does not."""

import ast
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import vcpulab
import vcpulab_evidence
from vcpulab.advice.tuning import search
from vcpulab.results import cache
from vcpulab.results.cache import RunCache
from vcpulab.sweeps import work
from vcpulab_evidence.studies import study
from vcpulab_evidence.studies.runner import Runner, StudyEffort

IT = study("cherkasova2007")


def keys() -> list[str]:
    """A key of a study, of a search and of a sweep."""
    cache.maker.cache_clear()
    work.engine.cache_clear()
    unit = Runner(IT, StudyEffort(fast=True), RunCache(None))._unit(next(iter(IT.cases())), 0)
    return [unit.key, search._version(), work.key_of("digest", 1, 0)]


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with copies of the packages whose sources are in the keys."""
    for file in (vcpulab.__file__, vcpulab_evidence.__file__):
        folder = Path(str(file)).parent
        shutil.copytree(folder, tmp_path / folder.name, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    monkeypatch.setattr(cache, "_folder", lambda package: tmp_path / package)
    yield tmp_path
    monkeypatch.undo()
    keys()  # leaves those of the package itself behind


def changed(packages: Path, before: list[str], *files: str) -> list[list[bool]]:
    """Which of the three keys change with each file."""
    found = []
    for file in files:
        path = packages / file
        text = path.read_text(encoding="utf-8")
        path.write_text(text + "\n_CHANGED = True\n", encoding="utf-8")
        found.append([a != b for a, b in zip(before, keys(), strict=True)])
        path.write_text(text, encoding="utf-8")
    return found


def test_another_statistic_or_metric_is_another_key(packages: Path) -> None:
    before = keys()
    assert keys() == before
    files = ("results/statistics.py", "results/metrics.py", "scenario/scenario.py")
    statistic, metric, scenario = changed(packages, before, *(f"vcpulab/{file}" for file in files))
    assert statistic[:2] == [True, True], "MSER-5 cuts the warm-up off; a search tests differences"
    assert metric[1], "a search keeps the values of metrics"
    assert scenario == [True, True, True]


def test_what_decides_no_value_is_in_no_key(packages: Path) -> None:
    studies = "vcpulab_evidence/studies"
    files = (f"{studies}/cherkasova2007/claims.py", f"{studies}/devine2010/cases.py", "vcpulab/cli/page.py")
    assert changed(packages, keys(), *files) == [[False, False, False]] * 3


def test_sources_that_another_thread_kept_from_being_parsed_are_parsed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = cache.sources("vcpulab.sweeps.work")
    tries: list[bytes] = []
    parse = ast.parse

    def disturbed(source: bytes) -> ast.Module:
        tries.append(source)
        if len(tries) % 2:
            raise SystemError("AST constructor recursion depth mismatch (before=60, after=69)")
        return parse(source)

    monkeypatch.setattr(ast, "parse", disturbed)
    assert cache.sources("vcpulab.sweeps.work") == expected
    assert len(tries) == 2 * len(expected)


def test_sources_are_those_that_are_imported_in_turn() -> None:
    sources = cache.sources("vcpulab_evidence.studies.unit")
    assert {f"vcpulab_evidence.studies.{name}" for name in ("unit", "window")} < set(sources)
    assert "vcpulab.results.statistics" in sources
    assert all(file.is_file() for file in sources.values())
    modules = ["vcpulab.advice.tuning.search", "vcpulab.sweeps.work", *sources]
    decides_nothing = ("vcpulab.show", "vcpulab.cli")
    assert not [name for name in cache.sources(*modules) if name.startswith(decides_nothing)]
    with pytest.raises(ModuleNotFoundError, match=r"no module `vcpulab\.nothing`"):
        cache.sources("vcpulab.nothing")


@pytest.mark.parametrize("bit", [0, 5])
def test_a_line_that_was_changed_is_left_out(tmp_path: Path, bit: int) -> None:
    file = tmp_path / "units.jsonl"
    values = {"one": {"x": 1.5, "y.p99": 2e-9}, "two": {"x": 0.0}}
    for key, metrics in values.items():
        RunCache(file).add(key, "case", 0, metrics)
    written = file.read_bytes()
    for at in range(len(written)):
        file.write_bytes(written[:at] + bytes([written[at] ^ 1 << bit]) + written[at + 1 :])
        found = RunCache(file)
        there = {key: kept for key in values if (kept := found.get(key)) is not None}
        assert all(values[key] == kept for key, kept in there.items())
        # `2e-09` may as well be `2E-09`.
        assert len(there) < 2 or written[at : at + 1] == b"e"
