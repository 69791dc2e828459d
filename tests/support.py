"""What several tests use."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
VCPULAB = Path(sys.executable).with_name("vcpulab")

Vcpulab = Callable[..., "subprocess.CompletedProcess[str]"]

TWO_HOGS = """\
name = "two hogs"
[run]
duration = "300ms"
warmup = "30ms"
replications = 3
[host]
profile = "exact"
scheduler = "credit"
pcpus = 1
[domain.a]
app = [{ kind = "hog" }]
[domain.b]
weight = 768
app = [{ kind = "hog" }]
"""


def run_vcpulab(arguments: Sequence[str], cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs the command line as a user does."""
    return subprocess.run(
        [VCPULAB, *arguments],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def packets(file: Path) -> list[Any]:
    """A trace for Perfetto, read with its own classes."""
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

    trace = Trace()
    trace.ParseFromString(file.read_bytes())
    return list(trace.packet)


def opened(browser: str, page: Path) -> str:
    """What the page has become once its scripts have run, without any network."""
    result = subprocess.run(
        [
            browser,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            "--window-size=1100,3000",
            "--virtual-time-budget=30000",
            "--dump-dom",
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return result.stdout
