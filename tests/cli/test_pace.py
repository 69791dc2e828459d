"""The pace of runs, as those who wait see it."""

import os
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

import pytest

import vcpulab
from vcpulab import Scenario, _engine
from vcpulab.cli import pace, terminal

HASTY = """
[run]
duration = "1s"
warmup = "0s"
[host]
pcpus = 1
scheduler = "credit"
profile = "exact"
[domain.quiet]
app = [{ kind = "periodic", run = "1ms", period = "10ms" }]
[domain.hasty]
app = [{ kind = "phases", phase = [{ event = [{ sleep = "1ns" }] }] }]
"""


def test_the_engine_counts_what_all_its_runs_do() -> None:
    scenario = Scenario.starter().change({"run.duration": "100ms", "run.warmup": "100ms"})
    events, simulated_ns, _ = _engine.pace()
    vcpulab.run(scenario.with_run(replications=3))
    now_events, now_ns, _ = _engine.pace()
    assert now_ns - simulated_ns == 3 * 200_000_000
    assert now_events > events


def test_who_keeps_time_from_going_on_is_known_before_the_run_fails() -> None:
    with pytest.raises(vcpulab.EngineError, match="time hardly goes on"):
        vcpulab.run(Scenario.from_toml(HASTY))
    assert _engine.pace()[2] == "domain `hasty` (its `phases`)"


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[float, tuple[int, int, str]], None]:
    """Sets the clock, and what the engine has done."""
    engine: list[tuple[int, int, str]] = [(0, 0, "")]
    clock = [100.0]
    monkeypatch.setattr(_engine, "pace", lambda: engine[0])
    monkeypatch.setattr("vcpulab.cli.pace.time.monotonic", lambda: clock[0])

    def is_at(seconds: float, done: tuple[int, int, str]) -> None:
        clock[0], engine[0] = 100 + seconds, done

    return is_at


def test_the_pace_in_words(at: Callable[[float, tuple[int, int, str]], None]) -> None:
    at(0, (7_000, 5_000_000_000, "domain `before`"))
    shown = pace.Pace("tuning")
    at(0.9, (1_007_000, 6_000_000_000, ""))
    assert (str(shown), str(shown.__rich__())) == ("", "tuning"), "not yet"
    at(2, (3_007_000, 25_000_000_000, "domain `web`"))
    assert str(shown) == "20 s simulated, 1.5 M events/s"
    assert str(shown.__rich__()) == "tuning  20 s simulated, 1.5 M events/s"
    at(2.5, (9_007_000, 99_000_000_000, "domain `web`"))
    assert str(shown) == "20 s simulated, 1.5 M events/s", "looked at once a second"
    at(4, (3_009_000, 25_002_000_000, "client `crowd`\x1b"))
    assert str(shown.__rich__()) == "tuning  20 s simulated, 1 k events/s, most of client `crowd`\\x1b"
    at(6, (3_009_000, 25_002_000_000, "client `crowd`"))
    assert str(shown) == "", "nothing runs"


def all_of(terminal: int) -> bytes:
    """What was written to a terminal that is closed at its other end."""
    found = b""
    with suppress(OSError):
        while part := os.read(terminal, 4096):
            found += part
    return found


@pytest.mark.parametrize("kind", ["progress", "status"])
def test_it_is_shown_in_a_terminal_alone(
    at: Callable[[float, tuple[int, int, str]], None], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    def shown(file: TextIO) -> None:
        monkeypatch.setattr("sys.stderr", file)
        at(0, (0, 0, ""))
        with getattr(terminal, kind)("running") as advance:
            at(2, (2_000_000, 3_000_000_000, ""))
            advance("half" if kind == "status" else 0.5)

    monkeypatch.setenv("TERM", "xterm")
    ours, theirs = os.openpty()
    with open(theirs, "w") as file:
        shown(file)
    assert b"3 s simulated, 1 M events/s" in all_of(ours)
    reader, writer = os.pipe()
    with open(writer, "w") as file:
        shown(file)
    assert os.read(reader, 1) == b""
    os.close(reader)
    os.close(ours)
