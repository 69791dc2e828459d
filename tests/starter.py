"""Starts `vcpulab` in a process of its own, with what it imports from elsewhere loaded already.

A start takes 0.9 s of CPU time, of which 0.8 s import polars, scipy, rich and cyclopts; a fork of a process that has
them takes a tenth of it, and the tests start some hundreds. Our own modules are loaded by each command, as when a user
starts it. What a start itself is like (its time, what it loads, Ctrl-C) is tested with the real one.
"""

import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["cyclopts", "polars", "rich.console", "rich.progress", "rich.table", "scipy.special"])


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
