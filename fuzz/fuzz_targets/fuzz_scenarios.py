"""Random scenarios, one after the other: the invariants of their runs, and how commands on them end.

Arguments: the first seed, and for how many seconds. Prints each fault with its seed; exit status 1 if there was one.
"""

import sys
import tempfile
import time
from pathlib import Path
from random import Random

import invariants
import random_commands
from random_scenarios import random_checked
from vcpulab.errors import EngineError

COMMANDS = 3


def faults_of(seed: int) -> list[str]:
    """What is wrong with the scenario of a seed."""
    scenario = random_checked(seed)
    try:
        found = invariants.faults_of(scenario)
    except EngineError as error:
        # Checks warn of what makes a run this slow.
        return [] if scenario.warnings else [f"{error}, without a warning"]
    with tempfile.TemporaryDirectory(prefix="fuzz-scenarios-") as folder:
        return found + random_commands.faults_of(scenario, Random(seed), COMMANDS, Path(folder))


def main(seed: int, seconds: float) -> int:
    """Tries seeds until the time is over, and returns the number of faulty ones."""
    end = time.monotonic() + seconds
    faulty = 0
    while time.monotonic() < end:
        for fault in faults_of(seed):
            sys.stdout.write(f"seed {seed}: {fault}\n")
            sys.stdout.flush()
            faulty += 1
        seed += 1
    sys.stdout.write(f"up to seed {seed - 1}: {faulty} faults\n")
    return faulty


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), float(sys.argv[2])) > 0)
