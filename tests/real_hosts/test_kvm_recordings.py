"""Recordings of a KVM host (`real-kvm/record_guests.py`): what is read of them, against other counts of the same."""

import lzma
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import ROOT, Vcpulab
from vcpulab import formats as recordings

REAL = ROOT / "tests" / "recordings" / "kvm6.1"


def by_thread(recording: recordings.Recording) -> dict[int, dict[str, Any]]:
    threads = {(thread.domain, thread.vcpu): thread.thread for thread in recording.threads}
    return {threads[vcpu["domain"], vcpu["vcpu"]]: vcpu for vcpu in recording.summary["vcpus"]}


def lines(name: str) -> Iterator[str]:
    with lzma.open(REAL / f"{name}.txt.xz", "rt") as text:
        yield from text


@pytest.fixture(scope="module", params=["perf", "ftrace"])
def real(request: pytest.FixtureRequest) -> tuple[str, recordings.Recording]:
    return request.param, recordings.read(REAL / f"{request.param}.txt.xz").holds


def test_real_recordings_are_read_without_a_doubt(real: tuple[str, recordings.Recording]) -> None:
    _, recording = real
    assert recording.notes == []
    span = recording.summary["span_ns"]
    assert 1.9e9 < span < 2.1e9
    assert len(recording.names) == 3  # each VM is its process
    assert recording.report["hz"] == 250, "by the charges of whoever runs: neither has the timer"
    for vcpu in recording.summary["vcpus"]:
        assert sum(vcpu[f"{state}_ns"] for state in ("running", "runnable", "blocked", "unknown")) == span
        # What it was at is not known only until it is first heard of.
        assert vcpu["unknown_ns"] < 0.01 * span


def test_vcpus_that_are_found_are_read_as_those_that_were_told(real: tuple[str, recordings.Recording]) -> None:
    name, recording = real
    path = REAL / f"{name}.txt.xz"
    assert recordings.read_trace(path, "sched-text", threads=recording.threads).report == recording.report


def test_time_and_wake_ups_are_those_of_the_lines(real: tuple[str, recordings.Recording]) -> None:
    """Counted here in the simplest way: from each switch to the next, the one who was switched to runs."""
    name, recording = real
    ran_ns: dict[int, int] = defaultdict(int)
    wakes: dict[int, int] = defaultdict(int)
    at: tuple[int, int] | None = None
    for line in lines(name):
        if waking := re.search(r"sched_waking: .* pid=(\d+) ", line):
            wakes[int(waking[1])] += 1
        if switch := re.search(r" (\d+)\.(\d+): .*sched_switch: .* next_pid=(\d+) ", line):
            now_ns = int(switch[1]) * 10**9 + int(switch[2].ljust(9, "0"))
            if at is not None:
                ran_ns[at[1]] += now_ns - at[0]
            at = now_ns, int(switch[3])
    for thread, vcpu in by_thread(recording).items():
        assert vcpu["running_ns"] == pytest.approx(ran_ns[thread], abs=5e6), thread  # before the first, after the last
        assert vcpu["wakes"] == wakes[thread], thread


def test_executions_and_time_are_those_that_perf_counts() -> None:
    """`perf sched timehist -s` of the same recording: milliseconds to three decimals."""
    table = (REAL / "timehist.txt").read_text()
    rows = re.findall(r"CPU 0/KVM\[(\d+)/\d+\] +\d+ +(\d+) +([\d.]+)", table)
    counted = {int(thread): (int(executions), float(ms)) for thread, executions, ms in rows}
    vcpus = by_thread(recordings.read(REAL / "perf.txt.xz").holds)
    assert len(vcpus) == 3
    for thread, vcpu in vcpus.items():
        executions, ms = counted[thread]
        assert vcpu["executions"] == executions
        assert vcpu["running_ns"] / 1e6 == pytest.approx(ms, abs=0.1)


def test_what_perf_leaves_out_is_noted(tmp_path: Path) -> None:
    """Without `--guest-code` it writes no line of what an interrupt did while a guest was running."""
    (tmp_path / "trace.txt").write_text("".join(line for line in lines("perf") if "[guest/" not in line))
    recording = recordings.read(tmp_path / "trace.txt").holds
    assert "wake-ups that are missing" in {note["what"] for note in recording.notes}
    for whole, part in zip(
        recordings.read(REAL / "perf.txt.xz").holds.summary["vcpus"], recording.summary["vcpus"], strict=True
    ):
        assert part["running_ns"] == whole["running_ns"]
        assert part["blocked_ns"] <= whole["blocked_ns"]


def test_a_twin_runs_and_a_page_of_it_opens(
    real: tuple[str, recordings.Recording], command: Vcpulab, tmp_path: Path
) -> None:
    name, _ = real
    file = str(REAL / f"{name}.txt.xz")
    made = command("twin", file, "--scheduler", "credit2", "--out", "kvm.toml")
    assert made.returncode == 0, made.stderr
    run = command("run", "kvm.toml", "--replications", "1", "--out", "out")
    assert run.returncode == 0, run.stderr
    exported = command("export", "perfetto", file, "--out", "host.pftrace")
    assert exported.returncode == 0, exported.stderr
    assert (tmp_path / "host.pftrace").stat().st_size > 10_000
