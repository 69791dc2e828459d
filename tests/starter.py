"""Starts `vcpulab` in a process of its own, in which every module that a command may import is already loaded.

A start takes a second of CPU time and more, nearly all of it for imports: polars, rich, cyclopts and our own
modules, for some commands OR-tools, Optuna or Altair. A fork of a process that has them takes hundredths of a second,
and the tests start more than a thousand. `tests/cli/test_startup.py` tests real starts: what they import, and Ctrl-C.
"""

import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import vcpulab
import vcpulab_evidence

_OUR_MODULES = [
    ".".join((package.name, *path.relative_to(package).with_suffix("").parts)).removesuffix(".__init__")
    for package in (Path(vcpulab.__file__).parent, Path(vcpulab_evidence.__file__).parent)
    for path in sorted(package.rglob("*.py"))
    if "data" not in path.parts
]
_IMPORTED_LATE = (
    "cyclopts",
    "rich.console",
    "rich.progress",
    "rich.table",
    "polars",
)
_OF_EXTRAS = ("altair", "markdown_it", "optuna", "ortools.sat.python.cp_model", "vl_convert")

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload([*_IMPORTED_LATE, *_OF_EXTRAS, *_OUR_MODULES])


def start(
    command: Path, arguments: Sequence[str], cwd: Path, environment: Mapping[str, str], timeout_s: float
) -> "subprocess.CompletedProcess[str]":
    """What `subprocess.run` with captured output returns of the command.

    Raises `subprocess.TimeoutExpired` beyond the time allowed.
    """
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("stdout", "stderr")]
        process = _CONTEXT.Process(target=_run, args=([str(command), *arguments], cwd, dict(environment), files))
        process.start()
        process.join(timeout_s)
        if process.exitcode is None:
            process.kill()
            raise subprocess.TimeoutExpired([command, *arguments], timeout_s)
        stdout, stderr = (file.read_text(encoding="utf-8") for file in files)
        return subprocess.CompletedProcess([command, *arguments], process.exitcode, stdout, stderr)


def _run(argv: list[str], cwd: Path, environment: Mapping[str, str], files: Sequence[Path]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    sys.path[:0] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    for standard, file in zip((1, 2), files, strict=True):
        os.dup2(os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT), standard)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", closefd=False)
    sys.argv = argv
    from vcpulab.cli.main import main

    sys.exit(main())
