"""The names that libvirt gives to the control groups (scopes) of VMs: only some characters of a VM's name are in them.

Source: libvirt's names of machines for systemd-machined, which takes names of hosts.
"""

import re

_CHARS_MOST = 64


def machine_name(name: str) -> str:
    """The part of a scope's name that tells the VM, unescaped: letters, digits, and single dashes and dots of its name.

    Examples:
        >>> machine_name("web_1"), machine_name("my shop (2)"), machine_name("a--b..c"), machine_name("-web")
        ('web1', 'myshop2', 'a-b.c', 'web')
        >>> len(machine_name("x" * 80))
        64
    """
    plain = re.sub(r"([-.])\1+", r"\1", re.sub(r"[^A-Za-z0-9.-]", "", name))
    return plain.lstrip("-.")[:_CHARS_MOST].rstrip("-.")
