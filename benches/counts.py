#!/usr/bin/env python3
"""Instructions of whole runs, part by part, counted by valgrind: repeatable to within a thousandth on any machine.

`benches/counts.py [NAME ...]` counts those that the example `whole` of the crate `vcpulab-bench` lists; all, if none is
named. Profiles remain in `target/callgrind`, for `callgrind_annotate --inclusive=yes target/callgrind/NAME.run`.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "target" / "callgrind"
WHOLE = ROOT / "target" / "release" / "examples" / "whole"
PARTS = ("read", "build", "run", "rows", "tables")


def count(name: str) -> tuple[dict[str, int], int]:
    """The instructions of each part of a whole run, and its dispatches."""
    for old in OUT.glob("part*"):
        old.unlink()
    tool = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={OUT / 'part'}", "--dump-before=whole::part_is_over"]
    run = subprocess.run([*tool, WHOLE, name], check=True, capture_output=True, text=True)
    instructions = {}
    for number, part in enumerate(PARTS, 1):
        profile = (OUT / f"part.{number}").rename(OUT / f"{name}.{part}")
        totals = re.search(r"^totals: (\d+)", profile.read_text(), re.MULTILINE)
        assert totals, f"no totals in {profile}"
        instructions[part] = int(totals[1])
    dispatches = re.search(r"dispatches: (\d+)", run.stdout)
    assert dispatches, run.stdout
    return instructions, int(dispatches[1])


def main(names: list[str]) -> None:
    """Print a row for each of these whole runs."""
    build = ["cargo", "build", "--release", "--quiet", "--package", "vcpulab-bench", "--example", "whole"]
    subprocess.run(build, cwd=ROOT, check=True)
    OUT.mkdir(exist_ok=True)
    listed = subprocess.run([WHOLE], check=True, capture_output=True, text=True).stdout
    print(f"{'instructions':12} {'dispatches':>10} {'for each':>9}", *(f"{part:>14}" for part in PARTS))
    for name in names or [line.split()[0] for line in listed.splitlines()]:
        parts, dispatches = count(name)
        # A run builds its host once more.
        each = (parts["run"] - parts["build"]) // dispatches
        print(f"{name:12} {dispatches:10} {each:9}", *(f"{parts[part]:14,}" for part in PARTS), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
