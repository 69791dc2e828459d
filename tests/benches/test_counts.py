"""The gate on instruction counts: what is slower without anybody having meant it is noticed the day it happens."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from support import ROOT

sys.path.insert(0, str(ROOT / "benches"))

import counts

VALGRIND_S = 1800
"""A guard only: alone on a machine it takes a minute, and what has to be compiled."""


def _required(why: str) -> None:
    if "VCPULAB_REQUIRE_VALGRIND" in os.environ:
        pytest.fail(why)
    pytest.skip(why)


def test_no_part_of_a_whole_run_takes_more_instructions_than_kept() -> None:
    if shutil.which("valgrind") is None:
        _required("valgrind is not there: instructions are not counted")
    command = [sys.executable, "benches/counts.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=VALGRIND_S)
    if done.returncode == counts.NOT_COMPARABLE:
        _required(done.stderr)
    assert done.returncode == counts.DONE, done.stderr


def _kept() -> dict[str, dict[str, int]]:
    return {"a": dict.fromkeys(counts.PARTS, 50_000_000), "b": dict.fromkeys(counts.PARTS, 5_100_000)}


@pytest.mark.parametrize("part", counts.PARTS)
@pytest.mark.parametrize("name", ["a", "b"])
def test_each_part_counts_and_less_is_told_too(name: str, part: str) -> None:
    for factor, told in ((1.0, False), (1.019, False), (0.981, False), (1.021, True), (0.979, True), (3.0, True)):
        now = _kept()
        now[name][part] = round(factor * now[name][part])
        found = list(counts.differences(_kept(), now))
        assert bool(found) is told, factor
        assert all(line.startswith(f"{name}, {part}: ") for line in found)
    assert list(counts.differences(_kept(), _kept())) == []


def test_what_the_layout_of_the_heap_changes_is_not_told() -> None:
    kept = {"a": dict.fromkeys(counts.PARTS, 300_000)}
    assert list(counts.differences(kept, {"a": dict.fromkeys(counts.PARTS, 399_000)})) == []
    assert len(list(counts.differences(kept, {"a": dict.fromkeys(counts.PARTS, 401_000)}))) == len(counts.PARTS)


def test_a_whole_run_that_is_new_or_gone_is_told() -> None:
    kept, now = _kept(), _kept()
    now["c"] = kept.pop("a")
    assert list(counts.differences(kept, now)) == ["a: not kept yet", "c: not kept yet"]
    assert list(counts.differences(now, kept)) == ["a: no longer counted", "c: no longer counted"]


def test_what_is_kept_is_of_what_is_counted() -> None:
    kept = json.loads(counts.KEPT.read_text())
    assert kept["instructions"].keys() == counts.SHORT_MS.keys()
    assert all(tuple(parts) == counts.PARTS for parts in kept["instructions"].values())
