"""Records experiments on a real Xen in QEMU's emulation: `make real-xen`, or `make real-xen REAL_XEN=credit-caps`."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from image import HERE, Image, RealXenError, archive, build

OUT = HERE.parent / "out/real-xen"
DISK_BYTES = 256 << 20
WARM_UP_SECONDS = 1
RECORD_SECONDS = 4
WORK_SECONDS = 10
"""For how long guests work: warm-up, recording, and what `xl` itself takes."""

GLOBAL_OPTIONS = {"credit": {"tslice_ms": "-t", "ratelimit_us": "-r"}, "credit2": {"ratelimit_us": "-r"}}
"""What `xl` calls the parameters of each scheduler as a whole."""

GUEST_WORDS = {"work": "wk", "sleep_us": "sl", "address": "adr", "ask": "ask", "reply_bytes": "rep"}
"""What `guest.c` calls them."""


@dataclass(frozen=True)
class Experiment:
    """One table of `experiments.toml`."""

    name: str
    scheduler: str
    guests: list[dict[str, Any]]
    parameters: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        where = f"experiments.toml: [{self.name}]"
        if self.scheduler not in GLOBAL_OPTIONS:
            raise RealXenError(f"{where}: scheduler `{self.scheduler}` is not one of: {', '.join(GLOBAL_OPTIONS)}")
        self._known(f"{where}: parameters", self.parameters, GLOBAL_OPTIONS[self.scheduler])
        for guest in self.guests:
            self._known(f"{where}: guest", guest, ["name", "weight", "cap", *GUEST_WORDS])
            if not str(guest.get("name", "")).isalnum():
                raise RealXenError(f"{where}: guest without a name of letters and digits: {guest}")

    @staticmethod
    def _known(where: str, given: Any, allowed: Any) -> None:
        for key in given:
            if key not in allowed:
                raise RealXenError(f"{where}: `{key}` is not one of: {', '.join(allowed)}")

    def files(self) -> dict[str, tuple[int, bytes]]:
        """What Dom0 reads: a configuration for each guest, and the plan that `dom0-init` follows."""
        texts = {f"{guest['name']}.cfg": _guest_configuration(guest) for guest in self.guests} | {"plan": self._plan()}
        return {f"experiment/{name}": (0o100644, text.encode()) for name, text in texts.items()}

    def _plan(self) -> str:
        tool = f"xl sched-{self.scheduler}"
        orders = [
            f"{tool} -d {guest['name']} -w {guest.get('weight', 256)} -c {guest.get('cap', 0)}"
            for guest in self.guests
            if "weight" in guest or "cap" in guest
        ]
        options = [f"{GLOBAL_OPTIONS[self.scheduler][name]} {value}" for name, value in self.parameters.items()]
        if options:
            orders.append(f"{tool} -s {' '.join(options)}")
        network = "yes" if any("address" in guest for guest in self.guests) else ""
        return (
            f'guests="{" ".join(guest["name"] for guest in self.guests)}"\n'
            f"record_seconds={RECORD_SECONDS}\nwarm_up_seconds={WARM_UP_SECONDS}\nnetwork={network}\n"
            f"set_parameters() {{ {' && '.join(orders) or ':'}; }}\n"
            f"show_parameters() {{ {tool} && {tool} -s; }}\n"
        )


def _guest_configuration(guest: dict[str, Any]) -> str:
    words = [f"{word}={guest[key]}" for key, word in GUEST_WORDS.items() if key in guest]
    extra = " ".join(["console=hvc0 quiet rdinit=/init", f"nm={guest['name']}", *words, f"sec={WORK_SECONDS}"])
    lines = [
        f'name="{guest["name"]}"',
        'type="pv"',
        'kernel="/guest/vmlinux"',
        'ramdisk="/guest/initrd"',
        "memory=192",
        "vcpus=1",
        f'extra="{extra}"',
    ]
    if "address" in guest:
        lines.append('vif=["bridge=guests"]')
    return "\n".join(lines) + "\n"


def read_experiments(path: Path) -> dict[str, Experiment]:
    """All experiments of a file, checked."""
    try:
        tables = tomllib.loads(path.read_text())
        return {name: Experiment(name, **table) for name, table in tables.items()}
    except (tomllib.TOMLDecodeError, TypeError) as error:
        raise RealXenError(f"{path.name}: {error}") from error


def qemu_command(image: Image, scheduler: str, initrd: Path, disk: Path, console: Path) -> list[str]:
    """A machine in which nothing depends on real time until Dom0 loads the driver of its disk."""
    xen = "console=com1 com1=115200,8n1 dom0_mem=1200M dom0_max_vcpus=1 loglvl=warning noreboot=1"
    return [
        *("nice", "-n", "10", str(image.root / "usr/bin/qemu-system-x86_64")),
        *("-L", str(image.root / "usr/share/qemu"), "-L", str(image.root / "usr/share/seabios")),
        *("-nodefaults", "-display", "none", "-no-reboot", "-machine", "pc", "-m", "4096", "-smp", "1"),
        # Every instruction takes 2 ns; an idle machine goes straight to its next timer.
        *("-accel", "tcg", "-icount", "shift=1,sleep=off", "-cpu", "max,-smap,-smep,-pku"),
        # The clock and the random numbers are the same in every run.
        *("-rtc", "base=2026-01-01T00:00:00,clock=vm", "-seed", "1"),
        *("-serial", f"file:{console}"),
        *("-drive", f"file={disk},format=raw,if=none,id=results", "-device", "virtio-blk-pci,drive=results"),
        *("-kernel", str(image.xen), "-append", f"{xen} sched={scheduler}"),
        *("-initrd", f"{image.kernel} console=hvc0 quiet rdinit=/init,{initrd}"),
    ]


def record(image: Image, experiment: Experiment, to: Path, limit_minutes: int) -> None:
    """Boots the machine, waits for it to write its results, and leaves them in folder `to`."""
    work = to.with_name(to.name + ".partial")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    initrd, disk, console = work / "initrd", work / "disk", work / "console.txt"
    initrd.write_bytes(image.initrd.read_bytes() + archive(experiment.files()))
    with disk.open("wb") as file:
        file.truncate(DISK_BYTES)
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": image.libraries,
        "QEMU_MODULE_DIR": str(image.root / "usr/lib/x86_64-linux-gnu/qemu"),
    }
    command = qemu_command(image, experiment.scheduler, initrd, disk, console)
    with (work / "qemu.txt").open("wb") as said:
        qemu = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
    try:
        _follow(qemu, experiment.name, console, limit_minutes)
    finally:
        qemu.kill()
        qemu.wait()
    with tarfile.open(disk) as results:
        results.extractall(work, filter="data")
    initrd.unlink()
    disk.unlink()
    work.rename(to)


def _follow(qemu: subprocess.Popen[bytes], name: str, console: Path, limit_minutes: int) -> None:
    """Passes on what Dom0 says until it is done."""
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
            raise RealXenError(_with_tail(f"{name}: {said[-1]}", console))
        if ended and "DONE" in said:
            return
        if ended:
            raise RealXenError(_with_tail(f"{name}: QEMU ended with status {qemu.returncode} before Dom0 was done", console))
        if minutes > limit_minutes:
            raise RealXenError(_with_tail(f"{name}: not done after {limit_minutes} minutes", console))
        time.sleep(1)


def _with_tail(message: str, console: Path) -> str:
    parts = [message]
    for file in (console.with_name("qemu.txt"), console):
        lines = file.read_text(errors="replace").splitlines() if file.exists() else []
        if tail := [line for line in lines if line.strip()][-20:]:
            parts += [f"\n{file}, its end:", *(f"  {line}" for line in tail)]
    return "\n".join(parts)


def main() -> int:
    """The command line; the exit status."""
    experiments = read_experiments(HERE / "experiments.toml")
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("names", nargs="*", metavar="NAME", help=f"which of: {', '.join(experiments)} (default: all)")
    arguments.add_argument("--out", type=Path, default=OUT, help="where recordings go, a folder each (default: %(default)s)")
    arguments.add_argument("--minutes", type=int, default=60, help="give up on an experiment after (default: %(default)s)")
    given = arguments.parse_args()
    for name in given.names:
        if name not in experiments:
            arguments.error(f"no experiment `{name}` in experiments.toml; there are: {', '.join(experiments)}")
    image = Image(OUT / "image")
    build(image)
    for name in given.names or experiments:
        to = given.out / name
        if to.exists():
            print(f"{name}: kept, as recorded before in {to}", flush=True)
        else:
            record(image, experiments[name], to, given.minutes)
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that QEMU is ended too
    try:
        sys.exit(main())
    except RealXenError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(1)
