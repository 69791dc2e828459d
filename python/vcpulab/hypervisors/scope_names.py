"""The names that libvirt gives to the control groups (scopes) of VMs: only some characters of a VM's name are in them.

Source: libvirt's names of machines for systemd-machined, `qemu-NUMBER-NAME`, which are names of hosts.
"""

import re

MACHINE_CHARS = 64
"""The longest name of a machine."""
SURE_CHARS = MACHINE_CHARS - len("qemu-2147483647-")
"""The number of characters of a VM's name that fit into its machine's name, whatever the VM's number."""


def machine_chars(name: str) -> str:
    """The characters of a VM's name in its machine's name: letters, digits, and the first of `-` and `.` in a row.

    Examples:
        >>> machine_chars("web_1"), machine_chars("my shop (2)"), machine_chars("a--b.-c"), machine_chars("-web")
        ('web1', 'myshop2', 'a-b.c', 'web')
    """
    return re.sub(r"([-.])[-.]+", r"\1", re.sub(r"[^A-Za-z0-9.-]", "", name)).strip("-.")


def machine_part(name: str, number: int) -> str:
    """The part of a machine's name that comes from the VM's name, cut where the machine's name gets too long.

    Examples:
        >>> machine_part("web_1", 7), len(machine_part("x" * 80, 7)), len(machine_part("x" * 80, 1234))
        ('web1', 57, 54)
    """
    return machine_chars(name)[: MACHINE_CHARS - len(f"qemu-{number}-")].rstrip("-.")
