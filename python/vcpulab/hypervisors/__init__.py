"""What an administrator types and reads, a module for each tool."""

from typing import Literal

Toolstack = Literal["xl", "xapi", "libvirt"]
"""What sets up hosts: Xen's own `xl` (once `xm`), XAPI of XCP-ng and XenServer, libvirt on KVM hosts."""
