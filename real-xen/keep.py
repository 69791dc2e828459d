"""Recordings as the repository keeps them: from `out/real-xen` to `evidence/recordings/xen`, by name.

Of a trace, what nothing here reads is left out, more than half of its bytes: the events of single policies, and the
events that tell once more of a switch or a wake-up. The rest is compressed.
"""

from __future__ import annotations

import argparse
import lzma
import shutil
import struct
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "emulation"))

import command
from packages import EmulationError

HERE = Path(__file__).resolve().parent
FROM = HERE.parent / "out/real-xen"
TO = HERE.parent / "evidence/recordings/xen"
TEXTS = ("experiment.toml", "list0.txt", "list1.txt", "vcpus.txt", "sched.txt", "info.txt", "guests.txt")

WINDOW = 0x0001F003
"""Event that begins what was read from a pCPU's buffer: its number, and how many bytes follow."""
POLICIES, CLASS = 0x00022000, 0x0FFFF000
TOLD_TWICE = (0x00028004, 0x0002800A)
"""A wake-up and a switch: changes of runstates tell of them too."""
XZ = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 1, "lp": 3, "pb": 3}]
"""Records are of words of four bytes, and readings of eight."""


def thinned(trace: bytes) -> bytes:
    """A trace of xentrace's without the events that nothing reads."""
    kept = bytearray()
    at = 0
    while at < len(trace):
        event, length = record(trace, at)
        if event != WINDOW:
            raise EmulationError(
                f"trace, byte {at}: found event {event:#x}; allowed: the begin of a window, {WINDOW:#x}"
            )
        head, (size,) = trace[at : at + length - 4], struct.unpack_from("<I", trace, at + length - 4)
        window = _window(trace, at + length, at + length + size)
        kept += head + struct.pack("<I", len(window)) + window
        at += length + size
    return bytes(kept)


def _window(trace: bytes, at: int, end: int) -> bytes:
    kept = bytearray()
    while at < min(end, len(trace)):
        event, length = record(trace, at)
        at_an_end = not kept or at + length >= end  # where the recording may begin or end
        if event & CLASS != POLICIES and (at_an_end or event not in TOLD_TWICE):
            kept += trace[at : at + length]
        at += length
    return bytes(kept)


def record(trace: bytes, at: int) -> tuple[int, int]:
    """Event and length of a record: a word that says how many follow, and whether a reading of 8 bytes does."""
    (word,) = struct.unpack_from("<I", trace, at)
    return word & 0x0FFFFFFF, 4 + 4 * (word >> 28 & 7) + 8 * (word >> 31)


def keep(recording: Path, to: Path) -> int:
    """Copies what is worth keeping; how many bytes that is."""
    if not (recording / "experiment.toml").exists():
        raise EmulationError(f"{recording}: no recording: it has no experiment.toml")
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    trace = thinned((recording / "trace.bin").read_bytes())
    (to / "trace.bin.xz").write_bytes(lzma.compress(trace, format=lzma.FORMAT_XZ, filters=XZ))
    kept = (*(recording / name for name in TEXTS), *recording.glob("*.cfg"), *recording.glob("pools.txt"))
    for path in kept:
        shutil.copyfile(path, to / path.name)
    return sum(path.stat().st_size for path in to.iterdir())


def main() -> None:
    """The command line."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("names", nargs="+", metavar="NAME", help="folders of out/real-xen")
    arguments.add_argument("--to", type=Path, default=TO, help="(default: %(default)s)")
    given = arguments.parse_args()
    total = 0
    for name in given.names:
        total += keep(FROM / name, given.to / name)
    print(f"{len(given.names)} recordings, {total:,} bytes")


if __name__ == "__main__":
    command.start(main)
