"""What `vcpulab collect` gathers from a real libvirt with VMs that run under QEMU's own emulation."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from vcpulab import Scenario
from vcpulab.cli.main import main

DRIVER_USER = "libvirt-qemu"
HANG_S = 600
REQUIRED = bool(os.environ.get("VCPULAB_REQUIRE_VIRSH"))
VM = """\
<domain type='qemu'><name>{name}</name><memory unit='MiB'>64</memory><vcpu>{vcpus}</vcpu>
<os><type arch='x86_64' machine='pc'>hvm</type></os>
<cputune><shares>{shares}</shares><vcpupin vcpu='0' cpuset='0'/></cputune></domain>
"""
QEMU_CONF = 'stdio_handler = "file"\nsecurity_driver = "none"\nuser = "root"\ngroup = "root"\nnamespaces = []\n'
LIBVIRTD_CONF = 'listen_tls = 0\nunix_sock_group = "root"\nauth_unix_rw = "none"\nauth_unix_ro = "none"\n'
FOLDERS = {"etc": "/etc/libvirt", "lib": "/var/lib/libvirt", "run": "/run/libvirt", "cache": "/var/cache/libvirt"}
SESSION = """\
set -e
{mounts}
libvirtd --pid-file run/libvirtd.pid >libvirtd.log 2>&1 &
daemon=$!
trap 'for vm in web mail; do virsh destroy $vm || true; done; kill $daemon; wait $daemon || true' EXIT
for try in $(seq 60); do ! virsh list >/dev/null 2>&1 || break; sleep 1; done
for vm in web mail off; do virsh define $vm.xml; done
for vm in web mail; do virsh start $vm; done
sh {script} --seconds 2 --out {archive}
"""


def missing() -> str | None:
    """Why libvirt cannot be had here; `None`: it can."""
    for program in ("libvirtd", "virsh", "qemu-system-x86_64", "unshare"):
        if shutil.which(program) is None:
            return f"needs {program}"
    return None if os.geteuid() == 0 else "libvirtd starts VMs for root only"


def mounts(folder: Path) -> str:
    """Commands that put a folder's own files in place of the system's, for the processes of this namespace."""
    lines = ["! [ -e /dev/kvm ] || mount --bind kvm /dev/kvm"]
    folder.joinpath("kvm").touch(0o600)
    for name, place in FOLDERS.items():
        folder.joinpath(name).mkdir()
        lines += [f"mkdir -p {place}", f"mount --bind {name} {place}"]
    if f"\n{DRIVER_USER}:" not in Path("/etc/passwd").read_text():
        for name, entry in (("passwd", "x:64055:64055::/:/usr/sbin/nologin"), ("group", "x:64055:")):
            text = Path("/etc", name).read_text()
            folder.joinpath(name).write_text(f"{text.rstrip()}\n{DRIVER_USER}:{entry}\n")
            lines.append(f"mount --bind {name} /etc/{name}")
    return "\n".join(lines)


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    reason = missing()
    if reason is not None:
        (pytest.fail if REQUIRED else pytest.skip)(reason)
    folder = tmp_path_factory.mktemp("libvirt")
    archive = folder / "host.tar.gz"
    for name, vcpus, shares in (("web", 2, 2048), ("mail", 1, 512), ("off", 1, 1024)):
        folder.joinpath(f"{name}.xml").write_text(VM.format(name=name, vcpus=vcpus, shares=shares))
    session = SESSION.format(mounts=mounts(folder), script=folder / "collect.sh", archive=archive)
    folder.joinpath("etc", "qemu.conf").write_text(QEMU_CONF)
    folder.joinpath("etc", "libvirtd.conf").write_text(LIBVIRTD_CONF)
    assert main(["collect", "--out", str(folder / "collect.sh")]) == 0
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", session],
        cwd=folder,
        text=True,
        capture_output=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return archive


def test_the_archive_of_a_libvirt_host_becomes_a_scenario(
    collected: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", str(collected), "--out", str(tmp_path / "host.toml")]) == 0
    notes = capsys.readouterr().err
    assert "not used" not in notes, notes
    scenario = Scenario.load(tmp_path / "host.toml")
    assert set(scenario.domains) == {"web", "mail"}
    assert "off: off, and left out" in notes
    assert (scenario.domains["web"].vcpus, scenario.domains["mail"].vcpus) == (2, 1)
    weights = [scenario.domains[name].params["weight"] for name in ("web", "mail")]
    assert weights[0] == pytest.approx(4 * weights[1], rel=0.03)
    # VMs without a disk look for one to boot from, on one of their vCPUs.
    assert "as virsh domstats measured" in scenario.text
