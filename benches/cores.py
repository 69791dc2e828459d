#!/usr/bin/env python3
"""What a second processor gives: the time of a run, a sweep and a search with one job, and with two.

`benches/cores.py [MS]`: replications take about so much CPU time each; 50 if left out. The efficiency is the time with
one job over twice that with two. Other programs on the machine take from it: so the least of some times counts, and the
CPU time beside it says how much of the machine there was.
"""

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import vcpulab
from vcpulab import Scenario
from vcpulab.sweeps import Plan

ROOT = Path(__file__).resolve().parents[1]
SCENARIO = ROOT / "scenarios" / "web-server.toml"
TIMES = 3
SWEEP = """\
scenario = "scenario.toml"
replications = 5
[[vary]]
path = "web.weight"
values = [128, 256, 512, 1024]
[[vary]]
path = "client.httperf.rate"
from = 1000
to = 1400
steps = 5
"""


class Took(NamedTuple):
    """How long something took."""

    wall: float
    cpu: float


def took(work: Callable[[], object]) -> Took:
    """The time that some work takes, s, and the CPU time of all its threads."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Took(time.perf_counter() - wall, time.process_time() - cpu)


def lasting(ms: float) -> Scenario:
    """The scenario, with replications of about so much CPU time."""
    one = Scenario.load(SCENARIO).change({"run.replications": 1})
    each = min(took(lambda: vcpulab.run(one, jobs=1)) for _ in range(TIMES))
    return one.change({"run.duration": f"{one.duration_ns * ms / 1000 / each.cpu:.0f}ns"})


def main(ms: float) -> None:
    """Print a row for each kind of work."""
    scenario = lasting(ms)
    many = scenario.with_run(replications=20)

    def swept(jobs: int) -> object:
        with TemporaryDirectory() as folder:
            Path(folder, "scenario.toml").write_text(scenario.to_toml(), encoding="utf-8")
            Path(folder, "sweep.toml").write_text(SWEEP, encoding="utf-8")
            return vcpulab.sweep(Plan.load(Path(folder, "sweep.toml")), Path(folder, "store"), jobs=jobs)

    works: dict[str, Callable[[int], object]] = {
        "run, 20 replications": lambda jobs: vcpulab.run(many, jobs=jobs),
        "sweep, 20 points of 5": swept,
        "tune, 24 settings": lambda jobs: vcpulab.tune(scenario, trials=24, jobs=jobs),
    }
    columns = ("1 job, s", "CPU", "2 jobs, s", "CPU", "efficiency")
    print(f"{f'replications of {ms:g} ms':24}", *(f"{column:>10}" for column in columns))
    for name, work in works.items():
        one, two = (min(took(partial(work, jobs)) for _ in range(TIMES)) for jobs in (1, 2))
        numbers = (*one, *two, one.wall / 2 / two.wall)
        print(f"{name:24}", *(f"{number:10.2f}" for number in numbers), flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 50.0)
