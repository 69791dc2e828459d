"""The commands that an administrator types and the outputs that they print, a module for each tool."""

from collections.abc import Mapping
from typing import Literal

Toolstack = Literal["xl", "xapi", "libvirt", "proxmox", "cgroup"]
"""The tools that set up hosts: Xen's `xl` (formerly `xm`), XAPI of XCP-ng and XenServer; on KVM hosts libvirt, Proxmox
VE, or control groups alone."""

TOOLSTACKS: Mapping[str, tuple[Toolstack, ...]] = {
    "xen": ("xl", "xapi", "libvirt"),
    "kvm": ("libvirt", "proxmox", "cgroup"),
}
"""The toolstacks of each hypervisor's hosts."""
