"""Files as Linux unpacks them when it boots: an initial RAM disk."""

from __future__ import annotations

from pathlib import Path

from packages import LIBRARIES, Packages

HERE = Path(__file__).resolve().parent
DISK = ("virtio_pci", "virtio_blk")
"""The modules for the disk that results are written to."""

Files = dict[str, tuple[int, bytes]]
"""By path: mode and contents."""


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


def program(path: Path) -> tuple[int, bytes]:
    """Mode and contents of a program, as `archive` takes them."""
    return 0o100755, path.read_bytes()


def text(contents: str) -> tuple[int, bytes]:
    """Mode and contents of a text, as `archive` takes them."""
    return 0o100644, contents.encode()


def system(
    packages: Packages, init: Path, programs: list[str], version: str, modules: dict[str, tuple[str, ...]]
) -> Files:
    """A machine's files: its script, busybox, programs with their libraries, modules by when the script loads them.

    Args:
        packages: Where all but the script is from.
        init: The script.
        programs: Paths in the packages.
        version: Of the kernel that the modules are for.
        modules: Their names, by when they are loaded; `disk` is always there.
    """
    files = {"init": program(init), "init.sh": program(HERE / "init.sh")}
    files["bin/busybox"] = program(packages.root / "bin/busybox")
    paths = [packages.root / path for path in programs]
    files |= {str(path.relative_to(packages.root)): program(path) for path in paths}
    if paths:
        files |= {f"{LIBRARIES}/{library.name}": program(library) for library in packages.libraries(paths)}
        files["lib64/ld-linux-x86-64.so.2"] = files[f"{LIBRARIES}/ld-linux-x86-64.so.2"]
    for when, names in (modules | {"disk": DISK}).items():
        for number, (name, contents) in enumerate(packages.modules(version, names).items()):
            files[f"modules/{when}/{number:02}-{name}"] = (0o100755, contents)
    return files
