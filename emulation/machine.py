"""A machine in QEMU's emulation that runs one script and leaves its results."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import time
from pathlib import Path

from packages import EmulationError, Packages

DISK_BYTES = 256 << 20


TURNS_US = 30
"""In which several CPUs share the time."""

CPU = "max,-smap,-smep,-pku"


def _qemu(packages: Packages, boot: list[str], cpu: str, cpus: int, seed: int) -> list[str]:
    """A machine in which nothing depends on real time until it loads the driver of its disk.

    Its files are named relative to the folder that it runs in: Xen reads the names of what it is booted with, and must
    not take longer for longer ones.
    """
    return [
        *("nice", "-n", "10", *packages.linked(str(packages.root / "usr/bin/qemu-system-x86_64"))),
        *("-L", str(packages.root / "usr/share/qemu"), "-L", str(packages.root / "usr/share/seabios")),
        *("-nodefaults", "-display", "none", "-no-reboot", "-machine", "pc", "-m", "4096"),
        *("-smp", str(cpus if cpus == 1 else cpus + 1)),
        # Every instruction takes 2 ns; an idle machine goes straight to its next timer.
        *("-accel", "tcg", "-icount", f"shift={1 if cpus == 1 else 0},sleep=off", "-cpu", cpu),
        *(_turns() if cpus > 1 else ()),
        # The clock and the random numbers are the same in every run.
        *("-rtc", "base=2026-01-01T00:00:00,clock=vm", "-seed", str(seed)),
        # The firmware leaves disks alone that it is not to boot from: they answer in real time.
        *("-boot", "strict=on"),
        *("-serial", "file:../console.txt"),
        *("-drive", "file=disk,format=raw,if=none,id=results", "-device", "virtio-blk-pci,drive=results"),
        *boot,
    ]


def _turns() -> list[str]:
    """A periodic timer of the machine that no CPU hears of, and at which turns end.

    QEMU runs CPUs one after the other, each for its share of the time to the next timer. The last one is interrupted
    when the timer is set again, and would get less: so there is one more CPU, which nobody starts.
    """
    timer = f"filter-buffer,id=turns,netdev=none,interval={TURNS_US}"
    return ["-netdev", "hubport,id=none,hubid=0", "-object", timer]


def run(
    packages: Packages,
    boot: list[str],
    files: dict[str, Path | bytes],
    to: Path,
    *,
    seed: int,
    limit_minutes: int,
    cpu: str = CPU,
    cpus: int = 1,
) -> None:
    """Boots the machine, waits for it to write its results, and leaves them in folder `to`.

    Args:
        packages: Where QEMU is.
        boot: Options of QEMU's: what is booted.
        files: What `boot` names, by name.
        to: Folder of results, by whose name messages call it; what was there is replaced.
        seed: Of the machine's random numbers.
        limit_minutes: After that it is stopped.
        cpu: Of QEMU's models.
        cpus: How many. If several, what is booted leaves alone the one after them.
    """
    work = to.with_name(to.name + ".partial")
    shutil.rmtree(work, ignore_errors=True)
    machine = work / "machine"
    machine.mkdir(parents=True)
    for name, contents in files.items():
        if isinstance(contents, Path):
            (machine / name).symlink_to(contents)
        else:
            (machine / name).write_bytes(contents)
    with (machine / "disk").open("wb") as disk:
        disk.truncate(DISK_BYTES)
    modules = {"QEMU_MODULE_DIR": str(packages.root / "usr/lib/x86_64-linux-gnu/qemu")}
    with (work / "qemu.txt").open("wb") as said:
        qemu = subprocess.Popen(
            _qemu(packages, boot, cpu, cpus, seed),
            cwd=machine,
            env=os.environ | modules,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
        )
    try:
        _follow(qemu, to.name, work / "console.txt", limit_minutes)
        with tarfile.open(machine / "disk") as results:
            results.extractall(work, filter="data")
    finally:
        qemu.kill()
        qemu.wait()
        shutil.rmtree(machine)
    shutil.rmtree(to, ignore_errors=True)
    work.rename(to)


def _follow(qemu: subprocess.Popen[bytes], name: str, console: Path, limit_minutes: int) -> None:
    """Passes on what the machine says until it is done."""
    begin = time.monotonic()
    shown = 0
    while True:
        ended = qemu.poll() is not None
        lines = console.read_text(errors="replace").splitlines() if console.exists() else []
        said = [line[3:] for line in lines if line.startswith("## ")]
        minutes = (time.monotonic() - begin) / 60
        for line in said[shown:]:
            print(f"{name}: {minutes:5.1f} min  {line}", flush=True)
        shown = len(said)
        if said and said[-1].startswith("FAILED"):
            raise EmulationError(_with_tail(f"{name}: {said[-1]}", console))
        if ended and "DONE" in said:
            return
        if ended:
            raise EmulationError(_with_tail(f"{name}: QEMU ended too early, with status {qemu.returncode}", console))
        if minutes > limit_minutes:
            raise EmulationError(_with_tail(f"{name}: not done after {limit_minutes} minutes", console))
        time.sleep(1)


def _with_tail(message: str, console: Path) -> str:
    parts = [message]
    for file in (console.with_name("qemu.txt"), console):
        lines = file.read_text(errors="replace").splitlines() if file.exists() else []
        if tail := [line for line in lines if line.strip()][-20:]:
            parts += [f"\n{file}, its end:", *(f"  {line}" for line in tail)]
    return "\n".join(parts)
