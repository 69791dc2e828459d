"""From Debian's packages to what QEMU boots: Xen, a kernel, and an initial RAM disk for Dom0."""

from __future__ import annotations

import gzip
import lzma
import struct
from dataclasses import dataclass
from pathlib import Path

from archive import archive, program, system, text
from packages import EmulationError, Packages, compile_static, run

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Release:
    """Of Xen, and what Debian has beside it."""

    xen: str
    linux: str
    suite: str = ""
    """Where it is from, unless that is what apt is set up for."""
    unpacker: tuple[str, ...] = ()
    """Of its kernel, where Python has none."""
    turns: bool = False
    """Whether its QEMU shares turns among several CPUs: from 8.1 on."""

    @property
    def packages(self) -> tuple[str, ...]:
        """The generic kernel, because the cloud kernel cannot be a Dom0."""
        xen = (f"xen-hypervisor-{self.xen}-amd64", f"xen-utils-{self.xen}")
        return (*xen, "linux-image-amd64", "busybox-static", "qemu-system-x86", *self.unpacker)

    @property
    def programs(self) -> list[str]:
        """Of Xen's tools, those that Dom0 runs."""
        names = ("xenstored", "xen-init-dom0", "xenconsoled", "xl", "xentrace")
        return [*(f"usr/lib/xen-{self.xen}/bin/{name}" for name in names), "usr/bin/xenstore"]


RELEASES = {one.xen: one for one in (Release("4.17", "6.1"), Release("4.20", "6.12", "trixie", ("zstd",), turns=True))}

MODULES = {
    "early": ("xenfs", "xen-evtchn", "xen-gntdev", "xen-privcmd"),
    "network": ("bridge", "xen-netback"),
    "storage": ("brd", "xen-blkback"),
}
"""Of Dom0's kernel, by when `dom0-init` loads them."""


@dataclass(frozen=True)
class Image:
    """Files to boot from, below one folder."""

    release: Release
    packages: Packages

    @property
    def xen(self) -> Path:
        """The hypervisor, as the 32-bit ELF file that QEMU can load."""
        return self.packages.folder / "xen"

    @property
    def kernel(self) -> Path:
        """The kernel of Dom0 and guests, unpacked: under emulation that would take longer than here."""
        return self.packages.folder / "vmlinux"

    @property
    def initrd(self) -> Path:
        """Dom0's files, without an experiment."""
        return self.packages.folder / "dom0.cpio"

    def build(self) -> None:
        """Makes everything that is missing or older than what it is made of."""
        self.packages.unpack()
        if not self.xen.exists():
            self.xen.write_bytes(
                gzip.decompress(self.packages.only(f"boot/xen-{self.release.xen}-amd64.gz").read_bytes())
            )
        if not self.kernel.exists():
            self.kernel.write_bytes(self._unpacked_kernel())
        made_of = [*HERE.glob("*"), *(HERE.parent / "emulation").glob("*")]
        if not self.initrd.exists() or any(self.initrd.stat().st_mtime < part.stat().st_mtime for part in made_of):
            self._write_initrd()

    def _write_initrd(self) -> None:
        guest = self.packages.folder / "guest"
        compile_static(HERE / "guest.c", guest)
        wait_until = self.packages.folder / "wait-until"
        compile_static(HERE / "wait-until.c", wait_until)
        modules = self.packages.modules(self.release.linux, ["xen-netfront", "xen-blkfront"])
        guest_files = {name: (0o100755, contents) for name, contents in modules.items()} | {"init": program(guest)}
        files = system(self.packages, HERE / "dom0-init", self.release.programs, self.release.linux, MODULES) | {
            "bin/wait-until": program(wait_until),
            **{f"etc/xen/scripts/{name}": program(HERE / name) for name in ("vif-bridge", "block")},
            "etc/xen/xl.conf": text(""),
            "guest/vmlinux": program(self.kernel),
            "guest/initrd": (0o100644, archive(guest_files)),
        }
        partial = self.initrd.with_suffix(".partial")
        partial.write_bytes(archive(files))
        partial.rename(self.initrd)

    def _unpacked_kernel(self) -> bytes:
        """The ELF file in a bzImage: Documentation/x86/boot.rst of Linux, `setup_sects` and `payload_offset`."""
        boot_image = self.packages.boot_image(self.release.linux).read_bytes()
        setup_sectors = boot_image[0x1F1]
        offset, length = struct.unpack_from("<II", boot_image, 0x248)
        payload = boot_image[(setup_sectors + 1) * 512 + offset :][:length]
        if payload.startswith(b"\x28\xb5\x2f\xfd"):
            packed = self.packages.folder / "vmlinux.zst"
            packed.write_bytes(payload[:-4])  # the last word is the length of what is unpacked
            run(self.packages.linked(str(self.packages.root / "usr/bin/zstd"), "-dqf", str(packed)))
            return packed.with_suffix("").read_bytes()
        try:
            return lzma.LZMADecompressor().decompress(payload)
        except lzma.LZMAError as error:
            raise EmulationError(f"Debian's kernel is neither compressed with zstd nor with xz: {error}") from error
