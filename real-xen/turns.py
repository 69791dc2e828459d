"""How QEMU's turns look from inside a recording of several pCPUs: their lengths, and what share of time they take.

Xen writes some events right after others, and always needs the same time in between. Where it took longer, other pCPUs
had their turns meanwhile: how much longer is what they took.
"""

from __future__ import annotations

import argparse
import lzma
import struct
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "emulation"))

import command
from keep import WINDOW, record
from packages import EmulationError

STRAIGHT_NS = 1_000
"""Events that are further apart may have had work of various lengths between them."""
USUAL = (100, 0.6)
"""Two events tell of turns when they follow each other so often, and that share of them near the usual time."""
JITTER_NS = 300
"""So near: shorter than any turn, longer than what differs between two paths through Xen."""
STEP_NS = 500
"""Turns are listed by multiples of it."""


def trace_of(recording: Path) -> bytes:
    """The trace of a recording, whether as it was made or as it is kept."""
    packed = recording / "trace.bin.xz"
    if packed.exists():
        return lzma.decompress(packed.read_bytes())
    return (recording / "trace.bin").read_bytes()


def gaps(trace: bytes) -> dict[int, dict[tuple[int, int], list[int]]]:
    """By pCPU and two events that follow each other there: how far they are apart, in ns (the TSC runs at 1 GHz)."""
    found: dict[int, dict[tuple[int, int], list[int]]] = defaultdict(lambda: defaultdict(list))
    before: dict[int, tuple[int, int]] = {}
    pcpu = at = 0
    while at < len(trace):
        event, length = record(trace, at)
        timed = trace[at + 3] & 0x80
        if event == WINDOW:
            (pcpu,) = struct.unpack_from("<I", trace, at + (12 if timed else 4))
        elif timed:
            (now,) = struct.unpack_from("<Q", trace, at + 4)
            if pcpu in before:
                found[pcpu][before[pcpu][0], event].append(now - before[pcpu][1])
            before[pcpu] = (event, now)
        at += length
    return found


def straight(apart: dict[tuple[int, int], list[int]]) -> Iterator[tuple[int, int]]:
    """Of two events with nothing but straight code between them, each time: what is usual, and what was added."""
    for times in apart.values():
        usual = Counter(times).most_common(1)[0][0]
        near = sum(abs(time - usual) < JITTER_NS for time in times)
        if len(times) >= USUAL[0] and usual <= STRAIGHT_NS and near >= USUAL[1] * len(times):
            yield from ((usual, time - usual) if time - usual > JITTER_NS else (time, 0) for time in times)


def lines(recording: Path) -> Iterator[str]:
    """What is said of one recording, a line for each pCPU."""
    for pcpu, apart in sorted(gaps(trace_of(recording)).items()):
        seen = list(straight(apart))
        turns = [added for _, added in seen if added]
        own, others = sum(usual for usual, _ in seen), sum(turns)
        if not turns:
            yield f"pCPU {pcpu}: never stands"
            continue
        by_length = Counter(round(turn / STEP_NS) * STEP_NS / 1e3 for turn in turns).most_common(4)
        common = ", ".join(f"{length:g} µs {100 * count / len(turns):.0f} %" for length, count in by_length)
        stands, runs = others / len(turns) / 1e3, own / len(turns) / 1e3
        yield (
            f"pCPU {pcpu}: stands {100 * others / (own + others):.0f} % of the time, {stands:.1f} µs after each"
            f" {runs:.1f} µs (seen {len(turns)} times, at most {max(turns) / 1e3:.1f} µs; {common})"
        )


def main() -> None:
    """The command line."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("recordings", nargs="+", type=Path, metavar="FOLDER")
    for recording in arguments.parse_args().recordings:
        if not (recording / "experiment.toml").exists():
            raise EmulationError(f"{recording}: no recording: it has no experiment.toml")
        print(recording.name)
        for line in lines(recording):
            print(f"  {line}")


if __name__ == "__main__":
    command.start(main)
