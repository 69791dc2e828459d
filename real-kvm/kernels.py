"""Debian's kernels that are recorded, and the packages that machines are made of."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from packages import EmulationError, Packages, run

TOOLS = ("busybox-static", "qemu-system-x86", "linux-perf")


@dataclass(frozen=True)
class Kernel:
    """One that is recorded."""

    version: str
    policy: str
    """Of its fair class."""
    source: str
    """The suites of Debian that have it."""
    metapackage: str | None = None
    """The package that needs its newest build; `None`: only packages named after a build have it."""

    @property
    def name(self) -> str:
        """What folders are called after."""
        return f"linux-{self.version}-{self.policy}"

    @property
    def package(self) -> str | None:
        """The package of its newest build; `None`: apt has none."""
        if self.metapackage is not None:
            return self.metapackage
        named = run(["apt-cache", "pkgnames", f"linux-image-{self.version}."], hint=_DEBIAN).split()
        builds = [name for name in named if re.fullmatch(r"linux-image-[\d.+-]+(deb\d+)?-cloud-amd64", name)]
        return max(builds, key=lambda name: [int(number) for number in re.findall(r"\d+", name)], default=None)

    @property
    def missing(self) -> str:
        """Why it is not to be had; nothing if it is."""
        package = self.package
        hint = (
            f"hint: it is in {self.source}; with that in apt's sources, `apt-get update` as root finds it\n"
            "real-kvm/README.md has sources that change nothing of this system"
        )
        if package is None:
            return f"kernel {self.version}: apt has no `linux-image-{self.version}.*-cloud-amd64`\n{hint}"
        shown = run(["apt-cache", "policy", package], hint=_DEBIAN)
        offered = re.search(r"Candidate: (?:\d+:)?(\S+)", shown)
        if offered and offered[1].startswith(f"{self.version}."):
            lacks = f"kernel {self.version}: apt lacks packages that `{package}` needs\n{hint}"
            return "" if self._is_complete(package) else lacks
        found = f"`{offered[1]}`" if offered else "nothing"
        return f"kernel {self.version}: apt offers {found} as `{package}`; needed: {self.version}.*\n{hint}"

    def _is_complete(self, package: str) -> bool:
        """Whether apt has all that a package needs: of superseded builds, backports keep some packages only."""
        nothing_installed = ["-o", "Dir::State::status=/dev/null", "-o", "Debug::NoLocking=1"]
        try:
            run(["apt-get", "--simulate", "--no-install-recommends", *nothing_installed, "install", package])
        except EmulationError:
            return False
        return True


_BACKPORTS = "trixie-backports of Debian 13"
_DEBIAN = "Debian 12 is needed, for its packages"
KERNELS = {
    kernel.version: kernel
    for kernel in (
        Kernel("5.10", "cfs", "Debian 11 (bullseye)"),
        Kernel("6.1", "cfs", "Debian 12 (bookworm main and bookworm-security)", "linux-image-cloud-amd64"),
        Kernel("6.12", "eevdf", "bookworm-security of Debian 12", "linux-image-6.12-cloud-amd64"),
        *(Kernel(f"6.{minor}", "eevdf", _BACKPORTS) for minor in range(16, 20)),
        *(Kernel(f"7.{minor}", "eevdf", _BACKPORTS) for minor in range(4)),
    )
}


def prepare(out: Path, asked: list[str]) -> tuple[Packages, list[Kernel]]:
    """What machines are made of, unpacked, and the kernels to record: those asked for, or all that are to be had."""
    kernels = [kernel for version, kernel in KERNELS.items() if not asked or version in asked]
    missing = {kernel.version: reason for kernel in kernels if (reason := kernel.missing)}
    kernels = [kernel for kernel in kernels if kernel.version not in missing]
    if missing and (asked or not kernels):
        raise EmulationError("\n".join(missing.values()))
    for reason in missing.values():
        print(f"left out: {reason}", flush=True)
    images = [kernel.package for kernel in kernels]
    packages = Packages(out / "image", (*TOOLS, *(package for package in images if package is not None)))
    packages.unpack()
    return packages, kernels
