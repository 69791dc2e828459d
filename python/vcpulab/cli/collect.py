"""`vcpulab collect`: a script that gathers what a host says about itself, printed or run over SSH."""

import os
import shlex
import subprocess
from importlib.resources import files as data_of
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from vcpulab.cli import files, terminal
from vcpulab.cli.options import Force, Out, command, number
from vcpulab.errors import RequestError

SCRIPT = "data/collect/collect.sh"
_SSH_FAILED = 255
"""The status of `ssh` for errors of its own."""


@command("collect", "vcpulab collect --out collect.sh", "vcpulab collect --ssh root@kvm1 --out host.tar.gz")
def collect(
    *,
    ssh: Annotated[
        str | None,
        Parameter(
            help="Run the script on this host, with the `ssh` of this machine, and fetch the archive. Nothing is "
            "installed there. Any destination of ssh's: a name in ~/.ssh/config, or root@host."
        ),
    ] = None,
    out: Out = None,
    seconds: Annotated[int, number("Seconds between the two readings of counters of CPU time.", 1, 600)] = 10,
    trace: Annotated[
        int | None,
        number("Also record the scheduler's events, for this many seconds; not recorded if left out.", 1, 600),
    ] = None,
    force: Force = False,
) -> None:
    """Print a script that gathers what a host says about itself, or run it over SSH.

    The script makes an archive that `vcpulab import` and `vcpulab twin` read: the topology, the kernel or Xen,
    parameters of the scheduler, VMs with their pinning, weights and quotas, and counters of CPU time, twice. It needs a
    POSIX shell and the usual tools, installs nothing and changes nothing. Of command lines it keeps only those of VMs,
    without passwords. `less collect.sh` shows what it does.

    Args:
        out: Write the script, or with --ssh the archive, to this file; if left out, print the script, or write
            HOST.tar.gz.
    """
    script = data_of("vcpulab").joinpath(SCRIPT).read_bytes()
    options = ["--seconds", str(seconds), *(() if trace is None else ("--trace", str(trace)))]
    if ssh is None:
        _hand_out(script, options, out, force=force)
        return
    if ssh.startswith("-"):
        raise RequestError(field="ssh", found=ssh, allowed="a destination of ssh's, such as root@kvm1")
    archive = out if out is not None else Path(f"{ssh.rpartition('@')[2].replace('/', '-')}.tar.gz")
    files.check_new(archive, force=force)
    _fetch(ssh, script, options, archive)
    terminal.say(f"written to {archive}\n  hint: vcpulab import {files.word(archive)} --out host.toml")


def _hand_out(script: bytes, options: list[str], out: Path | None, *, force: bool) -> None:
    """Prints the script, or writes it to a file."""
    # The script's own defaults are replaced, so that it does what was asked for without options.
    text = script.decode()
    for name, value in zip(options[::2], options[1::2], strict=True):
        variable = {"--seconds": "SECONDS_BETWEEN", "--trace": "TRACE_SECONDS"}[name]
        text = "\n".join(
            f"{variable}={value}" if line.startswith(f"{variable}=") and line.partition("=")[2].isdecimal() else line
            for line in text.split("\n")
        )
    if out is None:
        print(text, end="")
        return
    files.check_new(out, force=force)
    out.write_text(text)
    terminal.say(f"written to {out}\n  hint: sh {files.word(out)}, as root on the host")


def _fetch(ssh: str, script: bytes, options: list[str], archive: Path) -> None:
    """Runs the script on a host, and writes its archive.

    Raises:
        RequestError: there is no `ssh`, the host cannot be reached, or the script failed there.
    """
    remote = shlex.join(["sh", "-s", "--", *options, "--out", "-"])
    part = archive.with_name(f".{archive.name}.{os.getpid()}")
    try:
        with part.open("xb") as file:
            status = subprocess.run(["ssh", "--", ssh, remote], input=script, stdout=file, check=False).returncode
        if status != 0:
            raise RequestError(_reason(ssh, status), hint="vcpulab collect > collect.sh, and run that on the host")
        part.replace(archive)
    except FileNotFoundError as error:
        if error.filename != "ssh":
            raise
        raise RequestError("ssh is not installed here", hint="vcpulab collect > collect.sh") from None
    finally:
        part.unlink(missing_ok=True)


def _reason(ssh: str, status: int) -> str:
    if status == _SSH_FAILED:
        return f"ssh {ssh}: ended with an error; its message is above"
    return f"ssh {ssh}: the script ended there with exit status {status}"
