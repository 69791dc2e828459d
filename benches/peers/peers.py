#!/usr/bin/env python3
"""Other simulators on the work of our own benchmark: `make bench-peers`, or `benches/peers/peers.py [PROGRAM ...]`.

The work: tasks run about 2 ms and sleep by turns, for times that are each task's own and always the same, on four
processors under round-robin with slices of 1 ms. Each program counts what it did; the counts must be those of the bare
loop, as nearly as the program's model of a processor allows.

Everything is built below `target/peers`: a virtual environment for each Python program, Java classes with a repository
of Maven's. What is not there and cannot be had from a package index (a compiler, Maven, SimGrid) is named and left out.
"""

import json
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OUT = ROOT / "target" / "peers"
OURS = ROOT / "target" / "release" / "examples" / "tasks"

SIZES = {16: 20_000, 512: 50_000, 4096: 100_000}
"""Tasks, and for how long they are simulated, ms."""

TIMES = 3
"""How often our own programs run: the shortest time counts. The others take long enough for once."""


class MissingError(Exception):
    """What a program needs and this machine lacks."""


@dataclass(frozen=True)
class Peer:
    """A program to compare with."""

    name: str
    model: str
    """How it differs from the bare loop."""
    command: Callable[[], list[str]]
    """Builds it, and answers how to run it: the file of tasks and the simulated time, ms, come last."""
    tolerance: float
    """Largest difference of a count from the bare loop's, as a share of that."""
    at_most_ms: int = 100_000
    """It is not simulated for longer, ms: it would take minutes."""


def python(package: str, program: str) -> list[str]:
    """The Python program in a virtual environment with that package."""
    place = OUT / package
    interpreter = place / "bin" / "python"
    if not (place / "installed").exists():
        venv.create(place, with_pip=True, clear=True)
        subprocess.run([interpreter, "-m", "pip", "install", "--quiet", package], check=True)
        (place / "installed").touch()
    return [str(interpreter), str(HERE / program)]


def simgrid() -> list[str]:
    """The program that uses SimGrid, compiled."""
    compiler, program = found("c++", "g++"), OUT / "simgrid_tasks"
    source = HERE / "simgrid_tasks.cpp"
    build = [compiler, "-O2", "-std=c++17", str(source), "-lsimgrid", "-o", str(program)]
    if subprocess.run(build, check=False, stderr=subprocess.DEVNULL).returncode:
        raise MissingError("SimGrid (Debian: libsimgrid-dev)")
    return [str(program)]


def cloudsim_plus() -> list[str]:
    """The program that uses CloudSim Plus, compiled."""
    maven, java = found("mvn", "maven"), found("java", "default-jdk-headless")
    place, classpath = OUT / "cloudsimplus", OUT / "cloudsimplus" / "classpath"
    goals = ["compile", "dependency:build-classpath"]
    settings = {"maven.repo.local": OUT / "maven", "peers": place, "mdep.outputFile": classpath}
    defined = [f"-D{name}={value}" for name, value in settings.items()]
    build = [maven, "--quiet", "--batch-mode", "-Dstyle.color=never", *defined, *goals]
    subprocess.run(build, cwd=HERE / "cloudsimplus", check=True, stdout=sys.stderr)
    # One thread, as all others.
    return [java, "-XX:+UseSerialGC", "-classpath", f"{place / 'classes'}:{classpath.read_text()}", "Tasks"]


def found(program: str, package: str) -> str:
    """Where a program is."""
    path = shutil.which(program)
    if path is None:
        raise MissingError(f"`{program}` (Debian: {package})")
    return path


PEERS = (
    Peer(
        "SimPy",
        "the same, but for the order of what is due at the same ns",
        lambda: python("simpy==4.1.2", "simpy_tasks.py"),
        0.005,
    ),
    Peer("SimGrid", "shares processors, without dispatches", simgrid, 0.02),
    Peer("CloudSim Plus", "shares processors, without dispatches; counts ends of runs", cloudsim_plus, 0.03, 2_000),
    Peer(
        "SimSo",
        "tasks are periodic, however long they waited",
        lambda: python("simso==0.8.5", "simso_tasks.py"),
        0.1,
        1_000,
    ),
)


@dataclass(frozen=True)
class Ran:
    """What a program did, and how long it took."""

    wakeups: int
    seconds: float
    dispatches: int | None = None
    program: str = ""

    @property
    def ns_each(self) -> float:
        """Time for each wake-up, ns: what all programs have."""
        return 1e9 * self.seconds / self.wakeups

    def difference(self, expected: "Ran") -> float:
        """The largest difference of a count from those of another, as a share of these."""
        differences = [abs(self.wakeups / expected.wakeups - 1)]
        if self.dispatches is not None and expected.dispatches is not None:
            differences.append(abs(self.dispatches / expected.dispatches - 1))
        return max(differences)


def ran(command: list[str]) -> list[Ran]:
    """What a program says of its runs, a line each."""
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return [Ran(**json.loads(line)) for line in run.stdout.splitlines()]


def ours(count: int, simulated_ms: int) -> tuple[Ran, Ran]:
    """The bare loop, and a whole run with statistics and the attribution of waits."""
    runs = [ran([str(OURS), str(count), str(simulated_ms)]) for _ in range(TIMES)]
    floors, wholes = zip(*runs, strict=True)
    return min(floors, key=lambda run: run.seconds), min(wholes, key=lambda run: run.seconds)


def built(names: list[str]) -> dict[Peer, list[str]]:
    """How to run each of these programs, or all; those that cannot be had are named."""
    commands = {}
    for peer in PEERS:
        if not names or peer.name.lower() in map(str.lower, names):
            try:
                commands[peer] = peer.command()
            except MissingError as missing:
                print(f"{peer.name} is left out: install {missing}", file=sys.stderr)
    return commands


def main(names: list[str]) -> int:
    """Print a table; fail if a count is not what it must be."""
    build = ["cargo", "build", "--release", "--quiet", "--package", "vcpulab-bench", "--example", "tasks"]
    subprocess.run(build, cwd=ROOT, check=True)
    OUT.mkdir(parents=True, exist_ok=True)
    commands = built(names)
    status = 0
    print("tasks program        simulated dispatches  wake-ups counts differ ns a wake-up of vcpulab's")
    for count, simulated_ms in SIZES.items():
        tasks = OUT / f"tasks-{count}"
        tasks.write_text(subprocess.run([OURS, str(count)], check=True, stdout=subprocess.PIPE, text=True).stdout)
        floor, whole = ours(count, simulated_ms)
        rows = [("bare loop", simulated_ms, floor, 0.0), ("vcpulab", simulated_ms, whole, whole.difference(floor))]
        for peer, command in commands.items():
            ms = min(simulated_ms, peer.at_most_ms)
            [run] = ran([*command, str(tasks), str(ms)])
            expected = floor if ms == simulated_ms else ours(count, ms)[0]
            differs = run.difference(expected)
            rows.append((peer.name, ms, run, differs))
            if differs > peer.tolerance:
                print(f"{peer.name}: a count differs by more than {peer.tolerance:.1%}", file=sys.stderr)
                status = 1
        for name, ms, run, differs in rows:
            ratio = run.ns_each / whole.ns_each
            dispatches = "" if run.dispatches is None else run.dispatches
            print(
                f"{count:5} {name:14} {ms:6} ms {dispatches:10} {run.wakeups:9} {differs:13.2%} "
                f"{run.ns_each:12.0f} {ratio:12.2f}",
                flush=True,
            )
    for peer in commands:
        print(f"{peer.name}: {peer.model}")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
