"""What an administrator types and reads, a module for each tool."""

from collections.abc import Mapping
from typing import Literal

Toolstack = Literal["xl", "xapi", "libvirt", "proxmox", "cgroup"]
"""What sets up hosts: Xen's own `xl` (once `xm`), XAPI of XCP-ng and XenServer; on KVM hosts libvirt, `qm` of Proxmox
VE, or control groups alone."""

TOOLSTACKS: Mapping[str, tuple[Toolstack, ...]] = {
    "xen": ("xl", "xapi", "libvirt"),
    "kvm": ("libvirt", "proxmox", "cgroup"),
}
"""By hypervisor: the toolstacks of its hosts."""
