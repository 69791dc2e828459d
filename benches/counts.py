#!/usr/bin/env python3
"""Instructions of whole runs, part by part, counted by valgrind: repeatable to within a thousandth on any machine.

`benches/counts.py [NAME ...]` counts those that the example `whole` of the crate `vcpulab-bench` lists; all, if none is
named. Profiles remain in `target/callgrind`, for `callgrind_annotate --inclusive=yes target/callgrind/NAME.run`.

`--check` counts shorter ones and compares them with `benches/counts.json`; `--keep` writes that file.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "target" / "callgrind"
WHOLE = ROOT / "target" / "release" / "examples" / "whole"
KEPT = ROOT / "benches" / "counts.json"
PARTS = ("read", "build", "run", "rows", "tables")
SHORT_MS = {
    "tasks-16": 10_000,
    "tasks-512": 20_000,
    "tasks-4096": 4_000,
    "web-server": 1_000,
    "in-use": 400,
    "crowd-63": 100,
    "crowd-256": 50,
}
"""How long the runs of the check simulate, ms: together they take valgrind half a minute."""
TOLERATED = 0.02
"""A part may have so much more or less instructions, as a part of the kept count ..."""
NEGLIGIBLE = 100_000
"""... or so many: where blocks of the heap lie changes the count of short parts by as much."""
DONE, FAILED, NOT_COMPARABLE = 0, 1, 3
# What glibc chooses by the processor: the same everywhere.
SAME = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-AVX,-ERMS,-FSRM,-AVX512F", "LC_ALL": "C"}

Counts = Mapping[str, Mapping[str, int]]
"""Whole run to part to instructions."""


def count(name: str, simulated_ms: int | None = None) -> tuple[dict[str, int], int]:
    """The instructions of each part of a whole run, and its dispatches."""
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    tool = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder / 'part'}"]
    work = [str(WHOLE), name, *([] if simulated_ms is None else [str(simulated_ms)])]
    command = [*tool, "--dump-before=whole::part_is_over", *work]
    environment = {"PATH": os.environ["PATH"], **SAME}
    run = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    instructions = {}
    for number, part in enumerate(PARTS, 1):
        profile = (folder / f"part.{number}").rename(OUT / f"{name}.{part}")
        totals = re.search(r"^totals: (\d+)", profile.read_text(), re.MULTILINE)
        assert totals, f"no totals in {profile}"
        instructions[part] = int(totals[1])
    dispatches = re.search(r"dispatches: (\d+)", run.stdout)
    assert dispatches, run.stdout
    return instructions, int(dispatches[1])


def build() -> None:
    """Compiles the whole runs."""
    # Beside what is installed, everything is taken as it was compiled for that.
    packages = ["--package", "vcpulab-bench", "--package", "vcpulab-python"]
    command = ["cargo", "build", "--release", "--quiet", "--locked", *packages, "--example", "whole"]
    subprocess.run(command, cwd=ROOT, check=True)
    OUT.mkdir(exist_ok=True)


def compiler() -> dict[str, str]:
    """What the counts depend on besides the sources: the compiler and its target."""
    said = subprocess.run(["rustc", "-vV"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    facts = dict(re.findall(r"^(release|host): (.+)$", said, re.MULTILINE))
    return {"rustc": facts["release"], "target": facts["host"]}


def differences(kept: Counts, now: Counts) -> Iterator[str]:
    """The parts whose count differs by more than is tolerated, a line for each."""
    for name in sorted(kept.keys() | now.keys()):
        if name not in now or name not in kept:
            yield f"{name}: {'no longer counted' if name in kept else 'not kept yet'}"
            continue
        for part in PARTS:
            before, after = kept[name][part], now[name][part]
            if abs(after - before) > max(TOLERATED * before, NEGLIGIBLE):
                change = 100 * (after - before) / before
                yield f"{name}, {part}: {before:,} → {after:,} instructions ({change:+.1f} %)"


HINT = """
hint: if that is meant, `make bench-counts-keep` keeps the new counts; say why in benches/README.md, *Kept counts*.
Otherwise `callgrind_annotate --inclusive=yes target/callgrind/NAME.PART` shows what the instructions are for."""


def check() -> int:
    """Compares the counts with the kept ones; the exit status."""
    kept = json.loads(KEPT.read_text())
    here = compiler()
    if other := [f"{what} {kept[what]}, here {here[what]}" for what in here if kept[what] != here[what]]:
        print(f"not comparable: counts were kept with {'; '.join(other)}", file=sys.stderr)
        return NOT_COMPARABLE
    build()
    found = list(differences(kept["instructions"], short()))
    if found:
        grown = f"instructions of whole runs differ by more than {100 * TOLERATED:g} % from benches/counts.json:"
        print(grown, *found, sep="\n  ", end=f"\n{HINT.lstrip()}\n", file=sys.stderr)
    return FAILED if found else DONE


def keep() -> int:
    """Writes the counts; the exit status."""
    build()
    KEPT.write_text(json.dumps({**compiler(), "instructions": short()}, indent=2) + "\n")
    print(f"{KEPT.relative_to(ROOT)} is written: say in benches/README.md, *Kept counts*, what changed them")
    return DONE


def short() -> dict[str, dict[str, int]]:
    """The instructions of each part of the short runs."""
    return {name: count(name, simulated_ms)[0] for name, simulated_ms in SHORT_MS.items()}


def show(names: list[str]) -> int:
    """Prints a row for each of these whole runs; the exit status."""
    build()
    listed = subprocess.run([WHOLE], check=True, capture_output=True, text=True).stdout
    print(f"{'instructions':12} {'dispatches':>10} {'for each':>9}", *(f"{part:>14}" for part in PARTS))
    for name in names or [line.split()[0] for line in listed.splitlines()]:
        parts, dispatches = count(name)
        # A run builds its host once more.
        each = (parts["run"] - parts["build"]) // dispatches
        print(f"{name:12} {dispatches:10} {each:9}", *(f"{parts[part]:14,}" for part in PARTS), flush=True)
    return DONE


def main(arguments: list[str]) -> int:
    """Runs the command line; the exit status."""
    match arguments:
        case ["--check"]:
            return check()
        case ["--keep"]:
            return keep()
        case _:
            return show(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
