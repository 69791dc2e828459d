"""Any file as each text that the Python front reads: for the test that changes real ones, and for `make fuzz`."""

import json
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from support import ROOT
from vcpulab import ScenarioError
from vcpulab import formats as recordings
from vcpulab.errors import RecordingError, RequestError
from vcpulab.formats import rtapp
from vcpulab.hosts import kvm_host
from vcpulab.imports import kvm
from vcpulab.twin import gather

TRACE = ROOT / "examples" / "perf-sched.txt"
XENTRACE = ROOT / "tests" / "recordings" / "xen4.17-credit-weights" / "trace.bin.xz"
KINDS = [kind for kind in recordings.KINDS if kind not in ("xentrace", "sched-text")]
"""What is read in Python; traces have fuzz targets of their own."""


def _listed(path: Path) -> None:
    """As the only listing of a KVM host: what it says may be no host, and its numbers beyond what a scenario takes."""
    read = recordings.read(path)
    if read.kind in kvm_host.KINDS:
        with suppress(RequestError, ScenarioError):
            kvm.scenario_of([read])


def check(path: Path) -> None:
    """Reads it in every way: what comes of it is an answer, or an error that is documented and names the file."""
    readers: dict[str, Callable[[], object]] = {
        **{kind: partial(recordings.read, path, kind) for kind in KINDS},
        "any": lambda: recordings.kind_of(path),
        "threads": lambda: recordings.read_threads(path),
        "beside a trace": lambda: gather([TRACE, path]),
        "beside a trace of Xen": lambda: gather([XENTRACE, path]),
        "of a KVM host": partial(_listed, path),
        "rt-app": lambda: rtapp.read(path.read_text(errors="replace"), str(path)),
    }
    for read in readers.values():
        try:
            answer = read()
            if isinstance(answer, recordings.Read):
                json.dumps(answer.as_data(), allow_nan=False)
        except (RecordingError, RequestError, ScenarioError) as error:
            assert str(path) in str(error)  # noqa: PT017 - it may also be read
