"""From Debian's packages to what QEMU boots: Xen, a kernel, and an initial RAM disk for Dom0."""

from __future__ import annotations

import gzip
import lzma
import os
import re
import shutil
import struct
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
XEN = "4.17"
PACKAGES = [
    *(f"xen-hypervisor-{XEN}-amd64", f"xen-utils-{XEN}", "linux-image-amd64"),
    *("busybox-static", "qemu-system-x86", "linux-perf"),
]
"""The generic kernel, because the cloud kernel cannot be a Dom0."""

XEN_PROGRAMS = [
    *(f"usr/lib/xen-{XEN}/bin/{name}" for name in ("xenstored", "xen-init-dom0", "xenconsoled", "xl", "xentrace")),
    "usr/bin/xenstore",
]

LIBRARIES = "lib/x86_64-linux-gnu"

DISK = ["virtio_pci", "virtio_blk"]
"""The modules for the disk that results are written to."""

MODULES = {
    "early": ["xenfs", "xen-evtchn", "xen-gntdev", "xen-privcmd"],
    "network": ["bridge", "xen-netback"],
    "disk": DISK,
}
"""Of Dom0's kernel, by when `dom0-init` loads them."""


Files = dict[str, tuple[int, bytes]]
"""By path: mode and contents."""


class RealXenError(Exception):
    """Something outside this project did not work; the text says what, and shows what it said."""


@dataclass(frozen=True)
class Image:
    """Files to boot from, below one folder."""

    folder: Path

    @property
    def packages(self) -> Path:
        """Debian's packages, as they came."""
        return self.folder / "packages"

    @property
    def made_of(self) -> Path:
        """Names of the packages asked for, once all of them are unpacked."""
        return self.folder / "packages.txt"

    @property
    def root(self) -> Path:
        """Their contents."""
        return self.folder / "root"

    @property
    def xen(self) -> Path:
        """The hypervisor, as the 32-bit ELF file that QEMU can load."""
        return self.folder / "xen"

    @property
    def kernel(self) -> Path:
        """The kernel of Dom0 and guests, unpacked: under emulation that would take longer than here."""
        return self.folder / "vmlinux"

    @property
    def initrd(self) -> Path:
        """Dom0's files, without an experiment."""
        return self.folder / "dom0.cpio"

    def linked(self, *options: str) -> list[str]:
        """How a program of the packages is started with their shared libraries, whatever this system has."""
        linker = self.root / LIBRARIES / "ld-linux-x86-64.so.2"
        return [str(linker), "--library-path", f"{self.root / LIBRARIES}:{self.root / 'usr' / LIBRARIES}", *options]


def unpack(image: Image) -> None:
    """Packages to files, a hypervisor and a kernel, where that is not done yet."""
    if not image.made_of.exists() or image.made_of.read_text().split() != PACKAGES:
        shutil.rmtree(image.folder, ignore_errors=True)
        _unpack(image)
        image.made_of.write_text("\n".join(PACKAGES))
    if not image.xen.exists():
        image.xen.write_bytes(gzip.decompress((image.root / f"boot/xen-{XEN}-amd64.gz").read_bytes()))
    if not image.kernel.exists():
        image.kernel.write_bytes(_unpacked_kernel(_only(image.root, "boot/vmlinuz-*").read_bytes()))


def build(image: Image) -> None:
    """Makes everything that is missing or older than what it is made of."""
    unpack(image)
    made_of = [HERE / "dom0-init", HERE / "vif-bridge", HERE / "guest.c", Path(__file__)]
    if not image.initrd.exists() or any(image.initrd.stat().st_mtime < part.stat().st_mtime for part in made_of):
        _write_initrd(image)


def archive(files: Files) -> bytes:
    """A cpio archive as Linux reads it (`newc`), of files by path with mode and contents; makes their folders too.

    The format: Documentation/driver-api/early-userspace/buffer-format.rst of Linux. Archives may follow each other.
    """
    folders = {str(parent) for path in files for parent in Path(path).parents} - {"."}
    entries = sorted([(folder, 0o40755, b"") for folder in folders] + [(path, *what) for path, what in files.items()])
    archived = bytearray()
    for inode, (path, mode, contents) in enumerate([*entries, ("TRAILER!!!", 0, b"")], start=1):
        name = path.encode() + b"\0"
        fields = [inode, mode, 0, 0, 1, 0, len(contents), 0, 0, 0, 0, len(name), 0]
        archived += b"070701" + b"".join(b"%08x" % field for field in fields) + name
        archived += bytes(-len(archived) % 4) + contents
        archived += bytes(-len(archived) % 4)
    return bytes(archived)


