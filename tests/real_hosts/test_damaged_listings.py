"""Damaged listings end with a scenario or an error; the time that readers take grows with the size of a text."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vcpulab
from support import ROOT
from vcpulab.errors import RecordingError, RequestError, ScenarioError
from vcpulab.formats import KINDS, Kind, known_in, read
from vcpulab.formats.kinds import Unused, hypervisor_of
from vcpulab.imports import kvm, xen

SEEDS = sorted((ROOT / "fuzz/seeds/texts").iterdir())
UNITS = (
    *(" ", "\t", "-", "0", "0,", "<", "<a>", "a ", "/", "│ ", '"', "'", "(", "[", "=", "0-", "a:", "#", "== ", ": "),
    *("(XEN) ", "<domain ", "<domain>", "<!--", "<![CDATA[", "x=1 ", "-qm", "{", "1 1 1 r-- 1 ", "Domain: ", "> "),
    *("$ xl list ", "\\x2d", "user@host:", "Name ID ", "CPU Affinity ", "COMMAND ", "\x0b", "\x1b[2J"),
)
BYTES = 1 << 13
GROWTH_MOST = 3.0
"""The most that twice the size may take, in times; of a quadratic reader it would be 4."""
TOO_SHORT_S = 0.05
"""Times below are not compared: they have too much noise."""


def seconds(path: Path, text: str, kind: Kind | None) -> float:
    """The CPU time for reading a text."""
    path.write_text(text)
    begin = time.process_time()
    try:
        if kind is None:
            list(known_in(path))
        else:
            read(path, kind)
    except RecordingError:
        pass
    return time.process_time() - begin


def long_texts(seed: str, unit: str, size: int) -> Iterator[str]:
    """A seed with a long line that a unit makes, in three places, and with many lines."""
    lines = seed.split("\n")
    widest = max(lines, key=len)
    many = unit * (size // len(unit))
    yield "\n".join([*lines[:3], widest + many, *lines[3:]])
    yield "\n".join([*lines[:3], many + widest, *lines[3:]])
    yield f"{many}\nx"
    yield "\n".join([*lines[:2], *[unit + widest] * (size // len(unit + widest))])


@pytest.mark.parametrize("seed", SEEDS, ids=lambda path: path.name)
def test_readers_are_linear(seed: Path, tmp_path: Path) -> None:
    text = seed.read_text()
    kinds: set[Kind | None] = {None}
    if seed.name != "threads.txt":  # It is known by its name.
        kinds |= {part[1] for part in known_in(seed) if not isinstance(part, Unused)}
    path = tmp_path / seed.name
    for unit in UNITS:
        for kind in kinds:
            sizes = zip(long_texts(text, unit, BYTES), long_texts(text, unit, 2 * BYTES), strict=True)
            for place, (once, twice) in enumerate(sizes):
                if seconds(path, twice, kind) > TOO_SHORT_S:
                    shortest = min(seconds(path, twice, kind) for _ in range(3))
                    growth = shortest / max(seconds(path, once, kind), 1e-6)
                    assert growth < GROWTH_MOST or shortest < TOO_SHORT_S, (unit, kind, place, shortest)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("xentrace", "sched-text")])
def test_a_long_line_of_one_character_is_read_in_no_time_by_any_reader(kind: Kind, tmp_path: Path) -> None:
    """A megabyte takes no more than the machine's noise times what 1/128 of it takes."""
    path = tmp_path / "long.txt"
    for unit in (" ", "=", "0,", "<domain "):
        short = max(seconds(path, unit * (BYTES // len(unit)) + "x", kind), TOO_SHORT_S / 10)
        long = seconds(path, unit * ((1 << 20) // len(unit) - 1) + "x", kind)
        assert long < 128 * GROWTH_MOST * short, (unit, short, long)


CONTROLS = ("\x00", "\x1b[2J", "\x7f", "\x0b", "\r", "\u2028", "\ufeff", "\U0001f600", "-", "--", "=", "all", "9" * 12)


CHANGES = ("swap", "double", "drop", "cut", "insert")


def damaged(lines: list[str], change: str, first: int, second: int, piece: str) -> list[str]:
    """The lines with one damage; numbers beyond the last line count from the first again."""
    lines, at, other = list(lines), first % len(lines), second % len(lines)
    half = len(lines[at]) // 2
    if change == "swap":
        lines[at], lines[other] = lines[other], lines[at]
    elif change == "double":
        lines.insert(other, lines[at])
    elif change == "drop" and len(lines) > 1:
        del lines[at]
    elif change == "cut":
        lines[at] = lines[at][:half]
    else:
        lines[at] = f"{lines[at][:half]}{piece}{lines[at][half:]}"
    return lines


def why_not(path: Path) -> str | None:
    """Why no scenario is made of a file; `None`: it is made."""
    try:
        parts = [part for part in known_in(path) if not isinstance(part, Unused)]
        for hypervisor, scenario_of in (("xen", xen.scenario_of), ("kvm", kvm.scenario_of)):
            reads = [read(*part) for part in parts if hypervisor_of(part[1]) == hypervisor and part[1] != "xenmon"]
            if reads:
                vcpulab.Scenario.from_toml(scenario_of(reads).text)
    except (RecordingError, RequestError, ScenarioError) as error:
        return str(error)
    return None


@settings(max_examples=100, deadline=None)
@given(
    seed=st.sampled_from(SEEDS),
    changes=st.lists(
        st.tuples(st.sampled_from(CHANGES), st.integers(0, 1000), st.integers(0, 1000), st.sampled_from(CONTROLS)),
        min_size=1,
        max_size=4,
    ),
)
def test_damaged_listings_are_a_scenario_or_an_error(
    seed: Path, changes: list[tuple[str, int, int, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """No error has a line of a text that nobody sees."""
    lines = seed.read_text().split("\n")
    for change in changes:
        lines = damaged(lines, *change)
    path = tmp_path_factory.getbasetemp() / f"damaged-{seed.name}"
    path.write_text("\n".join(lines))
    error = why_not(path)
    assert error is None or not re.match(r"<\w+>:|vcpulab import", error), error


@pytest.mark.parametrize("part", ["0-511,", "^0-511,", "node:0,"])
def test_a_megabyte_of_cpus_is_read_in_no_time(part: str, tmp_path: Path) -> None:
    path = tmp_path / "web.cfg"
    path.write_text(f"name = 'web'\nvcpus = 2\ncpus = '{part * (1_000_000 // len(part))}1'\n")
    begin = time.process_time()
    made = xen.scenario_of([read(path)])
    assert time.process_time() - begin < 2
    (note,) = (note for note in made.notes if note.startswith("affinity of web: "))
    assert len(note) < 200
