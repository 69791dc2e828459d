"""Records a KVM host in QEMU's emulation, as ftrace and as perf tell what its scheduler does."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

import machine
from image import DISK, HERE, Image, RealXenError, archive, file, system, unpack

OUT = HERE.parent / "out/real-xen"
MODULES = {"kvm": ["kvm-amd"], "disk": DISK}
"""By when `kvm-init` loads them. The emulated processor is one of AMD's, which can be emulated with its virtualization."""
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
    machine.run(image, "kvm", boot, initrd(image), given.seed, given.out.resolve() / "kvm", given.minutes)
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C does, so that QEMU is ended too
    try:
        sys.exit(main())
    except (RealXenError, KeyboardInterrupt) as error:
        print(f"error: {str(error) or 'interrupted'}", file=sys.stderr)
        sys.exit(1)
