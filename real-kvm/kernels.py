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
    package: str
    source: str
    """Where Debian has it."""

    @property
    def name(self) -> str:
        """What folders are called after."""
        return f"linux-{self.version}-{self.policy}"

    @property
    def missing(self) -> str:
        """Why it is not to be had; nothing if it is."""
        shown = run(["apt-cache", "policy", self.package], hint="Debian 12 is needed, for its packages")
        offered = re.search(r"Candidate: (?:\d+:)?(\S+)", shown)
        if offered and offered[1].startswith(f"{self.version}."):
            return ""
        found = f"`{offered[1]}`" if offered else "nothing"
        return (
            f"kernel {self.version}: apt offers {found} as `{self.package}`; needed: {self.version}.*\n"
            f"hint: it is in {self.source}; with that in apt's sources, `apt-get update` as root finds it"
        )


KERNELS = {
    kernel.version: kernel
    for kernel in (
        Kernel("6.1", "cfs", "linux-image-cloud-amd64", "Debian 12 (bookworm main and bookworm-security)"),
        Kernel("6.12", "eevdf", "linux-image-6.12-cloud-amd64", "bookworm-security of Debian 12"),
    )
}


def prepare(out: Path, asked: list[str]) -> tuple[Packages, list[Kernel]]:
    """What machines are made of, unpacked, and the kernels to record: those asked for, or all that are to be had."""
    missing = {version: kernel.missing for version, kernel in KERNELS.items()}
    kernels = [kernel for version, kernel in KERNELS.items() if not missing[version]]
    refused = [text for version, text in missing.items() if text and (version in asked or not kernels)]
    if refused:
        raise EmulationError("\n".join(refused))
    for text in missing.values():
        if text and not asked:
            print(f"left out: {text}", flush=True)
    packages = Packages(out / "image", (*TOOLS, *(kernel.package for kernel in kernels)))
    packages.unpack()
    return packages, [kernel for kernel in kernels if not asked or kernel.version in asked]
