"""Records Linux's schedulers on a KVM host's threads in QEMU's emulation: `make real-kvm REAL_KVM="mixed nested"`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "emulation"))

import command
import machine
from archive import archive, program, system, text
from experiment import Experiment, read_experiments
from kernels import KERNELS, Kernel, prepare
from packages import EmulationError, Packages, compile_static

HERE = Path(__file__).resolve().parent
OUT = HERE.parent / "out/real-kvm"
COUNTER = "counter.txt"
"""The trace as the host hands it out, with readings of the processor's counter."""


def in_seconds(trace: str) -> str:
    """A trace with times in seconds: the counter runs at 1 GHz."""
    held = re.search(r"entries-in-buffer/entries-written: (\d+)/(\d+)", trace)
    if held is None or held[1] != held[2]:
        raise EmulationError(f"the trace is not whole: {held[0] if held else 'it does not say how many events it has'}")

    def seconds(event: re.Match[str]) -> str:
        whole, ns = divmod(int(event[2]), 10**9)
        return f"{event[1]}{whole:3}.{ns:09}:"

    return re.sub(r"^(.*? \[\d+\] \S+ ) *(\d+):", seconds, trace, flags=re.MULTILINE)


def _words(experiment: Experiment, seed: int) -> str:
    """The kernel's command line. What it does not know it hands on to `host-init`.

    Without self tests of cryptography, which take a second after boot, in which threads are to wake alone.
    """
    return f"console=ttyS0 quiet rdinit=/init cryptomgr.notests=1 seconds={experiment.seconds} seed={seed}"


def is_recorded(experiment: Experiment, kernel: Kernel, seed: int, folder: Path) -> bool:
    """Whether the folder holds a recording of the experiment as it stands now in the table."""
    made_of = {"experiment.txt": experiment.text(kernel.version), "cmdline.txt": _words(experiment, seed) + "\n"}
    kept = {path.name: path.read_text() for path in folder.glob("*.txt") if path.name in made_of}
    return (folder / "trace.txt").exists() and kept == made_of


def record(
    packages: Packages, kernel: Kernel, experiment: Experiment, to: Path, *, seed: int, limit_minutes: int
) -> None:
    """Runs an experiment, and leaves what it recorded in folder `to`."""
    vms = packages.folder / "vms"
    compile_static(HERE / "vms.c", vms, "-pthread")
    files = system(packages, HERE / "host-init", [], kernel.version, {})
    files |= {"bin/vms": program(vms), "experiment.txt": text(experiment.text(kernel.version))}
    boot = ["-kernel", "vmlinuz", "-append", _words(experiment, seed), "-initrd", "initrd"]
    booted: dict[str, Path | bytes] = {"vmlinuz": packages.boot_image(kernel.version), "initrd": archive(files)}
    machine.run(packages, boot, booted, to, seed=seed, limit_minutes=limit_minutes)
    trace = in_seconds((to / COUNTER).read_text())
    (to / COUNTER).write_text(trace)
    (to / COUNTER).rename(to / "trace.txt")


def analyse(folder: Path) -> None:
    """Summarises a recording."""
    files = [str(folder / "trace.txt"), "--threads", str(folder / "threads.txt")]
    command.analyse(folder, {"import": ["import", *files, "--show"]})


def main() -> None:
    """The command line."""
    experiments = read_experiments(HERE / "experiments.toml")
    arguments = command.options(__doc__, OUT, experiments)
    versions = f"one of {', '.join(KERNELS)}; may be repeated (default: all that apt has)"
    arguments.add_argument("--kernel", action="append", default=[], choices=list(KERNELS), help=versions)
    given = arguments.parse_args()
    packages, kernels = prepare(OUT, given.kernel)
    for name in given.names or experiments:
        for kernel in kernels:
            folder = command.folder(given, f"{kernel.name}-{name}")
            if is_recorded(experiments[name], kernel, given.seed, folder):
                print(f"{folder.name}: recorded before in {folder}", flush=True)
            else:
                record(packages, kernel, experiments[name], folder, seed=given.seed, limit_minutes=given.minutes)
            analyse(folder)


if __name__ == "__main__":
    command.start(main)
