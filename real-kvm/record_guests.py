"""Records a KVM host in QEMU's emulation, as ftrace and as perf tell what its scheduler does."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

import machine
from image import DISK, HERE, Image, RealXenError, archive, file, run, system, unpack

OUT = HERE.parent / "out/real-xen"
MODULES = {"kvm": ["kvm-amd"], "disk": DISK}
"""By when `kvm-init` loads them. Of the kinds of virtualization, QEMU emulates AMD's."""
TEXTS = {
    "perf": ["script", "--guest-code", "--ns", "-F", "+pid"],
    "perf-plain": ["script", "--ns"],
    "timehist": ["sched", "timehist", "-s"],
}
"""What perf is asked to write of its recording: out here, since it would take minutes on the emulated host."""

FIRMWARE = "usr/share/qemu/qboot.rom"


def initrd(image: Image) -> bytes:
    """The host's files, and those of its guests."""
    programs = ["usr/bin/qemu-system-x86_64", "usr/bin/perf"]
    guest = {"init": file(HERE / "kvm-guest"), "bin/busybox": file(image.root / "bin/busybox")}
    files = system(image, "kvm-init", programs, MODULES) | {
        FIRMWARE: file(image.root / FIRMWARE),
        "guest/vmlinux": file(image.kernel),
        "guest/initrd": (0o100644, archive(guest)),
    }
    return archive(files)


def write_texts(image: Image, folder: Path) -> None:
    """Has perf write what it recorded."""
    perf = image.linked(str(image.root / "usr/bin/perf"))
    for name, options in TEXTS.items():
        (folder / f"{name}.txt").write_text(run([*perf, *options, "-i", str(folder / "perf.data")]))


def main() -> int:
    """The command line; the exit status."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--out", type=Path, default=OUT, help="for the folder `kvm` (default: %(default)s)")
    arguments.add_argument("--minutes", type=int, default=60, help="limit (default: %(default)s)")
    arguments.add_argument("--seed", type=int, default=1, help="another gives an independent recording (default: 1)")
    given = arguments.parse_args()
    image = Image(OUT / "image")
    unpack(image)
    boot = ["-kernel", "vmlinux", "-append", "console=ttyS0 quiet rdinit=/init", "-initrd", "initrd"]
    folder = given.out.resolve() / "kvm"
    machine.run(image, boot, initrd(image), folder, seed=given.seed, limit_minutes=given.minutes)
    write_texts(image, folder)
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C does, so that QEMU is ended too
    try:
        sys.exit(main())
    except (RealXenError, KeyboardInterrupt) as error:
        print(f"error: {str(error) or 'interrupted'}", file=sys.stderr)
        sys.exit(1)