def _unpack(image: Image) -> None:
    """Packages with all they need, as if nothing were installed here; and nothing is."""
    (image.packages / "partial").mkdir(parents=True, exist_ok=True)
    nothing_installed = image.packages / "status"
    nothing_installed.touch()
    print("downloading Debian's packages", flush=True)
    download = ["apt-get", "--quiet", "--yes", "--download-only", "--no-install-recommends", "-o", "Debug::NoLocking=1"]
    folders = {"Dir::Cache::archives": image.packages, "Dir::State::status": nothing_installed}
    options = [word for name, path in folders.items() for word in ("-o", f"{name}={path}")]
    run([*download, *options, "install", *PACKAGES], hint="`apt-get update`, as root, brings its lists up to date")
    for package in sorted(image.packages.glob("*.deb")):
        run(["dpkg-deb", "--extract", str(package), str(image.root)])


def run(command: list[str], hint: str = "", **environment: str) -> str:
    """What a command writes. Its failure is an error with the end of what it said."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    if done.returncode != 0:
        said = "\n".join((done.stdout + done.stderr).splitlines()[-10:])
        raise RealXenError(f"`{' '.join(command)}` failed:\n{said}" + (f"\n\nhint: {hint}" if hint else ""))
    return done.stdout


def _only(root: Path, pattern: str) -> Path:
    found = sorted(root.glob(pattern))
    if len(found) != 1:
        raise RealXenError(f"expected one file `{pattern}` in the packages, found {len(found)}")
    return found[0]


def _unpacked_kernel(boot_image: bytes) -> bytes:
    """The ELF file in a bzImage: Documentation/x86/boot.rst of Linux, `setup_sects` and `payload_offset`."""
    setup_sectors = boot_image[0x1F1]
    offset, length = struct.unpack_from("<II", boot_image, 0x248)
    payload = boot_image[(setup_sectors + 1) * 512 + offset :][:length]
    try:
        return lzma.LZMADecompressor().decompress(payload)
    except lzma.LZMAError as error:
        raise RealXenError(f"Debian's kernel is not compressed with xz any more: {error}") from error


def system(image: Image, init: str, programs: Iterable[str], modules: dict[str, list[str]]) -> Files:
    """What a machine boots: its script, busybox, programs with their libraries, and modules by when it loads them."""
    files = {"init": file(HERE / init), "bin/busybox": file(image.root / "bin/busybox")}
    paths = [image.root / program for program in programs]
    for path in paths:
        files[str(path.relative_to(image.root))] = file(path)
    for library in _libraries(image, paths):
        files[f"{LIBRARIES}/{library.name}"] = file(library)
    files["lib64/ld-linux-x86-64.so.2"] = files[f"{LIBRARIES}/ld-linux-x86-64.so.2"]
    for when, names in modules.items():
        for number, module in enumerate(_modules(image.root, names)):
            files[f"modules/{when}/{number:02}-{module.name}"] = file(module)
    return files


def file(path: Path) -> tuple[int, bytes]:
    """Mode and contents of a program, as `archive` takes them."""
    return 0o100755, path.read_bytes()


def _write_initrd(image: Image) -> None:
    guest = image.folder / "guest"
    run(["gcc", "-static", "-O2", "-Wall", "-Wextra", "-Werror", "-s", "-o", str(guest), str(HERE / "guest.c")])
    guest_files = {path.name: file(path) for path in _modules(image.root, ["xen-netfront"])}
    guest_files["init"] = file(guest)
    files = system(image, "dom0-init", XEN_PROGRAMS, MODULES) | {
        "etc/xen/scripts/vif-bridge": file(HERE / "vif-bridge"),
        "etc/xen/xl.conf": (0o100644, b""),
        "guest/vmlinux": file(image.kernel),
        "guest/initrd": (0o100644, archive(guest_files)),
    }
    image.initrd.write_bytes(archive(files))


def _libraries(image: Image, programs: list[Path]) -> set[Path]:
    """Every shared library that programs need."""
    # The C library opens this one itself, to end threads; the linker is not in its own list.
    libraries = {image.root / LIBRARIES / name for name in ("libgcc_s.so.1", "ld-linux-x86-64.so.2")}
    for program in programs:
        listed = run(image.linked("--list", str(program)))
        libraries |= {Path(path) for path in re.findall(r"\.so\S* => (/\S+)", listed)}
    return libraries


def _modules(root: Path, names: list[str]) -> list[Path]:
    """Kernel modules after those they need, which each names in its own `depends=`."""
    found = {path.stem.replace("-", "_"): path for path in root.glob("lib/modules/*/kernel/**/*.ko")}
    ordered: dict[str, Path] = {}

    def add(name: str) -> None:
        path = found.get(name.replace("-", "_"))
        if path is None:
            raise RealXenError(f"the kernel's package has no module `{name}`")
        depends = re.search(rb"\0depends=([^\0]*)\0", path.read_bytes())
        for needed in depends.group(1).decode().split(",") if depends else []:
            if needed:
                add(needed)
        ordered.setdefault(name, path)

    for name in names:
        add(name)
    return list(dict.fromkeys(ordered.values()))
