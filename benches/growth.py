#!/usr/bin/env python3
"""Instructions for each decision on hosts of 8, 64, 128 and 512 pCPUs, counted by valgrind.

`benches/growth.py [POLICY=GENERATION ...]` counts these; if none is named, Credit, Credit2, RTDS
and null of Xen 4.17, CFS and EEVDF.
Null has one vCPU for each pCPU, the others eight. Counting begins in the steady state.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GROWTH = ROOT / "target" / "release" / "examples" / "growth"
POLICIES = ("credit=xen4.17", "credit2=xen4.17", "rtds=xen4.17", "null=xen4.17", "linux-cfs=6.1", "linux-eevdf=6.12")
PCPUS = {8: 800, 64: 100, 128: 100, 512: 60}
"""Simulated time at each size, ms: once before the count, once for it."""


def count(policy: str, generation: str, pcpus: int, ms: int) -> int:
    """The instructions for each decision."""
    vcpus = pcpus if policy == "null" else 8 * pcpus
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "part")
        tool = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--dump-before=growth::part_is_over"]
        args = [policy, generation, *map(str, (pcpus, vcpus, ms))]
        run = subprocess.run([*tool, GROWTH, *args], check=True, capture_output=True, text=True)
        totals = re.search(r"^totals: (\d+)", out.with_suffix(".2").read_text(), re.MULTILINE)
    decisions = re.search(r"decisions: (\d+)", run.stdout)
    assert totals, run.stderr
    assert decisions, run.stdout
    return int(totals[1]) // int(decisions[1])


def main(names: list[str]) -> None:
    """Print a row for each policy."""
    build = ["cargo", "build", "--release", "--quiet", "--package", "vcpulab-bench", "--example", "growth"]
    subprocess.run(build, cwd=ROOT, check=True)
    print(f"{'instructions for each decision':30}", *(f"{pcpus:>8}" for pcpus in PCPUS))
    for name in names or POLICIES:
        policy, _, generation = name.partition("=")
        counts = [count(policy, generation, pcpus, ms) for pcpus, ms in PCPUS.items()]
        print(f"{policy + ' ' + generation:30}", *(f"{each:8}" for each in counts), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
