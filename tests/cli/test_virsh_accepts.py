"""Every printed `virsh` line is accepted by the real one: libvirt's QEMU driver, with settings of VMs that are off."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support import HANG_S
from vcpulab import Scenario
from vcpulab.hypervisors.commands import commands, new_steps

HOST = """\
[host]
hypervisor = "kvm"
profile = "exact"
pcpus = {cpus}
cgroups = {version}
scheduler = "linux-eevdf"
[domain.web]
vcpus = 4
app = [{{ kind = "hog" }}]
[domain.vm101]
vcpus = 2
app = [{{ kind = "hog" }}]
[domain."a_b--c"]
app = [{{ kind = "hog" }}]
"""
VM = """\
<domain type='qemu'><name>{}</name><memory unit='MiB'>64</memory><vcpu>{}</vcpu>
<os><type arch='x86_64' machine='pc'>hvm</type></os></domain>
"""
VMS = {"web": 4, "vm101": 2, "a_b--c": 1}
"""The VMs, and their numbers of vCPUs."""
DRIVER_USER = "libvirt-qemu"
REQUIRED = bool(os.environ.get("VCPULAB_REQUIRE_VIRSH"))
LIVES = ("start", "shutdown", "reboot", "destroy", "managedsave", "suspend", "resume")
"""Commands that need a VM that runs."""


def missing() -> str | None:
    """Why the driver cannot be had here; `None`: it can."""
    for program in ("virsh", "qemu-system-x86_64", "unshare"):
        if shutil.which(program) is None:
            return f"needs {program}"
    return None if os.geteuid() == 0 else "the driver tunes CPUs for root only"


def has_user() -> bool:
    return f"\n{DRIVER_USER}:" in Path("/etc/passwd").read_text()


class Libvirt:
    """A driver of its own, embedded in `virsh`, with its files in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Where root may use KVM and the driver's user may not, the driver holds what it knows of QEMU for outdated and
        # starts QEMU for seconds at each command. Here nobody can use KVM: VMs are only defined.
        folder.joinpath("kvm").touch(0o600)
        mounts = ["! [ -e /dev/kvm ] || mount --bind kvm /dev/kvm"]
        if not has_user():
            # The driver runs VMs as this user, whom a system's packages make: here it is in files of our own.
            for name, entry in (("passwd", "x:64055:64055::/:/usr/sbin/nologin"), ("group", "x:64055:")):
                text = Path("/etc", name).read_text()
                folder.joinpath(name).write_text(f"{text.rstrip()}\n{DRIVER_USER}:{entry}\n")
                mounts.append(f"mount --bind {name} /etc/{name}")
        virsh = ["virsh", "--quiet", "--connect", f"qemu:///embed?root={folder}"]
        self._command = ["unshare", "--mount", "sh", "-ec", "\n".join([*mounts, 'exec "$@"']), "sh", *virsh]

    def file(self, name: str, vcpus: int) -> Path:
        """A file with the XML of a VM."""
        file = self.folder / f"{name}.xml"
        file.write_text(VM.format(name, vcpus))
        return file

    def accepts(self, lines: list[str]) -> None:
        """Types lines; each must be accepted."""
        typed = "\n".join(lines) + "\n"
        done = subprocess.run(
            self._command,
            input=typed,
            cwd=self.folder,
            text=True,
            capture_output=True,
            timeout=HANG_S,
            check=False,
        )
        wrong = [line for line in (done.stderr + done.stdout).splitlines() if line.startswith("error:")]
        assert not wrong, f"{typed}\n{done.stdout}\n{done.stderr}"


@pytest.fixture(scope="module")
def libvirt(tmp_path_factory: pytest.TempPathFactory) -> Libvirt:
    reason = missing()
    if reason is not None:
        (pytest.fail if REQUIRED else pytest.skip)(reason)
    return Libvirt(tmp_path_factory.mktemp("libvirt"))


def virsh_lines(before: Scenario | None, after: Scenario) -> list[str]:
    """The lines that are typed for a change, without those that need a VM that runs."""
    steps = commands(after, "libvirt") if before is None else new_steps(before, after, "libvirt")
    found = list[str]()
    for text in (step.text for step in steps if step.how in ("run", "keep")):
        loop = re.fullmatch(r"for v in \$\(seq (\d+) (\d+)\); do (virsh [^;]*); done", text)
        numbers = range(int(loop[1]), int(loop[2]) + 1) if loop else []
        each = [loop[3].replace("$v", str(number)) for number in numbers] if loop else [text]
        found += [line.removeprefix("virsh ") for line in each if line.startswith("virsh ")]
    return [line.replace("--live --config", "--config") for line in found if line.split()[0] not in LIVES]


@pytest.mark.parametrize("version", [1, 2])
def test_each_line_is_accepted(libvirt: Libvirt, version: int) -> None:
    # The driver pins to CPUs that the machine has.
    cpus = os.cpu_count() or 1
    host = Scenario.from_toml(HOST.format(cpus=cpus, version=version))
    last = f"0-{cpus - 1}" if cpus > 1 else "0"
    changes: list[dict[str, Any]] = [
        {"domain.web.weight": 25_600 if version == 1 else 10_000},
        {"domain.web.weight": 1},
        {"domain.web.affinity": "0", "domain.web.emulator_affinity": last},
        {"domain.vm101.affinity": ["0", last]},
        {"domain.web.disk": {}, "domain.web.iothreads": 1, "domain.web.iothread_affinity": "0"},
        {
            "domain.web.global_quota_us": 250_000,
            "domain.web.global_period_us": 50_000,
            "domain.web.vcpu_quota_us": 30_000,
            "domain.web.emulator_quota_us": 30_000,
            "domain.web.iothread_quota_us": 30_000,
        },
        {"domain.web.vcpu_quota_us": 17_592_186_044_415},
        {"domain.web.vcpu_quota_us": -1, "domain.web.weight": 100},
        {'domain."a_b--c".weight': 300},
        {"domain.vm101.memory_nodes": [0]},
        {"domain.web.vcpus": 6, "domain.web.affinity": ["0"] * 6},
        {"domain.web.vcpus": 3, "domain.web.affinity": "0"},
    ]
    lines = [f"define {libvirt.file(name, vcpus)}" for name, vcpus in VMS.items()]
    for change in changes:
        after = host.change(change)
        found = virsh_lines(host, after)
        assert found, change
        lines += found
        host = after
    # The whole scenario, on VMs as they were.
    again = [f"undefine {name}" for name in VMS] + lines[: len(VMS)]
    libvirt.accepts([*lines, *again, *virsh_lines(None, host), *again[: len(VMS)]])
