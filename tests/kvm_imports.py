"""Imports of listings of a KVM host that tests write, in this process."""

from pathlib import Path
from typing import Any

import vcpulab
from vcpulab.formats import read
from vcpulab.imports.kvm import scenario_of

KERNEL = "Linux n 6.12.0-55.el10.x86_64 #1 SMP x86_64 GNU/Linux\n"


def imported(folder: Path, *files: str, profile: str | None = None, **texts: str) -> tuple[dict[str, Any], str]:
    """The scenario of listings, and the notes on it.

    Args:
        folder: where they are written.
        files: files of the folder that are there.
        profile: the hardware profile.
        texts: by name of a file, without its suffix `.txt`: the listing.
    """
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text)
    made = scenario_of([read(folder / name) for name in (*files, *(f"{name}.txt" for name in texts))], profile)
    return vcpulab.Scenario.from_toml(made.text).to_dict(), "\n".join(made.notes)


def vm(name: str, number: int | None = None, more: str = "", vcpus: object = 2) -> str:
    """What `virsh dumpxml` prints of a VM."""
    attribute = "" if number is None else f" id='{number}'"
    return f"<domain type='kvm'{attribute}>\n<name>{name}</name>\n<vcpu>{vcpus}</vcpu>\n{more}</domain>\n"
