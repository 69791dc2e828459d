"""Records a KVM host with guests in QEMU's emulation, as ftrace and as perf tell what its scheduler does."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "emulation"))

import command
import machine
from archive import archive, program, system
from kernels import prepare
from packages import Packages, run

HERE = Path(__file__).resolve().parent
OUT = HERE.parent / "out/real-kvm"
MODULES: dict[str, tuple[str, ...]] = {"kvm": ("kvm-amd",)}
"""By when `guests-init` loads them. Of the kinds of virtualization, QEMU emulates AMD's."""
TEXTS = {
    "perf": ["script", "--guest-code", "--ns", "-F", "+pid"],
    "perf-plain": ["script", "--ns"],
    "timehist": ["sched", "timehist", "-s"],
}
"""What perf is asked to write of its recording: out here, since it would take minutes on the emulated host."""

FIRMWARE = "usr/share/qemu/qboot.rom"


def initrd(packages: Packages, version: str) -> bytes:
    """The host's files, and those of its guests."""
    programs = ["usr/bin/qemu-system-x86_64", "usr/bin/perf"]
    guest = {"init": program(HERE / "guest"), "bin/busybox": program(packages.root / "bin/busybox")}
    files = system(packages, HERE / "guests-init", programs, version, MODULES) | {
        FIRMWARE: program(packages.root / FIRMWARE),
        "guest/vmlinuz": program(packages.boot_image(version)),
        "guest/initrd": (0o100644, archive(guest)),
    }
    return archive(files)


def write_texts(packages: Packages, folder: Path) -> None:
    """Has perf write what it recorded."""
    perf = packages.linked(str(packages.root / "usr/bin/perf"))
    for name, options in TEXTS.items():
        (folder / f"{name}.txt").write_text(run([*perf, *options, "-i", str(folder / "perf.data")]))


def main() -> None:
    """The command line."""
    given = command.options(__doc__, OUT).parse_args()
    packages, (kernel,) = prepare(OUT, ["6.1"])
    boot = ["-kernel", "vmlinuz", "-append", "console=ttyS0 quiet rdinit=/init", "-initrd", "initrd"]
    files: dict[str, Path | bytes] = {
        "vmlinuz": packages.boot_image(kernel.version),
        "initrd": initrd(packages, kernel.version),
    }
    folder = command.folder(given, f"{kernel.name}-guests")
    machine.run(packages, boot, files, folder, seed=given.seed, limit_minutes=given.minutes)
    write_texts(packages, folder)


if __name__ == "__main__":
    command.start(main)
