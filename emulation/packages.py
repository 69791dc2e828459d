"""Debian's packages, unpacked into a folder: nothing is installed, and nothing of them is taken from this system."""

from __future__ import annotations

import lzma
import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

LIBRARIES = "lib/x86_64-linux-gnu"
MIRROR = "http://deb.debian.org/debian"
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"


class EmulationError(Exception):
    """Something outside this project did not work; the text says what, and shows what it said."""


@dataclass(frozen=True)
class Packages:
    """Packages with all they need, below one folder; what is made of them is kept in it, too."""

    folder: Path
    names: tuple[str, ...]
    suite: str = ""
    """Of Debian, such as `trixie`; where there is none, they are from what apt has been set up for."""

    @property
    def root(self) -> Path:
        """Their contents."""
        return self.folder / "root"

    def unpack(self) -> None:
        """Downloads and unpacks them where that is not done yet, and then leaves nothing that was made of others."""
        made_of = self.folder / "packages.txt"
        if made_of.exists() and made_of.read_text().split() == list(self.names):
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        self._unpack()
        made_of.write_text("\n".join(self.names))

    def linked(self, *options: str) -> list[str]:
        """How a program of the packages is started with their shared libraries, whatever this system has."""
        linker = self.root / LIBRARIES / "ld-linux-x86-64.so.2"
        return [str(linker), "--library-path", f"{self.root / LIBRARIES}:{self.root / 'usr' / LIBRARIES}", *options]

    def libraries(self, programs: Iterable[Path]) -> set[Path]:
        """Every shared library that programs need."""
        # The C library opens this one itself, to end threads; the linker is not in its own list.
        libraries = {self.root / LIBRARIES / name for name in ("libgcc_s.so.1", "ld-linux-x86-64.so.2")}
        for program in programs:
            listed = run(self.linked("--list", str(program)))
            libraries |= {Path(path) for path in re.findall(r"\.so\S* => (/\S+)", listed)}
        return libraries

    def only(self, pattern: str) -> Path:
        """The one file of a pattern."""
        found = sorted(self.root.glob(pattern))
        if len(found) != 1:
            raise EmulationError(f"expected one file `{pattern}` in the packages, found {len(found)}")
        return found[0]

    def boot_image(self, version: str) -> Path:
        """The kernel of a version (`6.1`), as it is booted. From 7.2 on it is beside the modules."""
        beside_modules = f"usr/lib/modules/{version}.*/vmlinuz"
        return self.only(beside_modules if any(self.root.glob(beside_modules)) else f"boot/vmlinuz-{version}.*")

    def modules(self, version: str, names: Iterable[str]) -> dict[str, bytes]:
        """Modules of the kernel of a version, after those they need, which each names in its own `depends=`.

        Those that the kernel has in itself are left out.
        """
        folder = self.only(f"lib/modules/{version}.*")
        found = {_word(path.name): path for path in folder.glob("kernel/**/*.ko*")}
        contained = {_word(Path(line).name) for line in (folder / "modules.builtin").read_text().split()}
        ordered: dict[str, bytes] = {}

        def add(name: str) -> None:
            path = found.get(_word(name))
            if _word(name) in contained:
                return
            if path is None:
                raise EmulationError(f"the package of kernel {version} has no module `{name}`")
            contents = path.read_bytes()
            if path.suffix == ".xz":
                contents = lzma.decompress(contents)
            depends = re.search(rb"\0depends=([^\0]*)\0", contents)
            for needed in depends.group(1).decode().split(",") if depends else []:
                if needed:
                    add(needed)
            ordered.setdefault(path.name.removesuffix(".xz"), contents)

        for name in names:
            add(name)
        return ordered

    def _unpack(self) -> None:
        """Unpacks them as if nothing were installed here."""
        downloads = self.folder / "packages"
        (downloads / "partial").mkdir(parents=True, exist_ok=True)
        nothing_installed = downloads / "status"
        nothing_installed.touch()
        print("downloading Debian's packages", flush=True)
        settings = {"Dir::Cache::archives": downloads, "Dir::State::status": nothing_installed, "Debug::NoLocking": 1}
        if self.suite:
            settings |= self._lists()
        options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
        if self.suite:
            run(["apt-get", "--quiet", *options, "update"], hint="Debian's mirror has to be within reach")
        how = ["--quiet", "--yes", "--download-only", "--no-install-recommends", *options]
        hint = "Debian 12 is needed; `apt-get update`, as root, brings its lists up to date"
        run(["apt-get", *how, "install", *self.names], hint=hint)
        extract(sorted(downloads.glob("*.deb")), self.root)

    def _lists(self) -> dict[str, object]:
        """Lists of the suite in a folder of their own: what apt is told then, beside where packages go."""
        lists = self.folder / "lists"
        (lists / "partial").mkdir(parents=True, exist_ok=True)
        sources = self.folder / "debian.sources"
        fields = {"Types": "deb", "URIs": MIRROR, "Suites": self.suite, "Components": "main", "Signed-By": KEYS}
        sources.write_text("".join(f"{key}: {value}\n" for key, value in fields.items()))
        apart = {"Dir::Etc::sourcelist": sources, "Dir::Etc::sourceparts": "/dev/null", "Dir::State::lists": lists}
        return apart | {"Dir::Cache::pkgcache": "", "Dir::Cache::srcpkgcache": "", "APT::Sandbox::User": "root"}


def extract(packages: Iterable[Path], root: Path) -> None:
    """Unpacks files of packages below one folder.

    From Debian 13 on, packages have nothing in `/bin`, `/lib` and `/lib64`: these become links, for files of older
    packages too.
    """
    for name in ("bin", "lib", "lib64"):
        (root / "usr" / name).mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(f"usr/{name}")
    to = 'dpkg-deb --fsys-tarfile "$1" | tar --extract --keep-directory-symlink --directory "$2"'
    for package in packages:
        run(["sh", "-c", to, "sh", str(package), str(root)])


def run(command: list[str], hint: str = "", **environment: str) -> str:
    """What a command writes. Its failure is an error with the end of what it said, and a hint how to mend it."""
    more = f"\n\nhint: {hint}" if hint else ""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    except FileNotFoundError as error:
        raise EmulationError(f"there is no program `{command[0]}` here{more}") from error
    if done.returncode != 0:
        said = "\n".join((done.stdout + done.stderr).splitlines()[-10:])
        raise EmulationError(f"`{' '.join(command)}` failed:\n{said}{more}")
    return done.stdout


def compile_static(source: Path, program: Path, *options: str) -> None:
    """Compiles a C program of ours that needs no libraries where it runs."""
    how = ["-static", "-O2", "-Wall", "-Wextra", "-Werror", "-s", "-I", str(Path(__file__).resolve().parent)]
    hint = "`apt-get install gcc libc6-dev`, as root"
    run(["gcc", *how, *options, "-o", str(program), str(source)], hint=hint)


def _word(file: str) -> str:
    """What a module is called: its file may have hyphens instead."""
    return file.partition(".")[0].replace("-", "_")
